"""Random-feature LSH."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes, StoredCodes
from hushtable.data.schema import Feature, Schema
from hushtable.errors import PlanError
from hushtable.plans.families.family import (
    EVERY_ROW_ONCE,
    MAX_CELLS,
    Concatenated,
    Floats,
    Gaining,
    Ints,
    Summing,
    bounded,
    drawn,
    register,
    whole_number,
)
from hushtable.plans.families.layouts import (
    JOINED_ROWS,
    RANKED_ROWS,
    JoinedTables,
    Ranked,
    ends,
)

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
    takes_stored: ClassVar[bool] = True

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
        some = copy(self)  # checks of all tables hold for the first ones
        for name in ("feature", "cut", "missing"):
            object.__setattr__(some, name, getattr(self, name)[:n])
        object.__setattr__(some, "depth", self.depth[:tables])
        n_sides = int(self.subset_sizes[:n].sum())
        object.__setattr__(some, "subsets", self.subsets[:n_sides])
        return some

    @property
    def n_sides(self) -> int:
        """Number of sides in ``subsets``."""
        return int(self.subset_sizes.sum())

    @cached_property
    def offsets(self) -> Ints:
        cells = np.minimum(1 << self.depth.astype(np.int64), self.max_cells)
        return np.concatenate([[0], np.cumsum(cells)])

    @cached_property
    def _apart(self) -> "_Layout":
        return self._laid_out(JoinedTables.apart(self.depth, self.offsets))

    @cached_property
    def _joined(self) -> "_Layout":
        # Mixed codes cannot be joined.
        lay = JoinedTables.packed if self._folded is None else JoinedTables.apart
        return self._laid_out(lay(self.depth, self.offsets))

    def _laid_out(self, tables: JoinedTables) -> "_Layout":
        chosen = tables.functions
        cuts, subset_at = self.cut[chosen], self.subset_at[chosen]
        rest = cuts, subset_at, self.subsets, self._folded, tables.offsets
        complete, missing = ((tables.first, rows[chosen], *rest) for rows in self._rows)
        return _Layout(tables, self.feature[chosen], (complete, missing), {})

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        """Row of the codes that each hash function reads: without missing values, and with."""
        feature = self.feature.astype(np.int64)
        # A set of categories contains the side of a missing value already.
        high = (self.missing == 1) & (self.subset_sizes == 0)
        return feature, bounded("feature", feature + high * self.n_features, 2 * self.n_features)

    @cached_property
    def subset_at(self) -> Ints:
        """Where each hash function's sides begin in ``subsets``; -1 on a numeric feature."""
        sizes = self.subset_sizes
        at = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
        return bounded("subsets", at, len(self.subsets), -1)

    @cached_property
    def reachable(self) -> tuple[Any, ...]:
        """Return the possible effects of changing one value; see `_reachable`."""
        starts = np.maximum(0, self.subset_at)
        sizes = np.maximum(0, self.subset_sizes - 2)  # without missing and unseen
        sides = [self.subsets[a + 1 : a + 1 + k] for a, k in zip(starts, sizes, strict=True)]
        return _reachable(self.schema.features, self.depth, self.feature, self.cut, sides)

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
        if isinstance(codes, StoredCodes):
            self._sparse.count(codes, counts, weights)
            return
        if weights is None and codes.n_rows >= JOINED_ROWS:
            arguments, parts = self._joined.arguments(codes), self._joined.tables.parts
        else:
            arguments, parts = (codes.codes, *self._arguments(codes)), self._apart.tables.parts
        weights = EVERY_ROW_ONCE if weights is None else weights
        kernels.count_random_feature(*arguments, parts, weights, counts)

    def count_pairs(self, codes: Codes, rows: Ints, tables: Ints, counts: Ints) -> None:
        if isinstance(codes, StoredCodes):
            self._sparse.count_pairs(codes, rows, tables, counts)
        else:
            super().count_pairs(codes, rows, tables, counts)

    def sum(self, codes: Codes, values: Floats) -> Floats:
        if isinstance(codes, StoredCodes):
            return self._sparse.sum(codes, values)
        return super().sum(codes, values)

    def summing(self, values: Floats) -> Summing:
        return _Sum(self, values)

    @cached_property
    def _sparse(self) -> "_Sparse":
        return _Sparse.of(self)

    def gaining(self, values: Floats, limits: Floats) -> Gaining:
        return _Gain(self, values, limits)

    def functions(self, codes: Codes) -> Any:
        """Return the hash functions of each separate table, for the kernels and these rows."""
        return self._apart.functions[codes.some_missing]

    def answers(self, codes: Codes) -> NDArray[np.bool_]:
        """Return the answer of each hash function to each row, (n_functions, n)."""
        _, rows, cuts, subset_at, subsets, _, _ = self.functions(codes)
        found = codes.codes[rows] >= cuts[:, np.newaxis]
        for h in np.flatnonzero(subset_at >= 0):
            found[h] = subsets[subset_at[h] + codes.codes[rows[h]].astype(np.int64)]
        return np.asarray(found, np.bool_)

    def cells_of(self, codes: Ints, depth: int) -> Ints:
        """Return the cells, within a table of this depth, of the codes of concatenated answers."""
        if 1 << depth <= self.max_cells:
            return codes
        h = codes.astype(np.uint32)  # like the kernels, which mix one code at a time
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
        return np.asarray((h ^ (h >> np.uint32(16))) & np.uint32(self.max_cells - 1), np.int64)

    @cached_property
    def can_gain(self) -> NDArray[np.bool_]:
        """Features (d,) by which a row can gain: those that vary and have hash functions."""
        found = np.array([not feature.constant for feature in self.schema.features])
        return found & np.isin(np.arange(len(found)), self.feature)

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self.functions(codes),)


