"""Tables that concatenate hash functions, and how they are counted in CountMin sketches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import PlanError
from hushtable.plans.families._family import MAX_CELLS, KernelFamily, drawn, whole_number


@dataclass(frozen=True, eq=False)
class Concatenated(KernelFamily):
    """Tables of ``depth[t]`` hash functions each; the arrays of functions lie end to end."""

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1)

    @property
    def n_tables(self) -> int:
        # At least one, so that no depth at all is a depth too few.
        return max(1, len(self.depth))

    @property
    def n_functions(self) -> int:
        """Number of hash functions of all tables together."""
        return int(self.depth.sum(dtype=np.int64))

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """First hash function of each table, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.depth, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class CountMin(Concatenated):
    """Tables whose vectors of places are counted in CountMin sketches: a row's least cell counts.

    A row's key in a table adds up each function's place times its odd ``multiplier``. ``seed``
    (R a table) mixes the key into one cell in each of R = ``sketch_rows`` histograms of ``cells``
    cells (Cormode and Muthukrishnan, 2005). The least of a row's R values is its table's.
    """

    multiplier: NDArray[np.uint32] = drawn(np.uint32, "n_functions")
    seed: NDArray[np.uint32] = drawn(np.uint32, "n_histograms")
    sketch_rows: int = whole_number(1, 16)
    cells: int = whole_number(2, MAX_CELLS)

    @property
    def n_histograms(self) -> int:
        return self.n_tables * self.sketch_rows

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.arange(self.n_histograms + 1, dtype=np.int64) * self.cells

    def _check(self) -> None:
        super()._check()
        if not (self.multiplier & 1).all():
            raise PlanError("hash functions: an even multiplier")

    @property
    def _sketches(self) -> tuple[Any, ...]:
        return self.multiplier, self.seed.reshape(-1, self.sketch_rows), self.cells
