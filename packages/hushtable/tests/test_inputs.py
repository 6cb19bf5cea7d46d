"""Rows as people have them: every container gives the same bits."""

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

from hushtable import LSHiTables, Plan, Sketch
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


@pytest.mark.parametrize("name", CONTAINERS)
def test_samples_of_every_kind(table, tmp_path, name):
    detector = LSHiTables(max_samples=20, random_state=0)
    expected = detector.fit(table).score_samples(table)
    rows = CONTAINERS[name](table, tmp_path)
    np.testing.assert_array_equal(detector.fit(rows).score_samples(table), expected)
