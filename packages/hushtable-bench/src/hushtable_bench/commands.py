"""The commands ``hushtable bench``: options, beginning, run and end of each."""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

# What takes a second to import (scikit-learn, SciPy) is imported where it is used: not for --help.
from hushtable.cli.options import option
from hushtable.cli.progress import bar_of_steps
from hushtable.cli.result import CommandResult, for_machines
from hushtable.errors import DataError, MissingExtraError, UsageError
from hushtable.privacy import mechanisms
from hushtable_bench.data import VARIABLE, LabelledSet, data_folder, find_sets, load

if find_spec("hushtable_federation") is None:  # it was installed for the paper's systems alone
    raise MissingExtraError("hushtable bench", "hushtable-federation", "bench")

#: Where results are kept by default.
FOLDER = Path("hushtable-bench")
#: Sets of a glimpse: the smallest.
_QUICK = {
    "paper": ("BreastW", "Pima", "Cardio", "Thyroid"),
    "sites": ("BreastW", "Cardio"),
    "privacy": ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw"),
}
#: Sets for the attack on membership.
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")
_PACKAGES = ("opendp", "numba", "numpy", "scikit-learn")

Sets: TypeAlias = Annotated[
    Path | None, option("FOLDER", "Labelled .npz sets with X and y; by default $HUSHTABLE_DATA.")
]
SetsOrFetched: TypeAlias = Annotated[
    Path | None, option("FOLDER", "The sets; by default $HUSHTABLE_DATA, else fetched once.")
]
ResultFolder: TypeAlias = Annotated[
    Path, option("FOLDER", "Where results are kept.", "--output", "-o")
]
Seeds: TypeAlias = Annotated[int, option("N", "Seeds of each system, and of what is drawn.", min=1)]
Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="A glimpse in a minute: few seeds, small sets.")
]
_MaxRows = Annotated[int, option("N", "Rows of each set at most, drawn once.", min=10)]
_Protocol = Annotated[
    Literal["unsupervised", "novelty"],
    typer.Option(help="Fit on all rows, or on half of the normal ones and judge the rest."),
]


# --- shared ---------------------------------------------------------------------------------------


def _begin(data: Path | None, output: Path, name: str) -> tuple[Path | None, Any]:
    """Return the folder of the sets, None if they are to be fetched, and the results so far.

    A library that is missing is named now, not in half an hour.
    """
    from hushtable_bench import figures, results

    folder = data_folder(data) if data is not None or os.environ.get(VARIABLE) else None
    figures.pyplot()
    mechanisms.library()
    output.mkdir(parents=True, exist_ok=True)
    return folder, results.Results(output / name)


def _load_all(files: Iterable[Path], most: int | None = None) -> tuple[list[LabelledSet], Any]:
    """Return the sets that can be read, of ``most`` rows at most, and why others cannot."""
    sets: list[LabelledSet] = []
    left_out: dict[str, str] = {}
    for file in files:
        try:
            one = load(file) if most is None else load(file).at_most(most)
            if one.y.all() or not one.y.any():
                raise DataError(f"{file}: {most} of its rows hold one label only; take more rows")
            sets.append(one)
        except DataError as error:
            left_out[file.stem] = str(error)
    if not sets:
        raise DataError(f"no set could be read: {'; '.join(left_out.values())}")
    return sets, left_out


def _concluded(
    name: str,
    page: Iterable[Any],
    targets: Sequence[Any],
    files: Sequence[Path],
    left_out: Mapping[str, str] | None = None,
    packages: Sequence[str] = _PACKAGES,
) -> CommandResult:
    """Return the outcome; its code is 1 if a set was left out or a promise missed."""
    from hushtable_bench import results

    parts, left_out = list(page), left_out or {}
    tables = [part.cells for part in parts if isinstance(part, results.ResultTable)]
    facts = {
        "command": f"bench {name}",
        "tables": tables,
        "targets": [dataclasses.asdict(target) | {"met": target.met} for target in targets],
        "left_out": dict(left_out),
        "files": [str(file) for file in files],
    }
    blocks = [*map(str, parts), f"\n{results.environment_line(packages)}"]
    if targets:
        blocks.append(f"\n{results.verdict_table(targets)}")
    blocks += [f"\nLeft out: {set}. {reason}" for set, reason in left_out.items()]
    blocks.append(f"\nWrote {', '.join(map(str, files))}.")
    missed = left_out or not all(target.met for target in targets)
    return CommandResult(facts, blocks, 1 if missed else 0)


