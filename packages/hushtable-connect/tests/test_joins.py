"""Several tables: features of visits beside patients, against pandas, and what is refused."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import load
from hushtable.cli import main
from hushtable.data import read
from hushtable.data.options import RowOptions
from hushtable.data.readers import Reader, Unasked
from hushtable.errors import DataError, MissingExtraError, PluginError, UsageError

pytest.importorskip("duckdb", reason="DuckDB aggregates")

from hushtable_connect.joins import grouped, joined
from hushtable_connect.joins.request import JoinFeature, JoinRequest, table_name

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

NUMBERS = ("mean", "median", "sum", "min", "max", "std")


def columns(reader):
    """Return the rows of a reader as a dict of lists."""
    table = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in reader.read()], promote_options="permissive"
    )
    return table.to_pydict()


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return str(path)


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """Write patients and visits into the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids = [f"P{i:03}" for i in range(120)]
    pd.DataFrame({"patient": ids, "age": rng.integers(18, 95, 120)}).to_csv(
        "patients.csv", index=False
    )
    visits = pd.DataFrame({
        "patient": rng.choice([*ids[5:], "P900", "P901"], 900),
        "value": rng.normal(75, 9, 900).round(1),
        "date": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, 900), unit="D"),
        "ward": rng.choice(["ICU", "east"], 900),
    })  # fmt: skip
    visits.to_csv("visits.csv", index=False)
    return visits


# --- the words ------------------------------------------------------------------------------------


def test_the_words_of_the_option():
    asked = JoinRequest.parse("visits.csv on patient: count, mean of value, last date")
    assert (asked.file, asked.table, asked.key, asked.key_there) == (
        "visits.csv", "visits", "patient", "patient",
    )  # fmt: skip
    assert [asked.named(one.name) for one in asked.features] == [
        "visits.count", "visits.mean_value", "visits.last_date",
    ]  # fmt: skip
    assert asked.columns == ("value", "date")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"on: call, 2.csv" on "a:b"="c=d": sum of "x, y"',
         ("on: call, 2.csv", "a:b", "c=d", [JoinFeature("sum", "x, y")])),
        ("my visits.csv on patient id=pid: mean heart rate",
         ("my visits.csv", "patient id", "pid", [JoinFeature("mean", "heart rate")])),
        ("v.csv on id: last of value by date, first ward by seen",
         ("v.csv", "id", "id", [JoinFeature("last", "value", "date"),
                                JoinFeature("first", "ward", "seen")])),
        ('v.csv on id: share of ward=ICU, share of "a = b"="x, y"',
         ("v.csv", "id", "id", [JoinFeature("share", "ward", value="ICU"),
                                JoinFeature("share", "a = b", value="x, y")])),
        ('v.csv on id: count of "say ""hi"""',
         ("v.csv", "id", "id", [JoinFeature("count", 'say "hi"')])),
        ("v.csv on id: mean of days on drug", ("v.csv", "id", "id",
                                               [JoinFeature("mean", "days on drug")])),
        ("on id: COUNT", (None, "id", "id", [JoinFeature("count")])),
    ],
)  # fmt: skip
def test_names_in_quotes_and_without(text, expected):
    asked = JoinRequest.parse(text)
    assert (asked.file, asked.key, asked.key_there, [*asked.features]) == expected


def test_a_layout_and_a_name():
    asked = JoinRequest.parse(
        "clinic.xlsx (sheet=All visits, skip_lines=2, header=no) as visits on id: count"
    )
    assert (asked.file, asked.table) == ("clinic.xlsx", "visits")
    assert (asked.layout.sheet, asked.layout.skip_lines, asked.layout.header) == (
        "All visits", 2, False,
    )  # fmt: skip
    asked = JoinRequest.parse(
        'sqlite:///w.db ("query=SELECT a, (b) FROM v") as v on a: mean of b'.replace(
            '("query', "(query"
        )
        .replace('v")', "v)")
        .replace("a, (b)", "(b)")
    )
    assert asked.layout.query == "SELECT (b) FROM v"


