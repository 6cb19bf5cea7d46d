"""Random-feature LSH, the hash family of the paper, and how the paper draws its functions.

`RandomFeature` is the family (Definition 3), `draw_lsh_itables` draws it as in section 3.3. Rows
are inserted by `hushtable.counts.counter`, and scored by `hushtable.plans.score_rule`.
"""

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.encoding import Codes
from hushtable.data.schema import Feature, Schema
from hushtable.errors import PlanError
from hushtable.plans.families.family import (
    EVERY_ROW_ONCE,
    MAX_CELLS,
    Arguments,
    Concatenated,
    Floats,
    Ints,
    bounded,
    drawn,
    register,
    whole_number,
)
from hushtable.plans.families.layouts import (
    JOINED_ROWS,
    JoinedTables,
    Layout,
    reachable,
)
from hushtable.plans.profile import Profile, own_side, usual_codes
from hushtable.plans.score_rule import Summing

#: Most hash functions that one table may concatenate: their bits are one 32-bit code.
MAX_DEPTH = 32
#: Up to this many rows, summing one row after the other is faster than side by side.
FEW_ROWS = 4


def subset_sizes(schema: Schema, feature: NDArray[np.uint16]) -> Ints:
    """Return how many sides hash functions on these features store: none on a numeric one."""
    sizes = [len(f.categories) + 2 if f.kind == "categorical" else 0 for f in schema.features]
    return np.array(sizes, np.int64)[feature]


