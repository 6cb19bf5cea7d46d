"""Figures of the benchmarks, drawn by matplotlib (extra ``bench``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hushtable.errors import MissingExtraError
from hushtable.plots import EpsilonDisplay
from hushtable_bench import sites as bench_sites
from hushtable_bench.comparison import SystemComparison
from hushtable_bench.privacy import OURS, PAPERS, PRIVATE, THEIRS, AccuracyRun, means
from hushtable_bench.results import Results

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


def privacy_figure(
    runs: Sequence[AccuracyRun], membership: Mapping[str, list[dict[str, float]]], folder: Path
) -> list[Path]:
    """Draw accuracy, and an adversary's success, against epsilon; return the files."""
    figure = pyplot()(figsize=(9.0, 3.4), layout="constrained")

    import matplotlib  # of an extra
    from cycler import cycler

    with matplotlib.rc_context({"axes.prop_cycle": cycler(color=[ROWS, FLAG])}):
        left, middle, right = figure.subplots(1, 3, width_ratios=[3, 3, 2])
        for axes, metric, label in ((left, "auc", "ROC-AUC"), (middle, "ap", "average precision")):
            _accuracy(axes, runs, metric)
            axes.set_xlabel("total ε of one row (δ = $10^{-6}$)", fontsize=9)
            axes.set_ylabel("")
            axes.set_title(f"Mean {label}, %", fontsize=10)
        _membership(right, membership)
        return save(figure, folder, "privacy")


def sites_figure(results: Results, sets: Sequence[str], folder: Path) -> list[Path]:
    """Draw accuracy against the number of sites, a panel for each set; return the files."""
    figure, found = panels(sets, 2.6, 3.0, sharey=True)
    looks = ((ROWS, "o"), (THIRD, "^"), (FLAG, "s"))
    for axes, data in zip(found, sets, strict=False):
        for system, look in zip(bench_sites.CURVES, looks, strict=True):
            curve = results.curve("sites", data, system)
            draw_curve(axes, list(curve), list(curve.values()), look, system)
        axes.set_xscale("log")
        axes.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
        axes.minorticks_off()
        axes.set_xlabel("sites", fontsize=9)
    found[0].set_ylabel("ROC-AUC, %", fontsize=9)
    found[0].legend(fontsize=7.5, loc="lower left", frameon=False)
    return save(figure, folder, "sites")


def growth_figure(curves: Mapping[str, tuple[Sequence[int], Any]], folder: Path) -> list[Path]:
    """Draw the CPU seconds of fit and score against each size; return the files."""
    figure, found = panels([f"by {kind}" for kind in curves], 2.6, 2.8)
    for axes, (sizes, times) in zip(found, curves.values(), strict=True):
        for name, colour, marker in (("fit", ROWS, "o"), ("score", FLAG, "s")):
            axes.plot(sizes, [one[name] for one in times], color=colour, marker=marker, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7, rotation=45)
        axes.yaxis.set_major_formatter("{x:.3g}")
    found[0].set_ylabel("CPU seconds", fontsize=9)
    found[0].legend(fontsize=8, frameon=False)
    return save(figure, folder, "growth")


def _accuracy(axes: Any, runs: Sequence[AccuracyRun], metric: str) -> None:
    found = means(runs, metric)
    epsilons = sorted({r.epsilon for r in runs if r.epsilon})
    systems = {"HushTable": (PRIVATE, OURS), "the paper's": (PAPERS, THEIRS)}
    EpsilonDisplay.from_values(
        epsilons,
        {name: [found[noised, e] for e in epsilons] for name, (noised, _) in systems.items()},
        levels={name: float(found[exact, 0.0].mean()) for name, (_, exact) in systems.items()},
        ax=axes,
    )
    axes.get_legend().remove()
    if metric == "auc":
        axes.legend(fontsize=7.5, loc="lower right", frameon=False)


