"""Values and ranges in words."""

import numpy as np
import pytest

from hushtable import Feature
from hushtable.data.schema import range_words, value_words

AGE = Feature.numeric("age", low=0, high=120, unit="year")
PLAIN = Feature.numeric("x", low=0, high=1e9)
DAY = 86_400
SEEN = Feature.numeric("seen", low=20_588 * DAY, high=20_588.5 * DAY, unit="date")
WARD = Feature.categorical("ward", list("abcde"))


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (AGE, 41, "41 year"),
        (AGE, 41.25, "41.25 year"),
        (AGE, 1 / 3, "0.333333 year"),
        (PLAIN, np.float32(0.3), "0.3"),
        (PLAIN, np.int64(12_345_678), "12345678"),
        # Not 1.23457e+07: all that stands before the point is seen.
        (PLAIN, 12_345_678.0, "12345678"),
        (PLAIN, 1e30, "1e+30"),
        (SEEN, 20_588 * DAY, "2026-05-15"),
        (SEEN, 20_588.0 * DAY + 1, "2026-05-15 00:00:01"),
        (SEEN, 20_588.5 * DAY, "2026-05-15 12:00"),
        (SEEN, -DAY, "1969-12-31"),
        (SEEN, 1e15, "1e+15 s since 1970"),
        (SEEN, float("inf"), "inf"),
        (WARD, "north", "north"),
        (WARD, None, "missing"),
        (AGE, float("nan"), "missing"),
        (SEEN, np.nan, "missing"),
    ],
)
def test_a_value(feature, value, words):
    assert value_words(feature, value) == words


def test_a_range():
    assert range_words(AGE) == "0 to 120 year"
    assert range_words(PLAIN) == "0 to 1000000000"
    assert range_words(SEEN) == "2026-05-15 to 2026-05-15 12:00"
    assert range_words(WARD) == "5 categories: a, b, c and 2 more"
    assert range_words(WARD, most=5) == "5 categories: a, b, c, d, e"
    assert range_words(Feature.categorical("none", [])) == "no categories"
