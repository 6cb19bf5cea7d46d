"""How well a plan's design says beforehand what accuracy its noise will cost.

Takes random rows of labelled sets, with the set's share of outliers, and releases counts of them
at total epsilons from .03 to 3 (marginals first where that pays, as sites do). What is lost is
the ROC-AUC of the same tables without noise, less that of the release. Two sets of five are kept
out of the fit, by a hash of their names; on them, expectations are held to outcomes, means over
the seeds. Seeds draw rows, plans and no noise.

    python benchmarks/expectations.py            sets of two folders, 3 seeds: a quarter of an hour
    python benchmarks/expectations.py --quick    500 rows of each set, 1 seed
"""

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import common
from common import LabelledSet, Target
from hushtable import Plan, Release, Sketch
from hushtable.privacy.layout import LOSS, ONE_IN_TEN, PROMISED, Design, Expectation
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import auc, find_sets
from hushtable_bench.privacy import DELTA, released
from rows import some_rows

ROWS, QUICK_ROWS = (500, 1_500, 5_000, 10_000), (500,)
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
#: More columns than other sets have take too long.
MAX_COLUMNS = 300
#: Points by which an outcome may miss what was expected, and the share of outcomes that must not.
WITHIN, SHARE = 2.0, 0.8

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What one release of rows of a set lost, in points of ROC-AUC.

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
    """Return whether a set is kept out of the fit: two of five are."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 5 < 2


def all_sets(folders: Sequence[Path]) -> list[LabelledSet]:
    """Return the sets of the folders that are neither too small nor too wide."""
    sets = [common.load(path) for folder in folders for path in find_sets(folder)]
    return [s for s in sets if len(s.X) >= min(ROWS) and s.X.shape[1] <= MAX_COLUMNS]


def measure(data: LabelledSet, sizes: Sequence[int], seeds: int) -> Iterator[Outcome]:
    """Yield what each epsilon loses on each number of rows that the set has."""
    for rows in (n for n in sizes if n <= len(data.X)):
        common.progress(f"{data.name}: {rows:,} rows")
        for seed in range(seeds):
            some = some_rows(data, rows, seed)
            exact = _points(some, _exact(some, seed))
            for epsilon in EPSILONS:
                design = Design(epsilon, DELTA, rows)
                private, counted = _released(some, epsilon, seed)
                found, quiet = _points(some, private), _points(some, counted)
                yield Outcome(
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


def _released(data: LabelledSet, epsilon: float, seed: int) -> tuple[Release, Sketch]:
    """Return a release, and the counts that its noise was added to."""
    counted: list[Sketch] = []

    def release(sketch: Sketch) -> Release:
        counted.append(sketch)
        return sketch.release(epsilon, DELTA)

    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(data.X)}
    found = released(data.X, data.schema(), seed, release, **terms)
    return found, counted[-1]  # the marginals come before the tables


# --- fit ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Means over the seeds, of one set at one number of rows and one epsilon."""

    data: str
    rows: int
    epsilon: float
    signal: float
    lost: float
    lost_to_exact: float

    @property
    def promised(self) -> bool:
        return self.signal >= PROMISED

    @property
    def missed(self) -> float:
        """By how many points the design expected more."""
        return Expectation(self.signal).loss - self.lost


def cases(outcomes: Sequence[Outcome]) -> list[Case]:
    """Return the means over the seeds."""
    alike: dict[tuple[str, int, float], list[Outcome]] = {}
    for one in outcomes:
        alike.setdefault((one.data, one.rows, one.epsilon), []).append(one)
    return [
        Case(
            *key,
            found[0].signal,
            float(np.mean([one.lost for one in found])),
            float(np.mean([one.lost_to_exact for one in found])),
        )
        for key, found in alike.items()
    ]


@dataclass(frozen=True)
class Fit:
    """Points lost, in 1 / T: on average, and by one set in ten (a number over T, plus another)."""

    loss: float
    one_in_ten: tuple[float, float]
    #: The power of 1 / T that fits the mean best, if it is free.
    power: float


def fitted(found: Sequence[Case]) -> Fit:
    """Fit the mean by least squares, and the upper tenth of what is promised."""
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
    return Fit(loss, (float(over), float(plus)), float(power))


# --- tables and targets -------------------------------------------------------------------------


