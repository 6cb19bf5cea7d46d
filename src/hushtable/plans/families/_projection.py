"""What the families of random projections share: weights in whole numbers, and their bounds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families._family import KernelFamily

__all__ = ["Projection", "n_dimensions"]

#: Whole numbers below it, and their sums, are exact in float64.
EXACT = 1 << 53


def n_dimensions(schema: Schema) -> NDArray[np.int64]:
    """Return how many dimensions of a row's vector each feature takes: 1, or a corner's bits."""
    kinds = [kernels.CORNER_BITS if f.kind == "categorical" else 1 for f in schema.features]
    return np.array(kinds, np.int64)


@dataclass(frozen=True, eq=False)
class Projection(KernelFamily):
    """Hash functions of the product of weights and a row's vector.

    A number's coordinate is twice its level's distance from the middle of its feature's range,
    in levels; a missing value's is 0. A category's coordinates are 16, each plus or minus
    `hushtable.kernels.CORNER`: the bits of MurmurHash3's fmix32 of its code and the feature's
    ``salt``, combined by exclusive or. All are whole numbers, as the weights are, and every
    product is below 2**53: it is exact in float64, in whatever order it is added up.
    """

    schema: Schema = field(repr=False)
    depth: NDArray[np.uint8]
    weight: NDArray[np.int32]
    salt: NDArray[np.uint32]

    def __post_init__(self) -> None:
        for key, kind in self._dtypes().items():
            array, ndim = getattr(self, key), 2 if key == "weight" else 1
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != ndim:
                raise PlanError(
                    f"hash functions: {key} must be {np.dtype(kind)} of {ndim} dimension(s)"
                )
        functions = int(self.depth.sum(dtype=np.int64))
        if not len(self.depth) or self.depth.min() < 1:
            raise PlanError("hash functions: needs tables of 1 function or more each")
        needed = (functions, int(n_dimensions(self.schema).sum()))
        if self.weight.shape != needed or self.salt.shape != (len(self.schema),):
            raise PlanError(
                f"hash functions: weights {self.weight.shape} and salts {self.salt.shape}; needs "
                f"{needed} and ({len(self.schema)},)"
            )
        if int(self._reach.max()) >= EXACT // 2:
            raise PlanError("hash functions: the weights are too large for exact products")
        self._check()
        for key in self._dtypes():
            # A copy of its own, read-only: the plan's id stands for its content.
            array = getattr(self, key).copy()
            array.setflags(write=False)
            object.__setattr__(self, key, array)

    def _check(self) -> None:
        """Raise `PlanError` if the family's own arrays do not fit."""
        raise NotImplementedError

    @property
    def n_tables(self) -> int:
        return len(self.depth)

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        """Size that no function's product exceeds."""
        reach: NDArray[np.int64] = np.abs(self.weight.astype(np.int64)).sum(axis=1)
        return reach * kernels.LEVELS

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """First hash function of each table, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.depth, dtype=np.int64)])

    @cached_property
    def _rows(self) -> tuple[Any, ...]:
        first = np.concatenate([[0], np.cumsum(n_dimensions(self.schema))])
        categorical = np.array([f.kind == "categorical" for f in self.schema.features])
        return first, categorical, self.salt

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return self.weight.astype(np.float64)

    @staticmethod
    def _dtypes() -> dict[str, type[np.generic]]:
        return {"depth": np.uint8, "weight": np.int32, "salt": np.uint32}

    def arrays(self) -> Arrays:
        return {key: getattr(self, key) for key in self._dtypes()}
