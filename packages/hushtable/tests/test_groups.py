"""Contexts of many small groups: rows are compared by their differences within their group."""

import copy
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
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
        numbered = rows.assign(person=rows["person"].str[1:].astype(int))
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


@pytest.mark.parametrize("kind", ["int64", "float64", "array", "file"])
def test_whole_numbers_that_name_groups_are_groups(tmp_path, rows, kind):
    named = rows.drop(columns=["branch"])
    numbered = named.assign(person=named["person"].str[1:].astype(int))
    given, context = numbered, "person"
    if kind == "file":
        given = str(tmp_path / "rows.csv")
        numbered.to_csv(given, index=False)
    elif kind == "array":
        given, context = numbered.to_numpy(), "x5"
    else:
        given = numbered.astype({"person": kind})
    with pytest.warns(UserWarning, match="used as names of groups"):
        model = HushTable(context=context, random_state=0).fit(given)
    assert model.plan_.schema.features[5].kind == "categorical"
    # "p10" and "10" have the same order among the names, so the plans differ by names alone.
    expected = HushTable(context="person", random_state=0).fit(named).score_samples(named)
    np.testing.assert_array_equal(model.score_samples(given), expected)
    if kind != "file":
        np.testing.assert_array_equal(model.score_samples(given[:7]), expected[:7])


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


def test_large_groups_and_hours_are_pairs_alone():
    rows, _ = panel(groups=20, each=60)
    large = HushTable(context="person", random_state=0).fit(rows).plan_
    assert large.schema.differences is None
    assert "pooled" not in large.family.parameters()
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 10**7, 500), unit="s")
    visits = pd.DataFrame({"at": at, "items": rng.normal(size=500)})
    by_hour = HushTable(time="at", context="hour", random_state=0).fit(visits).plan_
    assert by_hour.schema.differences is None


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


def test_a_row_of_a_weight_is_as_many_rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "g": rng.choice(list("abcdef"), 60), "x": rng.normal(size=60).round(1),
        "kind": rng.choice(list("xyz"), 60),
    })  # fmt: skip
    table.loc[3:5, "x"], table.loc[7:9, "kind"] = np.nan, None
    weights = rng.integers(1, 4, 60)
    several = table.loc[np.repeat(table.index, weights)].reset_index(drop=True)
    once, often = learned(table, weights)[0], learned(several)[0]
    np.testing.assert_allclose(once.weights, often.weights)
    np.testing.assert_allclose(once.least, often.least)


def test_an_array_and_a_row_alone_have_the_same_bits(rows, model):
    changed = rows.copy()
    changed.loc[3, "a"], changed.loc[4, "person"], changed.loc[5, "branch"] = np.nan, None, None
    changed.loc[6, "person"], changed.loc[7, "branch"] = "unseen", "unseen"
    whole = model.score_samples(changed)
    assert np.isfinite(whole).all()
    alone = [model.score_samples(changed.iloc[i : i + 1])[0] for i in range(9)]
    np.testing.assert_array_equal(alone, whole[:9])
    np.testing.assert_array_equal(model.score_samples(pa.Table.from_pandas(changed)), whole)


# --- what is done with them -----------------------------------------------------------------------


def test_counts_of_the_plan_add_up(rows, model):
    parts = [Sketch.from_data(model.plan_, some) for some in (rows[:999], rows[999:])]
    merged = HushTable.from_counts(parts[0] + parts[1])
    np.testing.assert_array_equal(merged.score_samples(rows), model.score_samples(rows))
    other = HushTable(context="person", random_state=0).fit(rows[:1600])
    with pytest.raises(PlanError):
        _ = model.sketch_ + other.sketch_


def test_added_rows_are_compared_with_the_groups_of_the_first_ones(rows):
    first, later = rows[:1600], rows[1600:]  # other persons
    model = HushTable(context="person", random_state=0).partial_fit(first)
    differences = model.plan_.schema.differences
    assert len(differences.points[0]) == 200
    with pytest.warns(UserWarning, match="person"):
        model.partial_fit(later)
    assert model.plan_.schema.differences == differences
    assert model.sketch_.n_rows == len(rows)
    features = model.plan_.schema.of_rows.features
    batch = pa.RecordBatch.from_pandas(later, preserve_index=False)
    unknown = differences.predicted(batch, features)
    assert (unknown == unknown[:, :1]).all()
    assert "no rows counted" not in model.outliers(first, n=1)["words"].iloc[0]


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


def test_rows_of_an_unseen_group_are_no_outliers(rows, model):
    fitted = np.sort(model.score_samples(rows))
    ranks = np.searchsorted(fitted, model.score_samples(rows.assign(person="unseen"))) / len(rows)
    assert np.median(ranks) > 0.3
    assert (ranks < 0.03).mean() < 0.06


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


def test_a_file_keeps_them_and_grows_by_two_numbers_for_each_group_and_column(
    tmp_path, rows, model
):
    model.save(tmp_path / "model.hush")
    again = load(tmp_path / "model.hush")
    assert again.plan_.plan_id == model.plan_.plan_id
    assert again.plan_.schema.differences == model.plan_.schema.differences
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    assert list(again.outliers(rows, n=3)["words"]) == list(model.outliers(rows, n=3)["words"])
    differences = model.plan_.schema.differences
    assert differences.weights.shape == (1 + 400, 2 * 6)
    size = len(json.dumps(differences.to_dict()))
    print(f"\n{size / 400 / 6:.0f} bytes for each group and column")
    assert size < 400 * 6 * 2 * 24


def test_reasons_name_the_group(rows):
    changed = rows.copy()
    usual = changed.loc[16:23, "a"].drop(20).median()
    changed.loc[20, "a"] = usual + 4.0
    model = HushTable(context="person", random_state=0).fit(changed)
    assert model.explain(changed.iloc[:30]).loc[20].idxmax() == "a"
    found = model.outliers(changed[16:24], n=1).loc[20, "words"]
    assert found.startswith("a ")
    assert "where by person it would be" in found
    shares = copy.copy(model).set_output(transform="pandas").explain(changed[:3])
    assert list(shares.columns) == list(rows.columns)


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


def test_few_rows_of_a_group_are_noted_only_if_most_groups_have_more():
    rows, _ = panel(groups=100, each=6)
    shorter = rows.drop(index=[595, 596, 597, 598])  # two of the last six remain
    listed = HushTable(context="person", random_state=0).fit(shorter).outliers(shorter, n=596)
    noted = listed["words"].str.contains("counted, so also compared with all rows")
    assert list(noted[noted].index.sort_values()) == [594, 599]
