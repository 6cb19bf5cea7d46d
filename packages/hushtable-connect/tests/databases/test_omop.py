"""OMOP tables as rows: in a PostgreSQL server that the tests start, and in DuckDB."""

import csv
import re
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from cdm import WARD_ODD, Cdm
from cli_helpers import say
from hushtable import LSHiTables, Schema, load
from hushtable.cli import main
from hushtable.data.options import RowOptions
from hushtable.data.readers import Unasked
from hushtable.errors import DataError, PlanError, UsageError
from hushtable_connect.omop import Concept, ConceptSet, Recipe
from hushtable_connect.omop.query import quoted

pytest.importorskip("duckdb")
PERSONS = 200
#: A name that ends a statement where it is not quoted.
HOSTILE = 'a"; DROP TABLE person; --'


@pytest.fixture(scope="module")
def made():
    return Cdm.made(PERSONS)


class Duck:
    """Puts a CDM into a file of DuckDB."""

    def __init__(self, path):
        self.path = path

    def fill(self, cdm, schema="cdm"):
        cdm.into_duckdb(self.path, schema)
        return f"duckdb:///{self.path}"


class Server:
    """Puts a CDM into a database of PostgreSQL."""

    def __init__(self, server):
        self.server, self.schemas = server, set()

    def fill(self, cdm, schema="cdm"):
        cdm.into_postgres(self.server, schema)
        self.schemas.add(schema)
        return self.server.url()

    def clear(self):
        self.server.do(*(f"DROP SCHEMA {quoted(one)} CASCADE" for one in self.schemas))


@pytest.fixture
def duck(tmp_path):
    return Duck(tmp_path / "hospital.duckdb")


@pytest.fixture(params=[pytest.param("postgres", marks=pytest.mark.slow), "duckdb"])
def store(request, duck):
    if request.param == "duckdb":
        yield duck
        return
    server = Server(request.getfixturevalue("postgres"))
    yield server
    server.clear()


def rows(url, recipe):
    return pa.Table.from_batches(recipe.open(url).read())


def changed(cdm, **columns):
    """Return the CDM with other columns of its measurements."""
    table = cdm.measurement
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return replace(cdm, measurement=table)


def asked(*commands):
    """Run commands; each must succeed."""
    for command in commands:
        assert main(command.split()) == 0, command


def two_commands(url, folder):
    """Fit and score; return the persons of the list in order, and the reasons of each."""
    asked(
        f"fit {url} --read omop=person --read cdm=cdm --seed 0 -o {folder}/model.hush",
        f"score {url} --read omop=person --read cdm=cdm --model {folder}/model.hush --top 20"
        f" -o {folder}/top.csv",
    )
    with (folder / "top.csv").open() as file:
        return [(int(row["person_id"]), str(row)) for row in csv.DictReader(file)]


def test_two_commands_list_the_odd_persons_by_public_ranges(store, made, tmp_path, capsys):
    found = two_commands(store.fill(made), tmp_path)
    assert len(found) == 20
    assert {person for person, _ in found[: len(made.odd)]} == set(made.odd)
    pounds = next(text for person, text in found if person == made.odd[1])
    assert "body_weight 330 kg" in pounds
    assert "body_temperature 98.6 Cel" in pounds
    assert "Its ranges are public" in capsys.readouterr().out
    schema = load(tmp_path / "model.hush").plan_.schema
    assert schema.public
    ranges = {one.name: (one.low, one.high, one.unit) for one in schema.features}
    for one in ConceptSet.common():
        assert ranges.pop(one.name) == (one.low, one.high, one.unit)
    assert ranges == {"age": (0, 120, "years"), "sex": (0, 0, "")}


def test_a_draft_is_complete_and_names_the_sources(duck, made, tmp_path):
    url = duck.fill(made)
    asked(f"plan draft {url} --read omop=visit --read cdm=cdm --drop sex -o {tmp_path}/s.toml")
    whole = Recipe().schema
    schema = Schema.from_toml(tmp_path / "s.toml")
    assert schema.features == tuple(one for one in whole.features if one.name != "sex")
    text = "".join((tmp_path / "s.toml").read_text().replace("#", "").split())
    for one in ConceptSet.common():
        units, source = ",".join(map(str, one.units)), one.source.replace(" ", "")
        assert f'unit_concept_id{units};range:{source}[[feature]]name="{one.name}"' in text


