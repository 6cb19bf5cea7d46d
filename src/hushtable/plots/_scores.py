"""How scores are distributed."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.plots._display import Display, as_scores, labelled, legend, unit_of

__all__ = ["ScoreDisplay"]


class ScoreDisplay(Display):
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
            scores, threshold=estimator.offset_, unit=unit_of(estimator), bins=bins, ax=ax
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
        scores = as_scores(scores)
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
            legend(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set(xlabel=labelled("score", self.unit), ylabel="rows")
        return self
