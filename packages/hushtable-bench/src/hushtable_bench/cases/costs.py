"""Measure the cost of privacy in accuracy, by number of rows and as a plan's design expects it.

`rows` takes random rows of labelled sets of 20,000 rows or more, with the set's share of outliers.
It counts and scores them with the default fit, with one pass without noise, and with a release
(marginals first if that pays, as a site does), and also with the same tables without noise.
`expectations` releases counts of such rows from sets of two folders, at total epsilons from .03 to
3. The loss is the ROC-AUC of the same tables without noise minus that of the release. Two sets in
five, chosen by a hash of their names, are kept out of the fit; on these sets, expectations are
compared with outcomes, which are means over the seeds. Seeds draw rows and plans, but no noise.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hushtable import HushTable, Plan, Release, Sketch
from hushtable.errors import DataError
from hushtable.privacy.layout import LOSS, ONE_IN_TEN, PROMISED, Design, Expectation
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import LabelledSet, auc, find_sets, load
from hushtable_bench.privacy import DELTA, released
from hushtable_bench.results import Page, Promise, ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

ROWS, QUICK_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000), (1_000, 3_000)
EPSILONS = (10.0, 3.0, 1.0, 0.1)
#: Rows that a set needs.
LARGE = 20_000
DEFAULT, EXACT = "default fit", "one pass, no noise"
PRIVATE = tuple(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
#: The tables of an epsilon, counted without noise.
QUIET = tuple(f"{way}'s tables, no noise" for way in PRIVATE)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CostRun:
    """ROC-AUC of one way on some rows of a set, in points."""

    data: str
    rows: int
    way: str
    seed: int
    auc: float


def large_sets(folder: Path) -> list[LabelledSet]:
    """Return the sets with enough rows."""
    found = [data for path in find_sets(folder) if len((data := load(path)).X) >= LARGE]
    if not found:
        raise DataError(f"{folder} holds no labelled set of {LARGE:,} rows: needs one or more")
    return found


def some_rows(data: LabelledSet, rows: int, seed: int) -> LabelledSet:
    """Return random rows with the set's share of outliers, one at least."""
    rng = np.random.default_rng(seed)
    outliers = max(1, round(rows * data.y.mean()))
    chosen = [
        rng.choice(np.flatnonzero(data.y == label), n, replace=False)
        for label, n in ((True, outliers), (False, rows - outliers))
    ]
    return data.take(np.sort(np.concatenate(chosen)))


def measure_rows(
    sets: Sequence[LabelledSet], sizes: Sequence[int], seeds: int
) -> Iterator[CostRun]:
    """Yield a run of each way on each size of each set with enough rows."""
    for data in sets:
        for rows in (n for n in sizes if n <= len(data.X)):
            progress(f"{data.name}: {rows:,} rows")
            for seed in range(seeds):
                some = some_rows(data, rows, seed)
                for way, scores in _scores(some, seed):
                    yield CostRun(data.name, rows, way, seed, 100 * auc(some.y, scores))


def _scores(data: LabelledSet, seed: int) -> Iterator[tuple[str, Floats]]:
    X = data.X
    yield DEFAULT, HushTable(random_state=seed).fit(X).score_samples(X)
    yield EXACT, HushTable(passes=1, random_state=seed).fit(X).score_samples(X)
    for epsilon, way, quiet in zip(EPSILONS, PRIVATE, QUIET, strict=True):
        private, exact = map(Scorer, _release(data, epsilon, seed))
        yield way, private.score(X)
        yield quiet, exact.score(X)


def _release(data: LabelledSet, epsilon: float, seed: int) -> tuple[Release, Sketch]:
    """Return a release, and the counts that its noise was added to."""
    counted: list[Sketch] = []

    def release(sketch: Sketch) -> Release:
        counted.append(sketch)
        return sketch.release(epsilon, DELTA)

    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(data.X)}
    found = released(data.X, data.schema(), seed, release, **terms)
    return found, counted[-1]  # marginals come before the tables


