"""Grids on random subspaces, counted in CountMin sketches.

``functions`` is (first, rows, shift, width, multiplier, categorical, seeds, cells): table t
consists of hash functions ``first[t]..first[t + 1]``; hash function h reads row ``rows[h]`` of
``codes``. A number's place is 1 + (code - 1 + shift) // width, a category's is 1 + a random one of
as many places; a missing value's is 0. The places, times ``multiplier``, add up to the row's
32-bit key in the table. Two mixings of the key with ``seeds`` (m, R) give 16 bits for each of R
histograms; their high part, times ``cells``, is the row's cell there.
"""

import numpy as np

from hushtable.kernels import LEVELS
from hushtable.kernels._cache import kernel
from hushtable.kernels._common import BLOCK, add, inlined
from hushtable.kernels._mix import add_least, key_cells, mix


@inlined
def _number_place(code, shift, inverse):
    """Return 1 + (code - 1 + shift) // width, given (1 + 2^-20) / width; 0 for a missing value.

    Division of whole numbers would not run in lanes. Dividends are below 2^17: those that
    ``width`` does not divide are at least 2^-17 of themselves below the next whole number. The
    float32 product is too high by 2^-20, plus or minus 2^-22 for rounding, which puts it on the
    right side of every whole number.
    """
    quotient = np.float32(np.float32(np.int32(code) + shift - np.int32(1)) * inverse)
    place = np.uint32(np.int32(quotient) + np.int32(1))
    return np.uint32(0) if code == 0 else place


@inlined
def _inverse(width):
    return np.float32((1.0 + 2.0**-20) / np.float64(width))


@inlined
def _category_place(code, shift, width):
    places = np.uint32(LEVELS) // np.uint32(width) + np.uint32(1)
    place = np.uint32(mix(np.uint32(np.uint32(code) ^ np.uint32(shift))) % places + np.uint32(1))
    return np.uint32(0) if code == 0 else place


@inlined
def _keys(t, start, stop, codes, functions, keys):
    """Write each row's key in table ``t``."""
    first, rows, shift, width, multiplier, categorical, _, _ = functions
    n = stop - start
    keys[:n] = 0
    for h in range(first[t], first[t + 1]):
        column, factor = codes[rows[h], start:stop], multiplier[h]
        by, inverse = np.int32(shift[h]), _inverse(width[h])
        if categorical[h]:
            for i in range(n):
                place = _category_place(column[i], shift[h], width[h])
                keys[i] = np.uint32(keys[i] + np.uint32(place * factor))
        else:
            for i in range(n):
                place = _number_place(column[i], by, inverse)
                keys[i] = np.uint32(keys[i] + np.uint32(place * factor))


@kernel
def count_subspace_grid(codes, functions, weights, counts):
    """Count rows into one cell of each histogram of every table."""
    n, seeds, cells = codes.shape[1], functions[6], functions[7]
    m, depth = seeds.shape
    keys, found = np.empty(BLOCK, np.uint32), np.empty((depth, BLOCK), np.uint16)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(m):
            _keys(t, start, stop, codes, functions, keys)
            key_cells(stop - start, keys, seeds[t], cells, found)
            for r in range(depth):
                add(found[r], stop - start, weights, start, (t * depth + r) * cells, counts)


@kernel
def count_pairs_subspace_grid(codes, functions, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, row by row."""
    first, rows, shift, width, multiplier, categorical, seeds, cells = functions
    depth = seeds.shape[1]
    keys, found = np.empty(1, np.uint32), np.empty((depth, 1), np.uint16)
    for p in range(len(pair_row)):
        i, t = pair_row[p], pair_table[p]
        keys[0] = 0
        for h in range(first[t], first[t + 1]):
            code = codes[rows[h], i]
            if categorical[h]:
                place = _category_place(code, shift[h], width[h])
            else:
                place = _number_place(code, np.int32(shift[h]), _inverse(width[h]))
            keys[0] = np.uint32(keys[0] + np.uint32(place * multiplier[h]))
        key_cells(1, keys, seeds[t], cells, found)
        for r in range(depth):
            counts[(t * depth + r) * cells + found[r, 0]] += 1


@kernel
def sum_subspace_grid(codes, functions, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of the smallest value in a row's cells."""
    n, seeds, cells = codes.shape[1], functions[6], functions[7]
    m, depth = seeds.shape
    keys, found = np.empty(BLOCK, np.uint32), np.empty((depth, BLOCK), np.uint16)
    total = np.empty(BLOCK, np.float64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total[:] = 0.0
        for t in range(m):
            _keys(t, start, stop, codes, functions, keys)
            key_cells(stop - start, keys, seeds[t], cells, found)
            add_least(stop - start, values, t * depth * cells, cells, found, total)
        for i in range(stop - start):  # not by slices: their shape errors take long to compile
            totals[start + i] = total[i]
