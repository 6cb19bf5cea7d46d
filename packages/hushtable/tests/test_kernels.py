"""Kernels against the naive oracle: equal, not close."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from hushtable import Feature, Plan, Schema, Sketch, kernels
from hushtable.data.encoding import Codes, Encoder
from hushtable.errors import DataError
from hushtable.kernels import BLOCK, LEVELS
from hushtable.plans.families import RandomFeature
from hushtable.plans.families.layouts import JOINED_ROWS, RANKED_ROWS, Ranked
from hushtable.scores.scorer import Scorer
from strategies import as_table, schemas_and_rows

pytestmark = pytest.mark.usefixtures("each_build")

DRAWS = {
    "lsh_itables": {"detector": "lsh_itables", "n_tables": 5},
    "shallow": {"n_tables": 6, "min_depth": 1, "max_depth": 5, "n_cells": 64},
    "folded": {"n_tables": 5, "n_cells": 16},
    "deep": {"n_tables": 3, "min_depth": 17, "max_depth": 32, "n_cells": 2},
}


def papers(c, n):
    return np.log2(max(c, 1))


def smoothed(c, n):
    return np.log2(c + 0.05 * n)


SCORES = {
    "lsh_itables": papers,
    "shallow": smoothed,
    "folded": smoothed,
    "deep": smoothed,
}


def drawn(draw, schema, seed):
    if draw == "marginals":
        return Plan.marginals(schema)
    return Plan.draw(schema, random_state=seed, **DRAWS[draw])


@pytest.mark.parametrize("draw", [*DRAWS, "marginals"])
@given(data=schemas_and_rows(), seed=st.integers(0, 99))
def test_counts_equal_the_oracles(draw, data, seed):
    schema, rows = data
    plan = drawn(draw, schema, seed)
    sketch = Sketch.from_data(plan, as_table(schema, rows))
    assert sketch.counts.tolist() == naive.count(plan, rows)


@pytest.mark.parametrize("draw", [*DRAWS, "marginals"])
@given(data=schemas_and_rows(), seed=st.integers(0, 99))
def test_samples_of_all_rows_count_all_rows(draw, data, seed):
    """Samples go through a kernel of their own."""
    schema, rows = data
    plan, table = drawn(draw, schema, seed), as_table(schema, rows)
    sampled = Sketch.from_data(plan, table, max_samples=1000, random_state=0)
    assert sampled.counts.tolist() == Sketch.from_data(plan, table).counts.tolist()


@pytest.mark.parametrize("draw", DRAWS)
@given(data=schemas_and_rows(), seed=st.integers(0, 99))
def test_scores_equal_the_oracles(draw, data, seed):
    schema, rows = data
    plan = Plan.draw(schema, random_state=seed, **DRAWS[draw])
    table = as_table(schema, rows)
    sketch = Sketch.from_data(plan, table)

    def exact(count):
        return np.rint(SCORES[draw](count, len(rows)) * 2**20) / 2**20

    expected = naive.scores_with_margin(plan, sketch.counts.tolist(), rows, exact)
    assert Scorer(sketch).score(table).tolist() == expected


@pytest.mark.parametrize("detector", ["hushtable", "lsh_itables"])
def test_blocks_of_any_length(rng, detector):
    # Lengths around the block's and the batches' sizes, where loops have their ends.
    schema = Schema((Feature.numeric("x", low=0, high=1), Feature.numeric("y", low=0, high=1)))
    plan = Plan.draw(schema, detector=detector, n_tables=7, random_state=1)
    X = rng.random((2 * BLOCK + 1, 2))
    expected, before = np.zeros(plan.family.n_cells, np.int64), 0
    for n in (1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1):
        counts = np.zeros(plan.family.n_cells, np.int64)
        plan.family.count(Encoder(schema).encode(X[:n]), counts)
        expected += naive.count(plan, X[before:n].tolist())
        np.testing.assert_array_equal(counts, expected, err_msg=str(n))
        before = n


def test_levels_are_monotone_and_reach_both_ends():
    schema = Schema((Feature.numeric("x", low=-1, high=3),))
    x = np.sort(np.concatenate([[-1.0, 3.0, -9.0, 9.0], np.linspace(-1, 3, 10_001)]))
    codes = Encoder(schema).encode(x[:, np.newaxis]).codes[0]
    assert (np.diff(codes.astype(int)) >= 0).all()
    assert (codes[0], codes[-1]) == (1, LEVELS)


@pytest.mark.parametrize("bins", [2**k for k in range(1, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_code_has_the_cell_that_division_gives(bins, weighted):
    """The kernel multiplies in float32: tried on all codes that there are."""
    codes = np.arange(LEVELS + 1, dtype=np.uint16)[np.newaxis]
    width = LEVELS // bins
    offsets, widths = np.array([0, bins + 1]), np.array([width])
    weights = np.arange(LEVELS + 1) % 5 if weighted else np.empty(0, np.int64)
    counts = np.zeros(bins + 1, np.int64)
    kernels.count_equi_width(codes, widths, offsets, weights, counts)
    cells = np.where(codes[0] == 0, bins, (codes[0].astype(np.int64) - 1) // width)
    expected = np.bincount(cells, weights if weighted else None, bins + 1)
    np.testing.assert_array_equal(counts, expected)


def test_every_category_has_a_cell_of_its_own():
    codes = np.arange(10_002, dtype=np.uint16)[np.newaxis]
    counts = np.zeros(10_002, np.int64)
    kernels.count_equi_width(
        codes, np.array([1]), np.array([0, 10_002]), np.empty(0, np.int64), counts
    )
    assert (counts == 1).all()


def random_feature(cuts, depth, n_features=3, max_cells=256):
    """Tables on numeric features in turn, ``depth`` functions each."""
    cuts = np.asarray(cuts, np.uint16)
    n = len(cuts)
    rng = np.random.default_rng(n)
    return RandomFeature(
        schema=Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(n_features))),
        depth=np.asarray(depth, np.uint8),
        feature=(np.arange(n) % n_features).astype(np.uint16),
        cut=cuts,
        missing=rng.integers(0, 2, n).astype(np.uint8),
        subsets=np.empty(0, np.uint8),
        max_cells=max_cells,
    )


# 300 and 1,200 cuts a feature: in one table of ranks, and in five.
@pytest.mark.parametrize("functions", [900, 3600])
def test_ranks_stand_for_every_code(rng, functions):
    cuts = rng.integers(2, LEVELS + 1, functions)
    cuts[:6] = [2, 2, 2, LEVELS, LEVELS, LEVELS]
    family = random_feature(cuts, [15] * (functions // 15))
    plain = family._apart.functions[True]
    ranked = Ranked.of(family.feature, plain)
    every = np.tile(np.arange(1 << 16, dtype=np.uint16), (6, 1))
    ranks, (first, rows, of_cuts, *_) = ranked.arguments(Codes(every, np.zeros((3, 2), np.int64)))
    last = first[1:, np.newaxis] - np.arange(15, 0, -1)  # the functions of a table end it
    for h, at in enumerate(last.ravel()):
        assert ((ranks[rows[at]] >= of_cuts[at]) == (every[0] >= cuts[h])).all()
    filled = np.delete(np.arange(first[-1]), last.ravel())
    assert (of_cuts[filled] > ranks.max()).all()


@pytest.mark.parametrize("some_missing", [False, True])
@pytest.mark.parametrize(("cells", "low"), [(256, 1), (2, 17), (1 << 16, 1)])
@pytest.mark.parametrize("n", [JOINED_ROWS, BLOCK + 1, 2 * BLOCK - 1])
def test_ranks_change_no_count_and_no_sum(rng, n, cells, low, some_missing):
    depth = rng.integers(low, 33 if cells < 1 << 16 else 17, 40)
    family = random_feature(rng.integers(2, LEVELS + 1, depth.sum()), depth, max_cells=cells)
    codes = rng.integers(1, LEVELS + 1, (3, n)).astype(np.uint16)
    if some_missing:
        gone = rng.random((3, n)) < 0.1
        codes = np.concatenate([np.where(gone, 0, codes), np.where(gone, 65_535, codes)])
    codes = Codes(codes.astype(np.uint16), np.zeros((3, 2), np.int64))
    assert codes.some_missing == some_missing
    by_ranks, by_codes = np.zeros((2, family.n_cells), np.int64)
    family._joined.arguments(codes.take(np.arange(RANKED_ROWS) % n))  # a full batch comes first
    family.count(codes, by_ranks)
    assert family._joined.arguments(codes)[0].dtype == np.int8
    family.count(codes, by_codes, np.ones(n, np.int64))
    assert (by_ranks == by_codes).all()
    values = np.rint(rng.normal(size=family.n_cells) * 2**20) / 2**20
    assert (family.summing(values)(codes) == family.sum(codes, values)).all()


def categories(n):
    return [f"{i:03}" for i in range(n)]


@pytest.mark.parametrize("novelty", [False, True])  # tables of 8 to 24 functions, and of 24 to 32
@pytest.mark.parametrize("sizes", [(1, 2, 3), (30, 0, 200, 0), (9, 9)])
def test_sets_of_categories_are_compared_as_they_are_looked_up(rng, sizes, novelty):
    """Sizes: the categories of each feature, 0 for numbers."""
    features = [
        Feature.categorical(f"c{j}", categories(k))
        if k
        else Feature.numeric(f"x{j}", low=0, high=1)
        for j, k in enumerate(sizes)
    ]
    plan = Plan.draw(Schema(tuple(features)), n_tables=60, random_state=3, novelty=novelty)
    family, n = plan.family, RANKED_ROWS
    high = np.array([k + 1 if k else LEVELS for k in sizes])[:, np.newaxis]
    for some_missing in (False, True):
        codes = rng.integers(1, high + 1, (len(sizes), n)).astype(np.uint16)
        if some_missing:
            gone = rng.random(codes.shape) < 0.1
            codes = np.concatenate([np.where(gone, 0, codes), np.where(gone, 65_535, codes)])
        batch = Codes(codes.astype(np.uint16), np.zeros((len(sizes), 2), np.int64))
        assert family._joined.arguments(batch)[0].dtype == np.int8
        by_ranks, by_codes = np.zeros((2, family.n_cells), np.int64)
        family.count(batch, by_ranks)
        family.count(batch, by_codes, np.ones(n, np.int64))
        assert (by_ranks == by_codes).all()
        values = np.rint(rng.normal(size=family.n_cells) * 2**20) / 2**20
        assert (family.summing(values)(batch) == family.sum(batch, values)).all()


def test_ranks_need_many_functions_of_each_feature():
    numbers = [Feature.numeric(f"x{j}", low=0, high=1) for j in range(36)]
    words = [Feature.categorical(f"c{j}", categories(3)) for j in range(3000)]
    for features, ranked in (
        (numbers[:10], True),
        (numbers, False),
        ([*numbers[:9], words[0]], True),
        (words[:10], True),
        (words, False),
    ):
        layout = Plan.draw(Schema(tuple(features)), n_tables=100, random_state=0).family._joined
        many = np.ones((len(features), RANKED_ROWS), np.uint16)
        full = Codes(many, np.zeros((len(features), 2), np.int64))
        few = full.take(np.arange(JOINED_ROWS))
        assert layout.arguments(few)[0] is few.codes  # not before there is a full batch
        for codes in (full, few):
            assert (layout.arguments(codes)[0].dtype == np.int8) == ranked


def plainly_encoded(X, low, high):
    """The plain reference of `Encoder.encode`: codes, tally, and rows and features outside."""
    x = np.asarray(X, np.float64)
    scale = np.where(high > low, LEVELS / np.where(high > low, high - low, 1.0), 0.0)
    level = np.clip((np.nan_to_num(x) - low) * scale, 0, LEVELS - 1).astype(int) + 1
    outside = (x < low) | (x > high)
    tally = np.column_stack([np.isnan(x).sum(axis=0), outside.sum(axis=0)])
    codes = np.where(np.isnan(x), 0, level).T
    if np.isnan(x).any():
        codes = np.concatenate([codes, np.where(np.isnan(x), 65_535, level).T])
    features, rows = outside.T.nonzero()
    return codes, tally, rows, features


def assert_encoded_plainly(X, low, high):
    schema = Schema(
        Feature.numeric(f"x{j}", low=a, high=b)
        for j, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
    )
    found = Encoder(schema).encode(X)
    made = found.codes, found.tally, found.outside.rows, found.outside.features
    for one, expected in zip(made, plainly_encoded(X, low, high), strict=True):
        np.testing.assert_array_equal(one, expected)
    values = np.asarray(X, np.float64)[found.outside.rows, found.outside.features]
    ends = low[found.outside.features], high[found.outside.features]
    span = np.where(ends[0] < ends[1], ends[1] - ends[0], np.where(ends[0] == 0, 1, abs(ends[0])))
    beyond = np.maximum(ends[0] - values, values - ends[1]) / span
    np.testing.assert_array_equal(found.outside.beyond, beyond)


#: Rows, columns, and places that are tried: all of a tile of a column, or its edges in wide rows.
TILES = {
    "encode": (1025, 2, [(i, j) for i in range(1025) for j in (0, 1)]),
    "encode_wide": (
        *(65, 129),
        [
            (i, j)
            for i in range(65)
            for j in range(129)
            if i in (0, 1, 63, 64) or j in (0, 127, 128)
        ],
    ),
}


@pytest.mark.parametrize("loop", TILES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_values_are_found_in_every_place_of_a_tile(loop, dtype):
    n, d, places = TILES[loop]
    X = np.full((n, d), 0.5, dtype)
    low, high, scale = np.zeros(d), np.ones(d), np.full(d, float(LEVELS))
    encode = getattr(kernels, loop)
    usual = np.full((d, n), 1 + LEVELS // 2)
    for place in places:
        for value, code, missing in ((np.nan, 0, 1), (-1.0, 1, 0), (2.0, LEVELS, 0)):
            codes, tally = np.empty((d, n), np.uint16), np.zeros((d, 2), np.int64)
            X[place] = value
            assert encode(X, low, high, scale, codes, tally) == (-1, -1)
            usual[place[::-1]] = code
            np.testing.assert_array_equal(codes, usual)
            assert tally.sum() == 1
            assert tally[place[1], 1 - missing] == 1
            if not missing:
                rows = np.full(1, -1)
                kernels.find_outside(X, low, high, codes, np.array([place[1]]), rows)
                assert rows.tolist() == [place[0]]
        for value in (np.inf, -np.inf):
            X[place] = value
            assert encode(X, low, high, scale, codes, tally) == place
        X[place], usual[place[::-1]] = 0.5, 1 + LEVELS // 2


@pytest.mark.parametrize("loop", TILES)
def test_the_first_infinity_of_a_tile_is_named_whatever_else_is_odd(loop, rng):
    n, d, _ = TILES[loop]
    ends = np.zeros(d), np.ones(d), np.full(d, float(LEVELS))
    for _ in range(20):
        X = rng.normal(size=(n, d))
        X[rng.random(X.shape) < 0.3] = np.nan
        X[: min(n, 60), rng.integers(d)] = np.inf
        X[rng.integers(60) :, rng.integers(min(d, 128))] = -np.inf
        row, column = getattr(kernels, loop)(
            X, *ends, np.empty((d, n), np.uint16), np.zeros((d, 2), np.int64)
        )
        rows, columns = np.isinf(X[:60, :128]).nonzero()
        first = min(zip(rows, columns, strict=True))
        if loop == "encode":  # column by column
            first = min(zip(columns, rows, strict=True))[::-1]
        assert (row, column) == first


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [0.0, 0.01, 0.5, 1.0])
def test_odd_values_are_encoded_as_by_the_plain_reference(rng, order, dtype, odd):
    for n, d in ((0, 3), (1, 1), (1, 200), (65, 1), (1024, 3), (1025, 2), (64, 48), (67, 131)):
        low, high = rng.normal(size=d) - 1.0, rng.normal(size=d) + 1.0
        low, high = np.minimum(low, high), np.maximum(low, high)
        high[::5] = low[::5]  # of one point
        low[1::7], high[1::7] = -1e38, 1e-30
        X = rng.normal(size=(n, d)).astype(dtype, order=order)
        chosen = rng.choice(7, X.shape, p=[1 - odd, *[odd / 6] * 6])
        ends = low.astype(dtype), high.astype(dtype)  # and the numbers next to them
        beside = (*ends, np.nextafter(ends[0], dtype(-9)), np.nextafter(ends[1], dtype(9)))
        for k, values in enumerate((dtype(np.nan), dtype(30), *beside), 1):
            X[chosen == k] = np.broadcast_to(values, X.shape)[chosen == k]
        assert_encoded_plainly(X, low, high)
        assert_encoded_plainly(np.repeat(X, 2, axis=1)[:, ::2], low, high)  # not contiguous


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_type_of_number_is_counted_and_scored_as_float64(rng, dtype, order):
    for n, d in ((300, 3), (300, 60), (40, 300)):
        X = (3.0 * rng.normal(size=(n, d))).astype(dtype, order=order)
        if dtype != np.int8:
            X[rng.random(X.shape) < 0.05] = np.nan
        schema = Schema(Feature.numeric(f"x{j}", low=-2, high=3) for j in range(d))
        plan = Plan.draw(schema, n_tables=8, random_state=0)
        both = [Sketch.from_data(plan, rows) for rows in (X, X.astype(np.float64))]
        np.testing.assert_array_equal(both[0].counts, both[1].counts)
        scores = [Scorer(both[0]).score(rows) for rows in (X, X.astype(np.float64))]
        np.testing.assert_array_equal(*scores)
        np.testing.assert_array_equal(
            both[0].tally, plainly_encoded(X, np.full(d, -2.0), np.full(d, 3.0))[1]
        )


@pytest.mark.parametrize("columns", [16, 127, 128, 129, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_are_counted_as_their_codes(rng, columns, dtype, order):
    for n in (1, 7, 8, 9, 1000):
        X = rng.normal(size=(n, columns)).astype(dtype, order=order)
        X[rng.random(X.shape) < 0.01] = np.nan
        low, high = np.full(columns, -2.0), np.linspace(1.0, 3.0, columns)
        low[3] = high[3] = 0.5
        schema = Schema(
            Feature.numeric(f"x{j}", low=a, high=b)
            for j, (a, b) in enumerate(zip(low, high, strict=True))
        )
        family, encoder = Plan.marginals(schema).family, Encoder(schema)
        codes = encoder.encode(X)
        expected = np.zeros(family.n_cells, np.int64)
        family.count(codes, expected)
        counts, tally = np.zeros_like(expected), np.zeros((columns, 2), np.int64)
        assert encoder.scan(X, 0, family.counting_numbers(), counts, tally)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_array_equal(tally, codes.tally)
        X[n // 2, 11] = -np.inf
        with pytest.raises(DataError, match=rf"'x11' in row {5 + n // 2};"):
            encoder.scan(X, 5, family.counting_numbers(), counts, tally)


@pytest.mark.parametrize("ends", [(-0.1, 0.1), (-1e300, 1e300), (0.1, 1e300), (-1e-50, 1e-50)])
def test_ends_that_no_float32_holds_are_kept_to(ends):
    low, high = (np.full(48, end) for end in ends)
    with np.errstate(over="ignore", under="ignore"):
        x = np.float32([*ends, 0.0, 1e-45, -1e-45, 3e38, -3e38])
    x = x[np.isfinite(x)]
    x = np.concatenate([x, np.nextafter(x, np.float32(-1)), np.nextafter(x, np.float32(1))])
    outside = int(((x.astype(np.float64) < ends[0]) | (x.astype(np.float64) > ends[1])).sum())
    tally = np.zeros((48, 2), np.int64)
    for value in x:  # one row at a time: a neighbour outside would have all looked at
        X, codes = np.full((1, 48), value), np.empty((48, 1), np.uint16)
        kernels.encode_wide(X, low, high, LEVELS / (high - low), codes, tally)
    np.testing.assert_array_equal(tally, [[0, outside]] * 48)


@pytest.mark.parametrize("bins", [2**k for k in range(1, 9)])
def test_every_level_is_counted_in_the_cell_that_division_gives(bins):
    levels = np.arange(LEVELS)
    X = (levels + 0.5)[:, np.newaxis]
    ends = np.zeros(1), np.full(1, float(LEVELS)), np.ones(1)
    counts, tally = np.zeros(bins + 1, np.int64), np.zeros((1, 2), np.int64)
    widths, offsets = np.array([LEVELS // bins]), np.array([0, bins + 1])
    kernels.count_numbers_equi_width(X, *ends, widths, offsets, counts, tally)
    expected = np.bincount(levels // (LEVELS // bins), minlength=bins + 1)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("columns", [1, 2, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_are_the_least_and_the_largest(rng, columns, dtype):
    for n in (1, 3, 4, 5, 1023, 1024, 1027):
        X = rng.normal(size=(n, columns)).astype(dtype)
        X[rng.random(X.shape) < 0.3] = np.nan
        low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
        low[0], high[0] = -1e-300, 1e-300  # of rows before: no float32 holds them
        expected = np.fmin(low, np.fmin.reduce(X)), np.fmax(high, np.fmax.reduce(X))
        assert kernels.column_ranges(X, low, high) == (-1, -1)
        np.testing.assert_array_equal([low, high], expected)
        X[n - 1, -1] = np.inf
        assert kernels.column_ranges(X, low, high) == (n - 1, columns - 1)


@pytest.mark.parametrize("kept", [0, 1, 500])
def test_rows_are_taken_out_of_codes(rng, kept):
    codes = rng.integers(0, 1 << 16, (5, 1000)).astype(np.uint16)
    rows = np.sort(rng.permutation(1000)[:kept])
    taken = np.empty((5, kept), np.uint16)
    kernels.take_rows(codes, rows, taken)
    np.testing.assert_array_equal(taken, codes[:, rows])


@pytest.mark.parametrize("draw", ["lsh_itables", "folded", "deep"])
def test_few_rows_are_summed_as_many(rng, draw):
    X = rng.random((50, 4))
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(4)))
    scorer = Scorer(Sketch.from_data(Plan.draw(schema, random_state=0, **DRAWS[draw]), X))
    expected = scorer.score(X)
    for n in range(1, 7):
        np.testing.assert_array_equal(scorer.score(X[:n]), expected[:n])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
def test_residuals_are_added_in_the_order_of_the_columns(rng, order, missing):
    for n, k in ((0, 2), (1, 2), (255, 3), (256, 2), (257, 17), (700, 60)):
        X = np.asarray(10.0 ** rng.integers(-9, 9, (n, k)) * rng.normal(size=(n, k)), order=order)
        X[rng.random(X.shape) < missing] = np.nan
        centre, weights = rng.normal(size=k), rng.normal(size=(k, k))
        centred = X - centre
        expected = np.zeros((n, k))
        for i in range(k):
            expected += np.nan_to_num(centred[:, i : i + 1]) * weights[i]
        expected[np.isnan(X)] = np.nan
        found = np.empty((k, n))
        kernels.take_residuals(X, centre, weights, 0, found)
        np.testing.assert_array_equal(found.T, expected)
