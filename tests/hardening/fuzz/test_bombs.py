"""Small files that stand for very large ones."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from limits import limited
from pyarrow import parquet

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.infer import schema_from_data
from hushtable.data.readers import as_reader
from hushtable.errors import DataError, PlanError

PLAN = Plan.draw(Schema([Feature.numeric("a", low=0, high=1)]), n_tables=2, random_state=0)


def count(path):
    Sketch.from_data(PLAN, np.zeros((2, 1)))  # what is loaded once is no part of the bomb
    with limited(1 << 30):
        return Sketch.from_data(PLAN, path)


def test_a_value_of_a_gigabyte(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"0" * (16 << 20)) * 64)
    assert path.stat().st_size < 2e6
    with pytest.raises(DataError, match=r"a\.csv\.gz"):
        count(path)


def test_rows_that_compress_well_are_read_in_flat_memory(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"0\n" * (1 << 20)) * 4)
    assert count(path).n_rows == 4 << 20
    rows = pa.table({"a": pa.array(np.zeros(4 << 20))})
    parquet.write_table(rows, tmp_path / "a.parquet", row_group_size=4 << 20)
    assert (tmp_path / "a.parquet").stat().st_size < 1e5
    assert count(tmp_path / "a.parquet").n_rows == 4 << 20


@pytest.mark.slow
def test_more_columns_than_a_plan_takes(tmp_path):
    path = tmp_path / "a.csv"
    names, row = ",".join(f"c{j}" for j in range(66_000)), ",".join("1" * 66_000)
    path.write_text(f"{names}\n{row}\n")
    with limited(6 << 30), pytest.raises(PlanError, match="takes at most 65,535"):
        schema_from_data(as_reader(path))
