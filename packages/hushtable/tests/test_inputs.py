"""Rows as people have them: every container gives the same bits."""

import datetime as dt
import gzip

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable.data.understanding import schema_from_data

ROWS = 300


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age = rng.normal(50, 15, ROWS)
    return pa.table({
        "age": pa.array(np.where(rng.random(ROWS) < 0.1, np.nan, age), from_pandas=True),
        "visits": rng.integers(0, 9, ROWS),
        "smoker": rng.random(ROWS) < 0.3,
        "ward": pa.array(rng.choice(np.array(["north", "south", "é", None]), ROWS)),
    })  # fmt: skip


def schema_of(data):
    reader = as_reader(data).repeatable()
    return schema_from_data(reader).schema


@pytest.fixture(scope="module")
def plan(table):
    return Plan.draw(schema_of(table), n_tables=10, random_state=0)


def write_csv(table, path, **options):
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(**options))
    return path


CONTAINERS = {
    "table": lambda t, _: t,
    "batch": lambda t, _: t.combine_chunks().to_batches()[0],
    "stream": lambda t, _: t.to_reader(max_chunksize=77),
    "dataset": lambda t, _: pa.dataset.dataset(t),
    "pandas": lambda t, _: t.to_pandas(),
    "pandas arrow": lambda t, _: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of parts": lambda t, _: pd.concat([t[:70].to_pandas(), t[70:].to_pandas()]),
    "pandas category": lambda t, _: t.to_pandas().astype({"ward": "category"}),
    "pandas nullable": lambda t, _: t.to_pandas().convert_dtypes(),
    "polars": lambda t, _: pl.from_arrow(t),
    "polars categorical": lambda t, _: pl.from_arrow(t).with_columns(
        pl.col("ward").cast(pl.Categorical)
    ),
    "polars lazy": lambda t, _: pl.from_arrow(t).lazy(),
    "duckdb": lambda t, _: duckdb.from_arrow(t),
    "csv": lambda t, d: write_csv(t, d / "a.csv"),
    "csv semicolon": lambda t, d: write_csv(t, d / "a.csv", delimiter=";"),
    "tsv": lambda t, d: write_csv(t, d / "a.tsv", delimiter="\t"),
    "csv text path": lambda t, d: str(write_csv(t, d / "a.csv")),
    "dictionary": lambda t, _: t.set_column(3, "ward", t["ward"].dictionary_encode()),
    "large strings": lambda t, _: t.set_column(3, "ward", t["ward"].cast(pa.large_string())),
    "string views": lambda t, _: t.set_column(3, "ward", t["ward"].cast(pa.string_view())),
}


def gzipped(t, d):
    write_csv(t, d / "a.csv")
    (d / "a.csv.gz").write_bytes(gzip.compress((d / "a.csv").read_bytes()))
    return d / "a.csv.gz"


def parquet(t, d):
    pq.write_table(t, d / "a.parquet", row_group_size=100)
    return d / "a.parquet"


def folder(t, d):
    d = d / "folder"
    d.mkdir()
    pq.write_table(t.slice(0, 120), d / "a.parquet")
    (d / "more").mkdir()
    write_csv(t.slice(120, 100), d / "more" / "b.csv")
    pq.write_table(t.slice(220), d / "more" / "c.pq")
    (d / "readme.md").write_text("not data")
    return d


def glob(t, d):
    d = folder(t, d)
    (d / "a.parquet").rename(d / "more" / "a.parquet")
    return str(d / "m*" / "*.*")


CONTAINERS |= {"csv.gz": gzipped, "parquet": parquet, "folder": folder, "glob": glob}


@pytest.mark.filterwarnings("ignore:.*distutils:DeprecationWarning")
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_same_bits(table, plan, tmp_path, name):
    expected = Sketch.from_data(plan, table)
    (tmp_path / "once").mkdir()
    assert Sketch.from_data(plan, CONTAINERS[name](table, tmp_path / "once")) == expected
    (tmp_path / "again").mkdir()
    assert schema_of(CONTAINERS[name](table, tmp_path / "again")) == plan.schema


def test_a_numpy_matrix_gives_the_bits_of_its_columns(rng):
    X = rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pa.table([pa.array(X[:, j], from_pandas=True) for j in range(3)], names=list("abc"))
    a = HushTable(n_tables=8, random_state=0).fit(X)
    b = HushTable(n_tables=8, random_state=0).fit(table)
    assert a.sketch_.counts.tolist() == b.sketch_.counts.tolist()
    assert not hasattr(a, "feature_names_in_")
    listed = HushTable(n_tables=8, random_state=0).fit(X.tolist())
    assert listed.sketch_ == a.sketch_


