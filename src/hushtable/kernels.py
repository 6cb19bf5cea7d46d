"""The compiled loops: arrays in, arrays out, no objects.

Values are encoded once into 16-bit codes; everything after that is integer arithmetic on
the codes, so that cells and counts are the same bits on every platform.

==========  ====================================================================
code        meaning
==========  ====================================================================
0           missing, on the low side of every cut
1..LEVELS   numeric: 1 + floor(LEVELS (x - low) / (high - low)), clipped;
            categorical: 1 + index of the category, 1 + K for an unseen one
65535       missing, on the high side of every cut
==========  ====================================================================

``codes`` has one row a feature: the feature's codes with missing values low. Where a chunk
has missing values, d further rows hold the same with missing values high, and a hash function
reads the row that suits the side it drew for them.

Loops run over blocks of ``BLOCK`` rows that stay in the first-level cache, one feature at a
time, so that LLVM compares 16 to 32 rows in one instruction.
"""

from typing import Any

import numba
import numpy as np

BLOCK = 512
#: 255 * 256 levels: a multiple of every power of two up to 256, so that the cells of an
#: equal-width histogram are exact unions of levels.
LEVELS = 65_280
MISSING_LOW = 0
MISSING_HIGH = 65_535


def _kernel(function: Any) -> Any:
    return numba.njit(nogil=True, cache=True)(function)


def _inlined(function: Any) -> Any:
    return numba.njit(inline="always")(function)


@_kernel
def column_ranges(X, low, high, missing):
    """Fold the rows of ``X`` (n, d) into running minima, maxima and counts of NaN (d,).

    Returns the first (row, column) that holds an infinity, or (-1, -1).
    """
    n, d = X.shape
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for j in range(d):
            lowest, highest, nans = low[j], high[j], 0
            for i in range(start, stop):
                x = np.float64(X[i, j])
                nans += x != x
                lowest = x if x < lowest else lowest
                highest = x if x > highest else highest
            low[j], high[j] = lowest, highest
            missing[j] += nans
            if lowest == -np.inf or highest == np.inf:
                for i in range(start, stop):
                    if np.isinf(X[i, j]):
                        return i, j
    return -1, -1


@_kernel
def encode(X, low, high, scale, codes, tally):
    """Encode the numbers of ``X`` (n, d) into ``codes`` (d, n), missing as ``MISSING_LOW``.

    ``scale`` is LEVELS / (high - low), 0 for a constant feature. ``tally`` (d, 2) receives the
    numbers of missing and of clipped values. Returns the first (row, column) of an infinity,
    or (-1, -1). The arithmetic is one float64 subtraction and one multiplication, never fused,
    so that every platform rounds alike.
    """
    n, d = X.shape
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for j in range(d):
            lowest, highest, factor, column = low[j], high[j], scale[j], codes[j]
            outside = 0
            for i in range(start, stop):
                x = np.float64(X[i, j])
                outside += not ((x >= lowest) & (x <= highest))
                level = min(max((x - lowest) * factor, 0.0), LEVELS - 1.0)
                column[i] = np.uint16(np.int32(level) + 1)
            if outside:
                for i in range(start, stop):
                    x = np.float64(X[i, j])
                    if x != x:
                        column[i] = MISSING_LOW
                        tally[j, 0] += 1
                    elif x < lowest or x > highest:
                        tally[j, 1] += 1
                        if np.isinf(x):
                            return i, j
    return -1, -1


@_inlined
def _fold(code, cells):
    """Mix a code of 32 bits into ``cells`` (a power of two) cells: MurmurHash3's fmix32."""
    h = np.uint32(code)
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    return np.uint16(h & np.uint32(cells - 1))


@_inlined
def _concatenate(begin, end, start, stop, codes, functions, bits):
    """Write (h_begin(x), ..., h_end-1(x)), at most 16 bits, into ``bits`` for each row.

    Two hash functions a pass where both are cuts: it halves the loads and stores of ``bits``.
    """
    _, rows, cuts, subset_at, subsets, _, _ = functions
    n = stop - start
    bits[:n] = 0
    h = begin
    while h < end:
        a, cut_a = codes[rows[h], start:stop], cuts[h]
        if h + 1 < end and (subset_at[h] & subset_at[h + 1]) < 0:
            b, cut_b = codes[rows[h + 1], start:stop], cuts[h + 1]
            for i in range(n):
                bits[i] = np.uint16(
                    (bits[i] << np.uint16(2))
                    | (np.uint16(a[i] >= cut_a) << np.uint16(1))
                    | np.uint16(b[i] >= cut_b)
                )
            h += 2
        elif subset_at[h] < 0:
            for i in range(n):
                bits[i] = np.uint16((bits[i] << np.uint16(1)) | np.uint16(a[i] >= cut_a))
            h += 1
        else:
            sides = subsets[subset_at[h] :]
            for i in range(n):
                bits[i] = np.uint16((bits[i] << np.uint16(1)) | np.uint16(sides[a[i]]))
            h += 1


