"""Charts of single rows: each mark where it belongs, and nothing but text in the texts."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from markupsafe import Markup

from hushtable.charts.drawing import WIDTH, cut, text_width
from hushtable.charts.values import SharesChart, ValueChart, percent
from hushtable.errors import UsageError
from report_helpers import EVIL

RNG = np.random.default_rng(7)


def value(cells, at=0.5, text="4.1", ends=("0", "10"), words="a value", **more):
    return ValueChart(np.asarray(cells), at, text, ends, words=words, **more)


def drawn(chart):
    """Return the picture as parsed XML, in which no number is missing."""
    svg = chart.svg
    assert isinstance(svg, Markup)
    assert not re.search(r"nan|inf\b", re.sub(r'aria-label="[^"]*"|>[^<]*<', "", svg))
    return ET.fromstring(svg)


NORMAL = np.histogram(RNG.normal(0, 1, 9_000), 1_020)[0]


BAD = {
    "no cells": lambda: value([]),
    "two dimensions": lambda: value(np.ones((2, 2))),
    "a count that is NaN": lambda: value([1.0, math.nan]),
    "a place that is NaN": lambda: value([1], at=math.nan),
    "a usual place that is NaN": lambda: value([1], usual=(0.0, math.nan)),
    "other cells within": lambda: value([1, 2], within=np.ones(3)),
    "no names": lambda: SharesChart([], [], 0, ""),
    "a name without share": lambda: SharesChart(["a", "b"], [1.0], 0, ""),
    "a share that is NaN": lambda: SharesChart(["a"], [math.nan], 0, ""),
    "no own name": lambda: SharesChart(["a"], [1.0], 1, ""),
    "an own name before the first": lambda: SharesChart(["a"], [1.0], -1, ""),
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_to_draw_is_said(name):
    with pytest.raises(ValueError, match=r"\w") as caught:
        BAD[name]()
    assert isinstance(caught.value, UsageError)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0%"), (-0.1, "0%"), (1e-7, "<0.001%"), (0.00003, "0.003%"), (0.0004, "0.04%"),
        (0.00096, "0.1%"), (0.05, "5.0%"), (0.0994, "9.9%"), (0.0996, "10%"), (0.456, "46%"),
        (0.9949, "99%"), (0.99999, "99.9%"), (1.0, "100%"),
    ],
)  # fmt: skip
def test_percentages(share, words):
    assert percent(share) == words


ODD_TEXTS = [
    EVIL,
    "line\nbreak\ttab",
    "\0\x1b[31m\ud800\ufffe",
    "",
    "産婦人科" * 20,
    "e\u0301" * 90,
]


def charts(words):
    """Return a chart of each kind with these words in every text."""
    two = (words, words)
    yield value(NORMAL, text=words, ends=two, words=words, usual=(0.4, 0.6))
    yield SharesChart([words] * 9, [0.1] * 9, 8, words)


@pytest.mark.parametrize("words", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_texts_are_texts(words):
    clean = re.sub(r"[\0\x1b\ud800\ufffe]", "\ufffd", re.sub(r"[\n\t]", " ", words))
    for chart in charts(words):
        picture = drawn(chart)
        assert {part.tag for part in picture.iter()} <= {"svg", "path", "text", "title"}
        assert picture.get("role") == "img"
        assert picture.get("aria-label") == clean
        attributes = {name for part in picture.iter() for name in part.attrib}
        assert not [name for name in attributes if name.startswith("on")]
        for part in picture.iter("text"):
            whole = part.find("title")
            assert whole is None or whole.text == clean
        chart.svg.encode()


@pytest.mark.parametrize("words", [*ODD_TEXTS, "W" * 300, "i" * 300])
def test_texts_stay_in_the_picture(words):
    for chart in charts(words):
        for part in drawn(chart).iter("text"):
            size = float(part.get("font-size", 12))
            wide = text_width(part.text or "", size, flagged=part.get("font-weight") == "600")
            anchor = part.get("text-anchor", "start")
            left = float(part.get("x")) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            assert left > -0.1
            assert left + wide < WIDTH + 0.1


def test_cuts():
    assert cut("short", 100.0) == "short"
    assert cut("a long name of a column", 60.0).endswith("…")
    kept = cut("a long name of a column 12.5", 100.0, ending=True)
    assert kept.startswith("a ")
    assert kept.endswith("12.5")
    assert text_width(kept) <= 100.0
    assert cut("anything", 1.0) == "…"
