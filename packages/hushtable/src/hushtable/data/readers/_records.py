"""Rows in a list of dicts, one each."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hushtable.data.readers._arrow import arrow
from hushtable.data.readers._reader import Reader, integer_too_large
from hushtable.errors import DataError, DataTypeError


def is_records(data: Any) -> bool:
    """Whether this is a list or tuple that begins with a dict."""
    return isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], Mapping)


def records(data: Sequence[Any]) -> Reader:
    """Read a list of dicts; a key that some lack is missing there."""
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise DataTypeError(
                f"row {row} is a {type(record).__name__}, the rows before are dicts: needs a list "
                "of dicts, or a matrix"
            )
    # Not Table.from_pylist, which takes the keys of the first row for all of them.
    names = list(dict.fromkeys(key for record in data for key in record))
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise DataTypeError(f"key {other[0]!r} is not a text: name each column by a text")
    if not names:
        raise DataError("the dicts have no keys: a minimum of 1 is required")
    return arrow(
        pa.table({name: of_one_type([r.get(name) for r in data], repr(name)) for name in names})
    )


def of_one_type(values: list[Any], column: str) -> pa.Array:
    """Return values as an Arrow column; ``column`` names it in messages.

    Raises `DataTypeError` if they are of several types, and `DataError` for a whole number that
    is too large, or a text with half a character.
    """
    try:
        return pa.array(values, from_pandas=True)
    except UnicodeEncodeError as error:
        rows = [i for i, value in enumerate(values) if isinstance(value, str)]
        row = next((f" in row {i}" for i in rows if values[i] == error.object), "")
        raise half_a_character(column, error, row) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        if all(value is None or isinstance(value, int | float) for value in values):
            for value in values:
                if isinstance(value, int) and abs(value) > 2**53:
                    bits = value.bit_length()
                    shown = value if bits <= 128 else f"of {bits:,} bits"
                    raise integer_too_large(f"column {column}", shown) from None
        raise DataTypeError(
            f"column {column} mixes types: argument must be a string or a real number in the "
            f"whole column ({error})"
        ) from None


def half_a_character(column: str, error: UnicodeEncodeError, row: str = "") -> DataError:
    """Explain that a text of a column holds half a character."""
    return DataError(
        f"column {column} holds {error.object!r:.80}{row}: half a character, which no file or "
        "table can hold; correct the text, or leave it empty"
    )
