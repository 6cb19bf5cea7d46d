"""Streams: a window that slides, and drift between two sets of rows, from counts alone.

Sketches come into a window by addition, and leave it by subtraction, exactly.

Drift: rows collide in a table if they fall into the same cell. The share of tables in which two
rows collide is a kernel, and the squared distance between the relative counts of two sketches,
in the mean over the tables, is the squared maximum mean discrepancy under it (Gretton et al.,
*A Kernel Two-Sample Test*, 2012). Sampling and the noise of releases add to squares of counts on
average; what they add is taken off, so that no drift is 0 on average.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import PlanError, UsageError
from hushtable.hashing import EquiWidth, RandomFeature
from hushtable.plan import Plan
from hushtable.privacy.release import Release
from hushtable.scorer import Scorer
from hushtable.sketch import Sketch

__all__ = ["Drift", "SlidingWindow", "drift"]

Floats = NDArray[np.float64]
Counted = Sketch | Release


@dataclass(frozen=True)
class Drift:
    """How far apart two sets of rows are; 0 the same, 1 in no cell together.

    Around 0 where nothing changed, a little below or above it by chance.

    Attributes
    ----------
    overall : float
        In the joint distribution, as the plan's tables see it.
    features : dict of str to float
        In each feature by itself, for those that the counts tell of: all under
        `Plan.marginals`; under random-feature tables, those with a cut in a table of 2^depth
        cells (LSHiTables' all, HushTable's shallowest only).
    """

    overall: float
    features: dict[str, float]


def drift(before: Counted, after: Counted) -> Drift:
    """Compare two sketches, or releases, of one plan.

    Parameters
    ----------
    before, after : Sketch or Release
        Of different rows, such as last month's and this month's, or one site's and another's;
        of any two sizes.

    Returns
    -------
    Drift

    Raises
    ------
    PlanError
        If their plans differ.
    UsageError
        If one holds fewer than two rows, or counts a second pass.
    """
    plan = before.plan
    if plan.plan_id != after.plan.plan_id:
        raise PlanError(f"drift needs one plan: {plan.difference(after.plan)}")
    if plan.first_counts is not None:
        raise UsageError("a second pass counts dense rows only: compare sketches of the first")
    both = [_Side.of(counted) for counted in (before, after)]
    overall = _ratio([both], [plan.family.offsets])
    features: dict[str, list[tuple[list[_Side], NDArray[np.int64]]]] = {}
    if isinstance(plan.family, EquiWidth):
        for j, name in enumerate(plan.schema.names):
            first, last = plan.family.offsets[j], plan.family.offsets[j + 1]
            part = [side.part(side.counts[first:last]) for side in both]
            features[name] = [(part, np.array([0, last - first]))]
    elif isinstance(plan.family, RandomFeature):
        features = _halves(plan, plan.family, both)
    return Drift(
        overall,
        {
            name: _ratio([s for s, _ in parts], [o for _, o in parts])
            for name, parts in features.items()
        },
    )


@dataclass(frozen=True)
class _Side:
    """Counts of one of the two, rows behind them, variance of the noise on each."""

    counts: Floats
    rows: float
    variance: float

    @classmethod
    def of(cls, counted: Counted) -> "_Side":
        rows = float(counted.counts.sum()) / counted.plan.family.n_histograms
        if rows < 2.0:
            raise UsageError(f"about {rows:.0f} rows were counted: drift needs two or more")
        return cls(counted.counts.astype(np.float64), rows, counted.noise_sd**2)

    def part(self, counts: Floats, cells: int = 1) -> "_Side":
        """Return the side of one histogram, each count the sum of so many cells."""
        return _Side(counts, self.rows, cells * self.variance)

    def collisions(self, offsets: NDArray[np.int64]) -> float:
        """Return the sum over histograms of the chance that two of its rows share a cell."""
        squares = self.counts**2 - self.counts - self.variance
        return float(np.add.reduceat(squares, offsets[:-1]).sum() / (self.rows * (self.rows - 1.0)))


def _ratio(sides: Sequence[list[_Side]], offsets: Sequence[NDArray[np.int64]]) -> float:
    """Return the squared distance over what it would be if no cell were shared."""
    distance = scale = 0.0
    for (a, b), places in zip(sides, offsets, strict=True):
        own = a.collisions(places) + b.collisions(places)
        distance += own - 2.0 * float(a.counts @ b.counts) / (a.rows * b.rows)
        scale += own
    return distance / scale if scale > 0.0 else float("nan")


def _halves(
    plan: Plan, family: RandomFeature, both: list[_Side]
) -> dict[str, list[tuple[list[_Side], NDArray[np.int64]]]]:
    """Return, for each feature, what its hash functions make of the rows: two halves each."""
    found: dict[str, list[tuple[list[_Side], NDArray[np.int64]]]] = {}
    first = 0
    for t, depth in enumerate(family.depth.tolist()):
        start, stop = family.offsets[t], family.offsets[t + 1]
        if stop - start == 1 << depth:  # not folded: the bits of a cell are those of its rows
            for h in range(depth):
                name = plan.schema.names[family.feature[first + h]]
                # The first function has the highest bit.
                shape = (1 << h, 2, 1 << (depth - h - 1))
                halves = [
                    side.part(
                        side.counts[start:stop].reshape(shape).sum(axis=(0, 2)), 1 << (depth - 1)
                    )
                    for side in both
                ]
                found.setdefault(name, []).append((halves, np.array([0, 2])))
        first += depth
    return dict(sorted(found.items(), key=lambda item: plan.schema.names.index(item[0])))


class SlidingWindow:
    """Scores rows against the newest panes of a stream.

    A pane holds the rows of one stretch of time, such as an hour; the window, the last
    ``n_panes`` of them. Its counts are at any time, to the bit, those of its rows counted
    afresh. Beginning a pane costs one subtraction of counts, however many rows and panes the
    window holds.

    Parameters
    ----------
    plan : Plan
        What rows are counted under; it stays as it is. `Plan.draw` makes one of a schema, and
        ``HushTable().fit(X).plan_`` one of rows.
    n_panes : int
        Panes of the window, the newest one included.
    n_jobs : int, optional
        Threads; None is one, -1 every core.

    Attributes
    ----------
    sketch : Sketch
        Counts of all rows in the window; `HushTable.from_counts` makes a detector of them.
    panes : list of Sketch
        Counts of each pane, oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, SlidingWindow
    >>> plan = Plan.draw(Schema([Feature.numeric("load", low=0, high=100)]), random_state=0)
    >>> window = SlidingWindow(plan, n_panes=24)
    >>> for hour in range(48):
    ...     rows = np.random.default_rng(hour).normal(50, 5, (200, 1))
    ...     window = window.roll().add(rows)
    >>> window.sketch.n_rows
    4800
    """

    def __init__(self, plan: Plan, n_panes: int, *, n_jobs: int | None = None) -> None:
        if isinstance(n_panes, bool) or not isinstance(n_panes, int | np.integer) or n_panes < 1:
            raise UsageError(f"n_panes={n_panes!r}: needs a whole number, 1 or more")
        self.plan, self.n_panes, self.n_jobs = plan, int(n_panes), n_jobs
        self.sketch = Sketch.zero(plan)
        self._panes: deque[Sketch] = deque([self.sketch])
        self._scorer: Scorer | None = None

    @property
    def panes(self) -> list[Sketch]:
        """Counts of each pane, oldest first."""
        return list(self._panes)

    def add(self, X: Any) -> "SlidingWindow":
        """Count rows into the newest pane.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as `Sketch.from_data` takes them.

        Returns
        -------
        self
        """
        new = Sketch.from_data(self.plan, X, n_jobs=self.n_jobs)
        self._panes[-1] = self._panes[-1] + new
        self.sketch = self.sketch + new
        self._scorer = None
        return self

    def roll(self) -> "SlidingWindow":
        """Begin a new pane; where there are more than ``n_panes``, forget the oldest.

        Returns
        -------
        self
        """
        self._panes.append(Sketch.zero(self.plan))
        if len(self._panes) > self.n_panes:
            self.sketch = self.sketch - self._panes.popleft()
            self._scorer = None
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Score rows against the window, which they need not be in.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows.

        Returns
        -------
        ndarray of shape (n,), float64
            In the plan's unit (bits); low = abnormal.

        Raises
        ------
        UsageError
            If the window holds no row.
        """
        if self._scorer is None:
            self._scorer = Scorer(self.sketch)
        return self._scorer.score(X, n_jobs=self.n_jobs)

    def drift(self) -> Drift:
        """Compare the newest pane with all others in the window; see `hushtable.drift`."""
        newest = self._panes[-1]
        return drift(self.sketch - newest, newest)
