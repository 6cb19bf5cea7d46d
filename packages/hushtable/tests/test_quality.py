"""The data quality of a table: each finding where it is, and none on ordinary rows."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushtable.data import read, table_quality, understand
from hushtable.data.readers import as_reader


def quality(table, **options):
    return table_quality(read(table, **options))


def found(table, kind, **options):
    """The findings of a kind; those of others have to be none."""
    every = quality(table, **options).findings
    # Some tables here are small, and columns that are almost copies follow from each other.
    findings = tuple(one for one in every if one.kind not in ("shape", "relations"))
    assert {one.kind for one in findings} <= {kind}
    return findings


def ordinary(n=2000, seed=0):
    """Rows of a hospital without anything odd."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    return pd.DataFrame({
        "patient": [f"P{7 * i + 100_000}" for i in rng.permutation(n)],
        "age": rng.integers(18, 95, n),
        "sodium": rng.normal(140, 3, n).round(1),
        "cost": rng.lognormal(7, 1.2, n).round(2),
        "visits": rng.poisson(1.5, n),
        "paid": np.where(rng.random(n) < 0.4, 0.0, rng.gamma(2.0, 300.0, n).round(2)),
        "smoker": rng.random(n) < 0.2,
        "ward": rng.choice(["ICU", "surgery", "Köln 1", "Köln 2", "内科"], n),
        "note": [f"came by bus {i} at {i % 24}" for i in rng.permutation(n)],
        "seen": day.astype(str),
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [30, 2000])
def test_ordinary_rows_give_no_findings(n, seed, tmp_path):
    frame = ordinary(n, seed)
    assert quality(frame).findings == ()
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    assert quality(path).findings == ()
    assert table_quality(read(path)).findings == ()
    assert table_quality(as_reader(np.random.default_rng(seed).normal(size=(n, 7)))).findings == ()


def test_constant_and_missing_columns():
    rows = ordinary(100).assign(unit="ml", empty=None, some=[None, "x\u200by"] * 50)
    findings = quality(rows).findings
    assert [(one.kind, one.columns, one.rows, one.examples) for one in findings] == [
        ("constant", ("unit",), 100, ()),
        ("constant", ("some",), 50, ()),
    ]
    assert findings[0].words == 'unit: every row holds "ml".'
    assert findings[1].words == 'some: each of 50 rows with a value holds "x\\u200by".'


def test_days_that_stand_apart_are_a_doubt_of_their_column(tmp_path):
    rows = ordinary()
    rows.loc[::50, "seen"] = "1900-01-01"
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    typed = rows.assign(seen=pd.to_datetime(rows["seen"]))
    for table in (rows, path, typed):
        [one] = (one for one in understand(table) if one.name == "seen")
        assert one.question.startswith("1900-01-01 (40 rows) is far from all other values: is it")
        assert quality(table).findings == ()  # once is enough


def test_equal_rows(tmp_path):
    rows = ordinary(300)
    twice = pd.concat([rows, rows.iloc[[7, 7, 250]]], ignore_index=True)
    [one] = found(twice.drop(columns="patient"), "duplicates")
    assert (one.columns, one.rows, one.examples) == ((), 3, (300, 301, 302))
    assert one.words == "3 rows are equal to an earlier row in all columns."
    every, again = found(twice, "duplicates")
    assert every.rows == again.rows == 3
    assert again.columns == ("patient",)
    assert again.words == "patient: 3 rows have the identifier of an earlier row."
    changed = twice.assign(patient=[f"P{i:07}" for i in range(303)])
    path = tmp_path / "rows.csv"
    changed.to_csv(path, index=False)
    for table in (changed, path):
        [one] = found(table, "duplicates")
        assert (one.columns, one.rows, one.examples) == (("patient",), 3, (300, 301, 302))
        assert one.words == "3 rows are equal to an earlier row in all columns but patient."


cells = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["a" * 9, "a" * 200 + "b", "a" * 200, "a\0", "a"]),
)
hypothesis_rows = st.lists(
    st.tuples(cells, st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.booleans()),
    min_size=1,
    max_size=20,
)


def as_table(rows):
    kinds = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    columns = [pa.array([row[j] for row in rows], kind) for j, kind in enumerate(kinds)]
    return pa.table(columns, names=list("abcd"))


def value(row):
    """A row with each missing text as None, and one zero."""
    text, *others = row
    others[1] += 0.0
    return text if text and text.strip() else None, *others


@example([(None, 0, 0.0, False), (None, 0, 1.0, False), (None, 0, 1.2e308, False)])
@given(hypothesis_rows)
def test_repeated_rows_are_found_and_no_others(rows):
    finite = [row for row in rows if np.isfinite(row[2])] or [("a", 1, 1.0, True)]
    places = [i for i, row in enumerate(finite) if value(row) in map(value, finite[:i])]
    findings = [
        one for one in table_quality(read(as_table(finite))).findings if one.kind == "duplicates"
    ]
    assert sum(one.rows for one in findings) == len(places)
    assert [one.examples for one in findings] == ([tuple(places[:5])] if places else [])


