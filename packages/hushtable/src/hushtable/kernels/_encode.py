"""Values to codes."""

import numba
import numpy as np

from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.kernels._common import inlined, kernel

#: Rows for which values of one column are gathered from the rows' layout.
_TILE = 1_024
#: Rows and columns whose codes `encode_wide` moves at once.
_ROWS, _COLUMNS = 64, 128
#: Of four codes in a word, the first and the third; the first two.
_EVEN, _LOWER, _WORD = np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF), np.uint64(16)


@kernel
def column_ranges(X, low, high):
    """Fold the rows of ``X`` (n, d) into running minima and maxima (d,); NaN is skipped.

    Returns the first (row, column) that holds an infinity, or (-1, -1). For four consecutive rows,
    a column's ends are loaded and stored once, in the type of ``X``, so that vectors hold more.
    """
    n, d = X.shape
    least, most = np.empty(d, X.dtype), np.empty(d, X.dtype)
    for j in range(d):
        least[j], most[j] = np.inf, -np.inf
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        if d == 1:
            lowest, highest = least[0], most[0]
            for i in range(start, stop):
                x = X[i, 0]
                lowest = x if x < lowest else lowest
                highest = x if x > highest else highest
            least[0], most[0] = lowest, highest
        else:
            fours = start + (stop - start) // 4 * 4
            for i in range(start, fours, 4):
                for j in range(d):
                    lowest, highest = least[j], most[j]
                    for k in range(4):
                        x = X[i + k, j]
                        lowest = x if x < lowest else lowest
                        highest = x if x > highest else highest
                    least[j], most[j] = lowest, highest
            for i in range(fours, stop):
                for j in range(d):
                    x = X[i, j]
                    least[j] = x if x < least[j] else least[j]
                    most[j] = x if x > most[j] else most[j]
        for j in range(d):
            if least[j] == -np.inf or most[j] == np.inf:
                for i in range(start, stop):
                    if np.isinf(X[i, j]):
                        return i, j
    for j in range(d):
        low[j], high[j] = min(low[j], np.float64(least[j])), max(high[j], np.float64(most[j]))
    return -1, -1


@kernel
def keep_outermost(X, first, start, weights, numbers, rows):
    """Keep the lowest and the highest numbers of each column of ``X`` (n, k), and their rows.

    ``numbers`` (2, d, m) float64 and ``rows`` (2, d, m) int64 hold those of earlier rows, rising:
    ``numbers[1]`` are the highest, negated. Column 0 of ``X`` is their column ``first``, and row 0
    of ``X`` is row ``start``. Each row is kept once. ``weights`` are those of all rows; a row
    counts if its weight is positive. They are empty if all rows count.
    """
    n, k = X.shape
    ends = np.empty((2, k), np.float64)
    for begin in range(0, n, _ROWS):
        tile = X[begin : begin + _ROWS]
        for j in range(k):
            ends[0, j], ends[1, j] = np.inf, -np.inf
        column_ranges(tile, ends[0], ends[1])
        for side in range(2):
            sign = 1.0 - 2.0 * side
            for j in range(k):
                best, at = numbers[side, first + j], rows[side, first + j]
                if not sign * ends[side, j] < best[-1]:
                    continue
                for i in range(len(tile)):
                    x, row = sign * np.float64(tile[i, j]), start + begin + i
                    if not x < best[-1] or (len(weights) > 0 and weights[row] <= 0):
                        continue
                    kept = False
                    for other in at:
                        kept |= other == row
                    if kept:
                        continue
                    place = len(best) - 1
                    while place > 0 and x < best[place - 1]:
                        best[place], at[place] = best[place - 1], at[place - 1]
                        place -= 1
                    best[place], at[place] = x, row


@kernel
def take_rows(codes, rows, taken):
    """Write some rows of ``codes`` (d, n), by their numbers (k,), into ``taken`` (d, k)."""
    for j in range(len(codes)):
        column, out = codes[j], taken[j]
        for i in range(len(rows)):
            out[i] = column[np.uint64(rows[i])]


@inlined
def count_there(x):
    """Return how many values are not missing, and the place of the first infinity, or -1."""
    known, finite = np.int64(0), np.int64(0)
    for i in range(len(x)):
        known += np.int64(x[i] == x[i])
        finite += np.int64(abs(x[i]) < np.inf)
    if finite < known:
        for i in range(len(x)):
            if np.isinf(x[i]):
                return known, i
    return known, -1


@inlined
def _mark_missing(x, codes):
    """Give missing values their code, without branches: the loop runs by vectors."""
    for i in range(len(x)):
        code = codes[i]
        codes[i] = code if x[i] == x[i] else np.uint16(MISSING_LOW)


@inlined
def note_odd(x, least, most, noted, first):
    """Add the missing values of a row, and those outside, to ``noted`` (2, d) from ``first`` on."""
    missing, outside = noted[0, first : first + len(x)], noted[1, first : first + len(x)]
    for j in range(len(x)):
        missing[j] += np.int64(x[j] != x[j])
        outside[j] += np.int64((x[j] < least[j]) | (x[j] > most[j]))


@inlined
def add_noted(noted, tally):
    for j in range(len(tally)):
        tally[j, 0] += noted[0, j]
        tally[j, 1] += noted[1, j]


