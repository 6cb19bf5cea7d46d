"""What the displays share."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import MissingExtraError, UsageError

__all__ = ["Display", "as_scores", "labelled", "legend", "unit_of"]


class Display:
    """Has the axes that it is drawn in."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
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
        return ax


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


def unit_of(estimator: Any) -> str:
    """Return the unit of an estimator's scores; empty if it is none of ours."""
    plan = getattr(estimator, "plan_", None)
    return "" if plan is None else str(plan.score.unit)


def labelled(what: str, unit: str) -> str:
    """Return the label of an axis of scores."""
    return f"{what}, {unit} (low is abnormal)" if unit else f"{what} (low is abnormal)"
