"""Tables of random-feature LSH: compare one feature with one cut, concatenate the answers.

Also tables of pairs: the cell of a row's context, and within it the cell of its behaviour.
"""

import numpy as np
from numba import types
from numba.extending import overload

from hushtable.kernels._common import (
    BLOCK,
    INLINED,
    SPAN,
    add,
    empty_lanes,
    fold,
    gather,
    inlined,
    kernel,
    mix,
)


def _concatenate_codes(which, block, codes, functions, planes, bits):
    """Concatenate the answers to codes.

    Two hash functions at a time if both are cuts: this halves the loads and stores of ``bits``.
    """
    _, rows, cuts, subset_at, subsets, _, _ = functions
    (h, end), (start, stop) = which, block
    n = stop - start
    bits[:n] = 0
    while h < end:
        a, cut_a = codes[rows[h], start:stop], cuts[h]
        if h + 1 < end and (subset_at[h] & subset_at[h + 1]) < 0:
            b, cut_b = codes[rows[h + 1], start:stop], cuts[h + 1]
            for i in range(n):
                bits[i] = np.uint16(
                    (bits[i] << np.uint16(2))
                    | (np.uint16(a[i] >= cut_a) << np.uint16(1))
                    | np.uint16(b[i] >= cut_b)
                )
            h += 2
        elif subset_at[h] < 0:
            for i in range(n):
                bits[i] = np.uint16((bits[i] << np.uint16(1)) | np.uint16(a[i] >= cut_a))
            h += 1
        else:
            sides = subsets[subset_at[h] :]
            for i in range(n):
                bits[i] = np.uint16((bits[i] << np.uint16(1)) | np.uint16(sides[a[i]]))
            h += 1


@inlined
def _mask(masks, h):
    """Return the bits of a rank that a hash function compares: all, or one bit of a category."""
    return np.int8(-1) if masks is None else masks[h]


@inlined
def _side(rank, mask, cut):
    return np.uint8(np.int8(rank & mask) >= cut)


@inlined
def _answers(eight, end, start, stop, ranks, functions, plane):
    """Write the answers of eight hash functions, or four, as the bits of a byte for each row."""
    rows, cuts, masks = functions[1], functions[2], functions[3]
    e, f = ranks[rows[end - 4], start:stop], ranks[rows[end - 3], start:stop]
    g, h = ranks[rows[end - 2], start:stop], ranks[rows[end - 1], start:stop]
    cut_e, cut_f, cut_g, cut_h = cuts[end - 4], cuts[end - 3], cuts[end - 2], cuts[end - 1]
    in_e, in_f, in_g, in_h = (
        _mask(masks, end - 4), _mask(masks, end - 3), _mask(masks, end - 2), _mask(masks, end - 1)
    )  # fmt: skip
    if eight:
        a, b = ranks[rows[end - 8], start:stop], ranks[rows[end - 7], start:stop]
        c, d = ranks[rows[end - 6], start:stop], ranks[rows[end - 5], start:stop]
        cut_a, cut_b, cut_c, cut_d = cuts[end - 8], cuts[end - 7], cuts[end - 6], cuts[end - 5]
        in_a, in_b, in_c, in_d = (
            _mask(masks, end - 8), _mask(masks, end - 7),
            _mask(masks, end - 6), _mask(masks, end - 5),
        )  # fmt: skip
        for i in range(stop - start):
            ab = (_side(a[i], in_a, cut_a) << np.uint8(7)) | (
                _side(b[i], in_b, cut_b) << np.uint8(6)
            )
            cd = (_side(c[i], in_c, cut_c) << np.uint8(5)) | (
                _side(d[i], in_d, cut_d) << np.uint8(4)
            )
            ef = (_side(e[i], in_e, cut_e) << np.uint8(3)) | (
                _side(f[i], in_f, cut_f) << np.uint8(2)
            )
            gh = (_side(g[i], in_g, cut_g) << np.uint8(1)) | _side(h[i], in_h, cut_h)
            plane[i] = np.uint8((ab | cd) | (ef | gh))
    else:
        for i in range(stop - start):
            ef = (_side(e[i], in_e, cut_e) << np.uint8(3)) | (
                _side(f[i], in_f, cut_f) << np.uint8(2)
            )
            gh = (_side(g[i], in_g, cut_g) << np.uint8(1)) | _side(h[i], in_h, cut_h)
            plane[i] = np.uint8(ef | gh)


