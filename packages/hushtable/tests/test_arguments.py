"""Arguments that many calls take: what is refused, in the same words."""

import re

import numpy as np
import pytest

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch, load
from hushtable.arguments import MOST, generator, is_text, whole
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.streams import drift
from hushtable.threads import n_threads


@pytest.mark.parametrize("value", [0, -1, 11, 1.0, True, None, "1", [], 10**400, np.float64(2)])
def test_whole_numbers(value):
    assert whole("n", 1, 1, 10) == 1
    assert type(whole("n", np.uint8(10), 1, 10)) is int
    with pytest.raises(UsageError, match=r"n=.*: needs a whole number from 1 to 10$"):
        whole("n", value, 1, 10)
    if value != 11:
        with pytest.raises(UsageError, match=r"n=.*: needs a whole number, 1 or more$"):
            whole("n", value)


def test_seeds():
    first = np.random.default_rng(3).random()
    assert generator(3).random() == first == generator(np.int64(3)).random()
    rng = np.random.default_rng(3)
    assert generator(rng) is rng
    old = np.random.RandomState(3)
    again = np.random.default_rng(np.random.RandomState(3).randint(2**31))
    assert generator(old).random() == again.random()


@pytest.mark.parametrize("seed", ["x", -1, 0.5, {}, float("nan"), np.random])
def test_what_is_no_seed(X, seed):
    schema = Schema([Feature.numeric("a", low=0, high=1)])
    said = re.escape("random_state=")
    with pytest.raises(UsageError, match=said):
        Plan.draw(schema, random_state=seed)
    with pytest.raises(UsageError, match=said):
        HushTable(random_state=seed).fit(X)
    with pytest.raises(UsageError, match=said):
        Sketch.from_data(Plan.draw(schema), X[:, :1], max_samples=3, random_state=seed)


@pytest.mark.parametrize("text", ["\ud800", None, 1, b"a"])
def test_what_is_no_text(text):
    assert is_text("")
    assert not is_text(text)
    for make in (
        lambda: Feature.numeric(text, low=0, high=1),
        lambda: Feature.numeric("a", low=0, high=1, unit=text),
        lambda: Feature.categorical("a", ["b", text]),
        lambda: Feature.categorical("a", text),
    ):
        with pytest.raises(PlanError):
            make()


@pytest.mark.parametrize("bound", ["low", [], None, {}, 10**400, float("nan")])
def test_what_is_no_range(bound):
    with pytest.raises(PlanError, match="needs two finite numbers"):
        Feature.numeric("a", low=bound, high=1)


@pytest.mark.parametrize("weight", [10**400, 2**62, -1, "x", 0.5])
def test_weights_that_cannot_be(X, weight):
    with pytest.raises(DataError, match="sample_weight"):
        HushTable(random_state=0).fit(X, sample_weight=weight)


@pytest.mark.parametrize("contamination", [0.1, 0.25, 0.5, 1, 7])
def test_a_threshold_of_weighted_rows_is_that_of_repeated_ones(X, contamination):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    detector = HushTable(n_tables=20, random_state=0).fit(X)
    expected = detector.set_threshold(np.repeat(X, weights, axis=0), contamination).offset_
    detector.set_threshold(X, contamination, sample_weight=weights)
    assert detector.offset_ == pytest.approx(expected, rel=1e-12)
    if isinstance(contamination, float):
        # Without repeating any row: these would not fit in memory.
        detector.set_threshold(X, contamination, sample_weight=weights * 10**8)
        assert detector.offset_ == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("max_samples", [0, 1.5, "x", None, [3]])
def test_samples_that_cannot_be(X, max_samples):
    with pytest.raises(UsageError, match="max_samples="):
        LSHiTables(max_samples=max_samples).fit(X)


def test_numbers_of_threads_are_bounded():
    assert n_threads(7) == 7
    assert n_threads(10**9) <= max(64, n_threads(-1))
    with pytest.raises(UsageError, match="n_jobs="):
        n_threads(10**25)


def test_a_seed_that_no_file_has_a_number_for_is_left_out(X, tmp_path):
    detector = HushTable(n_tables=3, random_state=2**100).fit(X)
    detector.save(tmp_path / "x.hush")
    loaded = load(tmp_path / "x.hush")
    assert loaded.random_state is None
    np.testing.assert_array_equal(loaded.score_samples(X), detector.score_samples(X))


def test_ranges_are_found_privately():
    schema = Schema([Feature.numeric("a", low=0, high=1)])
    with pytest.raises(UsageError, match="ranges are found by a private release"):
        Plan.ranges(schema, epsilon=None, expected_rows=None)


def test_what_does_not_drift(X):
    with pytest.raises(UsageError, match="two sketches or releases, not list and list"):
        drift([], [])
    with pytest.raises(UsageError, match="not Sketch and list"):
        drift(HushTable(n_tables=3, passes=1).fit(X).sketch_, [])


def test_no_rows_add_up_beyond_what_is_exact(X):
    weights = np.full(len(X), MOST // len(X))
    assert HushTable(n_tables=3, passes=1).fit(X, sample_weight=weights).sketch_.n_rows > 1e12
    with pytest.raises(DataError, match=r"more than 2\^40"):
        HushTable(random_state=0).fit(X, sample_weight=weights + 1)
