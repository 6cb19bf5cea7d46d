"""Plots of scores, reasons, counts, accuracy, budgets; by scikit-learn's convention for displays.

A display holds the numbers of a picture. ``plot`` draws them with matplotlib (extra ``report``),
which is imported only then.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable.arguments import fill_docs
from hushtable.counts.base import Counts
from hushtable.counts.verdicts import checked
from hushtable.errors import MissingExtraError, UsageError
from hushtable.language import _, numerals
from hushtable.scores.details import lowest_rows
from hushtable.scores.scorer import WITHIN

__all__ = [
    "EpsilonDisplay", "ExplanationDisplay", "NoiseDisplay",
    "RankedOutliersDisplay", "ScoreDisplay", "VerdictsDisplay",
]  # fmt: skip


#: Text that the docstrings of displays share, by the placeholder that it replaces.
_SHARED = {
    "[axes]": """
        ax : matplotlib Axes, optional
            Axes to draw in; a new figure by default.
        """,
    "[threshold]": """
        threshold : float, default=nan
            Rows with a lower score are outliers; NaN if there is none.
        unit : str, default=""
            Unit of the scores.
        """,
    "[attributes]": """
        Attributes
        ----------
        ax_, figure_ : matplotlib Axes and Figure
            Where the display is drawn.
        """,
}


class Display(ABC):
    """Holds the numbers of a picture, and the axes in which it is drawn."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fill_docs(cls, _SHARED)

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        [axes]
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
        """Draw into existing axes."""


fill_docs(Display, _SHARED)


class OfScores(Display):
    """A display made of the scores of rows."""

    threshold: float
    unit: str

    #: Makes the display of scores, like `from_predictions`, without drawing it.
    of: Callable[..., Self]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any) -> Self:
        """Score rows and draw the scores.

        Parameters
        ----------
        estimator : fitted outlier detector
            A detector of hushtable, or any with ``score_samples`` and ``offset_``.
        X : array, data frame, Arrow object or path
            Rows.
        [axes]
        options : int
            ``bins`` or ``n_rows``, as documented by the class.
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
        [threshold]
        [axes]
        options : int
            ``bins`` or ``n_rows``, as documented by the class.
        """
        return cls.of(scores, threshold=threshold, unit=unit, **options).plot(ax)

    def _draw_threshold(self, ax: Any) -> None:
        if not np.isnan(self.threshold):
            ax.axvline(self.threshold, color="C1", ls="--", lw=1.0, label=_("threshold"))
            legend(ax)
        unit = f", {_(self.unit)}" if self.unit else ""
        ax.set_xlabel(_("score%(unit)s (low is abnormal)", unit=unit))


def legend(ax: Any, columns: int = 3) -> None:
    """Put the legend above the axes, where it covers nothing."""
    place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(frameon=False, ncols=columns, borderaxespad=0.0, **place)


def as_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores as an array; raise `UsageError` if they are not scores."""
    array = np.asarray(scores, np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise UsageError(
            f"scores of shape {array.shape}: needs a finite number for each row, and a row or more"
        )
    return array


_MARKERS = "os^Dv"


@dataclass(eq=False, repr=False)
class EpsilonDisplay(Display):
    """Accuracy against epsilon for each of several systems, with its level without noise.

    Make one with `from_values`.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,), float64
        In rising order; the total for one person.
    values : mapping of str to ndarray of shape (n_epsilons, n_runs), float64
        Values of each system, such as its ROC-AUC with each of several seeds.
    levels : mapping of str to float
        Levels without noise of the systems that have one.
    metric : str, default="ROC-AUC"
        Name of the values.

    [attributes]

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
            Values of each system; for several runs, their mean and standard deviation are drawn.
        levels : mapping of str to float, optional
            Levels without noise, by system.
        metric : str, default="ROC-AUC"
            Name of the values.
        [axes]
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
                    f"{system}: {table.shape} values for {len(epsilons)} epsilons: needs one for "
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


#: Largest number of letters of a feature's name.
_LETTERS = 28