@register
@dataclass(frozen=True, eq=False)
class RandomFeature(Concatenated):
    """Random-feature LSH (paper, Definition 3): compares one random feature with a random cut.

    Hash function h tests whether feature ``feature[h]`` is at or above ``cut[h]``. If the feature
    is categorical, a random set of its categories replaces the cut. A missing value falls on the
    side stored for it: that of a usual value, or one of its own. Table t concatenates the next
    ``depth[t]`` functions, g = (h_1, ..., h_l), into a code of l bits. The code is the cell; if
    2**l exceeds ``max_cells``, a power of two, the code is mixed by MurmurHash3's fmix32 and taken
    modulo ``max_cells``.

    ``cut`` is the lowest code (see `hushtable.kernels`) on the high side, 0 for a categorical
    feature; ``missing`` is the side of a missing value, 0 or 1. ``subsets`` holds, for each hash
    function on a categorical feature, in order, K + 2 sides: missing, the K categories, an unseen
    category. ``margin``, if a file has it, is the distance beyond its range, in levels, at which a
    row loses half of what it can lose (see `Scoring`). ``own_sides`` is in how many
    of ten tables a missing value has sides of its own (see `hushtable.plans.profile.own_sides`);
    without it, in all.
    """

    name: ClassVar[str] = "RandomFeature"
    _loops: ClassVar[str] = "random_feature"

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1, below=MAX_DEPTH + 1)
    feature: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below="n_features")
    cut: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below=kernels.LEVELS + 1)
    missing: NDArray[np.uint8] = drawn(np.uint8, "n_functions", below=2)
    subsets: NDArray[np.uint8] = drawn(np.uint8, "n_sides", below=2)
    max_cells: int = whole_number(2, MAX_CELLS)
    margin: int = whole_number(0, kernels.LEVELS, default=0)
    own_sides: int = whole_number(0, 10, default=10)

    def and_more(self, other: "RandomFeature") -> "RandomFeature":
        """Return these tables and then those of another family with the same schema and cells."""
        arrays = other.arrays()
        joined = {name: np.concatenate([a, arrays[name]]) for name, a in self.arrays().items()}
        return RandomFeature(
            self.schema,
            **joined,
            max_cells=self.max_cells,
            margin=self.margin,
            own_sides=self.own_sides,
        )

    def _check(self) -> None:
        super()._check()
        if self.max_cells & (self.max_cells - 1):
            raise PlanError(f"max_cells={self.max_cells}: needs a power of two up to {MAX_CELLS}")
        categorical = self.subset_sizes > 0
        if (self.cut[~categorical] < 2).any() or self.cut[categorical].any():
            raise PlanError(
                f"hash functions: cuts must be codes from 2 to {kernels.LEVELS}, and 0 on "
                "categories"
            )

    def part(self, tables: int) -> "RandomFeature":
        n = int(self.depth[:tables].sum(dtype=np.int64))
        part = copy(self)  # checks of all tables hold for the first ones
        for name in ("feature", "cut", "missing"):
            object.__setattr__(part, name, getattr(self, name)[:n])
        object.__setattr__(part, "depth", self.depth[:tables])
        n_sides = int(self.subset_sizes[:n].sum())
        object.__setattr__(part, "subsets", self.subsets[:n_sides])
        return part

    @property
    def n_sides(self) -> int:
        """Number of sides in ``subsets``."""
        return int(self.subset_sizes.sum())

    @cached_property
    def offsets(self) -> Ints:
        cells = np.minimum(1 << self.depth.astype(np.int64), self.max_cells)
        return np.concatenate([[0], np.cumsum(cells)])

    @cached_property
    def _apart(self) -> Layout:
        return self._laid_out(JoinedTables.apart(self.depth, self.offsets))

    @cached_property
    def _joined(self) -> Layout:
        # Mixed codes cannot be joined.
        lay = JoinedTables.packed if self._folded is None else JoinedTables.apart
        return self._laid_out(lay(self.depth, self.offsets))

    def _laid_out(self, tables: JoinedTables) -> Layout:
        chosen = tables.functions
        cuts, subset_at = self.cut[chosen], self.subset_at[chosen]
        rest = cuts, subset_at, self.subsets, self._folded, tables.offsets
        # Row of the codes that each hash function reads: without missing values, and with.
        feature = self.feature.astype(np.int64)
        # A set of categories contains the side of a missing value already.
        high = (self.missing == 1) & (self.subset_sizes == 0)
        lacking = bounded("feature", feature + high * self.n_features, 2 * self.n_features)
        complete, missing = ((tables.first, rows[chosen], *rest) for rows in (feature, lacking))
        return Layout(tables, self.feature[chosen], (complete, missing), {})

    @cached_property
    def subset_at(self) -> Ints:
        """Where each hash function's sides begin in ``subsets``; -1 on a numeric feature."""
        sizes = self.subset_sizes
        at = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
        return bounded("subsets", at, len(self.subsets), -1)

    @cached_property
    def reachable(self) -> Arguments:
        """Return the possible effects of changing one value; see `layouts.reachable`."""
        starts = np.maximum(0, self.subset_at)
        sizes = np.maximum(0, self.subset_sizes - 2)  # without missing and unseen
        sides = [self.subsets[a + 1 : a + 1 + k] for a, k in zip(starts, sizes, strict=True)]
        return reachable(self.schema.features, self.depth, self.feature, self.cut, sides)

    @cached_property
    def _folded(self) -> NDArray[np.uint8] | None:
        """Which tables fold their codes (n_tables,), or None, for which Numba compiles less."""
        folded = 1 << self.depth.astype(np.int64) > self.max_cells
        return folded.astype(np.uint8) if folded.any() else None

    @cached_property
    def subset_sizes(self) -> Ints:
        """Sides that each hash function stores in ``subsets``: none on a numeric feature."""
        return subset_sizes(self.schema, self.feature)

    def count(self, codes: Codes, counts: Ints, weights: Ints | None = None) -> None:
        if weights is None and len(codes) >= JOINED_ROWS:
            arguments, parts = self._joined.arguments(codes), self._joined.tables.parts
        else:
            arguments, parts = (codes.codes, *self._arguments(codes)), self._apart.tables.parts
        weights = EVERY_ROW_ONCE if weights is None else weights
        kernels.count_random_feature(*arguments, parts, weights, counts)

    def sum(self, codes: Codes, values: Floats) -> Floats:
        if len(codes) > FEW_ROWS:
            return super().sum(codes, values)
        totals = np.empty(len(codes))
        kernels.sum_few_random_feature(codes.codes, self.functions(codes), values, totals)
        return totals

    def summing(self, values: Floats) -> Summing:
        return _JoinedSum(self, values)

    def gains(self, codes: Codes, values: Floats, limits: Floats) -> tuple[Floats, Floats]:
        totals, gains = np.empty(len(codes)), np.empty((len(codes), len(codes.tally)))
        functions = self.functions(codes), None, None, self.reachable
        kernels.gain_random_feature(codes.codes, *functions, values, limits, gains, totals)
        return totals, gains

    def functions(self, codes: Codes) -> Any:
        """Return the hash functions of each separate table, for the kernels and these rows."""
        return self._apart.functions[codes.some_missing]

    @cached_property
    def can_gain(self) -> NDArray[np.bool_]:
        """Features (d,) by which a row can gain: those that vary and have hash functions."""
        varying = np.array([not feature.constant for feature in self.schema.features])
        return varying & np.isin(np.arange(len(varying)), self.feature)

    def _arguments(self, codes: Codes) -> Arguments:
        return (self.functions(codes),)


