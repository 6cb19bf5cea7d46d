"""The algorithm, plain and slow: the oracle that the kernels are compared with, to the bit.

Rows are Python lists of numbers, None (missing) or texts; nothing here uses hushtable's code,
only the drawn arrays of a plan.
"""

import functools
import itertools
import math
import operator
import unicodedata
from types import SimpleNamespace

LEVELS = 65_280


class Level(int):
    """A level in place of the number that has it."""


def level(x, low, high):
    """Level 0..LEVELS-1 of a number on its range, clipped."""
    if isinstance(x, Level):
        return int(x)
    if high == low:
        return 0
    return int(min(max(math.floor((float(x) - low) * (LEVELS / (high - low))), 0), LEVELS - 1))


def is_missing(value):
    return value is None or value != value


def as_category(feature, value):
    """Return the text of a categorical value as plans compare it; None if it is missing.

    Of the blanks and marks that are folded, tests have a few.
    """
    if is_missing(value):
        return None
    text = unicodedata.normalize("NFC", value.strip(" \t\n\r\xa0\u200b\ufeff"))
    return None if text == "" and "" not in feature.categories else text


def side(h, feature, value, family, subset_start):
    """h(x) for one hash function: 0 or 1."""
    if feature.kind != "numeric":
        value = as_category(feature, value)
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


def random_feature_cells(plan, row):
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


