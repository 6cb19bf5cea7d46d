"""p-stable random projections, counted in CountMin sketches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.errors import PlanError
from hushtable.plans.families._family import MAX_CELLS, Kernels
from hushtable.plans.families._projection import EXACT, Projection

__all__ = ["RandomProjection"]


@dataclass(frozen=True, eq=False)
class RandomProjection(Projection):
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
    _kernels: ClassVar[Kernels] = Kernels(
        kernels.count_random_projection,
        kernels.count_pairs_random_projection,
        kernels.sum_random_projection,
    )

    shift: NDArray[np.int64]
    width: NDArray[np.int64]
    multiplier: NDArray[np.uint32]
    seed: NDArray[np.uint32]
    sketch_rows: int
    cells: int

    @cached_property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        return np.arange(len(self.seed) + 1, dtype=np.int64) * self.cells

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        return (
            self._table,
            self.shift.astype(np.float64),
            self.width.astype(np.float64),
            self.multiplier,
            self.seed.reshape(-1, self.sketch_rows),
            self.cells,
        )

    def _check(self) -> None:
        of_functions = ("shift", "width", "multiplier")
        if any(len(getattr(self, key)) != len(self.weight) for key in of_functions):
            raise PlanError("hash functions: the depths and the arrays differ in length")
        if not 1 <= self.sketch_rows <= 16 or not 2 <= self.cells <= MAX_CELLS:
            raise PlanError(
                f"sketch_rows={self.sketch_rows}, cells={self.cells}: needs 1 to 16 rows of 2 to "
                f"{MAX_CELLS} cells"
            )
        if len(self.seed) != len(self.depth) * self.sketch_rows:
            raise PlanError("hash functions: needs a seed for each row of each table's sketch")
        if self.width.min() < 1 or not (self.multiplier & 1).all():
            raise PlanError("hash functions: a width below 1, or an even multiplier")
        if (self.shift < self._reach).any() or self.shift.max() >= EXACT // 2:
            raise PlanError("hash functions: a shift that leaves sums below 0, or above 2**53")
        if ((self.shift + self._reach) // self.width).max() >= 1 << 31:
            raise PlanError("hash functions: a width that makes more than 2**31 places")

    @staticmethod
    def _dtypes() -> dict[str, type[np.generic]]:
        return Projection._dtypes() | {
            "shift": np.int64,
            "width": np.int64,
            "multiplier": np.uint32,
            "seed": np.uint32,
        }

    def parameters(self) -> dict[str, Any]:
        return {"sketch_rows": self.sketch_rows, "cells": self.cells}

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return self._rows, self._weights, self._functions
