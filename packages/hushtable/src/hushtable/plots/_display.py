"""Bases of the displays: the axes, and the way from scores to a picture."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import MissingExtraError, UsageError


class Display(ABC):
    """Holds the numbers of a picture, and the axes that it is drawn in."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        Display
            Itself.
        """
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
        self._draw(ax)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw into axes that are there."""


class OfScores(Display):
    """A display made of the scores of rows."""

    threshold: float
    unit: str

    #: Makes the display of scores, as `from_predictions` does, and draws nothing.
    of: Callable[..., Self]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any) -> Self:
        """Score rows and draw the scores.

        Parameters
        ----------
        estimator : fitted outlier detector
            Of hushtable, or any with ``score_samples`` and ``offset_``.
        X : array, data frame, Arrow object or path
            Rows.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        options : int
            ``bins`` or ``n_rows``, as the class says.

        Returns
        -------
        Display
        """
        plan = getattr(estimator, "plan_", None)
        return cls.from_predictions(
            estimator.score_samples(X),
            threshold=estimator.offset_,
            unit="" if plan is None else str(plan.score.unit),
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        scores: ArrayLike,
        *,
        threshold: float = float("nan"),
        unit: str = "",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Low is abnormal.
        threshold : float, default=nan
            Rows with a lower score are outliers.
        unit : str, default=""
            Of the scores.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        options : int
            ``bins`` or ``n_rows``, as the class says.

        Returns
        -------
        Display
        """
        return cls.of(scores, threshold=threshold, unit=unit, **options).plot(ax)

    def _draw_threshold(self, ax: Any) -> None:
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label="threshold")
            legend(ax)
        unit = f", {self.unit}" if self.unit else ""
        ax.set_xlabel(f"score{unit} (low is abnormal)")


def legend(ax: Any) -> None:
    """Put the legend above the axes, where it hides nothing."""
    ax.legend(
        frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0
    )


def as_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores as an array; raises `UsageError` if they are none."""
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise UsageError(
            f"scores of shape {array.shape}: needs one finite number a row, and one row or more"
        )
    return array
