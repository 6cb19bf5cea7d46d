"""The distribution of scores."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.plots._display import OfScores, as_scores


@dataclass(eq=False, repr=False)
class ScoreDisplay(OfScores):
    """Distribution of outlier scores, with the threshold below which rows are outliers.

    Make one with `from_estimator` or `from_predictions`; either takes ``bins``, about how many bins
    there should be: by default the square root of the number of rows, within 10 and 40.

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
    ax_, figure_ : matplotlib Axes and Figure
        Where the scores are drawn.

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
        threshold : float, default=nan
        unit : str, default=""
            As in `from_predictions`.
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

    def _draw(self, ax: Any) -> None:
        left, widths = self.edges[:-1], np.diff(self.edges)
        outlier = left < self.threshold
        for these, colour, label in ((~outlier, "C0", "other rows"), (outlier, "C1", "outliers")):
            if these.any():
                where = left[these], self.counts[these], widths[these]
                ax.bar(*where, align="edge", color=colour, label=label)
        self._draw_threshold(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_ylabel("rows")
