"""The commands ``hushtable bench`` that keep results while they run, or take a second to load."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

# What takes a second to import (scikit-learn, SciPy) is imported where it is used: not for --help.
from hushtable.cli.options import option
from hushtable.cli.result import CommandResult
from hushtable.errors import DataError, UsageError
from hushtable.privacy import mechanisms
from hushtable.progress import bar_of_steps
from hushtable_bench.data import VARIABLE, LabelledSet, data_folder, find_sets, load, load_split
from hushtable_bench.results import Results, write_page
from hushtable_bench.runner import FOLDER, CaseRun, MaxRows, Quick, ResultFolder, Seeds, Sets

#: Sets of a glimpse: the smallest.
_QUICK = {
    "paper": ("BreastW", "Pima", "Cardio", "Thyroid"),
    "privacy": ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw"),
}
#: Sets for the attack on membership.
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")

_Protocol = Annotated[
    Literal["unsupervised", "novelty", "published"],
    typer.Option(
        help="Fit to all rows; to half of the normal ones, and judge the rest; or to the training "
        "rows that the files name, and judge their test rows."
    ),
]


def _load_all(run: CaseRun, files: Iterable[Path], most: int, split: bool) -> list[LabelledSet]:
    """Return the sets that can be read, of ``most`` rows at most; note why others cannot."""
    sets: list[LabelledSet] = []
    for file in files:
        try:
            one = load_split(file, most) if split else load(file).at_most(most)
            if one.y.all() or not one.y.any():
                raise DataError(f"{file}: {most} of its rows hold one label only; take more rows")
            sets.append(one)
        except DataError as error:
            run.left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(run.left_out.values())}")
    return sets


# --- collections of labelled sets -----------------------------------------------------------------


def adbench(
    data: Sets = None,
    protocol: _Protocol = "unsupervised",
    seeds: Seeds = 3,
    max_rows: MaxRows = 20_000,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Compare our detectors with PyOD's and scikit-learn's.

    On every set of a folder, such as those of ADBench, OddBench or OvRBench: ROC-AUC and average
    precision, differences from HushTable with intervals, and published means.
    Missing values (NaN) and categories (an array categorical, bool by column) are kept. A detector
    that fails on a set has no figure there. Results are kept in FOLDER as Parquet while it runs:
    called again, it goes on where it stopped. Exit code 1 says that a set was left out or a promise
    missed.

    Example:
      hushtable bench adbench --data labelled-sets -o results
      hushtable bench adbench --protocol novelty --data labelled-sets -o results
    """
    from hushtable_bench import adbench as bench

    files, field = find_sets(data_folder(data)), bench.contestants(protocol)
    run = CaseRun("adbench", output)
    results, split = Results(output / "adbench.parquet"), protocol == "published"
    sets = _load_all(run, bench.unseen(files) if split else files, max_rows, split)
    runs = bench.ComparisonRuns(field, sets, seeds, protocol, max_rows)
    run.do(runs.steps(), results, "Detectors")
    names, systems = [one.name for one in sets], [one.name for one in field]
    auc, ap = (
        bench.SystemComparison.of(results, m, names, systems, runs.name) for m in ("auc", "ap")
    )
    run.page = bench.page(runs, results, auc, ap)
    run.targets = bench.targets(protocol, auc, ap)
    return run.finish([output / "adbench.parquet", *write_page(output, runs.name, run.page)])


# --- paper ----------------------------------------------------------------------------------------