@pytest.mark.parametrize(
    ("file", "name"),
    [("a/visits.csv.gz", "visits"), ("visits-*.csv", "visits"), ("s3://b/labs/", "labs"),
     (r"C:\x\visits 2.csv", "visits 2"), ("https://h/visits.csv?x=1.y", "visits")],
)  # fmt: skip
def test_the_name_of_a_table(file, name):
    assert table_name(file) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("visits.csv", "there is no ' on '"),
        ("visits.csv on patient", "'on patient': needs on KEY: or on KEY=KEY_THERE:"),
        ("visits.csv on : count", "needs on KEY:"),
        ("visits.csv on patient:", "needs one feature"),
        ("v.csv on id: avg of x", "'avg of x' is not a feature.*mean"),
        ("v.csv on id: medain of x", "'median' is near"),
        ("v.csv on id: mean", "mean needs a column"),
        ("v.csv on id: share of ward", "'share of ward' is not a feature"),
        ("v.csv on id: mean of x by date", "by needs first or last"),
        ('v.csv on id: mean of "x', "is not closed"),
        ("v.csv on id: count, count", "two features have the name 'count'"),
        ("v.csv on id: count of id", "'id' is the key"),
        ("v.csv (sheat=A) on id: count", r"\(sheat=A\) is not an entry of a file"),
        ("v.csv (skip_lines=two) on id: count", r"\(skip_lines=two\) is not an entry"),
        ("*.csv on id: count", "FILE as visits on"),
        ("on id=pid: count", "there is one key"),
    ],
)  # fmt: skip
def test_a_piece_that_is_not_understood_is_named(text, words):
    with pytest.raises(UsageError, match=words):
        JoinRequest.parse(text)


# --- the values -----------------------------------------------------------------------------------


@st.composite
def two_tables(draw):
    keys = draw(st.lists(st.integers(0, 9), min_size=1, max_size=20))
    there = draw(st.lists(st.sampled_from([*keys, 77, None]), min_size=1, max_size=40))
    number = st.none() | st.floats(-1e6, 1e6, allow_nan=False, width=32)
    day = st.none() | st.integers(0, 400)
    n = len(there)
    values = draw(st.lists(number, min_size=n, max_size=n))
    days = draw(st.lists(day, min_size=n, max_size=n))
    wards = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n))
    visits = pd.DataFrame({
        "key": pd.array(there, "Int64"), "value": pd.array(values, "Float64"), "ward": wards,
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(pd.array(days, "Int64"), unit="D"),
    })  # fmt: skip
    return keys, visits


@given(two_tables())
def test_features_are_those_of_pandas(tables):
    keys, visits = tables
    if not set(keys) & set(visits["key"].dropna()):
        return
    asked = [
        "count", "count of value", "distinct ward", "share of ward=a", "last of value by day",
        "first of ward by day", "first day", "last day", *(f"{how} of value" for how in NUMBERS),
    ]  # fmt: skip
    rows = pa.table({"key": keys, "x": np.arange(len(keys), dtype=float)})
    visits_there = pa.Table.from_pandas(visits, preserve_index=False)
    found = columns(joined(rows, visits_there, on="key", features=asked, name="v"))
    assert found["key"] == keys
    assert found["x"] == list(range(len(keys)))
    for place, key in enumerate(keys):
        some = visits[visits["key"] == key]
        assert found["v.count"][place] == len(some)
        assert found["v.count_value"][place] == some["value"].count()
        assert found["v.distinct_ward"][place] == some["ward"].nunique()
        share = (some["ward"].dropna() == "a").mean()
        assert found["v.share_ward=a"][place] == (None if np.isnan(share) else share)
        for how in NUMBERS:
            number = getattr(some["value"], how)(**{"min_count": 1} if how == "sum" else {})
            mine = found[f"v.{how}_value"][place]
            assert mine is None if pd.isna(number) else mine == pytest.approx(number, abs=1e-6)
        assert found["v.first_day"][place] == (None if some.empty else pd_day(some["day"].min()))
        assert found["v.last_day"][place] == (None if some.empty else pd_day(some["day"].max()))
        for how, name, end in (("last", "value", -1), ("first", "ward", 0)):
            dated = some.dropna(subset=[name, "day"]).sort_values("day", kind="stable")
            value = None if dated.empty else dated[name].iloc[end]
            assert found[f"v.{how}_{name}"][place] == value


