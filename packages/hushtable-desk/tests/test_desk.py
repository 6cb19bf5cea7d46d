"""A desk from the folder to the export: tables, lists, rows, verdicts, rules and their log."""

import csv
import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

import hushtable
from cli_helpers import do
from desk_helpers import DeskClient, patients
from hushtable.data.texts.doubt import ColumnUnderstanding, Doubt
from hushtable.detectors.load import open_model
from hushtable.scores.verdict_log import COLUMNS
from hushtable_desk.listing import Query, key_of
from hushtable_desk.tables import choices

LOG = "patients.csv.verdicts.csv"


def judge(client, at, verdicts):
    """Judge the next rows in turn; return their numbers."""
    judging = client.desk.table(at[3:]).judging
    found = []
    for verdict in verdicts:
        number = judging.next()
        found.append(number)
        answer = client.write(f"{at}/rows/{number}/verdict", verdict=verdict)
        assert answer.status_code == 200, answer.text
    return found


# --- the folder and a table -----------------------------------------------------------------------


def test_the_first_page_names_tables_models_and_what_was_begun(client, at):
    judge(client, at, ["outlier", "fine"])
    page = client.get("/").text
    assert page.count("patients.csv") == 2
    assert "patients.hush" in page
    assert "2 verdicts, the last on" in page


def test_columns_are_shown_at_a_glance(client, folder):
    rows = patients(1_000)
    rows.loc[100:120, "pulse"] = -999.0
    rows.loc[:249, "weight"] = np.nan
    rows.to_csv(folder / "patients.csv", index=False)
    at = f"/t/{client.key('patients.csv')}"
    table = client.desk.table(at[3:])
    page = client.get(at).text
    assert "25.0%" in page
    assert "-999.0 <span" in page
    by_name = {one.name: one for one in table.quality.columns}
    assert by_name["pulse"].range == (-999.0, rows["pulse"].max())
    assert by_name["pulse"].frequent[0] == ("-999.0", 21)
    assert len(by_name["pulse"].bars) == 16
    assert np.count_nonzero(by_name["pulse"].bars) > 12  # the code squeezes nothing
    assert sum(by_name["weight"].bars) == 750
    assert "read as numbers" in page
    client.write(f"{at}/say", name="kinds", value="number", column="pulse")
    assert 'class="doubt"' not in client.get(at).text


def test_a_dropped_file_takes_the_place_of_no_other(client, folder):
    before = (folder / "patients.csv").read_bytes()
    address = client.drop("patients.csv").json()["address"]
    assert "patients 2.csv" in client.get(address).text
    assert (folder / "patients.csv").read_bytes() == before
    assert client.drop("evil.exe").status_code == 400


def test_doubts_are_buttons_and_identifiers_are_left_out(client, folder):
    rows = patients(200)
    rows["seen"] = [f"{1 + i % 12:02}/{1 + i % 12:02}/2026" for i in range(200)]
    rows.to_csv(folder / "doubts.csv", index=False)
    at = f"/t/{client.key('doubts.csv')}"
    page = client.get(at).text
    assert "day, month, year" in page
    assert "month, day, year" in page
    assert "left out" in page
    assert "first decide what these are: seen" in client.refused(f"{at}/fit")
    client.write(f"{at}/say", name="dates", value="dmy")
    client.fit("doubts.csv")
    model = hushtable.load(folder / "doubts.hush")
    assert model.plan_.schema.names == ["ward", "pulse", "weight", "seen"]
    with DeskClient(folder) as again:  # it is remembered
        assert again.desk.table(at[3:]).said.dates == "dmy"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (("decimal", ","), [("decimal", ","), ("kinds", "category")]),
        (("dates", "mdy"), [("dates", "mdy"), ("kinds", "category")]),
        (("missing", "n/a"), [("missing", "n/a")]),
        (("as", "a=b=number"), [("kinds", "number"), ("kinds", "category")]),
        (("as", "a=b=label"), [("kinds", "label"), ("kinds", "category"), ("kinds", "number")]),
        (("drop", "a=b"), [("drop", "a=b"), ("kinds", "category"), ("kinds", "number")]),
    ],
)
def test_the_options_of_a_doubt_are_choices(option, expected):
    doubt = Doubt("a=b", "empty", options=(option,), refused=True)
    one = ColumnUnderstanding("a=b", "number", "seen", doubt)
    found = [(choice.name, choice.value) for choice in choices(one)]
    assert found[: len(expected)] == expected
    assert ("drop", "a=b") in found


