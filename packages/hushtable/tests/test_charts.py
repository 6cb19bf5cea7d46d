"""Charts of single rows: each mark where it belongs, and nothing but text in the texts."""

import math
import re
import string
import xml.etree.ElementTree as ET
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from markupsafe import Markup

from hushtable.charts.drawing import FLAG, ROWS, WHOLE, WIDTH, cut, text_width
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


def arrows(picture):
    return [p.get("transform") for p in picture.iter("path") if p.get("transform")]


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
CONTEXT = np.histogram(RNG.normal(-1, 0.3, 900), 1_020, (-3.5, 3.5))[0]
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


def test_heights_are_square_roots():
    heights = [high for *_, high in bars(drawn(value([100, 25, 4, 0, 1])))]
    assert heights == pytest.approx([56.0, 28.0, 11.2, 5.6])


def test_each_whole_number_has_its_bar_where_it_lies():
    found = bars(drawn(value(numbers(11))))
    assert len(found) == 12
    middles = [(left + right) / 2.0 for left, right, _ in found]
    assert middles == pytest.approx([8.0 + 284.0 * k / 11.0 for k in range(12)], abs=0.3)


@pytest.mark.parametrize("high", [95, 119, 239])
def test_bars_take_in_as_many_whole_numbers_each(high):
    heights = {high for *_, high in bars(drawn(value(numbers(high))))}
    assert heights == {56.0}


def test_a_context_and_all_rows_reach_the_top_each():
    picture = drawn(value(NORMAL, within=CONTEXT))
    front, behind = bars(picture, ROWS), bars(picture, WHOLE)
    assert max(high for *_, high in front) == max(high for *_, high in behind) == 56.0
    assert front[0][0] > behind[0][0]
    assert min(left for left, *_ in front) < 150.0 > max(right for _, right, _ in front)
    # All rows lie behind, and their outline in front.
    order = [path.get("fill") for path in picture.iter("path")][:3]
    assert order == [WHOLE, ROWS, "none"]


def test_a_context_without_rows_leaves_all_rows():
    picture = drawn(value(NORMAL, within=np.zeros(1_020)))
    assert bars(picture, WHOLE)
    assert not bars(picture, ROWS)


def test_a_context_outside_of_the_other_rows_is_seen():
    whole, within = numbers(11), np.eye(1, 1_020, 1_019)[0]
    whole[-1] = 0
    picture = drawn(value(whole, within=within))
    assert len(bars(picture, WHOLE)) == 11
    ((left, right, _),) = bars(picture, ROWS)
    assert left < 292.0 < right


@pytest.mark.parametrize(
    ("at", "x", "side"),
    [
        (0.0, 8.0, None), (0.25, 79.0, None), (1.0, 292.0, None),
        (-0.01, 8.0, 180), (1.01, 292.0, 0), (math.inf, 292.0, 0), (-math.inf, 8.0, 180),
    ],
)  # fmt: skip
def test_the_value_stands_at_its_place_or_at_the_edge(at, x, side):
    picture = drawn(value(NORMAL, at=at))
    assert mark(picture) == x
    assert arrows(picture) == ([] if side is None else [f"translate({x:g} 26)rotate({side})"])


def test_the_usual_range_lies_under_the_bars():
    picture = drawn(value(NORMAL, usual=(0.25, 0.75)))
    assert paths(picture, ROWS)[1] == "M79 80H221v4H79z"
    assert texts(picture)["usual"].get("x") == "150"
    # A narrow one is still seen, and has no name where that would run into an end.
    narrow = drawn(value(NORMAL, usual=(0.0, 0.0)))
    assert paths(narrow, ROWS)[1] == "M6 80H10v4H6z"
    assert set(texts(narrow)) == {"4.1", "0", "10"}


def test_the_usual_range_may_reach_beyond():
    assert paths(drawn(value(NORMAL, usual=(-3.0, 9.0))), ROWS)[1] == "M8 80H292v4H8z"


def test_a_constant_column_stands_in_the_middle():
    constant = {"cells": np.eye(1, 1_020)[0] * 400, "ends": ("5", "5"), "text": "5"}
    picture = drawn(value(**constant, at=0.0, usual=(0.0, 0.0)))
    ((left, right, high),) = bars(picture)
    assert (left + right) / 2.0 == mark(picture) == 150.0
    assert high == 56.0
    labels = [(part.text, part.get("x")) for part in picture.iter("text")]
    assert labels == [("5", "150"), ("5", "150")]
    beyond = drawn(value(**constant, at=math.inf, within=constant["cells"]))
    assert mark(beyond) == 292.0
    assert len(bars(beyond, WHOLE)) == len(bars(beyond, ROWS)) == 1