def contextual_cells(plan, row):
    """The cell of a row in each table of a Contextual plan, counted from the first of all."""
    family = plan.family

    def parts(prefix, most):
        names = ("depth", "feature", "cut", "missing", "subsets")
        arrays = {name: getattr(family, prefix + name) for name in names}
        part = SimpleNamespace(**arrays, max_cells=most)
        found = random_feature_cells(SimpleNamespace(family=part, schema=plan.schema), row)
        sizes = [min(2 ** int(depth), most) for depth in part.depth]
        return [cell - sum(sizes[:t]) for t, cell in enumerate(found)]

    behaviours = parts("", family.cells)
    if family.own:
        contexts = [code(plan.schema.features[family.own - 1], row[family.own - 1])]
        contexts *= len(behaviours)
    else:
        drawn = parts("context_", family.contexts)
        contexts = [drawn[t // family.shared] for t in range(len(behaviours))]
    size = family.contexts * family.cells
    return [
        t * size + context * family.cells + behaviour
        for t, (context, behaviour) in enumerate(zip(contexts, behaviours, strict=True))
    ]


def marginal_cells(plan, row):
    """The cell of a row in each histogram of an EquiWidth plan."""
    found, offset = [], 0
    for feature, value in zip(plan.schema.features, row, strict=True):
        if feature.kind == "numeric":
            size = plan.family.bins + 1
            cell = None if is_missing(value) else level(value, feature.low, feature.high)
            cell = None if cell is None else cell * plan.family.bins // LEVELS
        else:
            categories, value = list(feature.categories), as_category(feature, value)
            size = len(categories) + 2
            cell = categories.index(value) if value in categories else len(categories)
            cell = None if is_missing(value) else cell
        found.append(offset + (size - 1 if cell is None else cell))
        offset += size
    return found


def code(feature, value):
    """1 + a number's level or a category's place, 0 for a missing value."""
    if feature.kind != "numeric":
        value = as_category(feature, value)
    if is_missing(value):
        return 0
    if feature.kind == "numeric":
        return level(value, feature.low, feature.high) + 1
    categories = list(feature.categories)
    return 1 + (categories.index(value) if value in categories else len(categories))


def count_min_cells(family, t, places):
    """The cells of places, which table t's functions found, in the table's histograms."""
    first = sum(map(int, family.depth[:t]))
    factors = map(int, family.multiplier[first : first + len(places)])
    key = sum(p * f for p, f in zip(places, factors, strict=True)) % 2**32
    found = []
    for r in range(family.sketch_rows):
        at = t * family.sketch_rows + r
        # Two histograms share one mixing, unless the last is without another.
        mixed = fmix32(key ^ int(family.seed[at - r % 2]))
        half = mixed >> 16 if r % 2 else mixed % 2**16
        found.append(at * family.cells + half * family.cells // 2**16)
    return found


def grid_cells(plan, row):
    """The cells of a row in all histograms of a SubspaceGrid plan."""
    family, features = plan.family, plan.schema.features
    found, h = [], 0
    for t, depth in enumerate(family.depth):
        places = []
        for _ in range(depth):
            j, width, shift = int(family.feature[h]), int(family.width[h]), int(family.shift[h])
            c = code(features[j], row[j])
            if c == 0:
                places.append(0)
            elif features[j].kind == "numeric":
                places.append(1 + (c - 1 + shift) // width)
            else:
                places.append(1 + fmix32(c ^ shift) % (LEVELS // width + 1))
            h += 1
        found += count_min_cells(family, t, places)
    return found


def vector(plan, row):
    """A row's vector of whole numbers: one for a number, sixteen for a category."""
    coordinates = []
    for feature, salt, value in zip(plan.schema.features, plan.family.salt, row, strict=True):
        c = code(feature, value)
        if feature.kind == "numeric":
            coordinates.append(0 if c == 0 else 2 * c - 1 - LEVELS)
        else:
            corner = fmix32(c ^ int(salt))
            edges = [23_080 if corner >> b & 1 else -23_080 for b in range(16)]
            coordinates += [0] * 16 if c == 0 else edges
    return coordinates


def projected(plan, row, h):
    """A row's product with the weights of function h."""
    pairs = zip(vector(plan, row), plan.family.weight[h].tolist(), strict=True)
    return sum(x * w for x, w in pairs)


def projection_cells(plan, row):
    """The cells of a row in all histograms of a RandomProjection plan."""
    family, found, h = plan.family, [], 0
    for t, depth in enumerate(family.depth):
        places = []
        for _ in range(depth):
            shifted = projected(plan, row, h) + int(family.shift[h])
            places.append(shifted // int(family.width[h]))
            h += 1
        found += count_min_cells(family, t, places)
    return found


def sim_hash_cells(plan, row):
    """The cell of a row in each table of a SimHash plan, counted from the first of all."""
    family, found, h, offset = plan.family, [], 0, 0
    for depth in map(int, family.depth):
        bits = 0
        for _ in range(depth):
            bits = 2 * bits + (projected(plan, row, h) >= int(family.cut[h]))
            h += 1
        found.append(offset + bits)
        offset += 2**depth
    return found


FIND = {
    "Contextual": contextual_cells,
    "EquiWidth": marginal_cells,
    "RandomFeature": random_feature_cells,
    "RandomProjection": projection_cells,
    "SimHash": sim_hash_cells,
    "SubspaceGrid": grid_cells,
}


def cells(plan, row):
    """The cells of a row in all histograms, counted from the first of all."""
    return FIND[plan.family.name](plan, row)


def gains(plan, values, limits, row):
    """What the row's cells would gain, over all tables, by another value of each feature.

    By a column of the context, a row gains nothing: the context stays.
    """
    family, features = plan.family, plan.schema.features
    own = cells(plan, row)
    found = [0.0] * len(features)
    for j, feature in enumerate(features):
        if j not in family.feature:
            continue
        if feature.kind == "categorical":
            others = feature.categories
        else:
            # One value for each level next to a cut: no other reaches another cell.
            cuts = [int(c) for c, f in zip(family.cut, family.feature, strict=True) if f == j]
            levels = [0, *(c - 1 for c in cuts)] if feature.high > feature.low else [0]
            others = [Level(level) for level in levels]
        reached = [cells(plan, [*row[:j], other, *row[j + 1 :]]) for other in others]
        for t, cell in enumerate(own):
            if values[cell] < limits[t]:
                best = max([values[cell], *(values[cells[t]] for cells in reached)])
                found[j] += best - values[cell]
    return found


def count(plan, rows):
    """Counts of all cells."""
    counts = [0] * plan.family.n_cells
    for row in rows:
        for cell in cells(plan, row):
            counts[cell] += 1
    return counts


def scores(plan, counts, rows, value):
    """Mean over the tables of the least ``value(count)`` in each row's cells of the table."""
    result = []
    each = plan.family.n_histograms // plan.family.n_tables
    for row in rows:
        values = [value(counts[cell]) for cell in cells(plan, row)]
        least = [min(values[at : at + each]) for at in range(0, len(values), each)]
        result.append(sum(least) / len(least))
    return result


def beyond(plan, row):
    """How far the row's numbers lie beyond their ranges, in ranges, all together."""
    total = 0.0
    for x, feature in zip(row, plan.schema.features, strict=True):
        if feature.kind == "numeric" and not is_missing(x):
            width = feature.high - feature.low
            point = width == 0.0 or width < LEVELS / 1.7976931348623157e308
            unit = (abs(feature.low) or 1.0) if point else width
            past = max(feature.low - float(x), float(x) - feature.high, 0.0)
            total += min(past / unit, 1e300)
    return total


def scores_with_margin(plan, counts, rows, value):
    """`scores`, less what rows beyond lose: a share of the way to one unit below all."""
    ends, margin = plan.family.offsets.tolist(), plan.family.margin / LEVELS
    found = scores(plan, counts, rows, value)
    if margin == 0.0:
        return found
    least = sum(min(map(value, counts[a:b])) for a, b in itertools.pairwise(ends))
    depth = least / plan.family.n_tables - 1.0
    far = [beyond(plan, row) for row in rows]
    lost = []
    for e in far:
        near, past = margin / (margin + e), e / (margin + e)
        lost.append(past * past / (near * near + past * past))
    return [s - p * (s - depth) for s, p in zip(found, lost, strict=True)]


def compared(readings, hours):
    """Compare readings of one entity and value with the earlier ones.

    Returns a list of six numbers for each reading (see `hushtable.kernels._differences`): the place
    and the change, each with the number of deviations behind its usual size, the spread, and the
    usual spread; NaN for a missing reading. Sums are updated in the order of the definitions, so
    the result is the same to the bit.
    """
    found, n, mean, squares = [], 0, 0.0, 0.0
    sizes, total, changes, changed = 0, 0.0, 0, 0.0
    here = dict.fromkeys(range(24), (0, 0.0))
    earlier = []
    for x, hour in zip(readings, hours, strict=True):
        if is_missing(x):
            found.append([math.nan] * 6)
            continue
        change, usual = x - (earlier[-1] if earlier else 0.0), _usual(changed, changes)
        moved = _over(change, usual, changes)
        if earlier:
            limit = 3.0 * usual if changes >= 5 and usual > 0.0 else math.inf
            changed += min(abs(change), limit)
        earlier.append(x)

        (n_here, mean_here), usual, taken = here[hour], _usual(total, sizes), x
        wider = math.sqrt(1.0 + 1.0 / n_here) if n_here else math.inf
        deviation, known = (x - mean_here) / wider, sizes
        if n_here >= 2 and (sizes >= 5 or (sizes >= 1 and total > 0.0)):
            place = _over(deviation, usual, sizes)
        else:
            sd = math.sqrt(squares / (n - 1.0)) if n > 1 else math.nan
            overall = (x - mean) / math.sqrt(1.0 + 1.0 / n) if n else 0.0 * x
            place, known = _over(overall, sd, n - 1), n - 1
        if n_here >= 2:
            if sizes >= 5 and usual > 0.0 and abs(deviation) > 3.0 * usual:
                deviation = math.copysign(3.0 * usual, deviation)
                taken = mean_here + deviation * wider
            sizes, total = sizes + 1, total + abs(deviation)
        here[hour] = n_here + 1, mean_here + (taken - mean_here) / (n_here + 1.0)
        step = taken - mean
        mean += step / (n + 1.0)
        squares += step * (taken - mean)
        n += 1
        spread = math.sqrt(squares / (n - 1.0)) if n > 1 else math.nan
        found.append([place, known, moved, changes, _sd(earlier[-6:]), spread])
        changes = n - 1 if n > 1 else 0
    return found


def _usual(total, n):
    return math.sqrt(math.pi / 2.0) * total / n if n else math.nan


def _over(deviation, usual, behind):
    if usual > 0.0:
        return min(max(deviation / usual, -1e6), 1e6)
    if deviation == 0.0:
        return 0.0
    return math.copysign(1e6, deviation) if behind >= 5 else math.nan


def _sd(recent):
    """Standard deviation of the last readings, the last one first; NaN while they are few."""
    if len(recent) < 3:
        return math.nan
    mean = _added(reversed(recent)) / len(recent)
    return math.sqrt(
        _added((x - mean) * (x - mean) for x in reversed(recent)) / (len(recent) - 1.0)
    )


def _added(numbers):
    """Add numbers one by one, because from Python 3.12 on, sum() compensates rounding errors."""
    return functools.reduce(operator.add, numbers, 0.0)
