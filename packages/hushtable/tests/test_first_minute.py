"""What a data scientist tries in the first minute: names, frames, equality, and errors."""

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, load


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    columns = {"pulse": rng.normal(70.0, 8.0, 300), "age": rng.integers(18, 90, 300)}
    people = pd.DataFrame(columns, index=[f"p{i}" for i in range(300)])
    people.loc["p7", "pulse"] = 250.0
    return people


@pytest.fixture(scope="module")
def fitted(people):
    return HushTable(random_state=0).fit(people)


# --- frames ---------------------------------------------------------------------------------------


def test_a_row_of_a_frame_is_plotted(fitted, people):
    pytest.importorskip("matplotlib").use("agg")
    plots = pytest.importorskip("hushtable.plots")
    drawn = plots.ExplanationDisplay.from_estimator(fitted, people, row=7)
    assert drawn.shares.max() == fitted.explain(people).loc["p7", "pulse"]


@pytest.mark.parametrize(
    ("make", "given", "proposed"),
    [
        (HushTable, "n_estimators", "n_tables"),
        (HushTable, "n_table", "n_tables"),
        (LSHiTables, "groups", ""),  # it has no context
        (HushTable, "n_neighbors", ""),
    ],
)
def test_an_unknown_parameter_proposes_the_right_one(make, given, proposed):
    with pytest.raises(TypeError, match=f"{make.__name__} has no parameter '{given}'") as error:
        make(**{given: 3})
    end = str(error.value).partition(". ")[2]
    assert end == (f"Did you mean {proposed}?" if proposed else "")


# --- parameters -----------------------------------------------------------------------------------


# --- files, and equality --------------------------------------------------------------------------


def _schemas():
    numbers = [Feature.numeric("age", low=0, high=120), Feature.numeric("pulse", low=20, high=250)]
    yield Schema(numbers)
    yield Schema([*numbers, Feature.categorical("ward", ["a", "b"])])
    yield Schema(numbers, public=False)


@pytest.mark.parametrize("schema", [*_schemas()])
def test_plans_and_schemas_are_equal_by_content(schema, tmp_path):
    plan = Plan.draw(schema, random_state=0)
    plan.save(tmp_path / "plan.hush")
    again = load(tmp_path / "plan.hush")
    assert again == plan
    assert hash(again) == hash(plan)
    assert len({plan, again}) == 1
    assert again.schema == plan.schema
    assert hash(again.schema) == hash(plan.schema)
    other = Plan.draw(schema, random_state=1)
    assert other != plan
    assert other.schema == plan.schema
    assert plan != "plan"


def test_the_plan_of_a_fitted_model_is_equal_after_loading(people, tmp_path):
    for model in (HushTable(relations=True, random_state=0), HushTable(context="age")):
        model.fit(people).save(tmp_path / "model.hush")
        again = load(tmp_path / "model.hush")
        assert again.plan_ == model.plan_
        assert again.plan_.schema == model.plan_.schema
