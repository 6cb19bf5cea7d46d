"""One histogram per feature."""

import numpy as np

from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.kernels._common import BLOCK, SPAN, add, empty_lanes, gather, inlined, kernel
from hushtable.kernels._encode import add_noted, count_inside, count_there, ends_as, note_odd

#: Rows and columns that `count_numbers_equi_width` places at once.
_ROWS, _COLUMNS = 8, 128


@inlined
def _equi_width_cells(j, start, stop, codes, width, size, cells):
    """Write the histogram cell of feature ``j`` for each row of a block; missing comes last."""
    for i in range(stop - start):
        code = codes[j, start + i]
        cells[i] = size - 1 if code == MISSING_LOW else (code - 1) // width


@inlined
def _equi_width_block(j, start, stop, codes, width, size, cells):
    """Like `_equi_width_cells`, by multiplication: (code - 1/2) / width is never near integers."""
    inverse = np.float32(1.0 / width)
    column = codes[j, start:stop]
    for i in range(stop - start):
        cells[i] = np.uint16(np.int32((np.float32(column[i]) - np.float32(0.5)) * inverse))
    for i in range(stop - start):
        cells[i] = np.uint16(size - 1) if column[i] == np.uint16(MISSING_LOW) else cells[i]


@kernel
def count_equi_width(codes, widths, offsets, weights, counts):
    """Count rows into one histogram per feature, with cells of ``widths[j]`` codes."""
    n = codes.shape[1]
    cells = np.empty(BLOCK, np.uint16)
    largest = np.int64(0)
    for j in range(len(widths)):
        largest = max(largest, offsets[j + 1] - offsets[j])
    lanes = np.zeros((4, largest), np.uint32)
    for begin in range(0, n, SPAN):
        end = min(begin + SPAN, n)
        for j in range(len(widths)):
            size = offsets[j + 1] - offsets[j]
            for start in range(begin, end, BLOCK):
                stop = min(start + BLOCK, end)
                _equi_width_block(j, start, stop, codes, widths[j], size, cells)
                if weights.size == 0:
                    gather(cells, stop - start, lanes)
                else:
                    add(cells, stop - start, weights, start, offsets[j], counts)
            if weights.size == 0:
                empty_lanes(lanes, size)
                for cell in range(size):
                    counts[offsets[j] + cell] += np.int64(lanes[0, cell])
                    lanes[0, cell] = 0


@kernel
def count_numbers_equi_width(X, low, high, scale, widths, offsets, counts, tally):
    """Encode the numbers of ``X`` (n, d) like `encode`, and count them like `count_equi_width`.

    Codes are not stored. ``tally`` (d, 2) is as in `encode`; returns the first (row, column) of an
    infinity, or (-1, -1). A row's cells are in different histograms, so that none of its counters
    was just written.
    """
    n, d = X.shape
    cells, inverse = np.empty((_ROWS, _COLUMNS), np.uint32), np.empty(_COLUMNS, np.float32)
    largest = np.int64(0)
    for j in range(d):
        largest = max(largest, offsets[j + 1] - offsets[j])
    rows = np.empty(_COLUMNS * largest, np.uint32)
    least, most = ends_as(X, low, high)
    noted = np.zeros((2, d), np.int64)
    for first in range(0, d, _COLUMNS):
        w = min(_COLUMNS, d - first)
        lowest, factor = low[first : first + w], scale[first : first + w]
        low_end, high_end = least[first : first + w], most[first : first + w]
        base, last = np.empty(w, np.uint32), np.empty(w, np.uint32)
        for j in range(w):
            inverse[j] = np.float32(1.0 / widths[first + j])
            base[j] = offsets[first + j] - offsets[first]
            last[j] = offsets[first + j + 1] - offsets[first] - 1  # of missing values
        rows[:] = 0
        for start in range(0, n, _ROWS):
            k = min(_ROWS, n - start)
            for i in range(k):
                x, out = X[start + i, first : first + w], cells[i]
                inside = count_inside(x, low_end, high_end)
                for j in range(w):
                    value = min(max((np.float64(x[j]) - lowest[j]) * factor[j], 0.0), LEVELS - 1.0)
                    middle = np.float32(np.int32(value)) + np.float32(0.5)
                    out[j] = np.uint32(np.uint32(np.int32(middle * inverse[j])) + base[j])
                if inside < w:
                    _, infinity = count_there(x)
                    if infinity >= 0:
                        return start + i, first + infinity
                    for j in range(w):
                        cell = out[j]
                        out[j] = cell if x[j] == x[j] else last[j]
                    note_odd(x, low_end, high_end, noted, first)
            for i in range(k):
                for j in range(w):
                    rows[cells[np.uint64(i), np.uint64(j)]] += np.uint32(1)
        for cell in range(offsets[first + w] - offsets[first]):
            counts[offsets[first] + cell] += np.int64(rows[cell])
    add_noted(noted, tally)
    return -1, -1


@kernel
def count_pairs_equi_width(codes, widths, offsets, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in histogram ``pair_table[p]`` for each p."""
    cells = np.empty(1, np.uint16)
    for p in range(len(pair_row)):
        i, j = pair_row[p], pair_table[p]
        size = offsets[j + 1] - offsets[j]
        _equi_width_cells(j, i, i + 1, codes, widths[j], size, cells)
        counts[offsets[j] + cells[0]] += 1


@kernel
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
