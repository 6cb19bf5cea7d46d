"""Rows of a sparse matrix give the bits of the dense ones; few of them at a time are made dense."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable.data.readers.reader import BATCH_VALUES
from hushtable.errors import DataError

WIDE = 400


def some_sparse(seed=0, rows=300, columns=WIDE, share=0.01):
    """Return a matrix in CSR with NaN, zeros of both signs, and a column without zeros."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(
        rows, columns, share, "csr", random_state=rng, data_rvs=rng.standard_normal
    )
    some = rng.integers(0, 40, X.nnz)
    X.data[some == 0] = np.nan
    X.data[some == 1] = 0.0
    X.data[some == 2] = -0.0
    return scipy.sparse.csr_array(scipy.sparse.hstack([X[:, 1:], rng.uniform(1.0, 2.0, (rows, 1))]))


def dense(X):
    return X.toarray() if X.dtype.kind == "f" else X.toarray().astype(np.float64)


def assert_same(detector, X, n_jobs=None, **fitting):
    """Fit to X and to its dense rows: the same plan, counts, scores, offset."""
    one, other = (detector().set_params(n_jobs=n_jobs).fit(x, **fitting) for x in (X, dense(X)))
    assert one.plan_.plan_id == other.plan_.plan_id
    assert one.sketch_ == other.sketch_
    assert one.offset_ == other.offset_
    expected = other.score_samples(dense(X))
    np.testing.assert_array_equal(one.score_samples(X), expected)
    np.testing.assert_array_equal(one.score_samples(dense(X)), expected)
    assert one.understanding_ == other.understanding_
    return one


DETECTORS = {
    "two passes": lambda: HushTable(n_tables=20, random_state=0),
    "one pass": lambda: HushTable(n_tables=20, passes=1, random_state=0),
    "novelty": lambda: HushTable(n_tables=20, novelty=True, random_state=0),
    "contamination": lambda: HushTable(n_tables=20, contamination=0.1, random_state=0),
    "samples": lambda: LSHiTables(n_tables=20, max_samples=100, random_state=0),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_give_the_bits_of_dense_rows(name):
    assert_same(DETECTORS[name], some_sparse(rows=3_000))


def test_threads_and_weights_change_no_bit():
    X = some_sparse(rows=20_000)
    assert_same(DETECTORS["two passes"], X, n_jobs=2)
    times = np.random.default_rng(1).integers(0, 4, X.shape[0])
    assert_same(DETECTORS["two passes"], X, sample_weight=times)


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "int64", "uint64", "int32", "int8", "bool"]
)
def test_types_give_the_bits_of_dense_rows(dtype):
    X = some_sparse()
    X.data = np.abs(np.nan_to_num(30.0 * X.data))
    assert_same(DETECTORS["two passes"], X.astype(dtype))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok"])
def test_forms_give_the_bits_of_dense_rows(form):
    assert_same(DETECTORS["two passes"], some_sparse().asformat(form))
    matrix = scipy.sparse.csr_matrix(some_sparse()).asformat(form)
    assert_same(DETECTORS["two passes"], matrix)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_values_stored_twice_are_added_in_their_order(dtype):
    rng = np.random.default_rng(3)
    k = 1_600
    row, column = rng.integers(0, 300, k), rng.integers(0, WIDE, k)
    row[: k // 2], column[: k // 2] = row[k // 2 :], column[k // 2 :]
    values = (50.0 * rng.standard_normal(k)).astype(dtype)
    X = scipy.sparse.coo_array((values, (row, column)), shape=(300, WIDE))
    assert_same(DETECTORS["two passes"], X)
    order = np.argsort(row, kind="stable")  # CSR, columns in no order and twice
    bounds = np.searchsorted(row[order], np.arange(301))
    twice = scipy.sparse.csr_array((values[order], column[order], bounds), shape=(300, WIDE))
    kept = twice.copy()
    assert_same(DETECTORS["two passes"], twice)
    np.testing.assert_array_equal(twice.indices, kept.indices)  # the caller's, as it was
    np.testing.assert_array_equal(twice.data, kept.data)


@given(st.integers(0, 2**32 - 1), st.floats(-3.0, 3.0), st.floats(0.0, 4.0))
def test_ranges_without_zero_are_clipped_as_dense_rows_are(seed, low, width):
    X = some_sparse(seed, rows=60)
    names = [f"x{j}" for j in range(WIDE)]
    rng = np.random.default_rng(seed)
    lows = np.where(rng.random(WIDE) < 0.9, -3.0, low)
    features = [Feature.numeric(n, low=a, high=a + width) for n, a in zip(names, lows, strict=True)]
    schema = Schema(features, named=False)
    expected = Sketch.from_data(Plan.marginals(schema), dense(X))
    assert Sketch.from_data(Plan.marginals(schema), X) == expected
    plan = Plan.draw(schema, n_tables=10, random_state=0)
    expected = Sketch.from_data(plan, dense(X))
    found = Sketch.from_data(plan, X)
    assert found == expected
    np.testing.assert_array_equal(found.tally, expected.tally)
    detector = HushTable.from_counts(found)
    np.testing.assert_array_equal(detector.score_samples(X), detector.score_samples(dense(X)))


def test_batches_are_dense_and_hold_few_values():
    X = some_sparse(rows=12_000)
    batches = list(as_reader(X).read())
    assert len(batches) > 1
    assert max(batch.size for batch in batches) <= BATCH_VALUES
    np.testing.assert_array_equal(np.concatenate(batches), X.toarray())


def test_messages_are_those_of_dense_rows():
    large = scipy.sparse.csr_array(np.eye(300, WIDE)).astype(np.int64)
    large.data[7] = 2**60
    infinite, missing = some_sparse(), some_sparse()
    infinite.data[-1] = np.inf
    missing.data[missing.indices == 3] = np.nan
    missing = scipy.sparse.csr_array(missing)
    for X in (large, infinite):
        words = []
        for rows in (X, X.toarray()):
            with pytest.raises(DataError) as error:
                HushTable(random_state=0).fit(rows)
            words.append(str(error.value))
        assert words[0] == words[1]
    with pytest.raises(DataError, match="100,000 columns: needs 65,535 at most; choose columns"):
        HushTable().fit(scipy.sparse.csr_array((5, 100_000)))
    full = scipy.sparse.csr_array(np.where(np.arange(WIDE) == 3, np.nan, 0.0) * np.ones((9, 1)))
    with pytest.raises(DataError, match="all its values are missing"):
        HushTable().fit(full)


@pytest.mark.slow
def test_few_dense_rows_are_made_at_a_time():
    X = scipy.sparse.random(20_000, 3_000, 0.001, "csr", random_state=0)  # dense: 480 MB
    HushTable(random_state=0).fit(X[:50])
    tracemalloc.start()
    try:
        HushTable(random_state=0).fit(X).score_samples(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"peak of fit and scores: {peak / 1e6:.0f} MB")
    assert peak < 100e6