def _concatenate_ranks(which, block, codes, functions, planes, bits):
    """Concatenate the answers to ranks, first by bytes, then the bytes side by side.

    Functions come in fours: see `hushtable.plans.families.random_feature`.
    """
    (begin, end), (start, stop) = which, block
    low, high = planes[0], planes[1]
    _answers(end - begin > 4, end, start, stop, codes, functions, low)
    if end - begin > 8:
        _answers(end - begin > 12, end - 8, start, stop, codes, functions, high)
        for i in range(stop - start):
            bits[i] = np.uint16(np.uint16(low[i]) | np.uint16(np.uint16(high[i]) << np.uint16(8)))
    else:
        for i in range(stop - start):
            bits[i] = np.uint16(low[i])


def concatenate(*arguments: object) -> None:
    """Write (h_begin(x), ..., h_end-1(x)), at most 16 bits, into ``bits`` for each row.

    The hash functions are ``which`` = (begin, end), and the rows ``block`` = (start, stop).
    ``planes`` (2, BLOCK) uint8 is room for the answers to ranks. Numba compiles it for the type of
    the codes: a branch would cost the time to compile both.
    """


@overload(concatenate, jit_options=INLINED)
def _concatenate_which(which, block, codes, functions, planes, bits):
    return _concatenate_ranks if codes.dtype == types.int8 else _concatenate_codes


