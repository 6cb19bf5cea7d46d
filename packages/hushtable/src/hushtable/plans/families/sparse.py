"""Tables of random features for rows with mostly values of 0.0."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import StoredCodes
from hushtable.plans.families.family import Floats, Ints
from hushtable.plans.families.layouts import ends


def fold(codes: Ints, depth: int | Ints, cells: int) -> Ints:
    """Return codes of ``depth`` bits, mixed into so many cells (a power of two) if they have more.

    MurmurHash3's fmix32, as the kernels compute it for one code at a time.
    """
    deep = np.left_shift(1, depth) > cells
    if not np.any(deep):
        return codes
    h = codes.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    mixed = (h ^ (h >> np.uint32(16))) & np.uint32(cells - 1)
    return np.where(deep, mixed, codes).astype(np.int64)


@dataclass(frozen=True)
class SparseTables:
    """The functions of a RandomFeature family, whose features are all numbers, by feature.

    The cells of a row differ from those of a row of zeros in few tables: only where a stored value
    changes an answer. The fields are the family's. The functions on feature j are
    ``functions[first[j]:first[j + 1]]``; ``table`` and ``bit`` have the table of each function, and
    the position of its answer there.
    """

    depth: Ints
    feature: Ints
    cut: NDArray[np.uint16]
    missing: NDArray[np.uint8]
    offsets: Ints
    max_cells: int

    @cached_property
    def _functions(self) -> Ints:
        return np.argsort(self.feature, kind="stable")

    @cached_property
    def _table(self) -> Ints:
        return np.repeat(np.arange(len(self.depth)), self.depth)

    @cached_property
    def _bit(self) -> Ints:
        return np.int64(1) << (ends(self.depth)[1:][self._table] - 1 - np.arange(len(self._table)))

    def _bits(self, codes: StoredCodes) -> tuple[Ints, Ints]:
        """Return the answers (n_tables,) of a row of zeros, and the differing bits (n, n_tables).

        The second array is stored row by row.
        """
        m, table = len(self.depth), self._table
        first = ends(np.bincount(self.feature, minlength=len(codes.zeros)))
        of_zeros = codes.zeros[self.feature] >= self.cut
        zero = np.bincount(table, self._bit * of_zeros, m).astype(np.int64)
        times = np.diff(first)[codes.features]
        value = np.repeat(np.arange(len(times)), times)
        at = np.arange(len(value)) - np.repeat(np.cumsum(times) - times, times)
        h = self._functions[first[codes.features[value]] + at]
        code = codes.stored[value]
        side = code >= self.cut[h]
        if codes.some_missing:
            side = np.where(code == kernels.MISSING_LOW, self.missing[h] == 1, side)
        changed = side != of_zeros[h]
        h, row = h[changed], codes.rows[value[changed]]
        # Each function differs at most once, so the sum of its bits is their exclusive or.
        differ = np.bincount(row * m + table[h], self._bit[h], codes.n_rows * m)
        return zero, differ.astype(np.int64)

    def _cells(self, bits: Ints, tables: Ints) -> Ints:
        return self.offsets[tables] + fold(bits, self.depth[tables], self.max_cells)

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
