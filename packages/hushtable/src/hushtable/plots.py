"""Plots of scores, reasons, and accuracy; by scikit-learn's convention for displays.

A display holds the numbers of a picture. ``plot`` draws them with matplotlib, which is imported
only then. Reports and lists have pictures of their own: see `charts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import MissingExtraError, UsageError
from hushtable.lazy import exports

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["EpsilonDisplay", "ExplanationDisplay", "ScoreDisplay"]

__getattr__, _ = exports(__name__, {})


class Display:
    """Holds the numbers of a picture, and the axes in which it is drawn: ``ax_``, ``figure_``."""

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise MissingExtraError(f"{type(self).__name__}.plot", "matplotlib") from None
            _, ax = pyplot.subplots()
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ScoreDisplay(Display):
    """Distribution of outlier scores, with the threshold below which rows are outliers.

    Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,), int64
        Rows in each bin.
    edges : ndarray of shape (n_bins + 1,), float64
        Edges of the bins. The threshold is one of them, so that a bin contains either only outliers
        or none.
    threshold : float, default=nan
        Rows with a lower score are outliers; NaN if there is none.
    unit : str, default=""
        Unit of the scores.

    Examples
    --------
    >>> from hushtable.plots import ScoreDisplay
    >>> display = ScoreDisplay.from_predictions([1.0, 4.0, 5.0, 5.0], threshold=2.0, bins=4)
    >>> display.counts
    array([1, 0, 0, 3])
    """

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]
    _: KW_ONLY
    threshold: float = float("nan")
    unit: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, bins: int | None = None, ax: "Axes | None" = None
    ) -> Self:
        """Score rows and draw the scores.

        Parameters
        ----------
        estimator : fitted outlier detector
            A detector of hushtable, or any with ``score_samples`` and ``offset_``.
        X : array, data frame, Arrow object or path
            Rows.
        bins : int, optional
            As in `from_predictions`.
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """
        plan = getattr(estimator, "plan_", None)
        unit = "" if plan is None else str(plan.score.unit)
        scores, threshold = estimator.score_samples(X), estimator.offset_
        return cls.from_predictions(scores, threshold=threshold, unit=unit, bins=bins, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        bins: int | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers; NaN if there is none.
        unit : str, default=""
            Unit of the scores.
        bins : int, optional
            Number of bins, possibly one more; by default the square root of the number of rows,
            from 10 to 40.
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """
        counts, edges = binned(scores, threshold, bins)
        return cls(counts, edges, threshold=threshold, unit=unit).plot(ax)

    def _draw(self, ax: Any) -> None:
        outlier = self.edges[:-1] < self.threshold
        for which, colour, label in ((~outlier, "C0", "other rows"), (outlier, "C1", "outliers")):
            if which.any():
                left, widths = self.edges[:-1][which], np.diff(self.edges)[which]
                ax.bar(left, self.counts[which], widths, align="edge", color=colour, label=label)
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label="threshold")
            # Above the axes, where it covers nothing.
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
            ax.legend(frameon=False, ncols=3, borderaxespad=0.0, **place)
        unit = f", {self.unit}" if self.unit else ""
        ax.set(xlabel=f"score{unit} (low is abnormal)", ylabel="rows")
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")


