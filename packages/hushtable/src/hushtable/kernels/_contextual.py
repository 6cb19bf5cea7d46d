"""Tables of pairs: the cell of a row's context, and in it the cell of its behaviour."""

import numpy as np

from hushtable.kernels._cache import kernel
from hushtable.kernels._common import BLOCK, add, inlined
from hushtable.kernels._random_feature import _cell_of_row, _random_feature_cells


@inlined
def context_cells(t, start, stop, codes, context, own, upper, planes, cells):
    """Write the context's cell in table ``t`` for each row of a block.

    ``context`` are hash functions, as those of `count_random_feature`; or None, and each value of
    the categorical feature ``own`` is a context.
    """
    if context is None:
        column = codes[own, start:stop]
        for i in range(stop - start):
            cells[i] = column[i]
    else:
        _random_feature_cells(t, start, stop, codes, context, context[5], upper, planes, cells)


@inlined
def _pair_cells(t, start, stop, codes, behaviour, context, own, width, scratch, cells):
    """Write the cell of table ``t``, counted from the table's first, for each row of a block."""
    upper, planes, contexts = scratch
    context_cells(t, start, stop, codes, context, own, upper, planes, contexts)
    _random_feature_cells(t, start, stop, codes, behaviour, behaviour[5], upper, planes, cells)
    for i in range(stop - start):
        cells[i] = np.uint16(np.uint16(contexts[i] * np.uint16(width)) + cells[i])


@inlined
def _pair_cell(i, t, codes, behaviour, context, own, width):
    """Return the cell of row ``i`` in table ``t``, counted from the table's first."""
    cell = np.int64(_cell_of_row(i, t, codes, behaviour))
    if context is None:
        return np.int64(codes[own, i]) * width + cell
    return np.int64(_cell_of_row(i, t, codes, context)) * width + cell


@kernel
def count_contextual(codes, behaviour, context, own, width, size, weights, counts):
    """Count rows into the cells of every table of a Contextual family.

    ``behaviour`` and ``context`` are hash functions, as those of `count_random_feature`;
    ``context`` may be None: see `context_cells`. Each of ``size`` cells of a table is one of
    ``width`` cells of the behaviour within a context. ``weights`` (n,) int64, or empty for one
    each. ``counts`` int64.
    """
    n = codes.shape[1]
    scratch = np.empty(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8), np.empty(BLOCK, np.uint16)
    cells = np.empty(BLOCK, np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(len(behaviour[0]) - 1):
            _pair_cells(t, start, stop, codes, behaviour, context, own, width, scratch, cells)
            add(cells, stop - start, weights, start, t * size, counts)


@kernel
def count_pairs_contextual(
    codes, behaviour, context, own, width, size, pair_row, pair_table, counts
):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, a row at a time."""
    for p in range(len(pair_row)):
        t = pair_table[p]
        cell = _pair_cell(pair_row[p], t, codes, behaviour, context, own, width)
        counts[t * size + cell] += 1


@kernel
def sum_contextual(codes, behaviour, context, own, width, size, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell."""
    n = codes.shape[1]
    scratch = np.empty(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8), np.empty(BLOCK, np.uint16)
    cells = np.empty(BLOCK, np.uint16)
    total = np.empty(BLOCK, np.float64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total[:] = 0.0
        for t in range(len(behaviour[0]) - 1):
            _pair_cells(t, start, stop, codes, behaviour, context, own, width, scratch, cells)
            table = values[t * size : (t + 1) * size]
            for i in range(stop - start):
                total[i] += table[cells[i]]
        for i in range(stop - start):
            totals[start + i] = total[i]
