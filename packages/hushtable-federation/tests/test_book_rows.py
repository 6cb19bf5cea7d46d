"""The same rows under another name are found, and others are not."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch, kernels
from hushtable.data.persons import SAMPLE
from hushtable.data.readers import as_reader
from hushtable.errors import DataError, PlanError, UsageError
from hushtable_federation.book.digests import RowDigester, RowDigests

KEY = b"k" * 32
SCHEMA = Schema([
    Feature.numeric("b", low=0, high=1),
    Feature.categorical("a", ["x", "y"]),
    Feature.numeric("c", low=0, high=1),
])  # fmt: skip


def numbers(d):
    return Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(d)])


def digests(data, schema=None, key=KEY):
    schema = schema or numbers(np.shape(data)[1])
    digester = RowDigester(schema, key)
    for _ in digester.watch(as_reader(data)).read():
        pass
    return digester.digests()


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(2, n))
    numbers[rng.random((2, n)) < 0.1] = np.nan
    texts = rng.choice(["x", "y", "other", None], n)
    return pa.table({"b": pa.array(numbers[0], from_pandas=True), "a": pa.array(list(texts)),
                     "c": pa.array(numbers[1], from_pandas=True)})  # fmt: skip


def mixed(h):
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD % 2**64
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return h ^ h >> 33


@pytest.mark.usefixtures("each_build")
@given(st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=20),
       st.integers(0, 2**64 - 1))  # fmt: skip
def test_hashes_equal_the_oracles(rows, seed):
    words = np.array(rows, np.float64).view(np.uint64)
    hashes = np.full(len(rows), seed, np.uint64)
    order = [2, 0, 1]
    kernels.fold_words(words, np.array(order), hashes)
    total = kernels.finish_hashes(hashes)
    expected = []
    for row in rows:
        h = seed
        for j in order:
            x = float("nan") if row[j] != row[j] else row[j] + 0.0
            word = int(np.float64(x).view(np.uint64)) if x == x else 0x7FF8000000000000
            h = (h ^ word) * 0x9E3779B97F4A7C15 % 2**64
            h ^= h >> 32
        expected.append(mixed(h))
    assert hashes.tolist() == expected
    assert int(total) == sum(expected) % 2**64


@pytest.mark.parametrize("n", [3, 900, 5_000])
def test_any_order_batches_and_container(n):
    rows = table(n)
    expected = digests(rows, SCHEMA).to_bytes()
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(n)))
    small = pa.Table.from_batches(rows.to_batches(max_chunksize=max(1, n // 7)))
    for same in (shuffled, small, rows.to_pandas()):
        assert digests(same, SCHEMA).to_bytes() == expected
    other = Schema([SCHEMA.features[j] for j in (2, 0, 1)])
    assert digests(rows.select(["c", "b", "a"]), other).to_bytes() == expected
    back = RowDigests.from_bytes(expected)
    assert back.to_bytes() == expected
    assert digests(rows, SCHEMA, b"l" * 32).whole != back.whole


def test_how_much_is_shared():
    X = np.random.default_rng(0).normal(size=(30_000, 3))
    whole = digests(X)
    assert whole.n_distinct == pytest.approx(30_000, rel=0.15)
    for start, stop, shared in ((0, 30_000, 1.0), (0, 2_000, 1.0), (0, 300, 1.0)):
        part = digests(X[start:stop])
        assert part.shared(whole) == whole.shared(part) == shared
        assert part.same_people(whole)
    half = digests(np.concatenate([X[:5_000], -X[:5_000]]))
    assert half.shared(whole) == pytest.approx(0.5, abs=0.1)
    assert whole.same_people(half)
    few = digests(np.concatenate([X[:500], -X[:9_500]]))
    assert few.shared(whole) == pytest.approx(0.05, abs=0.04)
    others = digests(-X)
    assert others.shared(whole) == 0.0
    assert not others.same_people(whole)


def test_few_distinct_rows_are_the_same_only_if_all_are():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(5_000, 2)).astype(float)
    assert digests(X).n_distinct == 9
    assert digests(X).same_people(digests(X[::-1]))
    assert not digests(X).same_people(digests(X[1:]))
    # Distinct rows enough, but each there three times: people are distinguished no better.
    often = np.repeat(rng.normal(size=(1_000, 2)), 3, axis=0)
    assert not digests(often).varied
    assert digests(often).same_people(digests(often))
    assert not digests(often).same_people(digests(often[3:]))


def test_other_columns_are_not_compared():
    X = np.random.default_rng(0).normal(size=(500, 3))
    renamed = Schema([Feature.numeric(name, low=-5, high=5) for name in "pqr"])
    assert not digests(X).same_people(digests(X, renamed))


def test_zero_has_one_sign_and_missing_one_form():
    X = np.array([[0.0, np.nan], [1.0, 2.0]])
    Y = np.array([[-0.0, -np.nan], [1.0, 2.0]])
    assert digests(X).to_bytes() == digests(Y).to_bytes()
    assert digests(X).to_bytes() == digests(X.astype(np.float32)).to_bytes()


def test_values_that_cannot_be_taken():
    """Anyone who reads has the better words; who asks for the digests learns of it anyway."""
    rows = pa.table({"x0": [2**60], "x1": [1.0]})
    digester = RowDigester(numbers(2), KEY)
    assert len(list(digester.watch(as_reader(rows)).read())) == 1
    with pytest.raises(DataError, match="holds the integer"):
        digester.digests()
    rows = pa.table({"x0": ["text"], "x1": [1.0]})
    with pytest.raises(DataError, match="'text' in row 0 is not a number"):
        list(digester.watch(as_reader(rows)).read())
    with pytest.raises(UsageError, match="not read completely"):
        digester.digests()
    with pytest.raises(DataError, match="3 columns"):
        digester.watch(as_reader(np.zeros((2, 3))))


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"features":[]}'])
def test_bytes_that_are_no_digests(content):
    with pytest.raises(PlanError, match="no digests"):
        RowDigests.from_bytes(content)


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numpy", "arrow"])
def test_what_it_costs(kind):
    """Against counting 1e6 x 10 rows under a plan for private release: some 15% more."""
    X = np.random.default_rng(0).normal(size=(1_000_000, 10))
    schema = numbers(10)
    plan = Plan.draw(schema, random_state=0, expected_rows=1_000_000, epsilon=1.0)
    data = X if kind == "numpy" else pa.table({f"x{j}": X[:, j] for j in range(10)})
    reader, digester = as_reader(data), RowDigester(schema, KEY)
    plain, watched = [], []
    for _ in range(8):
        for read, found in ((reader, plain), (digester.watch(reader), watched)):
            start = time.thread_time()
            Sketch.from_data(plan, read, n_jobs=1)
            found.append(time.thread_time() - start)
    print(f"{kind}: {min(plain):.3f} s, with digests {min(watched):.3f} s")
    assert len(digester.digests().hashes) == SAMPLE
    assert min(watched) < 1.5 * min(plain)