@dataclass(frozen=True)
class _Layout:
    """How the kernels process the tables: the functions for rows without and with missing values.

    ``feature`` has the feature of each; ``ranked`` the functions on ranks, built when needed.
    """

    tables: JoinedTables
    feature: NDArray[np.uint16]
    functions: tuple[tuple[Any, ...], tuple[Any, ...]]
    ranked: dict[bool, Ranked | None]

    def arguments(self, codes: Codes) -> tuple[Any, ...]:
        """Return the first arguments of the kernels for these rows; few rows use no ranks."""
        which = codes.some_missing
        functions = self.functions[which]
        if codes.n_rows >= RANKED_ROWS and which not in self.ranked:
            self.ranked[which] = None  # until it is set, other threads compare codes
            self.ranked[which] = Ranked.of(self.feature, functions)
        ranked = self.ranked.get(which) if codes.n_rows >= JOINED_ROWS else None
        return ranked.arguments(codes) if ranked else (codes.codes, functions)


@dataclass(frozen=True)
class _Sparse:
    """The functions by feature, for rows with mostly values of 0.0.

    The cells of such a row differ from those of a row of zeros in few tables: only where a stored
    value changes an answer. The functions on feature j are ``functions[first[j]:first[j + 1]]``.
    ``table`` and ``bit`` have the table of each function, and the position of its answer there.
    """

    family: RandomFeature
    functions: Ints
    first: Ints
    table: Ints
    bit: Ints

    @classmethod
    def of(cls, family: RandomFeature) -> "_Sparse":
        """Lay out the functions of a family whose features are all numbers."""
        sizes = family.depth.astype(np.int64)
        table = np.repeat(np.arange(len(sizes)), sizes)
        feature = family.feature.astype(np.int64)
        bit = np.int64(1) << (ends(sizes)[1:][table] - 1 - np.arange(len(table)))
        first = ends(np.bincount(feature, minlength=family.n_features))
        return cls(family, np.argsort(feature, kind="stable"), first, table, bit)

    def _bits(self, codes: StoredCodes) -> tuple[Ints, Ints]:
        """Return the answers (n_tables,) of a row of zeros, and the differing bits (n, n_tables).

        The second array is stored row by row.
        """
        family, m = self.family, len(self.family.depth)
        of_zeros = codes.zeros[family.feature] >= family.cut
        zero = np.bincount(self.table, self.bit * of_zeros, m).astype(np.int64)
        times = np.diff(self.first)[codes.features]
        ends = np.cumsum(times)
        value = np.repeat(np.arange(len(times)), times)
        at = np.arange(len(value)) - np.repeat(ends - times, times)
        h = self.functions[self.first[codes.features[value]] + at]
        code = codes.stored[value]
        side = code >= family.cut[h]
        if codes.some_missing:
            side = np.where(code == kernels.MISSING_LOW, family.missing[h] == 1, side)
        changed = side != of_zeros[h]
        h, row = h[changed], codes.rows[value[changed]]
        # Each function differs at most once, so the sum of its bits is their exclusive or.
        differ = np.bincount(row * m + self.table[h], self.bit[h], codes.n_rows * m)
        return zero, differ.astype(np.int64)

    def _cells(self, bits: Ints, tables: Ints) -> Ints:
        """Return the cells, among those of all tables, of concatenated answers."""
        family, cells = self.family, bits
        if family._folded is not None:
            folded = family._folded[tables] == 1
            cells = np.where(folded, family.cells_of(bits, MAX_DEPTH), bits)
        return family.offsets[tables] + cells

    def _changed(self, codes: StoredCodes) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the cells of zeros (n_tables,), and the rows, tables and cells that differ."""
        zero, differ = self._bits(codes)
        at = np.flatnonzero(differ)
        row, table = np.divmod(at, len(zero))
        cells = self._cells(zero[table] ^ differ[at], table)
        return self._cells(zero, np.arange(len(zero))), row, table, cells

    def count(self, codes: StoredCodes, counts: Ints, weights: Ints | None) -> None:
        """Count like `HashFamily.count`."""
        zero, row, table, cells = self._changed(codes)
        times = None if weights is None else weights[row]
        n_rows = codes.n_rows if weights is None else int(weights.sum())
        counts[zero] += n_rows - np.bincount(table, times, len(zero)).astype(np.int64)
        counts += np.bincount(cells, times, len(counts)).astype(np.int64)

    def count_pairs(self, codes: StoredCodes, rows: Ints, tables: Ints, counts: Ints) -> None:
        """Count like `HashFamily.count_pairs`."""
        zero, differ = self._bits(codes)
        bits = zero[tables] ^ differ[rows * len(zero) + tables]
        counts += np.bincount(self._cells(bits, tables), minlength=len(counts))

    def sum(self, codes: StoredCodes, values: Floats) -> Floats:
        """Sum like `HashFamily.sum`, bit-identically, because sums of values are exact."""
        zero, row, table, cells = self._changed(codes)
        more = values[cells] - values[zero][table]
        return np.asarray(values[zero].sum() + np.bincount(row, more, codes.n_rows), np.float64)


@dataclass(frozen=True)
class _Sum:
    """`RandomFeature.sum` of the same values, with joined tables if a batch is large enough."""

    family: RandomFeature
    values: Floats

    def __getstate__(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "values": self.values,
        }  # the joined values are computed from these

    @cached_property
    def _joined_values(self) -> Floats:
        return self.family._joined.tables.values(self.values)

    def __call__(self, codes: Codes) -> Floats:
        if isinstance(codes, StoredCodes):
            return self.family.sum(codes, self.values)
        totals = np.empty(codes.n_rows)
        if codes.n_rows <= FEW_ROWS:
            arguments = self.family._apart.arguments(codes)
            kernels.sum_few_random_feature(*arguments, self.values, totals)
            return totals
        if codes.n_rows < JOINED_ROWS:
            return self.family.sum(codes, self.values)
        arguments = self.family._joined.arguments(codes)
        kernels.sum_random_feature(*arguments, self._joined_values, totals)
        return totals


@dataclass(frozen=True)
class _Gain:
    """The gains of rows by a change of one feature: see `HashFamily.gaining`."""

    family: RandomFeature
    values: Floats
    limits: Floats

    @property
    def features(self) -> NDArray[np.bool_]:
        return self.family.can_gain

    def __call__(self, codes: Codes) -> tuple[Floats, Floats]:
        totals, gains = np.empty(codes.n_rows), np.empty((codes.n_rows, len(codes.tally)))
        functions = self.family.functions(codes)
        rest = self.family.reachable, self.values, self.limits, gains, totals
        kernels.gain_random_feature(codes.codes, functions, None, None, *rest)
        return totals, gains


def _reachable(
    features: tuple[Feature, ...],
    depth: NDArray[np.uint8],
    feature: NDArray[np.uint16],
    cut: NDArray[np.uint16],
    sides: list[NDArray[np.uint8]],
) -> tuple[Any, ...]:
    """Lay out, for `hushtable.kernels.gain_random_feature`, the effects of changing one value.

    Cuts at 3 and at 5 answer 00, 10 or 11, never 01: only cells that some value reaches are
    compared. Values are never changed to missing or unseen. Arguments are the schema's features,
    arrays of a RandomFeature family, and for each hash function the sides of the K categories, none
    on a numeric feature. Returns (groups, feature, bits, at, patterns).
    """
    groups, of_group, bits, at, patterns = [0], [], [], [0], []
    end = 0
    for length in depth.tolist():
        begin, end = end, end + length
        in_table = feature[begin:end]
        for j in np.unique(in_table).tolist():
            functions = np.flatnonzero(in_table == j)
            place = (1 << (length - 1 - functions)).astype(np.uint32)
            found = _patterns(features[j], begin + functions, place, cut, sides)
            if len(found) == 0:
                continue
            of_group.append(j)
            bits.append(place.sum())
            # By far the most common case is one function with two sides, which flips.
            patterns.append(found if len(functions) > 1 or len(found) < 2 else found[:0])
            at.append(at[-1] + len(patterns[-1]))
        groups.append(len(of_group))
    return (
        np.array(groups),
        np.array(of_group, np.int64),
        np.array(bits, np.uint32),
        np.array(at),
        np.concatenate([np.empty(0, np.uint32), *patterns]),
    )


def _patterns(
    feature: Feature,
    functions: NDArray[np.int64],
    place: NDArray[np.uint32],
    cut: NDArray[np.uint16],
    sides: list[NDArray[np.uint8]],
) -> NDArray[np.uint32]:
    """Return the different bits that the feature's values give to these functions of a table."""
    if feature.kind == "categorical":
        high = np.array([sides[h] for h in functions], bool)
    else:
        cuts = cut[functions]
        # Code 1 is below every cut; a constant feature has no other code.
        codes = np.array([1]) if feature.constant else np.append(cuts, 1)
        high = codes >= cuts[:, np.newaxis]
    found: NDArray[np.uint32] = np.unique(place @ high.astype(np.uint32)).astype(np.uint32)
    return found
