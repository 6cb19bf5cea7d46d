"""Values compared with predictions: by the other columns (relations), or by the row's context.

Relations are linear, and rows of all sites can have the same ones. Differences from the context
are those from a regression, or, in small groups, from the group.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import JsonObject, entries
from hushtable.data.columns import (
    as_numbers,
    as_texts,
    filled,
    infinite,
    nan_as_null,
    texts_column,
)
from hushtable.data.readers import Batch, taken
from hushtable.errors import DataError, PlanError

if TYPE_CHECKING:
    from hushtable.data.schema import Feature

Floats: TypeAlias = NDArray[np.float64]
#: Starts a pass over batches of rows, each with their weights (n,) above 0, or None.
Rows: TypeAlias = Callable[[], Iterable[tuple[Batch, NDArray[np.int64] | None]]]


def numbers_of(
    batch: Batch, columns: Sequence[int], names: Sequence[str] | Mapping[int, str], start: int = 0
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


def _arrays(given: Mapping[str, Any], names: Sequence[str], what: str) -> dict[str, Floats]:
    try:
        return {name: np.array(given[name], np.float64) for name in names}
    except (TypeError, ValueError):
        raise PlanError(f"{what}: needs arrays of numbers") from None


def _check_places(places: Sequence[object], what: str) -> None:
    if not all(type(j) is int and j >= 0 for j in places):
        raise PlanError(f"{what}: needs the places of columns")


# --- relations ------------------------------------------------------------------------------------

#: Added to the diagonal of the correlations: with it, columns that follow exactly from others have
#: residuals, too.
RIDGE = 1e-3
#: Standard deviations beyond which a residual takes its row out of the second pass.
_FAR_RESIDUAL = 4.0
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
        residuals = np.empty(X.shape[::-1])
        sweeps = _SWEEPS if self.filled else 0
        kernels.take_residuals(X, self.centre, self.weights, sweeps, residuals)
        return residuals.T

    def applied(self, batch: Batch, names: Sequence[str], start: int = 0) -> Batch:
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

    def to_dict(self) -> JsonObject:
        """Return the relations as JSON carries them."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        rule = {"filled": True} if self.filled else {}
        return {"columns": list(self.columns), **arrays, **rule}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        needed = {"columns": list, **dict.fromkeys(_ARRAYS, list)}
        given = entries(content, "relations", needed, {"filled": bool})
        arrays = _arrays(given, _ARRAYS, "relations")
        _check_places(given["columns"], "relations")
        return cls(tuple(given["columns"]), **arrays, filled=given.get("filled", False))


_ARRAYS = ("centre", "weights", "spread", "low", "high")


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
        residuals = again.residuals(X)
        if len(residuals):
            low = np.fmin(low, np.fmin.reduce(residuals, axis=0))
            high = np.fmax(high, np.fmax.reduce(residuals, axis=0))
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
            far = np.abs(fitting.residuals(X)) > _FAR_RESIDUAL * fitting.spread
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


