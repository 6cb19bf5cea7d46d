"""Marginals in a report: a histogram for each feature."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.schema import Feature
from hushtable.describe.plan import values

#: Features with a figure.
MOST = 48
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


def histograms(counts: Counts, shown: bool) -> list[Histogram]:
    """Return the histograms of the first features, from counts under `Plan.marginals`.

    ``shown`` is whether to show ranges and categories.
    """
    plan = counts.plan
    ends = itertools.pairwise(plan.family.offsets.tolist())
    found = []
    for feature, (first, last) in itertools.islice(
        zip(plan.schema.features, ends, strict=True), MOST
    ):
        cells = counts.counts[first:last]
        found.append(Histogram(feature, cells[:-1], int(cells[-1]), counts.noise_sd, shown))
    return found
