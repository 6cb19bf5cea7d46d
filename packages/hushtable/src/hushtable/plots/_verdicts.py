"""Outliers that were found, verdict by verdict."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.counts.verdicts import checked
from hushtable.errors import UsageError
from hushtable.plots._display import Display, as_scores, legend


class VerdictsDisplay(Display):
    """Outliers found among the rows that were looked at, in their order.

    Make one with `from_verdicts`.

    Parameters
    ----------
    found : ndarray of shape (n + 1,), int64
        Outliers among the first 0, 1, ... rows.
    before : ndarray of shape (n + 1,), int64, optional
        The same if these rows had been looked at in the order of other scores.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the curves are drawn.

    Examples
    --------
    >>> from hushtable.plots import VerdictsDisplay
    >>> display = VerdictsDisplay.from_verdicts([1, 1, 0, 1], scores=[5.0, 2.0, 1.0, 9.0])
    >>> display.found, display.before
    (array([0, 1, 2, 2, 3]), array([0, 0, 1, 2, 3]))
    """

    def __init__(self, found: NDArray[np.int64], before: NDArray[np.int64] | None = None) -> None:
        self.found, self.before = found, before

    @classmethod
    def from_verdicts(
        cls, y: ArrayLike, *, scores: ArrayLike | None = None, ax: Any = None
    ) -> Self:
        """Draw how many outliers were found.

        Parameters
        ----------
        y : array-like of shape (n,)
            Verdicts in the order in which they were given: 1 for an outlier, 0 for a row that is
            fine.
        scores : array-like of shape (n,), optional
            What the rows score without verdicts: the curve beside is of their order.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        VerdictsDisplay

        Raises
        ------
        DataError
            If a verdict is neither 1 nor 0.
        UsageError
            If there is not a score for each verdict.
        """
        return cls.of(y, scores=scores).plot(ax)

    @classmethod
    def of(cls, y: ArrayLike, *, scores: ArrayLike | None = None) -> Self:
        """Count, and draw nothing; as `from_verdicts` says.

        Parameters
        ----------
        y : array-like of shape (n,)
        scores : array-like of shape (n,), optional
            As in `from_verdicts`.

        Returns
        -------
        VerdictsDisplay
        """
        outlier = checked(y)
        if scores is None:
            return cls(_found(outlier))
        given = as_scores(scores)
        if len(given) != len(outlier):
            raise UsageError(f"{len(given):,} scores for {len(outlier):,} verdicts: needs one each")
        return cls(_found(outlier), _found(outlier[np.argsort(given, kind="stable")]))

    def _draw(self, ax: Any) -> None:
        looks = np.arange(len(self.found))
        ax.step(looks, self.found, where="post", color="C1", label="found")
        if self.before is not None:
            ax.step(
                looks, self.before, where="post", color="C0", lw=1, label="by the scores before"
            )
            legend(ax)
        ax.set_xlabel("rows looked at")
        ax.set_ylabel("outliers")
        ax.set_xlim(0, max(1, len(self.found) - 1))
        ax.set_ylim(bottom=0)


def _found(outlier: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(outlier))
