"""Columns with linear relations: each is judged by its residual from the others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import entries
from hushtable.data.columns import as_numbers, infinite, nan_as_null
from hushtable.errors import DataError, PlanError

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Callable[[], Iterable[tuple[Any, NDArray[np.int64] | None]]]
#: Added to the diagonal of the correlations: with it, columns that follow exactly from others have
#: residuals, too.
RIDGE = 1e-3
#: Standard deviations beyond which a residual takes its row out of the second pass.
_FAR = 4.0
#: Sweeps over the missing values of a row, each a prediction from all other values: of one missing
#: value, the first gives the result.
_SWEEPS = 20
#: Complete rows that a column needs, for relations to say more than chance.
_ROWS_OF_COLUMN = 3


@dataclass(frozen=True, eq=False)
class Relations:
    """Residuals of k numeric columns, each from the value that the other columns predict.

    The residual of column j is sum_i (x_i - c_i) w_ij with w_jj = 1: the error of a ridge
    regression on all other columns, from the inverse of the correlations (Lauritzen, Graphical
    Models, 1996, section 5.1). A missing value is taken to be what the others predict, so that a
    column that depends on it counts as usual.

    Attributes
    ----------
    columns : tuple of int
        Places of the columns in the schema, rising.
    centre : ndarray of shape (k,), float64
        c, in the units of the columns.
    weights : ndarray of shape (k, k), float64
        w: its column j has the unit of column j.
    spread : ndarray of shape (k,), float64
        Standard deviations of the residuals, in the units of the columns.
    low, high : ndarray of shape (k,), float64
        Ranges of the residuals, in the units of the columns.
    filled : bool
        Whether missing values are predicted; in files of version 1.0.0rc1, they are the centre.
    """

    columns: tuple[int, ...]
    centre: Floats
    weights: Floats
    spread: Floats
    low: Floats
    high: Floats
    filled: bool = True

    def __post_init__(self) -> None:
        k = len(self.columns)
        shapes = [(k,), (k, k), (k,), (k,), (k,)]
        arrays = self.centre, self.weights, self.spread, self.low, self.high
        right = all(a.shape == shape for a, shape in zip(arrays, shapes, strict=True))
        if k < 2 or not right or not all(np.isfinite(a).all() for a in arrays):
            raise PlanError("relations: needs finite numbers for two columns or more")
        if list(self.columns) != sorted(set(self.columns)) or (self.low > self.high).any():
            raise PlanError("relations: needs columns in order, and ranges from low to high")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relations) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.columns, self.centre.tobytes(), self.weights.tobytes()))

    def residuals(self, X: Floats) -> Floats:
        """Return the residuals (n, k) of rows (n, k); NaN where the column's value is missing.

        Additions have a fixed order, whatever the number of rows: the same row has the same bits.
        """
        found = np.empty(X.shape[::-1])
        sweeps = _SWEEPS if self.filled else 0
        kernels.take_residuals(X, self.centre, self.weights, sweeps, found)
        return found.T

    def applied(self, batch: Any, names: Sequence[str], start: int = 0) -> Any:
        """Return a batch, an array or Arrow columns, with the residuals in the columns' places.

        ``names`` are those of all columns, ``start`` is the number of the first row: for messages.
        """
        residuals = self.residuals(numbers_of(batch, self.columns, names, start))
        if len(self.columns) == len(names):
            return residuals
        if isinstance(batch, np.ndarray):
            changed = batch.astype(np.float64)
            changed[:, list(self.columns)] = residuals
            return changed
        columns = list(batch.columns)
        for k, j in enumerate(self.columns):
            columns[j] = nan_as_null(residuals[:, k])
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    @cached_property
    def strongest(self) -> list[list[int]]:
        """For each column, the places of the two others that best predict it, given the rest.

        Measured by their partial correlations with it.
        """
        correlations = np.abs(self.weights * self.spread[:, np.newaxis] / self.spread)
        np.fill_diagonal(correlations, -1.0)
        return [
            np.argsort(-column)[: min(2, len(column) - 1)].tolist() for column in correlations.T
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the relations as JSON carries them."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        rule = {"filled": True} if self.filled else {}
        return {"columns": list(self.columns), **arrays, **rule}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        needed = {"columns": list, **dict.fromkeys(_ARRAYS, list)}
        given = entries(content, "relations", needed, {"filled": bool})
        try:
            arrays = {name: np.array(given[name], np.float64) for name in _ARRAYS}
        except (TypeError, ValueError):
            raise PlanError("relations: needs arrays of numbers") from None
        if not all(type(j) is int and j >= 0 for j in given["columns"]):
            raise PlanError("relations: needs the places of columns")
        return cls(tuple(given["columns"]), **arrays, filled=given.get("filled", False))


_ARRAYS = ("centre", "weights", "spread", "low", "high")


def numbers_of(
    batch: Any, columns: Sequence[int], names: Sequence[str] | Mapping[int, str], start: int = 0
) -> Floats:
    """Return some columns (n, k) of a batch as numbers; raises `DataError` at an infinity."""
    if isinstance(batch, np.ndarray):
        X = batch[:, list(columns)].astype(np.float64)
    else:
        parts = [as_numbers(batch.column(j), names[j], start) for j in columns]
        X = np.stack(parts).astype(np.float64, copy=False).T
    if np.isinf(X).any():
        row, k = (int(place[0]) for place in np.nonzero(np.isinf(X)))
        raise infinite(names[columns[k]], start + row)
    return X


def learned_relations(
    rows: Rows,
    columns: Sequence[int],
    names: Sequence[str],
    scale: tuple[Floats, Floats],
    wider: float = 0.0,
) -> Relations:
    """Learn relations from rows in three passes; rows that do not fit are left out of the second.

    Parameters
    ----------
    rows : callable
        Starts a pass over batches of rows, each with their weights (n,) above 0, or None.
    columns, names : sequence of int and str
        Places of the columns, and the names of all.
    scale : ndarrays of shape (k,), float64
        Approximate centre and spread (above 0) of each column, so that sums keep their precision.
    wider : float
        Share of the width of a residual's range by which it is widened on both sides.

    Raises
    ------
    DataError
        If there are fewer complete rows than three per column.
    """
    first = _relations_of(_moments(rows, columns, names, scale, None), columns, scale)
    again = _relations_of(_moments(rows, columns, names, scale, first), columns, scale)
    low, high = np.full((2, len(columns)), np.inf) * [[1.0], [-1.0]]
    for batch, _ in rows():
        X = numbers_of(batch, columns, names)
        found = again.residuals(X)
        if len(found):
            low = np.fmin(low, np.fmin.reduce(found, axis=0))
            high = np.fmax(high, np.fmax.reduce(found, axis=0))
    more = wider * (high - low)
    return replace(again, low=low - more, high=high + more)


def _moments(
    rows: Rows,
    columns: Sequence[int],
    names: Sequence[str],
    scale: tuple[Floats, Floats],
    fitting: Relations | None,
) -> tuple[float, Floats, Floats]:
    """Return number, sums (k,) and products (k, k) of complete rows: all, or those that fit."""
    middle, spread = scale
    n, sums, products = 0.0, np.zeros(len(columns)), np.zeros((len(columns), len(columns)))
    for batch, weights in rows():
        X = numbers_of(batch, columns, names)
        times = np.ones(len(X)) if weights is None else weights.astype(np.float64)
        times = np.where(np.isnan(X).any(axis=1), 0.0, times)
        if fitting is not None:
            far = np.abs(fitting.residuals(X)) > _FAR * fitting.spread
            times = np.where(far.any(axis=1), 0.0, times)
        Z = np.where(np.isnan(X), 0.0, (X - middle) / spread)
        n, sums = n + times.sum(), sums + times @ Z
        products += (Z * times[:, np.newaxis]).T @ Z
    if n < _ROWS_OF_COLUMN * len(columns):
        raise DataError(
            f"relations=True: {n:,.0f} rows without a missing value for {len(columns):,} numeric "
            f"columns; needs at least {_ROWS_OF_COLUMN * len(columns):,}: leave columns out"
        )
    return n, sums, products


def _relations_of(
    moments: tuple[float, Floats, Floats], columns: Sequence[int], scale: tuple[Floats, Floats]
) -> Relations:
    """Return the relations that moments show; their ranges are one standard deviation wide."""
    n, sums, products = moments
    mean = sums / n
    covariance = products / n - np.outer(mean, mean)
    sd = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
    correlation = covariance / np.outer(sd, sd)
    np.fill_diagonal(correlation, 1.0 + RIDGE)
    inverse = np.linalg.inv(correlation)
    unit = sd * scale[1]
    weights = inverse / np.diag(inverse) * unit / unit[:, np.newaxis]
    np.fill_diagonal(weights, 1.0)
    left = unit / np.sqrt(np.diag(inverse))
    return Relations(tuple(columns), scale[0] + mean * scale[1], weights, left, -left, left)
