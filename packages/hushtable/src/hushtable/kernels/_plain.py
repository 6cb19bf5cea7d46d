"""Kernels in plain NumPy, with the same bits: where none are built, few rows need no compiler.

Each function does what the kernel of its name documents. They are a few times slower than compiled
loops, but a first fit of some thousand rows takes less time with them than to import Numba.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.kernels._built import is_left_to_compiler

#: CPU seconds that a process spends in a plain kernel before it has the kernel compiled. Compiling
#: takes up to 2 s, loading what was compiled .05 s: measured, a fit of any size loses little.
PATIENCE = 0.25
#: Rows whose values are processed at once: they stay in the second-level cache.
_TILE = 1_024


def until_compiled(name: str, compiled: Callable[[], Any]) -> Any:
    """Return the plain kernel; the compiled one if there is no other, or by `HUSHTABLE_JIT`."""
    if is_left_to_compiler() or name not in PLAIN:
        return compiled()
    return PlainKernel(name, compiled)


class PlainKernel:
    """A kernel that is plain at first, and compiled once that would have been worthwhile.

    When this happens depends on the clock and on threads; the results do not, being the same bits.
    """

    def __init__(self, name: str, compiled: Callable[[], Any]) -> None:
        self._plain, self._compiled = PLAIN[name], compiled
        self._spent = 0.0
        self._kernel: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if self._spent < PATIENCE:
            start = time.thread_time()
            try:
                return self._plain(*arguments)
            finally:
                self._spent += time.thread_time() - start
        if self._kernel is None:
            self._kernel = self._compiled()
        return self._kernel(*arguments)


def _infinity(X, order):
    """Return the first (row, column) of an infinity, or (-1, -1); ``order`` gives keys to sort by.

    Kernels meet the values in different orders, and an error names the first.
    """
    rows, columns = np.nonzero(np.isinf(X))
    if len(rows) == 0:
        return -1, -1
    first = np.lexsort(order(rows, columns))[0]
    return int(rows[first]), int(columns[first])


def _by_tiles(rows, columns):
    return rows, columns, rows // _TILE


def _by_wide_tiles(rows, columns):
    return columns, rows, columns // 128, rows // 64


def _by_wide_columns(rows, columns):
    return columns, rows, columns // 128


def column_ranges(X, low, high):
    infinity = _infinity(X, _by_tiles)
    if infinity[0] >= 0 or len(X) == 0:
        return infinity
    missing = np.isnan(X)
    columns = np.arange(X.shape[1])
    # Not np.fmin: of zeros with different signs, the first one is kept.
    least = X[np.where(missing, np.inf, X).argmin(axis=0), columns].astype(np.float64)
    most = X[np.where(missing, -np.inf, X).argmax(axis=0), columns].astype(np.float64)
    low[:] = np.where(least < low, least, low)
    high[:] = np.where(most > high, most, high)
    return infinity


def keep_outermost(X, first, start, weights, numbers, rows):
    counted = weights[start : start + len(X)] > 0 if len(weights) else True
    for side, sign in enumerate((1.0, -1.0)):
        for j, column in enumerate(np.asarray(X.T, np.float64), first):
            best, at, values = numbers[side, j], rows[side, j], sign * column
            new = np.flatnonzero((values < best[-1]) & counted)
            new = new[~np.isin(start + new, at)]
            if len(new):
                values, of = np.append(best, values[new]), np.append(at, start + new)
                order = values.argsort(kind="stable")[: len(best)]
                best[:], at[:] = values[order], of[order]


def find_outside(X, low, high, codes, features, rows):
    n_found = 0
    for j in features:
        values = X[:, j].astype(np.float64)
        outside = np.flatnonzero((values < low[j]) | (values > high[j]))[: len(rows) - n_found]
        rows[n_found : n_found + len(outside)] = outside
        n_found += len(outside)


def take_rows(codes, rows, taken):
    taken[:] = codes[:, rows]


def _encode(X, low, high, scale, codes, tally, order):
    infinity = _infinity(X, order)
    if infinity[0] >= 0:
        return infinity
    low, high, scale = low[:, np.newaxis], high[:, np.newaxis], scale[:, np.newaxis]
    for start in range(0, len(X), _TILE):
        values = X[start : start + _TILE].T.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            level = np.minimum(np.maximum((values - low) * scale, 0.0), LEVELS - 1.0)
            coded = level.astype(np.int32) + 1
        missing = np.isnan(values)
        coded[missing] = MISSING_LOW
        codes[:, start : start + _TILE] = coded
        tally[:, 0] += missing.sum(axis=1)
        tally[:, 1] += ((values < low) | (values > high)).sum(axis=1)
    return infinity


def encode(X, low, high, scale, codes, tally):
    return _encode(X, low, high, scale, codes, tally, _by_tiles)


def encode_wide(X, low, high, scale, codes, tally):
    return _encode(X, low, high, scale, codes, tally, _by_wide_tiles)


def count_equi_width(codes, widths, offsets, weights, counts):
    for j in range(len(widths)):
        table = counts[offsets[j] : offsets[j + 1]]
        cells = (codes[j].astype(np.int64) - 1) // widths[j]
        cells[codes[j] == MISSING_LOW] = len(table) - 1
        _add(cells, weights, table)


def count_numbers_equi_width(X, low, high, scale, widths, offsets, counts, tally):
    codes = np.empty(X.shape[::-1], np.uint16)
    infinity = _encode(X, low, high, scale, codes, tally, _by_wide_columns)
    if infinity[0] < 0:
        count_equi_width(codes, widths, offsets, np.empty(0, np.int64), counts)
    return infinity


def _add(cells, weights, table):
    if len(weights):
        np.add.at(table, cells, weights)
    else:
        table += np.bincount(cells, minlength=len(table))


def _answers(t, codes, functions):
    """Return the concatenated answers of table ``t`` (n,), at most 32 bits."""
    first, rows, cuts, subset_at, subsets = functions[:5]
    bits = np.zeros(codes.shape[1], np.uint32)
    for h in range(first[t], first[t + 1]):
        code = codes[rows[h]]
        if subsets is None:  # ranks
            side = (code if subset_at is None else code & subset_at[h]) >= cuts[h]
        elif subset_at[h] < 0:
            side = code >= cuts[h]
        else:
            side = subsets[subset_at[h] :][code]
        bits <<= 1
        bits |= side
    return bits


def _mixed(bits, size):
    """Return the cells of mixed codes: MurmurHash3's fmix32."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ (bits >> shift)) * np.uint32(factor)
    return (bits ^ (bits >> 16)) & np.uint32(size - 1)


