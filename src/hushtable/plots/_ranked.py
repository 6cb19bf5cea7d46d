"""Which rows score lowest."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.plots._display import Display, as_scores, labelled, legend, unit_of
from hushtable.scores.ranks import WITHIN

__all__ = ["RankedOutliersDisplay"]


class RankedOutliersDisplay(Display):
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
    errors : ndarray of shape (n_rows,), float64, optional
        Standard errors of the scores.

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
        errors: NDArray[np.float64] | None = None,
    ) -> None:
        self.rows, self.scores, self.errors = rows, scores, errors
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
            scores, threshold=estimator.offset_, unit=unit_of(estimator), n_rows=n_rows, ax=ax
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
        scores = as_scores(scores)
        # Equal scores stand in the order of the rows.
        rows = np.argsort(scores, kind="stable")[:n_rows]
        return cls(rows, scores[rows], threshold=threshold, unit=unit)

    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each row, the lowest score on top.

        Where standard errors are known, it reaches 1.96 of them to each side: 19 times of 20.

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
        if self.errors is not None:
            ends = WITHIN * self.errors
            ax.hlines(at, self.scores - ends, self.scores + ends, colors=colours, lw=1.5)
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label="threshold")
            legend(ax)
        ax.set_yticks(at, [f"{row:,}" for row in self.rows])
        ax.invert_yaxis()
        ax.grid(axis="y", lw=0.4, alpha=0.5)
        ax.set(xlabel=labelled("score", self.unit), ylabel="row (numbered from 0)")
        return self
