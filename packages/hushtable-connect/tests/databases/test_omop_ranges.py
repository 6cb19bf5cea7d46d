"""Columns by sex and age, a concept in two units, and thresholds of them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dqd
from cdm import Cdm
from hushtable import Feature, Plan, Sketch
from hushtable.errors import DataError, PlanError, UsageError
from hushtable_connect.omop import Concept, ConceptSet, Recipe
from hushtable_federation.ranges import ValueHistogram, histograms
from range_rounds import in_mmol

pytest.importorskip("duckdb")
SODIUM = Concept("sodium", (3019550,), "mmol/L", (8753, 9557), 50, 225, "a table")
MG = Concept("glucose", (3004501,), "mg/dL", (8840,), 33, 2000, "a table")
MMOL = Concept("glucose_mmol", (3004501,), "mmol/L", (8753,), 1, 40, "a table")
BOTH = ConceptSet((SODIUM, MG, MMOL))


@pytest.fixture(scope="module")
def mixed():
    return in_mmol(Cdm.made(400), 0.5, np.random.default_rng(1))


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request, mixed, tmp_path):
    if request.param == "duckdb":
        mixed.into_duckdb(tmp_path / "hospital.duckdb")
        yield f"duckdb:///{tmp_path / 'hospital.duckdb'}"
        return
    server = request.getfixturevalue("postgres")
    mixed.into_postgres(server, "ranges")
    yield server.url()
    server.do("DROP SCHEMA ranges CASCADE")


def rows(url, recipe):
    cdm = "cdm" if url.startswith("duckdb") else "ranges"
    return pa.Table.from_batches(replace(recipe, cdm=cdm).open(url).read())


def test_groups_split_the_columns_and_lose_no_value(url):
    whole = rows(url, Recipe("person", BOTH))
    split = rows(url, Recipe("person", BOTH, by=("sex", "age")))
    assert split["person_id"].equals(whole["person_id"])
    assert len(split.column_names) == 1 + 3 * 8
    ages, sexes = whole["age"].to_numpy(), np.array(whole["sex"])
    for name in ("sodium", "glucose", "glucose_mmol"):
        parts = [one for one in split.column_names if one.startswith(f"{name} ")]
        n = sum(split[one].length() - split[one].null_count for one in parts)
        assert n == whole[name].length() - whole[name].null_count
    young = (sexes == "female") & (ages >= 18) & (ages < 45)
    expected = np.where(young, np.array(whole["sodium"]), np.nan)
    np.testing.assert_array_equal(split["sodium female 18-44"].to_numpy(), expected)


def test_a_visit_has_groups_too(url):
    split = rows(url, Recipe("visit", BOTH, by=("sex",)))
    assert split.column_names[:3] == ["visit_occurrence_id", "person_id", "sodium female"]


def test_a_concept_in_two_units_is_two_columns(url, mixed):
    found = rows(url, Recipe("person", BOTH))
    mmol, mg = (np.array(found[one].drop_null()) for one in ("glucose_mmol", "glucose"))
    assert len(mmol) > 100 < len(mg)
    assert np.median(mmol) < 8 < 80 < np.median(mg)
    with pytest.raises(DataError, match=r"in unit 8753.*needs 8840 \(mg/dL\)"):
        rows(url, Recipe("person", ConceptSet((SODIUM, MG))))


def test_a_schema_has_the_groups_with_the_public_range_and_its_source():
    recipe = Recipe("person", BOTH, by=("age",))
    names = recipe.schema.names
    assert names[:4] == ["sodium 0-17", "sodium 18-44", "sodium 45-64", "sodium 65+"]
    assert all(one.high == 225 for one in recipe.schema.features[:4])
    assert "3019550" in recipe.sources_of(recipe.schema)[3]


def test_thresholds_are_of_all_groups_together(tmp_path):
    recipe = Recipe("person", BOTH, by=("sex",))
    rng = np.random.default_rng(0)
    sex = np.arange(60_000) % 2 == 0
    sodium = rng.normal(140, 3, 60_000)
    columns = {name: np.full(60_000, np.nan) for name in recipe.schema.names}
    columns["sodium female"][sex], columns["sodium male"][~sex] = sodium[sex], sodium[~sex]
    plan = Plan.marginals(recipe.schema, epsilon=1.0, expected_rows=60_000, cells=128)
    X = np.column_stack([*columns.values()])
    release = Sketch.from_data(plan, X).release(1.0, share=1.0)
    made = recipe.thresholds
    ranges = made.ranges(histograms(release), (0.01, 0.99))
    (tmp_path / "thresholds.csv").write_text(made.text(ranges, 5.0, "1 site"))
    table = dqd.read(tmp_path / "thresholds.csv")
    assert list(table["conceptName"]) == ["sodium"] * 2  # one line a unit; nothing of glucose
    assert set(table["unitConceptId"]) == {8753, 9557}
    low, high = table["plausibleValueLow"][0], table["plausibleValueHigh"][0]
    assert abs((sodium < low).mean() - 0.01) < 0.01
    assert abs((sodium > high).mean() - 0.01) < 0.01
    assert (table["plausibleValueHighThreshold"] == 5).all()


def test_columns_that_the_set_has_not_or_has_otherwise_are_refused():
    made = Recipe("person", BOTH).thresholds
    for name, high, words in (
        ("potassium", 12, "not a concept of this set"),
        ("sodium", 200, "225"),
    ):
        feature = Feature.numeric(name, low=50, high=high + 50, unit="mmol/L")
        one = ValueHistogram(feature, np.full(32, 1e4), 3.2e5, 1.0)
        with pytest.raises(UsageError, match=words):
            made.ranges([one], (0.01, 0.99))


@pytest.mark.parametrize("by", [("ward",), ("sex", "sex")])
def test_other_groups_are_refused(by):
    with pytest.raises(UsageError, match="needs sex, age, or sex,age"):
        Recipe("person", BOTH, by=by)


def test_a_name_too_long_for_a_group_is_refused():
    long = replace(SODIUM, name="s" * 60)
    with pytest.raises(UsageError, match="63 bytes"):
        Recipe("person", ConceptSet((long,)), by=("sex",)).schema_of(None, ())


def test_a_concept_twice_in_one_unit_is_refused():
    with pytest.raises(PlanError, match="3004501 in unit 8840"):
        ConceptSet((MG, replace(MMOL, units=(8840,))))
