"""Rows in Parquet and Feather files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from hushtable.data.readers.reader import (
    Batch,
    FileLayout,
    Reader,
    column_names,
    of_file,
    rows_at_a_time,
    split,
)


def feather_file(path: Path, _: FileLayout) -> Reader:
    """Read an Arrow IPC file or stream, one batch of rows at a time."""
    size = path.stat().st_size
    # Not mapped into memory: if another program truncated the file, this one would crash.
    with pa.OSFile(str(path)) as raw:
        start = raw.read(6)
        if start.startswith(b"FEA1"):
            raise pa.ArrowInvalid(
                "Feather version 1, which is obsolete: write the file again as version 2"
            )
        raw.seek(0)
        names = column_names(_opened(raw, start, None).schema)

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        chosen = columns or list(names)
        with pa.OSFile(str(path)) as raw:
            file = _opened(raw, start, [names.index(name) for name in chosen])
            try:
                if isinstance(file, ipc.RecordBatchFileReader):
                    n = file.num_record_batches
                    read = (((i + 1) / n, file.get_batch(i)) for i in range(n))
                else:  # a stream has no known end
                    read = ((1.0, batch) for batch in file)
                for share, batch in read:
                    batch.validate(full=True)  # for a damaged file
                    for part in split([batch.select(chosen)]):
                        yield int(share * size), part
            except pa.ArrowMemoryError:
                raise pa.ArrowInvalid(
                    "a batch of its rows does not fit into memory: the file may be damaged; "
                    "otherwise write it in smaller batches"
                ) from None

    return of_file(path, names, batches)


def _opened(raw: pa.NativeFile, start: bytes, columns: list[int] | None) -> Any:
    options = ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    open_ = ipc.open_file if start == b"ARROW1" else ipc.open_stream
    return open_(raw, options=options)


#: Bytes read at a time of each column; otherwise, a whole row group is held in memory.
_BUFFER = 1 << 18


def parquet_file(path: Path, _: FileLayout) -> Reader:
    """Read a Parquet file, some rows at a time."""
    from pyarrow import parquet  # loads slowly, and is not needed for CSV

    size = path.stat().st_size
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        footer = file.metadata
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        # Some impossible numbers make Arrow end the process.
        if any(group.num_rows < 0 or group.num_columns != footer.num_columns for group in groups):
            raise pa.ArrowInvalid("its row groups are inconsistent: the file is damaged")
        names, n_rows = column_names(file.schema_arrow), footer.num_rows

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        chosen, rows = columns or list(names), 0
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            at_a_time = rows_at_a_time(n_rows, len(chosen))
            for batch in file.iter_batches(at_a_time, columns=columns, use_threads=False):
                if batch.num_rows < 0 or not set(chosen) <= set(batch.schema.names):
                    raise pa.ArrowInvalid(
                        "its columns or numbers of rows are inconsistent: the file is damaged"
                    )
                batch.validate()
                rows += batch.num_rows
                # The file may have its columns in a different order.
                yield size * rows // max(1, n_rows), batch.select(chosen)

    return of_file(path, names, batches, n_rows)
