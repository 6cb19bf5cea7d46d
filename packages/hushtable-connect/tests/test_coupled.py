"""Rows that share anything: what a release of them has to hide, by brute force, and refusals."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

from hushtable import (
    Feature,
    HushTable,
    LSHiTables,
    Periods,
    Plan,
    Schema,
    Sketch,
    Verdicts,
    load,
)
from hushtable.cli import main
from hushtable.counts.sketch import count_here
from hushtable.data import read
from hushtable.data.options import RowOptions
from hushtable.errors import PrivacyError, UsageError
from hushtable.history import history_columns
from hushtable.privacy import Horizon
from hushtable.privacy.mechanisms import Sensitivity

duckdb = pytest.importorskip("duckdb", reason="DuckDB holds the tables of OMOP")


from hushtable_connect.omop import Concept, ConceptSet, Recipe  # noqa: E402

TABLES = 20
PERSONS = tuple(range(1, 6))
CAPS = (1, 2, 3)


def records(seed=0):
    """Return a few records of each person: in wards and at times that persons share."""
    rng = np.random.default_rng(seed)
    who = np.sort(rng.choice(PERSONS, 14))
    who[: len(PERSONS)] = PERSONS
    n = len(who)
    return pd.DataFrame({
        "who": who, "ward": rng.choice(["a", "b"], n),
        "at": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(n), unit="h"),
        "pulse": rng.normal(70, 20, n).round(1),
    })  # fmt: skip


def without(table, person):
    return table[table["who"] != person].reset_index(drop=True)


def plan_of(*names):
    ranges = {"since": (0, 20), "age": (0, 120), "sodium": (100, 180)}
    features = [
        Feature.numeric(name, low=low, high=high)
        for name in names
        for low, high in [ranges.get(name, (-6, 6) if " " in name else (0, 150))]
    ]
    return Plan.draw(Schema(features), n_tables=TABLES, random_state=0)


# --- each way by which rows are coupled, as the rows of some of the persons -----------------------


def entity_rows(some, folder):
    return read(some.drop(columns="ward"), entity="who", time="at")


def history_frame(some, folder):
    return history_columns(some.drop(columns="ward"), entity="who", time="at")


QUERY = """
SELECT who, pulse, (SELECT max(pulse) FROM records o WHERE o.who = r.who) AS most FROM records r"""


def into_sqlite(some, folder):
    path = folder / "rows.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as base:
        some.to_sql("records", base, index=False)
        base.execute(f"CREATE VIEW most AS {QUERY}")
    base.close()
    return path


def query_rows(some, folder):
    return read(f"sqlite:///{into_sqlite(some, folder)}", query=QUERY, independent=True)


def view_rows(some, folder):
    return read(into_sqlite(some, folder), member="most", independent=True)


SODIUM = ConceptSet((Concept("sodium", (1,), "mmol/L", (2,), 100, 180, "here"),))


def cdm_of(some, folder, *more):
    """Write a CDM in which some measurements name a visit of another person."""
    path = folder / "hospital.duckdb"
    path.unlink(missing_ok=True)
    measured = pd.DataFrame({
        "measurement_id": some["at"].dt.hour + 1,
        "person_id": some["who"], "measurement_concept_id": 1, "measurement_date": some["at"],
        "measurement_datetime": some["at"], "value_as_number": 70 + some["pulse"],
        "unit_concept_id": 2, "visit_occurrence_id": some["who"] * 10 + some["at"].dt.hour % 2,
    })  # fmt: skip
    foreign = measured.assign(visit_occurrence_id=10 * (1 + measured["person_id"] % len(PERSONS)))
    foreign["measurement_id"] *= -1
    measurement = pd.concat([measured, foreign])
    who = some["who"].unique()
    visits = pd.DataFrame(
        {"person_id": np.repeat(who, 2), "visit_start_date": pd.Timestamp("2026-01-01")}
    )
    visits["visit_occurrence_id"] = 10 * visits["person_id"] + np.tile([0, 1], len(who))
    person = pd.DataFrame({"person_id": who, "gender_concept_id": 8507})
    person["year_of_birth"] = 1930 + 7 * person["person_id"]
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE SCHEMA cdm")
        for name, table in {
            "measurement": measurement, "visit_occurrence": visits, "person": person,
        }.items():  # fmt: skip
            base.register("given", table)
            base.execute(f"CREATE TABLE cdm.{name} AS SELECT * FROM given")
            base.unregister("given")
        for statement in more:
            base.execute(statement)
    return f"duckdb:///{path}"


def omop_persons(some, folder):
    return Recipe("person", SODIUM, "cdm").open(cdm_of(some, folder))


def omop_visits(some, folder):
    return Recipe("visit", SODIUM, "cdm").open(cdm_of(some, folder))


HISTORY = ("pulse place", "pulse change", "pulse spread", "since")
WAYS = {
    "entity": (entity_rows, HISTORY, "who"),
    "history columns": (history_frame, HISTORY, "who"),
    "query": (query_rows, ("pulse", "most"), "who"),
    "view": (view_rows, ("pulse", "most"), "who"),
    "OMOP, persons": (omop_persons, ("age", "sodium"), "person_id"),
    "OMOP, visits": (omop_visits, ("age", "sodium"), "person_id"),
}


def counted_under_each_cap(plan, rows, person):
    """Return the counts of rows by the most rows that one person may have."""
    return {
        cap: Sketch.from_data(plan, rows, person=person, rows_per_person=cap, allow_empty=True)
        for cap in CAPS
    }


@pytest.mark.parametrize("way", WAYS)
def test_one_person_changes_at_most_what_the_ledger_states(way, tmp_path):
    """Brute force: all persons left out of small tables, for each bound of rows per person."""
    rows, names, person = WAYS[way]
    plan, largest = plan_of(*names), 0
    for seed in (0, 2):
        table = records(seed)
        counted = counted_under_each_cap(plan, rows(table, tmp_path), person)
        rest = [
            counted_under_each_cap(plan, rows(without(table, one), tmp_path), person)
            for one in PERSONS
        ]
        for cap, whole in counted.items():
            stated = whole.release(1.0).ledger.sensitivity
            assert stated == Sensitivity(TABLES, rows_per_person=cap)
            for other in rest:
                change = whole.counts - other[cap].counts
                assert np.abs(change).sum() <= stated.l1
                assert (change**2).sum() <= stated.l2_squared
                largest = max(largest, np.abs(change).sum())
    assert largest >= TABLES  # the persons left out were counted


# --- what is refused ------------------------------------------------------------------------------


def of_query(some, folder):
    return read(f"sqlite:///{into_sqlite(some, folder)}", query="SELECT * FROM records")


def of_view(some, folder):
    return read(into_sqlite(some, folder), member="most")


def entity_of_wards(some, folder):
    return read(some, entity="ward", time="at")


def omop_of_views(some, folder):
    view = (
        "ALTER TABLE cdm.measurement RENAME TO measured",
        "CREATE VIEW cdm.measurement AS SELECT * REPLACE (avg(value_as_number) OVER () AS "
        "value_as_number) FROM cdm.measured",
    )
    return Recipe("person", SODIUM, "cdm").open(cdm_of(some, folder, *view))


@pytest.mark.parametrize(
    ("rows", "names", "person", "words"),
    [
        (entity_of_wards, ["pulse place"], None, "compared within 'ward', with no person"),
        (entity_of_wards, ["pulse place"], "who", "with person='who'.*do not derive a history"),
        (history_frame, ["pulse", "pulse change"], None, r"\['pulse change'\].*history_columns"),
        (history_frame, ["since"], None, r"\['since'\]"),
        (of_query, ["pulse"], None, "a query or a view.*one person only.*independent=True"),
        (of_query, ["pulse"], "who", "independent=True"),
        (of_view, ["most"], "who", "independent=True"),
        (omop_visits, ["age", "sodium"], None, "visits share.*person='person_id'"),
        (omop_of_views, ["age", "sodium"], "person_id", "independent=True"),
    ],
)
def test_coupled_rows_are_refused_under_a_public_plan(rows, names, person, words, tmp_path):
    bound = {} if person is None else {"person": person, "rows_per_person": 3}
    plan, some = plan_of(*names), rows(records(), tmp_path)
    with pytest.raises(PrivacyError, match=re.compile(words, re.DOTALL)):
        Sketch.from_data(plan, some, **bound)
    with pytest.raises(PrivacyError):
        Sketch.from_data(plan, some, allow_empty=True, **bound)
    if person is None:
        with pytest.raises(PrivacyError):
            Verdicts.from_data(plan, some, [1])


def test_an_entity_with_one_row_is_no_excuse():
    """Only the rows show it, so it would decide whether there is a release."""
    single = records().drop_duplicates("ward").drop(columns="who")
    with pytest.raises(PrivacyError, match="with no person"):
        Sketch.from_data(plan_of("pulse place"), read(single, entity="ward", time="at"))


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (lambda some, folder: read(into_sqlite(some, folder), member="records"), ["pulse"]),
        (query_rows, ["pulse", "most"]),
        (view_rows, ["pulse", "most"]),
        (omop_persons, ["age", "sodium"]),
        (lambda some, folder: some, ["pulse"]),
    ],
)
def test_rows_of_one_person_each_need_no_bound(rows, names, tmp_path):
    plan = plan_of(*names)
    assert Sketch.from_data(plan, rows(records(), tmp_path)).release(1.0).ledger.epsilon <= 1.0


def test_columns_that_only_sound_like_a_history_are_categories_or_have_another_name():
    place = Feature.categorical("birth place", ["a", "b"])
    plan = Plan.draw(Schema([place, Feature.numeric("price", low=0, high=9)]), random_state=0)
    rows = pd.DataFrame({"birth place": ["a", "b"], "price": [1.0, 2.0]})
    assert Sketch.from_data(plan, rows).n_rows == 2


def test_exact_models_of_coupled_rows_stay_allowed(tmp_path):
    table = records()
    for rows in (entity_of_wards, of_query):
        HushTable(random_state=0, n_tables=5).fit(rows(table, tmp_path))
        LSHiTables(random_state=0, n_tables=5).fit(rows(table, tmp_path))
    # Ranks stay where the rows are, also those of a model that others made.
    plan = plan_of("pulse")
    shared = HushTable.from_counts(Sketch.from_data(plan, table[["pulse"]]).release(1.0))
    shared.set_ranks(of_query(table, tmp_path))


@pytest.mark.parametrize("kind", [HushTable, LSHiTables])
def test_a_model_of_coupled_rows_under_public_ranges_is_not_released(kind, tmp_path):
    schema, rows = plan_of("pulse").schema, of_query(records(), tmp_path).select(["pulse"])
    model = kind(n_tables=5).fit(rows, schema=schema)
    assert model.plan_.schema.public
    model.save(tmp_path / "model.hush")
    for found in (model, load(tmp_path / "model.hush")):
        with pytest.raises(PrivacyError, match=r"depends on exact counts|a query or a view"):
            found.sketch_.release(1.0, mechanism="laplace-per-table")


def test_counts_for_use_here_keep_that_they_are_coupled(tmp_path):
    """As those of `hushtable drift` or of ranks, also in a sum and in a file."""
    plan = plan_of("pulse")
    here = count_here(plan, of_query(records(), tmp_path))
    here.save(tmp_path / "here.hush")
    other = Sketch.from_data(plan, pd.DataFrame({"pulse": [1.0, 2.0]}))
    for found in (here, here + other, other + here, load(tmp_path / "here.hush")):
        with pytest.raises(PrivacyError, match="the result of a query or a view, so one person"):
            found.release(1.0)
    horizon = Horizon.of(3)
    periods = Plan.draw(plan.schema, epsilon=1.0, expected_rows=1000, horizon=horizon)
    here = count_here(periods, of_query(records(), tmp_path))
    with pytest.raises(PrivacyError, match="the result of a query or a view, so one person"):
        Periods(periods, 1.0).release(here)


# --- commands -------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records().to_csv("p.csv", index=False)
    into_sqlite(records(), tmp_path)
    plan_of("pulse").save("plan.hush")
    return tmp_path


@pytest.mark.parametrize(
    "of", [["sqlite:///rows.db", "--read", f"query={QUERY}"], ["rows.db", "--read", "member=most"]]
)
def test_the_statement_on_a_query_is_an_option(here, of, capsys):
    sketch = ["sketch", *of, "--drop", "who", "--plan", "plan.hush", "-o", "s.hush"]
    assert main(sketch) == 1
    assert "--read independent=true" in capsys.readouterr().err
    assert main([*sketch, "--read", "independent=true"]) == 0


def test_the_statement_belongs_to_databases(here):
    with pytest.raises(UsageError, match=r"cannot use independent: leave"):
        RowOptions(independent=True).opened("p.csv")


@pytest.mark.parametrize("way", ["review", "file"])
def test_verdicts_on_coupled_rows_are_learned_here(tmp_path, way):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"ward": rng.choice(["a", "b"], 300), "pulse": rng.normal(70, 9, 300)})
    rows["who"] = np.arange(300)
    with sqlite3.connect(tmp_path / "rows.db") as base:
        rows.to_sql("records", base, index=False)
    base.close()
    query = "SELECT pulse, max(pulse) OVER (PARTITION BY ward) AS most FROM records"
    linked = read(f"sqlite:///{tmp_path}/rows.db", query=query)
    schema = Schema(tuple(Feature.numeric(name, low=0, high=200) for name in ("pulse", "most")))
    plan = Plan.draw(schema, n_tables=5, random_state=0)
    model = count_here(plan, linked)
    detector = HushTable.from_counts(model)
    review = detector.review(linked)
    review.outlier()
    review.fine()
    verdicts = review.verdicts
    if way == "file":
        verdicts.save(tmp_path / "v.hush")
        verdicts = load(tmp_path / "v.hush")
        detector.save(tmp_path / "m.hush")
        assert load(tmp_path / "m.hush").verdicts_.coupled == verdicts.coupled
    assert "could change the features of other persons' rows" in (verdicts + verdicts).coupled
