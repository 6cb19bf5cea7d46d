"""The algorithm, plain and slow: the oracle that the kernels are compared with, to the bit.

Rows are Python lists of numbers, None (missing) or texts; nothing here uses hushtable's code,
only the drawn arrays of a plan.
"""

import math

LEVELS = 65_280


def level(x, low, high):
    """Level 0..LEVELS-1 of a number on its range, clipped."""
    if high == low:
        return 0
    return int(min(max(math.floor((float(x) - low) * (LEVELS / (high - low))), 0), LEVELS - 1))


def is_missing(value):
    return value is None or value != value


def side(h, feature, value, family, subset_start):
    """h(x) for one hash function: 0 or 1."""
    if is_missing(value):
        return int(family.missing[h])
    if feature.kind == "numeric":
        return int(level(value, feature.low, feature.high) + 1 >= int(family.cut[h]))
    categories = list(feature.categories)
    known = categories.index(value) if value in categories else len(categories)
    return int(family.subsets[subset_start + 1 + known])


def fmix32(h):
    """MurmurHash3's 32-bit finaliser (public domain, Austin Appleby)."""
    h ^= h >> 16
    h = h * 0x85EBCA6B % 2**32
    h ^= h >> 13
    h = h * 0xC2B2AE35 % 2**32
    return h ^ (h >> 16)


def cells(plan, row):
    """The cell of a row in each table of a RandomFeature plan, counted from the first of all."""
    family, features = plan.family, plan.schema.features
    starts, at = [], 0
    for j in family.feature:
        starts.append(at)
        if features[j].kind == "categorical":
            at += len(features[j].categories) + 2
    found, h, offset = [], 0, 0
    for depth in family.depth:
        code = 0
        for _ in range(depth):
            j = family.feature[h]
            code = 2 * code + side(h, features[j], row[j], family, starts[h])
            h += 1
        size = min(2 ** int(depth), family.max_cells)
        found.append(offset + (code if size == 2 ** int(depth) else fmix32(code) % size))
        offset += size
    return found


def marginal_cells(plan, row):
    """The cell of a row in each histogram of an EquiWidth plan."""
    found, offset = [], 0
    for feature, value in zip(plan.schema.features, row, strict=True):
        if feature.kind == "numeric":
            size = plan.family.bins + 1
            cell = None if is_missing(value) else level(value, feature.low, feature.high)
            cell = None if cell is None else cell * plan.family.bins // LEVELS
        else:
            categories = list(feature.categories)
            size = len(categories) + 2
            cell = categories.index(value) if value in categories else len(categories)
            cell = None if is_missing(value) else cell
        found.append(offset + (size - 1 if cell is None else cell))
        offset += size
    return found


def count(plan, rows, find=cells):
    """Counts of all cells."""
    counts = [0] * plan.family.n_cells
    for row in rows:
        for cell in find(plan, row):
            counts[cell] += 1
    return counts


def scores(plan, counts, rows, value, find=cells):
    """Mean over the tables of ``value(count)`` at each row's cells."""
    result = []
    for row in rows:
        values = [value(counts[cell]) for cell in find(plan, row)]
        result.append(sum(values) / len(values))
    return result