def test_labels_that_may_be_one_are_a_choice(client, folder):
    rows = "".join(f"{('north', 'North', 'south')[i % 3]},{60 + i % 17}\n" for i in range(90))
    (folder / "labels.csv").write_text(f"ward,pulse\n{rows}")
    at = f"/t/{client.key('labels.csv')}"
    assert client.desk.table(at[3:]).left_out == []  # as the list of rows asks, before any page
    page = client.get(at).text
    assert "differ only by case" in page
    assert "kinds=" not in page
    assert page.count("one label in several spellings") == 1
    client.write(f"{at}/say", name="kinds", value="label", column="ward")
    assert "differ only by case" not in client.get(at).text
    client.fit("labels.csv")
    features = hushtable.load(folder / "labels.hush").plan_.schema.features
    assert features[0].categories == ("North", "south")


def test_a_context_is_compared_within(client, folder):
    at = f"/t/{client.key('patients.csv')}"
    client.write(f"{at}/say", name="context", value="ward")
    client.fit("patients.csv")
    assert hushtable.load(folder / "patients.hush").plan_.context == ["ward"]
    assert "compared within ward" in client.get(f"{at}/rows").text
    client.write(f"{at}/say", name="context", value="ward")
    assert client.desk.table(at[3:]).said.context == ()


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [("decimal", "x", "decimal"), ("dates", "xyz", "dates"), ("nonsense", 1, "not a setting"),
     ("entity", "id", "entity"), ("encoding", "klingon", "")],
)  # fmt: skip
def test_settings_that_cannot_be_change_nothing(client, name, value, wrong):
    at = f"/t/{client.key('patients.csv')}"
    before = client.desk.table(at[3:]).said
    answer = client.write(f"{at}/say", name=name, value=value)
    if wrong:
        assert answer.status_code == 400
        assert wrong in answer.json()["error"]
        assert client.desk.table(at[3:]).said == before
    else:
        assert "klingon" in client.get(at).text


# --- the list -------------------------------------------------------------------------------------


def test_the_list_is_that_of_score(client, at, folder):
    """The same rows in the same order as the command line's, and the same words."""
    do("score", folder / "patients.csv", "--model", folder / "patients.hush", "--id", "id",
       "--top", 20, "-o", folder / "top.csv")  # fmt: skip
    listed = pd.read_csv(folder / "top.csv")
    exported = pd.read_csv(io.StringIO(client.get(f"{at}/rows.csv").text)).head(20)
    assert exported["row"].tolist() == listed["row"].tolist()
    assert exported["reason_1"].tolist() == listed["reason_1"].tolist()
    assert exported["id"].tolist() == listed["id"].tolist()


def test_facets_cut_the_list_down_and_the_address_holds_the_state(client, at):
    numbers = judge(client, at, ["outlier", "fine", "outlier"])
    listing = client.desk.table(at[3:]).judging.listing
    query = Query().toggled("verdict", key_of("outlier"))
    assert {line.number for line in listing.chosen(query)} == {numbers[0], numbers[2]}
    assert Query.of(query.parameters) == query
    page = client.get(f"{at}/rows", params=query.parameters).text
    assert page.count("<li data-number=") == 2
    column = Query().toggled("column", key_of("weight"))
    assert {line.column for line in listing.chosen(column)} == {"weight"}
    counts = {one.value: one.n for one in listing.facets(Query())["verdict"]}
    assert counts["outlier"] == 2
    assert counts["fine"] == 1
    assert Query().toggled("column", "x").toggled("column", "x") == Query()


@pytest.mark.parametrize("order", ["unusual", "row", "name"])
def test_orders(client, at, order):
    lines = client.desk.table(at[3:]).judging.listing.chosen(Query(order=order))
    if order == "unusual":
        assert [line.rank for line in lines] == list(range(1, len(lines) + 1))
    else:
        keys = [line.number if order == "row" else line.name for line in lines]
        assert keys == sorted(keys)


@pytest.mark.parametrize("column", ["pulse", "ward", "id"])
def test_any_column_orders_the_list_and_is_shown(client, folder, column):
    rows = patients()
    rows.loc[rows.index[:3], "pulse"] = np.nan
    rows.to_csv(folder / "patients.csv", index=False)
    at = client.fit("patients.csv")
    listing = client.desk.table(at[3:]).judging.listing
    for direction in ("up", "down"):
        lines = listing.chosen(Query(order=f"{direction}:{column}"))
        assert sorted(line.number for line in lines) == sorted(
            line.number for line in listing.lines
        )
        values = rows[column].to_numpy()[[line.number for line in lines]]
        present = [value for value in values.tolist() if value == value]
        assert present == sorted(present, reverse=direction == "down")
        assert all(value != value for value in values[len(present) :].tolist())
        page = client.get(f"{at}/rows", params={"order": f"{direction}:{column}"}).text
        assert page.count(f'<span class="kept">{column} ') == len(lines)
        assert f'<option value="{direction}:{column}" selected>' in page


