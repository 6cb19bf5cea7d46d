"""Streams whose level moves: partial_fit says so, and stays quiet where nothing moves."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from hushtable import Feature, HushTable, Plan, Schema, Sketch, drift
from hushtable.streams import _by_chance, drift_words, outside_beyond


def _moved(rng, n, level=0.0, ward="ab"):
    columns = {"x": rng.normal(level, 1.0, n), "y": rng.normal(size=n)}
    return pd.DataFrame(columns | {"ward": rng.choice(list(ward), n)})


def test_a_moving_level_is_warned_of_with_share_and_row(rng):
    detector = HushTable(n_tables=10, random_state=0).partial_fit(_moved(rng, 1000))
    detector.partial_fit(_moved(rng, 500))
    assert detector.outside_ == {}
    words = r"x since row 1,500 \(\d+%\)\. It does not distinguish such values: fit it again"
    for _ in range(3):  # it goes on, and the row stays
        with pytest.warns(UserWarning, match=words):
            detector.partial_fit(_moved(rng, 500, level=4.0))
    assert [*detector.outside_] == ["x"]
    assert 0.5 < detector.outside_["x"] <= 1.0
    detector.partial_fit(_moved(rng, 500))
    assert detector.outside_ == {}


def test_each_column_has_the_row_from_which_on_it_moved(rng):
    detector = HushTable(n_tables=5, random_state=0).partial_fit(_moved(rng, 1000))
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"x since row 1,000 \("):
            detector.partial_fit(_moved(rng, 500, level=6.0))
    with pytest.warns(UserWarning, match=r": ward since row 2,000 \(100%\)\. "):
        detector.partial_fit(_moved(rng, 500, ward="c"))
    with pytest.warns(UserWarning, match=r": (?=.*x since row 2,500)(?=.*ward since row 2,000)"):
        detector.partial_fit(_moved(rng, 500, level=6.0, ward="c"))


def test_from_a_fifth_of_a_batch_on(rng):
    for share, warns in ((0.1, False), (0.25, True)):
        detector = HushTable(n_tables=5, random_state=0).partial_fit(_moved(rng, 1000))
        batch = _moved(rng, 200)
        batch.loc[: int(share * 200) - 1, "y"] = 40.0
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            detector.partial_fit(batch)
        assert bool(seen) == warns
    assert detector.outside_["y"] == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("n_first", "m"),
    [
        pytest.param(n_first, m, marks=[pytest.mark.slow] * ((n_first, m) != (20, 50)))
        for n_first in (5, 20, 100, 1000)
        for m in (1, 5, 50, 400)
    ],
)
def test_quiet_batches_warn_once_in_a_hundred_at_most(n_first, m):
    """Over normal, heavy-tailed and whole numbers, and over common and rare categories."""
    rng = np.random.default_rng(n_first + m)
    rare = [f"c{i}" for i in range(40)]
    shares = np.arange(1.0, 41.0) ** -1.5
    shares /= shares.sum()
    warned, n = 0, 300
    for _ in range(n):
        rows = {
            "a": rng.normal(size=n_first + m), "b": rng.standard_t(1.5, n_first + m),
            "c": rng.poisson(2.0, n_first + m), "d": rng.choice(rare, n_first + m, p=shares),
        }  # fmt: skip
        first = {name: values[:n_first] for name, values in rows.items()}
        features = [_feature(name, values) for name, values in first.items()]
        plan = Plan.marginals(Schema(features))
        frame = pd.DataFrame(rows)
        halves = (Sketch.from_data(plan, part) for part in (frame[:n_first], frame[n_first:]))
        warned += bool(outside_beyond(*halves))
    print(f"\n{n_first} rows, then {m}: {warned} of {n} quiet batches")
    assert warned <= 0.01 * n + 2.0 * (0.01 * n) ** 0.5  # two standard deviations above


def _feature(name, values):
    if values.dtype.kind in "UO":
        return Feature.categorical(name, sorted(set(values)))
    return Feature.numeric(name, low=values.min(), high=max(values.max(), values.min() + 1e-9))


def test_chance_is_that_of_a_beta_binomial_distribution():
    for k, m, a, b in ((0, 5, 2, 9), (3, 10, 2, 99), (200, 1000, 40, 500), (7, 7, 1, 1)):
        assert _by_chance(k, m, a, b) == pytest.approx(betabinom(m, a, b).sf(k - 1), rel=1e-9)


def test_drift_says_it_too_in_the_same_words(rng):
    plan = HushTable(n_tables=20, random_state=0).fit(_moved(rng, 1000)).plan_
    plan = Plan.marginals(plan.schema)
    first, same, moved = (
        Sketch.from_data(plan, _moved(rng, 500, level)) for level in (0.0, 0.0, 5.0)
    )
    assert not drift(first, same).outside
    assert "outside" not in drift_words(drift(first, same))
    words = drift_words(drift(first, moved))
    assert re.search(r"outside the model's ranges or categories: x \(\d+%\)\. It does not", words)
