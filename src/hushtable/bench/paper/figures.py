"""The paper's Figures 1 and 2, drawn from results."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from hushtable.bench.figures import pyplot
from hushtable.bench.paper.experiments import LOCAL_SETS, NOISE_SETS
from hushtable.bench.results import Results

__all__ = ["epsilon_figure", "local_figure"]

# Okabe and Ito's colours: told apart by colour-blind readers, and in grey.
_LOOKS = {
    "LSH iTables": ("#0072B2", "o"),
    "RS-H": ("#D55E00", "s"),
    "ACE": ("#009E73", "^"),
    "iForest": ("#E69F00", "D"),
    "LODA": ("#CC79A7", "v"),
}


def local_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 1: local iForest and LODA, and merged LSH iTables; return the files."""
    sets = [name for name in LOCAL_SETS if results.select("local", data=name)]
    figure = pyplot()(figsize=(3.1 * len(sets), 3.0), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(sets), sharey=True))
    for axes, data in zip(panels, sets, strict=True):
        for system, label in (
            ("LSH iTables", "LSH iTables, merged"),
            ("iForest", "iForest, local"),
            ("LODA", "LODA, local"),
        ):
            _line(axes, results, "local", data, system, label)
        axes.set_title(data, fontsize=10)
        axes.set_xlabel("rows of the participant", fontsize=9)
        axes.axhline(50, color="0.4", ls="--", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        if data == sets[0]:
            axes.set_ylabel("ROC-AUC, %", fontsize=9)
            axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    return _save(figure, folder, "figure-1")


def epsilon_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 2: accuracy against the paper's epsilon and the true total; return the files."""
    sets = [name for name in NOISE_SETS if results.select("epsilon", data=name)]
    figure = pyplot()(figsize=(2.7 * len(sets), 3.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(sets)))
    for axes, data in zip(panels, sets, strict=True):
        for system in ("LSH iTables", "RS-H", "ACE"):
            _line(axes, results, "epsilon", data, system, system)
        settings = sorted({row["setting"] for row in results.select("epsilon", data=data)})
        places = [_place(setting) for setting in settings]
        names = [f"{s:g}".lstrip("0") if s < math.inf else "∞" for s in settings]
        axes.set_xticks(places, names, fontsize=8)
        axes.set_title(data, fontsize=10)
        axes.set_xlabel("ε as the paper counts it,\nfor one table", fontsize=9)
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.25 * (high - low), high)  # room for the totals
        totals = _totals(results, data)
        for row, (system, times) in enumerate(totals.items()):
            axes.annotate(
                f"{system}: total {times:.0f} ε",
                (0.97, 0.05 + 0.075 * row),
                xycoords="axes fraction",
                ha="right",
                fontsize=7,
                color=_LOOKS[system][0],
            )
        axes.spines[["top", "right"]].set_visible(False)
        if data == sets[0]:
            axes.set_ylabel("ROC-AUC, %", fontsize=9)
    return _save(figure, folder, "figure-2")


def _totals(results: Results, data: str) -> dict[str, float]:
    found = {}
    for system in ("ACE", "RS-H", "LSH iTables"):
        rows = results.select("epsilon", data=data, system=system)
        times = {r["total_epsilon"] / r["setting"] for r in rows if r["setting"] < math.inf}
        if times:
            found[system] = max(times)
    return found


def _line(axes: Any, results: Results, experiment: str, data: str, system: str, label: str) -> None:
    rows = results.select(experiment, data=data, system=system)
    settings = sorted({row["setting"] for row in rows})
    if not settings:
        return
    values = [np.array([100 * r["auc"] for r in rows if r["setting"] == s]) for s in settings]
    x = [_place(s) for s in settings] if experiment == "epsilon" else settings
    mean, spread = np.array([v.mean() for v in values]), np.array([v.std() for v in values])
    colour, marker = _LOOKS[system]
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
    axes.plot(x, mean, color=colour, marker=marker, ms=4, label=label)


def _place(epsilon: float) -> float:
    """Where an epsilon stands on the axis: infinity one step behind the last."""
    return 1000 * epsilon if epsilon < math.inf else 5.0


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    files = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    for file in files:
        figure.savefig(file, dpi=200)
    return files
