"""The critical-difference diagram."""

from pathlib import Path
from typing import Any

import numpy as np

from hushtable.bench.adbench.compare import Comparison
from hushtable.bench.figures import pyplot, save

_OURS, _THEIRS = "#0072B2", "0.25"


def critical_difference_figure(
    comparisons: dict[str, Comparison], ours: set[str], folder: Path
) -> list[Path]:
    """Draw mean ranks and, as bars, which systems do not differ (Demsar, 2006)."""
    figure = pyplot()(figsize=(9.0, 2.1 * len(comparisons)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(comparisons), 1))
    for axes, (title, comparison) in zip(panels, comparisons.items(), strict=True):
        _panel(axes, comparison, ours)
        axes.set_title(title, fontsize=10, loc="left")
    return save(figure, folder, "critical-difference")


def _panel(axes: Any, comparison: Comparison, ours: set[str]) -> None:
    ranks = comparison.ranks()
    order = np.argsort(ranks)
    k = len(order)
    low, high = np.floor(ranks.min()), np.ceil(ranks.max())
    half = (k + 1) // 2
    axes.plot([low, high], [0, 0], color="0.2", lw=1)
    for rank in np.arange(low, high + 1):
        axes.plot([rank, rank], [0, 0.18], color="0.2", lw=1)
        axes.annotate(f"{rank:g}", (rank, 0.3), ha="center", va="bottom", fontsize=8)
    # The better half is named on the left, the rest on the right, the outermost on top.
    for place, at in enumerate(order):
        left = place < half
        height = -1.0 - 0.62 * (place if left else k - 1 - place)
        end = low - 0.1 if left else high + 0.1
        colour = _OURS if comparison.systems[at] in ours else _THEIRS
        axes.plot([ranks[at], ranks[at], end], [0, height, height], color=colour, lw=0.9)
        name = comparison.systems[at]
        text = f"{name}  {ranks[at]:.1f}" if left else f"{ranks[at]:.1f}  {name}"
        side = "right" if left else "left"
        axes.annotate(text, (end, height), ha=side, va="center", fontsize=8, color=colour)
    for row, (first, last) in enumerate(_cliques(ranks[order], comparison.critical_difference())):
        height = -0.25 - 0.17 * (row % 4)
        axes.plot([first - 0.04, last + 0.04], [height, height], color="0.2", lw=2.4)
    axes.set(xlim=(low - 2.2, high + 2.2), ylim=(-1.4 - 0.62 * half, 1.0))
    axes.set_axis_off()


def _cliques(ranks: Any, difference: float) -> list[tuple[float, float]]:
    """Return the widest runs of ascending ranks that lie within ``difference``."""
    found: list[tuple[float, float]] = []
    for first in ranks:
        last = ranks[ranks <= first + difference].max()
        if last > first and (not found or last > found[-1][1]):
            found.append((float(first), float(last)))
    return found
