"""Drift between two sets of rows, and what chance makes of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushtable.counts.base import Counts, mergeable
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import EquiWidth, RandomFeature
from hushtable.plans.plan import Plan
from hushtable.streams._chance import exceeded_by_chance, squared_kernel
from hushtable.streams._sides import Pair, Side, distance, shared_noise


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

    @property
    def beyond_chance(self) -> list[str]:
        """Features whose drift is above their level, the furthest above it first."""
        times = {
            name: x / self.feature_levels[name]
            for name, x in self.features.items()
            if x > self.feature_levels[name]
        }
        return sorted(times, key=lambda name: times[name], reverse=True)


def drift(before: Counts, after: Counts, *, rows: Any = None) -> Drift:
    """Compare two sketches, or releases, of one plan.

    Parameters
    ----------
    before, after : Sketch or Release
        Of different rows, such as last month's and this month's, or one site's and another's;
        of any two sizes. Two sums decoded from the same increments, such as a window and what came
        before it, share noise, which is allowed for.
    rows : array, data frame, Arrow object or path, optional
        Some hundred rows drawn at random from those of either, for an exact ``level``.

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
    offsets = plan.family.offsets
    shared = shared_noise(before, after)
    both = Pair(Side.of(before), Side.of(after), offsets, np.arange(len(offsets) - 1), shared)
    overall, level = _measured([both], None if rows is None else squared_kernel(plan, rows))
    pairs: dict[str, list[Pair]] = {}
    if isinstance(plan.family, EquiWidth):
        pairs = _histograms(plan, both)
    elif isinstance(plan.family, RandomFeature):
        pairs = _halves(plan, plan.family, both)
    found = {name: _measured(some) for name, some in pairs.items()}
    features, levels = ({name: pair[i] for name, pair in found.items()} for i in (0, 1))
    return Drift(overall, features, level, levels)


def _measured(pairs: list[Pair], squared: float | None = None) -> tuple[float, float]:
    """Return the distance, and the level, over the distance if no cell were shared."""
    found, scale = distance(pairs)
    if scale <= 0.0:
        return float("nan"), float("nan")
    return found / scale, exceeded_by_chance(pairs, squared) / scale


def _histograms(plan: Plan, both: Pair) -> dict[str, list[Pair]]:
    """Return the histogram of each feature."""
    found, offsets = {}, both.offsets
    for j, name in enumerate(plan.schema.names):
        cells = slice(offsets[j], offsets[j + 1])
        a, b = (side.histogram(side.counts[cells]) for side in (both.before, both.after))
        ends = np.array([0, offsets[j + 1] - offsets[j]])
        found[name] = [Pair(a, b, ends, np.array([0]), both.covariance)]
    return found


def _halves(plan: Plan, family: RandomFeature, both: Pair) -> dict[str, list[Pair]]:
    """Return, for each feature, what its hash functions make of the rows: two halves each."""
    found: dict[str, list[Pair]] = {}
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
                found.setdefault(name, []).append(pair)
        first += depth
    return dict(sorted(found.items(), key=lambda item: plan.schema.names.index(item[0])))
