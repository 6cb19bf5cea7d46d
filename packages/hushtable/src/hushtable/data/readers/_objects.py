"""Columns of Python's objects, each value as the text that it is, whatever the others are."""

import sys
from collections.abc import Mapping
from typing import Any

from hushtable.data.readers._pandas import is_frame
from hushtable.data.readers._records import is_records
from hushtable.data.readers._sheet_cells import as_name

#: Types of pandas that hold Python's objects.
_OBJECTS = frozenset({"object", "str", "string"})


def each_by_itself(data: Any) -> Any:
    """Return rows in which one value of another type changes no other.

    Of frames and dicts, values that are no numbers become texts; all else is of one type anyway.
    """
    if is_records(data):
        return [
            {str(k): _alone(v) for k, v in row.items()} if isinstance(row, Mapping) else {}
            for row in data
        ]
    if is_frame(data) and data.ndim == 2:
        objects = [i for i, kind in enumerate(data.dtypes) if str(kind) in _OBJECTS]
        if objects:
            data = data.copy(deep=False)
            for i in objects:
                data.isetitem(i, data.iloc[:, i].map(_alone).astype(object))
    return data


def _alone(value: Any) -> str | None:
    """Return a value as text; None if it is missing, or holds several."""
    if value is None or isinstance(value, dict | list | tuple | set):
        return None
    pandas = sys.modules.get("pandas")
    if (pandas is not None and pandas.isna(value) is True) or value != value:
        return None
    # Half a character is none: it becomes the sign for what could not be read.
    text = as_name(value).encode("utf-16", "surrogatepass")
    return text.decode("utf-16", "replace")