class ExplanationDisplay(Display):
    """Features with what they add to the gap between a typical score and a row's, largest first.

    Make one with `from_estimator` or `from_shares`. The shares of one row describe it: keep
    them where the rows are.

    Parameters
    ----------
    features : sequence of str
        Names, starting with that of the largest share.
    shares : ndarray of shape (n_features,), float64
        In bits.
    rest : float, default=0.0
        Sum of the remaining shares.
    n_rest : int, default=0
        Number of the remaining shares.
    label : str, default="share of the shortfall, bits"
        Label of the axis.

    [attributes]

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
        """Explain one row, or the importances over all rows, and draw the result.

        Parameters
        ----------
        estimator : fitted outlier detector
            It needs ``explain`` and ``importances``: `HushTable` or `LSHiTables`.
        X : array, data frame, Arrow object or path
            Rows.
        row : int, optional
            Number of the row to explain, from 0; by default the importances over all rows.
        n_features : int, default=10
            Number of features to show individually.
        [axes]
        """
        if row is None:
            shares, label = estimator.importances(X), "mean size of the share, bits"
        else:
            every, label = np.asarray(estimator.explain(X)), "share of the shortfall, bits"
            if not 0 <= row < len(every):
                raise UsageError(f"row={row}: needs the number of one of {len(every):,} rows")
            shares = every[row]
        names = estimator.plan_.schema.of_rows.names
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
            Share of each feature: a row of ``explain``, or ``importances``.
        features : sequence of str, optional
            Their names; x0, x1, ... by default.
        n_features : int, default=10
            Number of features to show individually.
        label : str, default="share of the shortfall, bits"
            Label of the axis.
        [axes]
        """
        shares = np.asarray(shares, np.float64)
        if shares.ndim != 1 or not len(shares) or not np.isfinite(shares).all():
            raise UsageError(f"shares of shape {shares.shape}: needs a finite number per feature")
        names = [f"x{j}" for j in range(len(shares))] if features is None else list(features)
        if len(names) != len(shares):
            raise UsageError(f"{len(names)} features for {len(shares)} shares: needs a name each")
        order = np.argsort(-shares, kind="stable")
        top, others = order[:n_features], order[n_features:]
        rest = float(shares[others].sum())
        best = [names[j] for j in top]
        return cls(best, shares[top], rest=rest, n_rest=len(others), label=label).plot(ax)

    @property
    def n_bars(self) -> int:
        """Number of bars in the picture."""
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
    """Return a name on one line, truncated if it is long, because bars need the room."""
    line = " ".join(name.split())
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"


#: Number of points in a curve of all cells.
_POINTS = 400


class NoiseDisplay(Display):
    """Counts of a release, compared with the noise in each of them.

    Make one with `from_release`.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,), int64
        Counts with noise, in any order.
    noise_sd : float
        Standard deviation of the noise on a cell, in counts.

    [attributes]

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable.plots import NoiseDisplay
    >>> NoiseDisplay(np.array([3, 250, -4, 120]), noise_sd=10.0).plot().standing_out
    0.5
    """

    def __init__(self, counts: NDArray[np.int64], noise_sd: float) -> None:
        self.counts, self.noise_sd = np.sort(counts)[::-1], noise_sd

    @classmethod
    def from_release(cls, release: Counts, *, ax: Any = None) -> Self:
        """Draw the counts of a release.

        Parameters
        ----------
        release : Release or LocalModel
            The release of one site, or a sum.
        [axes]
        """
        return cls(release.counts, release.noise_sd).plot(ax)

    @property
    def standing_out(self) -> float:
        """Share of the cells whose count is above twice the noise's standard deviation.

        With noise alone, it would be 2.3% of them.
        """
        return float(np.mean(self.counts > 2.0 * self.noise_sd))

    def _draw(self, ax: Any) -> None:
        last = len(self.counts) - 1
        # More points at both ends, where the curve is steep.
        places = np.sin(np.linspace(0.0, np.pi / 2, min(_POINTS, last + 1))) ** 2
        points = np.unique(np.rint(places * last).astype(np.int64))
        ax.plot(100.0 * points / max(1, last), self.counts[points], color="C0", label=_("counts"))
        noise = 2.0 * self.noise_sd
        ax.axhspan(-noise, noise, color="C1", alpha=0.25, lw=0, label=_("noise, 2 sd"))
        ax.set_yscale("symlog", linthresh=max(noise, 1.0))
        ax.yaxis.set_major_formatter("{x:,.0f}")
        x, y = _("cells from the largest count, %"), _("rows in the cell, with noise")
        ax.set(xlim=(0.0, 100.0), xlabel=x, ylabel=y)
        legend(ax)


