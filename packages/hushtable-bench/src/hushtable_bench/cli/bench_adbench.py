"""``hushtable bench adbench``: accuracy on a folder of labelled sets."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hushtable.cli.options import Json, option
from hushtable.cli.progress import bar_of_steps
from hushtable.errors import DataError
from hushtable_bench.cli._bench import FOLDER, ResultFolder, Sets, conclude, verdicts, without_nan
from hushtable_bench.data import LabelledSet, data_folder, find_sets, load

_Seeds = Annotated[int, option("N", "Seeds of each detector.", min=1)]
_Protocol = Annotated[
    Literal["unsupervised", "novelty"],
    typer.Option(help="Fit on all rows, or on half of the normal ones and judge the rest."),
]
_MaxRows = Annotated[int, option("N", "Rows of each set at most, drawn once.", min=10)]


def adbench(
    data: Sets = None,
    protocol: _Protocol = "unsupervised",
    seeds: _Seeds = 3,
    max_rows: _MaxRows = 20_000,
    output: ResultFolder = FOLDER,
    as_json: Json = False,
) -> None:
    """Compare our detectors with PyOD's and scikit-learn's.

    On every set of a folder: ROC-AUC and average precision, mean ranks, a critical-difference
    diagram, differences from HushTable with intervals, Wilcoxon's tests, and published means.
    Missing values (NaN) and categories (an array categorical, bool by column) are kept. A detector
    that fails on a set has no figure there. Results are kept in FOLDER as Parquet while it runs:
    called again, it goes on where it stopped. Exit code 1 says that a set was left out or a promise
    missed.

    Example:
      hushtable bench adbench --data labelled-sets -o results
      hushtable bench adbench --protocol novelty --data labelled-sets -o results
    """
    # scikit-learn takes a second to import: not for --help.
    from hushtable_bench.adbench.compare import Comparison
    from hushtable_bench.adbench.page import page
    from hushtable_bench.adbench.promises import targets
    from hushtable_bench.adbench.runs import Runs, contestants
    from hushtable_bench.figures import pyplot
    from hushtable_bench.results import Results

    files = find_sets(data_folder(data))
    pyplot()  # what is missing is named now, not in ten minutes
    field = contestants(protocol)
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "adbench.parquet")
    sets, left_out = _loaded(files, max_rows)
    runs = Runs(field, sets, seeds, protocol, max_rows)
    for _ in bar_of_steps(runs.run(results), len(list(runs.steps())), "Detectors", as_json):
        pass

    names, systems = [one.name for one in sets], [one.name for one in field]
    auc, ap = (
        Comparison.of(results, metric, names, systems, runs.name) for metric in ("auc", "ap")
    )
    text = page(runs, results, auc, ap)
    written = [output / "adbench.parquet", *_write(runs, auc, ap, text, output)]
    held = targets(protocol, auc, ap)
    facts = _facts(runs, results, auc, ap) | {
        "left_out": left_out,
        "targets": verdicts(held),
        "files": [str(file) for file in written],
    }
    packages = ("numba", "numpy", "scikit-learn", "pyod")
    conclude(without_nan(facts), text, held, written, as_json, packages, left_out)


def _write(runs: Any, auc: Any, ap: Any, text: str, output: Path) -> list[Path]:
    """Write the page and the diagram; return the files."""
    from hushtable_bench.figures import critical_difference_figure  # as above

    (file := output / f"{runs.name}.md").write_text(text + "\n")
    both = {"ROC-AUC, mean rank": auc, "Average precision, mean rank": ap}
    ours = {one.name for one in runs.field if one.ours}
    name = "critical-difference" + runs.name.removeprefix("adbench")
    return [file, *critical_difference_figure(both, ours, output, name)]


def _loaded(files: list[Path], most: int) -> tuple[list[LabelledSet], dict[str, str]]:
    """Return the sets that can be read, and why others cannot."""
    sets, left_out = [], {}
    for file in files:
        try:
            one = load(file).at_most(most)
            if one.y.all() or not one.y.any():
                raise DataError(f"{file}: {most} of its rows hold one label only; take more rows")
            sets.append(one)
        except DataError as error:
            left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(left_out.values())}")
    return sets, left_out


def _facts(runs: Any, results: Any, auc: Any, ap: Any) -> dict[str, Any]:
    """Return all figures, for machines."""
    from hushtable_bench.adbench.known import published  # as above

    metrics, ours = (("auc", auc), ("ap", ap)), auc.systems[0]
    return {
        "command": "bench adbench",
        "protocol": runs.protocol,
        "max_rows": runs.max_rows,
        "sets": list(auc.sets),
        "means": {m: dict(zip(c.systems, c.means().tolist(), strict=True)) for m, c in metrics},
        "ranks": {m: dict(zip(c.systems, c.ranks().tolist(), strict=True)) for m, c in metrics},
        "against": ours,
        "differences": {
            m: {
                system: {"mean": mean, "low": low, "high": high}
                for system, (mean, low, high) in c.intervals(ours).items()
            }
            for m, c in metrics
        },
        "failed": {
            f"{row['system']} on {row['data']}": row["note"]
            for row in results.select(runs.name)
            if row["note"] and row["data"] in auc.sets
        },
        "published": [vars(one) for one in published(runs.protocol, auc.sets)],
    }
