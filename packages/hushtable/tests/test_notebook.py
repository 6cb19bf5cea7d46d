"""Things in a notebook: their pages."""

import re

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, LocalModel, Plan, Schema, Sketch
from hushtable.describe import describe_ledger
from hushtable.display import MOST_ROWS, View, html
from notebook_pages import Page

LOW, HIGH, TEXT = 17.125, 93.625, "a rare text"


@pytest.fixture(scope="module")
def rows():
    """Rows whose lowest and highest value and whose texts are easily found again."""
    age = np.linspace(LOW, HIGH, 400)
    return pd.DataFrame({"age": age, "ward": [TEXT, *["usual"] * 399]})


@pytest.fixture(scope="module")
def public():
    return Schema([Feature.numeric("age", low=0, high=99), Feature.categorical("ward", ["usual"])])


@pytest.fixture(scope="module")
def things(rows, public):
    plan = Plan.draw(public, n_tables=10, random_state=0)
    sketch = Sketch.from_data(plan, rows)
    mine, theirs = sketch.release(epsilon=1.0), sketch.release(epsilon=1.0)
    fitted = HushTable(n_tables=10, passes=2, random_state=0).fit(rows)
    return {
        "Schema": public,
        "Schema of rows": fitted.plan_.schema,
        "Plan": plan,
        "Plan of rows": fitted.plan_,
        "Sketch": sketch,
        "Sketch of rows": fitted.sketch_,
        "Release": mine + theirs,
        "LocalModel": LocalModel.of(mine + theirs, mine.release_id, mine.counts, sketch.counts),
        "Ledger": mine.ledger,
    }


NAMES = (
    *("Schema", "Schema of rows", "Plan", "Plan of rows", "Sketch", "Sketch of rows"),
    *("Release", "LocalModel", "Ledger"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_stands_by_itself_and_shows_no_value_of_a_row(things, name):
    page = Page(things[name])
    assert set(page.tags) <= {"div", "p", "b", "table", "tr", "th", "td"}
    assert page.sentences
    assert page.cells
    text = " ".join((*page.sentences, *page.cells))
    assert not re.search(r"17\.1|93\.6|a rare text", text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Schema", "Schema. This schema holds no data of rows"),
        ("Schema of rows", "This schema holds values of rows: texts of ward (2), and the lowest"),
        ("Plan", "This plan discloses nothing about any row."),
        (
            "Plan of rows",
            "This plan discloses something about rows, and nothing can be released under it",
        ),
        ("Sketch", "Raw sketch. This must not leave the site"),
        ("Sketch of rows", "Raw sketch. This must not leave the site"),
        ("LocalModel", "Local model. This must not leave the site"),
        ("Release", "Release. Adding or removing one record changes the probability"),
        ("Ledger", "Ledger. Adding or removing one record changes the probability"),
    ],
)
def test_the_sentence_that_matters_comes_first(things, name, said):
    assert said in Page(things[name]).sentences[0]


def test_pages_say_what_the_officer_signs(things):
    ledger = things["Release"].ledger
    assert Page(things["Release"]).sentences == [
        "Release. " + describe_ledger(ledger)[0],
        *describe_ledger(ledger)[1:],
    ]
    assert "Only its release may leave" in Page(things["Sketch"]).sentences[1]
    assert "It cannot be released either" in Page(things["Sketch of rows"]).sentences[1]
    assert "0 to 99" in Page(things["Schema"]).cells  # public, and shown


def test_texts_of_anybody_s_file_are_escaped_and_cut():
    bad = "<script>alert('x')</script>&\x1b[31m\u202e"
    schema = Schema([Feature.numeric(bad, low=0, high=1, unit="<i>")])
    assert "<script" not in schema._repr_html_()
    page = Page(schema)
    assert "<script>alert('x')</script>&\ufffd[31m\ufffd" in page.cells
    long = Schema([Feature.numeric(f"{j} {'x' * 500}", low=0, high=1) for j in range(100)])
    assert len(long._repr_html_()) < 20_000
    assert Page(long).sentences[-1] == f"and {100 - MOST_ROWS} more"
    assert "and" not in Page(html(View("Schema", ["Said."], {}, ["n"], [["1"]] * 20))).sentences[-1]
