"""A site's budget: what rounds have spent, and what further ones would."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hushtable.errors import UsageError
from hushtable.plots._display import Display, legend


class BudgetDisplay(Display):
    """The epsilon that rounds have spent, in steps below the cap, and what further ones would.

    Make one with `from_values`.

    Parameters
    ----------
    spent : ndarray of shape (n_rounds,), float64
        Total epsilon of the same people after each round.
    cap : float
        What all rounds together may cost.
    course : ndarray of shape (n_more,), float64
        Totals after further rounds, which may be none.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the steps are drawn.

    Examples
    --------
    >>> from hushtable.plots import BudgetDisplay
    >>> display = BudgetDisplay.from_values([1.0, 1.45], cap=2.0, course=[1.81, 2.12])
    >>> display.ax_.get_ylabel()
    'total epsilon for one person'
    """

    def __init__(self, spent: ArrayLike, cap: float, course: ArrayLike = ()) -> None:
        self.spent, self.course = np.asarray(spent, np.float64), np.asarray(course, np.float64)
        self.cap = float(cap)
        if self.spent.ndim != 1 or self.course.ndim != 1 or not self.cap > 0.0:
            raise UsageError(
                f"spent {self.spent}, course {self.course}, cap {self.cap:g}: needs a "
                "total after each round, and a cap above 0"
            )

    @classmethod
    def from_values(
        cls, spent: ArrayLike, *, cap: float, course: Sequence[float] = (), ax: Any = None
    ) -> Self:
        """Draw what was spent, and what further rounds would.

        Parameters
        ----------
        spent : array-like of shape (n_rounds,)
            Total epsilon of the same people after each round.
        cap : float
            What all rounds together may cost.
        course : array-like of shape (n_more,), optional
            Totals after further rounds.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        BudgetDisplay
        """
        return cls(spent, cap, course).plot(ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator  # of an extra, which is there by now

        n, more = len(self.spent), len(self.course)
        now = float(self.spent[-1]) if n else 0.0
        steps = {"where": "post", "lw": 1.8}
        # Told apart by lines and points alone, for prints without colours.
        ax.step(range(n + 1), [0.0, *self.spent], color="C0", label="spent", **steps)
        ax.plot(range(1, n + 1), self.spent, "o", color="C0", ms=5)
        if more:
            ahead = range(n, n + more + 1)
            ax.step(ahead, [now, *self.course], color="C1", ls="--", label="forecast", **steps)
            ax.plot(ahead[1:], self.course, "o", color="C1", mfc="white", ms=5)
        ax.axhline(self.cap, color="0.2", ls=":", lw=1.5, label=f"cap, {self.cap:g}")
        ax.set_xlim(0.0, max(1, n + more) + 0.5)
        ax.set_ylim(0.0, 1.1 * max(self.cap, now, *self.course))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="rounds", ylabel="total epsilon for one person")
        legend(ax)