def _row(name: str, found: Sequence[Case]) -> tuple[str, ...]:
    lost, missed = (np.array([getattr(c, what) for c in found]) for what in ("lost", "missed"))
    over = [c.lost > Expectation(c.signal).one_in_ten for c in found]
    exact = [abs(c.missed + c.lost - c.lost_to_exact) <= WITHIN for c in found]
    return (
        name, f"{len(found)}", f"{(lost + missed).mean():.1f}", f"{lost.mean():.1f}",
        f"{np.median(lost):.1f}", f"{np.quantile(lost, 0.9):.1f}",
        f"{_within(found):.0%}", f"{np.mean(over):.0%}", f"{np.mean(exact):.0%}",
    )  # fmt: skip


def _within(found: Sequence[Case]) -> float:
    return float(np.mean([abs(c.missed) <= WITHIN for c in found]))


def table(found: Sequence[Case]) -> str:
    """Lay out expectation against outcome: all that is promised, by epsilon and rows; the rest."""
    promised = [c for c in found if c.promised]
    parts = {
        "promised": promised,
        "mostly noise: nothing promised": [c for c in found if not c.promised],
        **{f"promised, epsilon {e:g}": [c for c in promised if c.epsilon == e] for e in EPSILONS},
        **{f"promised, {n:,} rows": [c for c in promised if c.rows == n] for n in ROWS},
    }
    rows = [_row(name, some) for name, some in parts.items() if some]
    head = (
        "designs", "cases", "expected", "lost, mean", "median", "one in ten",
        f"within {WITHIN:g}", "over one in ten", "exact layout: within",
    )  # fmt: skip
    return common.markdown_table(head, rows)


def table_of_sets(found: Sequence[Case]) -> str:
    """Lay out what each set lost, and its worst miss among what is promised."""
    rows = []
    for name in dict.fromkeys(c.data for c in found):
        some = [c for c in found if c.data == name and c.promised]
        if some:
            worst = max(some, key=lambda c: abs(c.missed))
            at = f"{worst.rows:,} rows, epsilon {worst.epsilon:g}"
            lost = f"{worst.lost:.1f}", f"{worst.lost + worst.missed:.1f}"
            rows.append((name[:40], len(some), f"{_within(some):.0%}", at, *lost))
    head = "set", "cases", f"within {WITHIN:g}", "worst at", "lost", "expected"
    return common.markdown_table(head, rows)


def targets(found: Sequence[Case]) -> list[Target]:
    """Hold what is promised on the sets that were kept out of the fit to the outcomes."""
    promised = [c for c in found if c.promised]
    claim = f"share of outcomes within {WITHIN:g} points of what was promised, sets kept out"
    return [Target(claim, _within(promised), ">=", SHARE, ".2f")] if promised else []


def main(arguments: argparse.Namespace) -> int:
    """Measure, fit, judge, print and keep."""
    folders = arguments.data
    if not folders:
        folder = common.data_folder()
        folders = [folder, *(f for f in [folder.with_name("data-odd")] if f.is_dir())]
    sizes, seeds = (QUICK_ROWS, 1) if arguments.quick else (ROWS, arguments.seeds)
    outcomes = [one for data in all_sets(folders) for one in measure(data, sizes, seeds)]
    found = cases(outcomes)
    inside = [c for c in found if not kept_out(c.data)]
    outside = [c for c in found if kept_out(c.data)]
    fit = fitted(inside)
    print(
        f"Fit on {len({c.data for c in inside})} sets: {fit.loss:.0f} / T points on average (free, "
        f"the power is {fit.power:.2f}), one in ten above {fit.one_in_ten[0]:.0f} / T + "
        f"{fit.one_in_ten[1]:.1f}. The package has {LOSS:g}, {ONE_IN_TEN[0]:g} and "
        f"{ONE_IN_TEN[1]:g}, and promises from T = {PROMISED:g} on."
    )
    for name, some in (("fitted", inside), ("kept out", outside)):
        print(f"\n{len({c.data for c in some})} sets, {name}\n\n{table(some)}")
    print(f"\n{table_of_sets(outside)}")
    kept = [asdict(one) for one in outcomes]
    return common.finish(targets(outside), "expectations", outcomes=kept, fit=asdict(fit))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", help="folders of labelled sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="500 rows of each set, 1 seed")
    common.run(parser, main)