def expected(cdm, row_of):
    """Pick the values one by one: the latest of a person, the first of a visit."""
    key = "person_id" if row_of == "person" else "visit_occurrence_id"
    of = {id_: one.name for one in ConceptSet.common() for id_ in one.concepts}
    latest = row_of == "person"
    best = {}
    for row in cdm.measurement.to_pylist():
        if row[key] is None or row["value_as_number"] is None:
            continue
        moment = row["measurement_datetime"]
        when = (0.0 if moment is None else moment.timestamp()) * (1 if latest else -1)
        day = row["measurement_date"]
        order = (0 if day is None else day.toordinal(), row["measurement_id"])
        order = order if latest else tuple(-one for one in order)
        rank = (day is not None, order[0], moment is not None, when, order[1])
        place = row[key], of[row["measurement_concept_id"]]
        if place not in best or rank > best[place][0]:
            best[place] = rank, float(row["value_as_number"])
    found = {}
    for (who, name), (_, value) in best.items():
        found.setdefault(who, {})[name] = value
    return found


def test_each_value_is_the_latest_of_a_person_or_the_first_of_a_visit(store):
    cdm, rng = Cdm.made(30), np.random.default_rng(1)
    n = 2 * len(cdm.measurement)
    twice = pa.concat_tables([cdm.measurement] * 2)
    days = np.datetime64("2025-03-01") + rng.integers(0, 2, n)
    seconds = days.astype("datetime64[s]") + rng.integers(0, 3, n)
    values, visits = np.round(rng.normal(50, 9, n), 1), twice["visit_occurrence_id"].to_numpy()
    cdm = changed(
        replace(cdm, measurement=twice),
        measurement_id=rng.permutation(n),
        measurement_date=pa.array(days.astype("datetime64[D]"), mask=rng.random(n) < 0.1),
        measurement_datetime=pa.array(seconds.astype("datetime64[us]"), mask=rng.random(n) < 0.3),
        value_as_number=pa.array(values, mask=rng.random(n) < 0.1),
        visit_occurrence_id=pa.array(visits, mask=rng.random(n) < 0.2),
    )  # fmt: skip
    url, born = store.fill(cdm), {row["person_id"]: row for row in cdm.person.to_pylist()}
    for recipe in (Recipe("person", cdm="cdm"), Recipe("visit", cdm="cdm")):
        names = [one.name for one in recipe.concepts]
        found, picked = rows(url, recipe).to_pylist(), expected(cdm, recipe.row_of)
        assert [row[recipe.key] for row in found] == sorted(picked)
        for row in found:
            values, person = picked[row[recipe.key]], born[row["person_id"]]
            assert {name: row[name] for name in names} == {n: values.get(n) for n in names}
            assert row["sex"] == {8507: "male", 8532: "female"}[person["gender_concept_id"]]
            if recipe.row_of == "person":
                assert row["age"] == 2025 - person["year_of_birth"]


# --- what is not as it should be ------------------------------------------------------------------


def test_a_database_without_the_tables_is_refused(store, made, tmp_path, capsys):
    url = store.fill(made)
    assert main(["fit", url, "--read", "omop=visit", "-o", f"{tmp_path}/m.hush"]) == 1
    said = capsys.readouterr().err
    assert "has no tables person, measurement, visit_occurrence of the OMOP CDM" in said
    assert "they are in schema 'cdm' (--read cdm=cdm)" in said
    with pytest.raises(DataError, match=r"schema 'other' has no tables person, measurement of"):
        Recipe(cdm="other").open(url)
    no_date = replace(made, measurement=made.measurement.drop(["measurement_date"]))
    with pytest.raises(DataError, match=r"table measurement .* has no column \['measurement_date'"):
        Recipe(cdm="other").open(store.fill(no_date, "other"))