def test_typed_columns_order_the_list_by_their_values(client, folder):
    """Durations by their length and not by their text; and points in time beyond all calendars."""
    rows = patients()[["id", "ward", "pulse"]]
    seconds = np.arange(400) * 120
    days = np.arange(400) * 86_400
    days[7] = 1 << 50
    table = pa.table({name: pa.array(rows[name]) for name in rows})
    table = table.append_column("stay", pa.array(seconds, pa.duration("s")))
    table = table.append_column("day", pa.array(days, pa.timestamp("s")))
    pq.write_table(table, folder / "typed.parquet")
    at = client.fit("typed.parquet")
    listing = client.desk.table(at[3:]).judging.listing
    for column, values in (("stay", seconds), ("day", days)):
        lines = listing.chosen(Query(order=f"up:{column}"))
        found = values[[line.number for line in lines]].tolist()
        assert found == sorted(found)
        assert client.get(f"{at}/rows", params={"order": f"down:{column}"}).status_code == 200


def test_a_row_is_found_by_its_name(client, at):
    rows = client.write(f"{at}/find", text="p003").json()["rows"]
    assert rows == [{"number": 3, "name": "P003"}]
    assert len(client.write(f"{at}/find", text="P00").json()["rows"]) == 10
    assert client.write(f"{at}/find", text=" ").json()["rows"] == []
    assert client.write(f"{at}/find", text="nobody").json()["rows"] == []


def test_a_row_is_found_by_any_of_its_values(client, at):
    listing, wards = client.desk.table(at[3:]).judging.listing, patients()["ward"]
    expected = [line.number for line in listing.lines if wards[line.number] == "north"][:20]
    found = client.write(f"{at}/find", text="NORTH").json()["rows"]
    assert [row["number"] for row in found] == expected


def test_exports_hold_the_verdicts(client, at):
    first, _ = judge(client, at, ["outlier", "fine"])
    client.write(f"{at}/rows/{first}/verdict", verdict="outlier", note="=call")
    query = Query().toggled("verdict", key_of("outlier")).parameters
    table = pd.read_csv(io.StringIO(client.get(f"{at}/rows.csv", params=query).text))
    assert table["verdict"].tolist() == ["outlier"]
    assert table["note"].tolist() == ["'=call"]
    assert table["who"].tolist() == ["Ada"]
    found = json.loads(client.get(f"{at}/rows.json", params=query).text)["rows"]
    assert found[0]["note"] == "=call"
    sheet = client.get(f"{at}/rows.xlsx")
    assert sheet.headers["content-disposition"].startswith('attachment; filename="patients')
    book = CalamineWorkbook.from_filelike(io.BytesIO(sheet.content))
    assert "verdict" in book.get_sheet_by_name("Outliers").to_python()[0]
    assert client.get(f"{at}/rows.exe").status_code == 400


def test_a_longer_list_and_another_order_after_verdicts(client, at):
    assert client.get(f"{at}/rows").text.count("<li data-number=") == 100
    client.write(f"{at}/sort", more=True)
    assert client.get(f"{at}/rows").text.count("<li data-number=") == 200
    judge(client, at, ["outlier"] * 3)
    before = [line.number for line in client.desk.table(at[3:]).judging.listing.lines]
    client.write(f"{at}/sort", more=False)
    after = [line.number for line in client.desk.table(at[3:]).judging.listing.lines]
    assert before != after


# --- a row and its verdict ------------------------------------------------------------------------


def test_a_row_has_values_reasons_pictures_and_those_alike(client, at):
    page = client.get(f"{at}/rows/0").text
    assert '<h1 data-number="0">P000' in page
    assert "most of the reason</span>" in page
    assert "100 minus the percentage of rows that are as rare" in page
    assert "<svg" in page
    assert "Most similar" in page
    part = client.get(f"{at}/rows/0", headers={"X-Part": "row"}).text
    assert "<html" not in part
    assert client.get(f"{at}/rows/99999").status_code == 400


def test_verdicts_notes_undo_and_changing_ones_mind(client, at, folder):
    first, second = judge(client, at, ["outlier", "fine"])
    said = client.write(f"{at}/rows/{first}/verdict", verdict="fine", note="checked").json()
    assert said["found"]["outliers"] == 0
    assert said["number"] not in (first, second)
    client.write("/settings", who="Grace Hopper")
    client.write(f"{at}/rows/{second}/verdict", verdict="outlier")
    page = client.get(f"{at}/rows/{first}").text
    assert "checked" in page
    assert "Ada" in page
    gone = client.write(f"{at}/undo").json()
    assert gone["undone"] == [second]
    assert gone["number"] == second
    with open(folder / LOG, newline="") as file:
        log = list(csv.DictReader(file))
    assert tuple(log[0]) == COLUMNS
    assert [(one["who"], one["verdict"]) for one in log] == [
        ("Ada", "outlier"), ("Ada", "fine"), ("Ada", "fine"), ("Grace Hopper", "outlier"),
        ("Grace Hopper", "undo"),
    ]  # fmt: skip
    assert log[0]["id"] == f"P{first:03}"
    for _ in range(3):
        assert client.write(f"{at}/undo").status_code == 200
    assert "no verdict to take back" in client.refused(f"{at}/undo")
    wrong = client.write(f"{at}/rows/{first}/verdict", verdict="maybe")
    assert "needs one of outlier, fine, skip" in wrong.json()["error"]


