"""Values and ranges in words, and values as they stand in a file."""

import pyarrow as pa
import pytest

from hushtable import Feature
from hushtable.data import understand
from hushtable.data.schema import range_words, value_words

AGE = Feature.numeric("age", low=0, high=120, unit="year")
PLAIN = Feature.numeric("x", low=0, high=1e9)
DAY = 86_400
NUMBERS = {0.0: "0", 4000.0: "4000", 1234567.0: "1234567", -0.5: "-0.5", 0.000123456: "0.000123456",
           1e-9: "1e-09", 1e30: "1e+30", 99.99999999: "100", 123456.789: "123456.789"}  # fmt: skip
SEEN = Feature.numeric("seen", low=20_588 * DAY, high=20_588.5 * DAY, unit="date")
WARD = Feature.categorical("ward", list("abcde"))


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (AGE, 1 / 3, "0.333333 year"),
        *((PLAIN, x, words) for x, words in NUMBERS.items()),
        (SEEN, 20_588.0 * DAY + 1, "2026-05-15 00:00:01"),
        (SEEN, 20_588.5 * DAY, "2026-05-15 12:00"),
        (SEEN, -DAY, "1969-12-31"),
        (SEEN, 1e15, "1e+15 s since 1970"),
        (WARD, "north", "north"),
        (WARD, None, "missing"),
        (AGE, float("nan"), "missing"),
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


@pytest.mark.parametrize(
    ("texts", "value", "written"),
    [
        (["1.234,50", "2,00", "-3,25"], -12_345.5, "-12.345,50"),
        (["1 234,5", "2,5"], 1e6 / 3, "333 333,3"),
        (["15.0", "16.5"], 3, "3.0"),
        (["1234567.89", "0.5", "2"], 1_234_567.89, "1234567.89"),
        (["0.123456789", "2.123456789"], 2.5, "2.5"),  # computed, and not typed
        (["28.10.2025", "8.1.2025"], 0, "1.1.1970"),
        (["13/01/26", "14/02/26"], 20_588 * DAY, "15/05/26"),
        (["20251028", "20251029"], 20_588 * DAY, "20260515"),
        (["13/01/26", "14/02/26"], -9_999 * DAY, "1942-08-17"),  # 42 would be 2042
        (["28.10.2025 10:35"] * 2, 61, "1970-01-01 00:01:01"),  # the form has no seconds
        (["2:35 PM", "3:35 AM"], 52_500, "2:35 PM"),
        (["2:35 PM", "3:35 AM"], 300, "12:05 AM"),
        (["2:35 p.m.", "3:35 a.m."], 43_500, "12:05 p.m."),
        (["10/28/2025 2:35 PM", "10/13/2025 3:35 AM"], 20_588 * DAY + 300, "05/15/2026 12:05 AM"),
        (["10:35", "9:35"], 5_400, "1:30"),
        (["7:20:00", "801:30:00"], 2_885_400, "801:30:00"),
        (["7:20", "8:20"], 61, "0:01:01"),
    ],
)
def test_a_value_is_written_as_the_texts_of_its_column(texts, value, written):
    [one] = understand(pa.table({"x": texts}))
    assert one.reading.written(float(value)) == written
