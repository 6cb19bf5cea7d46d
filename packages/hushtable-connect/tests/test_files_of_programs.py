"""Files of SPSS, Stata and SAS, and databases by the names of their files."""

import datetime as dt
import shutil
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pyreadstat
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.cli import main
from hushtable.data.readers import FileLayout, as_reader
from hushtable.data.readers.reader import Unasked
from hushtable.errors import DataError
from hushtable_connect import statistics

pytestmark = pytest.mark.usefixtures("shell")  # messages name options


def saved(path, content, encoding="utf-8"):
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


def rows_of(path, columns=None, **layout):
    reader = as_reader(path, layout=FileLayout(**layout))
    reader = reader if columns is None else reader.select(columns)
    return [row for batch in reader.read() for row in batch.to_pylist()]


def values(path, name):
    return [row[name] for row in rows_of(path, [name])]


# SPSS, Stata, SAS

WARDS = {1: "north", 2: "south", 3: "west"}
TABLE = pd.DataFrame({
    "age": [30.0, 40.5, np.nan, 999.0], "ward": [1.0, 2.0, 1.0, np.nan],
    "name": ["Ä", "b", "", "dd"],
    "day": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(1899, 12, 31)],
})  # fmt: skip
SECONDS = {"length": [363_900.0, 90.5, np.nan, -5.0], "at": [13e9, 13e9 + 0.25, np.nan, 13e9]}


def sav(path, frame=TABLE, **options):
    pyreadstat.write_sav(frame, path, **{"variable_value_labels": {"ward": WARDS}} | options)
    return path


@pytest.mark.parametrize("name", ["a.sav", "a.zsav", "a.csv", "a"])
@pytest.mark.parametrize("at_a_time", [1 << 22, 9])  # in one part, and in several
def test_spss(tmp_path, monkeypatch, name, at_a_time):
    monkeypatch.setattr(statistics, "_VALUES", at_a_time)
    path = tmp_path / name
    sav(tmp_path / "right", missing_ranges={"age": [{"lo": 900, "hi": 999}]},
        compress=name == "a.zsav")  # fmt: skip
    shutil.move(tmp_path / "right", path)
    assert rows_of(path) == [
        {"age": 30.0, "ward": "north", "name": "Ä", "day": dt.date(2024, 2, 29)},
        {"age": 40.5, "ward": "south", "name": "b", "day": None},
        {"age": None, "ward": "north", "name": None, "day": dt.date(1, 1, 1)},
        {"age": None, "ward": None, "name": "dd", "day": dt.date(1899, 12, 31)},
    ]
    reader = as_reader(path)
    assert (reader.n_rows, reader.place(2), reader.source) == (4, "row 3", str(path))
    assert next(reader.select(["day", "age"]).read()).to_pylist()[0] == {
        "day": dt.date(2024, 2, 29), "age": 30.0,
    }  # fmt: skip


def test_missing_values_of_spss(tmp_path):
    frame = pd.DataFrame({"n": [1.0, 8, 9, 50, 97, 98, 99], "s": list("abcdefg")})
    path = sav(tmp_path / "a.sav", frame, variable_value_labels={},
               missing_ranges={"n": [{"lo": 97, "hi": 99}, 8], "s": ["b", "c"]})  # fmt: skip
    assert values(path, "n") == [1, None, 9, 50, None, None, None]
    assert values(path, "s") == ["a", None, None, "d", "e", "f", "g"]


def test_durations_and_points_in_time_of_spss(tmp_path):
    forms = {"length": "DTIME20", "at": "DATETIME22.2"}
    path = sav(tmp_path / "a.sav", pd.DataFrame(SECONDS), variable_format=forms)
    assert values(path, "length") == [
        dt.timedelta(hours=101, minutes=5), dt.timedelta(seconds=90.5), None,
        dt.timedelta(seconds=-5),
    ]  # fmt: skip
    start = dt.datetime(1582, 10, 14) + dt.timedelta(seconds=13e9)
    assert values(path, "at") == [start, start + dt.timedelta(seconds=0.25), None, start]