# --- differences from the context -----------------------------------------------------------------

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
#: Ratio of the standard deviation of a normal distribution to its mean absolute deviation, and to
#: its median one.
_NORMAL, _NORMAL_MEDIAN = float(np.sqrt(np.pi / 2.0)), 1.4826
#: Largest number of values to learn from groups.
_MOST_OF_GROUPS = 1 << 24
#: Number of rows by which the usual difference in a group shrinks to that in all groups.
_SHRUNK = 5.0
#: Rows of a group, on average, up to which rows are also compared within their group. Measured by
#: ``hushtable bench contexts``: of 60 rows or more, pairs of cells alone are better.
FEW_ROWS = 50
#: Largest ratio of distances within groups to those between them, for whole numbers to be names,
#: and the least number of these. Names of 11 public panels have .08 to .57, ages .92 or more.
_NAME, _LEAST_NAMES = 0.8, 3
#: Suffix of a column's name in the name of its differences.
_GIVEN = " given context"


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of k columns from their predictions by the columns of the context.

    The prediction is additive: a constant, a function of each number that is linear between some
    points and constant beyond, and a level of each category. Its size, the usual difference in a
    context, is predicted in the same way. A context that is missing or unknown adds nothing; a
    value in an unknown group differs by 0. The prediction is a regression (`learned_differences`)
    or, for groups, their medians (`differences_in_groups`).
    A category is predicted by its place in the list of its feature; only groups predict categories.

    Attributes
    ----------
    context : tuple of int
        Places of the columns of the context in the schema, rising.
    columns : tuple of int
        Places of the columns that are predicted, rising.
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

    @property
    def in_groups(self) -> bool:
        """Whether the context is one column of categories: each is a group of rows."""
        return len(self.points) == 1 and isinstance(next(iter(self.points[0]), None), str)

    def of(self, batch: Batch, features: Sequence["Feature"], start: int = 0) -> Floats:
        """Return the differences (k, n) of a batch, in usual sizes; NaN where a value is missing.

        ``features`` are those of the rows; ``start`` is the number of the first row, for messages.
        """
        values = _behaviour(batch, self.columns, features, start)
        left, share = self._places(batch, features, start)
        apart = np.empty(values.shape)
        kernels.take_differences(values, left, share, self._padded, self.least, apart)
        if self.in_groups:
            np.round(apart, 9, out=apart)  # the group's median differs by 0, not by its rounding
            apart[:, left[0] == len(self.weights)] *= 0.0  # missing values stay missing
        return np.clip(apart, -FAR, FAR, out=apart)

    def predicted(self, batch: Batch, features: Sequence["Feature"], start: int = 0) -> Floats:
        """Return the predictions of the columns (k, n) by the context of each row of a batch."""
        left, share = self._places(batch, features, start)
        weights, share = self._padded[:, : len(self.columns)], share[:, :, np.newaxis]
        parts = weights[left] * (1.0 - share)
        parts += weights[np.where(share[:, :, 0] > 0.0, left + 1, left)] * share
        predictions: Floats = (weights[0] + parts.sum(axis=0)).T
        return predictions

    @cached_property
    def _padded(self) -> Floats:
        return np.vstack([self.weights, np.zeros((1, self.weights.shape[1]))])

    def _places(
        self, batch: Batch, features: Sequence["Feature"], start: int = 0
    ) -> tuple[NDArray[np.int64], Floats]:
        """Return, for each column of the context, the row positions among its points (c, n)."""
        left = np.full((len(self.context), len(batch)), len(self.weights))
        share, first = np.zeros(left.shape), 1
        for c, (place, points) in enumerate(zip(self.context, self.points, strict=True)):
            if points:
                values = _values(batch, place, features, start)
                at, share[c], known = _place(values, points)
                left[c][known] = first + at[known]
            first += len(points)
        return left, share

    def to_dict(self) -> JsonObject:
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
        _check_places([*given["context"], *given["columns"]], "differences")
        if not all(isinstance(points, list) for points in given["points"]):
            raise PlanError("differences: needs the points of each column of the context")
        # JSON has whole numbers without decimals.
        points = tuple(
            tuple(float(point) if type(point) is int else point for point in listed)
            for listed in given["points"]
        )
        arrays = _arrays(given, ("weights", "least"), "differences")
        return cls(tuple(given["context"]), tuple(given["columns"]), points, **arrays)


def _are_points(points: Sequence[Any]) -> bool:
    if all(isinstance(point, str) for point in points):
        return len(set(points)) == len(points)
    numbers = all(type(point) is float and np.isfinite(point) for point in points)
    return numbers and all(a < b for a, b in itertools.pairwise(points))


# --- functions of a context -----------------------------------------------------------------------


def _values(
    batch: Batch, place: int, features: Sequence["Feature"], start: int = 0
) -> Floats | pa.Array:
    name = features[place].name
    if features[place].kind == "numeric":
        return numbers_of(batch, [place], {place: name}, start)[:, 0]
    column = batch[:, place] if isinstance(batch, np.ndarray) else batch.column(place)
    column = pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column
    return as_texts(column, name)


