"""Gains of a row's score in each table if one of its features had another value."""

import numpy as np

from hushtable.kernels._common import fold, inlined, kernel
from hushtable.kernels._random_feature import concatenate, context_cells

#: Rows that one loop processes: half of a block, because the gains of all features are kept.
ROWS = 2_048
EVERY_BIT = np.uint32(0xFFFFFFFF)


@inlined
def _full_codes(which, block, codes, functions, halves, full):
    """Write (h_begin(x), ..., h_end-1(x)), at most 32 bits, into ``full`` for each row."""
    (begin, end), n = which, block[1] - block[0]
    half, upper, lower = max(begin, end - 16), halves[0], halves[1]
    concatenate((half, end), block, codes, functions, None, lower)
    upper[:n] = 0
    if begin < half:
        concatenate((begin, half), block, codes, functions, None, upper)
    for i in range(n):
        full[i] = np.uint32(np.uint32(upper[i]) << np.uint32(16)) | np.uint32(lower[i])


@inlined
def _changed_cells(n, codes, keep, flip, folded, size, cells):
    """Write the cells of ``n`` codes after keeping the bits ``keep`` and changing ``flip``."""
    if folded:
        for i in range(n):
            cells[i] = fold(np.uint32(np.uint32(codes[i] & keep) ^ flip), size)
    else:
        for i in range(n):
            cells[i] = np.uint16(np.uint32(codes[i] & keep) ^ flip)


@inlined
def _rare_rows(n, table, cells, limit, total, rare_rows):
    """Add each row's value to ``total``; write the numbers of those below the limit, and count."""
    rare = 0
    for i in range(n):
        value = table[cells[i]]
        total[i] += value
        # Written for every row, and used only for the rare ones, to avoid a branch.
        rare_rows[rare] = i
        rare += value < limit
    return rare


@inlined
def _first_cell(t, offsets, place):
    """Return the first cell of a table; with contexts, its first pair."""
    if place is None:
        return offsets[t]
    return t * place[3]


@inlined
def _contexts(t, block, codes, context, place, room, begins):
    """Write where the cells of each row's context begin in the table; nothing without contexts."""
    if place is not None:
        own, shared, width, _ = place
        if t % shared == 0:  # otherwise they are those of the previous table
            context_cells(t // shared, block, codes, context, own, room, begins)
            for i in range(block[1] - block[0]):
                begins[i] = np.uint16(begins[i] * np.uint16(width))


@inlined
def _within(n, place, begins, cells):
    """Move cells to those of their context; nothing without contexts."""
    if place is not None:
        for i in range(n):
            cells[i] = np.uint16(cells[i] + begins[i])


@inlined
def _raise_to_best(n, codes, patterns, moved, table, cells, best):
    """Raise each row's value to the highest of its cells by other bits of one feature."""
    others, folded, size, place, begins = moved
    for p in range(len(patterns)):
        _changed_cells(n, codes, others, patterns[p], folded, size, cells)
        _within(n, place, begins, cells)
        for i in range(n):
            best[i] = max(best[i], table[cells[i]])


@inlined
def _take_rare(rare, rare_rows, of_rows, of_rare):
    for i in range(rare):
        of_rare[i] = of_rows[rare_rows[i]]


@inlined
def _take_values(rare, rare_rows, table, cells, of_rare):
    for i in range(rare):
        of_rare[i] = table[cells[rare_rows[i]]]


@inlined
def _write(start, stop, gained, total, gains, totals):
    """Write the gains of a block; not by slices, whose shape errors take long to compile."""
    for i in range(stop - start):
        totals[start + i] = total[i]
    for j in range(len(gained)):
        gain = gained[j]
        for i in range(stop - start):
            gains[start + i, j] = gain[i]


@kernel
def gain_random_feature(codes, functions, context, place, reachable, values, limits, gains, totals):
    """Write each row's sum of ``values``, and what another value of each feature would gain.

    In table t, the gain by a feature is max(0, v' - v): v is the row's value there, v' the
    highest value of the cells that the row reaches if the bits of this feature's functions change
    and all others stay. A table adds gains only to rows with v < ``limits[t]``.

    ``functions`` is that of `count_random_feature`, with each table separate. ``reachable`` is
    (groups, feature, bits, at, patterns): table t has the groups ``groups[t]..groups[t + 1]``,
    one for each feature in it; group g contains the functions of ``feature[g]``, whose bits in the
    code are ``bits[g]``, and which can be ``patterns[at[g]..at[g + 1]]`` or, if there are none, one
    bit that can be flipped. ``gains`` (n, d) and ``totals`` (n,) are float64.

    ``context`` and ``place`` are None, or those of `count_contextual`: ``functions`` are then those
    of the behaviour, and the context stays.
    """
    n, d, first, offsets = codes.shape[1], gains.shape[1], functions[0], functions[6]
    groups, feature, bits, at, patterns = reachable
    halves = np.empty((2, ROWS), np.uint16)
    full, rare_codes = np.empty(ROWS, np.uint32), np.empty(ROWS, np.uint32)
    rare_rows, cells = np.empty(ROWS, np.int32), np.empty(ROWS, np.uint16)
    current, best = np.empty(ROWS, np.float64), np.empty(ROWS, np.float64)
    total, gained = np.empty(ROWS, np.float64), np.empty((d, ROWS), np.float64)
    begins, rare_begins = np.empty(ROWS, np.uint16), np.empty(ROWS, np.uint16)
    room = np.empty(ROWS, np.uint16), np.empty((2, ROWS), np.uint8)
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        total[:] = 0.0
        gained[:] = 0.0
        for t in range(len(offsets) - 1):
            begin, end, size = first[t], first[t + 1], offsets[t + 1] - offsets[t]
            folded, limit = size < np.int64(1) << (end - begin), limits[t]
            block = start, stop
            table = values[_first_cell(t, offsets, place) :]
            _contexts(t, block, codes, context, place, room, begins)
            _full_codes((begin, end), block, codes, functions, halves, full)
            _changed_cells(stop - start, full, EVERY_BIT, np.uint32(0), folded, size, cells)
            _within(stop - start, place, begins, cells)
            rare = _rare_rows(stop - start, table, cells, limit, total, rare_rows)
            _take_rare(rare, rare_rows, full, rare_codes)
            _take_rare(rare, rare_rows, begins, rare_begins)
            _take_values(rare, rare_rows, table, cells, current)
            for g in range(groups[t], groups[t + 1]):
                gain = gained[feature[g]]
                if at[g] == at[g + 1]:
                    _changed_cells(rare, rare_codes, EVERY_BIT, bits[g], folded, size, cells)
                    _within(rare, place, rare_begins, cells)
                    for i in range(rare):
                        gain[rare_rows[i]] += max(0.0, table[cells[i]] - current[i])
                else:
                    reached = patterns[at[g] : at[g + 1]]
                    moved = np.uint32(~bits[g]), folded, size, place, rare_begins
                    for i in range(rare):
                        best[i] = current[i]
                    _raise_to_best(rare, rare_codes, reached, moved, table, cells, best)
                    for i in range(rare):
                        gain[rare_rows[i]] += best[i] - current[i]
        _write(start, stop, gained, total, gains, totals)