@pytest.mark.parametrize("seconds", [1e15, -1e15, 1e300])
def test_a_date_that_no_calendar_has(tmp_path, seconds):
    frame = pd.DataFrame({"at": [13e9, seconds], "n": [1.0, 2.0]})
    path = sav(tmp_path / "a.sav", frame, variable_format={"at": "DATE11"})
    with pytest.raises(
        DataError, match="column 'at' holds a date outside the years 1 to 9999 in row 2"
    ):
        rows_of(path)
    assert values(path, "n") == [1, 2]  # left out, it is not looked at


def test_at_an_unattended_site_an_impossible_date_is_missing(tmp_path):
    path = tmp_path / "a.xpt"
    pyreadstat.write_xport(pd.DataFrame({"day": [18_263.0, 1e9]}), path,
                           variable_format={"day": "DATE9."})  # fmt: skip
    with pytest.raises(DataError, match="a date outside the years 1 to 9999 in row 2"):
        values(path, "day")
    unasked = Unasked(["day"])
    [batch] = as_reader(path, layout=FileLayout(unasked=unasked)).read()
    assert batch.column("day").to_pylist() == [dt.date(2010, 1, 1), None]
    assert unasked.words[0].endswith("a date outside the years 1 to 9999: 1, the first in row 2.")


def test_labels_of_some_codes_and_labels_that_contradict(tmp_path):
    frame = pd.DataFrame({
        "some": [1.0, 2, 98, 3], "twice": [1.0, 2, 3, np.nan], "spare": [1.0, 2, 1, 1],
        "none": [np.nan] * 4,
    })  # fmt: skip
    labels = {
        "some": {98: "refused", 99: "unknown"}, "twice": {1: "yes", 2: "yes", 3: "no"},
        "spare": {1: "yes", 2: "no", 3: "no"}, "none": {1: "one"},
    }  # fmt: skip
    path = sav(tmp_path / "a.sav", frame, variable_value_labels=labels)
    assert rows_of(path) == [
        {"some": 1.0, "twice": "yes (1)", "spare": "yes", "none": None},
        {"some": 2.0, "twice": "yes (2)", "spare": "no (2)", "none": None},
        {"some": 98.0, "twice": "no", "spare": "yes", "none": None},
        {"some": 3.0, "twice": None, "spare": "yes", "none": None},
    ]
    assert as_reader(path).found == ("codes with labels in 'some': 98 is 'refused'",)


def test_at_an_unattended_site_no_row_decides_how_others_are_read(tmp_path):
    schema = Schema([
        Feature.categorical("sex", ["male", "female"]),
        Feature.categorical("ward", ["Surgery", "Medicine"]),
        Feature.numeric("age", low=0, high=120),
    ])  # fmt: skip
    labels = {"sex": {1: "male", 2: "female"}, "ward": {"S": "Surgery", "M": "Medicine"},
              "age": {999: "refused"}}  # fmt: skip
    plan = Plan.draw(schema, n_tables=20, random_state=0)
    sketches = []
    for sex, ward in ((1.0, "S"), (3.0, "X")):
        frame = pd.DataFrame({"sex": [1.0, 2.0] * 50 + [sex], "ward": ["S", "M"] * 50 + [ward],
                              "age": np.arange(20.0, 70.5, 0.5)})  # fmt: skip
        path = sav(tmp_path / "a.sav", frame, variable_value_labels=labels)
        sketches.append(Sketch.from_data(plan, path, attended=False))
        assert sketches[-1].n_rows == 101
    one, other = (sketch.counts for sketch in sketches)
    assert 0 < np.abs(one - other).sum() <= 2 * 20  # cells of one row
    # Numbers with a label for some are still numbers, and labels count as written.
    plain = frame.assign(sex=["male", "female"] * 50 + ["3"],
                         ward=["Surgery", "Medicine"] * 50 + ["X"])  # fmt: skip
    assert (Sketch.from_data(plan, plain, attended=False).counts == other).all()