def _behaviour(
    batch: Batch, columns: Sequence[int], features: Sequence["Feature"], start: int = 0
) -> Floats:
    numbers = np.empty((len(columns), len(batch)))
    for k, j in enumerate(columns):
        values = _values(batch, j, features, start)
        if not isinstance(values, np.ndarray):
            categories = features[j].categories
            places = filled(pc.index_in(values, texts_column(categories)), len(categories))
            missing = np.from_dlpack(values.is_null().cast(pa.uint8())) == 1
            values = np.where(missing, np.nan, places)
        numbers[k] = values
    return numbers


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
    features: Sequence["Feature"],
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
    features : sequence of Feature
        Those of all columns.
    """
    most = min(MOST_ROWS, _MOST_VALUES // len(columns))
    Y, given, weights = _some(rows, -(-n_rows // most), context, columns, features)
    varied = np.fmax.reduce(Y, axis=0) > np.fmin.reduce(Y, axis=0)
    varied &= np.count_nonzero(~np.isnan(Y), axis=0) >= _LEAST_ROWS
    if not varied.any():
        return None
    Y, columns = Y[:, varied], [j for j, varies in zip(columns, varied, strict=True) if varies]
    middle, spread = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    points = tuple(map(_points, given))
    M = np.hstack([np.ones((len(Y), 1)), *map(_functions, given, points)])
    predicted, usual, least = _fitted(M, (Y - middle) / spread, weights)
    learned = np.hstack([predicted * spread, usual * spread])
    learned[0, : len(spread)] += middle
    return Differences(tuple(context), tuple(columns), points, learned, least * spread)


def _some(
    rows: Rows,
    every: int,
    context: Sequence[int],
    columns: Sequence[int],
    features: Sequence["Feature"],
) -> tuple[Floats, list[Any], Floats]:
    """Return the values of one row in ``every``, its context, column by column, and its weight."""
    numbers, given, times, start = [], [], [], 0
    for batch, weights in rows():
        chosen = np.arange(-start % every, len(batch), every)
        start += len(batch)
        if len(chosen):
            sample = taken(batch, chosen)
            numbers.append(_behaviour(sample, columns, features).T)
            given.append([_values(sample, j, features) for j in context])
            times.append(np.ones(len(sample)) if weights is None else weights[chosen] * 1.0)
    joined = [
        np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
        for parts in zip(*given, strict=True)
    ]
    return np.concatenate(numbers), joined, np.concatenate(times)


def _points(values: Floats | pa.Array) -> tuple[float, ...] | tuple[str, ...]:
    if isinstance(values, np.ndarray):
        known = values[~np.isnan(values)]
        ends = np.quantile(known, np.linspace(0.0, 1.0, _QUANTILES)) if len(known) else [0.0]
        return tuple(np.unique(ends).tolist())
    counts = values.drop_null().value_counts().to_pylist()
    frequent = sorted(counts, key=lambda count: (-count["counts"], count["values"]))[:_LEVELS]
    return tuple(sorted(count["values"] for count in frequent))


def _functions(values: Floats | pa.Array, points: Sequence[Any]) -> Floats:
    shares = np.zeros((len(values), len(points) + 1))  # a last column for the point after the last
    if points:
        at, share, known = _place(values, points)
        rows = np.flatnonzero(known)
        shares[rows, at[rows]] += 1.0 - share[rows]
        shares[rows, at[rows] + 1] += share[rows]
    return shares[:, :-1]


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


# --- groups ---------------------------------------------------------------------------------------


def differences_in_groups(
    rows: Rows,
    n_rows: int,
    context: int,
    columns: Sequence[int],
    features: Sequence["Feature"],
) -> Differences | None:
    """Compare values with the other rows of their group; None if no column varies.

    A number is compared with the median of its group, and its usual difference is the median one of
    the group, shrunk to that of all groups with the weight of five rows. A category is compared
    with the most frequent one of its group. A group of one row is unknown: the values of its rows,
    like those of a missing or unseen group, count as those that are usual in a group.

    Parameters
    ----------
    rows, n_rows : callable and int
        As for `learned_differences`.
    context : int
        Place of the column of groups: categories.
    columns : sequence of int
        Places of the columns to compare, rising.
    features : sequence of Feature
        Those of all columns.
    """
    every = -(-n_rows * len(columns) // _MOST_OF_GROUPS)
    Y, [texts], weights = _some(rows, every, [context], columns, features)
    names = sorted(texts.unique().drop_null().to_pylist())
    group = filled(pc.index_in(texts, texts_column(names)), len(names)).astype(np.int64)
    levels_of, compared = [], []
    for y, j in zip(Y.T, columns, strict=True):
        known = ~np.isnan(y)
        learned = _number_in_groups if features[j].kind == "numeric" else _category_in_groups
        level = learned(y[known], group[known], weights[known], len(names))
        if level is not None:
            levels_of.append(level)
            compared.append(j)
    if not levels_of:
        return None
    levels, sizes, least = zip(*levels_of, strict=True)
    each = np.stack([*levels, *sizes], axis=1)  # first of all rows, then of each group
    several = np.flatnonzero(~np.isnan(each[1:]).all(axis=1))
    of_groups = np.nan_to_num(each[1:][several] - each[0])
    points = tuple(names[g] for g in several.tolist())
    found_weights = np.vstack([each[:1], of_groups])
    return Differences((context,), tuple(compared), (points,), found_weights, np.array(least))


def names_of_groups(
    rows: Rows,
    n_rows: int,
    context: int,
    columns: Sequence[int],
    features: Sequence["Feature"],
    most: int,
) -> list[str]:
    """Return the whole numbers of a context as texts if they name groups; empty if they do not.

    They do if there are 2 to `FEW_ROWS` rows of each, and these are nearer to each other than to a
    line between the rows with the next lower and the next higher number: on average over the
    columns, at most `_NAME` times as far. An amount, such as an age, predicts its neighbours.

    Parameters
    ----------
    rows, n_rows, context, features : callable, int, int, and sequence
        As for `differences_in_groups`.
    columns : sequence of int
        Places of columns of numbers.
    most : int
        Largest number of groups.
    """
    feature = features[context]
    if n_rows * len(columns) > _MOST_OF_GROUPS or feature.low % 1.0 or feature.high % 1.0:
        return []
    _, [numbers], weights = _some(rows, 1, [context], [], features)
    names = np.unique(numbers[~np.isnan(numbers)])
    few = _LEAST_NAMES <= len(names) <= min(most, n_rows // 2) and n_rows <= FEW_ROWS * len(names)
    if not few or (names % 1.0).any():
        return []
    Y, _, _ = _some(rows, 1, [], columns, features)
    if np.mean([_own_or_beside(numbers, y, weights) for y in Y.T]) > _NAME:
        return []
    texts = [replace(feature, kind="categorical") for feature in features]
    _, [read], _ = _some(rows, 1, [context], [], texts)
    return sorted(read.unique().drop_null().to_pylist())


def _own_or_beside(names: Floats, y: Floats, weights: Floats) -> float:
    """Return how far values are from those of the same name, divided by that from those beside."""
    known = ~np.isnan(names + y)
    y, weights = y[known], weights[known]
    numbers, group = np.unique(names[known], return_inverse=True)
    if len(numbers) < _LEAST_NAMES:
        return 1.0
    levels, size = _medians(y, group, weights, len(numbers)), np.bincount(group, weights)
    share = (numbers[1:-1] - numbers[:-2]) / (numbers[2:] - numbers[:-2])
    beside = np.pad(levels[:-2] * (1.0 - share) + levels[2:] * share, 1)
    without_itself = size / np.maximum(size - 1.0, 1.0)
    inner = (size[group] > 1.0) & (group > 0) & (group < len(numbers) - 1)
    inside = (np.abs(y - levels[group]) * without_itself[group])[inner].sum()
    other = np.abs(y - beside[group])[inner].sum()
    return float(inside / other) if other > 0.0 else 1.0


def _number_in_groups(
    y: Floats, group: NDArray[np.int64], weights: Floats, n: int
) -> tuple[Floats, Floats, float] | None:
    """Return the level of all rows and of each group, the groups' usual sizes, and the least.

    Levels and sizes are of shape (1 + n,). Rows of no group have the number n. A group of one row
    has neither (NaN).
    """
    all_rows = np.zeros_like(group)
    rows = np.bincount(group, weights, n + 1)
    several = (rows > 1.0) & (np.arange(n + 1) < n)
    level = _medians(y, all_rows, weights, 1)
    far = np.abs(y - level)
    if not several.any() or not far.any():
        return None
    levels = np.where(several, _medians(y, group, weights, n + 1), np.nan)
    # The median of few rows is near each of them: differences are wider outside of a group.
    wider = np.sqrt(rows / np.maximum(rows - 1.0, 1.0))
    inside = several[group]
    left = (np.abs(y - levels[group]) * wider[group])[inside]
    of_group, weights_inside = group[inside], weights[inside]
    pooled = _NORMAL_MEDIAN * _medians(left, all_rows[inside], weights_inside, 1)
    sizes = _NORMAL_MEDIAN * _medians(left, of_group, weights_inside, n + 1)
    sizes = (rows * sizes + _SHRUNK * pooled) / (rows + _SHRUNK) / wider
    least = pooled[0] or np.average(left, weights=weights_inside)
    least = _LEAST * (least or np.average(far, weights=weights))
    return np.append(level, levels[:n]), np.append(0.0, sizes[:n]), float(least)


def _category_in_groups(
    y: Floats, group: NDArray[np.int64], weights: Floats, n: int
) -> tuple[Floats, Floats, float] | None:
    """Return the same of the places of categories: two different ones differ by `FAR`."""
    rows, width = np.bincount(group, weights, n + 1)[:n], y.max(initial=0.0) + 1.0
    if not (rows > 1.0).any():
        return None
    pairs, at = np.unique(group * width + y, return_inverse=True)
    rising = np.lexsort((-pairs, np.bincount(at, weights)))  # the last one of a group remains
    levels = np.zeros(n + 1)
    levels[(pairs[rising] // width).astype(np.int64)] = pairs[rising] % width
    levels = np.where(rows > 1.0, levels[:n], np.nan)
    return np.append(0.0, levels), np.append(0.0, 0.0 * levels), 1.0 / FAR


def _medians(y: Floats, group: NDArray[np.int64], weights: Floats, n: int) -> Floats:
    """Return the median of each group (n,), with rows of whole weights; NaN of one without rows."""
    if n == 1 and len(y) and (weights == 1.0).all():  # a tenth of the time
        middle = [(len(y) - 1) // 2, len(y) // 2]
        lower, upper = np.partition(y, middle)[middle]
        if lower or upper:  # of zeros, sorting determines the sign
            return np.array([0.5 * lower + 0.5 * upper])
    by_value = np.argsort(y)
    by_group = np.sort(group[by_value] * len(y) + np.arange(len(y)))  # faster than `lexsort`
    order = by_value[by_group % max(len(y), 1)]
    y, ends = y[order], np.cumsum(weights[order])
    rows = np.bincount(group, weights, n)
    before = np.cumsum(rows) - rows
    occupied, medians = rows > 0.0, np.full(n, np.nan)
    places = ((rows - 1.0) // 2.0 + before, rows // 2.0 + before)
    lower, upper = (y[np.searchsorted(ends, place[occupied], side="right")] for place in places)
    medians[occupied] = 0.5 * lower + 0.5 * upper
    return medians