def _cells(t, codes, functions):
    """Return each row's cell in table ``t`` (n,), counted from the table's first."""
    folded, offsets = functions[5:]
    bits = _answers(t, codes, functions)
    if folded is None or not folded[t]:
        return bits
    return _mixed(bits, offsets[t + 1] - offsets[t])


def count_random_feature(codes, functions, parts, weights, counts):
    offsets, (bounds, at, sizes) = functions[6], parts
    for t in range(len(offsets) - 1):
        cells = _cells(t, codes, functions)
        if len(weights):
            _add(cells, weights, counts[offsets[t] : offsets[t + 1]])
            continue
        joined = np.bincount(cells, minlength=offsets[t + 1] - offsets[t])
        for p in range(bounds[t], bounds[t + 1]):
            joined = joined.reshape(sizes[p], -1)  # the tables that follow, in the lower bits
            counts[at[p] : at[p] + sizes[p]] += joined.sum(axis=1)
            joined = joined.sum(axis=0)


def count_pairs_random_feature(codes, functions, pair_row, pair_table, counts):
    offsets = functions[6]
    for t in range(len(offsets) - 1):
        rows = pair_row[pair_table == t]
        cells = _cells(t, codes[:, rows], functions)
        _add(cells, (), counts[offsets[t] : offsets[t + 1]])


def sum_random_feature(codes, functions, values, totals):
    offsets = functions[6]
    totals[:] = 0.0
    for t in range(len(offsets) - 1):
        totals += values[offsets[t] : offsets[t + 1]][_cells(t, codes, functions)]


def join_values(values, parts, offsets, joined):
    bounds, at, sizes = parts
    for t in range(len(offsets) - 1):
        table = np.zeros(1)
        for p in range(bounds[t], bounds[t + 1]):
            table = np.add.outer(table, values[at[p] : at[p] + sizes[p]]).ravel()
        joined[offsets[t] : offsets[t + 1]] = table


def rank_codes(codes, rows, tables, of_codes, ranks):
    for r in range(len(rows)):
        ranks[r] = of_codes[tables[r]][codes[rows[r]]]


def _contexts(t, codes, context, place):
    """Return where the cells of each row's context begin in table ``t``: at 0 without contexts."""
    if place is None:
        return np.zeros(codes.shape[1], np.int64)
    own, shared, width, _ = place
    cells = codes[own] if context is None else _cells(t // shared, codes, context)
    return cells.astype(np.int64) * width


def count_contextual(codes, behaviour, context, place, weights, counts):
    size = place[3]
    for t in range(len(behaviour[0]) - 1):
        cells = _contexts(t, codes, context, place) + _cells(t, codes, behaviour)
        _add(cells, weights, counts[t * size : (t + 1) * size])


def sum_contextual(codes, behaviour, context, place, values, totals):
    size = place[3]
    totals[:] = 0.0
    for t in range(len(behaviour[0]) - 1):
        cells = _contexts(t, codes, context, place) + _cells(t, codes, behaviour)
        totals += values[t * size : (t + 1) * size][cells]


def gain_random_feature(codes, functions, context, place, reachable, values, limits, gains, totals):
    first, offsets = functions[0], functions[6]
    groups, feature, bits, at, patterns = reachable
    gains[:], totals[:] = 0.0, 0.0
    for t in range(len(offsets) - 1):
        size, begins = offsets[t + 1] - offsets[t], _contexts(t, codes, context, place)
        table = values[offsets[t] if place is None else t * place[3] :]
        folded = size < 1 << int(first[t + 1] - first[t])

        def look_up(answers, begins, table=table, size=size, folded=folded):
            return table[begins + (_mixed(answers, size) if folded else answers)]

        answers = _answers(t, codes, functions)
        value = look_up(answers, begins)
        totals += value
        rare = np.flatnonzero(value < limits[t])
        answers, begins, value = answers[rare], begins[rare], value[rare]
        for g in range(groups[t], groups[t + 1]) if len(rare) else ():
            kept, changes = ~bits[g], patterns[at[g] : at[g + 1]]
            if len(changes) == 0:  # the one bit flips
                best = np.maximum(value, look_up(answers ^ bits[g], begins))
            else:
                best = value
                for change in changes:
                    best = np.maximum(best, look_up((answers & kept) ^ change, begins))
            gains[rare, feature[g]] += best - value


_PLAIN = (
    *(column_ranges, keep_outermost, find_outside, take_rows, encode, encode_wide),
    *(count_equi_width, count_numbers_equi_width),
    *(count_random_feature, count_pairs_random_feature, sum_random_feature, join_values),
    *(rank_codes, count_contextual, sum_contextual, gain_random_feature),
)
#: The plain kernels by name. Those without one are compiled when they are called.
PLAIN: dict[str, Callable[..., Any]] = {kernel.__name__: kernel for kernel in _PLAIN}
PLAIN["sum_few_random_feature"] = sum_random_feature
