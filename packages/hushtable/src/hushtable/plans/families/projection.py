"""Random projections in whole numbers with exact products, and grids on random subspaces."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.plans.families.family import Concatenated, CountMin, drawn, register

#: Whole numbers below this, and their sums, are exact in float64.
EXACT = 1 << 53
#: Most hash functions that one table of SimHash may concatenate: a cell's number has 16 bits.
MAX_BITS = 16


def n_dimensions(schema: Schema) -> NDArray[np.int64]:
    """Return how many dimensions of a row's vector each feature has: 1, or a corner's bits."""
    kinds = [kernels.CORNER_BITS if f.kind == "categorical" else 1 for f in schema.features]
    return np.array(kinds, np.int64)


@dataclass(frozen=True, eq=False)
class Projection(Concatenated):
    """Hash functions of the product of weights and a row's vector.

    A number's coordinate is twice the distance of its level from the middle of its feature's range,
    in levels; a missing value's is 0. A category's coordinates are 16 numbers, each plus or minus
    `hushtable.kernels.CORNER`: the bits of MurmurHash3's fmix32 of its code and the feature's
    ``salt``, combined by exclusive or. All are whole numbers, as the weights are, and every
    product is below 2**53, so it is exact in float64 in any order of addition.
    """

    weight: NDArray[np.int32] = drawn(np.int32, "n_functions", "n_dimensions")
    salt: NDArray[np.uint32] = drawn(np.uint32, "n_features")

    def _check(self) -> None:
        super()._check()
        if int(self._reach.max()) >= EXACT // 2:
            raise PlanError("hash functions: the weights are too large for exact products")

    @property
    def n_dimensions(self) -> int:
        """Number of dimensions of a row's vector."""
        return int(n_dimensions(self.schema).sum())

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        """Bound on the absolute value of every function's product."""
        reach: NDArray[np.int64] = np.abs(self.weight.astype(np.int64)).sum(axis=1)
        return reach * kernels.LEVELS

    @cached_property
    def _vectors(self) -> tuple[Any, ...]:
        """How kernels make vectors of rows, and the weights by which they multiply them."""
        first = np.concatenate([[0], np.cumsum(n_dimensions(self.schema))])
        categorical = np.array([f.kind == "categorical" for f in self.schema.features])
        return (first, categorical, self.salt), self.weight.astype(np.float64)


@register
@dataclass(frozen=True, eq=False)
class SimHash(Projection):
    """Signs of random projections (Charikar, 2002): the cosine similarity's hash functions.

    Hash function h tests whether a row's product with ``weight[h]`` is at or above ``cut[h]``,
    which represents the origin. Table t concatenates the next ``depth[t]`` functions into a
    code of l bits, which is its cell.
    """

    name: ClassVar[str] = "SimHash"
    _loops: ClassVar[str] = "sim_hash"

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1, below=MAX_BITS + 1)
    cut: NDArray[np.int64] = drawn(np.int64, "n_functions", low=-EXACT, below=EXACT + 1)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(1 << self.depth.astype(np.int64))])

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        return self._first, self.cut.astype(np.float64), self.offsets

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return *self._vectors, self._functions


@register
@dataclass(frozen=True, eq=False)
class RandomProjection(CountMin, Projection):
    """Random-projection LSH (Datar et al., 2004; paper, Definition 2): h(x) = (a.x + b) // w.

    Hash function h's place is (a row's product with ``weight[h]`` + ``shift[h]``) //
    ``width[h]``. These are the paper's a in whole numbers; its b, plus as many whole widths as are
    needed to keep sums from being negative; and its w. Normal weights make it sensitive to the l2
    distance, Cauchy weights to l1. Table t concatenates the next ``depth[t]`` functions (l in the
    paper); the vector of places is counted as described in `CountMin`.
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
            raise PlanError("hash functions: a shift leaves sums below 0")
        if ((self.shift + self._reach) // self.width).max() >= 1 << 31:
            raise PlanError("hash functions: a width makes more than 2**31 places")

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return *self._vectors, self._functions


@register
@dataclass(frozen=True, eq=False)
class SubspaceGrid(CountMin):
    """Grids on random subspaces (Sathe and Aggarwal, 2016; paper, section 3.1).

    Hash function h maps feature ``feature[h]`` to floor((u + alpha) / f), where u is the value's
    place on the feature's range from 0 to 1. In levels: (level + ``shift[h]``) // ``width[h]``,
    where ``width`` is f and ``shift`` is alpha, both times the number of levels. A category falls
    into one of as many places, chosen at random by ``shift[h]``; a missing value has its own place.
    Table t concatenates the next ``depth[t]`` functions (l dimensions in the paper); the vector of
    places is counted as described in `CountMin`.
    """

    name: ClassVar[str] = "SubspaceGrid"
    _loops: ClassVar[str] = "subspace_grid"

    feature: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below="n_features")
    width: NDArray[np.uint32] = drawn(np.uint32, "n_functions", low=2, below=kernels.LEVELS + 1)
    shift: NDArray[np.uint32] = drawn(np.uint32, "n_functions")

    def _check(self) -> None:
        super()._check()
        if (self.shift >= self.width).any():
            raise PlanError("hash functions: a shift is beyond its width")

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        categorical = np.array([f.kind == "categorical" for f in self.schema.features], np.uint8)
        feature = self.feature.astype(np.int64)
        grid = self._first, feature, self.shift, self.width
        multiplier, *sketches = self._sketches
        return *grid, multiplier, categorical[feature], *sketches

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self._functions,)
