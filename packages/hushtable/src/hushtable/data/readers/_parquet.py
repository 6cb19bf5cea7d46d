"""Rows in a Parquet file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.data.readers._layout import Layout
from hushtable.data.readers._reader import Batch, Reader, column_names, of_file, rows_at_a_time

#: Bytes read at a time of each column: without, a whole row group is held.
_BUFFER = 1 << 18


def parquet_file(path: Path, _: Layout) -> Reader:
    """Read a Parquet file, some rows at a time."""
    from pyarrow import parquet  # loads slowly, and who reads CSV does without

    size = path.stat().st_size
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        _check_footer(file.metadata)
        names, n_rows = column_names(file.schema_arrow), file.metadata.num_rows

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        chosen, rows = columns or list(names), 0
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            at_a_time = rows_at_a_time(n_rows, len(chosen))
            for batch in file.iter_batches(at_a_time, columns=columns, use_threads=False):
                _check_batch(batch, chosen)
                rows += batch.num_rows
                # The file's order of columns is its own.
                yield size * rows // max(1, n_rows), batch.select(chosen)

    return of_file(path, names, batches, n_rows)


def _check_footer(footer: Any) -> None:
    """Raise `pa.ArrowInvalid` for numbers that cannot be: over some, Arrow ends the process."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    if any(group.num_rows < 0 or group.num_columns != footer.num_columns for group in groups):
        raise pa.ArrowInvalid("its groups of rows do not fit together: a damaged file")


def _check_batch(batch: pa.RecordBatch, names: list[str]) -> None:
    """Raise `pa.ArrowInvalid` if a damaged file made Arrow return what cannot be."""
    if batch.num_rows < 0 or not set(names) <= set(batch.schema.names):
        raise pa.ArrowInvalid("its columns or numbers of rows do not fit together: a damaged file")
    batch.validate()
