"""The loops of the paper's other systems, compiled on first use.

**Random projections**: a matrix product by BLAS, then a cell for each row. A row is a vector of
whole numbers, and so are the weights: every sum stays below 2^53, so that float64 holds it exactly,
in any order in which BLAS adds, and with or without fused multiplication. Cells are then
bit-identical on every platform.

``rows`` is (first, categorical, salt): feature j has rows ``first[j]..first[j + 1]`` of the
vector. A number has one row, 2 code - 1 - LEVELS: twice its level's distance from the middle of
the range. A category has ``CORNER_BITS`` rows: a random corner of a cube; the mean distance of two
corners is a range. A missing value is in the middle: 0.

**Grids on random subspaces**: ``functions`` is (first, rows, shift, width, multiplier, categorical,
seeds, cells): table t consists of hash functions ``first[t]..first[t + 1]``; hash function h reads
row ``rows[h]`` of ``codes``. A number's place is 1 + (code - 1 + shift) // width, a category's is
1 + a random one of as many places; a missing value's is 0.

**CountMin sketches**: the places, times ``multiplier``, add up to the row's 32-bit key in the
table. Two mixings of the key with ``seeds`` (m, R) give 16 bits for each of R histograms; their
high part, times ``cells``, is the row's cell there.

Numba checks only this file for changes, and the core's kernels by their digest: everything inlined
here is in one of them.
"""

import numba
import numpy as np

from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.kernels._common import BLOCK, add, inlined, kernel, mix

CORNER_BITS = 16
#: Half an edge of the cube whose corners stand for categories in `RandomProjection`: two random
#: corners differ in half of 16 edges, and sqrt(8) (2 CORNER) is the range, 2 LEVELS.
CORNER = 23_080

#: Rows in one product: their vectors and results fit in the second-level cache.
_ROWS = 512
#: Largest number of functions in one product: their results fit in the second-level cache.
_TOGETHER = 128


# --- CountMin sketches ------------------------------------------------------------------------


@inlined
def _scaled(half, cells):
    """Return one of ``cells`` cells for 16 random bits."""
    return np.uint16(np.uint32(np.uint32(half) * np.uint32(cells)) >> np.uint32(16))


@inlined
def key_cells(n, keys, seeds, cells, found):
    """Write each key's cell in each of ``len(seeds)`` histograms; two share a mixing's halves."""
    depth = len(seeds)
    for r in range(0, depth, 2):
        seed, low, high = seeds[r], found[r], found[min(r + 1, depth - 1)]
        if r + 1 < depth:
            for i in range(n):
                h = mix(np.uint32(keys[i] ^ seed))
                low[i] = _scaled(h & np.uint32(0xFFFF), cells)
                high[i] = _scaled(h >> np.uint32(16), cells)
        else:
            for i in range(n):
                low[i] = _scaled(mix(np.uint32(keys[i] ^ seed)) & np.uint32(0xFFFF), cells)


@inlined
def add_least(n, values, at, cells, found, total):
    """Add to ``total`` the least of each key's ``values`` in one table's histograms."""
    depth = len(found)
    if depth == 4:  # RS-Hash's: four look-ups in one pass
        a, b = values[at : at + cells], values[at + cells : at + 2 * cells]
        c, d = values[at + 2 * cells : at + 3 * cells], values[at + 3 * cells :]
        for i in range(n):
            ab = min(a[found[0, i]], b[found[1, i]])
            total[i] += min(ab, min(c[found[2, i]], d[found[3, i]]))
    else:
        for i in range(n):
            least = values[at + found[0, i]]
            for r in range(1, depth):
                least = min(least, values[at + r * cells + found[r, i]])
            total[i] += least


# --- projections ------------------------------------------------------------------------------


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


# --- grids ------------------------------------------------------------------------------------


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