def pd_day(value):
    return None if pd.isna(value) else value.to_pydatetime()


def test_files_are_read_as_their_owner_means_them(tmp_path):
    patients = write(tmp_path / "patients.csv", "patient;age\nA;30\nB;41\nC;52\n")
    visits = write(
        tmp_path / "visits.csv",
        "patient;value;date;\u00fcbel\nA;1,5;28.02.2026;ja\nA;2,25;01.03.2026;nein\n"
        "B;1.234,5;03.12.2025;ja\nB;n/a;04.12.2025;ja\n",
        "cp1252",
    )
    asked = ["sum of value", "last date", "last value by date", "share of \u00fcbel=ja"]
    found = columns(joined(patients, read(visits, missing=["n/a"]), on="patient", features=asked))
    assert found["visits.sum_value"] == [3.75, 1234.5, None]
    assert found["visits.last_value"] == [2.25, 1234.5, None]
    assert [day and f"{day:%Y-%m-%d}" for day in found["visits.last_date"]] == [
        "2026-03-01", "2025-12-04", None,
    ]  # fmt: skip
    assert found["visits.share_\u00fcbel=ja"] == [0.5, 1.0, None]


def test_keys_are_texts_without_blanks_in_one_form_of_unicode():
    rows = pa.table({"id": ["Zo\u00eb", " b", "7", "007", "", None]})
    visits = pa.table({"pid": ["Zoe\u0308", "b ", "b", "7", "7.5"]})
    found = joined(rows, visits, on=("id", "pid"), features=["count"], name="v")
    assert columns(found)["v.count"] == [1, 2, 1, 0, None, None]
    assert found.found == (
        "1 of 6 rows has no row in v", "2 of 6 rows have no 'id' to join by",
        "1 key of v (1 row) is not in the data",
    )  # fmt: skip


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.float64(), pa.string()])
def test_a_whole_number_is_its_text(kind):
    visits = pa.table({"id": pa.array([7, 7, 12]).cast(kind)})
    found = joined(pa.table({"id": ["7", "007", "12"]}), visits, on="id", features=["count"],
                   name="v")  # fmt: skip
    assert columns(found)["v.count"] == [2, 0, 1]


def test_rows_keep_their_order_in_several_batches_and_files(tmp_path):
    for part in range(3):
        ids = np.arange(part * 30_000, (part + 1) * 30_000)[::-1]
        pyarrow.csv.write_csv(pa.table({"id": ids, "x": ids / 2}), tmp_path / f"rows-{part}.csv")
    times = np.random.default_rng(0).integers(0, 4, 90_000)
    visits = pa.table({"id": np.repeat(np.arange(90_000), times)})
    found = joined(str(tmp_path / "rows-*.csv"), visits, on="id", features=["count"], name="v")
    assert len(found.files) == 3
    assert len(list(found.read())) > 3
    for _ in range(2):  # each pass begins again
        batches = list(found.read())
        ids = np.concatenate([np.asarray(b.column("id")).astype(int) for b in batches])
        counts = np.concatenate([np.asarray(b.column("v.count")) for b in batches])
        assert np.array_equal(counts, times[ids])
    some = found.select(["v.count"])
    assert np.array_equal(np.concatenate([np.asarray(b.column(0)) for b in some.read()]), counts)
    assert np.array_equal(
        np.concatenate([np.asarray(b.column(0)) for b in found.select(["x"]).read()]).astype(float),
        ids / 2,
    )