@pytest.mark.slow
def test_names_in_capitals_are_others_in_postgresql_and_the_same_in_duckdb(postgres, duck):
    made = Cdm.made(20)
    before = rows(duck.fill(made), Recipe(cdm="cdm"))
    names = [name.upper() for name in made.measurement.column_names]
    capitals = replace(made, measurement=made.measurement.rename_columns(names))
    assert rows(duck.fill(capitals, "cdm2"), Recipe(cdm="cdm2")).equals(before)
    server = Server(postgres)
    url = server.fill(made)
    postgres.do('ALTER TABLE cdm.person RENAME COLUMN year_of_birth TO "YEAR_OF_BIRTH"')
    with pytest.raises(DataError, match=r"no column \['year_of_birth'\]: .* names in lower case"):
        Recipe(cdm="cdm").open(url)
    postgres.do('ALTER TABLE cdm.person RENAME TO "PERSON"')
    with pytest.raises(
        DataError, match=r"no tables person .* has 'PERSON' in capital letters: .* views"
    ):
        Recipe(cdm="cdm").open(url)
    server.clear()


def test_a_person_or_a_visit_that_is_there_twice_is_refused(store, tmp_path, capsys):
    """Each would become two rows."""
    made = Cdm.made(20)
    twice = replace(made, person=pa.concat_tables([made.person, made.person[4:7]]))
    url = store.fill(twice)
    assert main(f"fit {url} --read omop=person --read cdm=cdm -o {tmp_path}/m.hush".split()) == 1
    said = capsys.readouterr().err
    assert "table person in schema 'cdm' has 23 rows of 20 person_id: needs one row" in said
    with pytest.raises(DataError, match="table person in schema 'cdm' has 23 rows of 20"):
        Recipe("visit", cdm="cdm").open(url)
    visits = made.visit_occurrence
    twice = replace(made, visit_occurrence=pa.concat_tables([visits, visits[:1]]))
    url = store.fill(twice, "visits")
    with pytest.raises(DataError, match="has 41 rows of 40 visit_occurrence_id: needs one row"):
        Recipe("visit", cdm="visits").open(url)
    assert len(rows(url, Recipe("person", cdm="visits"))) == 20  # visits are not asked for


def test_a_concept_in_two_units_or_without_one_is_refused_or_left_out(
    store, made, tmp_path, capsys
):
    concepts = made.measurement["measurement_concept_id"].to_numpy()
    units = made.measurement["unit_concept_id"].to_pylist()
    for concept, unit, every in ((3025315, 8739, 2), (3004501, 0, 3), (3019550, None, 1)):
        for row in np.flatnonzero(concepts == concept)[::every]:
            units[row] = unit
    url = store.fill(changed(made, unit_concept_id=units))
    fit = ["fit", url, "--read", "omop=person", "--read", "cdm=cdm", "-o", f"{tmp_path}/m.hush"]
    assert main(fit) == 1
    said = capsys.readouterr().err
    pounds, sugar, salt = (units.count(unit) for unit in (8739, 0, None))
    assert f"body_weight (3025315): {pounds:,} in unit 8739; needs 9529 (kg)" in said
    assert f"glucose (3004501): {sugar:,} without a unit; needs 8840 (mg/dL)" in said
    assert f"sodium (3019550): {salt:,} without a unit; needs 8753 or 9557 (mmol/L)" in said
    assert "--read listed_units=true" in said
    assert not (tmp_path / "m.hush").exists()
    assert main([*fit, "--read", "listed_units=true"]) == 0
    said = capsys.readouterr().err
    assert f"left out {pounds + sugar + salt:,} measurements in other units" in said
    assert "never measured: sodium" in said
    table = rows(url, Recipe(cdm="cdm", listed_units=True))
    assert table["sodium"].null_count == len(table)
    assert 0 < table["body_weight"].null_count < len(table)


