"""The display of rows by a home model draws what it holds."""

import numpy as np
from matplotlib.figure import Figure

from hushtable_federation.plots import HomeDisplay


def axes():
    return Figure().subplots()


def test_a_map_draws_some_rows_of_each_kind():
    n = 5_000
    kinds = np.array(["ordinary"] * (n - 3) + ["systematic", "systematic", "outlier"])
    shares, beyond = np.linspace(1.0, 0.001, n), np.linspace(-1.0, 2.0, n)
    display = HomeDisplay(shares, beyond, kinds).plot(axes())
    drawn = {line.get_label(): len(line.get_xdata()) for line in display.ax_.lines[1:]}
    assert drawn == {"ordinary (4,997)": 600, "systematic (2)": 2, "outlier (1)": 1}
    assert display.ax_.xaxis_inverted()
    assert display.ax_.get_xscale() == "log"
