"""Streams whose level moves: partial_fit says so, and stays quiet where nothing moves."""

import pandas as pd
import pytest
from scipy.stats import betabinom

from hushtable import HushTable
from hushtable.streams import _by_chance


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


def test_chance_is_that_of_a_beta_binomial_distribution():
    for k, m, a, b in ((0, 5, 2, 9), (3, 10, 2, 99), (200, 1000, 40, 500), (7, 7, 1, 1)):
        assert _by_chance(k, m, a, b) == pytest.approx(betabinom(m, a, b).sf(k - 1), rel=1e-9)
