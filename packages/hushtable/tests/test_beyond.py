"""Values beyond the range: found, marked, and odder the further they are."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hushtable import (
    Feature,
    HushTable,
    LocalModel,
    LSHiTables,
    Plan,
    Schema,
    Sketch,
    load,
)
from hushtable.counts import rounds
from hushtable.data.encoding import Encoder
from hushtable.errors import PlanError
from hushtable.kernels import LEVELS
from hushtable.plans.families import family_from_content
from hushtable.scores import Explainer, Ranks, Scorer

STEPS = np.array([0.0, 1e-6, 0.1, 1.0, 2.0, 99.0, 1e6])
SCHEMA = Schema((
    Feature.numeric("age", low=0, high=120),
    Feature.categorical("ward", ["a", "b"]),
    Feature.numeric("dose", low=5, high=5),
    Feature.numeric("none", low=0, high=0),
))  # fmt: skip


def clipped(plan):
    """Return the plan as it was drawn before margins."""
    return replace(plan, family=replace(plan.family, margin=0))


def rows_beyond(X, j=2, row=3, side=1):
    """Return one row, its value of column j at the range's end and further and further beyond."""
    low, high = X[:, j].min(), X[:, j].max()
    found = np.repeat(X[row : row + 1], len(STEPS), axis=0)
    found[:, j] = (high if side > 0 else low) + side * STEPS * (high - low)
    return found


def public(X):
    ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
    features = (Feature.numeric(f"x{j}", low=a, high=b) for j, (a, b) in enumerate(ranges))
    return Schema(tuple(features), named=False)


def one_pass(X):
    return HushTable(random_state=0).fit(X).sketch_


def two_passes(X):
    return HushTable(passes=2, random_state=0).fit(X).sketch_


def released(X):
    plan = Plan.draw(public(X), epsilon=1.0, expected_rows=len(X), random_state=0)
    return Sketch.from_data(plan, X).release(1.0)


def local(X):
    plan = Plan.draw(public(X), epsilon=1.0, expected_rows=len(X), sites=2, random_state=0)
    own, other = (Sketch.from_data(plan, half) for half in np.array_split(X, 2))
    mine, theirs = own.release(1.0), other.release(1.0)
    return LocalModel.of(mine + theirs, mine.release_id, mine.counts, own.counts)


MODELS = [one_pass, two_passes, released, local]

# --- what lies outside ----------------------------------------------------------------------------


def test_values_outside_are_found_with_their_distance():
    table = pa.table({
        "age": [150.0, -12.0, 120.0, None],
        "ward": ["a", "new", None, "b"],
        "dose": [5.0, 15.0, 5.0, 4.0],
        "none": [0.0, 0.0, -3.0, 0.0],
    })  # fmt: skip
    [batch] = table.to_batches()
    outside = Encoder(SCHEMA).encode(batch).outside
    found = zip(outside.features, outside.rows, outside.beyond, strict=True)
    assert [(int(j), int(i), float(e)) for j, i, e in found] == [
        (0, 0, 0.25), (0, 1, 0.1), (1, 1, 0.0), (2, 1, 2.0), (2, 3, 0.2), (3, 2, 3.0),
    ]  # fmt: skip


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [-1, 1])
def test_the_further_beyond_the_lower(X, model, side):
    scorer = Scorer(model(X))
    scores = scorer.score(rows_beyond(X, side=side))
    assert (np.diff(scores) < 0.0).all()
    # One unit below what the emptiest cells give, never lower.
    tables = np.split(scorer.values, scorer.plan.family.offsets[1:-1])
    depth = np.mean([table.min() for table in tables]) - 1.0
    assert depth < scores[-1] < depth + 1e-3
    assert scores[4] < scorer.score(X).min()


def test_scores_are_what_the_page_says(X):
    scorer = Scorer(one_pass(X))
    rows, margin = rows_beyond(X), scorer.plan.family.margin / LEVELS
    ends = Scorer(Sketch(clipped(scorer.plan), scorer.sketch.counts, scorer.sketch.tally))
    at_end = ends.score(rows)
    assert (at_end == at_end[0]).all()
    depth = scorer.values.reshape(100, -1).min(axis=1).mean() - 1.0
    lost = STEPS**2 / (margin**2 + STEPS**2) * (at_end - depth)
    np.testing.assert_allclose(scorer.score(rows), at_end - lost, rtol=1e-9)


def test_rows_inside_score_as_before_margins(X):
    detector = HushTable(passes=1, random_state=0).fit(X)
    before = HushTable.from_counts(Sketch.from_data(clipped(detector.plan_), X))
    np.testing.assert_array_equal(detector.score_samples(X), before.score_samples(X))
    assert detector.offset_ == before.offset_


