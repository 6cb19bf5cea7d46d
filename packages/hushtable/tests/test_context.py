"""Rows that are unusual for their context: tables of pairs, their scores, words and refusals."""

import itertools
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import csv
from sklearn.metrics import roc_auc_score

import naive
from hushtable import Feature, HushTable, Plan, Release, Schema, Sketch, drift
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import family_from_content
from hushtable.plans.families.contextual import WEIGHT, Contextual
from hushtable.scores import Scorer
from strategies import as_table, codes_of, schemas_and_rows, tampered

WARDS = ("gyn", "surgery", "renal")
#: Layouts of pairs, by the columns of the context: drawn, and a cell for each value.
LAYOUTS = [{"n_tables": 5}, {"n_tables": 4, "n_contexts": 4, "n_cells": 2, "max_depth": 20}]


@st.composite
def plans(draw):
    """A plan with a context of some columns, and rows."""
    schema, rows = draw(schemas_and_rows())
    varying = [feature.name for feature in schema.features if not feature.constant]
    assume(varying and len(schema) > 1)
    names = draw(st.lists(st.sampled_from(varying), min_size=1, unique=True))
    names = names[: len(schema) - 1]
    layout, seed = draw(st.sampled_from(LAYOUTS)), draw(st.integers(0, 99))
    plan = Plan.draw(schema, random_state=seed, context=names, **layout)
    if not plan.family.own and draw(
        st.booleans()
    ):  # two tables share a context, the last has its own
        fewer = -(-plan.family.n_tables // 2)
        other = Plan.draw(schema, random_state=seed, context=names, **layout | {"n_tables": fewer})
        family = Contextual.paired(plan.family.behaviour, other.family.context, 0, 0)
        plan = replace(plan, family=family)
    return plan, rows


@pytest.fixture(scope="module")
def patients():
    """3,000 patients; the first is a creatinine that is usual in renal, and not in gyn."""
    rng = np.random.default_rng(0)
    ward = rng.choice(WARDS, 3000)
    usual = np.where(ward == "renal", 1.0, -0.15)
    creatinine = rng.lognormal(usual, 0.2)
    ward[0], creatinine[0] = "gyn", 2.6
    table = {"ward": ward, "creatinine": creatinine, "sodium": rng.normal(140, 3, 3000)}
    return pa.table(table)


@pytest.fixture(scope="module")
def model(patients):
    return HushTable(context="ward", random_state=0).fit(patients)


# --- the family -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_build")
@given(drawn=plans(), split=st.integers(0, 30), weight=st.integers(1, 3))
def test_counts_and_sums_equal_the_oracles(drawn, split, weight):
    plan, rows = drawn
    table = as_table(plan.schema, rows)
    sketch = Sketch.from_data(plan, table)
    assert sketch.counts.tolist() == naive.count(plan, rows)
    parts = [Sketch.from_data(plan, part) for part in (table[:split], table[split:]) if len(part)]
    assert sum(parts, start=Sketch.zero(plan)).counts.tolist() == sketch.counts.tolist()
    weighted = Sketch.from_data(plan, table, sample_weight=np.full(len(table), weight))
    assert weighted.counts.tolist() == (weight * sketch.counts).tolist()
    sampled = Sketch.from_data(plan, table, max_samples=1000, random_state=0)
    assert sampled.counts.tolist() == sketch.counts.tolist()
    values = np.arange(plan.family.n_cells, dtype=np.float64)
    codes = codes_of(plan.schema, table)
    expected = [sum(naive.contextual_cells(plan, row)) for row in rows]
    assert plan.family.sum(codes, values).tolist() == expected


@pytest.mark.usefixtures("each_build")
@given(drawn=plans(), rare=st.sampled_from([0.3, 1.0]))
def test_gains_equal_the_oracles_while_the_context_stays(drawn, rare):
    plan, rows = drawn
    table = as_table(plan.schema, rows)
    values, offsets = Scorer(Sketch.from_data(plan, table)).values, plan.family.offsets
    limits = np.array(
        [np.quantile(values[a:b], rare) + (rare == 1.0) for a, b in itertools.pairwise(offsets)]
    )
    codes = codes_of(plan.schema, table)
    totals, gains = plan.family.gains(codes, values, limits)
    assert gains.tolist() == [naive.gains(plan, values, limits, row) for row in rows]
    assert totals.tolist() == plan.family.sum(codes, values).tolist()


def test_blocks_and_threads_change_nothing(rng, patients, model):
    many = pa.concat_tables([patients] * 5)
    one, two = (Sketch.from_data(model.plan_, many, n_jobs=n) for n in (1, 2))
    assert one.counts.tolist() == two.counts.tolist() == (5 * model.sketch_.counts).tolist()
    shuffled = patients.take(rng.permutation(len(patients)))
    assert Sketch.from_data(model.plan_, shuffled).counts.tolist() == model.sketch_.counts.tolist()


def test_values_are_shares_within_the_context(model):
    family, counts = model.plan_.family, model.sketch_.counts
    pairs = counts.reshape(family.n_tables, family.contexts, family.cells)
    q = pairs.sum(axis=1, keepdims=True) / 3000
    p = (pairs + WEIGHT * q) / (pairs.sum(axis=2, keepdims=True) + WEIGHT)
    expected = np.log2(p + 0.01) - np.log2(q + 0.01) / 2
    values = Scorer(model.sketch_).values
    difference = values - expected.ravel()
    np.testing.assert_allclose(difference, difference[0], atol=1e-5)
    assert values.min() >= 0.0


def test_arrays_that_do_not_fit_are_refused():
    schema = Schema([Feature.categorical("ward", WARDS), Feature.numeric("x", low=0, high=1)])
    for names in (["ward"], ["x"]):
        family = Plan.draw(schema, context=names, n_tables=3, random_state=0).family
        parameters, arrays = family.parameters(), family.arrays()
        again = family_from_content("Contextual", parameters, arrays, schema)
        assert again.same(family)
        for name, wrong in tampered(family):
            if len(wrong) or len(arrays[name]):
                with pytest.raises(PlanError):
                    family_from_content("Contextual", parameters, arrays | {name: wrong}, schema)
        for wrong in ({"own": 2}, {"contexts": 6}, {"contexts": 65_536}, {"cells": 3}):
            with pytest.raises(PlanError):
                family_from_content("Contextual", parameters | wrong, arrays, schema)
    both = Plan.draw(schema, context=["x"], n_tables=3, random_state=0).family
    shared = {"feature": np.ones_like(both.feature)}
    with pytest.raises(PlanError):
        family_from_content("Contextual", both.parameters(), both.arrays() | shared, schema)


# --- what it finds --------------------------------------------------------------------------------


def wards(seed, sizes=(5,) * 40 + (10,) * 30 + (20,) * 20 + (40,) * 12 + (80,) * 8 + (160,) * 5):
    """Wards of these sizes, each with means and spreads of its own, and 3% of rows from another."""
    rng = np.random.default_rng(seed)
    ward = np.repeat(np.arange(len(sizes)), sizes)
    mixed, parts = rng.normal(size=(6, 3)), []
    for size in sizes:
        rows = rng.normal(size=(size, 3)) @ mixed.T * 0.6 + rng.normal(size=(size, 6)) * 0.5
        parts.append(rng.normal(size=6) * 1.5 + np.exp(rng.normal(size=6) * 0.4) * rows)
    X = np.concatenate(parts)
    odd = rng.choice(len(X), len(X) * 3 // 100, replace=False)
    source = X.copy()
    for i in odd:
        X[i] = source[rng.choice(np.flatnonzero(ward != ward[i]))]
    y = np.zeros(len(X), int)
    y[odd] = 1
    columns = {f"x{j}": X[:, j] for j in range(6)}
    table = pa.table({"ward": [f"w{i}" for i in ward], **columns})
    return table, y, np.repeat(sizes, sizes)


def test_rows_of_another_ward_are_found_down_to_wards_of_five(capsys):
    found = []
    for seed in range(3):
        table, y, sizes = wards(seed)
        scores = HushTable(context="ward", random_state=seed).fit(table).score_samples(table)
        found += [(size, one, -s) for size, one, s in zip(sizes, y, scores, strict=True)]
    sizes, y, scores = map(np.array, zip(*found, strict=True))
    aucs = {int(s): roc_auc_score(y[sizes == s], scores[sizes == s]) for s in np.unique(sizes)}
    with capsys.disabled():
        print("\nwards of", ", ".join(f"{size}: {auc:.3f}" for size, auc in aucs.items()))
    assert min(aucs.values()) >= 0.95


# --- reasons and words ----------------------------------------------------------------------------


# --- what else counts do --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema():
    return Schema([
        Feature.categorical("ward", WARDS), Feature.numeric("creatinine", low=0, high=12),
        Feature.numeric("sodium", low=100, high=180),
    ])  # fmt: skip


def test_a_row_is_in_one_cell_of_each_table_with_public_ranges_and_noise(patients, schema):
    """So that the sensitivity is that of any other family: see the maths page."""
    plan = Plan.draw(schema, context=["ward"], epsilon=1.0, expected_rows=3000, random_state=0)
    assert not plan.data_dependent
    assert (plan.family.n_tables, plan.family.contexts, plan.family.cells) == (25, 5, 16)
    whole, less = (Sketch.from_data(plan, patients[k:]).counts for k in (0, 1))
    change = (whole - less).reshape(plan.family.n_tables, -1)
    assert (change.sum(axis=1) == 1).all()
    assert (np.abs(change).sum(axis=1) == 1).all()


def test_released_counts_find_what_exact_ones_do(schema):
    rng = np.random.default_rng(1)
    ward = rng.choice(WARDS, 20_000)
    creatinine = rng.lognormal(np.where(ward == "renal", 1.0, -0.15), 0.2)
    y = rng.random(20_000) < 0.01
    ward[y], creatinine[y] = "gyn", rng.lognormal(1.0, 0.2, y.sum())
    rows = pa.table({"ward": ward, "creatinine": creatinine, "sodium": rng.normal(140, 3, 20_000)})
    plan = Plan.draw(schema, context=["ward"], epsilon=1.0, expected_rows=20_000, random_state=0)
    parts = [Sketch.from_data(plan, part) for part in (rows[:9000], rows[9000:])]
    exact = HushTable.from_counts(parts[0] + parts[1])
    released = HushTable.from_counts(parts[0].release(1.0) + parts[1].release(1.0))
    assert isinstance(released.sketch_, Release)
    aucs = [roc_auc_score(y, -one.score_samples(rows)) for one in (exact, released)]
    assert aucs[1] > aucs[0] - 0.02
    assert aucs[1] > 0.95
    assert released.outliers(rows, n=1)["reason_1"][0].as_py() == "creatinine"


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (["nix"], "there is no such column"),
        ([], "a list of names"),
        (["ward", 3], "a list of names"),
        (["ward", "creatinine", "sodium", "one"], "has only one value"),
        (["ward", "creatinine", "sodium"], "leave out at least one"),
        ("one", "has only one value"),
        ("id", "3,000 different values in 3,000 rows"),
    ],
)
def test_contexts_that_say_nothing_are_refused(patients, context, words):
    table = patients
    if "one" in context:
        table = table.append_column("one", pa.array(["a"] * len(table)))
    if context == "id":
        table = table.append_column("id", pa.array([f"p{i}" for i in range(len(table))]))
    warned = pytest.warns(UserWarning, match="identifiers") if context == "id" else nullcontext()
    with warned, pytest.raises(UsageError, match=words):
        HushTable(context=context, random_state=0).fit(table)


