"""How rows fit a schema, against a plain count, and whatever way the rows are cut."""

import math
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import Feature, Schema
from hushtable.data.check import check_rows
from hushtable.data.readers import as_reader

SCHEMA = Schema((
    Feature.numeric("age", low=0, high=120),
    Feature.numeric("temp", low=25, high=45, unit="degrees Celsius"),
    Feature.categorical("ward", ["north", "south"]),
))  # fmt: skip


@pytest.fixture
def rows(rng):
    """Ages with gaps and a few beyond the range, Fahrenheit for Celsius, a ward not listed."""
    n = 5000
    age = rng.integers(-3, 130, n).astype(float)
    age[::50] = np.nan
    ward = rng.choice(np.array(["north", "south", "west"], object), n)
    ward[::7] = None
    return pd.DataFrame({"age": age, "temp": rng.normal(98.6, 1.0, n), "ward": ward})


def column(values, low=0.0, high=100.0):
    """Check one numeric column."""
    (checked,) = check_rows(
        Schema((Feature.numeric("x", low=low, high=high),)), pa.table({"x": pa.array(values)})
    )
    return checked


def test_agrees_with_a_plain_count(rows):
    age, temp, ward = check_rows(SCHEMA, rows)
    assert [one.feature for one in (age, temp, ward)] == list(SCHEMA.features)
    assert {one.rows for one in (age, temp, ward)} == {5000}
    assert (age.missing, age.unseen) == (100, 0)
    assert (age.below, age.above) == ((rows["age"] < 0).sum(), (rows["age"] > 120).sum())
    assert age.outside == age.below + age.above > 0
    assert (temp.missing, temp.below, temp.above) == (0, 0, 5000)
    assert (ward.missing, ward.below, ward.above) == (rows["ward"].isna().sum(), 0, 0)
    assert ward.unseen == ward.outside == (rows["ward"] == "west").sum()
    assert [one.finding for one in (age, temp, ward)] == [None, "outside", None]


def test_any_cut_order_source_and_number_of_threads(rows, tmp_path):
    whole = check_rows(SCHEMA, rows)
    assert check_rows(SCHEMA, rows, n_jobs=2) == whole
    assert check_rows(SCHEMA, rows.sample(frac=1.0, random_state=0)) == whole
    table = pa.Table.from_pandas(rows)
    assert check_rows(SCHEMA, table) == whole
    pieces = [batch for at in range(0, 5000, 37) for batch in table.slice(at, 37).to_batches()]
    assert check_rows(SCHEMA, pa.RecordBatchReader.from_batches(table.schema, pieces)) == whole
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert check_rows(SCHEMA, tmp_path / "rows.csv") == whole


def test_a_matrix(rng):
    X = rng.normal(size=(300, 2)).astype(np.float32)
    X[:30, 0] = np.nan
    schema = Schema(
        (Feature.numeric("a", low=-1, high=1), Feature.numeric("b", low=-9, high=9)), named=False
    )
    a, b = check_rows(schema, X)
    assert (a.missing, a.below, a.above) == (30, (X[:, 0] < -1).sum(), (X[:, 0] > 1).sum())
    assert (b.missing, b.outside) == (0, 0)


def test_ends_of_a_range_are_inside_in_any_precision():
    for kind in (pa.float32(), pa.float64()):
        values = pa.array([0.1, 0.3, 0.2], kind).cast(pa.float64()).to_pylist()
        checked = column(pa.array([0.1, 0.3, 0.2], kind), low=values[0], high=values[1])
        assert (checked.below, checked.above) == (0, 0)
        # A hair above the float32 nearest to 0.1, which as float32 is that number itself.
        low = math.nextafter(values[0], 1.0)
        assert column(pa.array([0.1, 0.3], kind), low=low, high=values[1]).below == 1


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ([None, None], "missing"),
        ([None, 101.0], "outside"),
        ([None, -1.0, 101.0, 50.0], "outside"),
        ([-1.0, 1.0, None, None], None),
        ([7.0, None, 7.0], "constant"),
        ([7.0], "constant"),
        ([0.0, 100.0], None),
        ([0.1, 0.5], "narrow"),
    ],
)
def test_findings(values, finding):
    assert column(pa.array(values, pa.float64())).finding == finding


def test_a_typing_error_hides_no_wrong_unit():
    """A haematocrit as a fraction of 1, on a range in percent, and two values in percent."""
    fractions = np.linspace(0.3, 0.55, 998)
    checked = column(np.append(fractions, [41.0, 44.0]))
    assert checked.finding == "narrow"
    assert checked.used == pytest.approx(0.0025, abs=0.002)
    assert column(100 * fractions).finding is None


def test_used_is_the_part_of_the_range_that_holds_the_middle_98_percent(rng):
    values = rng.normal(50, 5, 20_000)
    low, high = np.quantile(values, [0.01, 0.99])
    assert column(values).used == pytest.approx((high - low) / 100, abs=0.003)
    assert column([None], high=1.0).used == 1.0


def test_categories():
    def finding(texts, categories=("a", "b")):
        schema = Schema((Feature.categorical("c", categories),))
        (checked,) = check_rows(schema, pa.table({"c": pa.array(texts, pa.string())}))
        return checked.finding

    assert finding(["a", "b", "c"]) is None
    assert finding(["a", "a", None]) == "constant"
    assert finding(["a", "c"]) is None
    assert finding(["c", "c", "a"]) == "outside"
    assert finding([None]) == "missing"
    # Nothing that the rows could tell is lost on a feature of one value.
    assert finding(["a"], categories=("a",)) is None


def test_a_feature_of_one_value_is_not_narrow():
    assert column([5.0, 5.0], low=5.0, high=5.0).finding is None


def test_memory_stays_flat():
    """Of 200 batches, only those in hand are alive while the next is read."""
    batches = []

    def read():
        for _ in range(200):
            batch = np.arange(1000.0).reshape(1000, 1)
            batches.append(weakref.ref(batch))
            assert sum(one() is not None for one in batches) <= 4
            yield batch

    reader = as_reader(np.zeros((1, 1))).of_batches(read, None)
    schema = Schema((Feature.numeric("x", low=0, high=1000),), named=False)
    (checked,) = check_rows(schema, reader)
    assert checked.rows == 200_000
