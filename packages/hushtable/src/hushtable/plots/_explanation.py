"""Features that make a row's score low."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import UsageError
from hushtable.plots._display import Display

#: Letters of a feature's name.
_LETTERS = 28


class ExplanationDisplay(Display):
    """Features with what they add to the gap between a typical score and a row's, largest first.

    Make one with `from_estimator` or `from_shares`. The shares of one row describe it: keep
    them where the rows are.

    Parameters
    ----------
    features : sequence of str
        Names, of the largest share first.
    shares : ndarray of shape (n_features,), float64
        In bits.
    rest : float, default=0.0
        Sum of the shares that are not shown.
    n_rest : int, default=0
        How many are not shown.
    label : str, default="share of the shortfall, bits"
        Of the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the shares are drawn.

    Examples
    --------
    >>> from hushtable.plots import ExplanationDisplay
    >>> names = ["age", "weight", "height"]
    >>> display = ExplanationDisplay.from_shares([0.1, 2.5, 0.2], features=names, n_features=2)
    >>> display.features
    ['weight', 'height']
    """

    def __init__(
        self,
        features: Sequence[str],
        shares: NDArray[np.float64],
        *,
        rest: float = 0.0,
        n_rest: int = 0,
        label: str = "share of the shortfall, bits",
    ) -> None:
        self.features, self.shares = list(features), shares
        self.rest, self.n_rest, self.label = rest, n_rest, label

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int | None = None, n_features: int = 10, ax: Any = None
    ) -> Self:
        """Explain one row, or what matters in all of them, and draw it.

        Parameters
        ----------
        estimator : fitted outlier detector
            With ``explain`` and ``importances``: `HushTable` or `LSHiTables`.
        X : array, data frame, Arrow object or path
            Rows.
        row : int, optional
            Number of the row to explain, from 0; by default the importances over all rows.
        n_features : int, default=10
            How many to show by themselves.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ExplanationDisplay
        """
        if row is None:
            shares, label = estimator.importances(X), "mean size of the share, bits"
        else:
            every, label = estimator.explain(X), "share of the shortfall, bits"
            if not 0 <= row < len(every):
                raise UsageError(f"row={row}: needs the number of one of {len(every):,} rows")
            shares = every[row]
        names = estimator.plan_.schema.names
        return cls.from_shares(shares, features=names, n_features=n_features, label=label, ax=ax)

    @classmethod
    def from_shares(
        cls,
        shares: ArrayLike,
        *,
        features: Sequence[str] | None = None,
        n_features: int = 10,
        label: str = "share of the shortfall, bits",
        ax: Any = None,
    ) -> Self:
        """Draw the largest shares.

        Parameters
        ----------
        shares : array-like of shape (d,)
            Of each feature; a row of ``explain``, or ``importances``.
        features : sequence of str, optional
            Their names; x0, x1, ... by default.
        n_features : int, default=10
            How many to show by themselves.
        label : str, default="share of the shortfall, bits"
            Of the axis.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ExplanationDisplay
        """
        shares = np.asarray(shares, np.float64)
        if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all():
            raise UsageError(f"shares of shape {shares.shape}: needs one finite number a feature")
        names = [f"x{j}" for j in range(len(shares))] if features is None else list(features)
        if len(names) != len(shares):
            raise UsageError(f"{len(names)} features for {len(shares)} shares: needs one name each")
        order = np.argsort(-shares, kind="stable")
        top, others = order[:n_features], order[n_features:]
        rest = float(shares[others].sum())
        best = [names[j] for j in top]
        return cls(best, shares[top], rest=rest, n_rest=len(others), label=label).plot(ax)

    @property
    def n_bars(self) -> int:
        """Bars of the picture."""
        return len(self.features) + bool(self.n_rest)

    def _draw(self, ax: Any) -> None:
        names, sizes = list(self.features), self.shares.tolist()
        if self.n_rest:
            names.append(f"{self.n_rest:,} others" if self.n_rest > 1 else "1 other")
            sizes.append(self.rest)
        colours = [
            "C1" if j < len(self.features) and size > 0.0 else "C0" for j, size in enumerate(sizes)
        ]
        at = np.arange(len(names))
        ax.barh(at, sizes, 0.7, color=colours)
        if min(sizes) < 0.0:
            ax.axvline(0.0, color=ax.spines["bottom"].get_edgecolor(), lw=0.8)
        ax.set_yticks(at, [_short(name) for name in names], parse_math=False)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel=self.label)


def _short(name: str) -> str:
    """Return a name on one line, without the end of a long one: bars need the room."""
    line = " ".join(name.split())
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"
