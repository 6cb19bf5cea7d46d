"""Charts of lines: round ticks, names above, and nothing outside the picture."""

import re
import xml.etree.ElementTree as ET

import numpy as np
from markupsafe import Markup

from hushtable.charts.drawing import WIDTH, text_width
from hushtable_desk.lines import ChartLine, LineChart

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


def test_numbers_of_all_sizes_can_be_drawn():
    for size in (5e-324, 1e-300, 1e-7, 0.1, 1.0, 1e6, 1e12, 1e300):
        drawn(LineChart([ChartLine("a", np.array([-0.3, 0.2, 1.0]) * size)], "a", width=640.0))
        drawn(LineChart([ChartLine("a", [1, 2], np.array([0.0, 1.0]) * size)], "a"))
    drawn(LineChart([ChartLine("a", [-1.7e308, 1.7e308])], "a"))
