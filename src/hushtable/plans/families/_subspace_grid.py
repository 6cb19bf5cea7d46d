"""RS-Hash: grids on random subspaces, counted in CountMin sketches."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families._family import MAX_CELLS, KernelFamily, Kernels

__all__ = ["SubspaceGrid"]


@dataclass(frozen=True, eq=False)
class SubspaceGrid(KernelFamily):
    """Grids on random subspaces (Sathe and Aggarwal, 2016; paper, section 3.1).

    Hash function h maps feature ``feature[h]`` to floor((u + alpha) / f), u being the value's
    place on the feature's range from 0 to 1. In levels: (level + ``shift[h]``) // ``width[h]``.
    A category falls into a random one of as many places, a missing value into a place of its
    own. Table t concatenates the next ``depth[t]`` functions; the vector of places is counted
    in a CountMin sketch (Cormode and Muthukrishnan, 2005): one cell in each of R histograms of
    ``cells`` cells. The least of a row's R values is its table's.

    Parameters
    ----------
    schema : Schema
        Features in the order that ``feature`` numbers.
    depth : ndarray of shape (m,), uint8
        Dimensions of each table's subspace, the paper's l.
    feature : ndarray of shape (sum(depth),), uint16
        Feature of each hash function.
    width : ndarray of shape (sum(depth),), uint32
        Levels that a place spans, f times all levels.
    shift : ndarray of shape (sum(depth),), uint32
        Levels that the grid is shifted by, alpha times all levels; below ``width``. For a
        categorical feature, any number: it picks the places.
    multiplier : ndarray of shape (sum(depth),), uint32
        Odd factor of each function's place in the row's key.
    seed : ndarray of shape (m * R,), uint32
        What mixes the key into the cells of each histogram.
    sketch_rows, cells : int
        R, and cells of a histogram.
    """

    name: ClassVar[str] = "SubspaceGrid"
    _kernels: ClassVar[Kernels] = Kernels(
        kernels.count_subspace_grid, kernels.count_pairs_subspace_grid, kernels.sum_subspace_grid
    )

    schema: Schema = field(repr=False)
    depth: NDArray[np.uint8]
    feature: NDArray[np.uint16]
    width: NDArray[np.uint32]
    shift: NDArray[np.uint32]
    multiplier: NDArray[np.uint32]
    seed: NDArray[np.uint32]
    sketch_rows: int
    cells: int

    def __post_init__(self) -> None:
        self._check()
        for key in self._dtypes():
            # A copy of its own, read-only: the plan's id stands for its content.
            array = getattr(self, key).copy()
            array.setflags(write=False)
            object.__setattr__(self, key, array)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        return np.arange(len(self.seed) + 1, dtype=np.int64) * self.cells

    @property
    def n_tables(self) -> int:
        return len(self.depth)

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        categorical = np.array([f.kind == "categorical" for f in self.schema.features], np.uint8)
        return (
            np.concatenate([[0], np.cumsum(self.depth, dtype=np.int64)]),
            self.feature.astype(np.int64),
            self.shift,
            self.width,
            self.multiplier,
            categorical[self.feature],
            self.seed.reshape(-1, self.sketch_rows),
            self.cells,
        )

    def _check(self) -> None:
        for key, kind in self._dtypes().items():
            array = getattr(self, key)
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
                raise PlanError(f"hash functions: {key} must be one row of {np.dtype(kind)}")
        functions = int(self.depth.sum(dtype=np.int64))
        if not len(self.depth) or self.depth.min() < 1:
            raise PlanError("hash functions: needs tables of 1 function or more each")
        of_functions = ("feature", "width", "shift", "multiplier")
        if any(len(getattr(self, key)) != functions for key in of_functions):
            raise PlanError(f"hash functions: the depths add up to {functions}, the arrays do not")
        if not 1 <= self.sketch_rows <= 16 or not 2 <= self.cells <= MAX_CELLS:
            raise PlanError(
                f"sketch_rows={self.sketch_rows}, cells={self.cells}: needs 1 to 16 rows of 2 to "
                f"{MAX_CELLS} cells"
            )
        if len(self.seed) != len(self.depth) * self.sketch_rows:
            raise PlanError("hash functions: needs a seed for each row of each table's sketch")
        if self.feature.max() >= len(self.schema):
            raise PlanError("hash functions: a feature that the schema does not have")
        if self.width.min() < 2 or self.width.max() > kernels.LEVELS:
            raise PlanError(f"hash functions: a width must be from 2 to {kernels.LEVELS} levels")
        if (self.shift >= self.width).any() or not (self.multiplier & 1).all():
            raise PlanError("hash functions: a shift beyond its width, or an even multiplier")

    @staticmethod
    def _dtypes() -> dict[str, type[np.generic]]:
        return {
            "depth": np.uint8,
            "feature": np.uint16,
            "width": np.uint32,
            "shift": np.uint32,
            "multiplier": np.uint32,
            "seed": np.uint32,
        }

    def parameters(self) -> dict[str, Any]:
        return {"sketch_rows": self.sketch_rows, "cells": self.cells}

    def arrays(self) -> Arrays:
        return {key: getattr(self, key) for key in self._dtypes()}

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self._functions,)
