"""One Arrow column as numbers or as texts, whatever type it arrives in."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.errors import DataError, DataTypeError

_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this Arrow type holds categories rather than numbers."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def decoded(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, if it has one."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def text_bytes(texts: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the bounds (n + 1,) of texts (n,) in UTF-8, and these bytes."""
    _, ends, letters = texts.buffers()
    ends = np.frombuffer(ends or bytes(4), np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return ends, np.frombuffer(letters or b"", np.uint8)


def as_numbers(column: pa.Array, name: str, start: int = 0) -> NDArray[np.floating]:
    """Return float32 or float64 values, NaN where missing.

    Dates and times become seconds (since 1970-01-01 UTC for points in time). ``name`` and
    ``start`` (the number of the column's first row) are for messages.
    """
    column = decoded(column)
    kind = column.type
    if is_text(kind):
        raise _text_in_numeric(column, name, start)
    seconds = 1.0
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
        kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
        seconds = _SECONDS[kind.unit]
        column = column.view(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    elif pa.types.is_integer(kind):
        for value in pc.min_max(column).as_py().values() if kind.bit_width == 64 else ():
            if value is not None and abs(value) > 2**53:
                raise integer_too_large(f"column {name!r}", value)
    elif pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    elif not (pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        advice = (
            "bytes: decode them to text, or save the file as UTF-8"
            if pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
            else "needs numbers, dates, true/false or text: convert it or leave it out"
        )
        raise DataTypeError(f"column {name!r} has type {kind}: {advice}")
    if kind not in (pa.float32(), pa.float64()):
        # Not a safe cast: a time in nanoseconds does not fit a float64 to the last digit.
        column = pc.cast(column, pa.float64(), safe=False)
    values = filled(column, np.nan)
    return values / seconds if seconds != 1.0 else values


def as_column(values: np.ndarray, valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers, or true and false, as an Arrow column: null where not ``valid``.

    Does not use ``pa.array``, which imports pandas if it is installed: a quarter of a second.
    """
    kind, n = pa.from_numpy_dtype(values.dtype), len(values)
    if values.dtype == np.bool_:
        values = np.packbits(values, bitorder="little")
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, n, [bits, pa.py_buffer(np.ascontiguousarray(values))])


def nan_as_null(values: NDArray[np.floating]) -> pa.Array:
    """Return numbers as an Arrow column: null where they are NaN."""
    known = ~np.isnan(values)
    return as_column(values, None if known.all() else known)


def texts_column(texts: Sequence[str | None]) -> pa.StringArray:
    """Return texts as an Arrow column, null for None, without ``pa.array``: see `as_column`."""
    data = [(text or "").encode() for text in texts]
    ends = np.cumsum([0, *map(len, data)], dtype=np.int32)
    bits = None
    if None in texts:
        bits = pa.py_buffer(np.packbits([text is not None for text in texts], bitorder="little"))
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(data))
    return pa.StringArray.from_buffers(len(data), *buffers, bits)


def scalar(value: str | float | bool) -> pa.Scalar:
    """Return one value for Arrow to compute with, without ``pa.scalar``: see `as_column`."""
    values = texts_column([value]) if isinstance(value, str) else as_column(np.array([value]))
    return values[0]


def null(kind: pa.DataType) -> pa.Scalar:
    """Return one missing value of a type: see `scalar`."""
    return pa.nulls(1, kind)[0]


def filled(column: pa.Array, value: float) -> np.ndarray:
    """Return a column of numbers with ``value`` where it is missing.

    Uses neither ``to_numpy`` nor ``fill_null``: both import pandas if it is installed, which takes
    a third of a second.
    """
    if column.null_count:
        single = as_column(np.array([value], column.type.to_pandas_dtype()))[0]
        column = pc.coalesce(column, single)
    values: np.ndarray = np.from_dlpack(column)
    return values


def integer_too_large(column: str, value: object) -> DataError:
    """Explain that a whole number is too large to be distinguished from its neighbours."""
    return DataError(
        f"{column} holds the integer {value}: whole numbers beyond 2**53 = {2**53} cannot be "
        "distinguished as float64; leave identifiers out, or convert the column to float yourself"
    )


def _text_in_numeric(column: pa.Array, name: str, start: int) -> DataError:
    row = next((i for i, value in enumerate(column) if value.is_valid), None)
    if row is None:
        return DataError(
            f"column {name!r} is numeric in the plan, but in the data it is a column of text "
            "without any value: store it as a column of numbers"
        )
    return DataError(
        f"column {name!r} is numeric in the plan, but the data contain text, such as "
        f"{column[row].as_py()!r} in row {start + row}: correct the value or leave it empty"
    )


def as_texts(column: pa.Array, name: str) -> pa.Array:
    """Return the column as Arrow strings; whole numbers lose a trailing ``.0``."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())  # Arrow compares no half floats
        kind = column.type
    if pa.types.is_floating(kind):
        # A frame turns whole numbers with missing values into floats; the category is still "1".
        whole = pc.cast(column, pa.int64(), safe=False)
        same = pc.equal(pc.cast(whole, kind, safe=False), column)
        column = pc.if_else(same, whole.cast(pa.string()), column.cast(pa.string()))
        return pc.if_else(pc.equal(column, scalar("nan")), null(pa.string()), column)
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataTypeError(
            f"column {name!r} is categorical in the plan, but the data have type {kind}: needs "
            "text, whole numbers or true/false"
        ) from None


class InfiniteError(DataError):
    """An infinity in a feature, in the row of this number."""

    feature: str
    row: int


def infinite(feature: str, row: int, place: str = "") -> DataError:
    """Explain that an infinity does not fit a range; ``place`` states where its row is."""
    error = InfiniteError(
        f"Input X contains infinity: feature {feature!r} in {place or f'row {row}'}; needs finite "
        "numbers, or NaN for a missing value"
    )
    # Not with its own constructor, because workers in other processes send it pickled.
    error.feature, error.row = feature, row
    return error
