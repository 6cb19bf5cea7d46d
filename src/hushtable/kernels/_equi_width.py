"""One histogram a feature."""

import numpy as np

from hushtable.kernels import MISSING_LOW
from hushtable.kernels._cache import kernel
from hushtable.kernels._common import BLOCK, SPAN, add, empty_lanes, gather, inlined


@inlined
def _equi_width_cells(j, start, stop, codes, width, size, cells):
    """Write the histogram cell of feature ``j`` for each row of a block; missing comes last."""
    for i in range(stop - start):
        code = codes[j, start + i]
        cells[i] = size - 1 if code == MISSING_LOW else (code - 1) // width


@inlined
def _equi_width_block(j, start, stop, codes, width, size, cells):
    """As `_equi_width_cells`, by multiplication: (code - 1/2) / width is far from whole numbers."""
    inverse = np.float32(1.0 / width)
    column = codes[j, start:stop]
    for i in range(stop - start):
        cells[i] = np.uint16(np.int32((np.float32(column[i]) - np.float32(0.5)) * inverse))
    for i in range(stop - start):
        cells[i] = np.uint16(size - 1) if column[i] == np.uint16(MISSING_LOW) else cells[i]


@kernel
def count_equi_width(codes, widths, offsets, weights, counts):
    """Count rows into one histogram a feature, of cells ``widths[j]`` codes wide."""
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