def test_counts_of_nothing_leave_the_value():
    picture = drawn(value(np.zeros(34), at=0.25, within=np.zeros(34)))
    assert not bars(picture)
    assert not bars(picture, WHOLE)
    assert mark(picture) == 79.0


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


def shares(picture):
    """Return name, percentage and (left, right, colour) of each line of a shares chart."""
    lines = [part.text for part in picture.iter("text")]
    found = [
        (re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)v13H[\d.]+z", path.get("d")), path.get("fill"))
        for path in picture.iter("path")
    ]
    marks = [(float(path[1]), float(path[2]), colour) for path, colour in found if path]
    return list(zip(lines[::2], lines[1::2], strict=True)), marks


def test_at_most_six_bars_one_of_them_the_rows_own():
    parts = np.linspace(0.09, 0.01, 20)
    lines, marks = shares(drawn(SharesChart(LONG, list(parts), 17, "department")))
    assert len(lines) == len(marks) == 6
    assert [colour for *_, colour in marks] == [ROWS] * 4 + [FLAG, WHOLE]
    assert lines[4][1] == percent(parts[17])
    rest = parts[[*range(4, 17), 18, 19]].sum()
    assert lines[5] == ("15 others", percent(rest))
    lengths = [right - left for left, right, _ in marks]
    assert lengths[1] / lengths[0] == pytest.approx(parts[1] / parts[0], abs=0.01)
    assert lengths[5] == max(lengths)


@pytest.mark.parametrize(("n", "others"), [(1, None), (6, None), (7, "2 others"), (9, "4 others")])
def test_no_single_value_is_called_others(n, others):
    lines, _ = shares(drawn(SharesChart(list("abcdefghi"[:n]), [1 / n] * n, 0, "")))
    assert len(lines) == min(n, 6)
    assert lines[-1][0] == (others or "abcdefghi"[n - 1])


def test_bars_keep_the_order_of_their_names():
    lines, marks = shares(drawn(SharesChart(["1", "2", "3", "33"], [0.1, 0.5, 0.4, 0.0], 3, "")))
    assert [name for name, _ in lines] == ["1", "2", "3", "33"]
    assert lines[-1] == ("33", "0%")
    assert len(marks) == 3, "a share of 0 has no bar"


def test_a_tiny_share_is_seen():
    _, marks = shares(drawn(SharesChart(["no", "yes"], [1 - 1e-9, 1e-9], 1, "")))
    assert marks[1][1] - marks[1][0] == pytest.approx(2.0)


def test_shares_of_nothing_leave_the_names():
    lines, marks = shares(drawn(SharesChart(["no", "yes"], [0.0, 0.0], 1, "")))
    assert lines == [("no", "0%"), ("yes", "0%")]
    assert not marks


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


def test_a_heavy_tail_leaves_room_for_the_other_cells():
    found = rects(drawn(pair(np.ones((8, 8)), (1, 1), x=QUANTILES, y=QUANTILES)))
    widths, heights = found[::8, 2], found[:8, 3]
    assert widths.min() > 0.06 * widths.sum()
    assert heights.min() > 0.06 * heights.sum()
    assert widths[-1] == widths.max() < 0.55 * widths.sum()


def test_even_edges_give_even_cells():
    found = rects(drawn(pair(np.ones((8, 8)), (1, 1))))
    assert np.ptp(found[:, 2]) < 0.2
    assert np.ptp(found[:, 3]) < 0.2


@pytest.mark.parametrize("k", [0, 2, 4])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_the_ring_lies_in_the_middle_of_a_category(k, part):
    names = ["Fair", "Good", "Very good", "Premium", "Ideal"]
    picture = drawn(pair(np.ones((5, 5)), (k + part, k + part), x_names=names, y_names=names))
    left, top, width, height, _ = rects(picture)[5 * k + k]
    assert ring(picture) == pytest.approx((left + width / 2.0, top + height / 2.0), abs=0.2)
    own = [part for part in picture.iter("text") if part.text == names[k]]
    assert [part.get("font-weight") for part in own] == ["600", "600"]


@pytest.mark.parametrize("turned", [False, True])
def test_categories_beside_a_number_stand_at_the_left(turned):
    names, counts = ["surgery", "geriatrics", "paediatrics"], np.zeros((4, 3))
    counts[3, 1] = 5
    if turned:
        chart = pair(counts.T, (1, 3.5), x_names=names, labels=("ward geriatrics", "age 80"))
    else:
        chart = pair(counts, (3.5, 1), y_names=names, labels=("age 80", "ward geriatrics"))
    picture = drawn(chart)
    ((left, top, width, height, _),) = rects(picture)
    x, y = ring(picture)
    assert left < x < left + width
    assert top < y < top + height
    assert left > 250.0 - width, "the fourth of four cells lies at the right"
    found = texts(picture)
    heights = [float(found[name].get("y")) for name in names]
    assert heights == sorted(heights), "the first category is on top"
    assert heights[1] == pytest.approx(y + 4.0, abs=0.1)
    assert float(found["age 80"].get("y")) > heights[2]


