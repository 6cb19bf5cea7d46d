"""The algebra: counts add exactly, however the rows were cut apart."""

import functools
import itertools
import operator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.data.readers import reader
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.plans.draws import detectors
from strategies import as_table, schemas_and_rows, second_pass

DETECTORS = [*detectors(), "marginals", "second pass"]


def draw(schema, detector, table, seed=0):
    if detector == "marginals":
        return Plan.marginals(schema)
    if detector == "second pass":
        plan = Plan.draw(schema, n_tables=5, random_state=seed)
        return second_pass(Sketch.from_data(plan, table), table)
    return Plan.draw(schema, detector=detector, n_tables=5, random_state=seed)


@pytest.mark.parametrize("detector", DETECTORS)
@given(data=schemas_and_rows(), cuts=st.lists(st.integers(0, 30)), order=st.randoms())
def test_merge_of_any_split_in_any_order_equals_the_whole(detector, data, cuts, order):
    schema, rows = data
    table = as_table(schema, rows)
    plan = draw(schema, detector, table)
    whole = Sketch.from_data(plan, table)
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    shuffled = list(rows)
    order.shuffle(shuffled)
    parts = [
        Sketch.from_data(plan, as_table(schema, shuffled[a:b]))
        for a, b in itertools.pairwise(edges)
    ]
    order.shuffle(parts)
    assert sum(parts, start=Sketch.zero(plan)) == whole
    assert functools.reduce(operator.add, parts) == whole


@given(data=schemas_and_rows(), seed=st.integers(0, 9))
def test_commutative_monoid(data, seed):
    schema, rows = data
    plan = Plan.draw(schema, n_tables=3, random_state=seed)
    a, b, c = (Sketch.from_data(plan, as_table(schema, [row])) for row in (rows * 3)[:3])
    zero = Sketch.zero(plan)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + zero == zero + a == a


@pytest.mark.parametrize("detector", DETECTORS)
def test_batch_size_and_threads_change_nothing(monkeypatch, rng, detector):
    X = rng.normal(size=(1100, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=-2, high=2) for j in range(3)))
    plan = draw(schema, detector, X)
    expected = Sketch.from_data(plan, X)
    for batch_rows in (1, 7, 512, 1000):
        monkeypatch.setattr(reader, "BATCH_ROWS", batch_rows)
        for n_jobs in (1, 2, 5):
            assert Sketch.from_data(plan, X, n_jobs=n_jobs) == expected, (batch_rows, n_jobs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16, np.uint8, np.bool_])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "read-only", "table", "object"])
def test_types_and_layouts_change_nothing(rng, dtype, layout):
    values = rng.integers(0, 2 if dtype is np.bool_ else 40, size=(300, 3))
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=0, high=35) for j in range(3)))
    plan = Plan.draw(schema, n_tables=8, random_state=0)
    expected = Sketch.from_data(plan, values.astype(np.float64))
    X = values.astype(dtype)
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "strided":
        X = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    elif layout == "read-only":
        X.setflags(write=False)
    elif layout == "table":
        X = pa.table([pa.array(X[:, j]) for j in range(3)], names=schema.names)
    elif layout == "object":
        X = X.astype(object)
    assert Sketch.from_data(plan, X) == expected


@given(data=schemas_and_rows(), weights=st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_weights_count_as_repeated_rows(data, weights):
    schema, rows = data
    weights = weights[: len(rows)]
    if not any(weights):
        weights[0] = 1
    plan = Plan.draw(schema, n_tables=4, random_state=0)
    repeated = [row for row, w in zip(rows, weights, strict=True) for _ in range(w)]
    weighted = Sketch.from_data(plan, as_table(schema, rows), sample_weight=weights)
    expected = Sketch.from_data(plan, as_table(schema, repeated))
    assert weighted.counts.tolist() == expected.counts.tolist()


def test_the_largest_weight_stays_with_the_counts(tmp_path, rng):
    """A release would otherwise take too little noise for rows that count twice."""
    schema = Schema((Feature.numeric("x", low=0, high=1),))
    plan = Plan.draw(schema, n_tables=4, random_state=0)
    X = rng.random((5, 1))
    once, twice = (Sketch.from_data(plan, X, sample_weight=[w, 1, 1, 1, 0]) for w in (1, 2))
    assert (once.largest_weight, twice.largest_weight) == (1, 2)
    for sketch in (twice + once, once + twice, (twice + once) - once):
        assert sketch.largest_weight == 2
    for sketch, weight in ((once, 1), (twice, 2)):
        sketch.save(tmp_path / "s.hush")
        assert load(tmp_path / "s.hush").largest_weight == weight


def test_a_sample_counts_each_table_alike_and_is_marked(rng):
    X = rng.normal(size=(40_000, 2))
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=-4, high=4) for j in range(2)))
    plan = Plan.draw(schema, detector="lsh_itables", n_tables=9, random_state=0)
    sketch = Sketch.from_data(plan, X, max_samples=1000, random_state=3)
    assert not sketch.fresh_samples
    assert Sketch.from_data(plan, X, max_samples=1000).fresh_samples
    assert sketch.sampled
    assert not Sketch.from_data(plan, X).sampled
    assert (np.add.reduceat(sketch.counts, plan.family.offsets[:-1]) == 1000).all()
    again = Sketch.from_data(plan, X, max_samples=1000, random_state=3, n_jobs=2)
    assert again == sketch
    other = Sketch.from_data(plan, X, max_samples=1000, random_state=4)
    assert other != sketch
    assert (sketch + Sketch.from_data(plan, X)).sampled
    everything = Sketch.from_data(plan, X, max_samples=10**6, random_state=0)
    assert everything.counts.tolist() == Sketch.from_data(plan, X).counts.tolist()


