"""Rows in Arrow objects, and in whatever gives an Arrow stream."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from hushtable.data.readers._reader import (
    FILE_ROWS,
    Batch,
    Reader,
    column_names,
    library_of,
    named_errors,
    split,
)
from hushtable.errors import DataError


def is_arrow(data: Any) -> bool:
    """Whether this is a pyarrow RecordBatch, RecordBatchReader, Table or Dataset."""
    if isinstance(data, pa.RecordBatch | pa.RecordBatchReader):
        return True
    return library_of(data) == "pyarrow" and hasattr(data, "to_batches")


def arrow(data: Any) -> Reader:
    """Read a pyarrow object without a copy; a RecordBatchReader once."""
    if isinstance(data, pa.RecordBatchReader):
        return stream(data.schema, lambda: data, one_shot=True)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        names = column_names(data.schema)
        return Reader(names, len(names), len(data), lambda: split(iter(data.to_batches())))
    # The defaults read far ahead: 20 times the memory of these settings.
    sparing = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    return stream(data.schema, lambda: data.to_batches(batch_size=FILE_ROWS, **sparing))


def c_stream(data: Any) -> Reader:
    """Read anything with ``__arrow_c_stream__``, once."""
    try:
        return arrow(pa.RecordBatchReader.from_stream(data))
    except pa.ArrowInvalid:  # such as a ChunkedArray
        raise DataError(
            f"Expected 2D array, got a {type(data).__name__} that is no table: name its column, "
            "as in pa.table({'name': column})"
        ) from None


def stream(schema: pa.Schema, read: Callable[[], Any], *, one_shot: bool = False) -> Reader:
    """Read record batches from ``read``, called once a pass."""
    names = column_names(schema)

    def batches() -> Iterator[Batch]:
        yield from split(named_errors(iter(read()), "the data"))

    return Reader(names, len(names), None, batches, one_shot)
