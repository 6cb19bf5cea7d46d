"""A gap is mostly a usual value: rows that lack one do not come before rows with a gross error."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data import read
from hushtable.plans.profile import OWN_SIDES

WARDS = ["A", "B", "C"]


def errors(seed, gaps):
    """Return 1,200 patients, creatinine four times too high in 42, and lacking in some others."""
    rng = np.random.default_rng(seed)
    n = 1200
    rows = pd.DataFrame({
        "age": rng.integers(18, 90, n).astype(float),
        "ward": rng.choice(WARDS, n),
        "creatinine": rng.lognormal(0, 0.3, n).round(2),
        "hb": rng.normal(13.5, 1.5, n).round(1),
    })  # fmt: skip
    wrong = np.zeros(n, bool)
    wrong[rng.choice(n, 42, replace=False)] = True
    rows.loc[wrong, "creatinine"] *= 4
    rows.loc[(rng.random(n) < gaps) & ~wrong, "creatinine"] = np.nan
    return rows, wrong


@pytest.mark.parametrize("gaps", [0.02, 0.05, 0.1])
def test_gaps_do_not_push_gross_errors_down(gaps):
    kept = []
    for seed in range(3):
        found = []
        for share in (0.0, gaps):
            rows, wrong = errors(seed, share)
            scores = HushTable(random_state=seed).fit(rows).score_samples(rows)
            found.append(average_precision_score(wrong, -scores))
        kept.append(found[1] / found[0])
    assert min(kept) >= 0.95, kept  # .22 when a gap had sides of its own in all tables
    print(f"{gaps:.0%} gaps: average precision kept {min(kept):.2f} to {max(kept):.2f}")


def test_a_gap_costs_a_row_less_than_an_error_and_more_than_nothing():
    rows, _ = errors(0, 0.05)
    detector = HushTable(random_state=0).fit(rows)
    typical = rows[rows.notna().all(axis=1)].median(numeric_only=True)
    row = pd.DataFrame([{**typical, "ward": "A"}] * 3)[list(rows)]
    row.loc[1, "creatinine"], row.loc[2, "creatinine"] = np.nan, 4.0
    usual, gap, error = detector.score_samples(row)
    assert 0.3 < usual - gap < 0.6 * (usual - error)


def sides_of_gaps(plan, j):
    """Return which functions on feature j give a gap the side of a value, for each value given."""
    family = plan.family
    chosen = family.feature == j
    table = np.repeat(np.arange(family.n_tables), family.depth)[chosen]
    return table, chosen


SCHEMA = Schema(
    (
        Feature.numeric("x", low=0, high=10),
        Feature.numeric("y", low=0, high=1),
        Feature.categorical("ward", WARDS),
    )
)


def rows_of(missing, n=1000):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({
        "x": rng.uniform(6, 9, n), "y": rng.random(n),
        "ward": rng.choice(WARDS, n, p=[0.1, 0.2, 0.7]),
    })  # fmt: skip
    for name, share in missing.items():
        rows.loc[rng.random(n) < share, name] = np.nan if name != "ward" else None
    return rows


def like(plan, j, code):
    """Return, for each function on a feature of numbers, whether a gap is on a code's side."""
    table, chosen = sides_of_gaps(plan, j)
    return table, plan.family.missing[chosen] == (plan.family.cut[chosen] <= code)


def all_alike(table, alike):
    """Return the share of the tables in which all functions agree."""
    return np.mean([alike[table == t].all() for t in np.unique(table)])


def test_a_gap_has_the_median_s_side_in_seven_of_ten_tables():
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), rows_of({"x": 0.05}))
    plan = Plan.draw(SCHEMA, marginals=marginals, random_state=0)
    table, alike = like(plan, 0, round(0.75 * 65280))
    as_usual = OWN_SIDES * table % 10 >= OWN_SIDES
    assert np.mean([OWN_SIDES * t % 10 >= OWN_SIDES for t in range(10)]) == 0.7
    assert all_alike(table[as_usual], alike[as_usual]) > 0.9  # cuts between median and its bin
    assert all_alike(table[~as_usual], alike[~as_usual]) < 0.7


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.3, 1.0])
def test_a_column_that_a_fifth_of_the_rows_lack_has_sides_of_its_own_in_all_tables(missing):
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), rows_of({"ward": missing}))
    family = Plan.draw(SCHEMA, marginals=marginals, random_state=0).family
    functions = np.flatnonzero(family.feature == 2)
    at = family.subset_at[functions]
    unlike = (family.subsets[at] != family.subsets[at + 3]).mean()
    assert (unlike > 0.35) == (missing > 0.2), unlike


def test_released_marginals_and_declared_values_give_the_usual_value():
    counts = Sketch.from_data(Plan.marginals(SCHEMA), rows_of({"x": 0.05}, 5000))
    plan = Plan.draw(SCHEMA, marginals=counts.release(epsilon=1.0), random_state=0)
    table, alike = like(plan, 0, round(0.75 * 65280))
    as_usual = OWN_SIDES * table % 10 >= OWN_SIDES
    assert all_alike(table[as_usual], alike[as_usual]) > 0.8
    declared = Schema((Feature.numeric("x", low=0, high=10, usual=2.0), *SCHEMA.features[1:]))
    plan = Plan.draw(declared, marginals=None, random_state=0)
    _, alike = like(plan, 0, 1 + 65280 // 5)
    assert alike.all()


def test_rows_that_all_have_a_gap_and_columns_without_values_are_scored():
    rows = rows_of({})
    rows.loc[::2, "x"] = np.nan
    rows.loc[1::2, "y"] = np.nan
    assert np.isfinite(HushTable(random_state=0).fit(rows).score_samples(rows)).all()
    context = rows_of({"ward": 0.3})
    scores = HushTable(context="ward", random_state=0).fit(context).score_samples(context)
    assert np.isfinite(scores).all()


def test_a_code_for_a_gap_is_a_category_until_it_is_stated():
    rows, _ = errors(0, 0.0)
    lacks = np.random.default_rng(1).random(len(rows)) < 0.1
    coded = rows.assign(ward=rows["ward"].where(~lacks, "unknown"))
    gaps = rows.assign(ward=rows["ward"].where(~lacks))

    def scores(table):
        return HushTable(random_state=0).fit(table).score_samples(table)

    schema = HushTable(random_state=0).fit(coded).plan_.schema
    assert "unknown" in schema.features[schema.names.index("ward")].categories
    np.testing.assert_array_equal(scores(read(coded, missing=["unknown"])), scores(gaps))
    with pytest.warns(UserWarning, match=r"(?s)'NA' \(.* rows\): does it mean .*missing=\['NA'\]"):
        scores(coded.replace("unknown", "NA"))


@pytest.mark.parametrize("context", ["ward", "age"])
def test_gaps_in_a_context_column_do_not_push_errors_down(context):
    rows, wrong = errors(0, 0.0)
    found = []
    for share in (0.0, 0.1):
        lacks = np.random.default_rng(2).random(len(rows)) < share
        table = rows.assign(**{context: rows[context].where(~lacks)})
        detector = HushTable(context=context, random_state=0).fit(table)
        found.append(average_precision_score(wrong, -detector.score_samples(table)))
    assert found[1] > 0.9 * found[0], found


def test_the_file_notes_the_rule(tmp_path):
    plan = Plan.draw(SCHEMA, random_state=0)
    assert plan.family.parameters()["own_sides"] == OWN_SIDES
    before = Plan.draw(SCHEMA, own_sides=10, random_state=0)
    assert "own_sides" not in before.family.parameters()
    assert before.plan_id != plan.plan_id