def test_values_outside_are_clipped_and_counted():
    schema = Schema((Feature.numeric("x", low=0, high=1), Feature.categorical("c", ["a"])))
    plan = Plan.draw(schema, n_tables=4, random_state=0)
    rows = [(-5.0, "a"), (0.0, "b"), (1.0, None), (7.0, "a"), (None, "a")]
    sketch = Sketch.from_data(plan, as_table(schema, rows))
    assert sketch.tally.tolist() == [[1, 2], [1, 1]]
    assert sketch.outside() == {"x": 2, "c": 1}
    clipped = [(0.0, "a"), (0.0, "b"), (1.0, None), (1.0, "a"), (None, "a")]
    expected = Sketch.from_data(plan, as_table(schema, clipped))
    assert sketch.counts.tolist() == expected.counts.tolist()


def test_different_plans_do_not_add():
    low = Schema((Feature.numeric("x", low=0, high=1),))
    wide = Schema((Feature.numeric("x", low=0, high=2),))
    a = Sketch.zero(Plan.draw(low, random_state=0))
    for other, expected in [
        (Plan.draw(low, random_state=1), "different hash functions"),
        (Plan.draw(wide, random_state=0), r"feature 'x'.*'high': 1\.0.*'high': 2\.0"),
        (Plan.draw(low, detector="lsh_itables", random_state=0), "'hushtable'.*'lsh_itables'"),
        (Plan.draw(low, random_state=0, n_cells=64), "max_cells"),
    ]:
        with pytest.raises(PlanError, match=expected):
            a + Sketch.zero(other)
    with pytest.raises(TypeError):
        a + 1


def test_refusals(rng):
    schema = Schema((Feature.numeric("x", low=0, high=1),))
    plan = Plan.draw(schema, random_state=0)
    x = rng.random((5, 1))
    with pytest.raises(DataError, match=r"whole numbers"):
        Sketch.from_data(plan, x, sample_weight=[1, 1, 0.5, 1, 1])
    with pytest.raises(DataError, match=r"whole numbers"):
        Sketch.from_data(plan, x, sample_weight=[1, 1, -1, 1, 1])
    with pytest.raises(DataError, match=r"whole numbers"):
        Sketch.from_data(plan, x, sample_weight=[1, 1, np.nan, 1, 1])
    with pytest.raises(DataError, match=r"not a number"):
        Sketch.from_data(plan, x, sample_weight=["a"] * 5)
    with pytest.raises(DataError, match=r"expected \(5,\)"):
        Sketch.from_data(plan, x, sample_weight=[1, 1])
    with pytest.raises(DataError, match=r"2 entries for 5 rows"):
        Sketch.from_data(
            plan,
            pa.RecordBatchReader.from_batches(
                pa.schema([("x", pa.float64())]), pa.table({"x": x[:, 0]}).to_batches()
            ),
            sample_weight=[1, 1],
        )
    with pytest.raises(DataError, match="zero"):
        Sketch.from_data(plan, x, sample_weight=np.zeros(5))
    with pytest.raises(UsageError, match="sample_weight needs all rows"):
        Sketch.from_data(plan, x, sample_weight=np.ones(5), max_samples=3)
    with pytest.raises(UsageError, match="max_samples=0"):
        Sketch.from_data(plan, x, max_samples=0)
    with pytest.raises(UsageError, match="n_jobs=0"):
        Sketch.from_data(plan, x, n_jobs=0)
    with pytest.raises(DataError, match="no rows"):
        Sketch.from_data(plan, x[:0])
    with pytest.raises(PlanError, match="negative"):
        Sketch(plan, Sketch.zero(plan).counts - 1, Sketch.zero(plan).tally)
    with pytest.raises(PlanError, match="counts is"):
        Sketch(plan, np.zeros(3, np.int64), Sketch.zero(plan).tally)


def test_counts_that_no_rows_give_are_refused(rng):
    schema = Schema((Feature.numeric("x", low=0, high=1),))
    counted = Sketch.from_data(Plan.draw(schema, n_tables=3, random_state=0), rng.random((5, 1)))
    one_more, huge = counted.counts.copy(), counted.counts * 2**51
    one_more[0] += 1
    for counts in (one_more, huge):
        with pytest.raises(PlanError, match="the same rows in each"):
            replace(counted, counts=counts)
