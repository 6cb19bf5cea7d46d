"""Anything with rows and columns, as batches: NumPy blocks or Arrow record batches.

A matrix stays NumPy (no copy); everything else becomes Arrow. A `Reader` can be read more
than once unless its source is a one-shot stream. A new input needs one file in this folder, and one
line below; users register their own with `register_source` and `register_format`.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hushtable import far, plugins
from hushtable.data.readers import memory
from hushtable.data.readers.columnar import feather_file, parquet_file
from hushtable.data.readers.csv import csv_file
from hushtable.data.readers.json_files import json_file
from hushtable.data.readers.memory import is_pandas
from hushtable.data.readers.reader import (
    BATCH_ROWS,
    KEPT,
    Batch,
    Coupling,
    FileLayout,
    Reader,
    Source,
    Unasked,
    found_name,
    in_memory,
    joined,
    near_names,
    no_rows,
    one_after_other,
    taken,
)
from hushtable.data.readers.registry import (
    SOURCES,
    URLS,
    built_in,
    load_plugins,
    opened,
    paths,
    register_format,
    register_source,
    register_url,
    why_none,
)
from hushtable.data.readers.registry import files as read_files
from hushtable.data.readers.sheet import sheet_file
from hushtable.errors import DataError

__all__ = [
    "BATCH_ROWS",
    "KEPT",
    "Batch",
    "Coupling",
    "FileLayout",
    "Reader",
    "Source",
    "Unasked",
    "as_reader",
    "found_name",
    "in_memory",
    "is_pandas",
    "joined",
    "near_names",
    "no_rows",
    "one_after_other",
    "paths",
    "register_format",
    "register_source",
    "register_url",
    "taken",
]  # fmt: skip

built_in("CSV", (".csv", ".tsv", ".txt"), csv_file,
         ("encoding", "delimiter", "header", "skip_lines", "skip_below", "skip_footer"),
         streams=True)  # fmt: skip
built_in("Parquet", (".parquet", ".pq"), parquet_file)
built_in("JSON", (".jsonl", ".ndjson", ".json", ".geojson"), json_file, streams=True)
built_in("Feather", (".feather", ".arrow", ".ipc"), feather_file)
built_in("spreadsheet", (".xlsx", ".xlsm", ".xls", ".ods"), sheet_file,
         ("sheet", "header", "skip_lines", "skip_below", "skip_footer"))  # fmt: skip

# The last is tried first, because frames also have Arrow's interface, and anything may be a matrix.
register_source(lambda data: not isinstance(data, str), memory.matrix)
# Tried just before the last, and not for objects that NumPy is made for: readers of other packages.
register_source(
    lambda data: not isinstance(data, np.ndarray | list | tuple | str) and load_plugins(),
    lambda data: data,
)
register_source(lambda data: hasattr(data, "tocsr") and hasattr(data, "toarray"), memory.sparse)
register_source(memory.is_records, memory.records)
register_source(lambda data: hasattr(data, "__arrow_c_stream__"), memory.c_stream)
register_source(memory.is_polars, memory.polars_frame)
register_source(is_pandas, memory.pandas_frame)
register_source(memory.is_arrow, memory.arrow)

#: Beginnings of URLs of databases, which another package of this repository reads.
DATABASES = frozenset({
    "postgresql", "postgres", "sqlite", "duckdb", "mysql", "mariadb", "oracle", "mssql"
})  # fmt: skip

_FOUND_OUT = FileLayout()
_NOTHING_KEPT: Mapping[str, str | int | bool] = {}


def as_reader(
    data: Any,
    *,
    text_columns: frozenset[str] = frozenset(),
    layout: FileLayout = _FOUND_OUT,
    kept: Mapping[str, str | int | bool] = _NOTHING_KEPT,
) -> Reader:
    """Open rows of any supported kind.

    Parameters
    ----------
    data : array, data frame, Arrow object or path
        NumPy array (masked or structured, too) or nested list of shape (n, d); sparse matrix or
        array of SciPy; list of dicts; pandas or polars frame (eager or lazy); pyarrow Table,
        RecordBatch, RecordBatchReader or Dataset; anything with ``__arrow_c_stream__`` (such as
        a duckdb relation); the path of a file, such as CSV, Parquet, JSON, a workbook or a
        ZIP archive of one, of a folder of them, or a glob pattern; a URL of them, by fsspec; the
        URL of a database, with a query in the layout; ``"-"`` for standard input; whatever else is
        registered.
    text_columns : frozenset of str
        Columns of a file that should stay text even where they look like numbers: for formats
        that others registered. The shipped ones read text as text.
    layout : Layout
        Known facts about a file's layout; the others are detected.
    kept : mapping
        Facts that a model kept about the layout of the files that it was fitted to
        (`FileLayout.kept`): used where ``layout`` has no entry. An encoding applies to files that
        are not UTF-8.

    Returns
    -------
    Reader

    Raises
    ------
    DataError
        If there is nothing to read, or it cannot be read.
    DataTypeError
        If the container is of a kind that hushtable does not take.
    UsageError
        If the layout has entries that the source cannot use.
    """
    if isinstance(data, Reader) and layout is _FOUND_OUT:
        return data
    if layout.unasked is not None:
        data = memory.each_by_itself(data)
    if not isinstance(data, str | os.PathLike):
        if layout is not _FOUND_OUT:
            layout.check_used((), "data in memory")
        try:
            rows = opened(data)
        except DataError as error:
            raise type(error)(f"{error}{why_none()}") from None
    elif far.is_url(name := os.fspath(data)):
        rows = _of_url(name, text_columns, layout, kept)
    else:
        rows = read_files(name, text_columns, layout, kept)
    rows = rows.folded()
    return rows if layout.unasked is None else replace(rows, unasked=layout.unasked)


def _of_url(
    name: str,
    text_columns: frozenset[str],
    layout: FileLayout,
    kept: Mapping[str, str | int | bool],
) -> Reader:
    load_plugins()
    if any(takes(name) for takes, _ in SOURCES):
        layout.check_used((), far.without_user(name))
        return opened(name)
    for takes, open_ in URLS:
        if takes(name, layout):
            return open_(name, layout)
    if layout.query is not None or not far.is_known(name):
        scheme = name.partition("://")[0]
        if scheme.partition("+")[0].lower() in DATABASES:
            raise DataError(f"{plugins.missing(f'a URL of {scheme}', 'connect')}{why_none()}")
    return read_files(name, text_columns, layout, kept)