def binned(
    scores: ArrayLike, threshold: float, bins: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count scores in equal bins; return the counts, and edges including the threshold."""
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise UsageError(
            f"scores of shape {scores.shape}: needs a finite number for each row, and a row or more"
        )
    low, high = float(scores.min()), float(scores.max())
    bins = min(max(10, round(len(scores) ** 0.5)), 40) if bins is None else bins
    # Wide enough for the edges to differ.
    least = 4.0 * np.spacing(max(abs(low), abs(high)))
    width = max((high - low) / bins, least) if low < high else 1.0
    start = threshold if low < threshold <= high else low
    below = min(max(int(np.ceil((start - low) / width)), int(low < start)), bins)
    above = min(max(int(np.ceil((high - start) / width)), 1), bins - below + 1)
    edges = start + width * np.arange(-below, above + 1)
    # The clipping moves no score across the threshold, which is an edge of each count.
    return np.histogram(scores.clip(edges[0], edges[-1]), edges)[0].astype(np.int64), edges


@dataclass(eq=False, repr=False)
class ExplanationDisplay(Display):
    """Features with what they add to the gap between a typical score and a row's, largest first.

    Make one with `from_estimator`, or of features and shares. The shares of one row describe it:
    keep them where the rows are.

    Parameters
    ----------
    features : sequence of str
        Names, starting with that of the largest share.
    shares : ndarray of shape (n_features,), float64
        In bits.
    label : str, default="share of the shortfall, bits"
        Label of the axis.

    Examples
    --------
    >>> from hushtable.plots import ExplanationDisplay
    >>> display = ExplanationDisplay(["weight", "height"], [2.5, 0.2]).plot()
    >>> display.ax_.get_xlabel()
    'share of the shortfall, bits'
    """

    features: Sequence[str]
    shares: ArrayLike
    label: str = "share of the shortfall, bits"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int | None = None,
        n_features: int = 10,
        ax: "Axes | None" = None,
    ) -> Self:
        """Explain one row, or the importances over all rows, and draw the result.

        Parameters
        ----------
        estimator : fitted outlier detector
            It needs ``explain`` and ``importances``: `HushTable` or `LSHiTables`.
        X : array, data frame, Arrow object or path
            Rows.
        row : int, optional
            Number of the row to explain, from 0; by default the importances over all rows.
        n_features : int, default=10
            Number of features to show.
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """
        if row is None:
            shares, label = estimator.importances(X), "mean size of the share, bits"
        else:
            every, label = np.asarray(estimator.explain(X)), "share of the shortfall, bits"
            if not 0 <= row < len(every):
                raise UsageError(f"row={row}: needs the number of one of {len(every):,} rows")
            shares = every[row]
        names = estimator.plan_.schema.of_rows.names
        top = np.argsort(-shares, kind="stable")[:n_features]
        return cls([names[j] for j in top], shares[top], label).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, sizes = [" ".join(name.split()) for name in self.features], np.asarray(self.shares)
        names = [x if len(x) <= _LETTERS else f"{x[: _LETTERS - 1]}…" for x in names]
        places = np.arange(len(names))
        ax.barh(places, sizes, 0.7, color=["C1" if size > 0.0 else "C0" for size in sizes])
        if (sizes < 0.0).any():
            ax.axvline(0.0, color=ax.spines["bottom"].get_edgecolor(), lw=0.8)
        ax.set_yticks(places, names, parse_math=False)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel=self.label)


@dataclass(eq=False, repr=False)
class EpsilonDisplay(Display):
    """Accuracy against epsilon for each of several systems, with its level without noise.

    Make one with `from_values`.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,), float64
        In rising order; the total for one person.
    values : mapping of str to ndarray of shape (n_epsilons, n_runs), float64
        Values of each system, such as its ROC-AUC with each of several seeds.
    levels : mapping of str to float
        Levels without noise of the systems that have one.

    Examples
    --------
    >>> from hushtable.plots import EpsilonDisplay
    >>> auc = {"HushTable": [0.81, 0.93]}
    >>> display = EpsilonDisplay.from_values([0.1, 1.0], auc, levels={"HushTable": 0.95})
    >>> display.ax_.get_ylabel()
    'ROC-AUC'
    """

    epsilons: NDArray[np.float64]
    values: Mapping[str, NDArray[np.float64]]
    levels: Mapping[str, float]

    @classmethod
    def from_values(
        cls,
        epsilons: ArrayLike,
        values: Mapping[str, ArrayLike],
        *,
        levels: Mapping[str, float] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw accuracy against epsilon.

        Parameters
        ----------
        epsilons : array-like of shape (n_epsilons,)
            Above 0; the total for one person.
        values : mapping of str to array-like of shape (n_epsilons,) or (n_epsilons, n_runs)
            Values of each system; for several runs, their mean and standard deviation are drawn.
        levels : mapping of str to float, optional
            Levels without noise, by system.
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """
        epsilons, levels = np.asarray(epsilons, np.float64), dict(levels or {})
        if epsilons.ndim != 1 or not len(epsilons) or not (epsilons > 0.0).all():
            raise UsageError(f"epsilons {epsilons}: needs one or more numbers above 0")
        order = np.argsort(epsilons)
        tables = {}
        for system, given in values.items():
            table = np.asarray(given, np.float64)
            if table.ndim not in (1, 2) or len(table) != len(epsilons):
                raise UsageError(
                    f"{system}: {table.shape} values for {len(epsilons)} epsilons: needs one for "
                    "each, or a row of runs"
                )
            tables[system] = table.reshape(len(epsilons), -1)[order]
        if strangers := sorted(set(levels) - set(tables)):
            raise UsageError(f"levels of {strangers}: needs names that have values")
        return cls(epsilons[order], tables, levels).plot(ax)

    def _draw(self, ax: "Axes") -> None:
        for k, (system, values) in enumerate(self.values.items()):
            mean, spread, colour = values.mean(axis=1), values.std(axis=1), f"C{k}"
            if spread.any():
                ends = mean - spread, mean + spread
                ax.fill_between(self.epsilons, *ends, color=colour, alpha=0.2, lw=0)
            marker = _MARKERS[k % len(_MARKERS)]
            ax.plot(self.epsilons, mean, label=system, color=colour, marker=marker, ms=4)
            if system in self.levels:
                label = f"{system}, no noise"
                ax.axhline(self.levels[system], color=colour, ls="--", lw=0.9, label=label)
        ax.set_xscale("log")
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.minorticks_off()
        ax.set(xlabel="total epsilon for one person", ylabel="ROC-AUC")
        ax.legend(frameon=False)


_MARKERS = "os^Dv"
#: Largest number of letters of a feature's name, because bars need the room.
_LETTERS = 28
