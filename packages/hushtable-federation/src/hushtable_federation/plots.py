"""Plots of what a site makes of a result; see `hushtable.plots`."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hushtable.language import numerals, percents
from hushtable.plots import Display, legend
from hushtable_federation.language import _

__all__ = ["HomeDisplay"]

#: Largest number of rows of a kind on a map; how each kind is drawn, usual rows first.
_OF_A_KIND = 600
_MARKS = {"ordinary": "C0.", "visitor": "C0o", "systematic": "C1s", "outlier": "C1x"}


@dataclass(eq=False, repr=False)
class HomeDisplay(Display):
    """How rare each row is among a site's own rows, and among those of all others.

    Make one with `from_scores`. It shows single rows: keep it where the rows are kept.

    Parameters
    ----------
    share_here : ndarray of shape (n,), float64
        Share of the site's rows that are as rare.
    beyond : ndarray of shape (n,), float64
        How rare a row is elsewhere: 0 for a typical row, 1 at the threshold.
    kinds : ndarray of shape (n,), str
        Kind of each row, such as ``"visitor"``.

    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_federation.plots import HomeDisplay
    >>> shares, beyond = np.array([0.5, 0.01]), np.array([0.1, 1.3])
    >>> display = HomeDisplay(shares, beyond, np.array(["ordinary", "outlier"])).plot()
    >>> display.ax_.get_xlabel()
    'share of the rows here that are as rare'
    """

    share_here: NDArray[np.float64]
    beyond: NDArray[np.float64]
    kinds: NDArray[Any]

    @classmethod
    def from_scores(cls, scores: Any, *, ax: Any = None) -> Self:
        """Draw the rows that a home model has scored.

        Parameters
        ----------
        scores : HomeScores
            Result of `HomeModel.scores`.
        [axes]
        """
        return cls(scores.share_here, scores.beyond, np.array(scores.kinds)).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax.axhline(1.0, color="0.5", lw=0.8, ls=":")
        for kind, mark in _MARKS.items():
            rows = np.flatnonzero(self.kinds == kind)
            if len(rows):
                places = np.linspace(0, len(rows) - 1, min(len(rows), _OF_A_KIND))
                x, y = (of[rows[places.astype(np.int64)]] for of in (self.share_here, self.beyond))
                label = f"{_(kind)} ({numerals(f'{len(rows):,}')})"
                ax.plot(x, y, mark, ms=4, mfc="none", label=label, alpha=0.7)
        ax.set_xscale("log")
        ax.invert_xaxis()
        ax.xaxis.set_major_formatter(lambda share, at: percents(f"{100.0 * share:g}"))
        ax.set(xlabel=_("share of the rows here that are as rare"), ylabel=_("rare elsewhere"))
        legend(ax, columns=2)
