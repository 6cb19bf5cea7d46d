"""``hushtable bench adbench``: accuracy on a folder of labelled sets."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.bench.data import LabelledSet, data_folder, find_sets, load
from hushtable.cli._bench import FOLDER, ResultFolder, Sets, conclude, verdicts
from hushtable.cli._options import Json, option
from hushtable.cli._progress import bar_of_steps
from hushtable.errors import DataError

_Seeds = Annotated[int, option("N", "Seeds of each detector.", min=1)]


def adbench(
    data: Sets = None, seeds: _Seeds = 3, output: ResultFolder = FOLDER, as_json: Json = False
) -> None:
    """Compare our detectors with PyOD's and scikit-learn's.

    On every set of a folder: ROC-AUC and average precision, mean ranks, a critical-difference
    diagram, and Wilcoxon's tests against HushTable. At most 20,000 rows of each set. Results are
    kept in FOLDER as Parquet while it runs: called again, it goes on where it stopped. Exit code 1
    says that a set was left out or a promise missed.

    Example:
      hushtable bench adbench --data labelled-sets -o results
    """
    # scikit-learn takes a second to import: not for --help.
    from hushtable.bench import figures
    from hushtable.bench.adbench import compare, runs
    from hushtable.bench.results import Results

    files = find_sets(data_folder(data))
    figures.pyplot()  # what is missing is named now, not in ten minutes
    field = runs.contestants()
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "adbench.parquet")
    sets, left_out = _loaded(files, runs.MAX_ROWS)
    steps = (step for one in sets for step in runs.runs(one, field, seeds, results))
    total = len(sets) * sum(1 if c.fixed else seeds for c in field)
    for _ in bar_of_steps(steps, total, "Detectors", as_json):
        pass

    names = [one.name for one in sets]
    auc, ap = (compare.Comparison.of(results, metric, names) for metric in ("auc", "ap"))
    ours = {c.name for c in field if c.make(0).__class__.__module__.startswith("hushtable.")}
    both = {"ROC-AUC, mean rank": auc, "Average precision, mean rank": ap}
    drawn = figures.critical_difference_figure(both, ours, output)
    targets = compare.targets(auc, ap)
    page = _page(results, sets, auc, ap, seeds)
    (output / "adbench.md").write_text(page + "\n")
    written = [output / "adbench.parquet", output / "adbench.md", *drawn]
    metrics = (("auc", auc), ("ap", ap))
    facts: dict[str, Any] = {
        "command": "bench adbench",
        "sets": names,
        "left_out": left_out,
        "means": {m: dict(zip(c.systems, c.means().tolist(), strict=True)) for m, c in metrics},
        "ranks": {m: dict(zip(c.systems, c.ranks().tolist(), strict=True)) for m, c in metrics},
        "targets": verdicts(targets),
        "files": [str(file) for file in written],
    }
    packages = ("numba", "numpy", "scikit-learn", "pyod")
    conclude(facts, page, targets, written, as_json, packages, left_out)


def _loaded(files: list[Path], most: int) -> tuple[list[LabelledSet], dict[str, str]]:
    """Return the sets that can be read, and why others cannot."""
    sets, left_out = [], {}
    for file in files:
        try:
            sets.append(load(file).at_most(most))
        except DataError as error:
            left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(left_out.values())}")
    return sets, left_out


def _page(results: Any, sets: Any, auc: Any, ap: Any, seeds: int) -> str:
    from hushtable.bench.adbench import compare  # as above

    parts = []
    for comparison, title in ((auc, "ROC-AUC"), (ap, "Average precision")):
        parts.append(f"## {title} x 100, mean of {seeds} seeds\n")
        parts.append(compare.sets_table(comparison, sets) + "\n")
    parts += [
        f"## Means over {len(sets)} sets\n",
        "± is the standard deviation over the seeds; rank is the mean over the sets; p is "
        "Wilcoxon's signed-rank test against HushTable, with Holm's correction.\n",
        compare.means_table(auc, ap),
        f"\nMean ranks that are less than {auc.critical_difference():.1f} apart do not differ "
        "(Nemenyi's test at 5%).\n",
        "## Rows flagged\n",
        compare.flagged_table(results),
    ]
    return "\n".join(parts)
