"""The rows that score lowest."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.plots._display import OfScores, as_scores
from hushtable.scores.details import lowest_rows
from hushtable.scores.ranks import WITHIN


@dataclass(eq=False, repr=False)
class RankedOutliersDisplay(OfScores):
    """The rows with the lowest scores, lowest first.

    Make one with `from_estimator` or `from_predictions`; either takes ``n_rows``, how many rows to
    show, by default 10. It shows single rows: keep it where the rows are.

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
        Standard errors of the scores. Lines reach 1.96 of them to each side: 19 times of 20.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the rows are drawn.

    Examples
    --------
    >>> from hushtable.plots import RankedOutliersDisplay
    >>> display = RankedOutliersDisplay.from_predictions([5.0, 1.0, 4.0, 5.0], n_rows=2)
    >>> display.rows
    array([1, 2])
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    _: KW_ONLY
    threshold: float = float("nan")
    unit: str = ""
    errors: NDArray[np.float64] | None = None

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
        threshold : float, default=nan
        unit : str, default=""
            As in `from_predictions`.
        n_rows : int, default=10
            How many to show. Equal scores stand in the order of the rows.

        Returns
        -------
        RankedOutliersDisplay
        """
        scores = as_scores(scores)
        rows = lowest_rows(scores, n_rows)
        return cls(rows, scores[rows], threshold=threshold, unit=unit)

    def _draw(self, ax: Any) -> None:
        at = np.arange(len(self.rows))
        colours = ["C1" if score < self.threshold else "C0" for score in self.scores]
        ax.scatter(self.scores, at, color=colours, zorder=2)
        if self.errors is not None:
            ends = WITHIN * self.errors
            ax.hlines(at, self.scores - ends, self.scores + ends, colors=colours, lw=1.5)
        self._draw_threshold(ax)
        ax.set_yticks(at, [f"{row:,}" for row in self.rows])
        ax.invert_yaxis()
        ax.grid(axis="y", lw=0.4, alpha=0.5)
        ax.set_ylabel("row (numbered from 0)")