def paper(
    data: Annotated[
        Path | None, option("FOLDER", "The sets; by default $HUSHTABLE_DATA, else fetched once.")
    ] = None,
    seeds: Seeds = 10,
    only: Annotated[
        str | None,
        option(
            "NAME,...",
            "Some experiments: central (Tables 2, 3), local (Figure 1), epsilon (Figure 2), "
            "participants (Table 4).",
        ),
    ] = None,
    quick: Quick = False,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Run the paper's experiments, and print its figures beside ours.

    Results are kept in FOLDER as Parquet while it runs: called again, it goes on where it
    stopped. Tables are written there as Markdown and CSV, figures as SVG and PNG. The whole takes
    about half an hour, on one core. Exit code 1 says that a set was left out or a promise missed.

    Example:
      hushtable bench paper --data labelled-sets -o results
    """
    from hushtable_bench import figures
    from hushtable_bench.paper import experiments, tables
    from hushtable_bench.paper.sets import SETS, load_sets

    names = list(experiments.EXPERIMENTS) if only is None else only.split(",")
    unknown = sorted(set(names) - set(experiments.EXPERIMENTS))
    if unknown:
        raise UsageError(f"--only {only}: {unknown} are none of {list(experiments.EXPERIMENTS)}")
    folder = data_folder(data) if data is not None or os.environ.get(VARIABLE) else None
    figures.pyplot()  # a library that is missing is named now, not in half an hour
    mechanisms.library()
    run = CaseRun("paper", output)
    results = Results(output / "paper.parquet")
    chosen = _QUICK["paper"] if quick else [one.name for one in SETS]
    loaded, run.left_out = load_sets(chosen, folder)
    count = 2 if quick else seeds
    steps = (step for _, one, _ in loaded for step in experiments.steps(one, names, count))
    run.do(steps, results, "Experiments")
    run.page = tables.page(results, loaded)
    run.targets = [] if quick else tables.targets(results)
    return run.finish([output / "paper.parquet", *tables.write(run.page, results, output)])


# --- verdicts -------------------------------------------------------------------------------------


def verdicts(
    data: Sets = None,
    seeds: Seeds = 3,
    rows: MaxRows = 5_000,
    budget: Annotated[int, option("N", "Rows of each set that are looked at.", min=1)] = 60,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Measure what an analyst's verdicts on a few rows are worth.

    The system gets the label of the row with the lowest score and learns from it, as often as
    --budget states. In addition, it gets the labels of 5 and 20 rows of each kind at once. Systems:
    HushTable, AADForest and PineForest (where coniferest is installed), a random forest on the
    verdicts alone, and no feedback. Results are kept in FOLDER as Parquet while it runs: called
    again, it goes on where it stopped. Exit code 1 says that a set was left out or a promise
    missed.

    Example:
      hushtable bench verdicts --data labelled-sets -o results
    """
    from hushtable_bench import verdicts as bench

    files = find_sets(data_folder(data))
    run = CaseRun("verdicts", output)
    sets = _load_all(run, files, 10**9, split=False)
    runs = bench.VerdictRuns(bench.systems(), sets, seeds, rows, budget)
    results = Results(output / "verdicts.parquet")
    run.do(runs.steps(), results, "Systems")
    found = runs.figures(results)
    run.page, run.targets = bench.page(runs, results, found), bench.targets(runs, found)
    return run.finish([output / "verdicts.parquet", *write_page(output, runs.looks, run.page)])


# --- privacy --------------------------------------------------------------------------------------


def privacy(
    data: Sets = None,
    seeds: Seeds = 10,
    epsilons: Annotated[
        str | None,
        option("E,...", "Total budgets to compare; by default .1,.3,1,3, with --attacks .1,1,4."),
    ] = None,
    quick: Quick = False,
    attacks: Annotated[
        bool,
        typer.Option("--attacks", help="Attack releases instead: neighbours, membership, sums."),
    ] = False,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Measure what privacy costs, and what attackers and audits find.

    Tables are printed as Markdown; the folder receives them as CSV, and a figure as SVG and PNG.
    Audits look from outside at what is published and written to files; they also have to find
    planted mistakes, such as noise of a third of what is claimed. The whole takes about eight
    minutes on two cores; with --attacks, less than three. Exit code 1 says that a promised figure
    was missed.

    Example:
      hushtable bench privacy --data labelled-sets -o results
      hushtable bench privacy --data labelled-sets -o results --attacks
    """
    from hushtable_bench import figures
    from hushtable_bench import privacy as bench

    budgets = [0.1, 1.0] if quick else _numbers(epsilons or (".1,1,4" if attacks else ".1,.3,1,3"))
    sets = [load(file).at_most(bench.MAX_ROWS) for file in find_sets(data_folder(data))]
    run = CaseRun("privacy --attacks" if attacks else "privacy", output)
    if attacks:
        # Without duplicates: a row that is in both halves shows nothing.
        chosen = [one.distinct() for one in sets if one.name in _ATTACKED] or sets[:3]
        return _attack(run, chosen[:2] if quick else chosen, budgets, quick)
    figures.pyplot()  # what is missing is named now, not in eight minutes
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    if quick:
        chosen = [d for d in chosen if d.name in _QUICK["privacy"]] or chosen[:4]
    return _cost(run, chosen, budgets, 2 if quick else seeds, quick)


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--epsilons {text}: needs numbers with commas, such as .1,1") from None
    return sorted(set(values))


def _cost(
    run: CaseRun, sets: Sequence[LabelledSet], budgets: Sequence[float], seeds: int, quick: bool
) -> CommandResult:
    """Measure accuracy, and audit from outside."""
    from hushtable_bench import figures, outside
    from hushtable_bench import privacy as bench

    steps = bench.accuracy(sets, budgets, seeds)
    each = bar_of_steps(steps, len(sets) * seeds, "Accuracy")
    runs = [one for more in each for one in more]
    outer = outside.audits(quick), outside.n_audits(quick)
    published = list(bar_of_steps(*outer, "Audits from outside"))
    run.page = [*bench.page(runs, seeds), *outside.page(published)]
    run.targets = outside.targets(published) + ([] if quick else bench.accuracy_targets(runs))
    drawn = figures.privacy_figure(runs, run.output)
    return run.finish([*write_page(run.output, "privacy", run.page), *drawn])


def _attack(
    run: CaseRun, sets: Sequence[LabelledSet], epsilons: Sequence[float], quick: bool
) -> CommandResult:
    """Attack releases and exact counts."""
    from hushtable_bench import attacks as bench

    plays, halves = (150, 2) if quick else (800, 5)
    steps = bench.outcomes(bench.Scene(sets[0]), epsilons, plays)
    played = list(bar_of_steps(steps, bench.n_outcomes(epsilons), "Attacks"))
    halved = (
        found
        for one in sets
        for found in bench.attack(one.at_most(bench.CANDIDATES), epsilons, halves)
    )
    solving = bar_of_steps(halved, halves * len(sets), "Membership")
    solved = [one for found in solving for one in found]
    run.page = bench.page(sets[0].name, plays, halves, played, solved)
    run.targets = [*bench.targets(played), *bench.membership_targets(solved)]
    return run.finish(write_page(run.output, "attacks", run.page))