def test_labels_of_texts(tmp_path):
    frame = pd.DataFrame({"sex": ["M", "F", "", "M"], "some": ["a", "b", "c", ""]})
    labels = {"sex": {"M": "male", "F": "female", "X": "other"}, "some": {"a": "yes", "b": "no"}}
    path = sav(tmp_path / "a.sav", frame, variable_value_labels=labels)
    assert values(path, "sex") == ["male", "female", None, "male"]
    assert values(path, "some") == ["a", "b", "c", None]
    assert as_reader(path).found == ("codes with labels in 'some': a is 'yes', b is 'no'",)


@pytest.mark.parametrize(
    ("form", "a_date"),
    [("MMYY7.", True), ("YEAR4.", True), ("YYQ6.", True), ("MONYY5.", True), ("MONTHF.", False)],
)
def test_formats_of_sas_that_show_a_part_of_a_date(tmp_path, form, a_date):
    path = tmp_path / "a.xpt"
    pyreadstat.write_xport(pd.DataFrame({"day": [18_263.0]}), path, variable_format={"day": form})
    assert values(path, "day") == [dt.date(2010, 1, 1) if a_date else 18_263.0]


def test_stata(tmp_path):
    at = dt.datetime(2024, 2, 29, 10, 30)
    frame = TABLE.assign(whole=pd.array([1, 2, None, 4], "Int32"), at=pd.to_datetime([at] * 4))
    path = tmp_path / "a.dta"
    pyreadstat.write_dta(frame.drop(columns="day"), path, variable_value_labels={"ward": WARDS},
                         missing_user_values={"age": ["a"]})  # fmt: skip
    assert rows_of(path)[0] == {"age": 30.0, "ward": "north", "name": "Ä", "whole": 1, "at": at}
    assert values(path, "whole") == [1, 2, None, 4]
    dates = pd.DataFrame({"day": [0.0, 23435, np.nan, -1]})
    pyreadstat.write_dta(dates, path, variable_format={"day": "%td"})
    assert values(path, "day") == [
        dt.date(1960, 1, 1), dt.date(2024, 2, 29), None, dt.date(1959, 12, 31),
    ]  # fmt: skip


def test_extended_missing_values_of_stata(tmp_path):
    path = tmp_path / "a.dta"
    frame = pd.DataFrame({"n": [1.0, "a", "z", 4.0]}, dtype=object)
    pyreadstat.write_dta(frame, path, missing_user_values={"n": ["a", "z"]},
                         variable_value_labels={"n": {"a": "refused", 1: "one"}})  # fmt: skip
    assert values(path, "n") == [1, None, None, 4]
    assert as_reader(path).found == ("codes with labels in 'n': 1 is 'one'",)


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.xpt", pyreadstat.write_xport), ("a.por", pyreadstat.write_por)],
)
def test_other_formats_of_statistics(tmp_path, name, write):
    frame = TABLE.assign(name=["a", "b", "", "dd"])
    write(frame.rename(columns=str.upper) if name == "a.por" else frame, tmp_path / name)
    found = [{key.lower(): value for key, value in row.items()} for row in rows_of(tmp_path / name)]
    assert [row["age"] for row in found] == [30, 40.5, None, 999]
    assert [row["name"] for row in found] == ["a", "b", None, "dd"]
    assert [row["day"] for row in found] == [
        dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(1899, 12, 31),
    ]  # fmt: skip


