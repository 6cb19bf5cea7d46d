"""Counts of two sets of rows beside each other, and the distance between them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.errors import UsageError
from hushtable.privacy.mechanisms import named

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Counts of one of the two, rows behind them, and what is known of the noise on each."""

    counts: Floats  # of cells
    rows: float
    variance: float  # second cumulant of the noise on a count
    fourth: float  # its fourth cumulant

    @classmethod
    def of(cls, counted: Counts) -> "Side":
        """Return the side of all cells; raises `UsageError` if there are too few rows."""
        rows = float(counted.counts.sum()) / counted.plan.family.n_histograms
        if rows < 2.0:
            raise UsageError(f"about {rows:.0f} rows were counted: drift needs two or more")
        variance, ledger = counted.noise_sd**2, counted.ledger
        # Of a sum of noises it is less.
        kurtosis = 0.0 if ledger is None else named(ledger.mechanism).excess_kurtosis
        fourth = kurtosis * variance**2
        return cls(counted.counts.astype(np.float64), rows, variance, fourth)

    def histogram(self, counts: Floats, cells: int = 1) -> "Side":
        """Return the side of one histogram, each count the sum of so many cells."""
        return Side(counts, self.rows, cells * self.variance, cells * self.fourth)

    def collisions(self, offsets: NDArray[np.int64]) -> float:
        """Return the sum over histograms of the chance that two of its rows share a cell."""
        squares = self.counts**2 - self.counts - self.variance
        return float(np.add.reduceat(squares, offsets[:-1]).sum() / (self.rows * (self.rows - 1.0)))


@dataclass(frozen=True)
class Pair:
    """The same histograms of both."""

    before: Side
    after: Side
    offsets: NDArray[np.int64]  # first cell of each histogram, (n_histograms + 1,)
    #: Whose noise is in it, (n_histograms,): two histograms of one table share its noise.
    tables: NDArray[np.int64]
    #: Of the noise on a count of the one with that on the same count of the other.
    covariance: float = 0.0


def distance(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the squared distance in all histograms, and what it were if no cell were shared."""
    found = scale = 0.0
    for pair in pairs:
        a, b = pair.before, pair.after
        own = a.collisions(pair.offsets) + b.collisions(pair.offsets)
        both = float(a.counts @ b.counts) - len(a.counts) * pair.covariance
        found += own - 2.0 * both / (a.rows * b.rows)
        scale += own
    return found, scale


def shared_noise(before: Counts, after: Counts) -> float:
    """Return the covariance of the noises on the same cell of both.

    Two sums that were decoded from the same increments have each the same noise in it, times the
    weights of `Horizon.weights`. A site that joined later sent nothing before, and added no noise;
    it is taken to have sent some, so that the variance of a difference is overstated, not
    understated.

    Raises `UsageError` if a period is in both sums: its rows would be compared with themselves.
    """
    a, b = before.ledger, after.ledger
    if a is None or b is None or a.window is None or b.window is None:
        return 0.0
    horizon = a.sensitivity.horizon
    assert horizon is not None
    assert a.period is not None
    assert b.period is not None
    scales = {share.release: share.scale for share in a.shares}
    shared = [share.scale for share in b.shares if share.release in scales]
    if not shared:
        return 0.0
    if max(a.period - a.window, b.period - b.window) < min(a.period, b.period):
        raise UsageError(
            f"sums of periods {a.period - a.window + 1} to {a.period}, and of "
            f"{b.period - b.window + 1} to {b.period}: a period is in both; compare sums without a "
            "period in common (those before a window, and the window)"
        )
    noise_sd = named(a.mechanism).noise_sd
    n = min(a.period, b.period)
    ours, others = horizon.weights(a.period, a.window), horizon.weights(b.period, b.window)
    return float(ours[:n] @ others[:n]) * sum(noise_sd(scale) ** 2 for scale in shared)
