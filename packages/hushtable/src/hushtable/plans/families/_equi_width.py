"""One histogram a feature: the marginals."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes, NumbersLoop
from hushtable.errors import PlanError
from hushtable.plans.families._family import Floats, Ints, KernelFamily, whole_number
from hushtable.plans.families.registry import register

#: From so many columns on it is faster to count numbers without writing codes down.
_FEWEST = 16


@register
@dataclass(frozen=True, eq=False)
class EquiWidth(KernelFamily):
    """One histogram a feature: the marginals.

    A numeric feature has ``bins`` cells of equal width on its range, and one for missing
    values. A categorical feature has a cell for each category, one for unseen categories and
    one for missing values. ``bins`` is a power of two up to 256.
    """

    name: ClassVar[str] = "EquiWidth"
    _loops: ClassVar[str] = "equi_width"

    bins: int = whole_number(2, 256)

    def _check(self) -> None:
        super()._check()
        if self.bins & (self.bins - 1):
            raise PlanError(f"bins={self.bins!r}: needs a power of two from 2 to 256")

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        sizes = [
            (self.bins if f.kind == "numeric" else len(f.categories) + 1) + 1
            for f in self.schema.features
        ]
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def _widths(self) -> NDArray[np.int64]:
        """Codes that a cell of each feature spans."""
        width = kernels.LEVELS // self.bins
        return np.array([width if f.kind == "numeric" else 1 for f in self.schema.features])

    def counting_numbers(self) -> NumbersLoop | None:
        if self.n_features < _FEWEST:
            return None
        kernel, widths, offsets = kernels.count_numbers_equi_width, self._widths, self.offsets

        def count(X: Any, low: Floats, high: Floats, scale: Floats, *results: Ints) -> Any:
            return kernel(X, low, high, scale, widths, offsets, *results)

        return count

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return self._widths, self.offsets
