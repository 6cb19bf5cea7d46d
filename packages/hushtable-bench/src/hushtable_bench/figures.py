"""Figures of the benchmarks, drawn by matplotlib (extra ``bench``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hushtable.errors import MissingExtraError
from hushtable.plots import EpsilonDisplay
from hushtable_bench.privacy import OURS, PAPERS, PRIVATE, THEIRS, AccuracyRun, means

#: The report's colours for rows and for unusual values, and a third one: distinct for
#: colour-blind readers, and dark enough on white for letters.
ROWS, FLAG, THIRD = "#1f6fb2", "#c2410c", "#00795a"


def pyplot() -> Any:
    """Return matplotlib's figure class, which needs no display; raise if it is missing."""
    try:
        from matplotlib.figure import Figure  # of an extra
    except ImportError:
        raise MissingExtraError("the figure", "matplotlib", "bench") from None
    return Figure


def panels(titles: Sequence[str], width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """Return a figure and its panels side by side, each with a title."""
    figure = pyplot()(figsize=(width * max(1, len(titles)), height), layout="constrained")
    found = np.atleast_1d(figure.subplots(1, max(1, len(titles)), **options))
    for axes, title in zip(found, titles, strict=False):
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, found


def draw_curve(
    axes: Any, x: Sequence[float], values: Sequence[Any], look: tuple[str, str], label: str
) -> None:
    """Draw means, and a band of one standard deviation around them."""
    mean, deviation = (np.array([f(v) for v in values]) for f in (np.mean, np.std))
    colour, marker = look
    axes.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.15, lw=0)
    axes.plot(x, mean, color=colour, marker=marker, ms=4, label=label)


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG; return the files."""
    files = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    for file in files:
        figure.savefig(file, dpi=200)
    return files


def privacy_figure(runs: Sequence[AccuracyRun], folder: Path) -> list[Path]:
    """Draw accuracy against epsilon; return the files."""
    figure = pyplot()(figsize=(7.0, 3.4), layout="constrained")

    import matplotlib  # of an extra
    from cycler import cycler

    with matplotlib.rc_context({"axes.prop_cycle": cycler(color=[ROWS, FLAG])}):
        left, right = figure.subplots(1, 2)
        for axes, metric, label in ((left, "auc", "ROC-AUC"), (right, "ap", "average precision")):
            _accuracy(axes, runs, metric)
            axes.set_xlabel("total ε of one row (δ = $10^{-6}$)", fontsize=9)
            axes.set_ylabel("")
            axes.set_title(f"Mean {label}, %", fontsize=10)
        return save(figure, folder, "privacy")


def growth_figure(curves: Mapping[str, tuple[Sequence[int], Any]], folder: Path) -> list[Path]:
    """Draw the CPU seconds of fit and score against each size; return the files."""
    figure, plots = panels([f"by {kind}" for kind in curves], 2.6, 2.8)
    for axes, (sizes, times) in zip(plots, curves.values(), strict=True):
        for name, colour, marker in (("fit", ROWS, "o"), ("score", FLAG, "s")):
            axes.plot(sizes, [run[name] for run in times], color=colour, marker=marker, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7, rotation=45)
        axes.yaxis.set_major_formatter("{x:.3g}")
    plots[0].set_ylabel("CPU seconds", fontsize=9)
    plots[0].legend(fontsize=8, frameon=False)
    return save(figure, folder, "growth")


def _accuracy(axes: Any, runs: Sequence[AccuracyRun], metric: str) -> None:
    mean = means(runs, metric)
    epsilons = sorted({r.epsilon for r in runs if r.epsilon})
    systems = {"HushTable": (PRIVATE, OURS), "the paper's": (PAPERS, THEIRS)}
    EpsilonDisplay.from_values(
        epsilons,
        {name: [mean[noised, e] for e in epsilons] for name, (noised, _) in systems.items()},
        levels={name: float(mean[exact, 0.0].mean()) for name, (_, exact) in systems.items()},
        ax=axes,
    )
    axes.get_legend().remove()
    if metric == "auc":
        axes.legend(fontsize=7.5, loc="lower right", frameon=False)
