"""What the kernels share: codes, compilation, adding."""

from typing import Any

import numba

BLOCK = 512
#: 255 * 256 levels: a multiple of every power of two up to 256, so that the cells of an
#: equal-width histogram are exact unions of levels.
LEVELS = 65_280
MISSING_LOW = 0
MISSING_HIGH = 65_535


def kernel(function: Any) -> Any:
    return numba.njit(nogil=True, cache=True)(function)


def inlined(function: Any) -> Any:
    return numba.njit(inline="always")(function)


@inlined
def add(cells, n, weights, start, offset, counts):
    if weights.size == 0:
        for i in range(n):
            counts[offset + cells[i]] += 1
    else:
        for i in range(n):
            counts[offset + cells[i]] += weights[start + i]
