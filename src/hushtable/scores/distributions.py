"""Distributions of values over rows that pass, and where in them one value lies."""

import math
import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.schema import Feature, Schema
from hushtable.data.values import DATE, range_words, value_words
from hushtable.kernels import LEVELS, MISSING_LOW

#: Cells of a numeric feature: fine enough for quantiles, and a divisor of the levels.
CELLS = 1_020
#: Features that are counted: 40 MB of cells.
MOST_FEATURES = 5_000
#: A number is called high or low if it is beyond this share of the others.
FAR = 0.9
#: A category is called rare if it has at most this share of the rows.
RARE = 0.05
#: Categories that are named as the usual ones.
_NAMED = 2
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
    def usual(self) -> str:
        """The middle nine tenths of the numbers, or the most frequent categories, in words."""
        if not self.n_rows:
            return ""
        if self.numeric:
            below = np.cumsum(self.cells) / self.n_rows
            first, last = np.searchsorted(below, [0.05, 0.95])
            low, high = self._middle(int(first)), self._middle(int(last))
            middle = Feature.numeric(self.feature.name, low=low, high=high, unit=self.feature.unit)
            # What the rounding leaves of a narrow middle is one value.
            return range_words(middle) if low < high else value_words(self.feature, low)
        most = np.argsort(-self.cells[:-1], kind="stable")[:_NAMED].tolist()
        named = [f"{self.feature.categories[j]} {self._share(j)}" for j in most if self.cells[j]]
        return ", ".join(named)

    def direction(self, value: float | str | None) -> str:
        """Say how a value lies among the others: high, low, rare; or that it does not stand out."""
        at = self.cell(value)
        if at is None:
            return "missing"
        if not self.numeric:
            if at == len(self.feature.categories):
                return "not a category of the plan"
            rare = self.cells[at] <= RARE * self.n_rows
            return f"{self._share(at)} of the rows, {'rare' if rare else 'not rare by itself'}"
        assert isinstance(value, float)
        if value > self.feature.high:
            return "high: beyond the range"
        if value < self.feature.low:
            return "low: beyond the range"
        below, above = int(self.cells[:at].sum()), int(self.cells[at + 1 :].sum())
        if max(below, above) < FAR * self.n_rows:
            return "not far out by itself"
        return "high" if below > above else "low"

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

    def _share(self, cell: int) -> str:
        share = 100.0 * float(self.cells[cell]) / max(1, self.n_rows)
        if 0.0 < share < 0.01:
            return "under 0.01%"
        return f"{share:.0f}%" if share >= 1.0 else f"{share:.1g}%"