def test_duplicated_keys_and_two_tables():
    rows = pa.table({"id": [2, 1, 2]})
    rows = joined(rows, pa.table({"id": [1, 2, 2]}), on="id", features=["count"], name="a")
    rows = joined(rows, pa.table({"id": [2], "x": [5.0]}), on="id", features=["max x"], name="b")
    assert rows.found == (
        "1 of 3 rows has the 'id' of an earlier row", "1 of 3 rows has no row in b",
        "1 of 3 rows has the 'id' of an earlier row",
    )  # fmt: skip
    assert columns(rows) == {"id": [2, 1, 2], "a.count": [2, 1, 2], "b.max_x": [5.0, None, 5.0]}


def test_rows_are_made_of_visits_alone():
    visits = pa.table({"id": ["b", "a", None, "b "], "x": [1.0, 5.0, 9.0, 2.0]})
    rows = grouped(visits, on="id", features=["count", "mean of x"])
    assert columns(rows) == {"id": ["b", "a"], "count": [2, 1], "mean_x": [1.5, 5.0]}
    assert rows.found == ("left out 1 of 4 rows, which have no 'id'",)
    assert rows.place(1) == "the row of id a"


def test_sums_are_the_same_each_time():
    rng = np.random.default_rng(0)
    visits = pa.table({"id": rng.integers(0, 50, 300_000), "x": rng.lognormal(0, 20, 300_000)})
    asked = ["sum x", "mean x", "std x"]
    first, second = (columns(grouped(visits, on="id", features=asked)) for _ in range(2))
    assert first == second


# --- what is refused ------------------------------------------------------------------------------

VISITS = pa.table({
    "id": ["a", "a", "b"], "value": [1.0, 2.0, 3.0], "ward": ["x", "y", "x"],
    "date": pa.array(["2026-01-01", "2026-01-02", "2026-01-03"]).cast(pa.date32()),
})  # fmt: skip


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("mean of valeu", r"v has no column \['valeu'\].*'value' is near"),
        ("mean of ward", "holds texts.*mean needs numbers or dates"),
        ("sum of date", "holds dates.*sum needs numbers"),
        ("last of value", "which row is the last.*last of value by DATE"),
        ("last of value by ward", "by needs dates or numbers"),
        ("share of value=many", "'many' is not one"),
    ],
)
def test_a_feature_that_a_column_cannot_give(feature, words):
    with pytest.raises(DataError, match=words):
        joined(pa.table({"id": ["a"]}), VISITS, on="id", features=[feature], name="v")


def test_rows_that_a_table_does_not_fit():
    def join(rows, table=VISITS, **other):
        return joined(rows, table, **{"on": "id", "features": ["count"], "name": "v"} | other)

    with pytest.raises(DataError, match=r"has no column 'id' \(--join\): its columns are \['x'\]"):
        join(pa.table({"x": [1]}))
    with pytest.raises(DataError, match=r"already has a column 'v\.count'.*FILE as NAME"):
        join(pa.table({"id": ["a"], "v.count": [1]}))
    with pytest.raises(DataError, match=r"no 'id' of the data is in v: 'c' here, 'a', 'b' there"):
        join(pa.table({"id": ["c"]}))
    with pytest.raises(DataError, match="They would match in lower case and without leading zeros"):
        join(pa.table({"id": ["007"]}), pa.table({"id": [7]}))
    with pytest.raises(DataError, match="'id' is missing in every row"):
        join(pa.table({"id": pa.array([None, None], pa.string())}))
    with pytest.raises(DataError, match=r"has no column \['pid'\] \(--join\)"):
        join(pa.table({"id": ["a"]}), on=("id", "pid"))
    with pytest.raises(DataError, match="an id needs texts or"):
        join(pa.table({"id": ["a"]}), pa.table({"id": [1.5]}))
    with pytest.raises(UsageError, match="name: needs the beginning of the features' names"):
        join(pa.table({"id": ["a"]}), name="")
    with pytest.raises(DataError, match="'count' has the name of a feature"):
        grouped(pa.table({"count": ["a"]}), on="count", features=["count"])


