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
    place on the feature's range from 0 to 1. In levels: (level + ``shift[h]``) // ``width[h]``,
    ``width`` being f and ``shift`` alpha times all levels. A category falls into a random one of
    as many places, which ``shift[h]`` picks, a missing value into a place of its own. Table t
    concatenates the next ``depth[t]`` functions, the paper's l dimensions; the vector of places
    is counted as `CountMin` says.
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
