"""Values compared with predictions by a row's context, from a regression or from its group."""

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

    def of(self, batch: Any, features: Sequence[Any], start: int = 0) -> Floats:
        """Return the differences (k, n) of a batch, in usual sizes; NaN where a value is missing.

        ``features`` are those of the rows; ``start`` is the number of the first row, for messages.
        """
        values = _behaviour(batch, self.columns, features, start)
        left, share = self._places(batch, features, start)
        found = np.empty(values.shape)
        kernels.take_differences(values, left, share, self._padded, self.least, found)
        if self.in_groups:
            np.round(found, 9, out=found)  # the group's median differs by 0, not by its rounding
            found[:, left[0] == len(self.weights)] *= 0.0  # missing values stay missing
        return np.clip(found, -FAR, FAR, out=found)

    def predicted(self, batch: Any, features: Sequence[Any], start: int = 0) -> Floats:
        """Return the predictions of the columns (k, n) by the context of each row of a batch."""
        left, share = self._places(batch, features, start)
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
        self, batch: Any, features: Sequence[Any], start: int = 0
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


def with_differences(reader: Reader, differences: Differences, features: Sequence[Any]) -> Reader:
    """Return rows with differences after the columns of these features, before kept columns."""
    added, n = differences.names([feature.name for feature in features]), len(features)
    if reader.files:
        files = [replace(f, keep=reader.keep, unasked=reader.unasked) for f in reader.files]
        parts = [with_differences(one, differences, features) for one in files]
        return replace(reader.with_parts(parts), differences=differences)

    def read() -> Iterator[Batch]:
        start = 0
        for batch in reader.read():
            found = differences.of(batch, features, start)
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


def _values(batch: Any, place: int, features: Sequence[Any], start: int = 0) -> Floats | pa.Array:
    """Return a column: its numbers (n,), or its texts."""
    name = features[place].name
    if features[place].kind == "numeric":
        return numbers_of(batch, [place], {place: name}, start)[:, 0]
    column = batch[:, place] if isinstance(batch, np.ndarray) else batch.column(place)
    column = pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column
    return as_texts(column, name)


def _behaviour(
    batch: Any, columns: Sequence[int], features: Sequence[Any], start: int = 0
) -> Floats:
    """Return some columns (k, n) as numbers: a category by its place, an unseen one after all."""
    found = np.empty((len(columns), len(batch)))
    for k, j in enumerate(columns):
        values = _values(batch, j, features, start)
        if not isinstance(values, np.ndarray):
            categories = features[j].categories
            places = filled(pc.index_in(values, texts_column(categories)), len(categories))
            missing = np.from_dlpack(values.is_null().cast(pa.uint8())) == 1
            values = np.where(missing, np.nan, places)
        found[k] = values
    return found


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
    features: Sequence[Any],
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
    found = np.hstack([predicted * spread, usual * spread])
    found[0, : len(spread)] += middle
    return Differences(tuple(context), tuple(columns), points, found, least * spread)


def _some(
    rows: Rows,
    every: int,
    context: Sequence[int],
    columns: Sequence[int],
    features: Sequence[Any],
) -> tuple[Floats, list[Any], Floats]:
    """Return the values of one row in ``every``, its context, column by column, and its weight."""
    numbers, given, times, start = [], [], [], 0
    for batch, weights in rows():
        chosen = np.arange(-start % every, len(batch), every)
        start += len(batch)
        if len(chosen):
            some = taken(batch, chosen)
            numbers.append(_behaviour(some, columns, features).T)
            given.append([_values(some, j, features) for j in context])
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


# --- groups ---------------------------------------------------------------------------------------


def differences_in_groups(
    rows: Rows,
    n_rows: int,
    context: int,
    columns: Sequence[int],
    features: Sequence[Any],
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
    found, compared = [], []
    for y, j in zip(Y.T, columns, strict=True):
        there = ~np.isnan(y)
        learned = _number_in_groups if features[j].kind == "numeric" else _category_in_groups
        one = learned(y[there], group[there], weights[there], len(names))
        if one is not None:
            found.append(one)
            compared.append(j)
    if not found:
        return None
    levels, sizes, least = zip(*found, strict=True)
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
    features: Sequence[Any],
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
    one = features[context]
    if n_rows * len(columns) > _MOST_OF_GROUPS or one.low % 1.0 or one.high % 1.0:
        return []
    _, [numbers], weights = _some(rows, 1, [context], [], features)
    names = np.unique(numbers[~np.isnan(numbers)])
    few = _LEAST_NAMES <= len(names) <= min(most, n_rows // 2) and n_rows <= FEW_ROWS * len(names)
    if not few or (names % 1.0).any():
        return []
    Y, _, _ = _some(rows, 1, [], columns, features)
    if np.mean([_own_or_beside(numbers, y, weights) for y in Y.T]) > _NAME:
        return []
    texts = [replace(one, kind="categorical") for one in features]
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
    own = (np.abs(y - levels[group]) * without_itself[group])[inner].sum()
    other = np.abs(y - beside[group])[inner].sum()
    return float(own / other) if other > 0.0 else 1.0


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
    some, found = rows > 0.0, np.full(n, np.nan)
    places = ((rows - 1.0) // 2.0 + before, rows // 2.0 + before)
    lower, upper = (y[np.searchsorted(ends, place[some], side="right")] for place in places)
    found[some] = 0.5 * lower + 0.5 * upper
    return found