def test_a_doubt_in_a_column_that_is_used_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "p.csv", "id,age\nA,30\nB,41\n")
    text = "id,value,date,note\nA,1.5,05/11/2026,x\nA,ERR,04/11/2026,1\nB,2.5,03/11/2026,y\n"
    write(tmp_path / "visits.csv", text)
    asked = ["visits.csv on id: mean of value, last date"]
    with pytest.raises(DataError) as said:
        RowOptions(join=asked).open("p.csv")
    assert str(said.value).startswith("visits.csv: 2 columns are in doubt")
    assert "visits.value: 2 numbers and 'ERR' in line 3 of visits.csv" in str(said.value)
    assert str(said.value).endswith("\nAdd: --missing ERR --dates dmy/mdy")
    found = columns(RowOptions(join=asked, missing="ERR", dates="dmy").open("p.csv"))
    assert found["visits.mean_value"] == [1.5, 2.5]
    assert [day.month for day in found["visits.last_date"]] == [11, 11]
    found = columns(RowOptions(join=["visits.csv on id: count"]).open("p.csv"))
    assert found["visits.count"] == [2, 1], "what is not used is in no doubt"
    as_number = RowOptions(join=["visits.csv on id: sum of note"], as_=["visits.note=number"])
    assert columns(as_number.open("p.csv"))["visits.sum_note"] == [1.0, None]
    with pytest.raises(UsageError, match="leave the feature out"):
        RowOptions(join=["visits.csv on id: sum of note"], as_=["visits.note=id"]).open("p.csv")


def test_where_nobody_is_asked_and_beside_omop():
    asked = RowOptions(join=["visits.csv on id: count"])
    with pytest.raises(UsageError, match="--join cannot be combined with the rows of a round"):
        asked.open("p.csv", unasked=Unasked(["id"]))
    with pytest.raises(UsageError, match="--join cannot be combined with --omop"):
        RowOptions(join=["visits.csv on id: count"], omop="person").open("duckdb:///x.db")
    with pytest.raises(UsageError, match="give it once, before any other"):
        _ = RowOptions(join=["v.csv on id: count", "on id: count"]).joins


def test_without_duckdb_and_without_the_package(monkeypatch, clinic):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hushtable\[databases\]'"):
        RowOptions(join=["visits.csv on patient: count"]).open("patients.csv")
    monkeypatch.setattr("hushtable.plugins.points", lambda group: {})
    with pytest.raises(PluginError, match=r"--join needs the package hushtable-connect.*pip"):
        RowOptions(join=["visits.csv on patient: count"]).open("patients.csv")


