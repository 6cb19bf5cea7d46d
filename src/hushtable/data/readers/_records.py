"""Rows in a list of dicts, one each."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hushtable.data.readers._arrow import arrow
from hushtable.data.readers._reader import Reader
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
    does not fit 64 bits.
    """
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataTypeError(
            f"column {column} mixes types: argument must be a string or a real number in the "
            f"whole column ({error})"
        ) from None