def test_fit_leaves_out_what_most_rows_lack_and_names_the_option(duck, made, tmp_path, capsys):
    values = made.measurement["value_as_number"].to_pylist()
    concepts = made.measurement["measurement_concept_id"].to_pylist()
    persons = made.measurement["person_id"].to_pylist()
    common = {one.concepts[0]: one.name for one in ConceptSet.common()}
    rare = {"lactate": 5, "magnesium": 3, "sodium": 10**9}
    for row, (concept, person) in enumerate(zip(concepts, persons, strict=True)):
        if person // 7 % rare.get(common[concept], 1):
            values[row] = None
    url = duck.fill(changed(made, value_as_number=values))
    fit = ["fit", url, "--read", "omop=person", "--read", "cdm=cdm", "--tables", "9"]
    assert main([*fit, "-o", f"{tmp_path}/m.hush"]) == 0
    out, said = capsys.readouterr()
    shares = re.findall(r"^(sodium|magnesium|lactate|glucose) +(\d+)\.\d%$", out, re.MULTILINE)
    assert shares == [("glucose", "100"), ("magnesium", "33"), ("lactate", "20"), ("sodium", "0")]
    assert "most rows have no value of magnesium, lactate, sodium: left out" in said
    names = load(tmp_path / "m.hush").plan_.schema.names
    assert len(names) == 26
    assert not {"sodium", "magnesium", "lactate"} & set(names)
    option = f"--columns {','.join(names)}"
    assert option in said  # typed, it gives the same model, whatever the rows are
    assert main([*fit, *option.split(), "--seed", "0", "-o", f"{tmp_path}/n.hush"]) == 0
    assert "To confirm" not in capsys.readouterr().err
    assert load(tmp_path / "n.hush").plan_.schema.names == names


def test_columns_and_concept_sets_that_are_named_win_over_what_most_rows_have(
    duck, tmp_path, capsys
):
    url = duck.fill(Cdm.ward(60))
    fit = ["fit", url, "--read", "omop=person", "--read", "cdm=cdm", "--tables", "9"]
    fit += ["-o", f"{tmp_path}/m.hush"]
    assert main([*fit, "--columns", "age,lactate,potassium"]) == 0
    assert load(tmp_path / "m.hush").plan_.schema.names == ["age", "lactate", "potassium"]
    assert "most rows have no value of lactate; without" in capsys.readouterr().err
    (tmp_path / "set.toml").write_text(
        "".join(
            f'[[concept]]\nname = "{name}"\nconcepts = [{id_}]\nunit = "mmol/L"\nunits = [8753]\n'
            f'low = 0\nhigh = 30\nsource = "a page"\n'
            for name, id_ in (("lactate", 3014111), ("potassium", 3023103))
        )
    )
    assert main([*fit, "--read", f"concepts={tmp_path}/set.toml"]) == 0
    schema = load(tmp_path / "m.hush").plan_.schema
    assert schema.names == ["age", "sex", "lactate", "potassium"]
    assert schema.features[2].neutral  # no usual value is listed
    assert main([*fit, "--drop", "sex,glucose"]) == 0
    names = load(tmp_path / "m.hush").plan_.schema.names
    assert len(names) == 10
    assert not {"sex", "glucose", "lactate"} & set(names)


def test_where_most_rows_lack_every_concept_the_columns_are_asked_for(duck, tmp_path, capsys):
    made = Cdm.ward(40)
    keep = np.arange(len(made.measurement)) % 9 == 0
    url = duck.fill(replace(made, measurement=made.measurement.filter(pa.array(keep))))
    recipe = Recipe(cdm="cdm")
    reader = recipe.open(url)
    with pytest.raises(DataError, match=r"no concept has a value in half of the rows; .*\(\d+%\)"):
        recipe.drawn(reader)
    command = f"fit {url} --read omop=person --read cdm=cdm -o {tmp_path}/m.hush"
    assert main(command.split()) == 1
    asked_for = re.search(r"--columns (\S+)", capsys.readouterr().err)[0]
    asked(f"{command} {asked_for} --tables 9")


