"""Explanations: the kernel against the oracle, shares that add up, and culprits that are found."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from hushtable import (
    HushTable,
    Plan,
    Sketch,
)
from hushtable.kernels import _gains
from hushtable.scores.explain import Explainer
from hushtable.scores.scorer import Scorer
from strategies import as_table, codes_of, schemas_and_rows

DRAWS = {
    "lsh_itables": {"detector": "lsh_itables", "n_tables": 5},
    "shallow": {"n_tables": 6, "min_depth": 1, "max_depth": 5, "n_cells": 64},
    "folded": {"n_tables": 5, "n_cells": 16},
    "deep": {"n_tables": 3, "min_depth": 17, "max_depth": 32, "n_cells": 2},
}


def sketched(draw, schema, rows, seed):
    plan = Plan.draw(schema, random_state=seed, **DRAWS[draw])
    return Sketch.from_data(plan, as_table(schema, rows))


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_build")
@pytest.mark.parametrize("draw", DRAWS)
@given(data=schemas_and_rows(), seed=st.integers(0, 99), rare=st.sampled_from([0.3, 1.0]))
def test_gains_equal_the_oracles(draw, data, seed, rare):
    schema, rows = data
    sketch = sketched(draw, schema, rows, seed)
    values, offsets = Scorer(sketch).values, sketch.plan.family.offsets
    limits = np.array(
        [np.quantile(values[a:b], rare) + (rare == 1.0) for a, b in itertools.pairwise(offsets)]
    )
    codes = codes_of(schema, as_table(schema, rows))
    totals, gains = sketch.plan.family.gains(codes, values, limits)
    assert gains.tolist() == [naive.gains(sketch.plan, values, limits, row) for row in rows]
    assert totals.tolist() == sketch.plan.family.sum(codes, values).tolist()


def test_blocks_of_any_length(rng):
    X = rng.random((2 * _gains.ROWS + 1, 3))
    detector = HushTable(n_tables=5, random_state=0).fit(X)
    whole = detector.explain(X)
    for n in (1, 2, _gains.ROWS - 1, _gains.ROWS, _gains.ROWS + 1):
        assert np.array_equal(detector.explain(X[:n]), whole[:n])


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", DRAWS)
@given(data=schemas_and_rows(), seed=st.integers(0, 99))
def test_shares_add_up_to_what_a_score_falls_short_of(draw, data, seed):
    schema, rows = data
    sketch = sketched(draw, schema, rows, seed)
    scorer, table = Scorer(sketch), as_table(schema, rows)
    scores, shares = scorer.score(table), Explainer(scorer).explain(table)
    # These rows are the counted ones, at the ranges' ends: their mean is the typical score.
    clipped = scorer.mapped(table, lambda item: scorer.scoring.clipped(scorer.encode(item)), None)
    typical = np.mean(list(clipped))
    np.testing.assert_allclose(shares.sum(axis=1), typical - scores, atol=1e-9)


# --- importances ----------------------------------------------------------------------------


# --- bad input ------------------------------------------------------------------------------


def test_importances_are_the_mean_sizes_of_the_shares(rng):
    X = rng.normal(size=(300, 3))
    detector = HushTable(random_state=0).fit(X)
    expected = np.abs(detector.explain(X)).mean(axis=0)
    np.testing.assert_allclose(detector.importances(X), expected, rtol=1e-12)


@pytest.mark.parametrize("second", [False, True])
def test_typical_score_is_the_mean_of_the_counted_rows(rng, second):
    X = rng.normal(size=(500, 4))
    detector = HushTable(n_tables=20, passes=2 if second else 1, random_state=0).fit(X)
    scores = detector.score_samples(X)
    assert Explainer(detector._scorer).typical == pytest.approx(scores.mean(), abs=1e-9)
    np.testing.assert_allclose(detector.explain(X).sum(axis=1), scores.mean() - scores, atol=1e-9)
