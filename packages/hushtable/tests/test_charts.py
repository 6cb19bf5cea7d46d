"""Charts of single rows: each mark where it belongs, and nothing but text in the texts."""

import math
import re
import string
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from markupsafe import Markup

from hushtable.charts.drawing import FLAG, ROWS, WIDTH, cut, range_ends, text_near, text_width
from hushtable.charts.values import PairChart, SharesChart, ValueChart, percent
from hushtable.errors import UsageError
from report_helpers import EVIL

RNG = np.random.default_rng(7)
FLOOR, TOP = 76.0, 20.0


def value(cells, at=0.5, text="4.1", ends=("0", "10"), words="a value", **more):
    return ValueChart(np.asarray(cells), at, text, ends, words=words, **more)


def pair(counts, at, x=None, y=None, words="a pair", ends=(("0", "9"), ("1", "8")), **more):
    counts = np.asarray(counts)
    x = np.arange(counts.shape[0] + 1.0) if x is None else np.asarray(x)
    y = np.arange(counts.shape[1] + 1.0) if y is None else np.asarray(y)
    labels = more.pop("labels", ("carat 2", "price 326"))
    return PairChart(counts, x, y, at, labels, ends, words=words, **more)


def drawn(chart):
    """Return the picture as parsed XML, in which no number is missing."""
    svg = chart.svg
    assert isinstance(svg, Markup)
    assert not re.search(r"nan|inf\b", re.sub(r'aria-label="[^"]*"|>[^<]*<', "", svg))
    return ET.fromstring(svg)


def paths(picture, colour, kind="fill"):
    return [path.get("d") for path in picture.iter("path") if path.get(kind) == colour]


def bars(picture, colour=ROWS):
    """Return (left, right, height) of each bar in this colour of a value chart."""
    found = []
    for path in paths(picture, colour)[:1]:
        for part in re.findall(r"M([\d.]+) 76((?:V[\d.]+H[\d.]+)+)V76z", path):
            left = float(part[0])
            for y, right in re.findall(r"V([\d.]+)H([\d.]+)", part[1]):
                found.append((left, float(right), FLOOR - float(y)))
                left = float(right)
    return found


def mark(picture):
    """Return how far from the left the line of the value stands."""
    (path,) = paths(picture, FLAG, "stroke")
    return float(re.fullmatch(r"M([\d.]+) 18V76", path)[1])


def texts(picture):
    return {"".join(part.text or ""): part for part in picture.iter("text")}


def rects(picture):
    """Return left, top, width, height and opacity of each cell of a pair."""
    names = ("x", "y", "width", "height", "opacity")
    return np.array([[float(rect.get(name)) for name in names] for rect in picture.iter("rect")])


def ring(picture):
    """Return the middle of the ring."""
    path = next(p for p in paths(picture, FLAG, "stroke") if "a" in p)
    x, y = re.match(r"M(-?[\d.]+) (-?[\d.]+)a6", path).groups()
    return float(x) + 6.0, float(y)


HEAVY = np.histogram(np.exp(RNG.normal(3, 1.6, 20_000)), 1_020)[0]
NORMAL = np.histogram(RNG.normal(0, 1, 9_000), 1_020)[0]
LONG = [f"Department of {kind} medicine" for kind in string.ascii_lowercase[:20]]


def numbers(high, n=1_020):
    """Return the cells of whole numbers from 0 to high, one row each."""
    return np.histogram(np.arange(high + 1.0), n, (0, high))[0]


SAMPLES = {
    "heavy tail": HEAVY,
    "normal": NORMAL,
    "normal, few cells": NORMAL.reshape(34, -1).sum(axis=1),
    "cells of a prime number": NORMAL[:1_013],
    "twelve numbers": numbers(11),
    "a hundred numbers": numbers(99),
    "yes or no": numbers(1),
    "one row": np.eye(1, 1_020, 700)[0],
    "few rows": np.bincount([3, 200, 517, 1_019], minlength=1_020),
    "few cells": np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 1]),
    "one name for each cell": np.array([5]),
    "noise": NORMAL + RNG.normal(0, 5, 1_020),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_cell_with_rows_has_a_bar(name):
    cells = SAMPLES[name]
    found = bars(drawn(value(cells)))
    for k in np.flatnonzero(cells > 0):
        x = 8.0 + 284.0 * (k + 0.5) / len(cells)
        assert any(left - 1.1 <= x <= right + 1.1 and high >= 2.5 for left, right, high in found), k
    assert max(high for *_, high in found) == 56.0
    assert len(found) <= 41
    assert all(0 <= left < right <= WIDTH for left, right, _ in found)


