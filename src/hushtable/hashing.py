"""Hash families: drawn hash functions, their tables of cells, and the rows' ways into them.

A family lays its tables end to end in one vector of cells. Everything above (sketches, files,
noise, scores) sees that vector and ``offsets`` only, never which family it is.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.encoding import Codes
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.schema import Schema

__all__ = ["EquiWidth", "HashFamily", "RandomFeature", "family_from_content"]

#: Cells that one table may have: a cell is numbered in 16 bits.
MAX_CELLS = 1 << 16
#: Hash functions that one table may concatenate: their bits are one 32-bit code.
MAX_DEPTH = 32

_EVERY_ROW_ONCE = np.empty(0, np.int64)


class HashFamily(ABC):
    """Tables of cells; a row falls into exactly one cell of each.

    Attributes
    ----------
    name : str
        The family's name in files.
    offsets : ndarray of shape (n_tables + 1,), int64
        First cell of each table in the vector of all cells.
    """

    name: ClassVar[str]
    offsets: NDArray[np.int64]

    @property
    def n_tables(self) -> int:
        """Number of tables, the paper's m."""
        return len(self.offsets) - 1

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables together."""
        return int(self.offsets[-1])

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return what the family needs besides arrays, as JSON carries it."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return the drawn arrays: all that a reader in another language needs."""

    @abstractmethod
    def count(
        self,
        codes: Codes,
        counts: NDArray[np.int64],
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        """Add every row, ``weights`` (n,) times, to ``counts`` (n_cells,), in every table."""

    @abstractmethod
    def count_pairs(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        tables: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Add, for each pair p, row ``rows[p]`` to ``counts`` in table ``tables[p]`` only."""

    @abstractmethod
    def sum(self, codes: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each row, the sum over the tables of its cells' ``values`` (n_cells,)."""


@dataclass(frozen=True, eq=False)
class RandomFeature(HashFamily):
    """Random-feature LSH (paper, Definition 3): compare one random feature with a random cut.

    Hash function h asks whether feature ``feature[h]`` is at or above ``cut[h]``. Where the
    feature is categorical, a random set of its categories plays the part of the cut. A missing
    value falls on the side drawn for it, independently in each hash function. Table t
    concatenates the next ``depth[t]`` functions, g = (h_1, ..., h_l), into a code of l bits.
    The code is the cell; where 2**l exceeds ``max_cells``, it is mixed by MurmurHash3's
    fmix32 and taken modulo ``max_cells``.

    Parameters
    ----------
    schema : Schema
        Features in the order that ``feature`` numbers.
    depth : ndarray of shape (n_tables,), uint8
        Hash functions of each table, the paper's l; 1 to 32.
    feature : ndarray of shape (sum(depth),), uint16
        Feature of each hash function.
    cut : ndarray of shape (sum(depth),), uint16
        Lowest code (see `hushtable.kernels`) on the high side; 0 for a categorical feature.
    missing : ndarray of shape (sum(depth),), uint8
        Side of a missing value, 0 or 1.
    subsets : ndarray of uint8
        For each hash function on a categorical feature, in order, K + 2 sides: missing, the K
        categories, an unseen category.
    max_cells : int
        Cells of a table at most; a power of two.
    """

    name: ClassVar[str] = "RandomFeature"

    schema: Schema = field(repr=False)
    depth: NDArray[np.uint8]
    feature: NDArray[np.uint16]
    cut: NDArray[np.uint16]
    missing: NDArray[np.uint8]
    subsets: NDArray[np.uint8]
    max_cells: int

    def __post_init__(self) -> None:
        self._check()
        for key in self._dtypes():
            # A copy of its own, read-only: the plan's id stands for its content.
            array = getattr(self, key).copy()
            array.setflags(write=False)
            object.__setattr__(self, key, array)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
        cells = np.minimum(1 << self.depth.astype(np.int64), self.max_cells)
        return np.concatenate([[0], np.cumsum(cells)])

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """First hash function of each table, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.depth, dtype=np.int64)])

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row of the codes that each hash function reads: none missing, and some missing."""
        feature = self.feature.astype(np.int64)
        # A set of categories holds the side of a missing value itself.
        high = (self.missing == 1) & (self._subset_sizes() == 0)
        return feature, feature + high * len(self.schema)

    @cached_property
    def _subset_at(self) -> NDArray[np.int64]:
        """Where each hash function's sides begin in ``subsets``; -1 on a numeric feature."""
        sizes = self._subset_sizes()
        return np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)

    @cached_property
    def _folded(self) -> bool | None:
        """True if any table folds its codes, else None: Numba compiles a lighter kernel for it."""
        return True if (1 << self.depth.astype(np.int64) > self.max_cells).any() else None

    def _subset_sizes(self) -> NDArray[np.int64]:
        """Sides that each hash function keeps in ``subsets``: none on a numeric feature."""
        entries = [
            len(f.categories) + 2 if f.kind == "categorical" else 0 for f in self.schema.features
        ]
        return np.array(entries, np.int64)[self.feature]

    def _check(self) -> None:
        for key, kind in self._dtypes().items():
            array = getattr(self, key)
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
                raise PlanError(f"hash functions: {key} must be one row of {np.dtype(kind)}")
        functions = int(self.depth.sum(dtype=np.int64))
        if not len(self.depth) or self.depth.min() < 1 or self.depth.max() > MAX_DEPTH:
            raise PlanError(f"hash functions: needs tables of 1 to {MAX_DEPTH} functions each")
        if any(len(getattr(self, key)) != functions for key in ("feature", "cut", "missing")):
            raise PlanError(f"hash functions: the depths add up to {functions}, the arrays do not")
        if not (2 <= self.max_cells <= MAX_CELLS) or self.max_cells & (self.max_cells - 1):
            raise PlanError(f"max_cells={self.max_cells}: needs a power of two up to {MAX_CELLS}")
        if self.feature.max() >= len(self.schema):
            raise PlanError("hash functions: a feature that the schema does not have")
        sizes = self._subset_sizes()
        cuts = self.cut[sizes == 0]
        if len(cuts) and (cuts.min() < 2 or cuts.max() > kernels.LEVELS):
            raise PlanError(f"hash functions: cuts must be codes from 2 to {kernels.LEVELS}")
        if self.cut[sizes > 0].any() or int(sizes.sum()) != len(self.subsets):
            raise PlanError("hash functions: the sets of categories do not fit the schema")
        if max(self.missing.max(initial=0), self.subsets.max(initial=0)) > 1:
            raise PlanError("hash functions: a side must be 0 or 1")

    @staticmethod
    def _dtypes() -> dict[str, type[np.generic]]:
        return {
            "depth": np.uint8,
            "feature": np.uint16,
            "cut": np.uint16,
            "missing": np.uint8,
            "subsets": np.uint8,
        }

    def parameters(self) -> dict[str, Any]:
        return {"max_cells": self.max_cells}

    def arrays(self) -> Arrays:
        return {key: getattr(self, key) for key in self._dtypes()}

    def _functions(self, codes: Codes) -> tuple[Any, ...]:
        rows = self._rows[len(codes.codes) > len(self.schema)]
        return (
            self._first,
            rows,
            self.cut,
            self._subset_at,
            self.subsets,
            self._folded,
            self.offsets,
        )

    def count(
        self,
        codes: Codes,
        counts: NDArray[np.int64],
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        weights = _EVERY_ROW_ONCE if weights is None else weights
        kernels.count_random_feature(codes.codes, self._functions(codes), weights, counts)

    def count_pairs(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        tables: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        functions = self._functions(codes)
        kernels.count_pairs_random_feature(codes.codes, functions, rows, tables, counts)

    def sum(self, codes: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
        totals = np.empty(codes.n_rows)
        kernels.sum_random_feature(codes.codes, self._functions(codes), values, totals)
        return totals


@dataclass(frozen=True, eq=False)
class EquiWidth(HashFamily):
    """One histogram a feature: the marginals.

    A numeric feature has ``bins`` cells of equal width on its range, and one for missing
    values. A categorical feature has a cell for each category, one for unseen categories and
    one for missing values.

    Parameters
    ----------
    schema : Schema
        The features.
    bins : int
        Cells of a numeric feature; a power of two up to 256.
    """

    name: ClassVar[str] = "EquiWidth"

    schema: Schema = field(repr=False)
    bins: int

    def __post_init__(self) -> None:
        power_of_two = isinstance(self.bins, int) and not self.bins & (self.bins - 1)
        if not power_of_two or not 2 <= self.bins <= 256:
            raise PlanError(f"bins={self.bins!r}: needs a power of two from 2 to 256")

    @cached_property
    def offsets(self) -> NDArray[np.int64]:  # type: ignore[override]
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

    def parameters(self) -> dict[str, Any]:
        return {"bins": self.bins}

    def arrays(self) -> Arrays:
        return {}

    def count(
        self,
        codes: Codes,
        counts: NDArray[np.int64],
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        weights = _EVERY_ROW_ONCE if weights is None else weights
        kernels.count_equi_width(codes.codes, self._widths, self.offsets, weights, counts)

    def count_pairs(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        tables: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        code = codes.codes[tables, rows].astype(np.int64)
        missing = self.offsets[tables + 1] - 1
        cell = np.where(
            code == 0, missing, self.offsets[tables] + (code - 1) // self._widths[tables]
        )
        np.add.at(counts, cell, 1)

    def sum(self, codes: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
        totals = np.empty(codes.n_rows)
        kernels.sum_equi_width(codes.codes, self._widths, self.offsets, values, totals)
        return totals


def family_from_content(
    name: str, parameters: dict[str, Any], arrays: Arrays, schema: Schema
) -> HashFamily:
    """Build the family that `HashFamily.parameters` and `HashFamily.arrays` described.

    Raises
    ------
    PlanError
        If the name is unknown, or the parameters or arrays are not that family's.
    """
    families: dict[str, type[HashFamily]] = {c.name: c for c in (RandomFeature, EquiWidth)}
    if name not in families:
        raise PlanError(f"hash family {name!r} is unknown: needs one of {sorted(families)}")
    if not all(isinstance(value, int) for value in parameters.values()):
        raise PlanError(f"hash family {name!r}: parameters must be whole numbers")
    try:
        return families[name](schema=schema, **parameters, **arrays)  # type: ignore[call-arg]
    except TypeError as error:
        raise PlanError(f"hash family {name!r}: {error}") from None
