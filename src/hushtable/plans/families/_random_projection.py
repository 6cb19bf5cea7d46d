"""p-stable random projections, counted in CountMin sketches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.errors import PlanError
from hushtable.plans.families._concatenated import CountMin
from hushtable.plans.families._family import drawn
from hushtable.plans.families._projection import EXACT, Projection
from hushtable.plans.families.registry import register


@register
@dataclass(frozen=True, eq=False)
class RandomProjection(CountMin, Projection):
    """Random-projection LSH (Datar et al., 2004; paper, Definition 2): h(x) = (a.x + b) // w.

    Hash function h's place is (a row's product with ``weight[h]`` + ``shift[h]``) //
    ``width[h]``. Normal weights make it sensitive to the l2 distance, Cauchy weights to l1.
    Table t concatenates the next ``depth[t]`` functions; the vector of places is counted in a
    CountMin sketch, as in `SubspaceGrid`.

    Parameters
    ----------
    schema : Schema
        The features.
    depth : ndarray of shape (n_tables,), uint8
        Hash functions of each table, the paper's l.
    weight : ndarray of shape (sum(depth), n_dimensions), int32
        The paper's a, in whole numbers.
    salt : ndarray of shape (n_features,), uint32
        What is mixed into each feature's categories.
    shift : ndarray of shape (sum(depth),), int64
        The paper's b, plus as many whole widths as leave no sum below 0.
    width : ndarray of shape (sum(depth),), int64
        The paper's w.
    multiplier : ndarray of shape (sum(depth),), uint32
        Odd factor of each function's place in the row's key.
    seed : ndarray of shape (n_tables * sketch_rows,), uint32
        What mixes the key into the cells of each histogram.
    sketch_rows, cells : int
        Histograms of a table, and cells of each.
    """

    name: ClassVar[str] = "RandomProjection"
    _loops: ClassVar[str] = "random_projection"

    shift: NDArray[np.int64] = drawn(np.int64, "n_functions", low=0, below=EXACT // 2)
    width: NDArray[np.int64] = drawn(np.int64, "n_functions", low=1)

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        grid = self._first, self.shift.astype(np.float64), self.width.astype(np.float64)
        return *grid, *self._sketches

    def _check(self) -> None:
        super()._check()
        if (self.shift < self._reach).any():
            raise PlanError("hash functions: a shift that leaves sums below 0")
        if ((self.shift + self._reach) // self.width).max() >= 1 << 31:
            raise PlanError("hash functions: a width that makes more than 2**31 places")

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return *self._vectors, self._functions
