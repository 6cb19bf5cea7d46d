"""Novelty detection: rows that are known to be clean, and others held against them."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.errors import UsageError
from hushtable.plans.draws import NOVELTY
from hushtable.scores.scorer import Scorer


@pytest.fixture
def X(rng):
    return rng.normal(size=(600, 4)) * [1, 10, 0.1, 1] + [0, 50, 0, 7]


@pytest.fixture
def detector(X):
    return HushTable(novelty=True, random_state=0).fit(X)


def test_the_plan_is_deep_even_and_wide(X, detector):
    plan = detector.plan_
    depth = plan.family.depth
    assert depth.min() == 24
    assert depth.max() == 32
    assert (np.diff(plan.family.offsets) == 1024).all()
    share = np.bincount(plan.family.feature) / len(plan.family.feature)
    np.testing.assert_allclose(share, 0.25, atol=1e-3)
    low, high = X.min(axis=0), X.max(axis=0)
    for feature, a, b in zip(plan.schema.features, low, high, strict=True):
        assert feature.low == pytest.approx(a - 0.25 * (b - a))
        assert feature.high == pytest.approx(b + 0.25 * (b - a))


def test_one_row_in_a_cell_is_far_from_none(detector):
    assert detector.plan_.score == NOVELTY
    expected = np.log2(detector.sketch_.counts + 0.05)
    np.testing.assert_allclose(Scorer(detector.sketch_).values, expected, atol=1e-6)
    assert detector.plan_.first_counts is None


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


def test_features_that_were_constant_tell_later(rng):
    frame = pa.table({
        "a": rng.normal(size=300), "zero": np.zeros(300), "seven": np.full(300, 7.0),
        "ward": ["north"] * 300,
    })  # fmt: skip
    detector = HushTable(novelty=True, random_state=0).fit(frame)
    row = frame.slice(0, 1).to_pydict()
    usual = detector.score_samples(frame).min()
    for name, value in {"zero": 0.2, "seven": 8.0, "ward": "south"}.items():
        changed = pa.table(row | {name: [value]})
        before = detector.score_samples(frame.slice(0, 1))
        assert detector.score_samples(changed) < before - 1.0, name
    assert detector.score_samples(pa.table(row | {"zero": [5.0], "seven": [9.0]}))[0] < usual


def test_it_merges_to_the_bit_and_comes_back_from_files(X, detector, tmp_path):
    parts = [Sketch.from_data(detector.plan_, part) for part in np.array_split(X, 3)]
    merged = HushTable.from_counts(sum(parts, start=Sketch.zero(detector.plan_)))
    assert merged.novelty
    assert merged.sketch_ == detector.sketch_
    assert merged.offset_ == detector.offset_
    np.testing.assert_array_equal(merged.score_samples(X), detector.score_samples(X))
    merged.save(tmp_path / "a.hush")
    assert load(tmp_path / "a.hush").novelty
    shares = detector.explain(X[:5])
    gap = Scorer(detector.sketch_).histogram_means().mean() - detector.score_samples(X[:5])
    np.testing.assert_allclose(shares.sum(axis=1), gap, atol=1e-6)


def test_a_public_plan_is_released(rng):
    schema = Schema([Feature.numeric(name, low=-5, high=5) for name in "ab"])
    X = pa.table({name: rng.normal(size=20_000) for name in "ab"})
    plan = Plan.draw(schema, novelty=True, epsilon=3.0, expected_rows=20_000, random_state=0)
    assert not plan.data_dependent
    model = HushTable.from_counts(Sketch.from_data(plan, X).release(3.0))
    odd = pa.table({"a": [4.9], "b": [-4.9]})
    assert model.score_samples(odd)[0] < np.quantile(model.score_samples(X), 0.01)


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


@pytest.mark.parametrize(("n", "d"), [(214, 5), (214, 30), (3000, 30)])
def test_the_threshold_is_for_rows_that_were_not_counted(n, d):
    """A counted row meets itself in each table; of few rows, a new one scores far below it."""
    rng = np.random.default_rng(0)
    detector = HushTable(novelty=True, random_state=0).fit(rng.normal(size=(n, d)))
    new = rng.normal(size=(1000, d))
    odd = new[:300].copy()
    odd[:, : d // 5] += 5.0
    flagged, found = (detector.predict(rows) == -1 for rows in (new, odd))
    print(f"{n} x {d}: {flagged.mean():.1%} of new clean rows flagged, {found.mean():.1%} of odd")
    assert flagged.mean() < 0.2
    assert found.mean() > 0.97
