"""Rows of a sparse matrix as stored: values that are not stored are 0.0, and not touched."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A batch of n rows with d columns and k stored values, row by row.

    ``values`` and ``columns`` (k,) are the stored values, float64 without a negative zero, and
    their columns, none twice in a row. Row i has those from ``bounds[i]`` to ``bounds[i + 1]``.
    """

    values: NDArray[np.float64]
    columns: Ints
    bounds: Ints
    n_columns: int

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def rows(self) -> Ints:
        """Return the row (k,) of each stored value."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def take(self, rows: Ints) -> "StoredRows":
        """Return some rows, by their numbers."""
        sizes = np.diff(self.bounds)[rows]
        bounds = np.append(0, np.cumsum(sizes))
        at = np.arange(bounds[-1]) + np.repeat(self.bounds[rows] - bounds[:-1], sizes)
        return StoredRows(self.values[at], self.columns[at], bounds, self.n_columns)

    def dense(self) -> NDArray[np.float64]:
        """Return the rows as an array (n, d) of float64."""
        found = np.zeros((len(self), self.n_columns))
        found[self.rows, self.columns] = self.values
        return found

    def fold_ranges(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Fold the rows into running minima and maxima (d,); ignore NaN."""
        np.fmin.at(low, self.columns, self.values)
        np.fmax.at(high, self.columns, self.values)
        some = np.bincount(self.columns, minlength=self.n_columns) < len(self)
        low[some], high[some] = np.minimum(low[some], 0.0), np.maximum(high[some], 0.0)


#: Largest number of rows in a batch: the bits of all their tables stay in the L2 cache. Measured.
_ROWS = 2_048


def stored_share(n_columns: int) -> float:
    """Return the share of stored values up to which reading only these is faster. Measured."""
    return min(0.08, (n_columns - 100) / 20_000)


def stored_batches(rows: Any) -> Iterator[StoredRows]:
    """Yield the rows of a SciPy matrix in CSR, in which no value is stored twice."""
    n = rows.shape[0]
    parts = max(1, -(-n // _ROWS))
    parts += -parts % 4 if n > 2 * _ROWS else 0  # 2 or 4 threads end together
    size = max(1, -(-n // parts))
    for at in range(0, n, size):
        bounds = rows.indptr[at : at + size + 1].astype(np.int64)
        here = slice(bounds[0], bounds[-1])
        values = rows.data[here].astype(np.float64) + 0.0
        columns = rows.indices[here].astype(np.int64)
        yield StoredRows(values, columns, bounds - bounds[0], rows.shape[1])


def without_twice(rows: Any) -> Any:
    """Return a CSR matrix with the sums of values that are stored twice, added as in `toarray`."""
    if rows.has_canonical_format:
        return rows
    at = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)) * rows.shape[1] + rows.indices
    places, which = np.unique(at, return_inverse=True)
    sums = np.zeros(len(places), rows.dtype)
    np.add.at(sums, which, rows.data)
    row, column = np.divmod(places, rows.shape[1])
    bounds = np.searchsorted(row, np.arange(rows.shape[0] + 1))
    return type(rows)((sums, column, bounds), shape=rows.shape)