def test_lsh_itables_clip(X):
    fitted = LSHiTables(random_state=0).fit(X)
    assert fitted.plan_.family.margin == 0
    scores = fitted.score_samples(rows_beyond(X)[[0, 3, 6]])
    assert (scores == scores[0]).all()


def test_an_enormous_number_has_a_score(X):
    detector = HushTable(random_state=0).fit(X)
    rows = X[:2].copy()
    rows[:, :] = [[1.7e308], [-1.7e308]]
    assert np.isfinite(detector.score_samples(rows)).all()
    assert np.isfinite(detector.explain(rows)).all()


# --- what goes with scores ------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_shares_add_up_and_name_the_column(X, model):
    scorer, rows = Scorer(model(X)), rows_beyond(X)
    explainer = Explainer(scorer)
    shares = explainer.explain(rows)
    np.testing.assert_allclose(shares.sum(axis=1), explainer.typical - scorer.score(rows))
    assert (shares[3:].argmax(axis=1) == 2).all()
    [scores] = explainer.batches(rows, lambda batch: batch.scores)
    np.testing.assert_array_equal(scores, scorer.score(rows))


def test_standard_errors_are_those_of_what_is_kept(X):
    scorer, rows = Scorer(one_pass(X)), rows_beyond(X)
    _, errors = scorer.score_with_errors(rows)
    margin = scorer.plan.family.margin / LEVELS
    kept = margin**2 / (margin**2 + STEPS**2)
    np.testing.assert_allclose(errors, errors[0] * kept, rtol=1e-9)


@pytest.mark.parametrize("model", [one_pass, released])
def test_rows_beyond_rank_first(X, model):
    counts = model(X)
    scorer, plan = Scorer(counts), rounds.ranks(counts)
    rows = np.concatenate([X, rows_beyond(X)[3:]])
    scores = scorer.score(rows)
    sketch = Sketch.from_data(plan, rows)
    expected = np.bincount(plan.family.cells(scores), minlength=len(sketch.counts))
    np.testing.assert_array_equal(sketch.counts, expected)
    ranks = Ranks(sketch, scorer).of(scores)
    assert ranks[len(X) :].max() < ranks[: len(X)].min()


# --- plans ----------------------------------------------------------------------------------------


def test_new_plans_carry_the_margin_and_old_ones_do_not(X, tmp_path):
    plan = Plan.draw(public(X), n_tables=3, random_state=0)
    assert plan.family.parameters()["margin"] == plan.family.margin
    assert "margin" not in clipped(plan).family.parameters()
    for one in (plan, clipped(plan)):
        one.save(tmp_path / "plan.hush")
        read = load(tmp_path / "plan.hush")
        assert (read.plan_id, read.family.margin) == (one.plan_id, one.family.margin)
    assert plan.plan_id != clipped(plan).plan_id


def test_the_margin_is_wider_the_fewer_rows_gave_the_ranges(X):
    def margin(rows):
        return HushTable(n_tables=3, random_state=0).fit(rows).plan_.family.margin

    assert margin(X) == round((0.03 + 10 / 500) * LEVELS)
    assert margin(X[:40]) == round(0.28 * LEVELS)
    assert margin(X[:5]) == LEVELS
    assert Plan.draw(public(X), n_tables=3).family.margin == round(0.03 * LEVELS)


@pytest.mark.parametrize("margin", [-1, LEVELS + 1, 0.5, True])
def test_a_margin_that_is_none_is_refused(X, margin):
    family = Plan.draw(public(X), n_tables=3, random_state=0).family
    parameters = family.parameters() | {"margin": margin}
    with pytest.raises(PlanError, match="margin"):
        family_from_content("RandomFeature", parameters, family.arrays(), public(X))


# --- labelled sets --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["6_cardio", "23_mammography", "43_WDBC", "38_thyroid"])
@pytest.mark.parametrize("model", [one_pass, two_passes, released])
def test_appended_extremes_are_among_the_oddest_percent(data_dir, name, model):
    with np.load(data_dir / f"{name}.npz") as arrays:
        X = arrays["X"].astype(float)
    if len(X) > 5_000:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), 5_000, replace=False))]
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    scorer = Scorer(model(X))
    among = np.sort(scorer.score(X))
    row = int(np.argsort(scorer.score(X))[len(X) // 2])
    for j in varying:
        for side in (-1, 1):
            scores = scorer.score(rows_beyond(X, j, row, side))
            assert (np.diff(scores) < 0.0).all()
            assert np.searchsorted(among, scores[3]) <= 0.01 * len(X)
