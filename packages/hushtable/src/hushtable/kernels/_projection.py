"""Tables of random projections: a matrix product by BLAS, then a cell for each row.

A row is a vector of whole numbers, and so are the weights: every sum stays below 2^53, so that
float64 holds it exactly, in any order in which BLAS adds, and with or without fused
multiplication. Cells are then bit-identical on every platform.

``rows`` is (first, categorical, salt): feature j has rows ``first[j]..first[j + 1]`` of the
vector. A number has one row, 2 code - 1 - LEVELS: twice its level's distance from the middle of
the range. A category has ``CORNER_BITS`` rows: a random corner of a cube; the mean distance of two
corners is a range. A missing value is in the middle: 0.
"""

import numba
import numpy as np

from hushtable.kernels import CORNER, CORNER_BITS, LEVELS, MISSING_LOW
from hushtable.kernels._cache import kernel
from hushtable.kernels._common import add, inlined
from hushtable.kernels._mix import add_least, key_cells, mix

#: Rows in one product: their vectors and results fit in the second-level cache.
_ROWS = 512
#: Largest number of functions in one product: their results fit in the second-level cache.
_TOGETHER = 128


@inlined
def _embed(codes, start, stop, rows, vectors):
    """Write the vector of each row of a block into a column of ``vectors`` (D, _ROWS)."""
    first, categorical, salt = rows
    n = stop - start
    for j in range(len(categorical)):
        column = codes[j, start:stop]
        if categorical[j]:
            for i in range(n):
                corner = mix(np.uint32(column[i]) ^ salt[j])
                for b in range(CORNER_BITS):
                    edge = CORNER if (corner >> np.uint32(b)) & np.uint32(1) else -CORNER
                    vectors[first[j] + b, i] = 0.0 if column[i] == MISSING_LOW else edge
        else:
            vector = vectors[first[j]]
            for i in range(n):
                level = np.float64(2 * np.int32(column[i]) - (1 + LEVELS))
                vector[i] = 0.0 if column[i] == MISSING_LOW else level


@inlined
def _together(t, table):
    """Return the end of the tables from ``t`` on whose functions one product evaluates."""
    last = t + 1
    while last < len(table) - 1 and table[last + 1] - table[t] <= _TOGETHER:
        last += 1
    return last


@numba.njit
def _workspace(weights, table, block):
    """Allocate the vectors of a block, and their projections on the tables of one product."""
    results = np.empty((max(np.diff(table).max(), _TOGETHER), block), np.float64)
    return np.zeros((weights.shape[1], block), np.float64), results


@inlined
def _project_one(codes, i, rows, weights, begin, end, vector, results):
    """Write the projections of row ``i`` on functions ``begin..end`` into ``results[:, 0]``."""
    _embed(codes, i, i + 1, rows, vector)
    for h in range(begin, end):
        total = 0.0
        for k in range(weights.shape[1]):
            total += weights[h, k] * vector[k, 0]
        results[h - begin, 0] = total


# --- SimHash --------------------------------------------------------------------------------


@inlined
def _sign_cells(n, results, cuts, cells):
    """Concatenate the signs of ``len(cuts)`` projections; two a pass halve loads and stores."""
    cells[:n] = 0
    h = 0
    while h < len(cuts):
        a, cut_a = results[h], cuts[h]
        if h + 1 < len(cuts):
            b, cut_b = results[h + 1], cuts[h + 1]
            for i in range(n):
                cells[i] = np.uint16(
                    (cells[i] << np.uint16(2))
                    | (np.uint16(a[i] >= cut_a) << np.uint16(1))
                    | np.uint16(b[i] >= cut_b)
                )
        else:
            for i in range(n):
                cells[i] = np.uint16((cells[i] << np.uint16(1)) | np.uint16(a[i] >= cut_a))
        h += 2


@kernel
def count_sim_hash(codes, rows, weights, functions, row_weights, counts):
    """Count rows into the cells of every table of a SimHash family.

    ``functions`` is (table, cuts, offsets): table t concatenates functions
    ``table[t]..table[t + 1]``; function h asks whether the product of ``weights[h]`` and the
    row's vector is at or above ``cuts[h]``.
    """
    table, cuts, offsets = functions
    n, m = codes.shape[1], len(offsets) - 1
    vectors, results = _workspace(weights, table, _ROWS)
    cells = np.empty(_ROWS, np.uint16)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _embed(codes, start, stop, rows, vectors)
        t = 0
        while t < m:
            begin, last = table[t], _together(t, table)
            np.dot(weights[begin : table[last]], vectors, results[: table[last] - begin])
            while t < last:
                at = results[table[t] - begin : table[t + 1] - begin]
                _sign_cells(stop - start, at, cuts[table[t] : table[t + 1]], cells)
                add(cells, stop - start, row_weights, start, offsets[t], counts)
                t += 1


