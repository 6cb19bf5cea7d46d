"""The paper's Figures 1 and 2, drawn from results."""

import math
from pathlib import Path
from typing import Any

from hushtable_bench.figures import FLAG, ROWS, THIRD, draw_curve, panels, save
from hushtable_bench.paper.experiments import LOCAL_SETS, NOISE_SETS
from hushtable_bench.paper.tables import true_total
from hushtable_bench.results import Results

# The last two are Okabe and Ito's: distinct to colour-blind readers, and in grey.
_LOOKS = {
    "LSH iTables": (ROWS, "o"),
    "RS-H": (FLAG, "s"),
    "ACE": (THIRD, "^"),
    "iForest": ("#E69F00", "D"),
    "LODA": ("#CC79A7", "v"),
}


def local_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 1: local iForest and LODA, and merged LSH iTables; return the files."""
    sets = [name for name in LOCAL_SETS if results.select("local", data=name)]
    figure, found = panels(sets, 3.1, 3.0, sharey=True)
    for axes, data in zip(found, sets, strict=True):
        for system, where in (("LSH iTables", "merged"), ("iForest", "local"), ("LODA", "local")):
            curve = results.curve("local", data, system)
            label = f"{system}, {where}"
            draw_curve(axes, list(curve), list(curve.values()), _LOOKS[system], label)
        axes.set_xlabel("rows of the participant", fontsize=9)
        axes.axhline(50, color="0.4", ls="--", lw=0.8)
    found[0].set_ylabel("ROC-AUC, %", fontsize=9)
    found[0].legend(fontsize=7.5, frameon=False, loc="lower right")
    return save(figure, folder, "figure-1")


def epsilon_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 2: accuracy against the paper's epsilon and the true total; return the files."""
    sets = [name for name in NOISE_SETS if results.select("epsilon", data=name)]
    figure, found = panels(sets, 2.7, 3.2)
    for axes, data in zip(found, sets, strict=True):
        _epsilon_panel(axes, results, data)
    found[0].set_ylabel("ROC-AUC, %", fontsize=9)
    return save(figure, folder, "figure-2")


def _epsilon_panel(axes: Any, results: Results, data: str) -> None:
    settings = sorted({row["setting"] for row in results.select("epsilon", data=data)})
    for system in ("LSH iTables", "RS-H", "ACE"):
        curve = results.curve("epsilon", data, system)
        if curve:
            places = [_place(epsilon) for epsilon in curve]
            draw_curve(axes, places, list(curve.values()), _LOOKS[system], system)
    names = [f"{s:g}".lstrip("0") if s < math.inf else "∞" for s in settings]
    axes.set_xticks([_place(setting) for setting in settings], names, fontsize=8)
    axes.set_xlabel("ε as the paper counts it,\nfor one table", fontsize=9)
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.25 * (high - low), high)  # room for the totals
    totals = {name: true_total(results, data, name) for name in ("ACE", "RS-H", "LSH iTables")}
    for row, system in enumerate(name for name, total in totals.items() if total):
        axes.annotate(
            f"{system}: total {totals[system]:.0f} ε", (0.97, 0.05 + 0.075 * row),
            xycoords="axes fraction", ha="right", fontsize=7, color=_LOOKS[system][0],
        )  # fmt: skip


def _place(epsilon: float) -> float:
    """Where an epsilon stands on the axis: infinity one step behind the last."""
    return 1000 * epsilon if epsilon < math.inf else 5.0