@dataclass(frozen=True)
class _JoinedSum:
    """`RandomFeature.sum` of the same values, by joined tables if a batch is large enough."""

    family: RandomFeature
    values: Floats

    def __getstate__(self) -> dict[str, object]:  # the joined values are computed from these
        return {"family": self.family, "values": self.values}

    @cached_property
    def _joined_values(self) -> Floats:
        return self.family._joined.tables.values(self.values)

    def __call__(self, codes: Codes) -> Floats:
        if len(codes) < JOINED_ROWS:
            return self.family.sum(codes, self.values)
        totals = np.empty(len(codes))
        arguments = self.family._joined.arguments(codes)
        kernels.sum_random_feature(*arguments, self._joined_values, totals)
        return totals


# --- the draw of the paper ------------------------------------------------------------------------


def draw_lsh_itables(
    schema: Schema, rng: "np.random.Generator", *, n_tables: int = 100, max_samples: int = 1000
) -> RandomFeature:
    """Draw like the paper: uniform features, uniform cuts, the depths of section 3.3.

    For each table, f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) and l ~ U(1 + 0.5 log_b(s), log_b(s)) with
    b = max(2, 1/f) and s = ``max_samples``, rounded to nearest (mean 6.2 at s = 1000). Features
    are drawn with replacement; there are 2**l cells in a table.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    # At s = 65,536 a table may have 2**16 cells, which is the maximum.
    s = whole("max_samples", max_samples, 1, 1 << 16)
    _, depth = papers_depths(rng, m, s)
    functions = int(depth.sum())
    feature = np.minimum((rng.random(functions) * len(schema)).astype(np.int64), len(schema) - 1)
    position = rng.random(functions)
    return draw_functions(schema, rng, depth, (feature, position), max_cells=MAX_CELLS)


def papers_depths(
    rng: "np.random.Generator", tables: int, s: int
) -> tuple[Floats, NDArray[np.uint8]]:
    """Draw f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) and l ~ U(1 + 0.5 log_b(s), log_b(s)), b = max(2, 1/f).

    l is rounded to nearest, and at least 1.
    """
    edge = 1.0 / math.sqrt(s)
    f = edge + rng.random(tables) * max(0.0, 1.0 - 2.0 * edge)
    longest = np.log(s) / np.log(np.maximum(2.0, 1.0 / f))
    shortest = 1.0 + 0.5 * longest
    # Below s = 16 the interval's ends may be in reverse order; they still bound the depth.
    depth = np.rint(shortest + rng.random(tables) * (longest - shortest))
    return f, np.maximum(depth, 1).astype(np.uint8)


def draw_functions(
    schema: Schema,
    rng: "np.random.Generator",
    depth: NDArray[np.uint8],
    cuts: tuple[Ints, Floats],
    *,
    max_cells: int,
    profile: Profile | None = None,
    own_sides: int = 10,
) -> RandomFeature:
    """Return tables whose functions cut features at positions of their ranges: ``cuts`` are both.

    It turns cuts into codes, and draws the sides of missing values and the sets of categories.

    In ``own_sides`` of ten tables, a missing value is on a side of its own, and in the others on
    that of the usual value: the one that the schema gives, the ``profile``'s median or most
    frequent category, or the middle of the range. It is on that of the usual value in all tables if
    the schema gives one, and in none if a fifth of the rows lack the feature. If the profile has
    places of a feature's categories, half of the hash functions on it cut them as if they were
    numbers, at its position; an unseen category is above all of them.
    """
    feature, position = cuts
    # A cut lies between two levels: P(h(x) = h(q)) is 1 - |x - q| / range (equation 1), exactly
    # in levels.
    cut = 2 + np.minimum((position * (kernels.LEVELS - 1)).astype(np.int64), kernels.LEVELS - 2)
    missing = (rng.random(len(feature)) < 0.5).astype(np.uint8)
    table = np.repeat(np.arange(len(depth)), depth)
    is_own = own_side(schema, profile, table, feature, own_sides)
    code = usual_codes(schema, profile)[feature]
    as_usual = (code > 0) & ~is_own
    missing[as_usual] = (cut <= code)[as_usual]
    subsets = []
    categorical = np.array([f.kind == "categorical" for f in schema.features])[feature]
    cut[categorical] = 0
    for h in np.flatnonzero(categorical):
        where = None if profile is None else profile.places.get(int(feature[h]))
        one = schema.features[feature[h]]
        if where is not None and rng.random() < 0.5:
            sides = np.concatenate([[missing[h]], where >= position[h], [1]]).astype(np.uint8)
        else:
            drawn = _arc if one.cyclic and len(one.categories) > 1 else _subset
            sides = drawn(len(one.categories), int(missing[h]), rng)
        if not is_own[h]:
            usual = _usual_category(one, int(feature[h]), int(table[h]), profile)
            missing[h] = sides[0] = sides[1 + usual]
        subsets.append(sides)
    return RandomFeature(
        schema=schema,
        depth=depth,
        feature=feature.astype(np.uint16),
        cut=cut.astype(np.uint16),
        missing=missing,
        subsets=np.concatenate(subsets) if subsets else np.empty(0, np.uint8),
        max_cells=max_cells,
        own_sides=own_sides,
    )


def _usual_category(feature: Feature, j: int, table: int, profile: Profile | None) -> int:
    """Return the number of the category that a missing value of feature j counts as in a table.

    If the most frequent one is unknown, the tables take them in turn.
    """
    if isinstance(feature.usual, str):
        return feature.categories.index(feature.usual)
    in_turn = table // 10 % max(1, len(feature.categories))
    return in_turn if profile is None else profile.frequent.get(j, in_turn)


def _subset(n_categories: int, missing: int, rng: "np.random.Generator") -> NDArray[np.uint8]:
    """Sides of missing, each category, and unseen; both sides get one of two or more categories."""
    sides = (rng.random(n_categories + 2) < 0.5).astype(np.uint8)
    sides[0] = missing
    known = sides[1:-1]
    if n_categories > 1 and known.min() == known.max():
        # All are on one side: move one of them, drawn at random, to the other.
        chosen = min(int(rng.random() * n_categories), n_categories - 1)
        known[chosen] = 1 - known[chosen]
    return sides


def _arc(n_categories: int, missing: int, rng: "np.random.Generator") -> NDArray[np.uint8]:
    """Sides of missing, each category, and unseen: half of a circle that starts at any category.

    P(h(x) = h(q)) is 1 - 2 d / n for d steps between two of n categories: equation 1 on a circle.
    """
    start, unseen = (int(rng.random() * n) for n in (n_categories, 2))
    around = (np.arange(n_categories) - start) % n_categories
    return np.concatenate([[missing], around < n_categories // 2, [unseen]]).astype(np.uint8)
