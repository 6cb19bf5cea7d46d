"""Random-feature LSH."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

#: Bits of a joined table: its values, 16 kB, stay in the first cache. Measured: see the docs.
_BITS = 11
#: Batches of fewer rows do not repay joining values, or taking joined counts apart again.
JOINED_ROWS = 2_048


@dataclass(frozen=True)
class JoinedTables:
    """How the kernels run over a family's tables: each by itself, or several as one.

    Tables of 5 and 6 bits, side by side, are one of 11 bits, in which a row is looked up once
    instead of twice. Its counts, summed over the bits of the one, are the counts of the other;
    the values of its cells are sums of theirs. Both are exact.

    ``tables`` (n_tables,) and ``functions`` are the family's, in the order of the joined tables.
    First of these, and the end of the last, are ``bounds`` among the tables, ``first`` among the
    functions and ``offsets`` among the cells, (n_joined + 1,) each. ``parts`` is for the kernels:
    bounds; first cell of each table in the family's; its cells.
    """

    bounds: Ints
    tables: Ints
    functions: Ints
    first: Ints
    offsets: Ints
    parts: tuple[Ints, Ints, Ints]

    @classmethod
    def apart(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Leave every table by itself."""
        bounds, first = np.arange(len(depth) + 1), _ends(depth)
        parts = bounds, offsets[:-1], np.diff(offsets)
        return cls(bounds, bounds[:-1], np.arange(first[-1]), first, offsets, parts)

    @classmethod
    def packed(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Pack tables into as few joined ones as will do, the deepest first (best fit)."""
        groups: list[list[int]] = []
        with_room: list[list[int]] = [[] for _ in range(_BITS + 1)]  # groups, by the bits left
        for t in np.argsort(-depth.astype(np.int64), kind="stable").tolist():
            bits = int(depth[t])
            room = next((left for left in range(bits, _BITS + 1) if with_room[left]), None)
            if room is None:
                groups.append([])
                at, room = len(groups) - 1, max(bits, _BITS)
            else:
                at = with_room[room].pop()
            groups[at].append(t)
            with_room[room - bits].append(at)
        tables, bounds = np.concatenate(groups), _ends([len(group) for group in groups])
        sizes, deep = np.diff(offsets)[tables], depth.astype(np.int64)[tables]
        first = _ends(deep)
        before = np.repeat(_ends(depth)[tables] - first[:-1], deep)
        return cls(
            bounds,
            tables,
            np.arange(first[-1]) + before,
            first[bounds],
            _ends(np.multiply.reduceat(sizes, bounds[:-1])),
            (bounds, offsets[tables], sizes),
        )

    def values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the joined tables' cells: sums of their tables' ``values``."""
        joined = np.empty(int(self.offsets[-1]))
        kernels.join_values(values, self.parts, self.offsets, joined)
        return joined


def _ends(sizes: ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


#: Cuts that a byte ranks codes among: one value of 256 is above all ranks.
_CUTS = 254
_LOWEST, _NEVER = -128, 127
#: Hash functions to repay looking up the ranks of one column of codes. Measured: HushTable's 56 for
#: each of 30 columns gain a tenth of scoring; 35 for each of 48, next to nothing.
#: A set of categories is read by the row in any case, so that two of them repay it.
REPAID, _REPAID_BY_SETS = 48, 2
#: Rows of a batch that repay laying out ranks, 0.4 ms: there are many more as a rule, since readers
#: split what exceeds 16,384 evenly. Once there are ranks, fewer rows use them, too.
RANKED_ROWS = 12_288
#: The kernels compare by so many hash functions at once, and by twice as many.
_FOURS = 4
#: Sides, of categories and besides, up to which equal sets are looked for.
_FEW_SIDES = 16


@dataclass(frozen=True)
class Ranked:
    """Ranks of codes among the cuts of their feature, and hash functions that compare these.

    A code is at or above a cut if at least as many of the feature's cuts are at or below it as at
    or below the cut: the answers are the same. Features with more than 254 cuts are ranked among
    254 at a time. For row r of the ranks, ``tables[r]`` is the place, in ``of_codes``, of the ranks
    (65536,) of all codes, and ``rows[r]`` the row of the codes. Rows of ``sets`` are behind these.
    """

    rows: Ints
    tables: Ints
    of_codes: NDArray[np.int8]
    sets: "RankedSets"
    functions: tuple[Any, ...]

    @classmethod
    def of(cls, feature: NDArray[np.uint16], functions: tuple[Any, ...]) -> "Ranked | None":
        """Lay out functions for the kernels; None if ranks would not repay.

        ``functions`` is for the kernels; ``feature`` has the feature of each.
        """
        first, rows, cuts, subset_at, subsets, folded, offsets = functions
        on_set, on_cut = np.flatnonzero(subset_at >= 0), np.flatnonzero(subset_at < 0)
        cut_of, at = np.unique(
            feature[on_cut].astype(np.int64) << 16 | cuts[on_cut], return_inverse=True
        )
        of_feature = cut_of >> 16
        place = np.arange(len(cut_of)) - np.searchsorted(of_feature, of_feature)
        begins = np.flatnonzero(place % _CUTS == 0)
        table = np.searchsorted(begins, at, "right") - 1
        columns, row = np.unique(rows[on_cut] << 32 | table, return_inverse=True)
        sets = RankedSets.of(rows[on_set], subset_at[on_set], subsets)
        repaid = len(on_cut) / REPAID + len(on_set) / _REPAID_BY_SETS
        if repaid < len(columns) + len(sets.rows):
            return None
        of_codes = [_ranks(of_table & 0xFFFF) for of_table in np.split(cut_of, begins[1:])]
        sizes = np.diff(first)
        bounds = np.append(0, np.cumsum(-(-sizes // _FOURS) * _FOURS))
        # What fills the fours up is always 0, in the highest bits.
        own = np.arange(len(cuts)) + np.repeat(bounds[1:] - first[1:], sizes)
        row_of, rank = np.zeros(bounds[-1], np.int64), np.full(bounds[-1], _NEVER, np.int8)
        row_of[own[on_cut]], rank[own[on_cut]] = row, place[at] % _CUTS + (_LOWEST + 1)
        masks = None
        if len(on_set):
            row_of[own[on_set]], rank[own[on_set]] = len(columns) + sets.row, sets.least
            masks = np.zeros(bounds[-1], np.int8)  # so that what fills up is 0 on a set's row, too
            masks[own[on_cut]], masks[own[on_set]] = -1, sets.mask
        compared = bounds, row_of, rank, masks, None, folded, offsets
        return cls(columns >> 32, columns & 0xFFFF_FFFF, np.stack(of_codes), sets, compared)

    def arguments(self, codes: Codes) -> tuple[Any, ...]:
        """Return the ranks of these codes, and the functions, for the kernels."""
        n, n_sets = len(self.rows), len(self.sets.rows)
        ranks = np.empty((n + n_sets, codes.n_rows), np.int8)
        for lookup, some in ((self, ranks[:n]), (self.sets, ranks[n:])):
            if len(some):
                of = lookup.rows, lookup.tables, lookup.of_codes
                kernels.rank_codes(codes.codes, *of, some)
        return ranks, self.functions


@dataclass(frozen=True)
class RankedSets:
    """Sets of categories as bits: those of eight hash functions on a feature in one row of ranks.

    Equal sets share a bit. ``rows``, ``tables`` and ``of_codes`` are as those of `Ranked`, of the
    codes that there are. Of each hash function, ``row`` is the row, and ``mask`` its bit, which is
    set where a code is in the set; the highest where it is not, since it is below 0. A rank is in
    the set if what the mask leaves of it is at or above ``least``.
    """

    rows: Ints
    tables: Ints
    of_codes: NDArray[np.int8]
    row: Ints
    mask: NDArray[np.int8]
    least: NDArray[np.int8]

    @classmethod
    def of(cls, rows: Ints, begin: Ints, subsets: NDArray[np.uint8]) -> "RankedSets":
        """Lay out the sets of hash functions that read ``rows``, and begin there in ``subsets``."""
        row, bit = np.zeros((2, len(rows)), np.int64)
        size = np.empty(len(rows), np.int64)
        order = np.argsort(begin)
        size[order] = np.diff(begin[order], append=len(subsets))
        read, packed = list[int](), list[NDArray[np.uint8]]()
        for j in np.unique(rows).tolist():
            mine = np.flatnonzero(rows == j)
            sides = subsets[begin[mine, np.newaxis] + np.arange(size[mine[0]])]
            different, at = sides, np.arange(len(mine))
            if sides.shape[1] <= _FEW_SIDES:  # of more, hardly two are equal
                different, at = np.unique(sides, axis=0, return_inverse=True)
            row[mine], bit[mine] = len(read) + at // 8, at % 8
            tables = np.packbits(different, axis=0, bitorder="little") ^ np.uint8(1 << 7)
            packed += list(tables)
            read += [j] * len(tables)
        of_codes = np.zeros((len(read), int(size.max(initial=0))), np.uint8)
        for table, own in zip(of_codes, packed, strict=True):
            table[: len(own)] = own
        mask = np.left_shift(1, bit).astype(np.uint8).view(np.int8)
        places = np.arange(len(read))
        return cls(
            np.array(read, np.int64), places, of_codes.view(np.int8), row, mask, np.maximum(mask, 0)
        )


def _ranks(cuts: Ints) -> NDArray[np.int8]:
    """Return for each code how many of the cuts, in their order, are at or below it."""
    ranks = np.arange(_LOWEST, _LOWEST + len(cuts) + 1, dtype=np.int8)
    return np.repeat(ranks, np.diff(cuts, prepend=0, append=1 << 16))


#: Hash functions that one table may concatenate: their bits are one 32-bit code.
MAX_DEPTH = 32
#: Rows that are summed one after the other sooner than side by side.
FEW_ROWS = 4


def subset_sizes(schema: Schema, feature: NDArray[np.uint16]) -> Ints:
    """Return how many sides hash functions on these features keep: none on a numeric one."""
    sizes = [len(f.categories) + 2 if f.kind == "categorical" else 0 for f in schema.features]
    return np.array(sizes, np.int64)[feature]


@register
@dataclass(frozen=True, eq=False)
class RandomFeature(Concatenated):
    """Random-feature LSH (paper, Definition 3): compares one random feature with a random cut.

    Hash function h asks whether feature ``feature[h]`` is at or above ``cut[h]``. Where the
    feature is categorical, a random set of its categories plays the part of the cut. A missing
    value falls on the side drawn for it, independently in each hash function. Table t
    concatenates the next ``depth[t]`` functions, g = (h_1, ..., h_l), into a code of l bits.
    The code is the cell; where 2**l exceeds ``max_cells``, a power of two, it is mixed by
    MurmurHash3's fmix32 and taken modulo ``max_cells``.

    ``cut`` is the lowest code (see `hushtable.kernels`) on the high side, 0 for a categorical
    feature; ``missing`` the side of a missing value, 0 or 1. ``subsets`` holds, for each hash
    function on a categorical feature, in order, K + 2 sides: missing, the K categories, an unseen
    category. ``margin``, where a file has it, is the distance beyond its range, in levels, at
    which a row loses half of what it can lose (see `Scoring`).
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
        some = copy(self)  # what was checked of all holds of the first
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
        # Mixed codes cannot lie side by side.
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
        """Row of the codes that each hash function reads: none missing, and some missing."""
        feature = self.feature.astype(np.int64)
        # A set of categories holds the side of a missing value itself.
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
        """Return what a change of one value can do; see `_reachable`."""
        starts = np.maximum(0, self.subset_at)
        sizes = np.maximum(0, self.subset_sizes - 2)  # without missing and unseen
        sides = [self.subsets[a + 1 : a + 1 + k] for a, k in zip(starts, sizes, strict=True)]
        return _reachable(self.schema.features, self.depth, self.feature, self.cut, sides)

    @cached_property
    def _folded(self) -> NDArray[np.uint8] | None:
        """Which tables fold their codes (n_tables,), or None: Numba then compiles less."""
        folded = 1 << self.depth.astype(np.int64) > self.max_cells
        return folded.astype(np.uint8) if folded.any() else None

    @cached_property
    def subset_sizes(self) -> Ints:
        """Sides that each hash function keeps in ``subsets``: none on a numeric feature."""
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
        """Return the hash functions of each table by itself, for the kernels and these rows."""
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
        h = codes.astype(np.uint32)  # as the kernels mix one code
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
        return np.asarray((h ^ (h >> np.uint32(16))) & np.uint32(self.max_cells - 1), np.int64)

    @cached_property
    def can_gain(self) -> NDArray[np.bool_]:
        """Features (d,) by which a row can gain: they vary, and have hash functions."""
        found = np.array([not feature.constant for feature in self.schema.features])
        return found & np.isin(np.arange(len(found)), self.feature)

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self.functions(codes),)


@dataclass(frozen=True)
class _Layout:
    """How the kernels run over the tables; the functions for rows without and with missing.

    ``feature`` has each function's, ``ranked`` the functions on ranks, as far as they were needed.
    """

    tables: JoinedTables
    feature: NDArray[np.uint16]
    functions: tuple[tuple[Any, ...], tuple[Any, ...]]
    ranked: dict[bool, Ranked | None]

    def arguments(self, codes: Codes) -> tuple[Any, ...]:
        """Return the first arguments of the kernels, for these rows; no ranks for few rows."""
        which = codes.some_missing
        functions = self.functions[which]
        if codes.n_rows >= RANKED_ROWS and which not in self.ranked:
            self.ranked[which] = None  # meanwhile, other threads compare codes
            self.ranked[which] = Ranked.of(self.feature, functions)
        ranked = self.ranked.get(which) if codes.n_rows >= JOINED_ROWS else None
        return ranked.arguments(codes) if ranked else (codes.codes, functions)


@dataclass(frozen=True)
class _Sparse:
    """The functions by feature, for rows of which most values are 0.0.

    Such a row's cell differs from that of a row of zeros in few tables: those of which a stored
    value changes an answer. The functions on feature j are ``functions[first[j]:first[j + 1]]``.
    ``table`` and ``bit`` have the table of each function, and the place of its answer there.
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
        bit = np.int64(1) << (_ends(sizes)[1:][table] - 1 - np.arange(len(table)))
        first = _ends(np.bincount(feature, minlength=family.n_features))
        return cls(family, np.argsort(feature, kind="stable"), first, table, bit)

    def _bits(self, codes: StoredCodes) -> tuple[Ints, Ints]:
        """Return the answers (n_tables,) of a row of zeros, and the bits (n, n_tables) that differ.

        The second is one row after the other.
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
        # Each function differs once: the sum of its bits is their exclusive or.
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
        """Return the cells of zeros (n_tables,), and rows, tables and cells that are others."""
        zero, differ = self._bits(codes)
        at = np.flatnonzero(differ)
        row, table = np.divmod(at, len(zero))
        cells = self._cells(zero[table] ^ differ[at], table)
        return self._cells(zero, np.arange(len(zero))), row, table, cells

    def count(self, codes: StoredCodes, counts: Ints, weights: Ints | None) -> None:
        """Count as `HashFamily.count` does."""
        zero, row, table, cells = self._changed(codes)
        times = None if weights is None else weights[row]
        n_rows = codes.n_rows if weights is None else int(weights.sum())
        counts[zero] += n_rows - np.bincount(table, times, len(zero)).astype(np.int64)
        counts += np.bincount(cells, times, len(counts)).astype(np.int64)

    def count_pairs(self, codes: StoredCodes, rows: Ints, tables: Ints, counts: Ints) -> None:
        """Count as `HashFamily.count_pairs` does."""
        zero, differ = self._bits(codes)
        bits = zero[tables] ^ differ[rows * len(zero) + tables]
        counts += np.bincount(self._cells(bits, tables), minlength=len(counts))

    def sum(self, codes: StoredCodes, values: Floats) -> Floats:
        """Sum as `HashFamily.sum` does; to the bit, since sums of values are exact."""
        zero, row, table, cells = self._changed(codes)
        more = values[cells] - values[zero][table]
        return np.asarray(values[zero].sum() + np.bincount(row, more, codes.n_rows), np.float64)


@dataclass(frozen=True)
class _Sum:
    """`RandomFeature.sum` of the same values, by joined tables where a batch repays it."""

    family: RandomFeature
    values: Floats

    def __getstate__(self) -> dict[str, Any]:
        return {"family": self.family, "values": self.values}  # the joined values follow

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
    """Lay out, for `hushtable.kernels.gain_random_feature`, what a change of one value can do.

    Cuts at 3 and at 5 answer 00, 10 or 11, never 01: only cells that some value reaches are
    compared. Missing and unseen values are no values to change to. Arguments are the schema's
    features, arrays of a RandomFeature family, and for each hash function the sides of the K
    categories, none on a numeric feature. Returns (groups, feature, bits, at, patterns).
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
            # One function with two sides is the most common by far, and flips.
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
    """Return the different bits that the feature's values give these functions of one table."""
    if feature.kind == "categorical":
        high = np.array([sides[h] for h in functions], bool)
    else:
        cuts = cut[functions]
        # Code 1 is below every cut; a constant feature has no other.
        codes = np.array([1]) if feature.constant else np.append(cuts, 1)
        high = codes >= cuts[:, np.newaxis]
    found: NDArray[np.uint32] = np.unique(place @ high.astype(np.uint32)).astype(np.uint32)
    return found
