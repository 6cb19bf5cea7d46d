"""Plots of what a site makes of a result; see `hushtable.plots`."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hushtable.language import numerals, percents
from hushtable.plots import Display, legend
from hushtable_federation.language import _
from hushtable_federation.ranges import PlausibleRange, ValueHistogram

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


#: Room beside the limits of a range, in widths of it; never less than so many cells.
_BESIDE, _CELLS_BESIDE = 0.35, 2


@dataclass(frozen=True, eq=False)
class RangeFigure:
    """The values around a plausible range, with its limits, and a site's own values as a line."""

    range: PlausibleRange
    merged: ValueHistogram
    own: NDArray[np.int64] | None = None

    @property
    def words(self) -> str:
        """The picture, for those who do not see it."""
        low, high = (numerals(f"{limit.value:.10g}") for limit in self.range.limits)
        feature = self.range.feature
        values = {"name": feature.name, "low": low, "high": high, "unit": feature.unit}
        if self.own is None:
            return _(
                "Histogram of %(name)s, with limits at %(low)s and %(high)s %(unit)s.", **values
            )
        return _(
            "Histogram of %(name)s, with the values of this site as a line, and limits at %(low)s "
            "and %(high)s %(unit)s.",
            **values,
        )

    def plot(self, ax: Any = None) -> "RangeFigure":
        """Draw shares of the values, and the limits."""
        feature, width = self.merged.feature, self.merged.width
        edges = feature.low + width * np.arange(len(self.merged.counts) + 1)
        low, high = (limit.value for limit in self.range.limits)
        room = max(_BESIDE * (high - low), _CELLS_BESIDE * width)
        ax.spines[["top", "right"]].set_visible(False)
        shares = np.maximum(self.merged.counts, 0.0) / self.merged.values
        ax.stairs(100.0 * shares, edges, fill=True, color="C0", alpha=0.7)
        if self.own is not None and self.own.sum():
            ax.stairs(100.0 * self.own / self.own.sum(), edges, color="C1", lw=1.4)
        for limit in (low, high):
            ax.axvline(limit, color=ax.xaxis.label.get_color(), lw=1.0, ls="--")
        ax.set_xlim(max(feature.low - width, low - room), min(feature.high + width, high + room))
        ax.set_xlabel(feature.unit)
        ax.yaxis.get_major_locator().set_params(nbins=3)
        ax.yaxis.set_major_formatter("{x:g}%")
        return self