def test_alike_rows_are_judged_and_taken_back_together(client, folder):
    """By the same value: 21 rows take one click, and one to undo it."""
    rows = patients(1_000)
    rows.loc[100:120, "pulse"] = -999.0
    rows.to_csv(folder / "patients.csv", index=False)
    client.write(
        f"/t/{client.key('patients.csv')}/say", name="kinds", value="number", column="pulse"
    )
    at = client.fit("patients.csv")
    judging = client.desk.table(at[3:]).judging
    client.write(f"{at}/rows/100/verdict", verdict="fine")
    [facet] = [one for one in judging.listing.facets(Query())["value"] if "999" in one.value]
    assert facet.n == 21
    query = Query().toggled("value", facet.key)
    page = client.get(f"{at}/rows", params=query.parameters).text
    assert "These 20 rows together:" in page
    assert "similar rows together" in client.get(f"{at}/rows/101").text
    answer = client.write(f"{at}/together", verdict="outlier", query=query.parameters)
    assert answer.json()["n"] == 20
    last = judging.review.last()
    assert {row: one.verdict for row, one in last.items()} == {
        100: "fine", **dict.fromkeys(range(101, 121), "outlier"),
    }  # fmt: skip
    by = Query().toggled("who", key_of("Ada"))
    assert len(judging.listing.chosen(by)) == 21
    gone = client.write(f"{at}/undo").json()
    assert sorted(gone["undone"]) == list(range(101, 121))
    assert set(judging.review.last()) == {100}
    assert client.write(f"{at}/undo").json()["undone"] == [100]
    assert "choose which rows" in client.refused(f"{at}/together", verdict="outlier", query={})


def test_a_known_row_is_a_rule(client, at, folder):
    assert client.write(f"{at}/rows/0/known").status_code == 200
    listed = [line.name for line in client.desk.table(at[3:]).judging.listing.lines]
    assert "P000" not in listed
    assert "P002" in listed[:6]
    assert '"id" = "P000"' in (folder / "patients.rules.toml").read_text()


def test_rules_are_read_changed_and_removed(client, at, folder):
    path = folder / "patients.rules.toml"
    address = f"{at}/rules"
    rule = {"=name": "pulse", "=impossible_below": "20.5", "=impossible": "0\n 999 \n"}
    assert client.write(address, kind="column", number="", **rule).json() == {"go": address}
    client.write(f"{at}/rows/0/known")
    found = tomllib.loads(path.read_text())
    pulse = {"name": "pulse", "impossible_below": 20.5, "impossible": [0, 999]}
    assert found == {"column": [pulse], "known": [{"id": "P000"}]}
    page = client.get(address).text
    for value in ('value="20.5"', ">0.0\n999.0<", 'value="P000"'):
        assert value in page
    refused = client.write(address, kind="column", number="0", **rule | {"=impossible": "low"})
    assert "needs a finite number" in refused.json()["error"]
    assert tomllib.loads(path.read_text()) == found
    client.write(
        address, kind="column", number="0", **{"=name": "pulse", "=impossible_above": "99"}
    )
    client.write(address, kind="known", number="0", **{"=id": "P002"})
    found = tomllib.loads(path.read_text())
    assert found["column"] == [{"name": "pulse", "impossible_above": 99.0}]
    assert found["known"] == [{"id": "P002"}]
    names = [line.name for line in client.desk.table(at[3:]).judging.listing.lines]
    assert "P000" in names
    assert "P002" not in names
    for kind in ("column", "known"):
        client.write(address, kind=kind, number="0")
    assert tomllib.loads(path.read_text()) == {}
    assert "No row is known" in client.get(address).text


