"""Measure the cost of privacy in accuracy, by total epsilon and by the number of rows.

Every epsilon is the total for one row. Ranges are the data's own minimum and maximum, as if they
were public, for all systems alike, which is slightly optimistic. A release has the whole noise
once, like the sum of all sites under a secure sum.

`rows` takes random rows of labelled sets of 20,000 rows or more, with the set's share of outliers.
It scores them by the default fit, and by releases, also with the same tables without noise.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.cli.result import CommandResult
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Schema
from hushtable.detectors import HushTable
from hushtable.errors import DataError
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import LabelledSet, auc, auc_and_ap, data_folder, find_sets, load
from hushtable_bench.results import Page, Promise, ResultTable, spread
from hushtable_bench.runner import FOLDER, CaseRun, progress

DELTA = 1e-6
#: Rows that a set needs to count in the means, and rows taken from it at most.
MIN_ROWS, MAX_ROWS = 1000, 20_000
#: The paper's data sets, by the names of their files.
PAPER_SETS = (
    "4_breastw", "29_Pima", "6_cardio", "24_mnist", "25_musk", "28_pendigits", "31_satimage-2",
    "38_thyroid", "32_shuttle", "10_cover", "kdd99",
)  # fmt: skip

PRIVATE, PAPERS = "private HushTable", "paper's mechanism"
OURS, THEIRS = "HushTable, not private", "LSH iTables, not private"

Floats = NDArray[np.float64]


# --- the systems --------------------------------------------------------------------------------


def private_scorer(X: Floats, schema: Schema, epsilon: float, seed: int) -> Scorer:
    """Count and release as a site does: marginals first if that pays, then the tables."""
    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(X)}
    return Scorer(released(X, schema, seed, lambda sketch: sketch.release(epsilon, DELTA), **terms))


def released(
    X: Floats, schema: Schema, seed: int, release: Callable[[Sketch], Release], **terms: Any
) -> Release:
    """Release tables under these terms, drawn from marginals if those pay."""
    marginals = None
    if Design(**terms).pays_marginals(len(schema)):
        marginals = release(Sketch.from_data(Plan.marginals(schema, **terms), X))
    plan = Plan.draw(schema, marginals=marginals, random_state=seed, **terms)
    return release(Sketch.from_data(plan, X))


def papers_scorer(X: Floats, schema: Schema, epsilon: float, seed: int) -> Scorer:
    """Release like the paper: samples of 1,000 rows, and Laplace noise for each table by itself.

    The seed draws the plan; a release needs samples that no one can draw again.

    ``epsilon`` is divided by the number of tables. (The ledger counts twice as much, because an
    additional row displaces another from a sample of fixed size; this favours the paper.)
    """
    sketch = _lsh_itables(X, schema, seed, None)
    each = epsilon / sketch.plan.family.n_tables
    return Scorer(sketch.release(each, mechanism="laplace-per-table"))


def _lsh_itables(X: Floats, schema: Schema, seed: int, sample: int | None) -> Sketch:
    size = min(1000, len(X))
    plan = Plan.draw(schema, detector="lsh_itables", max_samples=size, random_state=seed)
    return Sketch.from_data(plan, X, max_samples=size, random_state=sample)


def _hushtable(X: Floats, schema: Schema, seed: int) -> Sketch:
    marginals = Sketch.from_data(Plan.marginals(schema), X)
    return Sketch.from_data(Plan.draw(schema, marginals=marginals, random_state=seed), X)


# --- accuracy -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccuracyRun:
    """One system on one set with one seed; ``epsilon`` is 0 for counts without noise."""

    data: str
    rows: int
    features: int
    system: str
    epsilon: float
    seed: int
    auc: float
    ap: float


def accuracy(
    sets: Sequence[LabelledSet], epsilons: Sequence[float], seeds: int
) -> Iterator[list[AccuracyRun]]:
    """Yield the runs of each set and seed. Seeds draw plans and no noise."""
    for data in sets:
        X, schema = data.X, data.schema()
        for seed in range(seeds):
            scorers = [
                (OURS, 0.0, Scorer(_hushtable(X, schema, seed))),
                (THEIRS, 0.0, Scorer(_lsh_itables(X, schema, seed, seed))),
            ]
            for epsilon in epsilons:
                scorers += [
                    (PRIVATE, epsilon, private_scorer(X, schema, epsilon, seed)),
                    (PAPERS, epsilon, papers_scorer(X, schema, epsilon, seed)),
                ]
            yield [
                AccuracyRun(
                    data.name, len(X), X.shape[1], system, epsilon, seed,
                    *auc_and_ap(data.y, scorer.score(X, n_jobs=-1)).values(),
                )
                for system, epsilon, scorer in scorers
            ]  # fmt: skip


def _values(runs: Iterable[AccuracyRun], system: str, epsilon: float, metric: str) -> Floats:
    """Return a metric in points, sets by seeds."""
    values: dict[str, list[float]] = {}
    for run in runs:
        if (run.system, run.epsilon) == (system, epsilon):
            values.setdefault(run.data, []).append(100 * getattr(run, metric))
    return np.array(list(values.values()))


def means(runs: Sequence[AccuracyRun], metric: str) -> dict[tuple[str, float], Floats]:
    """Return, for each system and epsilon, the mean over the large sets for each seed."""
    large = [run for run in runs if run.rows >= MIN_ROWS]
    keys = dict.fromkeys((run.system, run.epsilon) for run in runs)
    return {key: _values(large, *key, metric).mean(axis=0) for key in keys}


def table_of_means(runs: Sequence[AccuracyRun]) -> ResultTable:
    """Lay out mean AUC and AP over the large sets against the total epsilon."""
    both = means(runs, "auc"), means(runs, "ap")
    rows = [
        (
            f"{epsilon:g}" if epsilon else "no noise",
            *(spread(figures[key]) for key in _pair(epsilon) for figures in both),
        )
        for epsilon in (*sorted({r.epsilon for r in runs if r.epsilon}), 0.0)
    ]
    systems = "HushTable", "the paper's mechanism"
    header = ["total epsilon", *(f"{system}: {m}" for system in systems for m in ("ROC-AUC", "AP"))]
    return ResultTable(header, rows)


def _pair(epsilon: float) -> tuple[tuple[str, float], tuple[str, float]]:
    ours, papers = (PRIVATE, PAPERS) if epsilon else (OURS, THEIRS)
    return (ours, epsilon), (papers, epsilon)


def accuracy_targets(runs: Sequence[AccuracyRun]) -> list[Promise]:
    """Compare the private detector with its promises, at epsilon 1 and 0.1."""
    promises = []
    mean = {key: float(values.mean()) for key, values in means(runs, "auc").items()}
    for epsilon, loss in ((1.0, 0.5), (0.1, 2.5)):
        if (PRIVATE, epsilon) in mean:
            lost = mean[OURS, 0.0] - mean[PRIVATE, epsilon]
            claim = f"epsilon {epsilon:g}: AUC points lost to the noise"
            promises.append(Promise(claim, lost, "<=", loss, ".2f"))
    if (PRIVATE, 0.1) in mean:
        ahead = mean[PRIVATE, 0.1] - mean[PAPERS, 0.1]
        claim = "epsilon 0.1: AUC points ahead of the paper's mechanism"
        promises.append(Promise(claim, ahead, ">=", 5.0, ".2f"))
        for name in dict.fromkeys(r.data for r in runs if r.data in PAPER_SETS):
            of_set = [run for run in runs if run.data == name]
            ours, papers = (_values(of_set, s, 0.1, "auc")[0] for s in (PRIVATE, PAPERS))
            seeds = float(max(ours.std(), papers.std()))
            claim = f"epsilon 0.1, {name}: points ahead, within the spread between seeds"
            promises.append(Promise(claim, float(ours.mean() - papers.mean()), ">=", -seeds, ".2f"))
    return promises


# --- attacks ------------------------------------------------------------------------------------


def page(runs: Sequence[AccuracyRun], seeds: int) -> Page:
    """Lay out accuracy against epsilon."""
    large = len({run.data for run in runs if run.rows >= MIN_ROWS})
    return [
        "# Accuracy\n",
        f"Mean over {large} sets of 1,000 rows and more, over {seeds} seeds ± their",
        "standard deviation, x 100. Ranges are the data's own, as if they were public.\n",
        table_of_means(runs),
        "\n# Audits\n",
    ]


# --- rows and epsilon -----------------------------------------------------------------------------

SIZES, QUICK_SIZES = (1_000, 3_000, 10_000, 30_000, 100_000), (1_000, 3_000)
EPSILONS = (10.0, 3.0, 1.0, 0.1)
#: Rows that a set needs.
LARGE = 20_000
DEFAULT = "default fit"


def some_rows(data: LabelledSet, rows: int, seed: int) -> LabelledSet:
    """Return random rows with the set's share of outliers, one at least."""
    rng = np.random.default_rng(seed)
    outliers = max(1, round(rows * data.y.mean()))
    chosen = [
        rng.choice(np.flatnonzero(data.y == label), n, replace=False)
        for label, n in ((True, outliers), (False, rows - outliers))
    ]
    return data.take(np.sort(np.concatenate(chosen)))


