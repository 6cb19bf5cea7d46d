"""Charts of lines: round ticks, names at the ends, and nothing outside the picture."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from markupsafe import Markup

from hushtable.charts.drawing import ROWS, WIDTH, text_width
from hushtable.errors import UsageError
from hushtable_desk.lines import ChartLine, LineChart, thinned

RNG = np.random.default_rng(5)


def drawn(chart):
    """Return the picture as parsed XML, in which no number is missing and no text sticks out."""
    assert isinstance(chart.svg, Markup)
    assert not re.search(r"nan|inf\b", re.sub(r'aria-label="[^"]*"|>[^<]*<', "", chart.svg))
    picture = ET.fromstring(chart.svg)
    _, _, width, height = map(float, picture.get("viewBox").split())
    for left, right, y, words in boxes(picture):
        assert left >= -0.5, words
        assert right <= width + 0.5, words
        assert 8.0 < y < height, words
    return picture


def boxes(picture):
    """Yield left, right, baseline and words of each text."""
    for part in picture.iter("text"):
        x, anchor = float(part.get("x")), part.get("text-anchor", "start")
        size = text_width(part.text, flagged=part.get("font-weight") is not None)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * size
        yield left, left + size, float(part.get("y")), part.text


def line_of(picture, colour=ROWS):
    (path,) = (p.get("d") for p in picture.iter("path") if p.get("stroke") == colour)
    return path


def overlapping(picture):
    found = sorted(boxes(picture))
    return [
        (a[3], b[3])
        for k, a in enumerate(found)
        for b in found[k + 1 :]
        if b[0] < a[1] - 0.5 and abs(a[2] - b[2]) < 11.0
    ]


def test_labels_never_overlap():
    months = [f"{2020 + k // 12}-{k % 12 + 1:02}" for k in range(60)]
    for n in (1, 2, 3, 7, 12, 30, 60):
        for width in (WIDTH, 640.0):
            line = ChartLine("mean", RNG.normal(5, 1, n))
            for labels in (months[:n], ["a very long label"] * n):
                picture = drawn(LineChart([line], "mean", labels=labels, width=width))
                assert not overlapping(picture)


def test_names_at_the_ends_keep_clear_of_each_other():
    for _ in range(30):
        ends = RNG.normal(10, RNG.choice([0.01, 1.0, 20.0]), 4)
        lines = [ChartLine(f"line {k}", [10.0, 12.0, end]) for k, end in enumerate(ends)]
        assert not overlapping(drawn(LineChart(lines, "four", up="mean", across="rounds")))


def test_ten_thousand_points_are_thinned_and_keep_their_extremes():
    y = RNG.normal(size=10_000).cumsum()
    y[1234], y[8765] = 400.0, -400.0
    path = line_of(drawn(LineChart([ChartLine("walk", y)], "walk")))
    assert path.count("L") < 700
    places, numbers = thinned(np.arange(10_000.0), y, 600)
    assert numbers.max() == 400.0
    assert numbers.min() == -400.0
    assert (places[0], places[-1]) == (0, 9_999)
    assert (np.diff(places) > 0).all()
    assert len(places) <= 600
    assert len(thinned(np.zeros(10_000), np.sort(y), 600)[0]) == 2
    assert thinned(places, numbers, 600)[1] is numbers  # short already


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "0 lines"),
        ([ChartLine("a", [1])] * 5, "5 lines"),
        ([ChartLine("a", [1, math.nan])], "NaN"),
        ([ChartLine("a", [1, math.inf])], "infinite"),
        ([ChartLine("a", [1, 2], [1])], "as many places"),
        ([ChartLine("a", [])], "one number or more"),
        ([ChartLine("a", [[1]])], "one number or more"),
        ([ChartLine("a", [1, 2], [2, 1])], "sort its places"),
        ([ChartLine("a", [1], marked=(1,))], "marks"),
        ([ChartLine("a", [-1.7e308, 1.7e308])], "too far apart"),
    ],
)
def test_what_cannot_be_drawn_is_refused(lines, message):
    with pytest.raises(UsageError, match=message), np.errstate(over="ignore"):
        LineChart(lines, "words")


def test_a_place_without_a_label_is_refused():
    with pytest.raises(UsageError, match="without a label"):
        LineChart([ChartLine("a", [1, 2, 3])], "words", labels=["Jan", "Feb"])


def test_numbers_of_all_sizes_can_be_drawn():
    for size in (5e-324, 1e-300, 1e-7, 0.1, 1.0, 1e6, 1e12, 1e300):
        drawn(LineChart([ChartLine("a", np.array([-0.3, 0.2, 1.0]) * size)], "a", width=640.0))
        drawn(LineChart([ChartLine("a", [1, 2], np.array([0.0, 1.0]) * size)], "a"))
