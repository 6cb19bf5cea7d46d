"""SimHash: the signs of random projections."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.plans.families._family import drawn
from hushtable.plans.families._projection import EXACT, Projection
from hushtable.plans.families.registry import register

#: Hash functions that one table may concatenate: its cells are numbered in 16 bits.
MAX_BITS = 16


@register
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