def test_every_cell_with_rows_is_seen_and_no_other():
    counts = np.zeros((8, 8))
    counts[0, 0], counts[3, 5], counts[7, 7] = 1e9, 1.0, 250.0
    found = rects(drawn(pair(counts, (1, 1), x=QUANTILES, y=QUANTILES)))
    assert len(found) == 3
    assert found[:, 4].max() == 1.0
    assert found[:, 4].min() >= 0.15
    assert (found[:, 2:4] >= 1.0).all()


def test_opacity_is_the_square_root_of_rows_by_area():
    found = rects(drawn(pair([[16.0, 4.0], [16.0, 9.0]], (1, 1), x=[0, 1, 1_001])))
    areas = (found[:, 2] + 1.0) * (found[:, 3] + 1.0)
    density = np.array([16.0, 4.0, 16.0, 9.0]) / areas
    assert areas[2] > 2.0 * areas[0]
    assert found[:, 4] == pytest.approx(np.sqrt(density / density.max()), abs=0.01)


@pytest.mark.parametrize(
    ("at", "degrees"),
    [((-1, 4), {180}), ((9, 4), {0}), ((4, -1), {90}), ((4, 9), {-90}), ((math.inf, 99), {0, -90})],
)
def test_a_pair_beyond_its_ranges_lies_at_the_edge(at, degrees):
    picture = drawn(pair(np.ones((8, 8)), at))
    found, (x, y) = rects(picture), ring(picture)
    left, right = found[:, 0].min() - 0.5, (found[:, 0] + found[:, 2]).max() + 0.5
    top, bottom = found[:, 1].min() - 0.5, (found[:, 1] + found[:, 3]).max() + 0.5
    assert x == pytest.approx(left + (right - left) * min(max(at[0] / 8.0, 0.0), 1.0), abs=0.2)
    assert y == pytest.approx(bottom - (bottom - top) * min(max(at[1] / 8.0, 0.0), 1.0), abs=0.2)
    turns = {int(re.search(r"rotate\((-?\d+)\)", arrow)[1]) for arrow in arrows(picture)}
    assert turns == degrees
    width, height = map(float, picture.get("viewBox").split()[2:])
    assert 15.0 < x < width - 15.0 + 1e-9
    assert 15.0 < y < height - 15.0


def test_an_unknown_category_lies_beyond_the_last():
    picture = drawn(pair(np.ones((2, 2)), (2, 0), y_names=["a", "b"], x_names=["c", "d"]))
    assert [arrow.endswith("rotate(0)") for arrow in arrows(picture)] == [True]


def test_a_range_of_one_value_has_it_in_the_middle():
    picture = drawn(pair([[7.0]], (5, 5), x=[5, 5], y=[5, 5], ends=(("5", "5"), ("5", "5"))))
    ((left, top, width, height, _),) = rects(picture)
    assert ring(picture) == pytest.approx((left + width / 2, top + height / 2), abs=0.2)


def test_pairs_of_nothing_leave_the_ring():
    picture = drawn(pair(np.zeros((3, 3)), (1.5, 1.5)))
    assert not len(rects(picture))
    assert ring(picture)


def test_the_span_of_all_numbers():
    top = np.finfo(float).max
    picture = drawn(pair(np.ones((2, 2)), (0, 0), x=[-top, 0, top], y=[-top, 0, top]))
    assert rects(picture)[0][2] == pytest.approx(rects(picture)[3][2], abs=0.2)


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


@pytest.mark.parametrize("names", [["no", "yes"], ["I1", "VVS2", "IF"], ["male", "female"]])
def test_short_names_are_whole(names):
    square = np.ones((len(names), len(names)))
    for k in range(len(names)):
        for chart in (
            SharesChart(names, [0.5] * len(names), k, ""),
            pair(square, (k, k), x_names=names, y_names=names),
        ):
            assert set(names) <= set(texts(drawn(chart)))


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


def test_lengths_have_one_decimal():
    for chart in charts("plain"):
        lengths = re.findall(r"\d+\.\d+", " ".join(re.findall(r'\bd="([^"]*)"', chart.svg)))
        assert all(len(length.partition(".")[2]) == 1 for length in lengths)


def test_colours_are_those_of_the_page():
    for chart in charts("plain"):
        colours = set(re.findall(r'(?:fill|stroke)="([^"]*)"', chart.svg))
        assert all(re.fullmatch(r"none|currentColor|var\(--\w+,[#\w]+\)", one) for one in colours)


def test_charts_are_frozen():
    with pytest.raises(FrozenInstanceError):
        value([1]).at = 2.0