@_inlined
def _random_feature_cells(t, start, stop, codes, functions, upper, cells):
    """Write the cell of table ``t``, counted from the table's first, for each row of a block.

    ``folded`` is None where no table has fewer cells than codes: Numba then leaves the folding
    out, which makes the loop over dense tables a quarter faster.
    """
    first, _, _, _, _, folded, offsets = functions
    begin, end, size = first[t], first[t + 1], offsets[t + 1] - offsets[t]
    half = max(begin, end - 16)
    _concatenate(half, end, start, stop, codes, functions, cells)
    if folded is not None:
        if begin < half:
            _concatenate(begin, half, start, stop, codes, functions, upper)
            for i in range(stop - start):
                code = np.uint32(np.uint32(upper[i]) << np.uint32(16)) | np.uint32(cells[i])
                cells[i] = _fold(code, size)
        elif size < 1 << (end - begin):
            for i in range(stop - start):
                cells[i] = _fold(cells[i], size)


@_inlined
def _add(cells, n, weights, start, offset, counts):
    if weights.size == 0:
        for i in range(n):
            counts[offset + cells[i]] += 1
    else:
        for i in range(n):
            counts[offset + cells[i]] += weights[start + i]


@_kernel
def count_random_feature(codes, functions, weights, counts):
    """Count rows into the cells of every table of a RandomFeature family.

    ``functions`` is (first, rows, cuts, subset_at, subsets, folded, offsets): table t is made
    of hash functions ``first[t]..first[t + 1]``; hash function h compares row ``rows[h]`` of
    ``codes`` with ``cuts[h]``, or, where ``subset_at[h]`` >= 0, looks the category's side up in
    ``subsets`` from there on. ``weights`` (n,) int64, or empty for one each; ``counts`` int64,
    all tables end to end as ``offsets`` says.
    """
    n, offsets = codes.shape[1], functions[6]
    upper, cells = np.empty(BLOCK, np.uint16), np.empty(BLOCK, np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(len(offsets) - 1):
            _random_feature_cells(t, start, stop, codes, functions, upper, cells)
            _add(cells, stop - start, weights, start, offsets[t], counts)


@_kernel
def count_pairs_random_feature(codes, functions, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, a row at a time."""
    first, rows, cuts, subset_at, subsets, _, offsets = functions
    for p in range(len(pair_row)):
        i, t = pair_row[p], pair_table[p]
        bits = np.uint32(0)
        for h in range(first[t], first[t + 1]):
            code = codes[rows[h], i]
            if subset_at[h] < 0:
                side = np.uint32(code >= cuts[h])
            else:
                side = np.uint32(subsets[subset_at[h] + code])
            bits = np.uint32(np.uint32(bits << np.uint32(1)) | side)
        size = offsets[t + 1] - offsets[t]
        cell = np.uint32(bits)
        if size < 1 << (first[t + 1] - first[t]):
            cell = np.uint32(_fold(bits, size))
        counts[offsets[t] + cell] += 1


@_kernel
def sum_random_feature(codes, functions, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell.

    Four tables are looked up in one pass: a quarter of the loads and stores of the sum.
    """
    n, offsets = codes.shape[1], functions[6]
    m = len(offsets) - 1
    upper, cells = np.empty(BLOCK, np.uint16), np.empty((4, BLOCK), np.uint16)
    total = np.empty(BLOCK, np.float64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total[:] = 0.0
        for t in range(0, m, 4):
            lanes = min(4, m - t)
            for lane in range(lanes):
                _random_feature_cells(t + lane, start, stop, codes, functions, upper, cells[lane])
            a = values[offsets[t] : offsets[t + 1]]
            if lanes == 4:
                b = values[offsets[t + 1] : offsets[t + 2]]
                c = values[offsets[t + 2] : offsets[t + 3]]
                d = values[offsets[t + 3] : offsets[t + 4]]
                for i in range(stop - start):
                    ab = a[cells[0, i]] + b[cells[1, i]]
                    total[i] += ab + (c[cells[2, i]] + d[cells[3, i]])
            else:
                for lane in range(lanes):
                    a = values[offsets[t + lane] : offsets[t + lane + 1]]
                    for i in range(stop - start):
                        total[i] += a[cells[lane, i]]
        totals[start:stop] = total[: stop - start]


@_inlined
def _equi_width_cells(j, start, stop, codes, width, size, cells):
    """Write the histogram cell of feature ``j`` for each row of a block; missing comes last."""
    for i in range(stop - start):
        code = codes[j, start + i]
        cells[i] = size - 1 if code == MISSING_LOW else (code - 1) // width


@_kernel
def count_equi_width(codes, widths, offsets, weights, counts):
    """Count rows into one histogram a feature, of cells ``widths[j]`` codes wide."""
    n = codes.shape[1]
    cells = np.empty(BLOCK, np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for j in range(len(widths)):
            size = offsets[j + 1] - offsets[j]
            _equi_width_cells(j, start, stop, codes, widths[j], size, cells)
            _add(cells, stop - start, weights, start, offsets[j], counts)


@_kernel
def sum_equi_width(codes, widths, offsets, values, totals):
    """Write into ``totals`` (n,) the sum over the features of ``values`` at each row's cell."""
    n = codes.shape[1]
    cells = np.empty(BLOCK, np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        totals[start:stop] = 0.0
        for j in range(len(widths)):
            size = offsets[j + 1] - offsets[j]
            _equi_width_cells(j, start, stop, codes, widths[j], size, cells)
            for i in range(stop - start):
                totals[start + i] += values[offsets[j] + cells[i]]
