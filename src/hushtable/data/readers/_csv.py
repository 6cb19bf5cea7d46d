"""Rows in a CSV file, whatever its delimiter, plain or compressed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from hushtable.data.readers._layout import Layout
from hushtable.data.readers._reader import (
    Batch,
    Reader,
    column_names,
    integer_too_large,
    of_file,
    split,
)

#: By the last ending of a file's name.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def csv_file(path: Path, _: Layout) -> Reader:
    """Read a CSV file, some rows at a time."""
    with pa.input_stream(str(path), compression="detect") as raw:
        delimiter = _delimiter(raw.read(65_536))
    # Arrow settles the types on the first block; a later "1.5" in a column of whole numbers,
    # or a value in a column that began empty, must not be an error.
    with _opened(path, delimiter, csv.ConvertOptions(strings_can_be_null=True)) as (_, file):
        guessed = file.schema
    text_columns = frozenset[str]()
    names = column_names(guessed)
    whole = {f.name for f in guessed if pa.types.is_integer(f.type)} - text_columns
    empty = {f.name for f in guessed if pa.types.is_null(f.type)}
    types = dict.fromkeys(whole | empty, pa.float64())
    types |= dict.fromkeys(text_columns & set(names), pa.string())

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        converting = csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, include_columns=columns
        )
        checked = whole.intersection(columns or names)
        with _opened(path, delimiter, converting) as (raw, file):
            for batch in split(file):
                for name in checked:
                    _check_whole(name, batch)
                yield raw.tell(), batch

    return of_file(path, names, batches)


@contextlib.contextmanager
def _opened(
    path: Path, delimiter: str, converting: csv.ConvertOptions
) -> Iterator[tuple[pa.OSFile, csv.CSVStreamingReader]]:
    reading = csv.ReadOptions(block_size=1 << 22, use_threads=False)
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with (
        pa.OSFile(str(path)) as raw,
        pa.input_stream(raw, compression=COMPRESSIONS.get(path.suffix.lower())) as plain,
        csv.open_csv(plain, reading, parsing, converting) as file,
    ):
        yield raw, file


def _check_whole(name: str, batch: pa.RecordBatch) -> None:
    for value in pc.min_max(batch.column(name)).as_py().values():
        # Read as float64: 2**53 itself may have been 2**53 + 1 in the file.
        if value is not None and abs(value) >= 2**53 and float(value).is_integer():
            raise integer_too_large(f"column {name!r}", int(value))


def _delimiter(sample: bytes) -> str:
    """Return comma, semicolon, tab or bar: whichever the header holds most of."""
    header = sample.partition(b"\n")[0].decode("utf-8", errors="replace")
    return max(",;\t|", key=header.count)