@pytest.mark.parametrize("word", ["Total", "TOTAL:", "Summe", "insgesamt", "Итого", "合計"])
def test_a_cell_that_says_total(word):
    rows = ordinary(300).drop(columns="patient")
    rows.loc[299, "ward"] = word
    [one] = (one for one in understand(rows) if one.name == "ward")
    assert one.question == f"{word!r} in row 299: does this row sum up others?"


def test_totals_among_names_are_noted():
    names = [f"Sum {i}" if i % 12 == 11 else f"r{i}" for i in range(48)]
    [one, _] = understand(pd.DataFrame({"region": names, "units": range(1, 49)}))
    assert one.question.endswith("; 'Sum 11' in row 11: does this row sum up others?")
    assert one.options == (("drop", "region"),)


def test_a_last_row_that_adds_up_the_others():
    rows = ordinary(300)[["ward", "cost", "paid", "age"]]
    rows.loc[300] = [None, rows["cost"].sum(), rows["paid"].sum().round(1), 60]
    [one] = found(rows, "total")
    assert (one.columns, one.rows, one.examples) == (("ward",), 1, (300,))
    assert (
        one.words == "ward: the row of a missing value is the total of the others in cost and paid."
    )
    rows.loc[301] = ["ICU", 5.0, 5.5, 70]
    assert not found(rows, "total")
    alone = pd.DataFrame({"ward": list("abcdefg"), "beds": [3, 5, 2, 8, 1, 4, 23]})
    assert len(found(alone, "total")) == 1
    assert not found(alone.iloc[[0, 1, 2, 3, 4, 5]], "total")
    assert not found(alone.assign(doctors=[1, 7, 2, 3, 9, 6, 5]), "total")


def test_rows_that_are_totals_columns_that_group_alike_and_labels_of_outliers(rng):
    lands = ["Berlin", "Hessen", "Saarland", "Bundesgebiet"]
    births, deaths = rng.integers(10_000, 90_000, (2, 12, 4))
    births[:, 3], deaths[:, 3] = births[:, :3].sum(axis=1), deaths[:, :3].sum(axis=1)
    rows = pd.DataFrame({
        "land": lands * 12, "code": ["DE3", "DE7", "DEC", "DE"] * 12, "number": [11, 6, 10, 0] * 12,
        "births": births.ravel(), "deaths": deaths.ravel(), "anomaly": [0, 0, 0, 1] * 6 + [0] * 24,
    })  # fmt: skip
    words = [one.words for one in table_quality(read(rows)).findings]
    assert words[0] == (
        "anomaly looks like a label of outliers: leave it out of the model (drop=['anomaly'])."
    )
    assert "land, code and number are copies: each tells what the others hold." in words
    assert 'land: rows of "Bundesgebiet" are totals of the others in births and deaths.' in words
    assert not any("number" in line and "copies" not in line for line in words)


HOSTILE = ["=1+1", "<script>", "\u202egnp", "a\0b", "\U0001f600" * 50, "x" * 100_000, "\ud7ff", "'"]


def test_hostile_texts():
    table = pa.table({"\u202e<b>": HOSTILE * 3, "b": [f"{i}\n" for i in range(24)]})
    report = quality(table)
    assert [one.rows for one in report.findings] == []
    assert all(len(text) <= 80 for one in report.columns for text in one.examples)
    labels = pa.table({"a": ["\u202eICU\x1b[31m", "ICU\x1b[31m", "c"] * 9, "b": range(27)})
    words = " ".join(map(str, (one.question for one in understand(labels))))
    assert "\\u202eICU\\x1b[31m" in words
    assert words.isprintable()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None] * 9, pa.uint64()),
        pa.array([1.5, float("nan"), None] * 9, pa.float32()),
        pa.array(np.array([1.5, 2, 3] * 9, np.float16)),
        pa.array([True, False, None] * 9),
        pa.array([date(2024, 1, 1), date(9999, 12, 31), None] * 9),
        pa.array([1, 2**60, None] * 9, pa.timestamp("ns", "UTC")),
        pa.array([1, 2**60, None] * 9, pa.timestamp("s")),
        pa.array([timedelta(1), None, timedelta(2)] * 9),
        pa.array([1, 2, None] * 9, pa.time64("ns")),
        pa.array(["1.50", "2.25", None] * 9).cast(pa.decimal128(9, 2)),
        pa.nulls(27),
    ],
)
def test_types_of_values(values):
    table = pa.table({"a": values, "n": np.random.default_rng(0).normal(size=27)})
    report = table_quality(read(table))
    odd = {pa.float32(): (18, 1), pa.float16(): (0, 3), pa.null(): (27, 0)}
    one = report.columns[0]
    assert (one.n_missing, one.n_different) == odd.get(values.type, (9, 2))
    twice = table_quality(read(pa.concat_tables([table, table.slice(3, 1)])))
    assert [one.rows for one in twice.findings if one.kind == "duplicates"] == [1]


def test_times_that_floats_do_not_tell_apart_are_different_rows():
    table = pa.table({"a": pa.array([2**60, 2**60 + 1], pa.timestamp("ns"))})
    assert not [one for one in table_quality(read(table)).findings if one.kind == "duplicates"]
