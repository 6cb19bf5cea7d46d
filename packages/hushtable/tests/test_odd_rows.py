"""Reasons of rows that are odd in kind: types, frames, batches and values at the edge."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushtable import HushTable

DAYS = [datetime.datetime(2026, 1, 1) + datetime.timedelta(days=i % 50) for i in range(60)]
SECONDS = [day.replace(tzinfo=datetime.UTC).timestamp() for day in DAYS]
FLAGS = np.arange(60) % 5 // 4
#: A column in each of several types, by their names.
COLUMNS = {
    "int": pa.array(FLAGS),
    "int8": pa.array(FLAGS.astype(np.int8)),
    "float": pa.array(FLAGS.astype(float)),
    "half": pa.array(FLAGS.astype(np.float16)),
    "bool": pa.array(FLAGS == 1),
    "decimal": pa.array([decimal.Decimal(int(x)) for x in FLAGS]),
    "dictionary": pa.array(FLAGS).dictionary_encode(),
    "null": pa.nulls(60),
    "date": pa.array(DAYS, pa.date32()),
    "milliseconds": pa.array(DAYS, pa.timestamp("ms")),
    "nanoseconds": pa.array(DAYS, pa.timestamp("ns")),
    "with zone": pa.array(DAYS, pa.timestamp("us", "UTC")),
    "seconds": pa.array(SECONDS),
}


# --- several files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "plain"),
    [
        ("int", "float", "float"),
        ("float", "bool", "float"),
        ("bool", "int8", "float"),
        ("decimal", "float", "float"),
        ("half", "decimal", "float"),
        ("dictionary", "bool", "float"),
        ("date", "nanoseconds", "milliseconds"),
        ("milliseconds", "with zone", "milliseconds"),
        ("with zone", "date", "milliseconds"),
        ("date", "seconds", "milliseconds"),
    ],
)
def test_files_may_have_a_column_in_different_types(rng, tmp_path, first, second, plain):
    """Reasons, and those of a review, are the ones of rows that have it in a single type."""
    z = rng.normal(size=(2, 60))
    for folder, kinds in (("mixed", (first, second)), ("plain", (plain, plain))):
        (tmp_path / folder).mkdir()
        for k, kind in enumerate(kinds):
            table = pa.table({"z": z[k], "m": COLUMNS[kind]})
            pq.write_table(table, tmp_path / folder / f"{k}.parquet")
    detector = HushTable(random_state=0, n_tables=20).fit(tmp_path / "plain")
    expected = detector.outliers(tmp_path / "plain", n=30)
    found = detector.outliers(tmp_path / "mixed", n=30)
    assert found["score"].equals(expected["score"])
    assert len(set(found["file"].to_pylist())) == 2
    assert found["words"].equals(expected["words"])
    rows = detector.review(tmp_path / "mixed")
    words = [row.words for row, _ in zip(rows, range(9), strict=False)]
    assert words == [
        row.words for row, _ in zip(detector.review(tmp_path / "plain"), words, strict=False)
    ]
