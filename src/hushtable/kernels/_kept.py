"""Cells that were kept of rows, so that the rows need not be hashed again."""

from hushtable.kernels._cache import kernel
from hushtable.kernels._common import BLOCK


@kernel
def count_kept(kept, rows, weights, offsets, counts):
    """Count some rows by their cells in each table.

    ``kept`` (m, n) uint8, counted from a table's first; ``rows`` (k,) int64; ``weights`` (k,)
    int64, or empty for one each; ``offsets`` (m + 1,) of the tables in ``counts`` int64.
    """
    for t in range(len(kept)):
        cells, table = kept[t], counts[offsets[t] : offsets[t + 1]]
        if weights.size == 0:
            for i in range(len(rows)):
                table[cells[rows[i]]] += 1
        else:
            for i in range(len(rows)):
                table[cells[rows[i]]] += weights[i]


@kernel
def sum_kept(kept, values, offsets, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell."""
    totals[:] = 0.0
    n = len(totals)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total = totals[start:stop]
        for t in range(len(kept)):
            cells, table = kept[t, start:stop], values[offsets[t] : offsets[t + 1]]
            for i in range(stop - start):
                total[i] += table[cells[i]]
