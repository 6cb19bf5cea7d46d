"""The watch page: rows since the last visit, months beside those of earlier years, and alerts."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from desk_helpers import Browser, no_style_or_script, words
from hushtable import Feature, HushTable
from hushtable_desk import watching
from hushtable_desk.changes import changes
from hushtable_desk.folder import key_of
from hushtable_desk.listing import key_of as column_key
from hushtable_desk.watching import dates_of, months_and_changes

EVIL = "<script>alert(1)</script>"
NAME = "visits.csv"


def rows(n, begin="2023-01-01", end="2025-05-20", seed=0, age=50.0):
    rng = np.random.default_rng(seed)
    days = np.sort(rng.uniform(0, (pd.Timestamp(end) - pd.Timestamp(begin)).days, n))
    when = pd.Timestamp(begin) + pd.to_timedelta(days.astype(int), unit="D")
    return pd.DataFrame({
        "date": when.strftime("%Y-%m-%d"),
        "age": rng.normal(age, 9, n).round(1),
        "weight": rng.normal(70, 9, n).round(1),
        "ward": rng.choice(["a", "b", "c"], n),
    })  # fmt: skip


def folder_of(path, table, name=NAME):
    table.to_csv(path / name, index=False)
    fitted = table.drop(columns=[c for c in table.columns if c.startswith(("date", "other"))])
    HushTable(random_state=0).fit(fitted).save(path / "visits.hush")
    browser = Browser(path)
    browser.desk.table(key_of(name)).use("visits.hush")
    return browser


@pytest.fixture(autouse=True)
def closed():
    yield
    Browser.close_all()


@pytest.fixture
def browser(tmp_path):
    return folder_of(tmp_path, rows(3_000))


PAGE = f"/t/{key_of(NAME)}"


def odd(n):
    table = rows(n, "2025-05-20", "2025-05-25", seed=2)
    return table.assign(age=400.0, ward=EVIL)


def test_rows_since_the_last_visit_come_first(browser, tmp_path):
    browser.get(f"{PAGE}/watch")
    browser.post(f"{PAGE}/seen", {"rows": 3_000})
    odd(4).to_csv(tmp_path / NAME, mode="a", header=False, index=False)
    assert "The file has changed since it was read" in words(browser.get(f"{PAGE}/watch"))
    browser.post(f"{PAGE}/read-again")
    page = browser.get(f"{PAGE}/watch")
    assert "4 rows were added since" in words(page)
    assert "4 are among the listed unusual rows" in words(page)
    for number in range(3_000, 3_004):
        assert f'href="{PAGE}/rows/{number}"' in page
    assert EVIL not in page
    no_style_or_script(page)
    browser.post(f"{PAGE}/seen", {"rows": 3_004})
    assert "No row was added" in words(browser.get(f"{PAGE}/watch"))


def test_a_visit_is_remembered_by_the_next_desk(browser, tmp_path):
    browser.post(f"{PAGE}/seen", {"rows": 2_990})
    browser.desk.close()
    assert "10 rows were added since" in words(Browser(tmp_path).get(f"{PAGE}/watch"))


def test_a_table_that_shrank_says_so(browser, tmp_path):
    browser.post(f"{PAGE}/seen", {"rows": 3_000})
    rows(3_000)[:2_500].to_csv(tmp_path / NAME, index=False)
    browser.post(f"{PAGE}/read-again")
    text = words(browser.get(f"{PAGE}/watch"))
    assert "has 2,500 rows, and had 3,000" in text


def test_another_file_of_the_name_says_so(browser, tmp_path):
    browser.post(f"{PAGE}/seen", {"rows": 3_000})
    rows(3_500, seed=9).to_csv(tmp_path / NAME, index=False)
    browser.post(f"{PAGE}/read-again")
    assert "begins differently" in words(browser.get(f"{PAGE}/watch"))


def test_a_file_that_vanished_says_so(browser, tmp_path):
    browser.get(f"{PAGE}/watch")
    (tmp_path / NAME).unlink()
    assert "The file no longer exists" in words(browser.get(f"{PAGE}/watch"))
    assert "no longer exists" in browser.post(f"{PAGE}/read-again", status=400)["error"]


@pytest.mark.parametrize(
    "content", [{}, {"rows": "9"}, {"rows": True}, {"rows": -1}, {"rows": 9_999}]
)
def test_what_is_no_number_of_rows_is_refused(browser, content):
    assert browser.post(f"{PAGE}/seen", content, 400)["error"]


def test_a_month_that_moved_is_beyond_chance(tmp_path):
    table = rows(4_000)
    may = table["date"] >= "2025-05"
    table.loc[may, "age"] += 40
    table.loc[may & (table["age"] > 92), "weight"] = np.nan
    table.loc[may, "ward"] = "a"
    page = folder_of(tmp_path, table).get(f"{PAGE}/watch")
    text = words(page)
    assert re.search(r"age is higher: its median is \d\d\S* before, [45]\d", text)
    assert re.search(r"weight is missing in \d\d\.\d% of the rows; before, in 0\.0%", text)
    assert re.search(r"ward: “a” is in 100\.0% of the rows; before, in 3\d\.\d%", text)
    assert f'href="{PAGE}/rows?column={column_key("age")}"' in page


FEATURES = [
    *(Feature.numeric(f"x{j}", low=-5, high=5) for j in range(10)),
    Feature.categorical("ward", ["a", "b", "c"]),
]


def sample(rng, n, shift=0.0):
    columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
    columns["x0"] = columns["x0"] + shift
    columns["x1"] = columns["x1"].round()
    columns["x2"] = np.where(rng.random(n) < 0.05, np.nan, columns["x2"])
    columns["ward"] = rng.choice(["a", "b", "c"], n, p=[0.5, 0.45, 0.05])
    table = pa.table({name: pa.array(x, from_pandas=True) for name, x in columns.items()})
    return table, rng.random(n) < 0.02


def found(rng, n_before, n_after, shift=0.0):
    (before, earlier), (after, now) = sample(rng, n_before), sample(rng, n_after, shift)
    return changes(FEATURES, before, after, (earlier, now))


@pytest.mark.parametrize("n", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sizes", [(3_000, 500), (100, 40)])
def test_quiet_tables_raise_at_most_one_alarm_in_a_hundred(n, sizes):
    rng = np.random.default_rng(65)
    alarms = sum(bool(found(rng, *sizes)) for _ in range(n))
    print(f"{alarms} alarms in {n} quiet tables of {sizes} rows")
    assert alarms <= n // 100


def test_a_shift_of_half_a_standard_deviation_in_one_of_ten_columns_is_found():
    rng = np.random.default_rng(66)
    first = [found(rng, 3_000, 500, 0.5) for _ in range(25)]
    hits = sum(bool(one) and one[0].column == "x0" for one in first)
    print(f"found in {hits} of 25 first months of 500 rows")
    assert hits >= 0.8 * 25


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        (
            rows(1_000, "2024-11-10", "2025-02-20"),
            "with all earlier rows|Jan 2025|Dec 2024",
        ),
        (rows(300, "2025-02-01", "2025-02-20"), "There are too few rows to compare"),
        (rows(300).drop(columns="date"), "no column of dates"),
    ],
    ids=["no earlier year", "one month", "no dates"],
)
def test_tables_of_few_months(tmp_path, table, parts):
    text = words(folder_of(tmp_path, table).get(f"{PAGE}/watch"))
    assert [part for part in parts.split("|") if part not in text] == []


@pytest.mark.parametrize(
    "said", [{}, {"time": "date"}, {"time": "date", "context": ("month",)}, {"context": ("ward",)}]
)
def test_models_that_the_desk_fits_can_be_watched(tmp_path, said):
    table = rows(2_000)
    table.loc[table["date"] >= "2025-05", "age"] += 60
    table.to_csv(tmp_path / NAME, index=False)
    browser = Browser(tmp_path)
    opened = browser.desk.table(key_of(NAME))
    opened.say(**said)
    opened.fit().wait()
    text = words(browser.get(f"{PAGE}/watch"))
    assert "May 2025" in text
    assert "age is higher" in text


def test_without_a_threshold_the_listed_rows_are_the_unusual_ones(browser):
    opened = browser.desk.table(key_of(NAME))
    opened.judging.model = opened.judging.model._replace(threshold=float("nan"))
    assert "The model has no threshold" in words(browser.get(f"{PAGE}/watch"))
    months, _ = months_and_changes(opened, opened.judging, dates_of(opened)[0])
    assert months.unusual.sum() == len(opened.judging.listing.lines)


def test_counted_months_are_remembered(browser, monkeypatch):
    first = browser.get(f"{PAGE}/watch")
    monkeypatch.setattr(watching, "counted_months", None)
    assert browser.get(f"{PAGE}/watch") == first


def test_another_column_of_dates_is_chosen_by_the_address(tmp_path):
    table = rows(600)
    table.insert(1, "other date", rows(600, "2019-01-01", "2021-03-03")["date"])
    table.loc[:9, "other date"] = ""
    browser = folder_of(tmp_path, table)
    text = words(browser.get(f"{PAGE}/watch?time=other%20date"))
    assert "Mar 2021" in text
    assert "10 rows have no date" in text
    assert "May 2025" in words(browser.get(f"{PAGE}/watch"))