def released_counts(data: LabelledSet, epsilon: float, seed: int) -> tuple[Release, Sketch]:
    """Return a release, and the counts that its noise was added to."""
    counted: list[Sketch] = []

    def release(sketch: Sketch) -> Release:
        counted.append(sketch)
        return sketch.release(epsilon, DELTA)

    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(data.X)}
    counts = released(data.X, data.schema(), seed, release, **terms)
    return counts, counted[-1]  # marginals come before the tables


def points(data: LabelledSet, counts: Sketch | Release) -> float:
    """Return the ROC-AUC by some counts in points."""
    return 100 * auc(data.y, Scorer(counts).score(data.X))


def one_size(data: LabelledSet, rows: int, seeds: int) -> dict[str, float]:
    """Return the mean ROC-AUC of each way on rows of a set, in points."""
    figures: dict[str, list[float]] = {}
    for seed in range(seeds):
        sample = some_rows(data, rows, seed)
        scores = HushTable(random_state=seed).fit(sample.X).score_samples(sample.X)
        figures.setdefault(DEFAULT, []).append(100 * auc(sample.y, scores))
        for epsilon in EPSILONS:
            private, exact = released_counts(sample, epsilon, seed)
            figures.setdefault(f"epsilon {epsilon:g}", []).append(points(sample, private))
            lost = points(sample, exact) - points(sample, private)
            figures.setdefault(f"lost to noise at epsilon {epsilon:g}", []).append(lost)
    return {way: float(np.mean(each)) for way, each in figures.items()}


