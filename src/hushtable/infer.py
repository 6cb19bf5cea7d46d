"""A schema read off the data: kinds, ranges and categories. Never public."""

from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.columns import as_numbers, as_texts, is_text
from hushtable.encoding import infinite
from hushtable.errors import DataError
from hushtable.readers import Batch, Reader, no_rows
from hushtable.schema import MAX_CATEGORIES, Feature, Schema
from hushtable.threads import for_each, n_threads
from hushtable.weights import Numbered, Weights, numbered

__all__ = ["schema_from_data"]


class _Ranges:
    """Running minima and maxima of some numeric columns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)

    def add(self, X: NDArray[Any], start: int, columns: slice = slice(None)) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "_Ranges") -> None:
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)

    def feature(self, j: int) -> Feature:
        if self.low[j] > self.high[j]:
            raise _all_missing(self.names[j])
        try:
            return Feature.numeric(self.names[j], low=self.low[j], high=self.high[j])
        except ValueError as error:
            raise DataError(str(error)) from None


class _Categories:
    """The distinct texts of one column so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: set[str] = set()

    def add(self, column: Any) -> None:
        self.update(pc.unique(as_texts(column, self.name)).drop_null().to_pylist())

    def update(self, texts: Iterable[str]) -> None:
        self.seen.update(texts)
        if len(self.seen) > MAX_CATEGORIES:
            raise DataError(
                f"column {self.name!r} has more than {MAX_CATEGORIES:,} different texts, more "
                "categories than a plan allows: leave identifiers out, or group rare categories"
            )

    def feature(self) -> Feature:
        if not self.seen:
            raise _all_missing(self.name)
        return Feature.categorical(self.name, sorted(self.seen))


def _all_missing(name: str) -> DataError:
    return DataError(
        f"column {name!r} is missing in every row: no range can be read off it; leave the column "
        "out, or state its range in a schema"
    )


class _Found:
    """What some of the batches show."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.n_rows = 0
        self.ranges = _Ranges(names)
        self.categories: dict[int, _Categories] = {}

    def add(self, start: int, batch: Batch) -> None:
        self.n_rows += len(batch)
        if isinstance(batch, np.ndarray):
            self.ranges.add(batch, start)
            return
        for j, column in enumerate(batch.columns):
            if is_text(column.type):
                self._categories(j).add(column)
            else:
                numbers = as_numbers(column, self.names[j], start)
                self.ranges.add(numbers[:, np.newaxis], start, slice(j, j + 1))

    def merge(self, other: "_Found") -> None:
        self.n_rows += other.n_rows
        self.ranges.merge(other.ranges)
        for j, categories in other.categories.items():
            self._categories(j).update(categories.seen)

    def _categories(self, j: int) -> _Categories:
        return self.categories.setdefault(j, _Categories(self.names[j]))

    def features(self) -> tuple[Feature, ...]:
        for j in self.categories:
            if self.ranges.high[j] >= self.ranges.low[j]:
                raise DataError(
                    f"column {self.names[j]!r} holds numbers in some rows and text in others: "
                    "make it one or the other"
                )
        return tuple(
            self.categories[j].feature() if j in self.categories else self.ranges.feature(j)
            for j in range(len(self.names))
        )


def schema_from_data(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None
) -> tuple[Schema, int]:
    """Read kinds, ranges and categories off the data.

    Parameters
    ----------
    reader : Reader
        The rows.
    weights : ndarray of shape (n,), int64, optional
        Rows of weight 0 are left out.
    n_jobs : int, optional
        Threads; None is one, -1 every core.

    Returns
    -------
    schema : Schema
        With ``public=False``: every range is the data's own minimum and maximum.
    n_rows : int
        Number of rows seen.

    Raises
    ------
    DataError
        On an infinity, a column without any value, too many categories, or no row at all.
    """
    named = reader.names is not None
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    threads = n_threads(n_jobs, reader.n_rows)
    idle: SimpleQueue[_Found] = SimpleQueue()
    for _ in range(threads):
        idle.put(_Found(names))

    def look(item: Numbered) -> None:
        found = idle.get()
        try:
            found.add(item[0], item[1])
        finally:
            idle.put(found)

    for_each(look, numbered(reader, weights), threads)
    total = idle.get()
    while not idle.empty():
        total.merge(idle.get())
    if total.n_rows == 0:
        raise no_rows(reader)
    return Schema(total.features(), public=False, named=named), total.n_rows
