"""Few rows of a frame, as numbers: making Arrow columns takes ten times as long as scoring.

Values that cannot be read here exactly as in Arrow columns are left to them, and so are values that
are refused, because Arrow columns name the column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.columns import texts_column
from hushtable.data.readers import Reader, found_name
from hushtable.data.readers.reader import BATCH_VALUES, FEW_VALUES, Read, Source
from hushtable.data.schema import Feature, Schema
from hushtable.data.texts.reading import Reading

#: Whole numbers from here on may collide as float64.
_LARGE = 2.0**53
#: Types of Python values that are numbers, or missing.
_NUMBERS = frozenset({float, int, bool, type(None)})


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Few rows as a batch of numbers that only `Encoder.encode` takes.

    ``values`` is of shape (n, d), float64. For a category, it is the place in the list of its
    feature, or the place after the last if it is not listed.
    """

    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)


def few_rows(reader: Reader, schema: Schema, reading: Reading, read: Read) -> Reader | None:
    """Return a reader of the same rows as one block, if they are a small frame's.

    If all features are numbers, it reads the block; otherwise it reads from ``read``, and the block
    is a `PlacedRows`.
    """
    n, apart = reader.n_rows or 0, None if reader.steps else reader.sources[0].apart
    if apart is None or not n:
        return None
    if n * reader.n_columns > BATCH_VALUES or (places := _places(reader, schema)) is None:
        return None
    numeric = not schema.categorical_names
    if not numeric and (n > FEW_VALUES or not schema.labels or schema.relations is not None):
        return None
    columns = apart()
    if columns is None:
        return None
    if numeric and isinstance(columns, np.ndarray):
        block = _of_matrix(columns, places)
    else:
        parts = columns.T.tolist() if isinstance(columns, np.ndarray) else columns
        block = _of_columns([parts[j] for j in places], schema, reading)
    if block is None:
        return None
    by_place = reader.names is None or not schema.named
    names = reader.names if by_place else tuple(schema.names)
    if numeric:
        rows = Reader.of(names, len(schema), Source(lambda: iter((block,)), n))
        return replace(rows, numeric=True)
    source = Source(read, n, name=reader.source, place=reader.place, placed=PlacedRows(block))
    return replace(Reader.of(names, len(schema), source), opened=schema)


def _places(reader: Reader, schema: Schema) -> Sequence[int] | None:
    wanted, names = schema.names, reader.names
    if names is None or not schema.named or [*names] == wanted:
        return range(len(wanted)) if reader.n_columns == len(wanted) else None
    at = {name: j for j, name in enumerate(names)}
    found = [at.get(found_name(name, at)) for name in wanted]
    return None if None in found else found  # type: ignore[return-value] # no None is among them


def _of_matrix(values: NDArray[Any], places: Sequence[int]) -> NDArray[Any] | None:
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        return None
    if [*places] != [*range(values.shape[1])]:
        values = np.take(values, places, axis=1)
    if values.dtype not in (np.float64, np.float32):
        if values.dtype.itemsize == 8 and max(int(values.max()), -int(values.min())) > 2**53:
            return None
        values = values.astype(np.float64)
    # A copy in row order: kernels are compiled for each layout, and for read-only arrays.
    block = np.array(values, order="C")
    return None if np.isinf(block).any() else block


def _of_columns(
    columns: Sequence[Sequence[Any]], schema: Schema, reading: Reading
) -> NDArray[np.float64] | None:
    """Return columns of Python values as numbers (n, d), with the places of categories.

    None if there is a value that Arrow may read differently, or refuses.
    """
    found: list[Sequence[Any]] = []
    for feature, places, column in zip(
        schema.features, schema.places_of_categories, columns, strict=True
    ):
        if places is not None:
            listed = _listed(column, feature, places, reading)
            if listed is None:
                return None
            column = listed
        elif not isinstance(column, np.ndarray) and not _NUMBERS.issuperset(map(type, column)):
            column = [None if type(x).__name__ == "NAType" else x for x in column]
            if not _NUMBERS.issuperset(map(type, column)):
                return None
        found.append(column)
    block = np.ascontiguousarray(np.array(found, np.float64).T)  # None becomes NaN
    return None if (np.abs(block) >= _LARGE).any() else block


def _listed(
    column: Sequence[Any], feature: Feature, places: Mapping[str, int], reading: Reading
) -> Sequence[float | None] | None:
    if isinstance(column, np.ndarray):  # points in time
        return None
    found, odd = list[float | None](), dict[str, list[int]]()
    for row, value in enumerate(column):
        place: float | None = places.get(value) if type(value) is str else None
        missing = value is None or type(value).__name__ == "NAType"
        missing |= type(value) is float and value != value
        if place is None and not missing:
            text = _text(value)
            if text is None:
                return None
            place = places.get(text)
            if place is None:
                odd.setdefault(text, []).append(row)
        found.append(place)
    if odd:  # not listed as they are written
        texts = reading.category(feature.name).texts(texts_column([*odd]), feature.categories)
        for text, rows in zip(texts.to_pylist(), odd.values(), strict=True):
            for row in rows:
                found[row] = None if text is None else places.get(text, len(places))
    return found


def _text(value: Any) -> str | None:
    """Return a value as text, as Arrow would; None if that is not certain."""
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:  # half a character
            return None
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float and value.is_integer() and abs(value) < _LARGE:
        value = int(value)
    return str(value) if type(value) is int else None
