"""How rows fit a schema, against a plain count, and whatever way the rows are cut."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import Feature, Schema
from hushtable.data.check import check_rows

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


def test_used_is_the_part_of_the_range_that_holds_the_middle_98_percent(rng):
    values = rng.normal(50, 5, 20_000)
    low, high = np.quantile(values, [0.01, 0.99])
    assert column(values).used == pytest.approx((high - low) / 100, abs=0.003)
    assert column([None], high=1.0).used == 1.0


def test_a_feature_of_one_value_is_not_narrow():
    assert column([5.0, 5.0], low=5.0, high=5.0).finding is None