@dataclass(eq=False, repr=False)
class RankedOutliersDisplay(OfScores):
    """The rows with the lowest scores, lowest first.

    Make one with `from_estimator` or `from_predictions`; both take ``n_rows``, the number of rows
    to show, by default 10. It shows single rows: keep it where the rows are kept.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), int64
        Numbers of the rows, from 0.
    scores : ndarray of shape (n_rows,), float64
        Scores of the rows, from the lowest.
    [threshold]
    errors : ndarray of shape (n_rows,), float64, optional
        Standard errors of the scores. Lines extend 1.96 of them to each side: 19 times out of 20.

    [attributes]

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
        """Rank scores without drawing them.

        Parameters
        ----------
        scores : array-like of shape (n,)
        [threshold]
        n_rows : int, default=10
            Number of rows to show. Equal scores are in the order of the rows.
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
        ax.set_yticks(at, [numerals(f"{row:,}") for row in self.rows])
        ax.invert_yaxis()
        ax.grid(axis="y", lw=0.4, alpha=0.5)
        ax.set_ylabel(_("row (numbered from 0)"))


@dataclass(eq=False, repr=False)
class ScoreDisplay(OfScores):
    """Distribution of outlier scores, with the threshold below which rows are outliers.

    Make one with `from_estimator` or `from_predictions`; both take ``bins``, the approximate number
    of bins: by default the square root of the number of rows, from 10 to 40.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,), int64
        Rows in each bin.
    edges : ndarray of shape (n_bins + 1,), float64
        Edges of the bins. The threshold is one of them, so that a bin contains either only outliers
        or none.
    [threshold]

    [attributes]

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
        """Count scores without drawing them.

        Parameters
        ----------
        scores : array-like of shape (n,)
        [threshold]
        bins : int, optional
            Number of bins, possibly one more; by default the square root of the number of rows,
            from 10 to 40.
        """
        scores = as_scores(scores)
        low, high = float(scores.min()), float(scores.max())
        if bins is None:
            bins = min(max(10, round(len(scores) ** 0.5)), 40)
        # Wide enough for the edges to differ.
        least = 4.0 * np.spacing(max(abs(low), abs(high)))
        width = max((high - low) / bins, least) if low < high else 1.0
        inside = low < threshold <= high
        # Bins are numbered from the threshold, with outliers below zero, so that rounding moves no
        # score across the threshold.
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
        others, found = (~outlier, "C0", _("other rows")), (outlier, "C1", _("outliers"))
        for of, hue, label in (others, found):
            if of.any():
                ax.bar(left[of], self.counts[of], widths[of], align="edge", color=hue, label=label)
        self._draw_threshold(ax)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_ylabel(_("rows"))


@dataclass(eq=False, repr=False)
class VerdictsDisplay(Display):
    """Outliers found among the judged rows, in the order of judgement.

    Make one with `from_verdicts`.

    Parameters
    ----------
    found : ndarray of shape (n + 1,), int64
        Outliers among the first 0, 1, ... rows.
    before : ndarray of shape (n + 1,), int64, optional
        The same if these rows had been judged in the order of other scores.

    [attributes]

    Examples
    --------
    >>> from hushtable.plots import VerdictsDisplay
    >>> display = VerdictsDisplay.from_verdicts([1, 1, 0, 1], scores=[5.0, 2.0, 1.0, 9.0])
    >>> display.found, display.before
    (array([0, 1, 2, 2, 3]), array([0, 0, 1, 2, 3]))
    """

    found: NDArray[np.int64]
    before: NDArray[np.int64] | None = None

    @classmethod
    def from_verdicts(
        cls, y: ArrayLike, *, scores: ArrayLike | None = None, ax: Any = None
    ) -> Self:
        """Draw how many outliers were found.

        Parameters
        ----------
        y : array-like of shape (n,)
            Verdicts in the order in which they were given: 1 for an outlier, 0 for a fine row.
        scores : array-like of shape (n,), optional
            Scores of the rows without verdicts, whose order gives the second curve.
        [axes]

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
        """Count outliers without drawing them; see `from_verdicts`.

        Parameters
        ----------
        y : array-like of shape (n,)
        scores : array-like of shape (n,), optional
            As in `from_verdicts`.
        """
        outlier = checked(y)
        if scores is None:
            return cls(_running_total(outlier))
        given = as_scores(scores)
        if len(given) != len(outlier):
            raise UsageError(f"{len(given):,} scores for {len(outlier):,} verdicts: needs one each")
        return cls(
            _running_total(outlier), _running_total(outlier[np.argsort(given, kind="stable")])
        )

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


def _running_total(outlier: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(outlier))
