"""Rows in an Arrow IPC file, which Feather is another name of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from hushtable.data.readers._layout import Layout
from hushtable.data.readers._reader import Batch, Reader, column_names, of_file, split


def feather_file(path: Path, _: Layout) -> Reader:
    """Read an Arrow IPC file or stream, one of its batches of rows at a time."""
    size = path.stat().st_size
    # Not mapped into memory: if another program cut the file short, this one would crash.
    with pa.OSFile(str(path)) as raw:
        start = raw.read(6)
        if start.startswith(b"FEA1"):
            raise pa.ArrowInvalid("Feather version 1, which is out of use: write it anew")
        raw.seek(0)
        names = column_names(_opened(raw, start, None).schema)

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        chosen = columns or list(names)
        with pa.OSFile(str(path)) as raw:
            file = _opened(raw, start, [names.index(name) for name in chosen])
            try:
                for share, batch in _batches(file):
                    batch.validate(full=True)  # of a damaged file, Arrow reads what cannot be
                    for part in split(iter([batch.select(chosen)])):
                        yield int(share * size), part
            except pa.ArrowMemoryError:
                raise pa.ArrowInvalid(
                    "a batch of its rows does not fit into memory: the file is damaged, or is to "
                    "be written in smaller batches"
                ) from None

    return of_file(path, names, batches)


def _opened(raw: Any, start: bytes, columns: list[int] | None) -> Any:
    options = ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    open_ = ipc.open_file if start == b"ARROW1" else ipc.open_stream
    return open_(raw, options=options)


def _batches(file: Any) -> Iterator[tuple[float, pa.RecordBatch]]:
    """Yield the share of the file that has been read, and the batch; a stream has no known end."""
    if not isinstance(file, ipc.RecordBatchFileReader):
        yield from ((1.0, batch) for batch in file)
        return
    for i in range(file.num_record_batches):
        yield (i + 1) / file.num_record_batches, file.get_batch(i)