def _run(steps: Iterable[Any], results: Any, label: str) -> None:
    """Do the steps that are not done yet."""
    steps = list(steps)
    for step in bar_of_steps(steps, len(steps), label, for_machines()):
        step.run(results)


# --- adbench --------------------------------------------------------------------------------------


def adbench(
    data: Sets = None,
    protocol: _Protocol = "unsupervised",
    seeds: Seeds = 3,
    max_rows: _MaxRows = 20_000,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Compare our detectors with PyOD's and scikit-learn's.

    On every set of a folder: ROC-AUC and average precision, mean ranks, a critical-difference
    diagram, differences from HushTable with intervals, and published means.
    Missing values (NaN) and categories (an array categorical, bool by column) are kept. A detector
    that fails on a set has no figure there. Results are kept in FOLDER as Parquet while it runs:
    called again, it goes on where it stopped. Exit code 1 says that a set was left out or a promise
    missed.

    Example:
      hushtable bench adbench --data labelled-sets -o results
      hushtable bench adbench --protocol novelty --data labelled-sets -o results
    """
    from hushtable_bench.adbench import ComparisonRuns, contestants, targets
    from hushtable_bench.comparison import SystemComparison
    from hushtable_bench.figures import pyplot
    from hushtable_bench.results import Results

    files = find_sets(data_folder(data))
    pyplot()  # what is missing is named now, not in ten minutes
    field = contestants(protocol)
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "adbench.parquet")
    sets, left_out = _load_all(files, max_rows)
    runs = ComparisonRuns(field, sets, seeds, protocol, max_rows)
    _run(runs.steps(), results, "Detectors")
    names, systems = [one.name for one in sets], [one.name for one in field]
    auc, ap = (SystemComparison.of(results, m, names, systems, runs.name) for m in ("auc", "ap"))
    page, written = _write_adbench(runs, results, auc, ap, output)
    packages = ("numba", "numpy", "scikit-learn", "pyod")
    return _concluded("adbench", page, targets(protocol, auc, ap), written, left_out, packages)


def _write_adbench(
    runs: Any, results: Any, auc: Any, ap: Any, output: Path
) -> tuple[list[Any], list[Path]]:
    """Write the page, the tables, and the diagram; return the page, and all files."""
    from hushtable_bench.adbench import differences_table, flagged_table, page, sets_table
    from hushtable_bench.figures import critical_difference_figure
    from hushtable_bench.results import write_tables

    parts = page(runs, results, auc, ap)
    (file := output / f"{runs.name}.md").write_text("\n".join(map(str, parts)) + "\n")
    by_set = (sets_table(metric, runs.sets) for metric in (auc, ap))
    means = differences_table(auc, ap), flagged_table(results, runs)
    tables = write_tables(output, runs.name, (*means, *by_set))
    both = {"ROC-AUC, mean rank": auc, "Average precision, mean rank": ap}
    diagram = "critical-difference" + runs.name.removeprefix("adbench")
    ours = {one.name for one in runs.field if one.ours}
    drawn = critical_difference_figure(both, ours, output, diagram)
    return parts, [output / "adbench.parquet", file, *tables, *drawn]


# --- paper ----------------------------------------------------------------------------------------


def paper(
    data: SetsOrFetched = None,
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
    from hushtable_bench.paper import experiments, tables
    from hushtable_bench.paper.sets import SETS, load_sets

    names = list(experiments.EXPERIMENTS) if only is None else only.split(",")
    unknown = sorted(set(names) - set(experiments.EXPERIMENTS))
    if unknown:
        raise UsageError(f"--only {only}: {unknown} are none of {list(experiments.EXPERIMENTS)}")
    folder, results = _begin(data, output, "paper.parquet")
    loaded, left_out = load_sets(_QUICK["paper"] if quick else [one.name for one in SETS], folder)
    count = 2 if quick else seeds
    steps = (step for _, one, _ in loaded for step in experiments.steps(one, names, count))
    _run(steps, results, "Experiments")
    page = tables.page(results, loaded)
    files = [output / "paper.parquet", *tables.write(page, results, output)]
    targets = [] if quick else tables.targets(results)
    return _concluded("paper", page, targets, files, left_out)


# --- sites ----------------------------------------------------------------------------------------


def sites(
    data: SetsOrFetched = None,
    seeds: Seeds = 30,
    quick: Quick = False,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Measure accuracy over 2 to 100 sites at a total epsilon of 1.

    Noise that the sites share under masks, noise of every site, and the paper's mechanism, on
    four of the paper's sets; and local models beside the shared one. Results are kept in FOLDER
    as Parquet while it runs: called again, it goes on where it stopped. The whole takes a quarter
    of an hour on two cores. Exit code 1 says that a set was left out or a promise missed.

    Example:
      hushtable bench sites --data labelled-sets -o results
    """
    from hushtable_bench import figures
    from hushtable_bench import sites as bench
    from hushtable_bench.paper.sets import load_sets
    from hushtable_bench.results import write_page

    folder, results = _begin(data, output, "sites.parquet")
    found, left_out = load_sets(_QUICK["sites"] if quick else bench.SETS, folder)
    loaded = [data for _, data, _ in found]
    _run((s for one in loaded for s in bench.steps(one, 1 if quick else seeds)), results, "Sites")
    names = [one.name for one in loaded]
    page = bench.page(results, names)
    drawn = figures.sites_figure(results, names, output)
    files = [output / "sites.parquet", *write_page(output, "sites", page), *drawn]
    targets = [] if quick or not loaded else bench.targets(results, names)
    return _concluded("sites", page, targets, files, left_out)


# --- verdicts -------------------------------------------------------------------------------------


def verdicts(
    data: Sets = None,
    systems: Annotated[
        str | None, option("NAMES", "Beside HushTable, with commas between; by default all.")
    ] = None,
    seeds: Seeds = 3,
    rows: Annotated[
        int, option("N", "Rows of each set at most, drawn by the seed.", min=10)
    ] = 5_000,
    budget: Annotated[int, option("N", "Rows of each set that are looked at.", min=1)] = 60,
    wrong: Annotated[
        float, option("SHARE", "Share of the verdicts on rows looked at that are wrong.", max=0.5)
    ] = 0.0,
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
      hushtable bench verdicts --data labelled-sets --systems "no feedback" --seeds 1
    """
    from hushtable_bench import verdicts as bench
    from hushtable_bench.results import Results, write_page

    names = [name.strip() for name in systems.split(",")] if systems is not None else []
    field, files = bench.systems(names), find_sets(data_folder(data))
    sets, left_out = _load_all(files)
    runs = bench.VerdictRuns(field, sets, seeds, rows, budget, wrong)
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "verdicts.parquet")
    _run(runs.steps(), results, "Systems")
    figures = runs.figures(results)
    page = bench.page(runs, results, figures)
    written = [output / "verdicts.parquet", *write_page(output, runs.looks, page)]
    packages = bench.library_versions(field)
    return _concluded("verdicts", page, bench.targets(runs, figures), written, left_out, packages)


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
        typer.Option(
            "--attacks", help="Attack releases instead: neighbours, membership, differences, bugs."
        ),
    ] = False,
    output: ResultFolder = FOLDER,
) -> CommandResult:
    """Measure what privacy costs, and what adversaries and audits find.

    Tables are printed as Markdown; the folder receives them as CSV, and a figure as SVG and PNG.
    Audits look at the noise itself, and from outside at what is published and written to files;
    each also has to find planted mistakes, such as noise of a third of what is claimed.
    The whole takes about eight minutes on two cores; with --attacks, less than three. Exit code 1
    says that a promised figure was missed.

    Example:
      hushtable bench privacy --data labelled-sets -o results
      hushtable bench privacy --data labelled-sets -o results --attacks
    """
    from hushtable_bench import figures

    budgets = [0.1, 1.0] if quick else _numbers(epsilons or (".1,1,4" if attacks else ".1,.3,1,3"))
    files = find_sets(data_folder(data))
    if not attacks:
        figures.pyplot()  # what is missing is named now, not in eight minutes
    output.mkdir(parents=True, exist_ok=True)
    chosen, attacked = choose_sets(files, quick)
    if attacks:
        return _attack(attacked, budgets, quick, output)
    sets, count = (chosen, attacked), 2 if quick else seeds
    return _cost(sets, budgets, count, quick, output)


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--epsilons {text}: needs numbers with commas, such as .1,1") from None
    return sorted(set(values))


def choose_sets(files: Sequence[Path], quick: bool) -> tuple[list[LabelledSet], list[LabelledSet]]:
    """Return the sets for accuracy, and those for attacks on membership."""
    from hushtable_bench import privacy as bench

    sets = [load(file).at_most(bench.MAX_ROWS) for file in files]
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    # Without duplicates: a row that is in both halves shows nothing.
    attacked = [d.distinct() for d in sets if d.name in _ATTACKED] or sets[:3]
    if quick:
        return [d for d in chosen if d.name in _QUICK["privacy"]] or chosen[:4], attacked[:2]
    return chosen, attacked


def _cost(
    sets: tuple[Sequence[LabelledSet], Sequence[LabelledSet]],
    budgets: Sequence[float],
    seeds: int,
    quick: bool,
    output: Path,
) -> CommandResult:
    """Measure accuracy, membership and audits, one after the other; print what came of it."""
    from hushtable_bench import figures, outside
    from hushtable_bench import privacy as bench
    from hushtable_bench.results import write_tables

    chosen, attacked = sets
    steps = bench.accuracy(chosen, budgets, seeds)
    each = bar_of_steps(steps, len(chosen) * seeds, "Accuracy", for_machines())
    runs = [run for more in each for run in more]
    # Sets with a handful of outliers need more halves than seeds.
    trials = [(d, seed) for d in attacked for seed in range(bench.HALVES * seeds)]
    membership: dict[str, list[dict[str, float]]] = {}
    for one, seed in bar_of_steps(trials, len(trials), "Membership", for_machines()):
        membership.setdefault(one.name, []).append(bench.membership(one, (1.0, 0.1), seed))
    planted = bench.audits(*((1000, 30) if quick else (10_000, 100)))
    audits = list(bar_of_steps(planted, bench.N_AUDITED, "Audits", for_machines()))
    outer = outside.audits(quick), outside.n_audits(quick)
    published = list(bar_of_steps(*outer, "Audits from outside", for_machines()))
    drawn = figures.privacy_figure(runs, membership, output)
    targets = bench.audit_targets(audits) + outside.targets(published)
    targets += [] if quick else bench.accuracy_targets(runs)
    page = [*bench.page(runs, membership, audits, seeds), *outside.page(published)]
    return _concluded("privacy", page, targets, [*write_tables(output, "privacy", page), *drawn])


def _attack(
    sets: Sequence[LabelledSet], epsilons: Sequence[float], quick: bool, output: Path
) -> CommandResult:
    """Attack releases, exact counts and planted mistakes; print what came of it."""
    from hushtable_bench import attacks as bench
    from hushtable_bench import privacy as audits
    from hushtable_bench.results import write_tables

    plays, halves, effort = (150, 2, (2000, 30)) if quick else (800, 5, (2000, 60))
    steps = bench.outcomes(bench.Scene(sets[0]), epsilons, plays)
    played = list(bar_of_steps(steps, bench.n_outcomes(epsilons), "Attacks", for_machines()))
    halved = (
        found
        for one in sets
        for found in bench.attack(one.at_most(bench.CANDIDATES), epsilons, halves)
    )
    solving = bar_of_steps(halved, halves * len(sets), "Membership", for_machines())
    solved = [one for found in solving for one in found]
    mistakes = audits.audits(*effort, confidence=bench.CONFIDENCE)
    planted = list(bar_of_steps(mistakes, audits.N_AUDITED, "Planted mistakes", for_machines()))
    targets = [
        *bench.targets(played), *bench.membership_targets(solved), *audits.audit_targets(planted),
    ]  # fmt: skip
    sure = f"{100 * bench.CONFIDENCE:.4g}%"
    page = [
        *bench.page(sets[0].name, plays, halves, played, solved),
        f"\n# Planted mistakes\n\nLower bounds on epsilon, {sure} confidence each:\n",
        audits.table_of_audits(planted),
    ]
    packages = ("opendp", "numba", "numpy", "scipy")
    files = write_tables(output, "attacks", page)
    return _concluded("privacy --attacks", page, targets, files, None, packages)
