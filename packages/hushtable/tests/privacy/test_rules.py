"""The layout under noise: from public numbers alone, and what is read off noised histograms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, Plan, Release, Schema, Sketch
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy.layout import Design, onto_simplex, span

SCHEMA = Schema(tuple(Feature.numeric(f"x{j}", low=-4, high=4) for j in range(4)), named=False)


@pytest.mark.parametrize(
    ("rows", "signal", "depths", "tables", "cells", "loss"),
    [
        (300, 7.6, (1, 4), 400, 256, 7.9),
        (1_000, 25.3, (1, 4), 400, 256, 2.4),
        (2_000, 51, (2, 8), 400, 256, 1.2),
        (8_000, 203, (4, 12), 200, 256, 0.3),
        (12_000, 304, (8, 24), 200, 64, 0.2),
    ],
)
def test_the_rule_at_a_tenth(rows, signal, depths, tables, cells, loss):
    design = Design(0.1, 1e-6, rows)
    assert design.signal == pytest.approx(signal, rel=0.01)
    parameters = design.parameters()
    assert (parameters["min_depth"], parameters["max_depth"]) == depths
    assert (parameters["n_tables"], parameters["n_cells"]) == (tables, cells)
    assert design.expected_loss == pytest.approx(loss, abs=0.05)


def test_a_thousand_four_hundred_rows_at_epsilon_one_are_nearly_free():
    assert Design(1.0, 1e-6, 1400).expected_loss < 0.2
    assert "about 0.2 points" in Design(1.0, 1e-6, 1400).words()
    assert "no accuracy is promised" in Design(0.1, 1e-6, 100).words()


def test_several_whole_noises_count_as_less_signal():
    assert Design(1.0, 1e-6, 1000, sites=4).signal == Design(1.0, 1e-6, 500).signal


def test_plans_follow_the_rule_and_parameters_overrule_it():
    plan = Plan.draw(SCHEMA, random_state=0, epsilon=0.1, expected_rows=2000)
    assert plan.family.n_tables == 400
    assert (plan.family.depth.min(), plan.family.depth.max()) == (2, 8)
    few = Plan.draw(SCHEMA, random_state=0, epsilon=0.1, expected_rows=2000, n_tables=50)
    assert few.family.n_tables == 50
    assert plan.design == Design(0.1, 1e-6, 2000)


def test_the_design_is_part_of_the_plan():
    a, b = (Plan.draw(SCHEMA, random_state=0, epsilon=1.0, expected_rows=n) for n in (9000, 9001))
    assert a.plan_id != b.plan_id
    assert "design" in a.difference(b)


@pytest.mark.parametrize("rows", [0, -5, 1.5, True, "many"])
def test_expected_rows_must_be_a_number_of_rows(rows):
    with pytest.raises(UsageError, match="expected_rows="):
        Plan.draw(SCHEMA, epsilon=1.0, expected_rows=rows)


def test_a_delta_above_one_in_expected_rows_is_refused():
    assert Plan.draw(SCHEMA, epsilon=1.0, delta=1e-3, expected_rows=1000).design.delta == 1e-3
    with pytest.raises(PrivacyError, match=r"delta=0\.001 is above 1/n for the 1,001 expect"):
        Plan.draw(SCHEMA, epsilon=1.0, delta=1e-3, expected_rows=1001)


@pytest.mark.parametrize(
    "content", [None, {}, {"epsilon": 1.0, "delta": 1e-6, "expected_rows": 0, "sites": 1}]
)
def test_a_damaged_design_is_refused(content):
    with pytest.raises(PlanError, match="design"):
        Design.from_dict(content)


# --- noised histograms --------------------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e6))
def test_projection_is_the_closest_point_of_the_simplex(noisy, total):
    noisy = np.array(noisy)
    found = onto_simplex(noisy, total)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(total, rel=1e-6, abs=1e-6 * np.abs(noisy).max())
    # Optimality: all positive entries moved by one tau, the others lie below it.
    shift = (noisy - found)[found > 0]
    slack = 1e-6 * (total + np.abs(noisy).max())
    assert np.ptp(shift) <= slack
    assert (noisy[found == 0] <= shift.mean() + slack).all()


def test_span_finds_the_rows_and_joins_bins_where_it_must():
    narrow = np.zeros(128)
    narrow[40:44] = 1000.0
    low, high = span(narrow, 4000.0, 10.0)
    assert (low, high) == ((40 - 4) / 128, (44 + 4) / 128)
    wide = np.full(128, 10.0)  # nothing stands out of the noise until bins are joined
    assert span(wide, 1280.0, 10.0) == (0.0, 1.0)
    with pytest.raises(PrivacyError, match="do not exceed"):
        span(wide, 1280.0, 1000.0)


def test_noisy_marginals_find_the_feature_with_tails(rng):
    X = rng.uniform(-4, 4, size=(20_000, 4))
    X[:, 2] = np.clip(rng.standard_t(3, size=20_000) / 10, -4, 4)
    terms = {"epsilon": 1.0, "expected_rows": 20_000}
    release = Sketch.from_data(Plan.marginals(SCHEMA, **terms), X).release(1.0)
    plan = Plan.draw(SCHEMA, marginals=release, random_state=0, **terms)
    drawn = np.bincount(plan.family.feature, minlength=4) / len(plan.family.feature)
    assert drawn[2] > 1.5 * max(drawn[0], drawn[1], drawn[3])
    # A quarter of the cuts follow the rows, most of which lie in the middle eighth.
    cuts = plan.family.cut[plan.family.feature == 2] / 65_280
    assert np.mean((cuts > 7 / 16) & (cuts < 9 / 16)) == pytest.approx(1 / 4 + 3 / 32, abs=0.06)


def test_drowned_marginals_draw_all_features_alike(rng):
    """Weights that noise made are drawn towards their mean; once in 200 times, less so."""
    sketch = Sketch.from_data(Plan.marginals(SCHEMA), rng.normal(size=(300, 4)))
    farthest = []
    for _ in range(5):
        marginals = sketch.release(0.05)
        plan = Plan.draw(SCHEMA, marginals=marginals, random_state=0, n_tables=400)
        drawn = np.bincount(plan.family.feature, minlength=4) / len(plan.family.feature)
        farthest.append(abs(drawn - 0.25).max())
    assert np.median(farthest) < 0.05


# --- the threshold from noised counts -----------------------------------------------------------


def test_the_threshold_under_noise_is_near_that_of_the_counts(rng):
    X = rng.normal(size=(20_000, 4))
    X[:200] *= 4.0
    plan = Plan.draw(SCHEMA, random_state=0, epsilon=3.0, expected_rows=20_000)
    detector = HushTable.from_counts(Sketch.from_data(plan, X).release(3.0))
    flagged = detector.predict(X) == -1
    assert 0.002 < flagged.mean() < 0.15
    assert flagged[:200].mean() > 3 * flagged[200:].mean()


def test_a_threshold_that_noise_drowns_is_not_told(X, rng):
    plan = Plan.draw(SCHEMA, random_state=0, epsilon=0.1, expected_rows=500)
    sketch = Sketch.from_data(plan, X)
    ledger = sketch.release(0.1).ledger
    # The same noise in every run: one draw in a hundred leaves a threshold by luck.
    noise = np.rint(rng.normal(0.0, ledger.noise_sd, len(sketch.counts))).astype(np.int64)
    detector = HushTable.from_counts(Release(plan, sketch.counts + noise, ledger))
    assert np.isnan(detector.offset_)
    for call in (detector.predict, detector.decision_function):
        with pytest.raises(UsageError, match="set_threshold"):
            call(X)
    assert (detector.set_threshold(X, 0.1).predict(X) == -1).mean() == pytest.approx(0.1, abs=0.01)
