"""Numbers compared with predictions by a row's context: differences from an additive regression."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import entries
from hushtable.data.columns import as_column, as_texts, filled, texts_column
from hushtable.data.readers import Batch, Reader, taken
from hushtable.data.relations import numbers_of
from hushtable.errors import PlanError

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Callable[[], Iterable[tuple[Any, NDArray[np.int64] | None]]]
#: Largest distance of a difference from 0, in standard deviations that are usual in the context.
FAR = 5.0
#: Largest number of rows, evenly spaced, to fit a regression to, and of their values: its error is
#: then far below the differences themselves, and memory stays flat.
MOST_ROWS, _MOST_VALUES = 8_192, 1 << 22
#: Number of values that a column needs to be predicted.
_LEAST_ROWS = 10
#: Number of quantiles of a number between which its function is linear, ends included; and largest
#: number of categories of a column with their own level, the most frequent ones.
_QUANTILES, _LEVELS = 8, 64
#: Ridge penalties, in rows, for the prediction of values and of their usual differences.
_RIDGE, _RIDGE_OF_SIZES = 5.0, 20.0
#: Share of the rows, farthest from a first prediction, that are left out of the second.
_LEFT_OUT = 0.1
#: Quantile of the differences of a column at which they are clipped for their usual size; and the
#: smallest usual size, in multiples of the mean.
_CUT_OFF, _LEAST = 0.95, 0.1
#: Ratio of the standard deviation of a normal distribution to its mean absolute deviation.
_NORMAL = float(np.sqrt(np.pi / 2.0))
#: Suffix of a column's name in the name of its differences.
_GIVEN = " given context"


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of k numeric columns from a regression on the columns of the context.

    The regression is additive: a constant, a function of each number that is linear between some
    points and constant beyond, and a level of each category. Its size, the usual difference in a
    context, is predicted in the same way. A context that is missing or unknown adds nothing.

    Attributes
    ----------
    context : tuple of int
        Places of the columns of the context in the schema, rising.
    columns : tuple of int
        Places of the columns of numbers that are predicted, rising.
    points : tuple of tuple
        For each column of the context: the points of its function, rising, or the categories that
        have a level.
    weights : ndarray of shape (p, 2 k), float64
        The constant, and then the value at each point or level: of the k predictions, and of the k
        usual sizes, all in the units of the columns. p is one more than there are points.
    least : ndarray of shape (k,), float64
        Usual sizes are at least these, above 0.
    """

    context: tuple[int, ...]
    columns: tuple[int, ...]
    points: tuple[tuple[float, ...] | tuple[str, ...], ...]
    weights: Floats
    least: Floats

    def __post_init__(self) -> None:
        k, n_points = len(self.columns), sum(map(len, self.points))
        right = self.weights.shape == (1 + n_points, 2 * k) and self.least.shape == (k,)
        right = right and bool(np.isfinite(self.weights).all() and np.isfinite(self.least).all())
        right = right and k > 0 and len(self.points) == len(self.context) > 0
        if not right or (self.least <= 0.0).any() or not all(map(_are_points, self.points)):
            raise PlanError("differences: needs finite numbers for each point of the context")
        for places in (self.context, self.columns):
            if list(places) != sorted(set(places)):
                raise PlanError("differences: needs columns in order")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Differences) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.context, self.columns, self.weights.tobytes()))

    def names(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the k differences, given those of the schema's columns."""
        return [columns[j] + _GIVEN for j in self.columns]

    def of(self, batch: Any, names: Sequence[str], start: int = 0) -> Floats:
        """Return the differences (k, n) of a batch, in usual sizes; NaN where a value is missing.

        ``names`` are those of the columns, ``start`` is the number of the first row: for messages.
        """
        values = numbers_of(batch, self.columns, names, start).T
        left, share = self._places(batch, names, start)
        found = np.empty(values.shape)
        values = np.ascontiguousarray(values)
        kernels.take_differences(values, left, share, self._padded, self.least, found)
        return np.clip(found, -FAR, FAR, out=found)

    def renewed(self, batch: Any, names: Sequence[str], start: int = 0) -> Any:
        """Return a batch with recomputed differences after its columns."""
        found, n = self.of(batch, names, start), len(names)
        if isinstance(batch, np.ndarray):
            return np.concatenate([batch[:, :n], found.T, batch[:, n + len(found) :]], axis=1)
        columns = list(batch.columns)
        columns[n : n + len(found)] = map(as_column, found)
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def predicted(self, batch: Any, names: Sequence[str], start: int = 0) -> Floats:
        """Return the predictions of the columns (k, n) by the context of each row of a batch."""
        left, share = self._places(batch, names, start)
        weights, share = self._padded[:, : len(self.columns)], share[:, :, np.newaxis]
        parts = weights[left] * (1.0 - share)
        parts += weights[np.where(share[:, :, 0] > 0.0, left + 1, left)] * share
        found: Floats = (weights[0] + parts.sum(axis=0)).T
        return found

    @cached_property
    def _padded(self) -> Floats:
        """The weights, and those of a context that adds nothing."""
        return np.vstack([self.weights, np.zeros((1, self.weights.shape[1]))])

    def _places(
        self, batch: Any, names: Sequence[str], start: int = 0
    ) -> tuple[NDArray[np.int64], Floats]:
        """Return, for each column of the context, the row positions among its points (c, n)."""
        left = np.full((len(self.context), len(batch)), len(self.weights))
        share, first = np.zeros(left.shape), 1
        for c, (place, points) in enumerate(zip(self.context, self.points, strict=True)):
            if points:
                categorical = isinstance(points[0], str)
                values = _values(batch, place, names, categorical, start)
                at, share[c], known = _place(values, points)
                left[c][known] = first + at[known]
            first += len(points)
        return left, share

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as JSON carries them."""
        return {
            "context": list(self.context),
            "columns": list(self.columns),
            "points": [list(points) for points in self.points],
            "weights": self.weights.tolist(),
            "least": self.least.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        needed = ("context", "columns", "points", "weights", "least")
        given = entries(content, "differences", dict.fromkeys(needed, list))
        places = [*given["context"], *given["columns"]]
        if not all(type(j) is int and j >= 0 for j in places):
            raise PlanError("differences: needs the places of columns")
        if not all(isinstance(points, list) for points in given["points"]):
            raise PlanError("differences: needs the points of each column of the context")
        try:
            arrays = (np.array(given[name], np.float64) for name in ("weights", "least"))
            weights, least = arrays
        except (TypeError, ValueError):
            raise PlanError("differences: needs arrays of numbers") from None
        points = tuple(map(_read_points, given["points"]))
        return cls(tuple(given["context"]), tuple(given["columns"]), points, weights, least)


def _read_points(points: Sequence[Any]) -> tuple[Any, ...]:
    """Return points as JSON carries them, with whole numbers without decimals."""
    return tuple(float(point) if type(point) is int else point for point in points)


def _are_points(points: Sequence[Any]) -> bool:
    """Return whether these are distinct categories, or rising finite numbers."""
    if all(isinstance(point, str) for point in points):
        return len(set(points)) == len(points)
    numbers = all(type(point) is float and np.isfinite(point) for point in points)
    return numbers and all(a < b for a, b in itertools.pairwise(points))


def with_differences(reader: Reader, differences: Differences, names: Sequence[str]) -> Reader:
    """Return rows with differences after the columns of these names, before kept columns."""
    added, n = differences.names(names), len(names)
    if reader.files:
        files = [replace(f, keep=reader.keep, unasked=reader.unasked) for f in reader.files]
        parts = [with_differences(one, differences, names) for one in files]
        return replace(reader.with_parts(parts), differences=differences)

    def read() -> Iterator[Batch]:
        start = 0
        for batch in reader.read():
            found = differences.of(batch, names, start)
            start += len(batch)
            if isinstance(batch, np.ndarray):
                yield np.concatenate([batch, found.T], axis=1)
                continue
            columns, own = list(batch.columns), batch.schema.names
            columns[n:n] = map(as_column, found)
            yield pa.RecordBatch.from_arrays(columns, [*own[:n], *added, *own[n:]])

    named = None if reader.names is None else (*reader.names[:n], *added, *reader.names[n:])
    return replace(
        reader, names=named, n_columns=reader.n_columns + len(added), read=read, project=None,
        differences=differences,
    )  # fmt: skip


# --- functions of a context -----------------------------------------------------------------------


def _values(
    batch: Any, place: int, names: Sequence[str], categorical: bool, start: int = 0
) -> Floats | pa.Array:
    """Return a column of the context: its numbers (n,), or its texts."""
    if not categorical:
        return numbers_of(batch, [place], names, start)[:, 0]
    column = batch[:, place] if isinstance(batch, np.ndarray) else batch.column(place)
    column = pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column
    return as_texts(column, names[place])


def _place(
    values: Floats | pa.Array, points: Sequence[Any]
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """Return the point to the left of each value, its way to the next, and whether known."""
    if not isinstance(values, np.ndarray):
        index = pc.index_in(values, texts_column(points), skip_nulls=True)
        at = filled(index, len(points)).astype(np.int64)
        return at, np.zeros(len(at)), at < len(points)
    known, ends = ~np.isnan(values), np.array(points)
    if len(ends) == 1:
        return np.zeros(len(values), np.int64), np.zeros(len(values)), known
    inside = np.clip(np.where(known, values, ends[0]), ends[0], ends[-1])
    at = np.searchsorted(ends[1:-1], inside, side="right")
    return at, (inside - ends[at]) / np.diff(ends)[at], known


# --- learning -------------------------------------------------------------------------------------


def learned_differences(
    rows: Rows,
    n_rows: int,
    context: Sequence[int],
    columns: Sequence[int],
    names: Sequence[str],
    categorical: Sequence[bool],
) -> Differences | None:
    """Fit the regressions to some rows; None if no column has ten numbers there that vary.

    Parameters
    ----------
    rows : callable
        Starts a pass over batches of rows, each with their weights (n,) above 0, or None.
    n_rows : int
        Rows there are.
    context, columns : sequence of int
        Places of the columns of the context, and of the numbers to predict, both rising.
    names : sequence of str
        Names of all columns.
    categorical : sequence of bool
        Whether each column holds categories.
    """
    most = min(MOST_ROWS, _MOST_VALUES // len(columns))
    Y, given, weights = _some(rows, -(-n_rows // most), context, columns, names, categorical)
    varied = np.fmax.reduce(Y, axis=0) > np.fmin.reduce(Y, axis=0)
    varied &= np.count_nonzero(~np.isnan(Y), axis=0) >= _LEAST_ROWS
    if not varied.any():
        return None
    Y, columns = Y[:, varied], [j for j, varies in zip(columns, varied, strict=True) if varies]
    middle, spread = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    points = tuple(map(_points, given))
    M = np.hstack([np.ones((len(Y), 1)), *map(_functions, given, points)])
    predicted, usual, least = _fitted(M, (Y - middle) / spread, weights)
    found = np.hstack([predicted * spread, usual * spread])
    found[0, : len(spread)] += middle
    return Differences(tuple(context), tuple(columns), points, found, least * spread)


def _some(
    rows: Rows,
    every: int,
    context: Sequence[int],
    columns: Sequence[int],
    names: Sequence[str],
    categorical: Sequence[bool],
) -> tuple[Floats, list[Any], Floats]:
    """Return the numbers of one row in ``every``, its context, column by column, and its weight."""
    numbers, given, times, start = [], [], [], 0
    for batch, weights in rows():
        chosen = np.arange(-start % every, len(batch), every)
        start += len(batch)
        if len(chosen):
            some = taken(batch, chosen)
            numbers.append(numbers_of(some, columns, names))
            given.append([_values(some, j, names, categorical[j]) for j in context])
            times.append(np.ones(len(some)) if weights is None else weights[chosen] * 1.0)
    joined = [
        np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
        for parts in zip(*given, strict=True)
    ]
    return np.concatenate(numbers), joined, np.concatenate(times)


def _points(values: Floats | pa.Array) -> tuple[float, ...] | tuple[str, ...]:
    """Return the points of the function of a context."""
    if isinstance(values, np.ndarray):
        there = values[~np.isnan(values)]
        ends = np.quantile(there, np.linspace(0.0, 1.0, _QUANTILES)) if len(there) else [0.0]
        return tuple(np.unique(ends).tolist())
    counts = values.drop_null().value_counts().to_pylist()
    frequent = sorted(counts, key=lambda one: (-one["counts"], one["values"]))[:_LEVELS]
    return tuple(sorted(one["values"] for one in frequent))


def _functions(values: Floats | pa.Array, points: Sequence[Any]) -> Floats:
    """Return the functions (n, p) that the points of a context define."""
    found = np.zeros((len(values), len(points) + 1))  # a last column for the point after the last
    if points:
        at, share, known = _place(values, points)
        rows = np.flatnonzero(known)
        found[rows, at[rows]] += 1.0 - share[rows]
        found[rows, at[rows] + 1] += share[rows]
    return found[:, :-1]


def _fitted(M: Floats, Z: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the weights (p, k) of predictions and of usual sizes, and the least of these (k,).

    A row whose number is missing (NaN) is not used for the predictions of that column.
    """
    first = np.abs(Z - M @ _ridge(M, Z, _RIDGE, weights))
    worst = np.fmax.reduce(first / (np.nanmedian(first, axis=0) + 1e-9), axis=1, initial=0.0)
    near = np.where(worst <= np.quantile(worst, 1.0 - _LEFT_OUT), weights, 0.0)
    predicted = _ridge(M, Z, _RIDGE, near)
    left: Floats = np.abs(Z - M @ predicted)
    sizes = np.minimum(left, np.nanquantile(left, _CUT_OFF, axis=0)) * _NORMAL
    least = np.maximum(_LEAST * np.nanmean(sizes, axis=0), 1e-9)
    return predicted, _ridge(M, sizes, _RIDGE_OF_SIZES, near), least


def _ridge(M: Floats, Z: Floats, penalty: float, weights: Floats) -> Floats:
    """Return the weights (p, k) of a ridge regression; the constant is not penalized."""
    penalties = np.full(M.shape[1], penalty)
    penalties[0] = 1e-9
    missing = np.isnan(Z)
    if Z.shape[1] > 1 and missing.any():
        each = [_ridge(M, column[:, np.newaxis], penalty, weights) for column in Z.T]
        return np.concatenate(each, axis=1)
    weighted = M.T * np.where(missing[:, 0], 0.0, weights)
    known = np.where(missing, 0.0, Z)
    solved = np.linalg.solve(weighted @ M + np.diag(penalties), weighted @ known)
    return np.asarray(solved, np.float64)
