"""SimHash: the signs of random projections."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.errors import PlanError
from hushtable.plans.families._family import Kernels
from hushtable.plans.families._projection import EXACT, Projection

__all__ = ["SimHash"]

#: Hash functions that one table may concatenate: its cells are numbered in 16 bits.
MAX_BITS = 16


@dataclass(frozen=True, eq=False)
class SimHash(Projection):
    """Signs of random projections (Charikar, 2002): the cosine similarity's hash functions.

    Hash function h asks whether a row's product with ``weight[h]`` is at or above ``cut[h]``,
    which stands for the origin. Table t concatenates the next ``depth[t]`` functions into a
    code of l bits, which is its cell.

    Parameters
    ----------
    schema : Schema
        The features.
    depth : ndarray of shape (n_tables,), uint8
        Hash functions of each table, ACE's K; 1 to 16.
    weight : ndarray of shape (sum(depth), n_dimensions), int32
        What each function multiplies a row's vector with.
    salt : ndarray of shape (n_features,), uint32
        What is mixed into each feature's categories.
    cut : ndarray of shape (sum(depth),), int64
        Least product on the high side.
    """

    name: ClassVar[str] = "SimHash"
    _kernels: ClassVar[Kernels] = Kernels(
        kernels.count_sim_hash, kernels.count_pairs_sim_hash, kernels.sum_sim_hash
    )

    cut: NDArray[np.int64]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        return np.concatenate([[0], np.cumsum(1 << self.depth.astype(np.int64))])

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        return self._table, self.cut.astype(np.float64), self.offsets

    def _check(self) -> None:
        if self.depth.max() > MAX_BITS:
            raise PlanError(f"hash functions: needs tables of 1 to {MAX_BITS} functions each")
        if len(self.cut) != len(self.weight) or np.abs(self.cut).max() > EXACT:
            raise PlanError("hash functions: needs a cut of at most 2**53 for each function")

    @staticmethod
    def _dtypes() -> dict[str, type[np.generic]]:
        return Projection._dtypes() | {"cut": np.int64}

    def parameters(self) -> dict[str, Any]:
        return {}

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return self._rows, self._weights, self._functions
