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
from hushtable.language import N_, _, numerals
from hushtable.report.rows import Scores

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
    tallied: bool  # whether missing and outside values were counted
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
    names = schema.names[:MOST]
    columns: dict[str, Sequence[str]] = {
        _("feature"): names,
        _("range or categories"): [values(f, shown) for f in schema.features[:MOST]],
    }
    tallies = {}
    if counts.tally is not None:
        tallies[_IN_COUNTED] = counts.tally
    if scores is not None:
        tallies[_IN_THESE] = scores.tally
    tallied, zeros = bool(tallies), []
    for headers, tally in tallies.items():
        for which, header in enumerate(headers):
            if tally[: len(schema), which].any():
                found = tally[: len(schema), which].tolist()[:MOST]
                columns[_(header)] = [numerals(f"{n:,}") for n in found]
            else:
                zeros.append(_(header))
    drift = None if scores is None else scores.drift
    if drift is not None and drift.features:
        columns[_("drift")] = _distances(drift.features, names)
        columns[_("by chance up to")] = _distances(drift.feature_levels, names)
    doubtful: list[str] = []
    if tallies:
        newest = [*tallies.values()][-1]  # these rows, if there are any
        rows = scores.n_rows if scores is not None else counts.n_rows
        outside = zip(schema.names, newest[: len(schema), 1].tolist(), strict=True)
        doubtful = [name for name, n in outside if 2 * n > rows]
    return Features(columns, zeros, tallied, doubtful, len(schema))


#: Headers of missing values, and of those outside the plan: in the rows counted, and in those here.
_IN_COUNTED = N_("missing in rows counted"), N_("outside in rows counted")
_IN_THESE = N_("missing in these rows"), N_("outside in these rows")


def _distances(found: Mapping[str, float], names: Sequence[str]) -> list[str]:
    """Return a distance of each column as text; empty where it is not known."""
    distances = [found.get(name, math.nan) for name in names]
    return ["" if math.isnan(x) else numerals(f"{x:z.4f}") for x in distances]


#: Features with a figure.
MOST_FIGURES = 48
#: Categories with a name under their bar, and letters of it.
_NAMED, _LETTERS = 6, 10


@dataclass(frozen=True)
class Histogram:
    """The counts (n_cells,) of one feature: of the cells of its range, or of its categories.

    The last category is all others. With noise, a count can be below 0. Unless its range or
    categories are ``shown``, cells have no names.
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
        values = {"name": f"{self.feature.name}{unit}", "n": numerals(f"{self.missing:,}")}
        if self.noise_sd:
            return _("%(name)s. Missing, with noise: %(n)s.", **values)
        return _("%(name)s. Missing: %(n)s.", **values)

    @property
    def words(self) -> str:
        """The counts, for those who do not see the figure."""
        most = int(self.counts.argmax())
        where = self._categories[most] if self.shown and self.feature.kind != "numeric" else ""
        if self.shown and self.feature.kind == "numeric":
            low, high = (numerals(f"{x:.4g}") for x in self._edges[most : most + 2])
            where = _("from %(low)s to %(high)s", low=low, high=high)
        return _(
            "Histogram of %(name)s, %(range)s: %(cells)s cells; the largest count is %(n)s%(where)s"
            "; missing %(missing)s.",
            name=self.feature.name,
            range=values(self.feature, self.shown),
            cells=len(self.counts),
            n=numerals(f"{self.counts[most]:,}"),
            where=where and f" ({where})",
            missing=numerals(f"{self.missing:,}"),
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
        return [*self.feature.categories, _("(others)")]


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
