"""One histogram of the scores that a model gives: how rare a row is among all rows counted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families._family import MAX_CELLS, HashFamily

__all__ = ["ScoreHistogram"]

#: Values of cells are whole numbers of it, in bits: the unit that scores are rounded to.
_UNIT = 2.0**-20
#: No sum of values is larger: it stays exact in float64.
_LARGEST = 1 << 52


@dataclass(frozen=True, eq=False)
class ScoreHistogram(HashFamily):
    """One histogram of scores: the hash function is a model.

    Parameters
    ----------
    schema : Schema
        The features.
    model : HashFamily
        The model's tables.
    value : ndarray of shape (model.n_cells,), int64
        Score of each of their cells, in 2**-20 of the model's unit.
    bins : int
        Cells of equal width from the least to the largest score that the tables can give.
    """

    name: ClassVar[str] = "ScoreHistogram"

    schema: Schema = field(repr=False)
    model: HashFamily
    value: NDArray[np.int64] = field(repr=False)
    bins: int

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not 2 <= self.bins <= MAX_CELLS:
            raise PlanError(f"bins={self.bins!r}: needs a whole number from 2 to {MAX_CELLS:,}")
        cells = (self.model.n_cells,)
        if self.value.dtype != np.int64 or self.value.shape != cells:
            raise PlanError(
                f"scores of cells are {self.value.dtype} {self.value.shape}: needs int64 {cells}"
            )
        bound = _LARGEST // self.model.n_histograms
        if self.value.max() > bound or self.value.min() < -bound:
            raise PlanError("scores of cells are too large for exact sums")
        value = self.value.copy()
        value.setflags(write=False)
        object.__setattr__(self, "value", value)

    @property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        return np.array([0, self.bins])

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """Scores between which the cells lie (bins + 1,); a row's score is a mean over tables."""
        first, width = self._layout
        edges = (first + width * np.arange(self.bins + 1)) * (_UNIT / self.model.n_tables)
        return np.asarray(edges, np.float64)

    @cached_property
    def _layout(self) -> tuple[int, int]:
        """Least sum of values over the tables, and the width of a cell, so that all sums fit."""
        starts = self.model.offsets[:-1]
        by_table = (self.model.n_tables, -1)
        low = np.minimum.reduceat(self.value, starts).reshape(by_table).min(axis=1)
        high = np.maximum.reduceat(self.value, starts).reshape(by_table).max(axis=1)
        least = int(low.sum())
        return least, (int(high.sum()) - least) // self.bins + 1

    @cached_property
    def _sums(self) -> Callable[[Codes], NDArray[np.float64]]:
        return self.model.summing(np.asarray(self.value * _UNIT, np.float64))

    def parameters(self) -> dict[str, Any]:
        return {"bins": self.bins, "model": {"name": self.model.name, **self.model.parameters()}}

    def arrays(self) -> Arrays:
        of_model = {f"model.{name}": array for name, array in self.model.arrays().items()}
        return {"value": self.value, **of_model}

    def cells(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell (n,) of each score (n,): the model's, a mean over its tables."""
        # Whole numbers, as all scores are when counted: the same cell on every machine.
        units = np.rint(scores * (self.model.n_tables / _UNIT)).astype(np.int64)
        least, width = self._layout
        return np.clip((units - least) // width, 0, self.bins - 1)

    def _cells(self, codes: Codes) -> NDArray[np.int64]:
        return self.cells(self._sums(codes) / self.model.n_tables)

    def count(
        self, codes: Codes, counts: NDArray[np.int64], weights: NDArray[np.int64] | None = None
    ) -> None:
        np.add.at(counts, self._cells(codes), 1 if weights is None else weights)

    def count_pairs(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        tables: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        np.add.at(counts, self._cells(codes)[rows], 1)

    def sum(self, codes: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(values[self._cells(codes)], np.float64)
