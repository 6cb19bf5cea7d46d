"""Values beyond the range: found, marked, and odder the further they are."""

from dataclasses import replace

import numpy as np
import pytest

from hushtable import (
    Feature,
    HushTable,
    LocalModel,
    Plan,
    Schema,
    Sketch,
    load,
)
from hushtable.kernels import LEVELS
from hushtable.scores import Explainer, Scorer

STEPS = np.array([0.0, 1e-6, 0.1, 1.0, 2.0, 99.0, 1e6])


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


# --- scores ---------------------------------------------------------------------------------------


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


def test_new_plans_carry_the_margin_and_old_ones_do_not(X, tmp_path):
    plan = Plan.draw(public(X), n_tables=3, random_state=0)
    assert plan.family.parameters()["margin"] == plan.family.margin
    assert "margin" not in clipped(plan).family.parameters()
    for one in (plan, clipped(plan)):
        one.save(tmp_path / "plan.hush")
        read = load(tmp_path / "plan.hush")
        assert (read.plan_id, read.family.margin) == (one.plan_id, one.family.margin)
    assert plan.plan_id != clipped(plan).plan_id


# --- plans ----------------------------------------------------------------------------------------


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


def test_scores_are_what_the_page_says(X):
    scorer = Scorer(one_pass(X))
    rows, margin = rows_beyond(X), scorer.plan.family.margin / LEVELS
    ends = Scorer(Sketch(clipped(scorer.plan), scorer.sketch.counts, scorer.sketch.tally))
    at_end = ends.score(rows)
    assert (at_end == at_end[0]).all()
    depth = scorer.values.reshape(100, -1).min(axis=1).mean() - 1.0
    lost = STEPS**2 / (margin**2 + STEPS**2) * (at_end - depth)
    np.testing.assert_allclose(scorer.score(rows), at_end - lost, rtol=1e-9)