def test_no_plan_and_no_unattended_reading_depends_on_what_rows_have(tmp_path):
    drafts, read = [], []
    for number, cdm in enumerate((Cdm.made(50), Cdm.ward(50))):
        url = Duck(tmp_path / f"{number}.duckdb").fill(cdm)
        draft = tmp_path / f"{number}.toml"
        asked(f"plan draft {url} --read omop=person --read cdm=cdm -o {draft}")
        drafts.append(draft.read_bytes())
        schema = Schema.from_toml(draft)
        options = RowOptions(omop="person", cdm="cdm")
        reader = options.open_as(url, schema, attended=False)
        read.append((reader.names, schema.names, options.schema.names))
        asked(
            f"plan draw {draft} --seed 0 --tables 9 -o {tmp_path}/{number}.plan.hush",
            f"sketch {url} --read omop=person --read cdm=cdm --plan {tmp_path}/{number}.plan.hush"
            f" -o {tmp_path}/{number}.sketch.hush",
        )
    assert drafts[0] == drafts[1]
    assert read[0] == read[1]
    assert set(Recipe().schema.names) == set(schema.names) <= set(reader.names)
    plans = {load(tmp_path / f"{number}.sketch.hush").plan.plan_id for number in range(2)}
    assert len(plans) == 1


@pytest.mark.parametrize("seed", range(5, 10))
def test_potassium_is_listed_before_persons_of_whom_values_are_missing(duck, tmp_path, seed):
    url = duck.fill(Cdm.ward(seed=seed))
    found = two_commands(url, tmp_path)
    assert set(WARD_ODD) <= {person for person, _ in found[:10]}
    with (tmp_path / "top.csv").open() as file:
        listed = list(csv.DictReader(file))
    assert len(listed) == 20
    for row in listed:
        values = [row[f"value_{k}"] for k in (1, 2, 3) if row[f"reason_{k}"]]
        assert any(value not in ("", "missing") for value in values), row


def test_values_are_those_of_so_many_days_before_a_persons_latest(store):
    cdm = Cdm.ward(60)
    url = store.fill(cdm)
    all_ids = {id_ for one in ConceptSet.common() for id_ in one.concepts}
    last = {}
    for row in cdm.measurement.to_pylist():
        assert row["measurement_concept_id"] in all_ids
        day = row["measurement_date"]
        last[row["person_id"]] = max(day, last.get(row["person_id"], day))
    for days in (1, 30, 365):
        recent = [
            (last[row["person_id"]] - row["measurement_date"]).days <= days
            for row in cdm.measurement.to_pylist()
        ]
        picked = expected(replace(cdm, measurement=cdm.measurement.filter(recent)), "person")
        found = rows(url, Recipe(cdm="cdm", within=days)).to_pylist()
        names = [one.name for one in ConceptSet.common()]
        got = {r["person_id"]: {n: r[n] for n in names if r[n] is not None} for r in found}
        assert got == picked
    for wrong in ({"within": 0}, {"row_of": "visit", "within": 30}):
        with pytest.raises(UsageError, match="within="):
            Recipe(cdm="cdm", **wrong)


def test_units_in_which_the_number_is_the_same_are_one_and_need_no_names(duck):
    made = Cdm.made(20)
    units = made.measurement["unit_concept_id"].to_numpy().copy()
    units[(units == 8541) & (np.arange(len(units)) % 2 == 0)] = 8483
    other = replace(changed(made, unit_concept_id=units), concept=pa.table({"concept_id": [8483]}))
    before = rows(duck.fill(made), Recipe(cdm="cdm"))
    assert before.equals(rows(duck.fill(other, "cdm2"), Recipe(cdm="cdm2")))


def test_hostile_names_are_names(store):
    made = Cdm.made(20)
    one = replace(next(iter(ConceptSet.common())), name=HOSTILE)
    table = rows(store.fill(made, "select"), Recipe(cdm="select", concepts=ConceptSet((one,))))
    assert table.column_names == ["person_id", "age", "sex", HOSTILE]
    found = rows(store.fill(made, HOSTILE), Recipe(cdm=HOSTILE, concepts=ConceptSet((one,))))
    assert found.equals(table)


ONE = Concept("pulse", (1,), "/min", (2,), 0, 300, "a book")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"unit": " "}, "concept 'pulse' has no unit"),
        ({"units": ()}, "concept 'pulse' has no unit"),
        ({"units": (0,)}, "concept 'pulse' has no unit"),
        ({"units": (2, 2)}, "lists an id twice"),
        ({"concepts": ()}, "needs a measurement_concept_id"),
        ({"source": ""}, "name the source"),
        ({"name": "Age"}, "none of person_id"),
        ({"name": "ä" * 32}, "63 bytes"),
        ({"low": 300}, "low below high"),
    ],
)
def test_a_concept_that_is_incomplete_is_refused(other, said):
    with pytest.raises(PlanError, match=said):
        replace(ONE, **other)


