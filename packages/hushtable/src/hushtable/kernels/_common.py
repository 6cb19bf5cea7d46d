"""Mixing keys into cells, and adding, for all kernels."""

from typing import Any

import numba
import numpy as np

#: Rows that one loop processes: the cost of starting a loop is then small, and a few columns of
#: codes and cells fit in the second-level cache.
BLOCK = 4_096
#: Rows whose counts in one table are collected before those in the next: the table's counters
#: stay in the first-level cache, and are added to all counts once.
SPAN = 4 * BLOCK


#: How Numba compiles functions that only kernels call: Python does not call them, and they allocate
#: no memory. Numba then does not have to count references to their arrays: in functions that LLVM
#: does not inline, counting takes longer than a loop over a thousand rows.
INLINED: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inlined(function: object) -> Any:
    return numba.njit(**INLINED)(function)


@inlined
def gather(cells, n, lanes):
    """Count ``n`` cells, in four lanes.

    Consecutive rows often fall into the same cell, and a counter that was just written is slow to
    read again: with four counters for each cell this happens rarely.
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
    """Add the lanes up in the first one, and reset the others."""
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


@inlined
def mix(key):
    """Mix 32 bits: MurmurHash3's fmix32."""
    h = np.uint32(key)
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@inlined
def fold(code, cells):
    """Mix a code of 32 bits into ``cells`` (a power of two) cells."""
    return np.uint16(mix(code) & np.uint32(cells - 1))
