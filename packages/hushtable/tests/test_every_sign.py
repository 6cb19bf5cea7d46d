"""Every letter and sign of Unicode beside digits: never an error, and it decides about its row."""

import contextlib
import csv
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data import understand
from hushtable.data.texts import dates
from hushtable.data.texts.reading import ColumnReading
from hushtable.errors import HushTableError

#: Where a letter or sign may stand: before, between and behind digits, and in dates and times.
FORMS = (
    "x12", "1x2", "12x", "1200x", "x1200", "1200-x", "12 x 1999", "x 2015", "2015-0x5-03",
    "x12-05-03", "x 9-1-2", "2015x05", "x5 2015", "12:3x0", "2h 15x", "48°51'x", "1,5 x", "x",
)  # fmt: skip
READINGS = (
    *(
        ColumnReading("number", decimal=sign, lenient=some)
        for sign in ".,"
        for some in (False, True)
    ),
    *(ColumnReading("date", dates=order, lenient=order == "dmy") for order in dates.ORDERS),
    ColumnReading("time"),
    ColumnReading("boolean"),
)
#: What else a column may hold, so that no rule about the whole of a column hides another.
OTHERS = (
    "5",
    "1e5",
    "2026-05-15",
    "2026-05-15T10",
    "1,5",
    "n/k",
    "nan",
    "10:35",
    "12 kg",
    "0000-01-01",
)
FEATURES = (
    Feature.numeric("n", low=0, high=9000),
    Feature.numeric("day", low=0, high=2e9, unit="date"),
    Feature.categorical("c", ["5", "12m", "é"]),
)
PLAN = Plan.draw(
    Schema(FEATURES), random_state=0, n_tables=8, n_cells=256, min_depth=2, max_depth=6
)
SIGNS = st.characters(exclude_categories=["Cs"])


def signs(last):
    """All assigned characters up to one, and some of those that have no meaning."""
    kinds = {number: unicodedata.category(chr(number)) for number in range(last + 1)}
    return [
        chr(n)
        for n, kind in kinds.items()
        if kind != "Cs" and (kind not in ("Cn", "Co") or n % 997 == 0)
    ]


def written(sign):
    return [form.replace("x", sign) for form in FORMS]


def read_alike(texts, readings):
    """Each text has the same value in one column with all others as in another, with a few."""
    parts = np.random.default_rng(0).integers(0, 7, len(texts))
    for one in readings:
        together = one.values(pa.array(texts))
        for part in range(7):
            places = np.flatnonzero(parts == part)[::-1]
            apart = one.values(pa.array([texts[i] for i in places], pa.string()))
            np.testing.assert_array_equal(apart, together[places])


def sketch_of(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([[f.name for f in FEATURES], *rows])
    return Sketch.from_data(PLAN, path, attended=False)


def counts_add_up(folder, rows, n_parts):
    """The counts of rows in one file are the sum of those in several files."""
    whole = sketch_of(folder / "whole.csv", rows)
    parts = [sketch_of(folder / "part.csv", rows[k::n_parts]) for k in range(n_parts)]
    assert whole.n_rows == len(rows) == sum(part.n_rows for part in parts)
    np.testing.assert_array_equal(whole.counts, sum(part.counts for part in parts))


@pytest.fixture(scope="module")
def alone():
    """What `OTHERS` are under each reading, each in a column of its own."""
    return [[one.values(pa.array([text]))[0] for text in OTHERS] for one in READINGS]


@given(texts=st.lists(SIGNS.flatmap(lambda sign: st.sampled_from(written(sign))), max_size=3))
def test_texts_read_alike_whatever_stands_beside_them(alone, texts):
    for one, others in zip(READINGS, alone, strict=True):
        apart = [*(one.values(pa.array([text]))[0] for text in texts), *others]
        np.testing.assert_array_equal(one.values(pa.array([*texts, *OTHERS])), apart)


@given(sign=SIGNS | st.sampled_from("mewq"), form=st.sampled_from(FORMS))
def test_one_row_is_one_row_at_an_unattended_site(tmp_path_factory, sign, form):
    text = form.replace("x", sign)
    rows = [["5", "2026-05-15", "5"], ["1e3", "2026-05-15T10", "é"], [text, text, text]]
    counts_add_up(tmp_path_factory.mktemp("site"), rows, len(rows))


@example(sign="B", form="1,5 x")  # no value has the unit
@given(sign=SIGNS | st.sampled_from("mewq"), form=st.sampled_from(FORMS))
def test_one_cell_is_read_or_refused_in_words_where_a_person_is(sign, form):
    """It ended in an error of Python's own for 1200m."""
    table = {
        "n": [form.replace("x", sign), *map(str, range(1000, 1300))],
        "day": [
            form.replace("x", sign),
            *np.datetime_as_string(np.arange(301)[1:].astype("M8[D]")),
        ],
    }
    assert {one.name for one in understand(pa.table(table)).columns} == table.keys()
    with contextlib.suppress(HushTableError):
        assert Sketch.from_data(PLAN, pa.table(table | {"c": ["5"] * 301})).n_rows == 301


def every_sign(folder, last, n_parts, step):
    """Put each sign up to the last into every ``step``-th form."""
    some = signs(last)
    for k, form in enumerate(FORMS):
        texts = [form.replace("x", sign) for sign in some[k % step :: step]]
        read_alike([*texts, *OTHERS], READINGS)
        dates.say_zones(pa.array(texts))
        counts_add_up(folder, [[text, text, text] for text in texts], n_parts)


def test_every_sign_of_western_languages(tmp_path):
    every_sign(tmp_path, 0xFF, n_parts=2, step=1)


@pytest.mark.slow
def test_every_sign(tmp_path):
    every_sign(tmp_path, sys.maxunicode, n_parts=3, step=6)