def test_dates_and_times_are_seconds():
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 3), None]
    stamps = [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]
    table = pa.table({
        "day": pa.array(days),
        "at": pa.array([*stamps, None], pa.timestamp("ns", "UTC")),
        "clock": pa.array([dt.time(1), dt.time(2), None], pa.time32("s")),
        "took": pa.array([dt.timedelta(seconds=1.5), dt.timedelta(0), None]),
    })  # fmt: skip
    ranges = {f.name: (f.low, f.high) for f in schema_of(table).features}
    new_year = 1_704_067_200.0
    assert ranges == {
        "day": (new_year, new_year + 2 * 86_400),
        "at": (new_year + 43_200, new_year + 86_400),
        "clock": (3600.0, 7200.0),
        "took": (0.0, 1.5),
    }
    frame = table.to_pandas()
    assert {f.name: (f.low, f.high) for f in schema_of(frame).features}["at"] == ranges["at"]


def test_categories_may_look_like_numbers(tmp_path):
    schema = Schema((Feature.categorical("code", ["1", "2", "10"]),))
    plan = Plan.draw(schema, n_tables=6, random_state=0)
    expected = Sketch.from_data(plan, pa.table({"code": ["1", "2", "10", None, "x", "2"]}))
    # Blank lines are skipped: the missing value is written out.
    (tmp_path / "a.csv").write_text("code\n1\n2\n10\nNA\nx\n2\n")
    assert Sketch.from_data(plan, tmp_path / "a.csv") == expected
    for codes in (
        pa.array([1, 2, 10, None, 7, 2]),
        pd.DataFrame({"code": [1, 2, 10, None, 7, 2]}),  # float64, with gaps
        np.array([[1.0], [2.0], [10.0], [np.nan], [7.0], [2.0]]),
        np.array([[1], [2], [10], [None], [7], [2]], dtype=object),
    ):
        rows = pa.table({"code": codes}) if isinstance(codes, pa.Array) else codes
        assert Sketch.from_data(plan, rows) == expected
    assert expected.tally.tolist() == [[1, 1]]


def test_csv_types_may_change_after_the_first_block(tmp_path):
    # The first four megabytes show whole numbers and nothing; then come fractions and values.
    lines = ["a,b"] + ["7,"] * 1_200_000 + ["7.5,3"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    ranges = [(f.low, f.high) for f in schema_of(tmp_path / "a.csv").features]
    assert ranges == [(7.0, 7.5), (3.0, 3.0)]


def test_constant_columns_are_never_drawn(rng):
    X = np.column_stack([rng.random(100), np.full(100, 3.0), rng.random(100)])
    detector = HushTable(random_state=0).fit(X)
    assert set(detector.plan_.family.feature) == {0, 2}
    assert np.isfinite(HushTable().fit(np.ones((5, 2))).score_samples(np.ones((1, 2)))).all()


def test_missing_values_in_some_rows_only_change_those_rows(rng):
    X = rng.normal(size=(50, 3))
    detector = HushTable(random_state=0).fit(X)
    before = detector.score_samples(X)
    X[7, 1] = np.nan
    after = detector.score_samples(X)
    assert (np.flatnonzero(before != after) == [7]).all()


@pytest.mark.parametrize("name", ["csv", "parquet", "folder", "pandas"])
def test_unused_columns_are_not_read(table, tmp_path, name):
    identifiers = pa.array(range(2**60, 2**60 + ROWS))
    rows = CONTAINERS[name](table.append_column("id", identifiers), tmp_path)
    chosen = ["ward", "age"]
    wanted = table.select(chosen)
    plan = Plan.marginals(schema_of(wanted))
    reader = as_reader(rows).select(chosen)
    assert Sketch.from_data(plan, reader) == Sketch.from_data(plan, wanted)


@pytest.mark.parametrize("name", CONTAINERS)
def test_samples_of_every_kind(table, tmp_path, name):
    detector = LSHiTables(max_samples=20, random_state=0)
    expected = detector.fit(table).score_samples(table)
    rows = CONTAINERS[name](table, tmp_path)
    np.testing.assert_array_equal(detector.fit(rows).score_samples(table), expected)


@pytest.mark.parametrize("name", CONTAINERS)
def test_rows_of_weight_zero_of_every_kind(table, tmp_path, name):
    weights = np.arange(ROWS) % 3
    detector = HushTable(n_tables=5, random_state=0)
    expected = detector.fit(table, sample_weight=weights).score_samples(table)
    rows = CONTAINERS[name](table, tmp_path)
    detector.fit(rows, sample_weight=weights)
    assert detector.feature_names_in_.tolist() == table.column_names
    np.testing.assert_array_equal(detector.score_samples(table), expected)


@pytest.mark.parametrize("name", CONTAINERS)
def test_rows_are_taken_by_number(table, tmp_path, name):
    plan = Plan.marginals(schema_of(table))
    whole = as_reader(CONTAINERS[name](table, tmp_path)).repeatable()
    for rows in map(np.array, ([0], [3, 4, ROWS - 1], range(0, ROWS, 7))):
        reader = whole.take(rows)
        assert reader.n_rows == len(rows) == sum(len(batch) for batch in reader.read())
        assert Sketch.from_data(plan, reader) == Sketch.from_data(plan, table.take(rows))