def _membership(axes: Any, membership: Mapping[str, list[dict[str, float]]]) -> None:
    columns = [c for c in next(iter(membership.values()))[0] if c.startswith("outliers")]
    names = [c.removeprefix("outliers, ") for c in columns]
    for at, column in enumerate(columns):
        heights = [np.mean([f[column] for f in seeds]) for seeds in membership.values()]
        colour = FLAG if at == 0 else ROWS
        offsets = np.linspace(-0.12, 0.12, len(heights))
        axes.plot(at + offsets, heights, "o", color=colour, ms=5, alpha=0.8, mew=0)
    axes.axhline(0.5, color="0.4", ls="--", lw=0.9)
    axes.annotate("guessing", (-0.45, 0.485), va="top", ha="left", fontsize=7.5)
    axes.set_xticks(range(len(columns)), ["raw\ncounts", *(f"ε = {n}" for n in names[1:])])
    axes.set(ylim=(0.35, 1.02), xlim=(-0.5, len(columns) - 0.5))
    axes.set_title("Detecting whether an\noutlier was counted, AUC", fontsize=10)
    axes.set_xlabel("a point for each data set", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def critical_difference_figure(
    comparisons: dict[str, SystemComparison],
    ours: set[str],
    folder: Path,
    name: str = "critical-difference",
) -> list[Path]:
    """Draw mean ranks and, as bars, which systems do not differ (Demsar, 2006)."""
    panels = [_ranks_heights(comparison) for comparison in comparisons.values()]
    heights = [1.0 - bottom for _, bottom in panels]
    size = (9.0, 0.24 * sum(heights) + 0.4 * len(heights))
    figure = pyplot()(figsize=size, layout="constrained")
    found = np.atleast_1d(figure.subplots(len(comparisons), 1, height_ratios=heights))
    for axes, (title, comparison) in zip(found, comparisons.items(), strict=True):
        _ranks_panel(axes, comparison, ours)
        axes.set_title(title, fontsize=10, loc="left")
    return save(figure, folder, name)


def _ranks_heights(comparison: SystemComparison) -> tuple[float, float]:
    """Return where the names begin, below the bars, and where the panel ends."""
    bars = len(_cliques(np.sort(comparison.ranks()), comparison.critical_difference()))
    top = -0.5 - 0.3 * bars
    return top, top - 0.65 * ((len(comparison.systems) + 1) // 2)


def _ranks_panel(axes: Any, comparison: SystemComparison, ours: set[str]) -> None:
    ranks = comparison.ranks()
    order = np.argsort(ranks)
    k = len(order)
    low, high = np.floor(ranks.min()), np.ceil(ranks.max())
    half, (top, bottom) = (k + 1) // 2, _ranks_heights(comparison)
    axes.plot([low, high], [0, 0], color="0.2", lw=1)
    for rank in np.arange(low, high + 1):
        axes.plot([rank, rank], [0, 0.18], color="0.2", lw=1)
        axes.annotate(f"{rank:g}", (rank, 0.3), ha="center", va="bottom", fontsize=8)
    # The better half is named on the left, the rest on the right, the outermost on top.
    for place, at in enumerate(order):
        left = place < half
        height = top - 0.65 * (place if left else k - 1 - place)
        end = low - 0.1 if left else high + 0.1
        colour = ROWS if comparison.systems[at] in ours else "0.25"
        axes.plot([ranks[at], ranks[at], end], [0, height, height], color=colour, lw=0.9)
        name = comparison.systems[at]
        text = f"{name}  {ranks[at]:.1f}" if left else f"{ranks[at]:.1f}  {name}"
        side, away = ("right", -3) if left else ("left", 3)
        axes.annotate(
            text, (end, height), (away, 0), textcoords="offset points",
            ha=side, va="center", fontsize=8, color=colour,
        )  # fmt: skip
    for row, (first, last) in enumerate(_cliques(ranks[order], comparison.critical_difference())):
        height = -0.3 - 0.3 * row
        axes.plot([first - 0.04, last + 0.04], [height, height], color="0.2", lw=2.4)
    wide = 0.28 * (high - low)
    axes.set(xlim=(low - wide, high + wide), ylim=(bottom, 1.0))
    axes.set_axis_off()


def _cliques(ranks: Any, difference: float) -> list[tuple[float, float]]:
    """Return the widest runs of ascending ranks that lie within ``difference``."""
    found: list[tuple[float, float]] = []
    for first in ranks:
        last = ranks[ranks <= first + difference].max()
        if last > first and (not found or last > found[-1][1]):
            found.append((float(first), float(last)))
    return found
