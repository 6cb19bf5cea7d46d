"""Random-feature hash functions on ranks of codes: bytes, of which a vector holds twice as many."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes

#: Cuts that a byte ranks codes among: one value of 256 is above all ranks.
_CUTS = 254
_LOWEST, _NEVER = -128, 127
#: Hash functions to repay looking up the ranks of one column of codes. Measured: HushTable's 56 for
#: each of 30 columns gain a tenth of scoring; 35 for each of 48, next to nothing.
REPAID = 48
#: Rows of a batch that repay laying out ranks, 0.4 ms: there are many more as a rule, since readers
#: split what exceeds 16,384 evenly. Once there are ranks, fewer rows use them, too.
RANKED_ROWS = 12_288
#: The kernels compare by so many hash functions at once, and by twice as many.
_FOURS = 4

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ranked:
    """Ranks of codes among the cuts of their feature, and hash functions that compare these.

    A code is at or above a cut if at least as many of the feature's cuts are at or below it as at
    or below the cut: the answers are the same. Features with more than 254 cuts are ranked among
    254 at a time. For row r of the ranks, ``tables[r]`` is the place, in ``of_codes``, of the ranks
    (65536,) of all codes, and ``rows[r]`` the row of the codes.
    """

    rows: Ints
    tables: Ints
    of_codes: NDArray[np.int8]
    functions: tuple[Any, ...]

    @classmethod
    def of(cls, feature: NDArray[np.uint16], functions: tuple[Any, ...]) -> "Ranked | None":
        """Lay out functions with a cut each; None if ranks would not repay.

        Sets of categories have no ranks.

        ``functions`` is for the kernels; ``feature`` has the feature of each.
        """
        first, rows, cuts, subset_at, _, folded, offsets = functions
        cut_of, at = np.unique(feature.astype(np.int64) << 16 | cuts, return_inverse=True)
        of_feature = cut_of >> 16
        place = np.arange(len(cut_of)) - np.searchsorted(of_feature, of_feature)
        begins = np.flatnonzero(place % _CUTS == 0)
        table = np.searchsorted(begins, at, "right") - 1
        columns, row = np.unique(rows << 32 | table, return_inverse=True)
        if len(cuts) < REPAID * len(columns) or subset_at.max() >= 0:
            return None
        of_codes = [_ranks(of_table & 0xFFFF) for of_table in np.split(cut_of, begins[1:])]
        sizes = np.diff(first)
        bounds = np.append(0, np.cumsum(-(-sizes // _FOURS) * _FOURS))
        # What fills the fours up is always 0, in the highest bits.
        own = np.arange(len(cuts)) + np.repeat(bounds[1:] - first[1:], sizes)
        row_of, rank = np.zeros(bounds[-1], np.int64), np.full(bounds[-1], _NEVER, np.int8)
        row_of[own], rank[own] = row, place[at] % _CUTS + (_LOWEST + 1)
        compared = bounds, row_of, rank, None, None, folded, offsets
        return cls(columns >> 32, columns & 0xFFFF_FFFF, np.stack(of_codes), compared)

    def arguments(self, codes: Codes) -> tuple[Any, ...]:
        """Return the ranks of these codes, and the functions, for the kernels."""
        ranks = np.empty((len(self.rows), codes.n_rows), np.int8)
        kernels.rank_codes(codes.codes, self.rows, self.tables, self.of_codes, ranks)
        return ranks, self.functions


def _ranks(cuts: Ints) -> NDArray[np.int8]:
    """Return for each code how many of the cuts, in their order, are at or below it."""
    ranks = np.arange(_LOWEST, _LOWEST + len(cuts) + 1, dtype=np.int8)
    return np.repeat(ranks, np.diff(cuts, prepend=0, append=1 << 16))
