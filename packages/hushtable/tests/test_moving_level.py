"""Streams whose level moves: partial_fit says so, and stays quiet where nothing moves."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.streams import _by_chance, outside_beyond


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
