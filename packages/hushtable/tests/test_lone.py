"""The only negative number, or the only zero, of a column."""

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable
from hushtable.data.quality import table_quality
from hushtable.data.readers import as_reader
from hushtable.data.table_scan import LoneNumbers


@pytest.fixture
def sales(rng):
    """Return 400 sales; row 162 has the only negative price, and row 7 the only weight of 0."""
    rows = pd.DataFrame(
        {
            "price": rng.lognormal(3, 1, 400).round(2),
            "weight": rng.normal(70, 9, 400).round(1),
            "change": rng.normal(0, 5, 400).round(1),
            "visits": rng.poisson(3, 400).astype(float),
        }
    )
    rows.loc[162, "price"], rows.loc[7, "weight"] = -40.0, 0.0
    return rows


WORDS = [
    "price has one negative value, -40, in row 162.",
    "weight has one zero, in row 7.",
]


def test_they_are_said_with_the_list_and_of_their_rows(sales):
    detector = HushTable(random_state=0).fit(sales)
    found = detector._lowest(sales, 400)
    assert [one.words for one in found.lone] == WORDS
    assert all(words in found.notes("m.hush")["Rows"] for words in WORDS)
    said = {row.row: row.words for row in found.rows}
    assert "price -40: the only negative value" in said[162]
    assert "weight 0: the only zero" in said[7]
    assert sum("the only" in words for words in said.values()) == 2
    # They are those of the listed rows, whatever the model counted.
    assert detector._lowest(sales.drop(index=[7, 162]), 5).lone == []


def test_check_says_them(sales):
    found = [one for one in table_quality(as_reader(sales)).findings if one.kind == "lone"]
    assert [one.words for one in found] == WORDS
    assert [(one.columns, one.examples) for one in found] == [
        (("price",), (162,)),
        (("weight",), (7,)),
    ]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([*range(1, 60), -3], [-3.0]),
        ([*np.linspace(1, 2, 60), 0.0], [0.0]),
        ([*np.linspace(1, 2, 60), 0.0, -1.0], [0.0, -1.0]),
        ([*np.linspace(1, 2, 60), -2.0, -1.0, 0.0], []),
        ([*np.linspace(1, 2, 60), 0.0, 0.0], []),
        ([*range(1, 60), 0], []),  # whole numbers that count from 0
        ([1.0] * 20 + [*range(2, 60), 0], [0.0]),  # with so many ones, there would be more
        ([1.0] * 20 + [-3.0], []),  # too few values
        ([np.nan] * 60 + [-3.0], []),
    ],
)
def test_what_is_the_only_one(values, found):
    for size in (7, 100):
        signs = LoneNumbers("x")
        for start in range(0, len(values), size):
            signs.add(np.array(values[start : start + size], float), start)
        lone = signs.found()
        assert [one.value for one in lone] == found
        assert all(values[one.row] == one.value for one in lone)