def by_set(runs: Sequence[CostRun], rows: int, ways: Sequence[str]) -> Floats:
    """Return means over the seeds (sets, ways) at one number of rows."""
    alike = [run for run in runs if run.rows == rows]
    names = dict.fromkeys(run.data for run in alike)
    return np.array([
        [np.mean([r.auc for r in alike if (r.data, r.way) == (name, way)]) for way in ways]
        for name in names
    ])  # fmt: skip


def _with_error(values: Floats) -> str:
    """Write a mean ± its standard error; for one set, only the mean."""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"


def tables(runs: Sequence[CostRun]) -> Page:
    """Lay out mean AUC, the loss against the default fit, and the loss to the noise alone."""
    means, lost, noise = [], [], []
    sets: dict[str, str] = {}
    for rows in sorted({run.rows for run in runs}):
        ways = DEFAULT, EXACT, *PRIVATE
        found, quiet = by_set(runs, rows, ways), by_set(runs, rows, QUIET)
        first = f"{rows:,}", len(found)
        means.append((*first, *(f"{value:.1f}" for value in found.mean(axis=0))))
        lost.append((*first, *map(_with_error, (found[:, :1] - found[:, 1:]).T)))
        noise.append((*first, *map(_with_error, (quiet - found[:, 2:]).T)))
        names = ", ".join(dict.fromkeys(run.data for run in runs if run.rows == rows))
        sets.setdefault(names, first[0])
    head = "rows", "sets"
    return [
        "Mean ROC-AUC, in points",
        ResultTable((*head, DEFAULT, EXACT, *PRIVATE), means),
        "Points lost against the default fit of the same rows ± standard error over sets",
        ResultTable((*head, EXACT, *PRIVATE), lost),
        "Points lost to the noise, against the same tables without ± standard error over sets",
        ResultTable((*head, *PRIVATE), noise),
        # Lines for different sets cannot be compared.
        "\n".join(f"- Sets from {rows} rows on: {names}" for names, rows in sets.items()),
    ]


DESIGN_ROWS, QUICK_DESIGN_ROWS = (500, 1_500, 5_000, 10_000), (500,)
DESIGN_EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
#: Columns at most; wider sets take too long.
MAX_COLUMNS = 300
#: Accepted difference of an outcome from the expectation, and the share of outcomes within it.
WITHIN, SHARE = 2.0, 0.8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReleaseLoss:
    """The loss of one release of rows of a set, in points of ROC-AUC.

    Attributes
    ----------
    signal : float
        The design's T.
    lost : float
        Against the same tables without noise.
    lost_to_exact : float
        Against tables drawn for exact counts, after exact marginals.
    """

    data: str
    rows: int
    columns: int
    epsilon: float
    seed: int
    signal: float
    lost: float
    lost_to_exact: float


