"""Streams: a window that slides, and drift between two sets of rows, from counts alone.

Sketches come into a window by addition, and leave it by subtraction, exactly.

Drift: rows collide in a table if they fall into the same cell. The share of tables in which two
rows collide is a kernel, and the squared distance between the relative counts of two sketches,
in the mean over the tables, is the squared maximum mean discrepancy under it (Gretton et al.,
*A Kernel Two-Sample Test*, 2012). Sampling and the noise of releases add to squares of counts on
average; what they add is taken off, so that no drift is 0 on average.

Where nothing changed, the squared distance is a degenerate U-statistic of mean 0. With samples of
n and m rows its variance is (2 / n(n-1) + 2 / m(m-1) + 4 / nm) times the mean squared centred
kernel of two rows (appendix B there), which for one histogram with probabilities p is
sum p^2 - 2 sum p^3 + (sum p^2)^2: known from counts. How the histograms of many tables depend on
each other is not. Their standard deviations are added up, then, as if each said the same as all
others: an upper bound, unless a sample of rows gives the kernel itself.

Under a plan with a context, exact counts are compared within each context: a January with earlier
Januaries, whatever part of the rows they are. Each context of a table is a histogram of its own:
see `within_contexts`.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.counts.base import Counts, mergeable
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.data.options import first_names
from hushtable.data.typed import open_rows
from hushtable.errors import PlanError, UsageError
from hushtable.language import N_, _, numerals
from hushtable.plans.families import Contextual, EquiWidth, RandomFeature
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import named
from hushtable.scores.scorer import Scorer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Counts of one side, number of rows behind them, and known facts about the noise on each."""

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
        # For a sum of noises it is less.
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
    """The same histograms of both sides."""

    before: Side
    after: Side
    offsets: NDArray[np.int64]  # first cell of each histogram, (n_histograms + 1,)
    #: Whose noise is in it, (n_histograms,): two histograms of one table share its noise.
    tables: NDArray[np.int64]
    #: Of the noise on a count of the one with that on the same count of the other.
    covariance: float = 0.0


