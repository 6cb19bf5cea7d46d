"""What every hash family does, whatever its hash functions are."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.errors import UsageError
from hushtable.files import Arrays

__all__ = [
    "EVERY_ROW_ONCE",
    "MAX_CELLS",
    "Gaining",
    "HashFamily",
    "KernelFamily",
    "Kernels",
    "Summing",
]

#: From codes of n rows to n sums.
Summing = Callable[[Codes], NDArray[np.float64]]
#: Cells that one table may have: a cell is numbered in 16 bits.
MAX_CELLS = 1 << 16

#: Weights of rows that all count once.
EVERY_ROW_ONCE = np.empty(0, np.int64)


class Gaining(Protocol):
    """From codes of n rows to their sums (n,), and to gains (n, d): see `HashFamily.gaining`."""

    @property
    def features(self) -> NDArray[np.bool_]:
        """Features (d,) by which a row can gain."""

    def __call__(self, codes: Codes) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...


@dataclass(frozen=True)
class Kernels:
    """The compiled loops of a family."""

    count: Callable[..., None]
    count_pairs: Callable[..., None]
    sum: Callable[..., None]


class HashFamily(ABC):
    """Tables of cells. A row falls into exactly one cell of each of a table's histograms.

    Most families have one histogram a table; with CountMin sketches it is several.

    Attributes
    ----------
    name : str
        The family's name in files.
    offsets : ndarray of shape (n_histograms + 1,), int64
        First cell of each histogram in the vector of all cells.
    """

    name: ClassVar[str]
    offsets: NDArray[np.int64]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of a pickle what follows from the rest, such as how kernels run over tables."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def n_tables(self) -> int:
        """Number of tables, the paper's m."""
        return self.n_histograms

    @property
    def n_histograms(self) -> int:
        """Number of histograms of all tables together: cells that one row falls into."""
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
        """Return, for each row, the sum over the tables of its cell's ``values`` (n_cells,).

        Where a table has several histograms, the least of the row's values in them counts.
        """

    def summing(self, values: NDArray[np.float64]) -> Summing:
        """Return `sum` of these values, for one batch of codes after the other."""
        return partial(self.sum, values=values)

    def gaining(self, values: NDArray[np.float64], limits: NDArray[np.float64]) -> Gaining:
        """Return `sum` of these values, with what rows would gain by a change of one feature.

        A row's gain by a feature is the sum, over the tables, of what its value there would
        rise by if this feature had whichever value is best and all others stayed. A table adds
        gains only to rows whose value in it is below its limit; ``limits`` (n_tables,).

        Raises
        ------
        UsageError
            If a row's cell does not tell which feature put it there.
        """
        raise UsageError(
            f"{self.name} tables do not tell which feature makes a row rare: explanations need "
            "HushTable or LSHiTables"
        )


class KernelFamily(HashFamily):
    """A family whose loops are compiled."""

    _kernels: ClassVar[Kernels]

    @abstractmethod
    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        """Return what the kernels take between the codes of these rows and their own arguments."""

    def count(
        self,
        codes: Codes,
        counts: NDArray[np.int64],
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        weights = EVERY_ROW_ONCE if weights is None else weights
        self._kernels.count(codes.codes, *self._arguments(codes), weights, counts)

    def count_pairs(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        tables: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        self._kernels.count_pairs(codes.codes, *self._arguments(codes), rows, tables, counts)

    def sum(self, codes: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
        totals = np.empty(codes.n_rows)
        self._kernels.sum(codes.codes, *self._arguments(codes), values, totals)
        return totals
