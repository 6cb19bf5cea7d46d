"""Charts of every kind are drawn as in the pictures that somebody has looked at.

``golden/charts.html`` shows all of them in a browser. To write it anew after an intended change:
``HUSHTABLE_WRITE_GOLDEN=1 pytest packages/hushtable/tests/test_golden_charts.py``.
"""

import html
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from hushtable.charts.values import SharesChart, ValueChart

GOLDEN = Path(__file__).parent / "golden" / "charts.html"

PLACES = np.linspace(-4, 4, 1_020)
NORMAL = np.round(60 * np.exp(-(PLACES**2) / 2))
CONTEXT = np.round(25 * np.exp(-((PLACES + 1) ** 2) / 0.2))
HEAVY = np.round(900 / (1 + np.arange(1_020.0)) ** 1.5)


def numbers(high):
    """Return the cells of whole numbers from 0 to high, one row each."""
    return np.histogram(np.arange(high + 1.0), 1_020, (0, high))[0]


def value(cells, at=0.5, text="4.1", ends=("0", "10"), **more):
    return ValueChart(np.asarray(cells), at, text, ends, words="a value", **more)


def shares(names, parts, own):
    return SharesChart(names, parts, own, "shares")


def one_cell(k, n=1_020):
    return np.eye(1, n, k)[0]


PAYMENTS = list(np.linspace(0.09, 0.01, 20))
DEPARTMENTS = [f"Department {k} of the hospital" for k in range(20)]

PICTURES = {
    "value": value(NORMAL, usual=(0.25, 0.75)),
    "value with a heavy tail": value(HEAVY),
    "value: heights are square roots": value([100, 25, 4, 0, 1]),
    "value: twelve whole numbers": value(numbers(11)),
    "value: 96 whole numbers": value(numbers(95)),
    "value: 240 whole numbers": value(numbers(239)),
    "value: one row": value(one_cell(700)),
    "value at its lowest": value(NORMAL, at=0.0, usual=(0.0, 0.0)),
    "value below": value(NORMAL, at=-0.01, usual=(-3.0, 9.0)),
    "value above": value(NORMAL, at=1.01),
    "value at infinity": value(NORMAL, at=math.inf),
    "value within a context": value(NORMAL, within=CONTEXT),
    "value within a context without rows": value(NORMAL, within=np.zeros(1_020)),
    "value within a context outside": value(numbers(11) * (PLACES < 3.9), within=one_cell(1_019)),
    "value of a constant column": value(
        one_cell(0) * 400, at=0.0, usual=(0.0, 0.0), ends=("5", "5"), text="5"
    ),
    "value beyond a constant column": value(
        one_cell(0) * 400, at=math.inf, within=one_cell(0), ends=("5", "5"), text="5"
    ),
    "value without rows": value(np.zeros(34), at=0.25, within=np.zeros(34)),
    "shares of twenty": shares(DEPARTMENTS, PAYMENTS, 17),
    "shares of six": shares(list("abcdef"), [1 / 6] * 6, 0),
    "shares of seven": shares(list("abcdefg"), [1 / 7] * 7, 0),
    "shares in their order": shares(["1", "2", "3", "33"], [0.1, 0.5, 0.4, 0.0], 3),
    "shares: a tiny one": shares(["no", "yes"], [1 - 1e-9, 1e-9], 1),
    "shares of nothing": shares(["no", "yes"], [0.0, 0.0], 1),
}  # fmt: skip


def written(name):
    return f"<h2>{html.escape(name)}</h2>\n{PICTURES[name].svg}\n"


@pytest.fixture(scope="module")
def golden():
    """Return the pictures of the file by name."""
    if os.environ.get("HUSHTABLE_WRITE_GOLDEN"):
        GOLDEN.write_text("<!DOCTYPE html>\n" + "".join(map(written, PICTURES)), "utf-8")
    parts = re.split(r"^(?=<h2>)", GOLDEN.read_text("utf-8"), flags=re.MULTILINE)
    return {html.unescape(re.match("<h2>(.*)</h2>", part)[1]): part for part in parts[1:]}


@pytest.mark.parametrize("name", PICTURES)
def test_a_chart_is_drawn_as_in_its_picture(name, golden):
    assert written(name) == golden[name]


def test_every_picture_is_looked_at(golden):
    assert set(golden) == set(PICTURES)
