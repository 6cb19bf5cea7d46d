"""The cases of ``hushtable bench`` that keep results while they run, or compare whole systems."""

import os
from collections.abc import Iterable
from pathlib import Path

# What takes a second to import (scikit-learn, SciPy) is imported where it is used: not for --help.
from hushtable.cli.result import CommandResult
from hushtable.errors import DataError, UsageError
from hushtable.privacy import mechanisms
from hushtable.progress import bar_of_steps
from hushtable_bench.data import VARIABLE, LabelledSet, data_folder, find_sets, load, load_split
from hushtable_bench.results import Results, write_page
from hushtable_bench.runner import FOLDER, CaseRun, Protocol

#: Sets of a glimpse: the smallest.
_QUICK = {
    "paper": ("BreastW", "Pima", "Cardio", "Thyroid"),
    "privacy": ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw"),
}
#: Sets for the attack on membership.
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")

#: Total budgets to compare, and to attack.
_EPSILONS = [0.1, 0.3, 1.0, 3.0]
_ATTACKED_EPSILONS = [0.1, 1.0, 4.0]
#: Rows of each set that an analyst looks at.
_BUDGET = 60


def _load_all(run: CaseRun, files: Iterable[Path], most: int, split: bool) -> list[LabelledSet]:
    """Return the sets that can be read, of ``most`` rows at most; note why others cannot."""
    sets: list[LabelledSet] = []
    for file in files:
        try:
            data = load_split(file, most) if split else load(file).at_most(most)
            if data.y.all() or not data.y.any():
                raise DataError(f"{file}: {most} of its rows hold one label only; take more rows")
            sets.append(data)
        except DataError as error:
            run.left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(run.left_out.values())}")
    return sets


# --- collections of labelled sets -----------------------------------------------------------------


def adbench(
    data: Path | None = None,
    protocol: Protocol = "unsupervised",
    seeds: int = 3,
    max_rows: int = 20_000,
    output: Path = FOLDER,
) -> CommandResult:
    """Compare our detectors with PyOD's and scikit-learn's.

    On every set of a folder, such as those of ADBench, OddBench or OvRBench: ROC-AUC and average
    precision, differences from HushTable with intervals, and published means.
    Missing values (NaN) and categories (an array categorical, bool by column) are kept. A detector
    that fails on a set has no figure there.
    """
    from hushtable_bench import adbench as bench

    files, field = find_sets(data_folder(data)), bench.contestants(protocol)
    run = CaseRun("adbench", output)
    results, split = Results(output / "adbench.parquet"), protocol == "published"
    sets = _load_all(run, bench.unseen(files) if split else files, max_rows, split)
    runs = bench.ComparisonRuns(field, sets, seeds, protocol, max_rows)
    run.do(runs.steps(), results, "Detectors")
    names, systems = [item.name for item in sets], [item.name for item in field]
    auc, ap = (
        bench.SystemComparison.of(results, m, names, systems, runs.name) for m in ("auc", "ap")
    )
    run.page = bench.page(runs, results, auc, ap)
    run.targets = bench.targets(protocol, auc, ap)
    return run.finish([output / "adbench.parquet", *write_page(output, runs.name, run.page)])


# --- paper ----------------------------------------------------------------------------------------


def paper(
    data: Path | None = None,
    seeds: int = 10,
    only: str | None = None,
    quick: bool = False,
    output: Path = FOLDER,
) -> CommandResult:
    """Run the paper's experiments, and print its figures beside ours.

    The whole takes about half an hour, on one core.
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
    data: Path | None = None, seeds: int = 3, max_rows: int = 5_000, output: Path = FOLDER
) -> CommandResult:
    """Measure what an analyst's verdicts on a few rows are worth.

    The system gets the label of the row with the lowest score and learns from it, 60 times. In
    addition, it gets the labels of 5 and 20 rows of each kind at once. Systems: HushTable,
    AADForest and PineForest (where coniferest is installed), a random forest on the verdicts alone,
    and no feedback.
    """
    from hushtable_bench import verdicts as bench

    files = find_sets(data_folder(data))
    run = CaseRun("verdicts", output)
    sets = _load_all(run, files, 10**9, split=False)
    runs = bench.VerdictRuns(bench.systems(), sets, seeds, max_rows, _BUDGET)
    results = Results(output / "verdicts.parquet")
    run.do(runs.steps(), results, "Systems")
    figures = runs.figures(results)
    run.page, run.targets = bench.page(runs, results, figures), bench.targets(runs, figures)
    return run.finish([output / "verdicts.parquet", *write_page(output, runs.looks, run.page)])


# --- privacy --------------------------------------------------------------------------------------


def privacy(
    data: Path | None = None, seeds: int = 10, quick: bool = False, output: Path = FOLDER
) -> CommandResult:
    """Measure what privacy costs, and what audits find.

    Audits look from outside at what is published and written to files; they also have to find
    planted mistakes, such as noise of a third of what is claimed. The whole takes about eight
    minutes on two cores.
    """
    from hushtable_bench import figures, outside
    from hushtable_bench import privacy as bench

    figures.pyplot()  # what is missing is named now, not in eight minutes
    sets = [load(file).at_most(bench.MAX_ROWS) for file in find_sets(data_folder(data))]
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    budgets = _EPSILONS
    if quick:
        chosen = [d for d in chosen if d.name in _QUICK["privacy"]] or chosen[:4]
        seeds, budgets = 2, [0.1, 1.0]
    run = CaseRun("privacy", output)
    each = bar_of_steps(bench.accuracy(chosen, budgets, seeds), len(chosen) * seeds, "Accuracy")
    runs = [one for more in each for one in more]
    published = list(
        bar_of_steps(outside.audits(quick), outside.n_audits(quick), "Audits from outside")
    )
    run.page = [*bench.page(runs, seeds), *outside.page(published)]
    run.targets = outside.targets(published) + ([] if quick else bench.accuracy_targets(runs))
    drawn = figures.privacy_figure(runs, run.output)
    return run.finish([*write_page(run.output, "privacy", run.page), *drawn])


def attacks(data: Path | None = None, quick: bool = False, output: Path = FOLDER) -> CommandResult:
    """Attack releases and exact counts: neighbours, membership, sums.

    The whole takes less than three minutes.
    """
    from hushtable_bench import attacks as bench
    from hushtable_bench.privacy import MAX_ROWS

    sets = [load(file).at_most(MAX_ROWS) for file in find_sets(data_folder(data))]
    # Without duplicates: a row that is in both halves shows nothing.
    sets = [one.distinct() for one in sets if one.name in _ATTACKED] or sets[:3]
    epsilons, plays, halves = _ATTACKED_EPSILONS, 800, 5
    if quick:
        sets, epsilons, plays, halves = sets[:2], [0.1, 1.0], 150, 2
    run = CaseRun("attacks", output)
    outcomes = bench.outcomes(bench.Scene(sets[0]), epsilons, plays)
    played = list(bar_of_steps(outcomes, bench.n_outcomes(epsilons), "Attacks"))
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
