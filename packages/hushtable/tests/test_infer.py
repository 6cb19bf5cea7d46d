"""Which columns of text look like those of single rows."""

import pytest

from hushtable.data.texts.decisions import looks


@pytest.mark.parametrize(
    ("texts", "n_values", "words"),
    [
        ([f"p{i}" for i in range(11)], 21, "11 different texts in 21 rows: identifiers"),
        ([f"p{i}" for i in range(1_500)], 2_000, "1,500 different texts in 2,000 rows"),
        ([f"NHS-{i:06}" for i in range(21)], 900, "21 different texts, most of them long codes"),
        ([f"{i:08x}-77-4f" for i in range(999)], 9_999, "identifiers"),
        ([f"{i + 1:02}.03.1961" for i in range(28)], 900, "long codes with digits"),
        ([f"Ada Okonkwo{'o' * i}" for i in range(21)], 400, "of 2 words and 21 letters on average"),
        ([f"{'abcdefgh' * 4}{'i' * i}" for i in range(21)], 400, "free text"),
    ],
)
def test_identifiers_names_and_free_text(texts, n_values, words):
    said = looks(texts, n_values)
    assert words in said
    assert not any(text in said for text in texts)


@pytest.mark.parametrize(
    ("texts", "n_values"),
    [
        ([f"p{i}" for i in range(20)], 20),  # few rows: nothing is distinguished
        ([f"p{i}" for i in range(11)], 22),  # each twice
        ([f"NHS-{i:06}" for i in range(20)], 900),  # few different
        (["never married", "married once", "married again, and again, and again"], 900),
        ([f"E{i}.{j}" for i in range(10, 90) for j in range(10)], 9_000),  # codes of diagnoses
        ([f"country{'x' * i}" for i in range(14)] + [f"New Land{i}" for i in range(10)], 900),
        ([f"Boeing Company{'o' * i}" for i in range(35)], 3_322),  # makers, each of many planes
        (["yes"], 900),
    ],
)
def test_categories(texts, n_values):
    assert looks(texts, n_values) == ""