def distance(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the squared distance in all histograms, and what it were if no cell were shared."""
    total = scale = 0.0
    for pair in pairs:
        a, b = pair.before, pair.after
        mine = a.collisions(pair.offsets) + b.collisions(pair.offsets)
        both = float(a.counts @ b.counts) - len(a.counts) * pair.covariance
        total += mine - 2.0 * both / (a.rows * b.rows)
        scale += mine
    return total, scale


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
            "common period (those before a window, and the window)"
        )
    noise_sd = named(a.mechanism).noise_sd
    n = min(a.period, b.period)
    ours, others = horizon.weights(a.period, a.window), horizon.weights(b.period, b.window)
    return float(ours[:n] @ others[:n]) * sum(noise_sd(scale) ** 2 for scale in shared)


#: Standard deviations that 5% of a chi-square of one degree of freedom lie beyond. The distance
#: is distributed as a sum of such: the more that matter in it, the fewer lie beyond.
_FAR = 2.01


def exceeded_by_chance(pairs: Sequence[Pair], squared: float | None = None) -> float:
    """Return the distance that chance alone exceeds in at most about one of twenty cases.

    The distance adds up the histograms of ``pairs``; ``squared`` is the mean squared centred
    kernel in them, where it is known: see `squared_kernel`.
    """
    n, m = pairs[0].before.rows, pairs[0].after.rows
    if squared is None:
        # The standard deviation of a sum is at most the sum of standard deviations.
        squared = float(np.concatenate([np.sqrt(_squared_kernels(p)) for p in pairs]).sum()) ** 2
    sampling = (2.0 / (n * (n - 1.0)) + 2.0 / (m * (m - 1.0)) + 4.0 / (n * m)) * squared
    tables = np.concatenate([pair.tables for pair in pairs])
    noise = np.bincount(tables, np.concatenate([np.sqrt(_noise(pair)) for pair in pairs]))
    return _FAR * float(np.sqrt(sampling + (noise**2).sum()))


def squared_kernel(plan: Plan, sample: object) -> float:
    """Return the mean squared centred kernel of two rows: histograms that they share.

    Estimated without bias from some hundred rows, drawn at random, by U-centring (Székely and
    Rizzo, *Partial distance correlation*, 2014). Raises `UsageError` for fewer than four.
    """
    from scipy import sparse  # takes a while to import, and reports mostly do without

    encoder, family = Encoder(plan.schema), plan.family
    cells = []
    for batch in open_rows(sample, plan.schema).read():
        for i in range(len(batch)):
            counts = np.zeros(family.n_cells, np.int64)
            family.count(encoder.encode(batch[i : i + 1]), counts)
            cells.append(sparse.csr_array(counts[np.newaxis].astype(np.float64)))
    n = len(cells)
    if n < 4:
        raise UsageError(f"{n} rows as a sample: needs four or more, preferably a few hundred")
    rows = sparse.vstack(cells)
    kernel = (rows @ rows.T).toarray()
    np.fill_diagonal(kernel, 0.0)
    sums = kernel.sum(axis=1)
    kernel -= np.add.outer(sums, sums) / (n - 2) - sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(kernel, 0.0)
    return float((kernel**2).sum() / (n * (n - 3)))


def _squared_kernels(pair: Pair) -> Floats:
    a, b = pair.before, pair.after
    n, c = a.rows + b.rows, a.counts + b.counts
    variance = a.variance + b.variance + 2.0 * pair.covariance
    first = pair.offsets[:-1]
    squares, cubes = c**2 - variance, c**3 - 3.0 * variance * c  # free of noise on average
    q = np.add.reduceat(squares - c, first) / (n * (n - 1.0))
    q = np.clip(q, 0.0, 1.0)
    r = np.add.reduceat(cubes - 3.0 * squares + 2.0 * c, first) / (n * (n - 1.0) * (n - 2.0))
    # By Cauchy and Schwarz, sum p^3 is at least (sum p^2)^2.
    return np.clip(q - 2.0 * r + q**2, 0.0, q - q**2)


def _noise(pair: Pair) -> Floats:
    a, b = pair.before, pair.after
    cells = np.diff(pair.offsets)
    shared = pair.covariance / (a.rows * b.rows)
    variance = a.variance / a.rows**2 + b.variance / b.rows**2 - 2.0 * shared
    fourth = a.fourth / a.rows**4 + b.fourth / b.rows**4
    # Of what is taken off for sampling.
    linear = a.variance / a.rows**4 + b.variance / b.rows**4 + 2.0 * shared / (a.rows * b.rows)
    apart = 1.0 / a.rows + 1.0 / b.rows  # squared distance of samples, at most
    return 4.0 * variance * apart + cells * (2.0 * variance**2 + fourth + linear)


def within_contexts(
    family: Contextual, before: Floats, after: Floats
) -> tuple[float, float, float]:
    """Return squared distance, what it were if no cell were shared, and level within contexts.

    The distance of a table is the mean over its contexts, each by the weight n m / (n + m) of its n
    rows before and m after; a context with fewer than two of either says nothing. Contexts of one
    table have different rows, so that their variances add up; tables have the same ones, and their
    standard deviations do. Tables whose behaviour has a part of the time are left out, if there are
    others: one month has other weekdays than those before it. ``before`` and ``after`` are exact
    counts of shape (n_cells,).
    """
    shape = family.n_tables, family.contexts, family.cells
    cyclic = np.array([feature.cyclic for feature in family.schema.features])
    first = np.cumsum(family.depth, dtype=np.int64) - family.depth
    timeless = ~np.logical_or.reduceat(cyclic[family.feature], first)
    tables = timeless if timeless.any() else slice(None)
    a, b = before.reshape(shape)[tables], after.reshape(shape)[tables]
    n, m = a.sum(axis=2), b.sum(axis=2)
    both = (n >= 2.0) & (m >= 2.0)
    n, m = np.where(both, n, 2.0), np.where(both, m, 2.0)
    weight = np.where(both, n * m / (n + m), 0.0)
    mine = (a**2 - a).sum(axis=2) / (n * (n - 1.0)) + (b**2 - b).sum(axis=2) / (m * (m - 1.0))
    squares = mine - 2.0 * (a * b).sum(axis=2) / (n * m)
    c, rows = a + b, n + m
    q = np.clip((c**2 - c).sum(axis=2) / (rows * (rows - 1.0)), 0.0, 1.0)
    r = (c**3 - 3.0 * c**2 + 2.0 * c).sum(axis=2) / (rows * (rows - 1.0) * (rows - 2.0))
    squared = np.clip(q - 2.0 * r + q**2, 0.0, q - q**2)
    variance = 2.0 / (n * (n - 1.0)) + 2.0 / (m * (m - 1.0)) + 4.0 / (n * m)
    level = np.sqrt((weight**2 * variance * squared).sum(axis=1)).sum()
    return float((weight * squares).sum()), float((weight * mine).sum()), _FAR * float(level)


@dataclass(frozen=True)
class Drift:
    """Distance between two sets of rows: 0 for the same, 1 if they share no cell.

    Around 0 where nothing changed, a little below or above it by chance. A level bounds what is
    chance: if both are samples from the same distribution, the drift exceeds it in about one case
    of twenty at most, the noise of releases included. Of many features, some exceed theirs.

    Attributes
    ----------
    overall : float
        In the joint distribution, as the plan's tables see it.
    features : dict of str to float
        In each feature by itself, for those that the counts show: all under
        `Plan.marginals`; under random-feature tables, those with a cut in a table of 2^depth
        cells (LSHiTables' all, HushTable's shallowest only).
    level : float
        Of ``overall``. From counts alone it is an upper bound, several times too high where the
        tables say different things; a sample of rows makes it exact.
    feature_levels : dict of str to float
        Of ``features``. Where several cuts are on a feature, an upper bound.
    context : tuple of str
        The columns within which rows were compared: with those of the same month, or ward.
    outside : dict of str to float
        Features in which a fifth of the later rows or more, beyond chance, are outside the plan's
        ranges or categories, and that share; from exact counts only.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch, drift
    >>> plan = Plan.marginals(Schema([Feature.numeric("load", low=0, high=100)]))
    >>> months = [np.random.default_rng(0).normal(mean, 5, (500, 1)) for mean in (40, 60)]
    >>> drift(*(Sketch.from_data(plan, month) for month in months)).beyond_chance
    ['load']
    """

    overall: float
    features: dict[str, float]
    level: float
    feature_levels: dict[str, float]
    context: tuple[str, ...] = ()
    outside: dict[str, float] = field(default_factory=dict)

    @property
    def beyond_chance(self) -> list[str]:
        """Features whose drift is above their level, the furthest above it first."""
        times = {
            name: x / self.feature_levels[name]
            for name, x in self.features.items()
            if x > self.feature_levels[name]
        }
        return sorted(times, key=lambda name: times[name], reverse=True)


def drift(before: Counts, after: Counts, *, rows: object = None) -> Drift:
    """Compare two sketches, or releases, of one plan.

    Parameters
    ----------
    before, after : Sketch or Release
        Of different rows, such as last month's and this month's, or one site's and another's;
        of any two sizes. Exact counts under a plan with a context are compared within it; the
        drift is NaN if no context has two rows or more on both sides. Two sums decoded from the
        same increments, such as a window and what came before it, share noise, which is allowed
        for.
    rows : array, data frame, Arrow object or path, optional
        A few hundred rows drawn at random from those of either, for an exact ``level``; not if rows
        are compared within a context.

    Returns
    -------
    Drift

    Raises
    ------
    PlanError
        If their plans differ.
    UsageError
        If one holds fewer than two rows, counts a second pass, or is an increment; if a period is
        in both.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch, drift
    >>> plan = Plan.draw(Schema([Feature.numeric("load", low=0, high=100)]), random_state=0)
    >>> months = [np.random.default_rng(0).normal(mean, 5, (500, 1)) for mean in (40, 60)]
    >>> found = drift(*(Sketch.from_data(plan, month) for month in months))
    >>> found.overall > found.level
    True
    """
    if mergeable(before) is None or mergeable(after) is None:
        kinds = f"{type(before).__name__} and {type(after).__name__}"
        raise UsageError(f"drift needs two sketches or releases, not {kinds}")
    plan = before.plan
    if plan.plan_id != after.plan.plan_id:
        raise PlanError(f"drift needs one plan: {plan.difference(after.plan)}")
    if plan.first_counts is not None:
        raise UsageError(
            "a second pass counts dense rows only: compare what the first counted "
            "(sketch.first_pass())"
        )
    if isinstance(plan.family, Contextual) and not (before.ledger or after.ledger):
        sides = (counted.counts.astype(np.float64) for counted in (before, after))
        overall, level = _relative(*within_contexts(plan.family, *sides))
        return Drift(overall, {}, level, {}, tuple(plan.context), outside_beyond(before, after))
    offsets = plan.family.offsets
    shared = shared_noise(before, after)
    both = Pair(Side.of(before), Side.of(after), offsets, np.arange(len(offsets) - 1), shared)
    overall, level = _measured([both], None if rows is None else squared_kernel(plan, rows))
    pairs: dict[str, list[Pair]] = {}
    if isinstance(plan.family, EquiWidth):
        for name, low, high in zip(plan.schema.names, offsets, offsets[1:], strict=False):
            a, b = (side.histogram(side.counts[low:high]) for side in (both.before, both.after))
            ends = np.array([0, high - low])
            pairs[name] = [Pair(a, b, ends, np.array([0]), both.covariance)]
    elif isinstance(plan.family, RandomFeature):
        pairs = _halves(plan, plan.family, both)
    drifts = {name: _measured(halves) for name, halves in pairs.items()}
    features, levels = ({name: pair[i] for name, pair in drifts.items()} for i in (0, 1))
    return Drift(overall, features, level, levels, outside=outside_beyond(before, after))


#: Share of the rows outside from which on it is reported, and how often chance may explain it.
_MANY_OUTSIDE, _BY_CHANCE = 0.2, 0.01


def outside_beyond(before: Counts, after: Counts) -> dict[str, float]:
    """Return the shares of later rows outside the plan, by feature, where they are many.

    If ranges were read off earlier rows, a few later rows are outside by chance: of n rows, the
    next one is the lowest or the highest with a probability of 2 / (n + 1), and k categories are
    as little a bound as k ends. If o of n rows were outside, the share has therefore a beta
    distribution with the parameters 2 + o and n - o - 1.

    Parameters
    ----------
    before, after : Sketch or Release
        Of the earlier and of the later rows. The result is empty for releases and samples.

    Returns
    -------
    dict of str to float
        The largest share first.
    """
    if not isinstance(before, Sketch) or not isinstance(after, Sketch):
        return {}
    if before.sampled or after.sampled or not min(before.n_rows, after.n_rows):
        return {}
    features, n, m = after.plan.schema.features, before.n_rows, after.n_rows
    earlier, later, shares = before.outside(), after.outside(), {}
    for feature in features:
        past, new = earlier.get(feature.name, 0), later.get(feature.name, 0)
        if new < _MANY_OUTSIDE * m:
            continue
        ends = 2 if feature.kind == "numeric" else len(feature.categories) + 1
        a, b = ends + past, max(1, n - past - ends + 1)
        if _by_chance(new, m, a, b) < _BY_CHANCE / len(features):
            shares[feature.name] = new / m
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _by_chance(k: int, m: int, a: int, b: int) -> float:
    """Return the probability that k or more of m are outside, whose share is Beta(a, b)."""
    gamma = math.lgamma
    first = gamma(m + 1) - gamma(k + 1) - gamma(m - k + 1)
    first += gamma(k + a) + gamma(m - k + b) - gamma(m + a + b)
    first -= gamma(a) + gamma(b) - gamma(a + b)
    j = np.arange(k, m, dtype=np.float64)
    steps = np.log((m - j) * (j + a) / ((j + 1.0) * (m - j - 1.0 + b)))
    return float(np.exp(np.append(first, first + np.cumsum(steps))).sum())


def outside_words(shares: dict[str, float]) -> str:
    """Describe in words which features have many rows outside the plan; empty if none has."""
    if not shares:
        return ""
    named = [f"{name} ({numerals(f'{share:.0%}')})" for name, share in shares.items()]
    return _(
        "Many rows are outside the model's ranges or categories: %(names)s. It does not "
        "distinguish such values: fit it again, on recent rows.",
        names=first_names(named, 5),
    )


def _measured(pairs: list[Pair], squared: float | None = None) -> tuple[float, float]:
    apart, scale = distance(pairs)
    return _relative(apart, scale, exceeded_by_chance(pairs, squared))


def _relative(apart: float, scale: float, level: float) -> tuple[float, float]:
    """Return distance and level by the distance if no cell were shared; NaN if that is none."""
    return (apart / scale, level / scale) if scale > 0.0 else (float("nan"), float("nan"))


def _halves(plan: Plan, family: RandomFeature, both: Pair) -> dict[str, list[Pair]]:
    halves: dict[str, list[Pair]] = {}
    first = 0
    for t, depth in enumerate(family.depth.tolist()):
        start, stop = family.offsets[t], family.offsets[t + 1]
        if stop - start == 1 << depth:  # not folded: the bits of a cell are those of its rows
            for h in range(depth):
                name = plan.schema.names[family.feature[first + h]]
                # The first function has the highest bit.
                shape = (1 << h, 2, 1 << (depth - h - 1))
                a, b = (
                    side.histogram(
                        side.counts[start:stop].reshape(shape).sum(axis=(0, 2)), 1 << (depth - 1)
                    )
                    for side in (both.before, both.after)
                )
                shared = both.covariance * (1 << (depth - 1))
                pair = Pair(a, b, np.array([0, 2]), np.array([t]), shared)
                halves.setdefault(name, []).append(pair)
        first += depth
    return dict(sorted(halves.items(), key=lambda item: plan.schema.names.index(item[0])))


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
        whole("n_panes", n_panes)
        self.plan, self.n_panes, self.n_jobs = plan, int(n_panes), n_jobs
        self.sketch = Sketch.zero(plan)
        self._panes: deque[Sketch] = deque([self.sketch])
        self._scorer: Scorer | None = None

    @property
    def panes(self) -> list[Sketch]:
        """Counts of each pane, oldest first."""
        return list(self._panes)

    def add(self, X: object) -> "SlidingWindow":
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

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Score rows against the window, which does not have to contain them.

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
            If the window holds no rows.
        """
        if self._scorer is None:
            self._scorer = Scorer(self.sketch)
        return self._scorer.score(X, n_jobs=self.n_jobs)

    def drift(self) -> Drift:
        """Compare the newest pane with all others in the window; see `hushtable.drift`."""
        newest = self._panes[-1]
        return drift(self.sketch - newest, newest)


__all__ = ["Drift", "SlidingWindow", "drift"]


def why_no_drift(counted: Counts) -> str:
    """Return why rows cannot be compared with these counts; empty if they can be."""
    if not counted.adds:
        return N_("a local model mixes exact counts with noisy ones: compare with the result")
    if counted.plan.first_noise_sd is not None:
        return N_("the model's second pass counts dense rows only, and the first has noise")
    return ""


def of_all_rows(counted: Counts) -> Counts:
    """Return the counts with which to compare rows: with two passes, those of the first."""
    counted = counted.unlearned
    return counted.first_pass() if isinstance(counted, Sketch) else counted


def measured(before: Counts, after: Counts, rows: object = None) -> Drift | None:
    """Return the drift, or None if noise and too few rows make it undetectable."""
    if min(before.n_rows, after.n_rows) < 2:
        return None
    drifted = drift(before, after, rows=rows)
    return None if math.isnan(drifted.overall) or math.isnan(drifted.level) else drifted


def drift_words(drift: Drift) -> str:
    """Describe how far rows drifted, and how much of it chance explains."""
    words = N_(
        "Drift %(drift)s%(context)s, within what chance explains (up to %(level)s; 0 is none, 1 is "
        "no cell in common)."
    )
    if drift.overall > drift.level:
        words = N_(
            "Drift %(drift)s%(context)s, beyond what chance explains (up to %(level)s; 0 is none, "
            "1 is no cell in common)."
        )
    within = _(" within %(names)s", names=", ".join(drift.context)) if drift.context else ""
    drifted, level = (numerals(f"{number:.4f}") for number in (drift.overall, drift.level))
    words = _(words, drift=drifted, context=within, level=level)
    if drift.beyond_chance:
        names = first_names(drift.beyond_chance, 5)
        words += _(" Columns that drifted by more than chance: %(names)s.", names=names)
    return f"{words} {outside_words(drift.outside)}".rstrip()