@pytest.mark.parametrize("other", [{"passes": 2}, {"novelty": True}])
def test_a_context_takes_one_pass_over_all_rows(patients, schema, other):
    with pytest.raises(UsageError, match="leave one of the two out"):
        HushTable(context="ward", **other).fit(patients)
    with pytest.raises(UsageError, match="context="):
        Plan.draw(schema, context=["ward"], epsilon=1.0, expected_rows=1_000_000, **other)


# --- drift within the context -------------------------------------------------------------------


def year(rng, n, months=range(1, 13), warmer=0.0):
    """Hours of weather, spread evenly over some months of a year."""
    days = np.datetime64(f"{2000 + rng.integers(20)}-01-01") + rng.integers(0, 365, n).astype(
        "m8[D]"
    )
    month = days.astype("M8[M]").astype(int) % 12 + 1
    days, month = days[np.isin(month, months)], month[np.isin(month, months)]
    heat = 10.0 - 12.0 * np.cos((month - 1) * np.pi / 6.0) + rng.normal(0, 3, len(days)) + warmer
    at = days.astype("M8[s]") + rng.integers(0, 86_400, len(days)).astype("m8[s]")
    return pa.table({"at": at, "heat": heat, "wind": rng.gamma(3.0, 2.0, len(days))})


def test_where_no_context_changed_alarms_are_rare(rng):
    """Whatever shares of the rows the contexts have: that is no drift within them."""
    plan = None
    alarms = 0
    for _ in range(60):
        sides = []
        for shares, n in (((0.6, 0.3, 0.1), 3_000), ((0.1, 0.2, 0.7), 300)):
            ward = rng.choice(["a", "b", "c"], n, p=shares)
            level = np.array([0.0, 2.0, -3.0])[
                np.char.equal(ward[:, None], ["a", "b", "c"]).argmax(1)
            ]
            x = pa.array(level + rng.normal(size=n))
            sides.append(pa.table({"ward": ward, "x": x, "y": rng.normal(size=n)}))
        if plan is None:
            plan = HushTable(context="ward", random_state=0).fit(sides[0]).plan_
        found = drift(*(Sketch.from_data(plan, side) for side in sides))
        alarms += found.overall > found.level
    assert alarms <= 6


def test_drift_needs_a_context_with_rows_on_both_sides(patients, model):
    rows = pa.table({"ward": ["icu"] * 5, "creatinine": [1.0] * 5, "sodium": [140.0] * 5})
    icu = Sketch.from_data(model.plan_, rows)
    assert np.isnan(drift(model.sketch_, icu).overall)


def test_watch_says_within_what_it_compares(model, patients, run, tmp_path):
    model.save(tmp_path / "model.hush")
    (tmp_path / "in").mkdir()
    csv.write_csv(patients, tmp_path / "in" / "a.csv")
    watch = ["watch", tmp_path / "in", "--model", tmp_path / "model.hush", "--settle", 0]
    result = run(*watch, "-o", tmp_path / "out")
    assert "within ward" in result.out
