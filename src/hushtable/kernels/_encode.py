"""Values to codes."""

import numpy as np

from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.kernels._cache import kernel

#: Rows whose values of one column are gathered from the rows' layout.
_TILE = 1_024
#: Rows and columns whose codes `encode_wide` moves over at once.
_ROWS, _COLUMNS = 64, 128


@kernel
def column_ranges(X, low, high):
    """Fold the rows of ``X`` (n, d) into running minima and maxima (d,); NaN is passed over.

    Returns the first (row, column) that holds an infinity, or (-1, -1).
    """
    n, d = X.shape
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        if d == 1:
            lowest, highest = low[0], high[0]
            for i in range(start, stop):
                x = np.float64(X[i, 0])
                lowest = x if x < lowest else lowest
                highest = x if x > highest else highest
            low[0], high[0] = lowest, highest
        else:
            for i in range(start, stop):
                for j in range(d):
                    x = np.float64(X[i, j])
                    low[j] = x if x < low[j] else low[j]
                    high[j] = x if x > high[j] else high[j]
        for j in range(d):
            if low[j] == -np.inf or high[j] == np.inf:
                for i in range(start, stop):
                    if np.isinf(X[i, j]):
                        return i, j
    return -1, -1


@kernel
def encode(X, low, high, scale, codes, tally):
    """Encode the numbers of ``X`` (n, d) into ``codes`` (d, n), missing as ``MISSING_LOW``.

    ``scale`` is LEVELS / (high - low), 0 for a constant feature. ``tally`` (d, 2) receives the
    numbers of missing and of clipped values. Returns the first (row, column) of an infinity,
    or (-1, -1). The arithmetic is one float64 subtraction and one multiplication, never fused,
    so that every platform rounds alike.
    """
    n, d = X.shape
    # Side by side, whatever the rows' layout: the two loops over them then run by vectors.
    values = np.empty(_TILE, np.float64)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        for j in range(d):
            lowest, highest, factor, column = low[j], high[j], scale[j], codes[j, start:stop]
            for i in range(stop - start):
                values[i] = np.float64(X[start + i, j])
            inside = np.int64(0)
            for i in range(stop - start):
                inside += np.int64((values[i] >= lowest) & (values[i] <= highest))
            for i in range(stop - start):
                level = min(max((values[i] - lowest) * factor, 0.0), LEVELS - 1.0)
                column[i] = np.uint16(np.int32(level) + 1)
            if inside < stop - start:
                for i in range(stop - start):
                    x = values[i]
                    if x != x:
                        column[i] = MISSING_LOW
                        tally[j, 0] += 1
                    elif x < lowest or x > highest:
                        tally[j, 1] += 1
                        if np.isinf(x):
                            return start + i, j
    return -1, -1


@kernel
def encode_wide(X, low, high, scale, codes, tally):
    """Encode as `encode` does, by vectors of columns, and move the codes: for many columns."""
    n, d = X.shape
    level = np.empty((_ROWS, _COLUMNS), np.uint16)
    for start in range(0, n, _ROWS):
        k = min(_ROWS, n - start)
        for first in range(0, d, _COLUMNS):
            w = min(_COLUMNS, d - first)
            lowest, highest = low[first : first + w], high[first : first + w]
            factor = scale[first : first + w]
            inside = np.int64(0)
            for i in range(k):
                x, out = X[start + i, first : first + w], level[i]
                for j in range(w):
                    value = np.float64(x[j])
                    inside += np.int64((value >= lowest[j]) & (value <= highest[j]))
                for j in range(w):
                    value = min(max((np.float64(x[j]) - lowest[j]) * factor[j], 0.0), LEVELS - 1.0)
                    out[j] = np.uint16(np.int32(value) + 1)
            for j in range(w):
                column = codes[first + j, start : start + k]
                for i in range(k):
                    column[i] = level[np.uint64(i), np.uint64(j)]
            if inside < k * w:
                for i in range(k):
                    for j in range(first, first + w):
                        x = np.float64(X[start + i, j])
                        if x != x:
                            codes[j, start + i] = MISSING_LOW
                            tally[j, 0] += 1
                        elif x < low[j] or x > high[j]:
                            tally[j, 1] += 1
                            if np.isinf(x):
                                return start + i, j
    return -1, -1