def with_error(values: Floats) -> str:
    """Write a mean ± its standard error; for one set, only the mean."""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"


def rows(
    data: Path | None = None, seeds: int = 3, quick: bool = False, output: Path = FOLDER
) -> CommandResult:
    """Measure what noise costs by the number of rows.

    Sets of 20,000 rows or more count.
    """
    run = CaseRun("rows", output)
    folder = data_folder(data)
    sets = [one for path in find_sets(folder) if len((one := load(path)).X) >= LARGE]
    if not sets:
        raise DataError(f"{folder} holds no labelled set of {LARGE:,} rows: needs one or more")
    lines: list[Sequence[object]] = []
    header: tuple[str, ...] = ("rows", "sets")
    for size in QUICK_SIZES if quick else SIZES:
        progress(f"{size:,} rows")
        enough = [one for one in sets if len(one.X) >= size]
        figures = [one_size(one, size, 1 if quick else seeds) for one in enough]
        if not figures:
            continue
        columns = {way: np.array([one[way] for one in figures]) for way in figures[0]}
        means = [
            with_error(values) if way.startswith("lost") else f"{values.mean():.1f}"
            for way, values in columns.items()
        ]
        lines.append((f"{size:,}", len(figures), *means))
        header = ("rows", "sets", *columns)
    run.say("Mean ROC-AUC in points, and points lost to the noise ± standard error over sets")
    run.say(ResultTable(header, lines))
    return run.finish()
