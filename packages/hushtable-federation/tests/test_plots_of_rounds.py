"""Displays of what a site spends, and of its rows by a home model: they draw what they hold."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from hushtable import HushTableError
from hushtable_federation.plots import BudgetDisplay, HomeDisplay


def axes():
    return Figure().subplots()


def test_a_budget_told_apart_without_colours():
    display = BudgetDisplay.from_values([1.0, 1.5], cap=2.0, course=[1.8, 2.1], ax=axes())
    spent, points, ahead, circles, cap = display.ax_.lines
    np.testing.assert_array_equal(spent.get_ydata(), [0.0, 1.0, 1.5])
    np.testing.assert_array_equal(points.get_xydata(), [[1, 1.0], [2, 1.5]])
    np.testing.assert_array_equal(ahead.get_xydata(), [[2, 1.5], [3, 1.8], [4, 2.1]])
    np.testing.assert_array_equal(cap.get_ydata(), [2.0, 2.0])
    assert [line.get_linestyle() for line in (spent, ahead, cap)] == ["-", "--", ":"]
    assert points.get_markerfacecolor() != circles.get_markerfacecolor() == "white"
    said = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert said == ["spent", "forecast", "cap, 2"]
    assert display.ax_.get_ylim() == pytest.approx((0.0, 2.1 * 1.1))
    # Nothing spent, nothing ahead: the cap alone.
    empty = BudgetDisplay.from_values([], cap=1.0, ax=axes())
    assert [len(line.get_xdata()) for line in empty.ax_.lines] == [1, 0, 2]


def test_budgets_that_are_none():
    for spent, cap, course in (([[1.0]], 1.0, ()), ([1.0], 0.0, ()), ([1.0], 1.0, [[1.0]])):
        with pytest.raises(HushTableError, match="a total after each round, and a cap above 0"):
            BudgetDisplay.from_values(spent, cap=cap, course=course)


def test_a_map_draws_some_rows_of_each_kind():
    n = 5_000
    kinds = np.array(["ordinary"] * (n - 3) + ["systematic", "systematic", "outlier"])
    shares, beyond = np.linspace(1.0, 0.001, n), np.linspace(-1.0, 2.0, n)
    display = HomeDisplay(shares, beyond, kinds).plot(axes())
    drawn = {line.get_label(): len(line.get_xdata()) for line in display.ax_.lines[1:]}
    assert drawn == {"ordinary (4,997)": 600, "systematic (2)": 2, "outlier (1)": 1}
    assert display.ax_.xaxis_inverted()
    assert display.ax_.get_xscale() == "log"