def test_rules_are_typed_as_the_file_is_written(client, folder):
    days = pd.date_range("2024-01-01", periods=400).strftime("%d.%m.%Y")
    rows = patients().assign(day=days)
    rows.to_csv(folder / "german.csv", index=False, sep=";", decimal=",")
    at = client.fit("german.csv")
    path, address = folder / "german.rules.toml", f"{at}/rules"
    path.write_text('[[column]]\nname = "day"\nimpossible_above = 2030-01-01\n')
    for name, text in (("pulse", "20,5"), ("day", "01.02.2020")):
        rule = {"=name": name, "=impossible_below": text}
        assert client.write(address, kind="column", **rule).status_code == 200
    rules = tomllib.loads(path.read_text())["column"]
    assert [one.get("impossible_below") for one in rules] == [None, 20.5, "2020-02-01"]
    page = client.get(address).text
    assert 'value="20,5"' in page
    again = {"=name": "day", "=impossible_above": "2030-01-01", "=impossible_below": ""}
    assert client.write(address, kind="column", number="0", **again).status_code == 200
    assert tomllib.loads(path.read_text())["column"][0]["impossible_above"] == "2030-01-01"
    refused = client.write(
        address, kind="column", **{"=name": "day", "=impossible_below": "31.02.2020"}
    )
    assert "needs a date" in refused.json()["error"]


# --- the log --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_desk_and_review_on_one_log_give_the_same_model_to_the_bit(client, at, folder, monkeypatch):
    monkeypatch.chdir(folder)
    verdicts = ["outlier", "fine", "outlier", "skip", "outlier", "fine", "outlier", "outlier"]
    numbers = judge(client, at, verdicts)
    client.write(f"{at}/rows/{numbers[1]}/verdict", verdict="outlier")
    client.write(f"{at}/undo")
    client.write(f"{at}/learned/save", name="desk.hush")
    client.desk.close()
    # The terminal goes on with the log, and writes the same model.
    keys = {"outlier": "o", "fine": "f", "skip": "s"}
    review = ["review", "patients.csv", "--model", "patients.hush", "--id", "id"]
    command = [sys.executable, "-m", "hushtable.cli", *review, "-o", "same.hush"]
    subprocess.run(command, input="q\n", text=True, check=True, capture_output=True)
    X = patients()[["ward", "pulse", "weight"]]
    desk = hushtable.load("desk.hush")
    np.testing.assert_array_equal(
        desk.score_samples(X), hushtable.load("same.hush").score_samples(X)
    )
    # A review that gives the same answers, in another log, shows the same rows in turn.
    typed = "\n".join(keys[verdict] for verdict in verdicts)
    command = [sys.executable, "-m", "hushtable.cli", *review, "--log", "own.csv"]
    command += ["-o", "own.hush", "-n", "8"]
    subprocess.run(command, input=typed, text=True, check=True, capture_output=True)
    with open("own.csv", newline="") as file:
        assert [int(one["row"]) for one in csv.DictReader(file)] == numbers
    np.testing.assert_array_equal(
        desk.score_samples(X), hushtable.load("own.hush").score_samples(X)
    )
    learned = [open_model(name).scorer.sketch.verdicts for name in ("desk.hush", "own.hush")]
    assert learned[0] == learned[1]


def test_a_desk_goes_on_with_a_log_of_a_review(client, folder, monkeypatch):
    monkeypatch.chdir(folder)
    do("fit", "patients.csv", "--drop", "id", "--seed", 0, "-o", "patients.hush")
    command = [sys.executable, "-m", "hushtable.cli", "review", "patients.csv", "--model",
               "patients.hush", "--id", "id", "-n", "3", "--who", "Lee"]  # fmt: skip
    subprocess.run(command, input="o\nf\no\n", text=True, check=True, capture_output=True)
    at = f"/t/{client.key('patients.csv')}"
    client.write(f"{at}/use", model="patients.hush")
    judging = client.desk.table(at[3:]).judging
    assert judging.review.found()["looked_at"] == 3
    assert [one.who for one, _ in judging.last] == ["Lee"] * 3


def test_fitting_again_replaces_no_model_and_loses_no_verdict(client, at, folder):
    """Verdicts under another plan stay in their log; the new model has one of its own."""
    judge(client, at, ["outlier", "fine"])
    model, log = (folder / "patients.hush").read_bytes(), (folder / LOG).read_bytes()
    client.write(f"{at}/say", name="context", value="ward")
    client.fit("patients.csv")
    assert (folder / "patients.hush").read_bytes() == model
    assert client.desk.table(at[3:]).model == "patients 2.hush"
    judge(client, at, ["outlier"])
    assert (folder / LOG).read_bytes() == log
    own = folder / "patients.csv.patients 2.verdicts.csv"
    assert len(own.read_text().splitlines()) == 2
    assert "holds verdicts under another model" in client.get(f"{at}/rows").text
    client.write(f"{at}/use", model="patients.hush")
    assert len(client.desk.table(at[3:]).judging.review.answers) == 2


def test_two_desks_and_a_review_do_not_write_one_log_at_once(client, at, folder, monkeypatch):
    client.get(f"{at}/rows")
    with DeskClient(folder) as second:
        answer = second.get(f"{at}/rows")
        assert answer.status_code == 400
        assert "Another desk or review judges this table now" in answer.text
    client.desk.close()
    with DeskClient(folder) as second:
        assert second.get(f"{at}/rows").status_code == 200


_KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
import hushtable.scores.verdict_log as log
from desk_helpers import DeskClient

count, before = 0, os.fsync
def killed(file):
    global count
    if {when!r} == "before" and count == {n}:
        os.kill(os.getpid(), signal.SIGKILL)
    before(file)
    if {when!r} == "after" and count == {n}:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
log.os.fsync = killed

client = DeskClient({folder!r})
at = "/t/" + client.key("patients.csv")
judging = client.desk.table(at[3:]).judging
for k in range(5):
    number = judging.next()
    client.write(f"{{at}}/rows/{{number}}/verdict", verdict="outlier")
    print(number, flush=True)
"""


def test_a_second_person_judges_in_a_file_of_her_own_beside_the_first(client, at, folder):
    """Both desks are open at once, and each shows where the verdicts differ."""
    first, second, third, fourth = judge(client, at, ["outlier", "fine", "outlier", "skip"])
    before = (folder / LOG).read_bytes()
    with DeskClient(folder, who="Eve/Ä") as other:
        refused = other.get(f"{at}/rows")
        assert refused.status_code == 400
        assert "This table is in use" in refused.text
        assert "--" not in re.sub("<!--.*-->", "", refused.text)
        assert f'data-write="{at}/apart"' in refused.text
        assert other.write(f"{at}/apart").status_code == 200
        page = other.get(f"{at}/rows").text
        assert "Ada: outlier" in page
        for row, verdict in ((first, "outlier"), (second, "outlier"), (fourth, "fine")):
            answer = other.write(f"{at}/rows/{row}/verdict", verdict=verdict, note="I know it")
            assert answer.status_code == 200, answer.text
        assert (folder / "patients.csv.Eve_Ä.verdicts.csv").is_file()
        assert (folder / LOG).read_bytes() == before
        for desk, theirs in ((other, third), (client, fourth)):
            listing = desk.desk.table(at[3:]).judging.listing
            opinions = {line.number: line.opinion for line in listing.lines if line.opinion}
            assert opinions == {first: "same", second: "differs", theirs: "theirs"}
            by = Query().toggled("opinion", key_of("differs"))
            assert [line.number for line in listing.chosen(by)] == [second]
        assert "Eve/Ä: outlier" in client.get(f"{at}/rows").text
        page = client.get(f"{at}/rows/{second}").text
        assert "I know it" in page
        table = pd.read_csv(io.StringIO(client.get(f"{at}/rows.csv").text)).set_index("row")
        assert table.loc[second, "verdict"] == "fine"
        assert table.loc[second, "other verdicts"] == "Eve/Ä: outlier"
    with DeskClient(folder, who="Eve/Ä") as again:
        again.get(f"{at}/rows")
        assert set(again.desk.table(at[3:]).judging.review.last()) == {first, second, fourth}


def test_a_person_may_have_the_name_of_a_model(client, at, folder):
    judge(client, at, ["outlier"])
    client.write("/settings", who="other")
    client.write(f"{at}/apart")
    judge(client, at, ["fine"])
    client.write("/settings", who="Ada")
    shutil.copy(folder / "patients.csv", folder / "again.csv")
    other = client.fit("again.csv")
    (folder / "again.hush").rename(folder / "other.hush")
    assert client.write(f"{at}/use", model="other.hush").status_code == 200
    assert client.get(f"{at}/rows").status_code == 200, other


def test_a_log_is_no_table_to_drop(client, folder):
    answer = client.drop("patients.csv.verdicts.csv", b"a,b\n1,2\n")
    assert answer.status_code == 400
    assert not (folder / LOG).exists()


def test_a_second_person_needs_a_name(client, at, folder):
    judge(client, at, ["outlier"])
    with DeskClient(folder, who="") as other:
        assert "your name" in other.write(f"{at}/apart").json()["error"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.parametrize(
    ("when", "n"),
    [
        pytest.param(when, n, marks=[pytest.mark.slow] * ((when, n) != ("after", 3)))
        for when in ("before", "after")
        for n in range(1, 6)
    ],
)
def test_no_verdict_is_lost_when_the_desk_is_killed(client, at, folder, when, n):
    """Killed at a write, each verdict that was answered is there; so may be the one under way."""
    client.desk.close()
    (folder / LOG).unlink()  # so that the first write is of the head
    script = _KILLED.format(path=sys.path, when=when, n=n, folder=str(folder))
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == -signal.SIGKILL, found.stderr
    answered = [int(line) for line in found.stdout.split()]
    assert len(answered) == n - 1
    with DeskClient(folder) as again:
        kept = [one.row for one in again.desk.table(at[3:]).judging.review.answers]
    assert kept[: len(answered)] == answered
    assert len(kept) <= len(answered) + 1


def test_a_log_that_is_broken(client, at, folder):
    judge(client, at, ["outlier", "fine"])
    client.desk.close()
    whole = (folder / LOG).read_text()
    (folder / LOG).write_text(whole[:-30])
    with DeskClient(folder) as again:
        judging = again.desk.table(at[3:]).judging
        assert len(judging.review.answers) == 1
        assert "truncated" in again.get(f"{at}/rows").text
    (folder / LOG).write_text("something else\n1\n")
    with DeskClient(folder) as again:
        answer = again.get(f"{at}/rows")
        assert answer.status_code == 400
        assert "is not a log of hushtable review" in answer.text
    assert (folder / LOG).read_text() == "something else\n1\n"


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_file_that_changes_or_vanishes_while_it_is_open(client, at, folder):
    (number,) = judge(client, at, ["outlier"])
    path = folder / "patients.csv"
    text = path.read_text()
    path.write_text(text + "P999,north,75,70\n")
    error = client.refused(f"{at}/rows/{number}/verdict", verdict="fine")
    assert "has changed or disappeared since it was read: read it again" in error
    assert f'data-write="{at}/read-again"' in client.get(f"{at}/rows").text
    path.unlink()
    assert "disappeared" in client.refused(f"{at}/rows/{number}/verdict", verdict="fine")
    assert client.get("/").status_code == 200
    path.write_text(text)
    client.desk.table(at[3:]).close()
    assert client.write(f"{at}/rows/{number}/verdict", verdict="fine").status_code == 200


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_table_of_few_rows(client, folder, n):
    patients(10).head(n).to_csv(folder / "few.csv", index=False)
    at = f"/t/{client.key('few.csv')}"
    assert client.get(at).status_code == 200
    answer = client.write(f"{at}/fit")
    if answer.status_code == 200:
        job = client.desk.table(at[3:]).job
        job.wait()
        if not job.error:
            assert client.get(f"{at}/rows").status_code == 200
            return
    assert (answer.json() or client.get(f"{at}/job").json())["error"]


def test_every_row_of_a_table_without_outliers_is_judged(client, folder):
    pd.DataFrame({"a": ["x", "y"] * 6, "b": [1, 2] * 6}).to_csv(folder / "same.csv", index=False)
    at = client.fit("same.csv")
    judge(client, at, ["fine"] * 11)
    number = client.desk.table(at[3:]).judging.next()
    said = client.write(f"{at}/rows/{number}/verdict", verdict="fine").json()
    assert said["number"] is None
    assert "No row is left to judge" in said["html"]


@pytest.mark.slow
def test_five_thousand_columns(client, folder, rng):
    X = pd.DataFrame(rng.normal(size=(150, 5000)).round(3), columns=[f"c{j}" for j in range(5000)])
    X.iloc[3, :40] = 30.0
    X.to_csv(folder / "wide.csv", index=False)
    at = client.fit("wide.csv")
    page = client.get(f"{at}/rows").text
    assert "And 4940 more columns." in page
    assert client.desk.table(at[3:]).judging.listing.lines[0].number == 3
    assert client.get(at).status_code == 200


def test_a_folder_without_rights(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with DeskClient(folder) as client:
        page = client.get("/").text
        assert "may not write in this folder" in page
        at = f"/t/{client.key('patients.csv')}"
        assert "disabled" in client.get(at).text
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(hushtable.errors.FileError, match="is not allowed to read the folder"):
        DeskClient(folder)


def test_an_address_that_is_no_page(client):
    assert client.get("/nothing").status_code == 404
    assert client.get("/t/0123456789ab").status_code == 400
    assert "no longer in the folder" in client.get("/t/0123456789ab").text


def test_the_command_refuses_what_it_cannot_open(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for arguments, words in [
        (["nothing.csv"], "no such file or folder"),
        ([".", "--model", "x.hush"], "--model needs the table"),
        (["patients.csv", "--model", "/x.hush"], "is not in the folder of the table"),
    ]:
        result = run("desk", *arguments, "--no-browser")
        assert result.code == 2, result
        assert words in result.err


def test_a_port_in_use(run, folder, monkeypatch):
    import socket

    monkeypatch.chdir(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("desk", "patients.csv", "--port", port, "--no-browser")
    assert result.code == 1
    assert f"port {port} cannot be used" in result.err


def test_the_command_leaves_the_log_handlers_of_others_open(run, folder, monkeypatch):
    """A server that configures logging closes them, and with some of them their streams."""
    closed = []

    class Handler(logging.Handler):
        def close(self):
            closed.append(self)
            super().close()

    handler = Handler()
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    assert run("desk", folder, "--no-browser").code == 0
    assert not closed
    handler.close()


def test_the_command_serves_and_ends(folder):
    """It prints the address, answers there, and ends at an interrupt with its log let go."""
    command = [sys.executable, "-m", "hushtable.cli", "desk", "patients.csv", "--no-browser"]
    import http.client
    import re

    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as desk:
        line = desk.stdout.readline()
        host, port, path = re.match(
            r"The desk is at http://([\w.]+):(\d+)(/open/\S+)", line
        ).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        try:
            connection.request("GET", path, headers={"Host": f"{host}:{port}"})
            answer = connection.getresponse()
            assert answer.status == 200
            assert b"/t/" in answer.read()
        finally:
            connection.close()
        desk.send_signal(signal.SIGINT)
        _, err = desk.communicate(timeout=60)
    assert (desk.returncode, "Traceback" in err, "Interrupted" in err) == (0, False, False), err


def test_a_browser_that_is_missing_is_no_failure(folder, monkeypatch, capsys, tmp_path):
    from hushtable_desk import cli

    monkeypatch.setattr("webbrowser.open", lambda _: False)
    cli._open_browser("http://127.0.0.1:1/open/x", tmp_path)
    assert "copy the address into a browser" in capsys.readouterr().out
    assert Path(tmp_path / "open.html").stat().st_mode & 0o077 == 0


def test_an_idle_desk_ends(monkeypatch):
    from hushtable_desk import cli
    from hushtable_desk.security import Access

    class Server:
        should_exit = False

    monkeypatch.setattr(cli, "_EVERY", 0.001)
    access, server = Access(1), Server()
    access.last -= 61.0
    cli._end_when_idle(server, access, 1)
    assert server.should_exit


# --- what it learned, and the history of an entity ------------------------------------------------


def test_what_it_learned(client, at, folder):
    assert "There is no verdict yet" in client.get(f"{at}/learned").text
    judge(client, at, ["outlier", "fine", "outlier", "fine"])
    page = client.get(f"{at}/learned").text
    assert "2 outliers in 4 reviewed rows" in page
    assert page.count("<svg") > 1
    review = client.desk.table(at[3:]).judging.review
    found, alone = review.curve()
    assert found.tolist() == [0, 1, 1, 2, 2]
    assert (alone <= np.minimum(np.arange(5), found[-1])).all()
    facts = review.found()
    assert (facts["outliers"], facts["by_score_alone"]) == (found[-1], alone[-1])
    assert all(bits >= 0.0 for _, bits in review.moved_columns())
    places = review.places(5)
    assert sorted(now for _, now, _ in places if now <= 5) == [1, 2, 3, 4, 5]
    assert sorted(before for _, _, before in places if before <= 5) == [1, 2, 3, 4, 5]
    refused = client.write(f"{at}/learned/save", name="patients.hush")
    assert "another name" in refused.json()["error"]
    assert client.write(f"{at}/learned/save", name="../x.hush").status_code == 400
    assert client.write(f"{at}/learned/save", name="x.exe").status_code == 400
    said = client.write(f"{at}/learned/save", name="learned.hush", use=True).json()
    assert client.get(said["address"]).status_code == 200
    # The learned model holds the verdicts of the log: they count once.
    assert client.desk.table(at[3:]).judging.review.n_known == 4
    assert hushtable.load(folder / "learned.hush").score_samples(
        patients()[["ward", "pulse", "weight"]]
    ).shape == (400,)


def test_a_row_has_the_history_of_its_entity(client, folder, rng):
    n = 600
    rows = pd.DataFrame({
        "patient": rng.choice([f"Q{i:02}" for i in range(30)], n),
        "taken": pd.date_range("2026-01-01", periods=n, freq="7h").strftime("%d.%m.%Y %H:%M"),
        "potassium": rng.normal(4.2, 0.2, n).round(1),
    })  # fmt: skip
    rows.loc[500, "potassium"] = 9.0
    rows.to_csv(folder / "readings.csv", sep=";", decimal=",", index=False)
    at = f"/t/{client.key('readings.csv')}"
    client.write(f"{at}/say", name="time", value="taken")
    client.write(f"{at}/say", name="entity", value="patient")
    client.fit("readings.csv")
    page = client.get(f"{at}/rows/500").text
    assert f'data-history="{at}/rows/500/history"' in page
    part = client.get(f"{at}/rows/500/history").text
    whose = rows["patient"][500]
    assert f"History of {whose}" in part
    assert f"{(rows['patient'] == whose).sum()} readings in this file" in part
    assert "9,0" in part  # as in the file
    assert rows["taken"][500] in part
    assert "<svg" in part
    listing = client.desk.table(at[3:]).judging.listing
    assert listing.lines[0].number == 500
    assert listing.lines[0].kind in ("history", "far")


def test_a_table_without_entities_has_no_history(client, at):
    answer = client.get(f"{at}/rows/0/history")
    assert answer.status_code == 400
    assert "not readings of an entity" in answer.text
