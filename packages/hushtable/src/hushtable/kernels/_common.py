"""Codes, and adding, which the kernels share."""

from typing import Any

import numba
import numpy as np

#: Rows that one loop runs over: what a loop costs to begin is then little, and a few columns of
#: codes and cells stay in the second cache.
BLOCK = 4_096
#: Rows whose counts in one table are gathered, before those in the next: the table's counters
#: stay in the first cache, and are added to all counts once.
SPAN = 4 * BLOCK


#: How Numba compiles what kernels call: Python does not call it, and it takes no memory for itself.
#: It then need not count the references to the arrays that it is given: where LLVM leaves it a
#: function of its own, counting takes longer than a loop over a thousand rows.
INLINED: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inlined(function: Any) -> Any:
    return numba.njit(**INLINED)(function)


@inlined
def gather(cells, n, lanes):
    """Count ``n`` cells, in four lanes.

    Rows in a row often fall into the same cell, and a counter that was just written is slow to
    read again: with four counters for each cell it rarely was.
    """
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    i = 0
    while i + 3 < n:
        a[cells[i]] += np.uint32(1)
        b[cells[i + 1]] += np.uint32(1)
        c[cells[i + 2]] += np.uint32(1)
        d[cells[i + 3]] += np.uint32(1)
        i += 4
    while i < n:
        a[cells[i]] += np.uint32(1)
        i += 1


@inlined
def empty_lanes(lanes, size):
    """Add the lanes up in the first, and let the others begin again."""
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for cell in range(size):
        a[cell] = np.uint32((a[cell] + b[cell]) + (c[cell] + d[cell]))
    lanes[1:, :size] = 0


@inlined
def add(cells, n, weights, start, offset, counts):
    if weights.size == 0:
        for i in range(n):
            counts[offset + cells[i]] += 1
    else:
        for i in range(n):
            counts[offset + cells[i]] += weights[start + i]
