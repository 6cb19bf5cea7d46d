"""How tables and hash functions are laid out: joined, by ranks, and for gains."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.data.schema import Feature
from hushtable.plans.families.family import Arguments, Ints

#: Bits of a joined table: its values, 16 kB, fit in the first-level cache. Measured: see the docs.
_BITS = 11
#: For batches of fewer rows, joining values or separating joined counts is not worthwhile.
JOINED_ROWS = 2_048


@dataclass(frozen=True)
class JoinedTables:
    """How the kernels process a family's tables: one by one, or several joined into one.

    Tables of 5 and 6 bits, side by side, form one table of 11 bits, so that each row needs one
    lookup instead of two. Its counts, summed over the bits of one table, are the counts of the
    other; the values of its cells are sums of the tables' values. Both are exact.

    ``tables`` (n_tables,) and ``functions`` are the family's, in the order of the joined tables.
    The boundaries of the joined tables are ``bounds`` among the tables, ``first`` among the
    functions and ``offsets`` among the cells, (n_joined + 1,) each. ``parts`` is for the kernels:
    bounds; first cell of each table in the family's vector; its cells.
    """

    bounds: Ints
    tables: Ints
    functions: Ints
    first: Ints
    offsets: Ints
    parts: tuple[Ints, Ints, Ints]

    @classmethod
    def apart(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Keep every table separate."""
        bounds, first = np.arange(len(depth) + 1), ends(depth)
        parts = bounds, offsets[:-1], np.diff(offsets)
        return cls(bounds, bounds[:-1], np.arange(first[-1]), first, offsets, parts)

    @classmethod
    def packed(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Pack tables into few joined tables, the deepest first (best fit)."""
        groups: list[list[int]] = []
        with_room: list[list[int]] = [
            [] for _ in range(_BITS + 1)
        ]  # groups, by the number of bits left
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
        tables, bounds = np.concatenate(groups), ends([len(group) for group in groups])
        sizes, deep = np.diff(offsets)[tables], depth.astype(np.int64)[tables]
        first = ends(deep)
        before = np.repeat(ends(depth)[tables] - first[:-1], deep)
        return cls(
            bounds,
            tables,
            np.arange(first[-1]) + before,
            first[bounds],
            ends(np.multiply.reduceat(sizes, bounds[:-1])),
            (bounds, offsets[tables], sizes),
        )

    def values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the joined tables' cells: sums of their tables' ``values``."""
        joined = np.empty(int(self.offsets[-1]))
        kernels.join_values(values, self.parts, self.offsets, joined)
        return joined


def ends(sizes: ArrayLike) -> Ints:
    """Return where parts of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


#: Number of cuts among which a byte ranks codes: one value of 256 is above all ranks.
_CUTS = 254
_LOWEST, _NEVER = -128, 127
#: Least number of hash functions for which looking up the ranks of one column of codes pays.
#: Measured: HushTable's 56 for each of 30 columns save a tenth of scoring; 35 for each of 48 save
#: almost nothing.
#: Sets of categories are looked up for each row anyway, so two of them are enough.
REPAID, _REPAID_BY_SETS = 48, 2
#: Rows of a batch for which laying out ranks (0.4 ms) pays. Batches usually have more, because
#: readers divide more than 16,384 rows evenly. Once the ranks exist, smaller batches use them too.
RANKED_ROWS = 12_288
#: The kernels compare by this many hash functions at a time, and by twice as many.
_FOURS = 4
#: Largest number of sides, categories and others, for which equal sets are detected.
_FEW_SIDES = 16


@dataclass(frozen=True)
class Ranked:
    """Ranks of codes among the cuts of their feature, and hash functions that compare these.

    A code is at or above a cut if at least as many of the feature's cuts are at or below the code
    as are at or below the cut, so ranks give the same answers. Features with more than 254 cuts
    are ranked in groups of 254. For row r of the ranks, ``tables[r]`` is the position in
    ``of_codes`` of the ranks (65536,) of all codes, and ``rows[r]`` the row of the codes. The rows
    of ``sets`` follow.
    """

    rows: Ints
    tables: Ints
    of_codes: NDArray[np.int8]
    sets: "RankedSets"
    functions: Arguments

    @classmethod
    def of(cls, feature: NDArray[np.uint16], functions: Arguments) -> "Ranked | None":
        """Lay out functions for the kernels; return None if ranks do not pay.

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
        of_codes = []  # for each code, how many of the cuts, which are sorted, are at or below it
        for of_table in np.split(cut_of, begins[1:]):
            ranks = np.arange(_LOWEST, _LOWEST + len(of_table) + 1, dtype=np.int8)
            steps = np.diff(of_table & 0xFFFF, prepend=0, append=1 << 16)
            of_codes.append(np.repeat(ranks, steps))
        sizes = np.diff(first)
        bounds = np.append(0, np.cumsum(-(-sizes // _FOURS) * _FOURS))
        # Padding to groups of four is always 0, in the highest bits.
        places = np.arange(len(cuts)) + np.repeat(bounds[1:] - first[1:], sizes)
        row_of, rank = np.zeros(bounds[-1], np.int64), np.full(bounds[-1], _NEVER, np.int8)
        row_of[places[on_cut]], rank[places[on_cut]] = row, place[at] % _CUTS + (_LOWEST + 1)
        masks = None
        if len(on_set):
            row_of[places[on_set]], rank[places[on_set]] = len(columns) + sets.row, sets.least
            masks = np.zeros(bounds[-1], np.int8)  # so that the padding is 0 on a set's row, too
            masks[places[on_cut]], masks[places[on_set]] = -1, sets.mask
        compared = bounds, row_of, rank, masks, None, folded, offsets
        return cls(columns >> 32, columns & 0xFFFF_FFFF, np.stack(of_codes), sets, compared)

    def arguments(self, codes: Codes) -> Arguments:
        """Return the ranks of these codes, and the functions, for the kernels."""
        n, n_sets = len(self.rows), len(self.sets.rows)
        ranks = np.empty((n + n_sets, len(codes)), np.int8)
        for lookup, lists in ((self, ranks[:n]), (self.sets, ranks[n:])):
            if len(lists):
                of = lookup.rows, lookup.tables, lookup.of_codes
                kernels.rank_codes(codes.codes, *of, lists)
        return ranks, self.functions


@dataclass(frozen=True)
class RankedSets:
    """Sets of categories as bits: one row of ranks holds those of eight functions on a feature.

    Equal sets share a bit. ``rows``, ``tables`` and ``of_codes`` are like those of `Ranked`, for
    the existing codes. For each hash function, ``row`` is the row, and ``mask`` its bit, which is
    set if a code is in the set; the highest bit is set if it is not, because the value is then
    below 0. A rank is in the set if, after the mask is applied, it is at or above ``least``.
    """

    rows: Ints
    tables: Ints
    of_codes: NDArray[np.int8]
    row: Ints
    mask: NDArray[np.int8]
    least: NDArray[np.int8]

    @classmethod
    def of(cls, rows: Ints, begin: Ints, subsets: NDArray[np.uint8]) -> "RankedSets":
        """Lay out the sets of hash functions that read ``rows``; they start in ``subsets``."""
        row, bit = np.zeros((2, len(rows)), np.int64)
        size = np.empty(len(rows), np.int64)
        order = np.argsort(begin)
        size[order] = np.diff(begin[order], append=len(subsets))
        read, packed = list[int](), list[NDArray[np.uint8]]()
        for j in np.unique(rows).tolist():
            mine = np.flatnonzero(rows == j)
            sides = subsets[begin[mine, np.newaxis] + np.arange(size[mine[0]])]
            different, at = sides, np.arange(len(mine))
            if sides.shape[1] <= _FEW_SIDES:  # larger sets are rarely equal
                different, at = np.unique(sides, axis=0, return_inverse=True)
            row[mine], bit[mine] = len(read) + at // 8, at % 8
            tables = np.packbits(different, axis=0, bitorder="little") ^ np.uint8(1 << 7)
            packed += list(tables)
            read += [j] * len(tables)
        of_codes = np.zeros((len(read), int(size.max(initial=0))), np.uint8)
        for table, codes in zip(of_codes, packed, strict=True):
            table[: len(codes)] = codes
        mask = np.left_shift(1, bit).astype(np.uint8).view(np.int8)
        places = np.arange(len(read))
        return cls(
            np.array(read, np.int64), places, of_codes.view(np.int8), row, mask, np.maximum(mask, 0)
        )


@dataclass(frozen=True)
class Layout:
    """How the kernels process the tables: the functions for rows without and with missing values.

    ``feature`` has the feature of each; ``ranked`` the functions on ranks, built when needed.
    """

    tables: JoinedTables
    feature: NDArray[np.uint16]
    functions: tuple[Arguments, Arguments]
    ranked: dict[bool, Ranked | None]

    def arguments(self, codes: Codes) -> Arguments:
        """Return the first arguments of the kernels for these rows; few rows use no ranks."""
        which = codes.some_missing
        functions = self.functions[which]
        if len(codes) >= RANKED_ROWS and which not in self.ranked:
            self.ranked[which] = None  # until it is set, other threads compare codes
            self.ranked[which] = Ranked.of(self.feature, functions)
        ranked = self.ranked.get(which) if len(codes) >= JOINED_ROWS else None
        return ranked.arguments(codes) if ranked else (codes.codes, functions)


def reachable(
    features: tuple[Feature, ...],
    depth: NDArray[np.uint8],
    feature: NDArray[np.uint16],
    cut: NDArray[np.uint16],
    sides: list[NDArray[np.uint8]],
) -> Arguments:
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
    patterns: NDArray[np.uint32] = np.unique(place @ high.astype(np.uint32)).astype(np.uint32)
    return patterns
