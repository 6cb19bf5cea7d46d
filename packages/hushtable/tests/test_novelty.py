"""Novelty detection: rows that are known to be clean, and others held against them."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import UsageError


@pytest.fixture
def X(rng):
    return rng.normal(size=(600, 4)) * [1, 10, 0.1, 1] + [0, 50, 0, 7]


@pytest.fixture
def detector(X):
    return HushTable(novelty=True, random_state=0).fit(X)


def test_what_is_unlike_the_clean_rows_is_found_better(rng):
    clean, new = rng.normal(size=(2, 1000, 6))
    clean[:, 5], new[:, 5] = clean[:, 0] + 0.1 * clean[:, 5], new[:, 0] + 0.1 * new[:, 5]
    odd = new.copy()
    odd[:, 5] = rng.permutation(odd[:, 5])  # no value is odd alone
    aucs = []
    for novelty in (True, False):
        fitted = HushTable(novelty=novelty, random_state=0).fit(clean)
        aucs.append((fitted.score_samples(odd)[:, None] < fitted.score_samples(new)).mean())
    assert aucs[0] > aucs[1] + 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": 2}, "passes=2 with novelty=True: all clean rows should be counted"),
        ({"contamination": 0.2}, r"contamination=0.2 with novelty=True.*novelty=False detects"),
        ({"contamination": 0.11}, "set_threshold"),
        ({"novelty": "yes"}, "novelty='yes': needs True or False"),
        ({"novelty": 1}, "novelty=1"),
    ],
)
def test_settings_that_do_not_fit(X, settings, message):
    detector = HushTable(**{"novelty": True, **settings})
    with pytest.raises(UsageError, match=message):
        detector.fit(X)
    with pytest.raises((UsageError, AttributeError)):
        detector.partial_fit(X)


def test_a_model_of_one_kind_does_not_go_on_as_the_other(X, detector):
    before = detector.sketch_
    with pytest.raises(UsageError, match="was fitted with novelty=True"):
        detector.set_params(novelty=False).partial_fit(X)
    assert detector.sketch_ == before


def test_a_public_plan_is_released(rng):
    schema = Schema([Feature.numeric(name, low=-5, high=5) for name in "ab"])
    X = pa.table({name: rng.normal(size=20_000) for name in "ab"})
    plan = Plan.draw(schema, novelty=True, epsilon=3.0, expected_rows=20_000, random_state=0)
    assert not plan.data_dependent
    model = HushTable.from_counts(Sketch.from_data(plan, X).release(3.0))
    odd = pa.table({"a": [4.9], "b": [-4.9]})
    assert model.score_samples(odd)[0] < np.quantile(model.score_samples(X), 0.01)
