"""RS-Hash: grids on random subspaces, counted in CountMin sketches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.errors import PlanError
from hushtable.plans.families._concatenated import CountMin
from hushtable.plans.families._family import drawn
from hushtable.plans.families.registry import register


@register
@dataclass(frozen=True, eq=False)
class SubspaceGrid(CountMin):
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
    _loops: ClassVar[str] = "subspace_grid"

    feature: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below="n_features")
    width: NDArray[np.uint32] = drawn(np.uint32, "n_functions", low=2, below=kernels.LEVELS + 1)
    shift: NDArray[np.uint32] = drawn(np.uint32, "n_functions")

    def _check(self) -> None:
        super()._check()
        if (self.shift >= self.width).any():
            raise PlanError("hash functions: a shift beyond its width")

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        categorical = np.array([f.kind == "categorical" for f in self.schema.features], np.uint8)
        feature = self.feature.astype(np.int64)
        grid = self._first, feature, self.shift, self.width
        multiplier, *sketches = self._sketches
        return *grid, multiplier, categorical[feature], *sketches

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self._functions,)
