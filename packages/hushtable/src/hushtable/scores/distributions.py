"""Distributions of values: over rows that pass, and over merged rows that were counted."""

import itertools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.data.encoding import Codes
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.errors import FileError, PlanError, UsageError
from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.plans.draws import Purpose
from hushtable.privacy.layout import onto_simplex
from hushtable.scores.typical import UsualValues, direction

#: Cells of a numeric feature: fine enough for quantiles, and a divisor of the levels.
CELLS = 1_020
#: Features that are counted: 40 MB of cells.
MOST_FEATURES = 5_000
_DAY = 86_400.0


class Distributions:
    """Counts the values of each feature while rows pass; threads may add at the same time.

    Of columns with relations, codes are those of residuals, and say nothing of values.
    """

    def __init__(self, schema: Schema) -> None:
        self.features = schema.of_rows.features[:MOST_FEATURES]
        related = () if schema.relations is None else schema.relations.columns
        self._related = {schema.features[j].name for j in related}
        # A category behind those of the plan is any other.
        sizes = [CELLS if f.kind == "numeric" else len(f.categories) + 1 for f in self.features]
        self._cells = [np.zeros(size, np.int64) for size in sizes]
        self._lock = threading.Lock()

    def add(self, codes: Codes) -> None:
        """Take in the rows of a batch."""
        found = []
        for cells, column, feature in zip(self._cells, codes.codes, self.features, strict=False):
            here = column[column != MISSING_LOW] - np.uint16(1)
            if feature.kind == "numeric":
                here //= np.uint16(LEVELS // CELLS)
            found.append(np.bincount(here, minlength=len(cells)))
        with self._lock:
            for cells, some in zip(self._cells, found, strict=True):
                cells += some

    def of(self, name: str) -> "Distribution | None":
        """Return a feature's distribution; None if it was not counted."""
        for feature, cells in zip(self.features, self._cells, strict=True):
            if feature.name == name and name not in self._related:
                return Distribution(feature, cells)
        return None


@dataclass(frozen=True)
class Distribution:
    """How many rows have which value of one feature; a missing value is none."""

    feature: Feature
    #: (n,): of equal parts of the range, or of the categories, the last being any other.
    cells: NDArray[np.int64]

    @property
    def numeric(self) -> bool:
        """Whether the cells are parts of a range."""
        return self.feature.kind == "numeric"

    @cached_property
    def n_rows(self) -> int:
        """Rows with a value."""
        return int(self.cells.sum())

    def cell(self, value: float | str | None) -> int | None:
        """Return the cell that a value lies in; None if it is missing."""
        if value is None:
            return None
        if isinstance(value, str):
            listed = self.feature.categories
            return listed.index(value) if value in listed else len(listed)
        return min(max(math.floor(self.place(value) * CELLS), 0), CELLS - 1)

    def place(self, value: float) -> float:
        """Return where on the range a number lies: 0 at the low end, 1 at the high end."""
        low, high = self.feature.low, self.feature.high
        return 0.0 if self.feature.constant else (value - low) / (high - low)

    @cached_property
    def usual(self) -> UsualValues | None:
        """The usual values among these rows; None if none of them has a value."""
        return UsualValues.of_cells(self.feature, self.cells, self._middles)

    def _middles(self, first: int, last: int) -> tuple[float, float]:
        return self._middle(first), self._middle(last)

    def _middle(self, cell: int) -> float:
        """Return the middle of a cell, rounded so that whole numbers stay whole."""
        low, high = self.feature.low, self.feature.high
        width = (high - low) / CELLS
        if width == 0.0:
            return low
        middle = low + (cell + 0.5) * width
        if self.feature.unit == DATE and width > _DAY / 24.0:
            middle = round(middle / _DAY) * _DAY
        else:
            middle = round(middle, -math.ceil(math.log10(2.0 * width)))
        return min(max(middle, low), high)


class Frequencies:
    """Relative frequencies of values among the merged rows, feature by feature.

    Of counts under `Plan.marginals`, else `FileError` is raised; ``name`` is theirs, for messages.
    """

    def __init__(self, counts: Counts, name: str) -> None:
        plan = counts.plan
        if plan.purpose is not Purpose.MARGINALS:
            raise FileError(
                f"{name} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        if plan.schema.relations is not None:
            raise UsageError(
                f"{name} counts residuals of columns with relations, and no values: count under "
                "hushtable plan marginals of a schema without relations"
            )
        self.features, self._name = plan.schema.features, name
        n_rows = max(1.0, float(counts.counts.sum()) / len(self.features))
        #: For each feature, the relative frequency of each cell, with the noise smoothed out: of a
        #: range from low to high, or of the categories; the last cell is that of missing values.
        self.cells = []
        for first, last in itertools.pairwise(plan.family.offsets):
            rows = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                rows = onto_simplex(rows, n_rows)
            self.cells.append(rows / max(1.0, rows.sum()))

    @cached_property
    def usual(self) -> list[UsualValues | None]:
        """The usual values of each feature among the merged rows."""
        found = (
            UsualValues.of_cells(feature, cells[:-1], partial(_edges, feature, len(cells) - 1))
            for feature, cells in zip(self.features, self.cells, strict=True)
        )
        missing = [float(cells[-1]) for cells in self.cells]
        return [u and replace(u, missing=share) for u, share in zip(found, missing, strict=True)]

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `PlanError` unless these are the features that were counted."""
        if [(f.name, f.kind) for f in self.features] != [(f.name, f.kind) for f in features]:
            raise PlanError(
                f"{self._name}: the marginals are not of the model's features, in its order"
            )

    def words(self, j: int, value: float | str | None) -> str:
        """Say where a value, a number or a category or None, lies among the merged rows."""
        feature, cells = self.features[j], self.cells[j]
        if value is None:
            return f", as in {_percent(cells[-1])} of the merged rows"
        if isinstance(value, str):
            if value not in feature.categories:
                return ", none of the plan's categories"
            same = cells[feature.categories.index(value)]
            return f", as in {_percent(same)} of the merged rows"
        numbers = cells[:-1]
        place = 0.0 if feature.constant else (value - feature.low) / (feature.high - feature.low)
        cell = min(max(math.floor(place * len(numbers)), 0), len(numbers) - 1)
        below, above = float(numbers[:cell].sum()), float(numbers[cell + 1 :].sum())
        if not direction(feature, value, self.usual[j]):
            return ", not far out by itself"
        if below > above:
            return f" is above {_percent(below)} of the merged rows"
        return f" is below {_percent(above)} of the merged rows"


def _edges(feature: Feature, n_cells: int, first: int, last: int) -> tuple[float, float]:
    """Return the outer ends of two of the cells that a range is cut into."""
    width = (feature.high - feature.low) / n_cells
    return feature.low + first * width, min(feature.low + (last + 1) * width, feature.high)


def _percent(share: float) -> str:
    """Return a share, rounded down, and never all: noise may have hidden the last rows."""
    return f"{min(999, math.floor(1000.0 * share + 1e-9)) / 10:g}%"
