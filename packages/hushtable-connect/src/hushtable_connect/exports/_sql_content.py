"""The model's part of a SQL statement: cuts as numbers of the table, cells as whole numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import FARTHEST, Encoder
from hushtable.data.schema import Feature
from hushtable.kernels import LEVELS
from hushtable.plans.families import RandomFeature
from hushtable.scores.explain import Explainer, rare_below
from hushtable_connect.exports import Model

#: Scores of cells are multiples of one divided by this number.
UNIT = 1 << 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Function:
    """One hash function: its bit has the weight ``2**place`` in its table's code."""

    feature: int
    place: int
    #: Numbers from here on are on the high side; so are missing ones if ``missing``.
    cut: float
    missing: bool
    #: For a categorical feature: sides of a missing value, of each category, of an unseen one.
    sides: str


@dataclass(frozen=True)
class Beyond:
    """How far a number is beyond its range: (low - x) / unit, or (x - high) / unit.

    It is 0 between ``below`` and ``above``, and ``farthest`` at and below ``far_below`` and at and
    above ``far_above``. If no number is that far, these two are infinite.
    """

    low: float
    high: float
    unit: float
    below: float
    above: float
    far_below: float
    far_above: float
    farthest: float = FARTHEST


@dataclass(frozen=True)
class Alternatives:
    """Codes that rows reach when one feature's value changes, in the order of the features.

    For alternative a, ``keep[a]`` holds the bits that stay, and ``flip[a]`` those that change.
    The alternatives of one feature in one table are a group.
    """

    table: Ints
    keep: Ints
    flip: Ints
    #: Each group's table and feature (n_groups,), and where its alternatives end.
    groups: Ints
    feature: Ints
    ends: Ints

    @property
    def of_alternative(self) -> Ints:
        """The group of each alternative."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))


class SqlContent:
    """A model in the form that a statement needs. Tables that fold their codes come first."""

    def __init__(self, model: Model, family: RandomFeature) -> None:
        self.features, self.folds = family.schema.features, model.plan.schema.labels > 0
        self._encoder, self._family = Encoder(family.schema), family
        folded = (1 << family.depth.astype(np.int64)) > family.max_cells
        self.order = np.argsort(~folded, kind="stable")
        self.n_folded, self.n_tables = int(folded.sum()), family.n_tables
        self.mask = family.max_cells - 1
        first, last = family.offsets[:-1][self.order], family.offsets[1:][self.order]
        units = np.rint(model.scorer.values * UNIT).astype(np.int64)
        self.values = np.concatenate([units[a:b] for a, b in zip(first, last, strict=True)])
        #: Place of each table's first cell, from 1.
        self.first = np.cumsum(last - first) - (last - first) + 1
        numeric = any(feature.kind == "numeric" for feature in self.features)
        #: If no number can be beyond its range, no score is reduced for it.
        self.margin = family.margin / LEVELS if numeric else 0.0
        self.depth = family.least(model.scorer.values) / family.n_tables - 1.0
        self.threshold = model.threshold
        explainer = Explainer(model.scorer)
        self.typical, self.equal = explainer.typical, explainer.equal
        limits = rare_below(model.scorer)[self.order]
        self.limits = np.rint(limits * UNIT).astype(np.int64)

    def functions(self) -> list[list[Function]]:
        """Return the hash functions of each table."""
        family = self._family
        cuts, ends = self._cuts(), np.cumsum(family.depth, dtype=np.int64)
        found = []
        for t in self.order.tolist():
            depth, end = int(family.depth[t]), int(ends[t])
            found.append([self._function(h, end - 1 - h, cuts) for h in range(end - depth, end)])
        return found

    def _function(self, h: int, place: int, cuts: Floats) -> Function:
        family = self._family
        at, size = int(family.subset_at[h]), int(family.subset_sizes[h])
        sides = "".join(map(str, family.subsets[at : at + size].tolist())) if size else ""
        return Function(
            int(family.feature[h]), place, float(cuts[h]), bool(family.missing[h]), sides
        )

    def _cuts(self) -> Floats:
        """Return the least number on the high side of each hash function; infinity if none is."""
        of = self._family.feature
        low, scale = self._encoder.low[of], self._encoder.scale[of]
        level = self._family.cut - 1.0
        return first_number(lambda x: (x - low) * scale >= level, len(level))

    def beyond(self) -> dict[int, Beyond]:
        """Return, for each numeric feature, how far a number is beyond its range."""
        if self.margin == 0.0:
            return {}
        low, high, unit = self._encoder.low, self._encoder.high, self._encoder.unit
        n = len(low)
        # On the low side, numbers are negated, so that they rise.
        far = first_number(lambda x: excess(-x, low, unit) >= FARTHEST, n)
        some = first_number(lambda x: excess(-x, low, unit) > 0.0, n)
        far_above = first_number(lambda x: excess(high, x, unit) >= FARTHEST, n)
        above = first_number(lambda x: excess(high, x, unit) > 0.0, n)
        columns = zip(low, high, unit, -some, above, -far, far_above, strict=True)
        return {
            j: Beyond(*map(float, values))
            for j, (feature, values) in enumerate(zip(self.features, columns, strict=True))
            if feature.kind == "numeric"
        }

    def alternatives(self) -> Alternatives:
        """Return the codes that rows reach by a change of one feature."""
        groups, of_group, bits, at, patterns = self._family.reachable
        every = (1 << 32) - 1
        place = np.argsort(self.order)
        found: list[tuple[int, int, list[tuple[int, int]]]] = []
        for t in range(self.n_tables):
            for g in range(groups[t], groups[t + 1]):
                own = patterns[at[g] : at[g + 1]].tolist()
                others = every & ~int(bits[g])
                # Without patterns, a single bit flips.
                moves = [(others, p) for p in own] or [(every, int(bits[g]))]
                found.append((int(of_group[g]), int(place[t]) + 1, moves))
        found.sort(key=lambda one: one[:2])
        flat = [(t, *move) for _, t, moves in found for move in moves]
        table, keep, flip = np.array(flat, np.int64).reshape(-1, 3).T
        ends = np.cumsum([len(moves) for _, _, moves in found], dtype=np.int64)
        feature = np.array([j for j, _, _ in found], np.int64)
        return Alternatives(
            table, keep, flip, np.array([t for _, t, _ in found], np.int64), feature, ends
        )


def excess(a: Floats, b: Floats, unit: Floats) -> Floats:
    """Return (b - a) / unit, as the library divides it."""
    with np.errstate(over="ignore"):
        return np.asarray((b - a) / unit, np.float64)


def first_number(holds: Callable[[Floats], Any], n: int) -> Floats:
    """Return the least finite float64 (n,) from which on each condition holds, else infinity.

    ``holds`` takes (n,) numbers, and stays true for larger ones. The function halves the numbers,
    in the order of their bits, until one is left. This makes cuts exact in a runtime that only
    compares.
    """
    largest = int(np.float64(np.finfo(np.float64).max).view(np.int64))
    low, high = np.full(n, -largest - 1), np.full(n, largest + 1)
    while (wide := low + 1 < high).any():
        # Adds halves, because the distance exceeds int64.
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        with np.errstate(over="ignore", invalid="ignore"):
            true = np.asarray(holds(_number(middle)))
        high = np.where(wide & true, middle, high)
        low = np.where(wide & ~true, middle, low)
    return np.where(high > largest, np.inf, _number(high))


def _number(place: Ints) -> Floats:
    """Return the float64 at a place: 0 at place 0, then one after the other in both directions."""
    size = np.abs(place).view(np.float64)
    return np.where(place < 0, -size, size)


def could_be_boolean(feature: Feature) -> bool:
    """Whether a feature's range, widened or not, could be that of true and false."""
    return feature.low >= -0.25 and feature.high <= 1.25
