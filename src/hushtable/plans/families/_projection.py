"""The base of the random projections: weights in whole numbers, and exact products."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.plans.families._concatenated import Concatenated
from hushtable.plans.families._family import drawn

#: Whole numbers below it, and their sums, are exact in float64.
EXACT = 1 << 53


def n_dimensions(schema: Schema) -> NDArray[np.int64]:
    """Return how many dimensions of a row's vector each feature takes: 1, or a corner's bits."""
    kinds = [kernels.CORNER_BITS if f.kind == "categorical" else 1 for f in schema.features]
    return np.array(kinds, np.int64)


@dataclass(frozen=True, eq=False)
class Projection(Concatenated):
    """Hash functions of the product of weights and a row's vector.

    A number's coordinate is twice its level's distance from the middle of its feature's range,
    in levels; a missing value's is 0. A category's coordinates are 16, each plus or minus
    `hushtable.kernels.CORNER`: the bits of MurmurHash3's fmix32 of its code and the feature's
    ``salt``, combined by exclusive or. All are whole numbers, as the weights are, and every
    product is below 2**53: it is exact in float64, in whatever order it is added up.
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
        """Size that no function's product exceeds."""
        reach: NDArray[np.int64] = np.abs(self.weight.astype(np.int64)).sum(axis=1)
        return reach * kernels.LEVELS

    @cached_property
    def _vectors(self) -> tuple[Any, ...]:
        """How kernels make vectors of rows, and the weights that they multiply them with."""
        first = np.concatenate([[0], np.cumsum(n_dimensions(self.schema))])
        categorical = np.array([f.kind == "categorical" for f in self.schema.features])
        return (first, categorical, self.salt), self.weight.astype(np.float64)