def test_a_concept_set_is_checked_as_a_whole(tmp_path):
    again = replace(ONE, name="PULSE", concepts=(3,))
    for second in (again, replace(ONE, name="other")):
        with pytest.raises(PlanError, match="twice"):
            ConceptSet((ONE, second))
    path = tmp_path / "set.toml"
    for text, said in (
        ("", "an empty file"),
        (
            "[[concept]]\nname = 'pulse'\nconcepts = [1]\nlow = 0\nhigh = 9\n",
            "concept 'pulse' needs",
        ),
        ("[[concept]", "set.toml: "),
    ):
        path.write_text(text)
        with pytest.raises(PlanError, match=said):
            ConceptSet.from_toml(path)


def test_options_that_do_not_go_together_are_refused(tmp_path, capsys):
    out = ["-o", f"{tmp_path}/m.hush"]
    for arguments, said in (
        (["rows.csv", "--read", "omop=person"], "read from postgresql:// or duckdb:///"),
        (["sqlite:///a.db", "--read", "omop=visit"], "read from postgresql:// or duckdb:///"),
        (
            ["duckdb:///a.db", "--read", "omop=visit", "--read", "query=SELECT 1"],
            "cannot use --read query=",
        ),
        (["rows.csv", "--read", "cdm=cdm"], "--read cdm=... needs --read omop="),
    ):
        assert main(["fit", *arguments, *out]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(UsageError, match="'person' or 'visit'"):
        Recipe("ward")


def test_detectors_take_a_public_schema(duck, made):
    recipe = Recipe(cdm="cdm")
    reader = recipe.open(duck.fill(made))
    model = LSHiTables(random_state=0).fit(reader, schema=recipe.schema)
    assert model.plan_.schema == recipe.schema
    with pytest.raises(UsageError, match="needs a Schema"):
        model.fit(reader, schema="schema.toml")


def test_a_round_answers_with_visits_and_asks_about_other_units(duck, made, tmp_path, capsys):
    pytest.importorskip("opendp", reason="releases need opendp")
    pytest.importorskip("cryptography", reason="rounds need cryptography")
    from hushtable_federation.book.book import Book

    units = made.measurement["unit_concept_id"].to_numpy().copy()
    units[0] = 9999
    url, at = duck.fill(changed(made, unit_concept_id=units)), tmp_path
    asked(
        f"plan draft {url} --read omop=visit --read cdm=cdm --read listed_units=true -o "
        f"{at}/s.toml",
        f"plan draw {at}/s.toml --epsilon 1 --expected-rows 1200 -o {at}/plan.hush",
        *(f"round keygen {name} --cap 2 --folder {at}" for name in ("north", "south")),
        f"round keygen lead --folder {at}",
        f"round open {at}/plan.hush {at}/north.card {at}/south.card --key {at}/lead.key --epsilon 1"
        f" -o {at}/round.hush",
    )
    capsys.readouterr()
    site = say(at, "north", rows=url, omop="visit", cdm="cdm", person="person_id")
    (at / "box").mkdir()
    asked(f"round sync {at}/box --key {at}/lead.key --post {at}/round.hush")
    capsys.readouterr()
    submit = (
        f"round sync {at}/box --site {site} --trust {at}/lead.card --trust {at}/south.card --yes"
    ).split()
    assert main(submit) == 1
    assert "1 in unit 9999" in capsys.readouterr().err
    assert not list((at / "box").glob("*.keys.*"))
    with Book.open(at / "north.book") as book:
        assert book.data_sets() == []
    say(at, "north", listed_units=True)
    assert main(submit) == 0
    assert list((at / "box").glob("*.keys.north.*"))


def test_one_measurement_in_another_unit_does_not_decide_whether_a_site_answers(duck, made):
    """Someone who is here is asked; else it is left out, as a value that is missing."""
    units = made.measurement["unit_concept_id"].to_numpy().copy()
    units[0] = 9999
    url, schema = duck.fill(changed(made, unit_concept_id=units)), Recipe("visit").schema
    how = RowOptions(omop="visit", cdm="cdm")
    with pytest.raises(DataError, match="1 in unit 9999"):
        how.open_as(url, schema)
    alone = how.open_as(url, schema, attended=False)
    listed = replace(how, listed_units=True).open_as(url, schema)
    found = [sum(batch.num_rows for batch in one.read()) for one in (alone, listed)]
    assert found[0] == found[1] > 0


def of_one_person(made):
    """Yield tables that differ only in the records of the second of five persons."""
    one = made.person["person_id"][1].as_py()
    person = made.person.slice(1, 1)
    born = person.set_column(2, "year_of_birth", pa.array([1900]))
    visits = made.visit_occurrence.filter(made.visit_occurrence["person_id"].to_numpy() == one)
    other = made.visit_occurrence["visit_occurrence_id"][0].as_py()  # of the first person
    claimed = visits.slice(0, 1).set_column(0, "visit_occurrence_id", pa.array([other]))
    measured = made.measurement.filter(made.measurement["person_id"].to_numpy() == one)
    place = measured.column_names.index("visit_occurrence_id")
    theirs = measured.set_column(place, "visit_occurrence_id", pa.array([other] * len(measured)))
    added = [("person", person), ("person", born), ("visit_occurrence", visits),
             ("visit_occurrence", claimed), ("measurement", theirs)]  # fmt: skip
    for name, table in added:
        yield one, replace(made, **{name: pa.concat_tables([getattr(made, name), table])})
    also = pa.concat_tables([made.visit_occurrence, claimed])
    both = pa.concat_tables([made.measurement, theirs])
    yield one, replace(made, visit_occurrence=also, measurement=both)
    for name, table in made.tables.items():
        if "person_id" in table.column_names:
            rest = table.filter(table["person_id"].to_numpy() != one)
            yield one, replace(made, **{name: rest})


@pytest.mark.parametrize("row_of", [pytest.param("person", marks=pytest.mark.slow), "visit"])
def test_records_of_one_person_change_only_the_rows_of_that_person(store, row_of):
    """At an unattended site, whether there is an answer, too."""
    made, unasked = Cdm.made(5), Unasked(())

    def read(cdm, schema):
        reader = Recipe(row_of, cdm=schema).open(store.fill(cdm, schema), unasked=unasked)
        return pa.Table.from_batches(reader.read())

    before = read(made, "before")
    for i, (one, cdm) in enumerate(of_one_person(made)):
        some = [
            table.filter(table["person_id"].to_numpy() != one)
            for table in (before, read(cdm, f"after{i}"))
        ]
        assert some[0].equals(some[1]), i
        assert len(some[0]) == (4 if row_of == "person" else 8)
    assert any("table person has several rows of one person_id" in one for one in unasked.words)


@pytest.mark.parametrize("row_of", ["person", "visit"])
def test_a_person_that_is_there_twice_does_not_decide_whether_a_site_answers(duck, made, row_of):
    """Someone who is here is asked; else the person is left out."""
    twice = replace(made, person=pa.concat_tables([made.person, made.person[4:5]]))
    url, schema = duck.fill(twice), Recipe(row_of).schema
    how = RowOptions(omop=row_of, cdm="cdm")
    with pytest.raises(DataError, match="has 201 rows of 200 person_id"):
        how.open_as(url, schema)
    reader = how.open_as(url, schema, attended=False)
    n_rows = sum(batch.num_rows for batch in reader.read())
    assert n_rows == (199 if row_of == "person" else 398)
    (words,) = reader.unasked.words
    assert words.startswith("table person has several rows of one person_id")


@pytest.mark.serial
@pytest.mark.slow
def test_a_hundred_thousand_persons(postgres, tmp_path, capsys):
    cdm = Cdm.made(100_000)
    cdm.into_postgres(postgres)
    began = time.perf_counter()
    found = [person for person, _ in two_commands(postgres.url(), tmp_path)]
    taken = time.perf_counter() - began
    with capsys.disabled():
        print(f"\n{len(cdm.measurement):,} measurements of 100,000 persons: {taken:.0f} s")
    assert set(cdm.odd) <= set(found[:10])
