"""Distributions of values over rows that pass, for charts and for what is usual among them."""

import math
import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.kernels import LEVELS, MISSING_LOW
from hushtable.scores.typical import UsualValues

#: Cells of a numeric feature: fine enough for quantiles, and a divisor of the levels.
CELLS = 1_020
#: Features that are counted: 40 MB of cells.
MOST_FEATURES = 5_000
_DAY = 86_400.0


class Distributions:
    """Counts the values of each feature while rows pass; threads may add at the same time."""

    def __init__(self, schema: Schema) -> None:
        self.features = schema.features[:MOST_FEATURES]
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
            if feature.name == name:
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
