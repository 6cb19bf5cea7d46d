"""Features in a report: their ranges or categories, counts, and drift."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.schema import Feature
from hushtable.describe.plan import values
from hushtable.report.rows import Scores
from hushtable.scores.plausible import PlausibleRange, ValueHistogram

#: Features that the table lists; the JSON of ``hushtable inspect`` has them all.
MOST = 200


@dataclass(frozen=True)
class Features:
    """A table of the plan's features, the first of many.

    Its columns, by header: names, ranges or categories, and where there are any, rows in which a
    value was missing or outside the plan, and the drift beside what chance makes of it.
    """

    columns: Mapping[str, Sequence[str]]
    zeros: Sequence[str]  # headers of columns that would hold zeros only
    tallied: bool  # whether anybody counted what was missing and outside
    doubtful: Sequence[str]  # names of features in which most rows lie outside the plan
    n_features: int  # all of them

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table, row by row."""
        return list(zip(*self.columns.values(), strict=True))


def features_of(counts: Counts, scores: Scores | None, shown: bool) -> Features:
    """Return the features of the plan of counts, beside other rows where those were scored.

    ``shown`` is whether to show ranges and categories.
    """
    schema = counts.plan.schema.of_rows
    columns = {
        "feature": schema.names[:MOST],
        "range or categories": [values(f, shown) for f in schema.features[:MOST]],
    }
    tallies = {}
    if counts.tally is not None:
        tallies["rows counted"] = counts.tally
    if scores is not None:
        tallies["these rows"] = scores.tally
    tallied, zeros = bool(tallies), []
    for whose, tally in tallies.items():
        for which, what in enumerate(("missing", "outside")):
            if tally[: len(schema), which].any():
                columns[f"{what} in {whose}"] = [
                    f"{n:,}" for n in tally[: len(schema), which].tolist()[:MOST]
                ]
            else:
                zeros.append(f"{what} in {whose}")
    drift = None if scores is None else scores.drift
    if drift is not None and drift.features:
        distances = [drift.features.get(name, math.nan) for name in columns["feature"]]
        columns["drift"] = ["" if math.isnan(x) else f"{x:z.4f}" for x in distances]
        levels = [drift.feature_levels.get(name, math.nan) for name in columns["feature"]]
        columns["by chance up to"] = ["" if math.isnan(x) else f"{x:.4f}" for x in levels]
    doubtful: list[str] = []
    if tallies:
        _, newest = tallies.popitem()  # these rows, if there are any
        rows = scores.n_rows if scores is not None else counts.n_rows
        outside = zip(schema.names, newest[: len(schema), 1].tolist(), strict=True)
        doubtful = [name for name, n in outside if 2 * n > rows]
    return Features(columns, zeros, tallied, doubtful, len(schema))


#: Features with a figure.
MOST_FIGURES = 48
#: Categories with a name under their bar, and letters of it.
_NAMED, _LETTERS = 6, 10


@dataclass(frozen=True)
class Histogram:
    """The counts (n_cells,) of one feature: of the cells of its range, or of its categories.

    The last category is all others. With noise, a count can be below 0. Unless its range or
    categories are ``shown``, cells stand side by side, unnamed.
    """

    feature: Feature
    counts: NDArray[np.int64]
    missing: int  # rows without a value
    noise_sd: float  # standard deviation of the noise on a count
    shown: bool

    @property
    def caption(self) -> str:
        """The text under the figure."""
        numeric = self.feature.kind == "numeric"
        unit = f", {self.feature.unit}" if numeric and self.feature.unit else ""
        noise = ", with noise" if self.noise_sd else ""
        return f"{self.feature.name}{unit}. Missing{noise}: {self.missing:,}."

    @property
    def words(self) -> str:
        """The counts, for those who do not see the figure."""
        most = int(self.counts.argmax())
        if not self.shown:
            where = ""
        elif self.feature.kind == "numeric":
            low, high = self._edges[most : most + 2]
            where = f" from {low:.4g} to {high:.4g}"
        else:
            where = f" {self._categories[most]}"
        return (
            f"Histogram of {self.feature.name}, {values(self.feature, self.shown)}: "
            f"{len(self.counts)} cells, the fullest{where} with a count of "
            f"{self.counts[most]:,}; missing {self.missing:,}."
        )

    def plot(self, ax: Any = None) -> "Histogram":
        """Draw a bar for each cell, and a band of twice the noise."""
        ax.spines[["top", "right"]].set_visible(False)
        if not self.shown:
            ax.stairs(self.counts, fill=True, color="C0")
            ax.set_xticks([])
        elif self.feature.kind == "numeric":
            ax.stairs(self.counts, self._edges, fill=True, color="C0")
            ax.set_xlim(self._edges[0], self._edges[-1])
        else:
            at = np.arange(len(self.counts))
            ax.bar(at, self.counts, color="C0")
            named = len(at) <= _NAMED
            names = [name[:_LETTERS] for name in self._categories] if named else []
            ax.set_xticks(at if named else [], names, parse_math=False)
        if self.noise_sd:
            noise = 2.0 * self.noise_sd
            ax.axhspan(-noise, noise, color="C1", alpha=0.25, lw=0, zorder=0)
        ax.yaxis.get_major_locator().set_params(integer=True, nbins=3)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        return self

    @property
    def _edges(self) -> NDArray[np.float64]:
        low, high = self.feature.low, self.feature.high
        # A range of one point has width too, to be seen.
        return np.linspace(low, high if low < high else low + 1.0, len(self.counts) + 1)

    @property
    def _categories(self) -> list[str]:
        return [*self.feature.categories, "(others)"]


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
        low, high = (f"{limit.value:.10g}" for limit in self.range.limits)
        beside = ", and of this site as a line" if self.own is not None else ""
        name, unit = self.range.feature.name, self.range.feature.unit
        return f"Histogram of {name}{beside}, with limits at {low} and {high} {unit}."

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


def histograms(counts: Counts, shown: bool) -> list[Histogram]:
    """Return the histograms of the first features, from counts under `Plan.marginals`.

    ``shown`` is whether to show ranges and categories.
    """
    plan = counts.plan
    if plan.schema.relations is not None:  # they count residuals, and no values
        return []
    ends = itertools.pairwise(plan.family.offsets.tolist())
    found = []
    for feature, (first, last) in itertools.islice(
        zip(plan.schema.of_rows.features, ends, strict=False), MOST_FIGURES
    ):
        cells = counts.counts[first:last]
        found.append(Histogram(feature, cells[:-1], int(cells[-1]), counts.noise_sd, shown))
    return found
