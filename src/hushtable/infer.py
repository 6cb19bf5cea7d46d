"""A schema read off the data: kinds, ranges and categories. Never public."""

from collections.abc import Iterable
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

__all__ = ["schema_from_batches"]


class _Ranges:
    """Running minima and maxima of some numeric columns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        self.missing = np.zeros(len(names), np.int64)

    def add(self, X: NDArray[Any], start: int, columns: slice = slice(None)) -> None:
        row, column = kernels.column_ranges(
            X, self.low[columns], self.high[columns], self.missing[columns]
        )
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

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
        texts = pc.unique(as_texts(column, self.name)).drop_null()
        self.seen.update(texts.to_pylist())
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


def schema_from_batches(reader: Reader, batches: Iterable[tuple[int, Batch]]) -> tuple[Schema, int]:
    """Read kinds, ranges and categories off the data.

    Parameters
    ----------
    reader : Reader
        Where the names come from.
    batches : iterable of (int, batch)
        Numbers of first rows, and rows.

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
    ranges = _Ranges(names)
    categories: dict[int, _Categories] = {}
    n_rows = 0
    for start, batch in batches:
        n_rows += len(batch)
        if isinstance(batch, np.ndarray):
            ranges.add(batch, start)
            continue
        for j, column in enumerate(batch.columns):
            if is_text(column.type):
                categories.setdefault(j, _Categories(names[j])).add(column)
            else:
                numbers = as_numbers(column, names[j], start)
                ranges.add(numbers[:, np.newaxis], start, slice(j, j + 1))
    if n_rows == 0:
        raise no_rows(reader)
    for j in categories:
        if ranges.high[j] >= ranges.low[j]:
            raise DataError(
                f"column {names[j]!r} holds numbers in some rows and text in others: "
                "make it one or the other"
            )
    features = tuple(
        categories[j].feature() if j in categories else ranges.feature(j) for j in range(len(names))
    )
    return Schema(features, public=False, named=named), n_rows
