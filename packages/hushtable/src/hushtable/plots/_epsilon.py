"""Accuracy against the cost of privacy."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import UsageError
from hushtable.plots._display import Display

_MARKERS = "os^Dv"


@dataclass(eq=False, repr=False)
class EpsilonDisplay(Display):
    """Accuracy against epsilon, for each of several systems beside its level without noise.

    Make one with `from_values`.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,), float64
        From the least; the total for one person.
    values : mapping of str to ndarray of shape (n_epsilons, n_runs), float64
        Of each system, such as its ROC-AUC with each of several seeds.
    levels : mapping of str to float
        Of the systems that have one: without noise.
    metric : str, default="ROC-AUC"
        What the values are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the values are drawn.

    Examples
    --------
    >>> from hushtable.plots import EpsilonDisplay
    >>> auc = {"HushTable": [0.81, 0.93]}
    >>> display = EpsilonDisplay.from_values([0.1, 1.0], auc, levels={"HushTable": 0.95})
    >>> display.ax_.get_ylabel()
    'ROC-AUC'
    """

    epsilons: NDArray[np.float64]
    values: Mapping[str, NDArray[np.float64]]
    levels: Mapping[str, float]
    _: KW_ONLY
    metric: str = "ROC-AUC"

    @classmethod
    def from_values(
        cls,
        epsilons: ArrayLike,
        values: Mapping[str, ArrayLike],
        *,
        levels: Mapping[str, float] | None = None,
        metric: str = "ROC-AUC",
        ax: Any = None,
    ) -> Self:
        """Draw accuracy against epsilon.

        Parameters
        ----------
        epsilons : array-like of shape (n_epsilons,)
            Above 0; the total for one person.
        values : mapping of str to array-like of shape (n_epsilons,) or (n_epsilons, n_runs)
            Of each system; of several runs, the mean is drawn and their standard deviation.
        levels : mapping of str to float, optional
            Of a system without noise.
        metric : str, default="ROC-AUC"
            What the values are.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        EpsilonDisplay
        """
        epsilons = np.asarray(epsilons, np.float64)
        if epsilons.ndim != 1 or not len(epsilons) or not (epsilons > 0.0).all():
            raise UsageError(f"epsilons {epsilons}: needs one or more numbers above 0")
        order = np.argsort(epsilons)
        tables = {}
        for system, found in values.items():
            table = np.asarray(found, np.float64)
            if table.ndim not in (1, 2) or len(table) != len(epsilons):
                raise UsageError(
                    f"{system}: {table.shape} values for {len(epsilons)} epsilons: needs one of "
                    "each, or a row of runs"
                )
            tables[system] = table.reshape(len(epsilons), -1)[order]
        strangers = sorted(set(levels or {}) - set(tables))
        if strangers:
            raise UsageError(f"levels of {strangers}: needs names that have values")
        return cls(epsilons[order], tables, dict(levels or {}), metric=metric).plot(ax)

    def _draw(self, ax: Any) -> None:
        for k, (system, values) in enumerate(self.values.items()):
            mean, spread = values.mean(axis=1), values.std(axis=1)
            look = {"color": f"C{k}", "marker": _MARKERS[k % len(_MARKERS)], "ms": 4}
            if spread.any():
                ax.fill_between(
                    self.epsilons, mean - spread, mean + spread, color=f"C{k}", alpha=0.2, lw=0
                )
            ax.plot(self.epsilons, mean, label=system, **look)
            if system in self.levels:
                level, name = self.levels[system], f"{system}, no noise"
                ax.axhline(level, color=f"C{k}", ls="--", lw=0.9, label=name)
        ax.set_xscale("log")
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.minorticks_off()
        ax.set(xlabel="total epsilon for one person", ylabel=self.metric)
        ax.legend(frameon=False)
