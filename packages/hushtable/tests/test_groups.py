"""Contexts of many small groups: rows are compared by their differences within their group."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data.residuals import FAR, differences_in_groups
from hushtable.errors import PlanError, PrivacyError

#: Plan ids that versions before these differences drew for the same arguments.
PUBLIC_PLAN = "03c47bdeddf69184f08ce61f8beedf9005773dfb95e7eb888f6849b349858f44"
RELEASE_PLAN = "81c8ebd3aa8da561e07405633bc7fb345be1778012e5527ae8f84c0690c3a65c"


def panel(groups=400, each=8, seed=0):
    """Persons over some years, each with levels and a spread; 3% exchange behaviour with others."""
    rng = np.random.default_rng(seed)
    n, person = groups * each, np.repeat(np.arange(groups), each)
    levels, spreads = rng.normal(size=(groups, 4)), np.exp(rng.normal(0.0, 0.5, groups))
    X = levels[person] + 0.5 * spreads[person, np.newaxis] * rng.normal(size=(n, 4))
    rows = pd.DataFrame(X.round(3), columns=list("abcd"))
    rows["school"] = (rng.integers(8, 16, groups)[person] + (rng.uniform(size=n) < 0.3)).astype(
        float
    )
    usual = rng.integers(0, 5, groups)[person]
    rows["branch"] = np.char.add(
        "b", np.where(rng.uniform(size=n) < 0.3, rng.integers(0, 5, n), usual).astype(str)
    )
    planted = rng.choice(n, 3 * n // 100 // 2 * 2, replace=False)
    changed = rows.copy()
    changed.iloc[planted] = rows.iloc[np.roll(planted, len(planted) // 2)]
    changed["person"] = [f"p{i}" for i in person]
    return changed, np.isin(np.arange(n), planted)


def auc_and_ap(planted, scores):
    return roc_auc_score(planted, -scores), average_precision_score(planted, -scores)


@pytest.fixture(scope="module")
def rows():
    return panel()[0]


@pytest.fixture(scope="module")
def model(rows):
    return HushTable(context="person", random_state=0).fit(rows)


def by_pairs(model, rows):
    """A model whose plan has pairs of cells alone, like a plan for releases."""
    schema = Schema(model.plan_.schema.of_rows.features, public=False)
    marginals = Sketch.from_data(Plan.marginals(schema), rows)
    plan = Plan.draw(schema, context=["person"], marginals=marginals, random_state=0)
    return HushTable.from_counts(Sketch.from_data(plan, rows))


@pytest.mark.parametrize("gaps", [0.0, 0.05])
def test_rows_are_compared_within_hundreds_of_small_groups(gaps):
    figures = []
    for seed in range(2):
        rows, planted = panel(seed=seed)
        X = rows[list("ab")].mask(np.random.default_rng(seed).uniform(size=(len(rows), 2)) < gaps)
        rows = rows.assign(**X)
        numbered = rows.assign(person=2 * rows["person"].str[1:].astype(int) + 1)
        model = HushTable(context="person", random_state=seed).fit(rows)
        figures += auc_and_ap(planted, model.score_samples(rows))
        figures += auc_and_ap(planted, by_pairs(model, rows).score_samples(rows))
        with pytest.warns(UserWarning, match="400 whole numbers are used as names of groups"):
            model = HushTable(context="person", random_state=seed).fit(numbered)
        figures += auc_and_ap(planted, model.score_samples(numbered))
    auc, ap, _, ap_of_pairs, auc_numbered, ap_numbered = np.reshape(figures, (2, 6)).mean(axis=0)
    print(f"\n400 groups of 8, {gaps:.0%} missing: {auc:.3f} / {ap:.3f}, pairs {ap_of_pairs:.3f}")
    assert auc > 0.95
    assert ap > max(0.8, ap_of_pairs + 0.04)
    assert auc_numbered == pytest.approx(auc)
    assert ap_numbered == pytest.approx(ap)


# --- which contexts -------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, 0.3, 30.0])
def test_whole_numbers_in_an_order_stay_numbers(slope):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, 2000)
    rows = pd.DataFrame(
        {"age": age, "a": slope * age + rng.normal(size=2000), "b": rng.normal(size=2000)}
    )
    schema = HushTable(context="age", random_state=0).fit(rows).plan_.schema
    assert schema.features[0].kind == "numeric"
    assert not schema.differences.in_groups


# --- the differences ------------------------------------------------------------------------------


def learned(table, weights=None):
    """Differences of all columns of a table but the first one, which holds groups."""
    batch = pa.RecordBatch.from_pandas(table, preserve_index=False)
    features = [
        Feature.numeric(name, low=0.0, high=1.0)
        if table[name].dtype.kind == "f"
        else Feature.categorical(name, sorted(table[name].dropna().unique()))
        for name in table
    ]
    columns = range(1, len(features))
    found = differences_in_groups(lambda: [(batch, weights)], len(table), 0, columns, features)
    return found, lambda rows: found.of(pa.RecordBatch.from_pydict(rows), features)


def test_a_number_is_compared_with_the_median_of_its_group():
    table = pd.DataFrame({
        "g": ["a"] * 4 + ["b"] * 3 + ["alone"] + [None],
        "x": [1.0, 2.0, 4.0, np.nan, 10.0, 10.0, 40.0, 7.0, 8.0],
    })  # fmt: skip
    _, of = learned(table)
    left = np.array([1.0, 0.0, 2.0, 0.0, 0.0, 30.0]) * np.sqrt(3 / 2)
    pooled, own = 1.4826 * np.median(left), {"a": 1.4826 * left[0], "b": 0.0}
    size = {g: (3 * own[g] + 5 * pooled) / 8 for g in own}
    expected = [(x - 2.0) * np.sqrt(3 / 2) / size["a"] for x in (1.0, 2.0, 4.0)]
    found = of({"g": ["a"] * 4, "x": [1.0, 2.0, 4.0, None]})[0]
    np.testing.assert_allclose(found[:3], expected, rtol=1e-8)
    assert found[1] == 0.0
    assert np.isnan(found[3])
    assert of({"g": ["b"] * 2, "x": [10.0, 40.0]}).tolist() == [[0.0, FAR]]
    # A group of one row, and a missing or unseen one, are unknown.
    unknown = of({"g": ["alone", None, "unseen", "unseen"], "x": [8.5, -9.0, 8.5, None]})[0]
    np.testing.assert_array_equal(unknown, [0.0, 0.0, 0.0, np.nan])
    assert learned(table[:-1])[0].weights[0, 0] == 7.0  # of all rows, an odd number
    # A row of weight w is like w rows.
    weights = np.arange(2, 2 + len(table))
    one, other = learned(table, weights)[0], learned(table.loc[table.index.repeat(weights)])[0]
    np.testing.assert_allclose(one.weights, other.weights)


def test_a_category_is_compared_with_the_usual_one_of_its_group():
    table = pd.DataFrame({
        "g": ["a"] * 4 + ["b"] * 3 + ["alone"],
        "kind": ["x", "x", "y", None, "y", "z", "z", "y"],
    })  # fmt: skip
    _, of = learned(table)
    found = of({"g": ["a"] * 5, "kind": ["x", "y", "z", "unseen", None]})[0]
    assert np.abs(found[:4]).tolist() == [0.0, FAR, FAR, FAR]
    assert np.isnan(found[4])
    assert of({"g": ["b"] * 2, "kind": ["z", "y"]}).tolist() == [[0.0, -FAR]]
    unknown = of({"g": ["alone", None, "unseen"] * 3, "kind": ["x"] * 3 + ["y"] * 3 + ["z"] * 3})
    assert not unknown.any()


def test_a_constant_within_groups_is_compared_by_its_spread_over_all_rows():
    table = pd.DataFrame({"g": ["a"] * 3 + ["b"] * 3, "x": [8.0] * 3 + [12.0] * 3})
    _, of = learned(table)
    assert of({"g": ["a"] * 3, "x": [8.0, 7.0, 12.0]}).tolist() == [[0.0, -FAR, FAR]]
    nothing = pd.DataFrame({"g": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    assert learned(nothing)[0] is None


# --- what is done with them -----------------------------------------------------------------------


def test_counts_of_the_plan_add_up(rows, model):
    parts = [Sketch.from_data(model.plan_, some) for some in (rows[:999], rows[999:])]
    merged = HushTable.from_counts(parts[0] + parts[1])
    np.testing.assert_array_equal(merged.score_samples(rows), model.score_samples(rows))
    other = HushTable(context="person", random_state=0).fit(rows[:1600])
    with pytest.raises(PlanError):
        _ = model.sketch_ + other.sketch_


def test_an_unseen_group_is_compared_with_all_rows(rows, model):
    new = rows[:400].assign(person="unseen")
    words = model.outliers(new, n=1)["words"].iloc[0]
    assert "person unseen: no rows counted, so compared with all rows" in words
    far = new.assign(a=9.0)
    assert model.score_samples(far).mean() < model.score_samples(new).mean() - 0.2


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_a_row_without_its_group_is_no_outlier(rows, share, rng):
    gaps = rng.random(len(rows)) < share
    new = rows.assign(person=rows["person"].mask(gaps))
    ranks = HushTable(context="person", random_state=0).fit(new).score_samples(new)
    ranks = ranks.argsort().argsort() / len(new)
    assert (ranks[gaps] < 0.03).mean() < 0.06


def test_they_do_not_leave_the_site(rows, model):
    with pytest.raises(PrivacyError):
        model.sketch_.release(epsilon=1.0, delta=1e-6)
    content = model.plan_.schema.to_dict() | {"public": True}
    with pytest.raises(PlanError, match="not public"):
        Schema.from_dict(content)


def test_public_plans_keep_pairs_of_cells():
    wards = Feature.categorical("ward", [f"w{i}" for i in range(60)])
    numbers = [Feature.numeric("a", low=0, high=1), Feature.numeric("b", low=0, high=9)]
    schema = Schema([wards, *numbers, Feature.categorical("c", ["x", "y"])])
    before = {"context": ["ward"], "own_sides": 10, "random_state": 0}  # as gaps were hashed
    exact = Plan.draw(schema, **before)
    terms = {"epsilon": 1.0, "delta": 1e-6, "expected_rows": 480}
    release = Plan.draw(schema, **before, **terms)
    assert (exact.plan_id, release.plan_id) == (PUBLIC_PLAN, RELEASE_PLAN)
    content = exact.family.parameters() | {"pooled": 3}
    with pytest.raises(PlanError, match="pooled=3"):
        type(exact.family)(schema=schema, **exact.family.arrays(), **content)


def test_a_category_that_differs_within_its_group_is_a_reason():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "person": [f"p{i // 6}" for i in range(1800)],
        "sex": np.repeat(rng.choice(["M", "F"], 300), 6),
        "pulse": rng.normal(70.0, 8.0, 1800),
    })  # fmt: skip
    usual = rows.loc[10, "sex"]
    other = rows.loc[10, "sex"] = "F" if usual == "M" else "M"
    listed = HushTable(context="person", random_state=0).fit(rows).outliers(rows, n=1).loc[10]
    assert listed["words"] == f"sex {other}, where by person it would be {usual}"
    assert list(listed[["reason_1", "usual_1", "direction_1"]]) == ["sex", usual, "rare"]
