"""A schema read off the data: kinds, ranges and categories. Never public."""

import re
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import as_numbers, as_texts, is_text
from hushtable.data.encoding import infinite
from hushtable.data.readers import Reader, no_rows
from hushtable.data.schema import MAX_CATEGORIES, Feature, Schema
from hushtable.data.weights import Numbered, Weights, numbered
from hushtable.errors import DataError
from hushtable.threads import for_each, n_threads

#: Rows, or different texts, up to which a column is taken for categories, however they look.
_FEW = 20
#: Letters of a text, on average, above which it is more than the name of a category.
_LONG = 30
#: Like a number of a patient or an order, a hash, a date written out.
_CODE = re.compile(r"(?=(?:\D*\d){3})\S{8,}")


class _Found:
    """Ranges and texts seen in some of the batches."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.n_rows = 0
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        #: By number of the column, its different texts.
        self.texts: dict[int, set[str]] = {}

    def add(self, item: Numbered) -> None:
        start, batch, _ = item
        self.n_rows += len(batch)
        if isinstance(batch, np.ndarray):
            self._add_numbers(batch, start, slice(None))
            return
        for j, column in enumerate(batch.columns):
            if is_text(column.type):
                texts = pc.unique(as_texts(column, self.names[j])).drop_null().to_pylist()
                self.texts.setdefault(j, set()).update(texts)
            else:
                numbers = as_numbers(column, self.names[j], start)
                self._add_numbers(numbers[:, np.newaxis], start, slice(j, j + 1))
        self._check_texts()

    def _add_numbers(self, X: NDArray[Any], start: int, columns: slice) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "_Found") -> None:
        self.n_rows += other.n_rows
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        for j, texts in other.texts.items():
            self.texts.setdefault(j, set()).update(texts)
        self._check_texts()

    def _check_texts(self) -> None:
        crowded = [self.names[j] for j in sorted(self.texts) if len(self.texts[j]) > MAX_CATEGORIES]
        if crowded:
            one = len(crowded) == 1
            which = f"column {crowded[0]!r} has" if one else f"columns {crowded} each have"
            raise DataError(
                f"{which} more than {MAX_CATEGORIES:,} different texts, more categories than a "
                "plan allows: leave identifiers out, and free text (hushtable fit --drop), or "
                "group rare categories"
            )

    def features(self) -> tuple[Feature, ...]:
        for j in self.texts:
            if self.high[j] >= self.low[j]:
                raise DataError(
                    f"column {self.names[j]!r} holds numbers in some rows and text in others: "
                    "make it one or the other"
                )
        return tuple(map(self._feature, range(len(self.names))))

    def _feature(self, j: int) -> Feature:
        name = self.names[j]
        if not self.texts.get(j) and self.low[j] > self.high[j]:
            raise DataError(
                f"column {name!r} is missing in every row: no range can be read off it; leave the "
                "column out, or state its range in a schema"
            )
        if j in self.texts:
            return Feature.categorical(name, sorted(self.texts[j]))
        try:
            return Feature.numeric(name, low=self.low[j], high=self.high[j])
        except ValueError as error:
            raise DataError(str(error)) from None


def schema_from_data(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None
) -> tuple[Schema, int]:
    """Read a schema off the data, without the rows of weight 0; return it and the number of rows.

    It is not public: every range is the data's own minimum and maximum. Raises `DataError` on an
    infinity, a column without any value, too many categories, or no row at all.
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
            found.add(item)
        finally:
            idle.put(found)

    for_each(look, numbered(reader, weights), threads)
    total = idle.get()
    while not idle.empty():
        total.merge(idle.get())
    if total.n_rows == 0:
        raise no_rows(reader)
    return Schema(total.features(), public=False, named=named), total.n_rows


def doubtful_texts(schema: Schema, n_values: Sequence[int]) -> dict[str, str]:
    """Find columns whose texts may identify single rows: identifiers, names, free text.

    ``n_values`` (d,) are the rows in which each feature is not missing. Returns, by name of the
    column, what its texts look like; the words hold none of them.
    """
    looks = {
        feature.name: _looks(feature.categories, n)
        for feature, n in zip(schema.features, n_values, strict=True)
        if feature.kind == "categorical"
    }
    return {name: words for name, words in looks.items() if words}


def _looks(texts: Sequence[str], n_values: int) -> str:
    """Say what is doubtful about the different texts of a column; nothing if they are few."""
    n = len(texts)
    different = f"{n:,} different texts"
    if n_values > _FEW and 2 * n > n_values:
        return f"{different} in {n_values:,} rows: identifiers, names or free text"
    if n <= _FEW:
        return ""
    if 2 * sum(_CODE.fullmatch(text) is not None for text in texts) > n:
        return f"{different}, most of them long codes with digits: identifiers"
    words = sum(len(text.split()) for text in texts) / n
    letters = sum(map(len, texts)) / n
    if words >= 2.0 or letters > _LONG:
        return (
            f"{different}, of {words:.2g} words and {letters:.0f} letters on average: names or "
            "free text"
        )
    return ""