@pytest.mark.parametrize("length", [10, 400, -40])
@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_files_of_statistics_that_were_cut_off(tmp_path, ending, length):
    whole = tmp_path / f"b.{ending}"
    frame = pd.DataFrame({"a": np.arange(300.0)})
    if ending == "dta":
        pyreadstat.write_dta(frame, whole)
    else:
        sav(whole, frame, compress=ending == "zsav", variable_value_labels={})
    path = saved(tmp_path / f"a.{ending}", whole.read_bytes()[:length])
    with pytest.raises(DataError, match=rf"^{path}: "):
        rows_of(path)


def test_a_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = sav(tmp_path / "a.sav")
    read = pyreadstat.read_sav

    def slowly(*arguments, **options):
        with path.open("ab") as file:
            file.write(bytes(8))
        return read(*arguments, **options)

    monkeypatch.setattr(pyreadstat, "read_sav", slowly)
    with pytest.raises(DataError, match="changed while it was being read: try again"):
        as_reader(path)


# Databases


def sqlite(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def duck(path, *statements):
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


MAKE = (
    'CREATE TABLE "a ""b" (id integer, site varchar)',
    'INSERT INTO "a ""b" VALUES (1, \'x\'), (2, NULL)',
)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (sqlite, "a.db"),
        (sqlite, "a.sqlite3"),
        (sqlite, "a.dat"),
        (duck, "a.duckdb"),
        (duck, "a.db"),
    ],
)
def test_a_database_by_its_file(tmp_path, monkeypatch, make, name):
    path = make(tmp_path / name, *MAKE)
    before = path.read_bytes()
    assert rows_of(path) == [{"id": 1, "site": "x"}, {"id": 2, "site": None}]
    assert as_reader(path).source == str(path)
    monkeypatch.chdir(tmp_path)
    assert len(rows_of(name)) == 2
    make(path, "CREATE VIEW big AS SELECT 5 AS n")
    with pytest.raises(DataError, match=r"several tables, .*'big'.*\nAdd: --read 'member=a \"b'$"):
        as_reader(path)
    assert rows_of(path, member="big") == [{"n": 5}]
    assert len(rows_of(path, member='a "b')) == 2
    assert rows_of(path, query='SELECT id FROM "a ""b" WHERE id > 1') == [{"id": 2}]
    with pytest.raises(DataError, match="has no table or view 'x'"):
        as_reader(path, layout=FileLayout(member="x"))
    assert before != path.read_bytes()  # by the view alone
    assert sorted(one.name for one in tmp_path.iterdir()) == [name]


def test_a_database_without_tables(tmp_path):
    path = sqlite(tmp_path / "a.db", "CREATE TABLE t (a)", "DROP TABLE t")
    with pytest.raises(DataError, match=r"a\.db: the database holds no table"):
        as_reader(path)
    content = sqlite(tmp_path / "b.db", *MAKE).read_bytes()
    with pytest.raises(DataError, match=r"c\.db"):
        rows_of(saved(tmp_path / "c.db", content[:3000]))


def test_a_view_of_a_foreign_file_reads_no_other_file(tmp_path):
    secret = saved(tmp_path / "secret.csv", "a,b\n1,2\n")
    path = duck(tmp_path / "a.duckdb", f"CREATE VIEW v AS SELECT * FROM read_csv('{secret}')")
    with pytest.raises(DataError, match=r"disabled|permission|access") as caught:
        rows_of(path)
    assert str(caught.value).startswith("duckdb:///")


def test_a_model_of_a_table_reads_the_same_table_again(tmp_path, capsys):
    path = sqlite(tmp_path / "a.db", "CREATE TABLE one (a, b)", "CREATE TABLE two (c, d)",
                  "INSERT INTO two VALUES (1, 2), (2, 3), (1, 4)")  # fmt: skip
    model, scores = str(tmp_path / "m.hush"), str(tmp_path / "s.csv")
    assert main(["fit", str(path), "--read", "member=two", "-o", model]) == 0
    assert main(["score", str(path), "--model", model, "-o", scores]) == 0
    capsys.readouterr()