@kernel
def encode(X, low, high, scale, codes, tally):
    """Encode the numbers of ``X`` (n, d) into ``codes`` (d, n), missing as ``MISSING_LOW``.

    ``scale`` is LEVELS / (high - low), 0 for a constant feature. ``tally`` (d, 2) receives the
    numbers of missing and of clipped values. Returns the first (row, column) of an infinity,
    or (-1, -1). The arithmetic is one float64 subtraction and one multiplication, never fused,
    so that every platform rounds in the same way.
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
                known, infinity = count_there(values[: stop - start])
                if infinity >= 0:
                    return start + infinity, j
                _mark_missing(values[: stop - start], column)
                tally[j, 0] += stop - start - known
                tally[j, 1] += known - inside
    return -1, -1


@numba.njit
def ends_as(X, low, high):
    """Return the ends of ranges in the type of ``X``: no value of it is in between."""
    d = len(low)
    least, most = np.empty(d, X.dtype), np.empty(d, X.dtype)
    for j in range(d):
        least[j], most[j] = low[j], high[j]
        if np.float64(least[j]) < low[j]:
            least[j] = np.nextafter(least[j], np.float32(np.inf))
        if np.float64(most[j]) > high[j]:
            most[j] = np.nextafter(most[j], np.float32(-np.inf))
    return least, most


@inlined
def count_inside(x, least, most):
    """Return how many values of a row are in their ranges, whose ends have the row's type."""
    inside = np.int32(0)
    for j in range(len(x)):
        inside = np.int32(inside + np.int32((x[j] >= least[j]) & (x[j] <= most[j])))
    return np.int64(inside)


@inlined
def _transpose_fours(words, rows, columns):
    """Exchange rows and columns in squares of four codes: each ``words[i, j]`` holds four."""
    for i in range(0, rows, 4):
        p, q, r, s = words[i], words[i + 1], words[i + 2], words[i + 3]
        for j in range((columns + 3) // 4):
            pq_even = (p[j] & _EVEN) | ((q[j] & _EVEN) << _WORD)
            pq_odd = ((p[j] >> _WORD) & _EVEN) | (q[j] & ~_EVEN)
            rs_even = (r[j] & _EVEN) | ((s[j] & _EVEN) << _WORD)
            rs_odd = ((r[j] >> _WORD) & _EVEN) | (s[j] & ~_EVEN)
            p[j] = (pq_even & _LOWER) | (rs_even << (_WORD + _WORD))
            q[j] = (pq_odd & _LOWER) | (rs_odd << (_WORD + _WORD))
            r[j] = (pq_even >> (_WORD + _WORD)) | (rs_even & ~_LOWER)
            s[j] = (pq_odd >> (_WORD + _WORD)) | (rs_odd & ~_LOWER)


@kernel
def encode_wide(X, low, high, scale, codes, tally):
    """Encode like `encode`, by vectors of columns, and move the codes: for many columns.

    Codes are moved four at a time, in words, from the first-level cache to their columns.
    """
    n, d = X.shape
    # Zeros: unused parts are moved too, and ignored.
    level, moved = np.zeros((_ROWS, _COLUMNS), np.uint16), np.zeros(_ROWS, np.uint16)
    words, moved_words = level.view(np.uint64), moved.view(np.uint64)
    least, most = ends_as(X, low, high)
    noted = np.zeros((2, d), np.int64)  # side by side, unlike in the tally
    for start in range(0, n, _ROWS):
        k = min(_ROWS, n - start)
        for first in range(0, d, _COLUMNS):
            w = min(_COLUMNS, d - first)
            lowest, factor = low[first : first + w], scale[first : first + w]
            low_end, high_end = least[first : first + w], most[first : first + w]
            for i in range(k):
                x, out = X[start + i, first : first + w], level[i]
                inside = count_inside(x, low_end, high_end)
                for j in range(w):
                    value = min(max((np.float64(x[j]) - lowest[j]) * factor[j], 0.0), LEVELS - 1.0)
                    out[j] = np.uint16(np.int32(value) + 1)
                if inside < w:
                    _, infinity = count_there(x)
                    if infinity >= 0:
                        return start + i, first + infinity
                    _mark_missing(x, out)
                    note_odd(x, low_end, high_end, noted, first)
            _transpose_fours(words, k, w)
            for j in range(w):
                for i in range((k + 3) // 4):
                    moved_words[i] = words[np.uint64(4 * i + j % 4), np.uint64(j // 4)]
                column = codes[first + j, start : start + k]
                for i in range(k):
                    column[i] = moved[i]
    add_noted(noted, tally)
    return -1, -1


@kernel
def find_outside(X, low, high, codes, features, rows):
    """Write the rows of the values of some features outside their ranges, feature by feature.

    ``X`` (n, d), ``low`` and ``high`` (d,) are as for `encode`, ``codes`` (d, n) are its result.
    ``features`` (k,) are numbers of columns. The search ends when ``rows``, not empty, is full. A
    value outside has the code of an end of its range, and few others do: only those are read again,
    because the values of a column lie far apart.
    """
    n_found, at_end = 0, np.empty(_ROWS, np.uint16)
    for j in features:
        column, values, lowest, highest = codes[j], X[:, j], low[j], high[j]
        for start in range(0, len(column), _ROWS):
            some, ends = column[start : start + _ROWS], np.uint16(0)
            for i in range(len(some)):
                ends = np.uint16(ends + np.uint16((some[i] == 1) | (some[i] == LEVELS)))
            if ends:
                for i in range(len(some)):
                    at_end[i] = np.uint16((some[i] == 1) | (some[i] == LEVELS))
                for i in range(len(some)):
                    if at_end[i]:
                        x = np.float64(values[start + i])
                        if (x < lowest) | (x > highest):
                            rows[n_found] = start + i
                            n_found += 1
                            if n_found == len(rows):
                                return