@kernel
def count_pairs_sim_hash(codes, rows, weights, functions, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, row by row."""
    table, cuts, offsets = functions
    vectors, results = _workspace(weights, table, 1)
    cells = np.empty(1, np.uint16)
    for p in range(len(pair_row)):
        begin, end = table[pair_table[p]], table[pair_table[p] + 1]
        _project_one(codes, pair_row[p], rows, weights, begin, end, vectors, results)
        _sign_cells(1, results, cuts[begin:end], cells)
        counts[offsets[pair_table[p]] + cells[0]] += 1


@kernel
def sum_sim_hash(codes, rows, weights, functions, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of ``values`` at each row's cell."""
    table, cuts, offsets = functions
    n, m = codes.shape[1], len(offsets) - 1
    vectors, results = _workspace(weights, table, _ROWS)
    cells, total = np.empty(_ROWS, np.uint16), np.empty(_ROWS, np.float64)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _embed(codes, start, stop, rows, vectors)
        total[:] = 0.0
        t = 0
        while t < m:
            begin, last = table[t], _together(t, table)
            np.dot(weights[begin : table[last]], vectors, results[: table[last] - begin])
            while t < last:
                at = results[table[t] - begin : table[t + 1] - begin]
                _sign_cells(stop - start, at, cuts[table[t] : table[t + 1]], cells)
                of_table = values[offsets[t] : offsets[t + 1]]
                for i in range(stop - start):
                    total[i] += of_table[cells[i]]
                t += 1
        totals[start:stop] = total[: stop - start]


# --- p-stable projections, counted in CountMin sketches ---------------------------------------


@inlined
def _place_keys(n, results, begin, end, functions, keys):
    """Write each row's key in one table: its places on the table's functions, mixed."""
    _, shift, width, multiplier, _, _ = functions
    keys[:n] = 0
    for h in range(begin, end):
        projected, by, span, factor = results[h - begin], shift[h], width[h], multiplier[h]
        for i in range(n):
            # Whole numbers below 2^53, and a quotient below 2^31: rounded division never reaches
            # the next whole number, and the sum is not negative, so truncation is floor.
            place = np.uint32(np.int32((projected[i] + by) / span))
            keys[i] = np.uint32(keys[i] + np.uint32(place * factor))


@kernel
def count_random_projection(codes, rows, weights, functions, row_weights, counts):
    """Count rows into one cell of each histogram of every table.

    ``functions`` is (table, shift, width, multiplier, seeds, cells): function h's place is
    (the product of ``weights[h]`` and the row's vector + ``shift[h]``) // ``width[h]``; the
    places of table t's functions, times ``multiplier``, add up to a 32-bit key, which
    ``seeds[t]`` mixes into one of ``cells`` cells in each histogram.
    """
    table, seeds, cells = functions[0], functions[4], functions[5]
    m, depth = seeds.shape
    n = codes.shape[1]
    vectors, results = _workspace(weights, table, _ROWS)
    keys, found = np.empty(_ROWS, np.uint32), np.empty((depth, _ROWS), np.uint16)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _embed(codes, start, stop, rows, vectors)
        t = 0
        while t < m:
            begin, last = table[t], _together(t, table)
            np.dot(weights[begin : table[last]], vectors, results[: table[last] - begin])
            while t < last:
                at = results[table[t] - begin : table[t + 1] - begin]
                _place_keys(stop - start, at, table[t], table[t + 1], functions, keys)
                key_cells(stop - start, keys, seeds[t], cells, found)
                for r in range(depth):
                    offset = (t * depth + r) * cells
                    add(found[r], stop - start, row_weights, start, offset, counts)
                t += 1


@kernel
def count_pairs_random_projection(codes, rows, weights, functions, pair_row, pair_table, counts):
    """Count row ``pair_row[p]`` in table ``pair_table[p]`` for each p: samples, row by row."""
    table, seeds, cells = functions[0], functions[4], functions[5]
    depth = seeds.shape[1]
    vectors, results = _workspace(weights, table, 1)
    keys, found = np.empty(1, np.uint32), np.empty((depth, 1), np.uint16)
    for p in range(len(pair_row)):
        t = pair_table[p]
        _project_one(codes, pair_row[p], rows, weights, table[t], table[t + 1], vectors, results)
        _place_keys(1, results, table[t], table[t + 1], functions, keys)
        key_cells(1, keys, seeds[t], cells, found)
        for r in range(depth):
            counts[(t * depth + r) * cells + found[r, 0]] += 1


@kernel
def sum_random_projection(codes, rows, weights, functions, values, totals):
    """Write into ``totals`` (n,) the sum over the tables of the smallest value in a row's cells."""
    table, seeds, cells = functions[0], functions[4], functions[5]
    m, depth = seeds.shape
    n = codes.shape[1]
    vectors, results = _workspace(weights, table, _ROWS)
    keys, found = np.empty(_ROWS, np.uint32), np.empty((depth, _ROWS), np.uint16)
    total = np.empty(_ROWS, np.float64)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _embed(codes, start, stop, rows, vectors)
        total[:] = 0.0
        t = 0
        while t < m:
            begin, last = table[t], _together(t, table)
            np.dot(weights[begin : table[last]], vectors, results[: table[last] - begin])
            while t < last:
                at = results[table[t] - begin : table[t + 1] - begin]
                _place_keys(stop - start, at, table[t], table[t + 1], functions, keys)
                key_cells(stop - start, keys, seeds[t], cells, found)
                add_least(stop - start, values, t * depth * cells, cells, found, total)
                t += 1
        totals[start:stop] = total[: stop - start]