@given(arrays(np.int64, st.integers(1, 130), elements=st.sampled_from([0, 0, 0, 1, 40, 10**9])))
def test_every_cell_of_any_counts_has_a_bar(cells):
    found = bars(drawn(value(cells, ends=("low", "high"))))
    assert bool(found) == bool(cells.any())
    for k in np.flatnonzero(cells):
        x = 8.0 + 284.0 * (k + 0.5) / len(cells)
        assert any(left - 1.1 <= x <= right + 1.1 for left, right, _ in found)


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
    "edges for other cells": lambda: pair(np.ones((2, 2)), (1, 1), x=[0, 1]),
    "edges that fall": lambda: pair(np.ones((2, 2)), (1, 1), y=[0, 2, 1]),
    "edges without end": lambda: pair(np.ones((2, 2)), (1, 1), y=[0, 1, math.inf]),
    "edges of nothing": lambda: pair(np.ones((1, 2)), (1, 1), x=[0]),
    "pair at NaN": lambda: pair(np.ones((2, 2)), (1, math.nan)),
    "pair of counts that are NaN": lambda: pair(np.full((2, 2), math.nan), (1, 1)),
    "too few names": lambda: pair(np.ones((2, 2)), (1, 1), x_names=["a"]),
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


QUANTILES = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 40.0, 9_000.0])


@pytest.mark.parametrize(
    "edges", [np.arange(9.0), QUANTILES, -QUANTILES[::-1]], ids=["even", "high", "low"]
)
@pytest.mark.parametrize("cell", [0, 3, 7])
@pytest.mark.parametrize("part", [0.0, 0.25, 0.9])
def test_the_ring_lies_in_its_cell(edges, cell, part):
    at = edges[cell] + part * (edges[cell + 1] - edges[cell])
    picture = drawn(pair(np.ones((8, 8)), (at, at), x=edges, y=edges))
    left, top, width, height, _ = rects(picture)[8 * cell + cell]
    # Half of the gap between the cells lies at each side.
    assert ring(picture)[0] == pytest.approx(left - 0.5 + part * (width + 1.0), abs=0.3)
    assert ring(picture)[1] == pytest.approx(top - 0.5 + (1.0 - part) * (height + 1.0), abs=0.3)


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
    names = [words] * 4
    for x_names in (names, None):
        for y_names in (names, None):
            yield pair(
                np.ones((4, 4)), (1, 1), ends=(two, two), labels=two, words=words,
                x_names=x_names, y_names=y_names,
            )  # fmt: skip


@pytest.mark.parametrize("words", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_texts_are_texts(words):
    clean = re.sub(r"[\0\x1b\ud800\ufffe]", "\ufffd", re.sub(r"[\n\t]", " ", words))
    for chart in charts(words):
        picture = drawn(chart)
        assert {part.tag for part in picture.iter()} <= {
            "svg", "g", "path", "rect", "text", "title"
        }  # fmt: skip
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
            if part.get("transform") is None:
                size = float(part.get("font-size", 12))
                wide = text_width(part.text or "", size, flagged=part.get("font-weight") == "600")
                anchor = part.get("text-anchor", "start")
                left = float(part.get("x")) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
                assert left > -0.1
                assert left + wide < WIDTH + 0.1


def test_what_is_cut_can_be_read():
    picture = drawn(SharesChart(LONG, [0.05] * 20, 0, ""))
    found = [part for part in picture.iter("text") if part.text.endswith("…")]
    assert [part.find("title").text for part in found] == LONG[:5]


def test_cuts():
    assert cut("short", 100.0) == "short"
    assert cut("a long name of a column", 60.0).endswith("…")
    kept = cut("a long name of a column 12.5", 100.0, ending=True)
    assert kept.startswith("a ")
    assert kept.endswith("12.5")
    assert text_width(kept) <= 100.0
    assert cut("anything", 1.0) == "…"


def test_sizes():
    words = "creatinine 4.1 is high: usually 0.6 to 1.2. Distribution over 3,000 rows, from 0 to 5."
    within = value(NORMAL, within=NORMAL, usual=(0.1, 0.9), words=words)
    for chart in (within, value(HEAVY, words=words), value(numbers(39), within=numbers(39))):
        assert len(chart.svg.encode()) < 3_000
    names = LONG[:8]
    full = RNG.integers(1, 999, (8, 8))
    for more in ({}, {"y_names": names}, {"x_names": names, "y_names": names}):
        chart = pair(full, (9, 9), x=QUANTILES, y=QUANTILES, words=words, **more)
        assert len(chart.svg.encode()) < 8_000


def placed(words):
    """Return where the first letter of a text begins, and where the last ends."""
    text = ET.fromstring(words)
    x, width = float(text.get("x")), text_width(text.text, flagged=bool(text.get("font-weight")))
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
    return left, left + width


@pytest.mark.parametrize("x", [20.0, 60.0, 84.0, 150.0, 216.0, 240.0, 280.0])
def test_a_rows_own_text_is_as_near_to_its_mark_as_the_picture_allows(x):
    left, right = placed(text_near("4.1 mmol/l", x, 13.0, 50.0, 250.0, 12.0))
    half = (right - left) / 2.0
    assert (left + right) / 2.0 == pytest.approx(min(max(x, 50.0 + half), 250.0 - half), abs=0.1)


@pytest.mark.parametrize("free", [-0.1, 0.1])
def test_the_ends_of_a_range_leave_out_what_would_overlap(free):
    low, high = (placed(one) for one in range_ends(("2020", "2026"), 8.0, 292.0, 92.0))
    gap = 6.0 + free
    shown = [*range_ends(("2020", "2026"), 8.0, 292.0, 92.0, (low[1] + gap, high[0] - gap))]
    assert len(shown) == (2 if free > 0 else 0)
