"""What a data scientist tries in the first minute: names, frames, equality, and errors."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

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


def test_explain_returns_a_frame_for_a_frame(fitted, people):
    shares = fitted.explain(people)
    pd.testing.assert_index_equal(shares.index, people.index)
    assert shares.columns.tolist() == ["pulse", "age"]
    assert shares.loc["p7"].idxmax() == "pulse"  # higher is more unusual
    assert shares.loc["p7", "pulse"] > 1.0 > shares["pulse"].median()
    polars = fitted.explain(pl.from_pandas(people))
    assert isinstance(polars, pl.DataFrame)
    np.testing.assert_array_equal(polars.to_numpy(), shares.to_numpy())
    table = fitted.explain(pa.table(people.reset_index(drop=True)))
    assert isinstance(table, np.ndarray)
    np.testing.assert_array_equal(table, shares.to_numpy())
    X = people.to_numpy(np.float64)
    assert isinstance(HushTable(random_state=0).fit(X).explain(X), np.ndarray)
    arrays = clone(fitted).set_output(transform="default").fit(people)
    assert isinstance(arrays.explain(people), np.ndarray)
    assert isinstance(fitted.score_samples(people), np.ndarray)


def test_a_row_of_a_frame_is_plotted(fitted, people):
    pytest.importorskip("matplotlib").use("agg")
    plots = pytest.importorskip("hushtable.plots")
    drawn = plots.ExplanationDisplay.from_estimator(fitted, people, row=7)
    assert drawn.shares.max() == fitted.explain(people).loc["p7", "pulse"]


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "given", "proposed"),
    [
        (HushTable, "n_estimators", "n_tables"),
        (HushTable, "max_samples", "max_rows"),
        (HushTable, "seed", "random_state"),
        (HushTable, "n_table", "n_tables"),
        (HushTable, "contamintion", "contamination"),
        (LSHiTables, "n_estimators", "n_tables"),
        (LSHiTables, "max_sample", "max_samples"),
        (LSHiTables, "groups", ""),  # it has no context
        (HushTable, "n_neighbors", ""),
    ],
)
def test_an_unknown_parameter_proposes_the_right_one(make, given, proposed):
    with pytest.raises(TypeError, match=f"{make.__name__} has no parameter '{given}'") as error:
        make(**{given: 3})
    end = str(error.value).partition(". ")[2]
    assert end == (f"Did you mean {proposed}?" if proposed else "")


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
