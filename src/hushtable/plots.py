"""Plots of scores and of noised counts, in scikit-learn's convention for displays.

A display holds the numbers of a picture. ``plot`` draws them with matplotlib (extra ``report``),
which loads only then.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import MissingExtraError, UsageError
from hushtable.privacy.local import LocalModel
from hushtable.privacy.release import Release

__all__ = ["NoiseDisplay", "RankedOutliersDisplay", "ScoreDisplay"]

#: Points that a curve of all cells is drawn with.
_POINTS = 400


class _Display:
    """What the displays share: the axes that they are drawn in."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise MissingExtraError(
                    f"{type(self).__name__}.plot", "matplotlib", "report"
                ) from None
            _, ax = pyplot.subplots()
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class ScoreDisplay(_Display):
    """Distribution of outlier scores, with the threshold below which rows are outliers.

    Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,), int64
        Rows in each bin.
    edges : ndarray of shape (n_bins + 1,), float64
        Where the bins end. The threshold is one of the edges, so that a bin holds outliers only
        or none.
    threshold : float, default=nan
        Rows with a lower score are outliers; NaN if there is none.
    unit : str, default=""
        Of the scores.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the scores were drawn.
    figure_ : matplotlib Figure
        What holds the axes.
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        edges: NDArray[np.float64],
        *,
        threshold: float = float("nan"),
        unit: str = "",
    ) -> None:
        self.counts, self.edges = counts, edges
        self.threshold, self.unit = threshold, unit

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, bins: int | None = None, ax: Any = None
    ) -> Self:
        """Score rows and draw the distribution.

        Parameters
        ----------
        estimator : fitted outlier detector
            Of hushtable, or any with ``score_samples`` and ``offset_``.
        X : array, data frame, Arrow object or path
            Rows.
        bins : int, optional
            How many bins, or one more; by default the square root of the number of rows, within
            10 and 40.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScoreDisplay
        """
        scores = estimator.score_samples(X)
        return cls.from_predictions(
            scores, threshold=estimator.offset_, unit=_unit(estimator), bins=bins, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        bins: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the distribution of scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers.
        unit : str, default=""
            Of the scores.
        bins : int, optional
            How many bins, or one more; by default the square root of the number of rows, within
            10 and 40.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScoreDisplay
        """
        return cls.of(scores, threshold=threshold, unit=unit, bins=bins).plot(ax)

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        bins: int | None = None,
    ) -> Self:
        """Count scores, and draw nothing.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers.
        unit : str, default=""
            Of the scores.
        bins : int, optional
            How many bins, or one more; by default the square root of the number of rows, within
            10 and 40.

        Returns
        -------
        ScoreDisplay
        """
        scores = _scores(scores)
        low, high = float(scores.min()), float(scores.max())
        if bins is None:
            bins = min(max(10, round(len(scores) ** 0.5)), 40)
        # Wide enough for edges to differ.
        least = 4.0 * np.spacing(max(abs(low), abs(high)))
        width = max((high - low) / bins, least) if low < high else 1.0
        inside = low < threshold <= high
        # Bins are numbered from the threshold, outliers below zero: rounding moves none across.
        start = threshold if inside else low
        first = -min(max(int(np.ceil((start - low) / width)), 1), bins) if inside else 0
        last = min(max(int(np.ceil((high - start) / width)) - 1, 0), bins + first)
        numbers = np.clip(np.floor((scores - start) / width), first, last).astype(np.int64)
        if inside:
            numbers = np.where(scores < threshold, np.minimum(numbers, -1), np.maximum(numbers, 0))
        counts = np.bincount(numbers - first, minlength=last - first + 1).astype(np.int64)
        edges = start + width * np.arange(first, last + 2, dtype=np.float64)
        return cls(counts, edges, threshold=threshold, unit=unit)

    def plot(self, ax: Any = None) -> Self:
        """Draw a bar for each bin, those of outliers in another colour.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScoreDisplay
        """
        ax = self._axes(ax)
        outlier = self.edges[:-1] < self.threshold
        for these, colour, label in ((~outlier, "C0", "other rows"), (outlier, "C1", "outliers")):
            if these.any():
                ax.bar(
                    self.edges[:-1][these],
                    self.counts[these],
                    np.diff(self.edges)[these],
                    align="edge",
                    color=colour,
                    label=label,
                )
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label="threshold")
            _legend(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set(xlabel=_labelled("score", self.unit), ylabel="rows")
        return self


class RankedOutliersDisplay(_Display):
    """The rows with the lowest scores, lowest first.

    Make one with `from_estimator` or `from_predictions`. It shows single rows: keep it where
    the rows are.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), int64
        Their numbers, from 0.
    scores : ndarray of shape (n_rows,), float64
        Their scores, from the lowest.
    threshold : float, default=nan
        Rows with a lower score are outliers; NaN if there is none.
    unit : str, default=""
        Of the scores.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the rows were drawn.
    figure_ : matplotlib Figure
        What holds the axes.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.float64],
        *,
        threshold: float = float("nan"),
        unit: str = "",
    ) -> None:
        self.rows, self.scores = rows, scores
        self.threshold, self.unit = threshold, unit

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, n_rows: int = 10, ax: Any = None) -> Self:
        """Score rows and draw the lowest.

        Parameters
        ----------
        estimator : fitted outlier detector
            Of hushtable, or any with ``score_samples`` and ``offset_``.
        X : array, data frame, Arrow object or path
            Rows.
        n_rows : int, default=10
            How many to show.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RankedOutliersDisplay
        """
        scores = estimator.score_samples(X)
        return cls.from_predictions(
            scores, threshold=estimator.offset_, unit=_unit(estimator), n_rows=n_rows, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        n_rows: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw the lowest scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers.
        unit : str, default=""
            Of the scores.
        n_rows : int, default=10
            How many to show.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RankedOutliersDisplay
        """
        return cls.of(scores, threshold=threshold, unit=unit, n_rows=n_rows).plot(ax)

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        n_rows: int = 10,
    ) -> Self:
        """Rank scores, and draw nothing.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers.
        unit : str, default=""
            Of the scores.
        n_rows : int, default=10
            How many to show.

        Returns
        -------
        RankedOutliersDisplay
        """
        scores = _scores(scores)
        # Equal scores stand in the order of the rows.
        rows = np.argsort(scores, kind="stable")[:n_rows]
        return cls(rows, scores[rows], threshold=threshold, unit=unit)

    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each row, the lowest score on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        RankedOutliersDisplay
        """
        ax = self._axes(ax)
        at = np.arange(len(self.rows))
        colours = ["C1" if score < self.threshold else "C0" for score in self.scores]
        ax.scatter(self.scores, at, color=colours, zorder=2)
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label="threshold")
            _legend(ax)
        ax.set_yticks(at, [f"{row:,}" for row in self.rows])
        ax.invert_yaxis()
        ax.grid(axis="y", lw=0.4, alpha=0.5)
        ax.set(xlabel=_labelled("score", self.unit), ylabel="row (numbered from 0)")
        return self


class NoiseDisplay(_Display):
    """Counts of a release beside the noise that is in each of them.

    Make one with `from_release`.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,), int64
        With noise; in any order.
    noise_sd : float
        Standard deviation of the noise on a cell, in counts.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the counts were drawn.
    figure_ : matplotlib Figure
        What holds the axes.
    """

    def __init__(self, counts: NDArray[np.int64], noise_sd: float) -> None:
        self.counts, self.noise_sd = np.sort(counts)[::-1], noise_sd

    @classmethod
    def from_release(cls, release: Release | LocalModel, *, ax: Any = None) -> Self:
        """Draw the counts of a release.

        Parameters
        ----------
        release : Release or LocalModel
            One site's, or a sum.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        NoiseDisplay
        """
        return cls(release.counts, release.noise_sd).plot(ax)

    @property
    def standing_out(self) -> float:
        """Share of the cells whose count is above twice the noise's standard deviation.

        By noise alone it would be 2.3% of them.
        """
        return float(np.mean(self.counts > 2.0 * self.noise_sd))

    def plot(self, ax: Any = None) -> Self:
        """Draw the counts from the largest to the smallest, and a band of twice the noise.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        NoiseDisplay
        """
        ax = self._axes(ax)
        last = len(self.counts) - 1
        # Closer together at both ends, where the curve is steep.
        places = np.sin(np.linspace(0.0, np.pi / 2, min(_POINTS, last + 1))) ** 2
        points = np.unique(np.rint(places * last).astype(np.int64))
        ax.plot(100.0 * points / max(1, last), self.counts[points], color="C0", label="counts")
        noise = 2.0 * self.noise_sd
        ax.axhspan(-noise, noise, color="C1", alpha=0.25, lw=0, label="noise, 2 sd")
        ax.set_yscale("symlog", linthresh=max(noise, 1.0))
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlim(0.0, 100.0)
        ax.set(xlabel="cells from the largest count, %", ylabel="rows in the cell, with noise")
        _legend(ax)
        return self


def _legend(ax: Any) -> None:
    """Put the legend above the axes, where it hides nothing."""
    ax.legend(
        frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0
    )


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise UsageError(
            f"scores of shape {array.shape}: needs one finite number a row, and one row or more"
        )
    return array


def _unit(estimator: Any) -> str:
    plan = getattr(estimator, "plan_", None)
    return "" if plan is None else str(plan.score.unit)


def _labelled(what: str, unit: str) -> str:
    return f"{what}, {unit} (low is abnormal)" if unit else f"{what} (low is abnormal)"
