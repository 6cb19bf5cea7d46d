"""``hushtable bench verdicts``: what verdicts on a few rows are worth."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import Json, option
from hushtable.cli.progress import bar_of_steps
from hushtable.errors import DataError
from hushtable_bench.cli._bench import FOLDER, ResultFolder, Sets, conclude, without_nan
from hushtable_bench.cli._bench import verdicts as judged
from hushtable_bench.data import LabelledSet, data_folder, find_sets, load

_Seeds = Annotated[int, option("N", "Seeds of each system, and of the rows drawn.", min=1)]
_Rows = Annotated[int, option("N", "Rows of each set at most, drawn by the seed.", min=10)]
_Budget = Annotated[int, option("N", "Rows of each set that are looked at.", min=1)]
_Wrong = Annotated[
    float, option("SHARE", "Share of the verdicts on rows looked at that are wrong.", max=0.5)
]
_Systems = Annotated[
    str | None, option("NAMES", "Beside HushTable, with commas between; by default all.")
]


def verdicts(
    data: Sets = None,
    systems: _Systems = None,
    seeds: _Seeds = 3,
    rows: _Rows = 5_000,
    budget: _Budget = 60,
    wrong: _Wrong = 0.0,
    output: ResultFolder = FOLDER,
    as_json: Json = False,
) -> None:
    """Measure what an analyst's verdicts on a few rows are worth.

    The row that scores lowest is shown, whether it is an outlier is told, and the system learns,
    as often as --budget says. Besides, 5 and 20 rows of each kind are told at once. Systems:
    HushTable, AADForest and PineForest (where coniferest is installed), a random forest on the
    verdicts alone, and no feedback. Results are kept in FOLDER as Parquet while it runs: called
    again, it goes on where it stopped. Exit code 1 says that a set was left out or a promise
    missed.

    Example:
      hushtable bench verdicts --data labelled-sets -o results
      hushtable bench verdicts --data labelled-sets --systems "no feedback" --seeds 1
    """
    # scikit-learn takes a second to import: not for --help.
    from hushtable_bench.results import Results
    from hushtable_bench.verdicts import learners, page
    from hushtable_bench.verdicts.runs import Runs

    names = [name.strip() for name in systems.split(",")] if systems is not None else []
    field, files = learners.systems(names), find_sets(data_folder(data))
    sets, left_out = _loaded(files)
    runs = Runs(field, sets, seeds, rows, budget, wrong)
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "verdicts.parquet")
    for _ in bar_of_steps(runs.run(results), len(list(runs.steps())), "Systems", as_json):
        pass

    figures = runs.figures(results)
    text, held = page.page(runs, results, figures), page.targets(runs, figures)
    (file := output / f"{runs.looks}.md").write_text(text + "\n", "utf-8")
    written = [output / "verdicts.parquet", file]
    facts: dict[str, Any] = page.facts(runs, results, figures) | {
        "left_out": left_out,
        "targets": judged(held),
        "files": [str(one) for one in written],
    }
    packages = learners.library_versions(field)
    conclude(without_nan(facts), text, held, written, as_json, packages, left_out)


def _loaded(files: list[Path]) -> tuple[list[LabelledSet], dict[str, str]]:
    """Return the sets that can be read, and why others cannot."""
    sets, left_out = [], {}
    for file in files:
        try:
            sets.append(load(file))
        except DataError as error:
            left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(left_out.values())}")
    return sets, left_out
