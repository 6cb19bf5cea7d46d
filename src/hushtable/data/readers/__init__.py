"""Anything with rows and columns, as batches: NumPy blocks or Arrow record batches.

A matrix stays NumPy (no copy); everything else becomes Arrow. A `Reader` can be read more
than once unless its source is a one-shot stream.
"""

import os
from typing import Any

import pyarrow as pa

from hushtable.data.readers import _files, _memory
from hushtable.data.readers._reader import (
    BATCH_ROWS,
    FILE_ROWS,
    Batch,
    Reader,
    integer_too_large,
    no_rows,
    one_after_other,
    taken,
)

paths = _files.paths

__all__ = [
    "BATCH_ROWS",
    "Batch",
    "Reader",
    "as_reader",
    "integer_too_large",
    "no_rows",
    "one_after_other",
    "paths",
    "taken",
]


def as_reader(data: Any, *, text_columns: frozenset[str] = frozenset()) -> Reader:
    """Open rows of any supported kind.

    Parameters
    ----------
    data : array, data frame, Arrow object or path
        NumPy array or nested list of shape (n, d); pandas or polars frame (eager or lazy);
        pyarrow Table, RecordBatch, RecordBatchReader or Dataset; anything with
        ``__arrow_c_stream__`` (such as a duckdb relation); the path of a CSV or Parquet file,
        of a folder of them, or a glob pattern.
    text_columns : frozenset of str
        CSV columns to be read as text even where they look like numbers.

    Returns
    -------
    Reader

    Raises
    ------
    DataError
        If there is nothing to read, or it cannot be read.
    DataTypeError
        If the container is of a kind that hushtable does not take.
    """
    if isinstance(data, Reader):
        return data
    if isinstance(data, str | os.PathLike):
        return _files.files(os.fspath(data), text_columns)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return _memory.table(data)
    if isinstance(data, pa.RecordBatchReader):
        return _memory.stream(data.schema, lambda: data, one_shot=True)
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "iloc"):
        return _memory.pandas_frame(data)
    if module == "pyarrow" and hasattr(data, "to_batches"):
        # The defaults read far ahead: 20 times the memory of these settings.
        return _memory.stream(
            data.schema,
            lambda: data.to_batches(
                batch_size=FILE_ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False
            ),
        )
    if module == "polars" and hasattr(data, "collect_batches"):
        schema = data.head(0).collect().to_arrow().schema
        return _memory.stream(
            schema,
            lambda: (b for frame in data.collect_batches() for b in frame.to_arrow().to_batches()),
        )
    if module == "polars" and hasattr(data, "collect"):
        data = data.collect()  # before polars 1.34, a lazy frame gave no batches
    if module == "polars" and hasattr(data, "to_arrow"):
        return _memory.polars_frame(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _memory.c_stream(data)
    return _memory.matrix(data)