def test_an_error_of_the_reader_arrives_as_it_is(tmp_path):
    lines = ["id,value", *(f"{i % 9},{i}" for i in range(40_000)), "1,2,3"]
    path = write(tmp_path / "visits.csv", "\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"visits\.csv"):
        joined(pa.table({"id": [1]}), path, on="id", features=["count"])


# --- the command line -----------------------------------------------------------------------------

ASKED = "visits.csv on patient: count, mean of value, last date, share of ward=ICU"
FEATURES = ["visits.count", "visits.mean_value", "visits.last_date", "visits.share_ward=ICU"]


def test_patients_are_fitted_and_scored_with_their_visits(clinic, capsys):
    command = ["fit", "patients.csv", "--join", ASKED, "--drop", "patient", "-o", "m.hush"]
    assert main([*command, "--seed", "0"]) == 0
    said = capsys.readouterr()
    assert "patients.csv: 5 of 120 rows have no row in visits.csv" in said.err
    n = clinic["patient"].isin(["P900", "P901"]).sum()
    assert f"patients.csv: 2 keys of visits.csv ({n} rows) are not in patients.csv" in said.err
    model = load("m.hush")
    assert model.plan_.schema.names == ["age", *FEATURES]
    score = ["score", "patients.csv", "--model", "m.hush", "-o", "scores.csv"]
    assert main([*score, "--join", ASKED, "--id", "patient"]) == 0
    by = clinic.groupby("patient").agg(
        count=("value", "size"), mean=("value", "mean"), last=("date", "max"),
        share=("ward", lambda ward: (ward == "ICU").mean()),
    )  # fmt: skip
    rows = pd.read_csv("patients.csv").join(by, on="patient").drop(columns="patient")
    rows["count"] = rows["count"].fillna(0)
    rows.columns = model.plan_.schema.names
    expected = model.score_samples(rows)
    assert np.array_equal(pd.read_csv("scores.csv")["score"], expected)
    over = [*score[:-1], "visits.csv", "--join", ASKED]
    assert main(over) == 2
    assert "visits.csv is both read and written" in capsys.readouterr().err
    assert main(score) == 1
    assert "if --join made 'visits.count' for the model, repeat it" in capsys.readouterr().err


def test_other_commands_and_another_file_of_the_same_name(clinic, tmp_path, capsys):
    fit = ["fit", "patients.csv", "--join", ASKED, "--drop", "patient", "-o", "m.hush"]
    assert main(fit) == 0
    clinic.to_csv("visits-2027.csv", index=False)
    later = ASKED.replace("visits.csv", "visits-2027.csv as visits")
    for command in (
        "score patients.csv --model m.hush -o s.csv", "check patients.csv --drop patient",
        "watch patients.csv --model m.hush -o watched --settle 0",
        "learn m.hush v.csv --rows patients.csv -o l.hush",
    ):  # fmt: skip
        write(tmp_path / "v.csv", "row,verdict\n3,outlier\n9,fine\n")
        assert main([*command.split(), "--join", later]) == 0, capsys.readouterr().err


def test_each_of_several_files_is_scored_with_the_visits(clinic, capsys):
    fit = ["fit", "patients.csv", "--join", ASKED, "--drop", "patient", "-o", "m.hush"]
    assert main(fit) == 0
    header, *lines = Path("patients.csv").read_text().splitlines()
    Path("parts").mkdir()
    for part in range(2):
        text = "\n".join([header, *lines[part * 60 : (part + 1) * 60]])
        Path(f"parts/{part}.csv").write_text(f"{text}\n")
    for data, output in (("parts", "out"), ("parts", "all.parquet"), ("patients.csv", "s.parquet")):
        score = ["score", data, "--model", "m.hush", "-o", output, "--join", ASKED]
        assert main(score) == 0, capsys.readouterr().err
    parts = [pd.read_parquet(path)["score"] for path in sorted(Path("out").rglob("*.parquet"))]
    scores = pd.read_parquet("s.parquet")["score"]
    assert np.array_equal(np.concatenate(parts), scores)
    assert np.array_equal(pd.read_parquet("all.parquet")["score"], scores)


def test_the_model_keeps_how_the_table_was_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "p.csv", "id,age\n" + "".join(f"P{i},{i % 7 + 20}\n" for i in range(40)))
    rows = "".join(f"P{i};{i}.{i:03},5;1{i % 9}/02/2026;{i}a\n" for i in range(10, 40))
    write(tmp_path / "visits.csv", "id;value;date;n\n" + rows)
    asked = ["--join", "visits.csv on id: mean of value, last date"]
    assert main(["fit", "p.csv", *asked, "--drop", "id", "-o", "m.hush"]) == 0
    write(tmp_path / "visits.csv", "id;value;date\nP1;1.234;05/02/2026\n")
    rows = RowOptions(join=[asked[1]])
    model = load("m.hush")
    opened = columns(rows.open_as("p.csv", model.plan_.schema, model.reading_))
    assert opened["visits.mean_value"][1] == 1234.0, "the fitted file had points between thousands"
    last = opened["visits.last_date"][1]
    assert (pd.Timestamp(last, unit="s") if isinstance(last, float) else last).month == 2


