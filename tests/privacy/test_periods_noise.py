"""The noise on a sum of twelve months, measured over many cells."""

import numpy as np
import pytest

from hushtable import Feature, Periods, Plan, Schema, Sketch, decoded

SCHEMA = Schema([Feature.numeric("a", low=-6, high=6), Feature.numeric("b", low=-6, high=6)])
TERMS = {"epsilon": 0.1, "expected_rows": 12_000, "random_state": 0, "n_tables": 80}


def test_a_year_of_months_costs_less_than_four_releases_in_noise():
    plan = Plan.draw(SCHEMA, horizon=12, **TERMS)
    rows = np.random.default_rng(0).normal(size=(12, 100, 2))
    site = Periods(plan, 0.1)
    total = decoded([site.release(Sketch.from_data(plan, month)) for month in rows])
    off = total.counts - Sketch.from_data(plan, rows.reshape(-1, 2)).counts
    once = Sketch.zero(Plan.draw(SCHEMA, **TERMS)).release(0.1).ledger
    ratio = float((off**2).mean()) / once.noise_sd**2
    assert len(off) > 10_000  # so that a measured variance is within two percent or so
    assert ratio <= 3.6
    assert ratio == pytest.approx(plan.horizon.variance(12), rel=0.07)
    assert total.ledger.epsilon <= 0.1