def kept_out(name: str) -> bool:
    """Return whether a set is kept out of the fit, like two sets in five."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5 < 2


def all_sets(folders: Sequence[Path]) -> list[LabelledSet]:
    """Return the sets of the folders that are neither too small nor too wide."""
    sets = [load(path) for folder in folders for path in find_sets(folder)]
    return [s for s in sets if len(s.X) >= min(DESIGN_ROWS) and s.X.shape[1] <= MAX_COLUMNS]


def measure(data: LabelledSet, sizes: Sequence[int], seeds: int) -> Iterator[ReleaseLoss]:
    """Yield the loss of each epsilon on each number of rows that the set has."""
    for rows in (n for n in sizes if n <= len(data.X)):
        progress(f"{data.name}: {rows:,} rows")
        for seed in range(seeds):
            some = some_rows(data, rows, seed)
            exact = _points(some, _exact(some, seed))
            for epsilon in DESIGN_EPSILONS:
                design = Design(epsilon, DELTA, rows)
                private, counted = _release(some, epsilon, seed)
                found, quiet = _points(some, private), _points(some, counted)
                yield ReleaseLoss(
                    data.name, rows, data.X.shape[1], epsilon, seed, design.signal,
                    quiet - found, exact - found,
                )  # fmt: skip


def _points(data: LabelledSet, counts: Sketch | Release) -> float:
    return 100 * auc(data.y, Scorer(counts).score(data.X))


def _exact(data: LabelledSet, seed: int) -> Sketch:
    schema = data.schema()
    marginals = Sketch.from_data(Plan.marginals(schema), data.X)
    plan = Plan.draw(schema, marginals=marginals, random_state=seed)
    return Sketch.from_data(plan, data.X)


# --- fit ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanLoss:
    """Means over the seeds, of one set at one number of rows and one epsilon."""

    data: str
    rows: int
    epsilon: float
    signal: float
    lost: float
    lost_to_exact: float

    @property
    def promised(self) -> bool:
        """Whether the design is good enough for a promise."""
        return self.signal >= PROMISED

    @property
    def missed(self) -> float:
        """The expected loss minus the actual one, in points."""
        return Expectation(self.signal).loss - self.lost


def cases(outcomes: Sequence[ReleaseLoss]) -> list[MeanLoss]:
    """Return the means over the seeds."""
    alike: dict[tuple[str, int, float], list[ReleaseLoss]] = {}
    for one in outcomes:
        alike.setdefault((one.data, one.rows, one.epsilon), []).append(one)
    return [
        MeanLoss(
            *key,
            found[0].signal,
            float(np.mean([one.lost for one in found])),
            float(np.mean([one.lost_to_exact for one in found])),
        )
        for key, found in alike.items()
    ]


@dataclass(frozen=True)
class LossFit:
    """Points lost as functions of 1 / T: the mean loss, and a linear limit for one set in ten."""

    loss: float
    one_in_ten: tuple[float, float]
    #: The power of 1 / T that fits the mean best, if the power is free.
    power: float


def fitted(found: Sequence[MeanLoss]) -> LossFit:
    """Fit the mean by least squares, and the upper tenth of the promised losses."""
    signal, lost = (np.array([getattr(c, name) for c in found]) for name in ("signal", "lost"))
    loss = float((lost / signal).sum() / (1 / signal**2).sum())

    def squares(numbers: Floats) -> float:
        off: Floats = lost - np.exp(numbers[0]) * signal ** -numbers[1]
        return float((off**2).mean())

    power = minimize(squares, [np.log(max(loss, 1.0)), 1.0], method="Nelder-Mead").x[1]
    some = signal >= PROMISED

    def pinball(numbers: Floats) -> float:
        off: Floats = lost[some] - numbers[0] / signal[some] - numbers[1]
        return float(np.maximum(0.9 * off, -0.1 * off).mean())

    over, plus = minimize(pinball, ONE_IN_TEN, method="Nelder-Mead").x
    return LossFit(loss, (float(over), float(plus)), float(power))


def _row(name: str, found: Sequence[MeanLoss]) -> tuple[str, ...]:
    lost, missed = (np.array([getattr(c, what) for c in found]) for what in ("lost", "missed"))
    over = [c.lost > Expectation(c.signal).one_in_ten for c in found]
    exact = [abs(c.missed + c.lost - c.lost_to_exact) <= WITHIN for c in found]
    return (
        name, f"{len(found)}", f"{(lost + missed).mean():.1f}", f"{lost.mean():.1f}",
        f"{np.median(lost):.1f}", f"{np.quantile(lost, 0.9):.1f}",
        f"{_within(found):.0%}", f"{np.mean(over):.0%}", f"{np.mean(exact):.0%}",
    )  # fmt: skip


def _within(found: Sequence[MeanLoss]) -> float:
    return float(np.mean([abs(c.missed) <= WITHIN for c in found]))


def table(found: Sequence[MeanLoss]) -> ResultTable:
    """Lay out expectations and outcomes: all promised ones, by epsilon and rows, and the rest."""
    promised = [c for c in found if c.promised]
    parts = {
        "promised": promised,
        "mostly noise: nothing promised": [c for c in found if not c.promised],
        **{
            f"promised, epsilon {e:g}": [c for c in promised if c.epsilon == e]
            for e in DESIGN_EPSILONS
        },
        **{f"promised, {n:,} rows": [c for c in promised if c.rows == n] for n in DESIGN_ROWS},
    }
    rows = [_row(name, some) for name, some in parts.items() if some]
    head = (
        "designs", "cases", "expected", "lost, mean", "median", "one in ten",
        f"within {WITHIN:g}", "over one in ten", "exact layout: within",
    )  # fmt: skip
    return ResultTable(head, rows)


def table_of_sets(found: Sequence[MeanLoss]) -> ResultTable:
    """Lay out the loss of each set, and its largest difference from a promise."""
    rows = []
    for name in dict.fromkeys(c.data for c in found):
        some = [c for c in found if c.data == name and c.promised]
        if some:
            worst = max(some, key=lambda c: abs(c.missed))
            at = f"{worst.rows:,} rows, epsilon {worst.epsilon:g}"
            lost = f"{worst.lost:.1f}", f"{worst.lost + worst.missed:.1f}"
            rows.append((name[:40], len(some), f"{_within(some):.0%}", at, *lost))
    head = "set", "cases", f"within {WITHIN:g}", "worst at", "lost", "expected"
    return ResultTable(head, rows)


def targets(found: Sequence[MeanLoss]) -> list[Promise]:
    """Compare promises with outcomes on the sets that were kept out of the fit."""
    promised = [c for c in found if c.promised]
    claim = f"share of outcomes within {WITHIN:g} points of what was promised, sets kept out"
    return [Promise(claim, _within(promised), ">=", SHARE, ".2f")] if promised else []


def rows(run: CaseRun, *, data: Path | None = None, seeds: int = 3, quick: bool = False) -> None:
    """Measure losses by the number of rows; --quick, up to 3,000 rows and 1 seed."""
    sets = large_sets(data_folder(data))
    runs = list(measure_rows(sets, QUICK_ROWS if quick else ROWS, 1 if quick else seeds))
    run.say(*tables(runs))
    run.figures["runs"] = runs


def expectations(
    run: CaseRun, *, data: Sequence[Path] = (), seeds: int = 3, quick: bool = False
) -> None:
    """Compare a design's forecasts with outcomes: a quarter of an hour; --quick, 1 seed."""
    if not data:
        folder = data_folder()
        data = [folder, *(f for f in [folder.with_name("data-odd")] if f.is_dir())]
    sizes, count = (QUICK_DESIGN_ROWS, 1) if quick else (DESIGN_ROWS, seeds)
    outcomes = [one for some in all_sets(data) for one in measure(some, sizes, count)]
    found = cases(outcomes)
    inside, outside = ([c for c in found if kept_out(c.data) == out] for out in (False, True))
    fit = fitted(inside)
    run.say(
        f"Fit on {len({c.data for c in inside})} sets: {fit.loss:.0f} / T points on average (a "
        f"free power would be {fit.power:.2f}), one in ten above {fit.one_in_ten[0]:.0f} / T + "
        f"{fit.one_in_ten[1]:.1f}. The package uses {LOSS:g}, {ONE_IN_TEN[0]:g}, and "
        f"{ONE_IN_TEN[1]:g}, and gives promises from T = {PROMISED:g} on."
    )
    for name, some in (("fitted", inside), ("kept out", outside)):
        run.say(f"{len({c.data for c in some})} sets, {name}", table(some))
    run.say(table_of_sets(outside))
    run.figures |= {"outcomes": outcomes, "fit": fit}
    run.targets += targets(outside)