def test_one_command_from_visits_to_patients(clinic, capsys):
    asked = "on patient: count, mean of value, last ward by date"
    command = ["fit", "visits.csv", "--join", asked, "-o", "m.hush"]
    assert main(command) == 1
    assert "Add: --drop patient" in capsys.readouterr().err
    assert main([*command, "--drop", "patient"]) == 0
    model = load("m.hush")
    assert model.plan_.schema.names == ["count", "mean_value", "last_ward"]
    score = ["score", "visits.csv", "--model", "m.hush", "-o", "s.csv", "--id", "patient"]
    assert main([*score, "--join", asked]) == 0
    assert list(pd.read_csv("s.csv")["patient"]) == list(dict.fromkeys(clinic["patient"]))
    assert main([*score]) == 1
    assert "--join 'on KEY: ...'" in capsys.readouterr().err


def test_sheets_and_databases(clinic, tmp_path, capsys):
    import sqlite3

    with sqlite3.connect("clinic.db") as base:
        clinic.to_sql("visits", base, index=False)
    base.close()
    query = '"query=SELECT patient, value FROM visits"'
    asked = f"sqlite:///clinic.db ({query}) as v on patient: mean of value"
    found = columns(RowOptions(join=[asked]).open("patients.csv"))
    direct = columns(RowOptions(join=["visits.csv on patient: mean of value"]).open("patients.csv"))
    assert found["v.mean_value"] == direct["visits.mean_value"]
    with pytest.raises(UsageError, match=r"FILE of --join, in brackets after its name"):
        RowOptions(join=["sqlite:///clinic.db as v on patient: count"]).open("patients.csv")
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        RowOptions(join=["nowhere.csv on patient: count"]).open("patients.csv")


ASKED_OF_MANY = ["count", "mean of value", "std of value", "last date", "last ward by date"]


def many_visits(n, n_patients, seed):
    """Return visits as a table of Arrow."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, n)
    return pa.table({
        "id": rng.integers(0, n_patients, n), "value": rng.normal(75, 9, n).round(2),
        "date": days.astype("datetime64[D]"), "ward": rng.choice(["ICU", "a", "b"], n),
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.serial
def test_a_million_visits_of_a_hundred_thousand_patients(tmp_path, capsys):
    n = 100_000
    patients, visits = tmp_path / "patients.csv", tmp_path / "visits.csv"
    pyarrow.csv.write_csv(pa.table({"id": np.arange(n), "age": np.arange(n) % 80}), patients)
    pyarrow.csv.write_csv(many_visits(10 * n, n, 0), visits)
    start = time.perf_counter()
    rows = joined(str(patients), str(visits), on="id", features=ASKED_OF_MANY)
    assert sum(len(batch) for batch in rows.read()) == n
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    frame = pd.read_csv(visits, parse_dates=["date"]).sort_values("date", kind="stable")
    some = frame.groupby("id").agg(
        count=("value", "size"), mean=("value", "mean"), std=("value", "std"),
        last=("date", "max"), ward=("ward", "last"),
    )  # fmt: skip
    other = time.perf_counter() - start
    with capsys.disabled():
        print(f"\n1,000,000 visits to 100,000 patients: {seconds:.1f} s (pandas {other:.1f} s)")
    found = columns(rows)
    assert np.array_equal(np.array(found["visits.count"])[some.index], some["count"])
    assert [found["visits.last_ward"][key] for key in some.index] == some["ward"].tolist()


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for its memory")
def test_memory_stays_flat(capsys):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    blocks = [many_visits(100_000, 100_000, seed).combine_chunks() for seed in range(4)]
    patients = pa.table({"id": np.arange(100_000)})
    peaks = {}
    for millions in (1, 10):
        seen = []

        def read(times=millions * 10, seen=seen):
            for i in range(times):
                seen.append(resident())
                yield from blocks[i % 4].to_batches()

        table = Reader(tuple(blocks[0].column_names), 4, None, read, source="visits")
        rows = joined(patients, table, on="id", features=ASKED_OF_MANY, name="visits")
        assert sum(columns(rows)["visits.count"]) == millions * 1_000_000
        peaks[millions] = max(seen)
    with capsys.disabled():
        print("\n" + ", ".join(f"{m}M visits: {peak / 1e6:.0f} MB" for m, peak in peaks.items()))
    assert peaks[10] < peaks[1] + 60e6