@inlined
def _fold_pairs(n, upper, cells, size):
    """Fold two codes of a pair of rows at a time, in place: vectors stay 32 bits a lane."""
    low, mask = np.uint32(0xFFFF), np.uint32(size - 1)
    for i in range((n + 1) // 2):
        first = np.uint32(np.uint32(upper[i] << np.uint32(16)) | np.uint32(cells[i] & low))
        second = np.uint32(
            np.uint32(upper[i] & np.uint32(~low)) | np.uint32(cells[i] >> np.uint32(16))
        )
        first, second = np.uint32(mix(first) & mask), np.uint32(mix(second) & mask)
        cells[i] = np.uint32(first | np.uint32(second << np.uint32(16)))


@inlined
def _random_feature_cells(t, block, codes, functions, folded, room, cells):
    """Write the cell of table ``t``, counted from the table's first, for each row of a block.

    ``block`` is (start, stop), and ``room`` arrays that are overwritten. ``folded`` is None if no
    table has fewer cells than codes: Numba then leaves the folding out, which makes the loop over
    dense tables a quarter faster.
    """
    first, offsets = functions[0], functions[6]
    begin, end, size = first[t], first[t + 1], offsets[t + 1] - offsets[t]
    half, n, (upper, planes) = max(begin, end - 16), block[1] - block[0], room
    concatenate((half, end), block, codes, functions, planes, cells)
    if folded is not None:
        if begin < half:
            concatenate((begin, half), block, codes, functions, planes, upper)
            _fold_pairs(n, upper.view(np.uint32), cells.view(np.uint32), size)
        elif folded[t]:
            upper[:] = 0
            _fold_pairs(n, upper.view(np.uint32), cells.view(np.uint32), size)


@inlined
def _take_apart(joined, size, first, last, parts, counts):
    """Add the counts of a joined table to those of its tables; they are overwritten."""
    _, at, sizes = parts
    for p in range(first, last):
        low = size // sizes[p]  # cells of the tables that follow, in the lower bits
        if low == 1:
            for cell in range(size):
                counts[at[p] + cell] += np.int64(joined[cell])
        else:
            for cell in range(sizes[p]):
                rows = np.uint32(0)
                for rest in range(low):
                    rows = np.uint32(rows + joined[cell * low + rest])
                counts[at[p] + cell] += np.int64(rows)
            for cell in range(1, sizes[p]):
                for rest in range(low):
                    joined[rest] = np.uint32(joined[rest] + joined[cell * low + rest])
        joined[low:size] = 0
        size = low
    joined[0] = 0


@kernel
def count_random_feature(codes, functions, parts, weights, counts):
    """Count rows into the cells of every table of a RandomFeature family.

    ``functions`` is (first, rows, cuts, subset_at, subsets, folded, offsets): table t consists
    of hash functions ``first[t]..first[t + 1]``; hash function h compares row ``rows[h]`` of
    ``codes`` with ``cuts[h]`` or, if ``subset_at[h]`` >= 0, looks up the category's side in
    ``subsets`` from there on. ``folded[t]`` is whether a table has fewer cells than codes;
    ``folded`` is None if none has. Instead of codes there may be ranks of them, int8: a table's
    functions then come in fours, ``subset_at`` has the bits of the ranks that each compares, int8,
    or is None for all bits, and ``subsets`` is None.

    A table may be several of the family's, joined: ``parts`` is (bounds, at, sizes), and table t
    consists of parts ``bounds[t]..bounds[t + 1]``, each with ``sizes[p]`` cells that begin at
    ``at[p]`` in ``counts``. ``weights`` (n,) int64, or empty for one each; they need tables that
    are not joined. ``counts`` is int64.
    """
    n, folded, offsets, bounds = codes.shape[1], functions[5], functions[6], parts[0]
    room = np.empty(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8)
    cells = np.empty(BLOCK, np.uint16)
    largest = np.int64(0)  # not np.diff: it takes longer to compile than everything else
    for t in range(len(offsets) - 1):
        largest = max(largest, offsets[t + 1] - offsets[t])
    lanes = np.zeros((4, largest), np.uint32)
    for begin in range(0, n, SPAN):
        end = min(begin + SPAN, n)
        for t in range(len(offsets) - 1):
            for start in range(begin, end, BLOCK):
                stop = min(start + BLOCK, end)
                _random_feature_cells(t, (start, stop), codes, functions, folded, room, cells)
                if weights.size == 0:
                    gather(cells, stop - start, lanes)
                else:
                    add(cells, stop - start, weights, start, offsets[t], counts)
            if weights.size == 0:
                size = offsets[t + 1] - offsets[t]
                empty_lanes(lanes, size)
                _take_apart(lanes[0], size, bounds[t], bounds[t + 1], parts, counts)


@kernel
def rank_codes(codes, rows, tables, of_codes, ranks):
    """Write ``of_codes[tables[r], c]``, for the codes c of row ``rows[r]``, into ``ranks[r]``."""
    for r in range(len(rows)):
        column, table, out = codes[rows[r]], of_codes[tables[r]], ranks[r]
        for i in range(len(out)):
            out[i] = table[column[i]]


@kernel
def join_values(values, parts, offsets, joined):
    """Write the values of joined tables' cells: the sums of those of their tables' cells."""
    bounds, at, sizes = parts
    for t in range(len(offsets) - 1):
        table = joined[offsets[t] : offsets[t + 1]]
        table[0] = 0.0
        size = 1
        for p in range(bounds[t], bounds[t + 1]):
            cells = sizes[p]
            for upper in range(size - 1, -1, -1):  # from the end: read before overwritten
                value = table[upper]
                for lower in range(cells):
                    table[upper * cells + lower] = value + values[at[p] + lower]
            size *= cells


@inlined
def _cell_of_row(i, t, codes, functions):
    """Return the cell of row ``i`` in table ``t``, counted from the table's first."""
    first, rows, cuts, subset_at, subsets, _, offsets = functions
    bits = np.uint32(0)
    for h in range(first[t], first[t + 1]):
        code = codes[rows[h], i]
        if subset_at[h] < 0:
            side = np.uint32(code >= cuts[h])
        else:
            side = np.uint32(subsets[subset_at[h] + code])
        bits = np.uint32(np.uint32(bits << np.uint32(1)) | side)
    size = offsets[t + 1] - offsets[t]
    cell = np.uint32(bits)
    if size < 1 << (first[t + 1] - first[t]):
        cell = np.uint32(fold(bits, size))
    return cell


@kernel
def count_pairs_random_feature(codes, functions, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, row by row."""
    offsets = functions[6]
    for p in range(len(pair_row)):
        t = pair_table[p]
        counts[offsets[t] + _cell_of_row(pair_row[p], t, codes, functions)] += 1


@kernel
def sum_few_random_feature(codes, functions, values, totals):
    """Sum like `sum_random_feature`, row by row: the loops over blocks are slow to start."""
    offsets = functions[6]
    for i in range(codes.shape[1]):
        totals[i] = 0.0
        for t in range(len(offsets) - 1):
            totals[i] += values[offsets[t] + _cell_of_row(i, t, codes, functions)]


@kernel
def sum_random_feature(codes, functions, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell.

    Four tables are looked up in one pass: a quarter of the loads and stores of the sum.
    """
    n, folded, offsets = codes.shape[1], functions[5], functions[6]
    m = len(offsets) - 1
    room = np.zeros(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8)
    cells = np.zeros((4, BLOCK), np.uint16)
    total = np.empty(BLOCK, np.float64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total[:] = 0.0
        for t in range(0, m, 4):
            lanes = min(4, m - t)
            for lane in range(lanes):
                _random_feature_cells(
                    t + lane, (start, stop), codes, functions, folded, room, cells[lane]
                )
            a = values[offsets[t] : offsets[t + 1]]
            if lanes == 4:
                b = values[offsets[t + 1] : offsets[t + 2]]
                c = values[offsets[t + 2] : offsets[t + 3]]
                d = values[offsets[t + 3] : offsets[t + 4]]
                for i in range(stop - start):
                    ab = a[cells[0, i]] + b[cells[1, i]]
                    total[i] += ab + (c[cells[2, i]] + d[cells[3, i]])
            else:
                for lane in range(lanes):
                    a = values[offsets[t + lane] : offsets[t + lane + 1]]
                    for i in range(stop - start):
                        total[i] += a[cells[lane, i]]
        for i in range(stop - start):  # not by slices: their shape errors take long to compile
            totals[start + i] = total[i]


# --- pairs of a context and a behaviour -----------------------------------------------------------


@inlined
def context_cells(t, block, codes, context, own, room, cells):
    """Write the context's cell in table ``t`` for each row of a block.

    ``context`` are hash functions like those of `count_random_feature`; or None, in which case
    each value of the categorical feature ``own`` is a context.
    """
    if context is None:
        column = codes[own, block[0] : block[1]]
        for i in range(block[1] - block[0]):
            cells[i] = column[i]
    else:
        _random_feature_cells(t, block, codes, context, context[5], room, cells)


@inlined
def _pair_cells(t, block, codes, functions, place, scratch, cells):
    """Write the cell of table ``t``, counted from the table's first, for each row of a block.

    Tables that share a context are consecutive: ``scratch`` holds the cells of the last one, and
    room for others.
    """
    (behaviour, context), (own, shared, width, _), (contexts, room) = functions, place, scratch
    n = block[1] - block[0]
    if t % shared == 0:
        context_cells(t // shared, block, codes, context, own, room, contexts)
        for i in range(n):
            contexts[i] = np.uint16(contexts[i] * np.uint16(width))
    _random_feature_cells(t, block, codes, behaviour, behaviour[5], room, cells)
    for i in range(n):
        cells[i] = np.uint16(contexts[i] + cells[i])


@inlined
def _pair_cell(i, t, codes, behaviour, context, place):
    """Return the cell of row ``i`` in table ``t``, counted from the table's first."""
    own, shared, width, _ = place
    cell = np.int64(_cell_of_row(i, t, codes, behaviour))
    if context is None:
        return np.int64(codes[own, i]) * width + cell
    return np.int64(_cell_of_row(i, t // shared, codes, context)) * width + cell


@kernel
def count_contextual(codes, behaviour, context, place, weights, counts):
    """Count rows into the cells of every table of a Contextual family.

    ``behaviour`` and ``context`` are hash functions like those of `count_random_feature`;
    ``context`` may be None: see `context_cells`. ``place`` is (own, shared, width, size):
    ``shared`` tables have the same context, and each of ``size`` cells of a table is one of
    ``width`` cells of the behaviour within a context. ``weights`` (n,) int64, or empty for one
    each. ``counts`` is int64.
    """
    n, functions, size = codes.shape[1], (behaviour, context), place[3]
    room = np.empty(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8)
    scratch, cells = (np.empty(BLOCK, np.uint16), room), np.empty(BLOCK, np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(len(behaviour[0]) - 1):
            _pair_cells(t, (start, stop), codes, functions, place, scratch, cells)
            add(cells, stop - start, weights, start, t * size, counts)


@kernel
def count_pairs_contextual(codes, behaviour, context, place, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, row by row."""
    size = place[3]
    for p in range(len(pair_row)):
        t = pair_table[p]
        cell = _pair_cell(pair_row[p], t, codes, behaviour, context, place)
        counts[t * size + cell] += 1


@kernel
def sum_contextual(codes, behaviour, context, place, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell."""
    n, functions, size = codes.shape[1], (behaviour, context), place[3]
    room = np.empty(BLOCK, np.uint16), np.empty((2, BLOCK), np.uint8)
    scratch, cells = (np.empty(BLOCK, np.uint16), room), np.empty(BLOCK, np.uint16)
    total = np.empty(BLOCK, np.float64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total[:] = 0.0
        for t in range(len(behaviour[0]) - 1):
            _pair_cells(t, (start, stop), codes, functions, place, scratch, cells)
            table = values[t * size : (t + 1) * size]
            for i in range(stop - start):
                total[i] += table[cells[i]]
        for i in range(stop - start):
            totals[start + i] = total[i]
