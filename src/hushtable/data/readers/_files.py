"""Rows in files: CSV and Parquet, one, a folder of them, or a glob pattern."""

import contextlib
import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.data.readers._reader import (
    Batch,
    Reader,
    column_names,
    integer_too_large,
    named_errors,
    one_after_other,
    rows_at_a_time,
    split,
)
from hushtable.errors import DataError

__all__ = ["files", "paths"]

_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
#: Bytes read at a time of each column of a Parquet file: without, a whole row group is held.
_BUFFER = 1 << 18
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def _kind(path: Path) -> str | None:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _KINDS.get(suffixes[-1]) if suffixes else None


def paths(pattern: str) -> list[Path]:
    """Return the CSV and Parquet files that a path, a folder or a glob pattern names, sorted."""
    path = Path(pattern)
    try:
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and _kind(p))
        elif path.exists():
            return [path]
        else:
            found = sorted(Path(p) for p in glob.glob(pattern, recursive=True) if Path(p).is_file())
    except OSError as error:  # such as a name that is too long
        raise DataError(f"{pattern[:100]}: {error.strerror}: check the path") from None
    if not found:
        raise DataError(
            f"{pattern}: no such file, and no CSV or Parquet file in it: check the path"
        )
    return found


def files(pattern: str, text_columns: frozenset[str]) -> Reader:
    """Read every CSV and Parquet file that ``pattern`` names, one after the other."""
    parts = [_file(path, text_columns) for path in paths(pattern)]
    first = parts[0]
    for part in parts[1:]:
        if part.names != first.names:
            raise DataError(
                f"{part.source} has other columns than {first.source}: {_difference(part, first)}"
            )
    return one_after_other(parts, pattern)


def _difference(part: Reader, first: Reader) -> str:
    ours, theirs = set(part.names or ()), set(first.names or ())
    if ours == theirs:
        return "same names, other order"
    return f"only there {sorted(ours - theirs)}, missing {sorted(theirs - ours)}"


def _file(path: Path, text_columns: frozenset[str]) -> Reader:
    kind = _kind(path)
    if kind is None:
        raise DataError(f"{path}: needs a file name that ends in {', '.join(_KINDS)}")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    try:
        return _parquet(path) if kind == "parquet" else _csv(path, text_columns)
    except UnicodeDecodeError:
        raise DataError(f"{path}: the column names are not UTF-8: save the file as UTF-8") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{path}: not a {kind} file that can be read: {error}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{path}: not a {kind} file that can be read: {error}") from None


class _Position:
    """How many bytes of a file have been read, as far as can be told."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self) -> int:
        return self.bytes


def _parquet(path: Path) -> Reader:
    from pyarrow import parquet

    size, position = path.stat().st_size, _Position()
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        _check_footer(file.metadata)
        names, n_rows = column_names(file.schema_arrow), file.metadata.num_rows

    def project(columns: list[str] | None) -> Callable[[], Iterator[Batch]]:
        def batches() -> Iterator[Batch]:
            rows = 0
            with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
                at_a_time = rows_at_a_time(n_rows, len(columns or names))
                for batch in file.iter_batches(at_a_time, columns=columns, use_threads=False):
                    _check_batch(batch, columns or names)
                    rows += batch.num_rows
                    position.bytes = size * rows // max(1, n_rows)
                    yield batch.select(columns or names)  # the file's order is its own

        return lambda: named_errors(batches(), str(path))

    return _of_file(path, names, n_rows, project, size, position)


def _csv(path: Path, text_columns: frozenset[str]) -> Reader:
    from pyarrow import csv

    with pa.input_stream(str(path), compression="detect") as raw:
        sample = raw.read(65_536)
    parsing = csv.ParseOptions(delimiter=_delimiter(sample), newlines_in_values=True)
    reading = csv.ReadOptions(block_size=1 << 22, use_threads=False)
    size, position = path.stat().st_size, _Position()

    @contextlib.contextmanager
    def opened(
        types: dict[str, pa.DataType], columns: list[str] | None = None
    ) -> Iterator[tuple[pa.OSFile, csv.CSVStreamingReader]]:
        options = csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, include_columns=columns
        )
        compression = _COMPRESSIONS.get(path.suffix.lower())
        with (
            pa.OSFile(str(path)) as raw,
            pa.input_stream(raw, compression=compression) as plain,
            csv.open_csv(plain, reading, parsing, options) as file,
        ):
            yield raw, file

    # Arrow settles the types on the first block; a later "1.5" in a column of whole numbers,
    # or a value in a column that began empty, must not be an error.
    with opened({}) as (_, file):
        guessed = file.schema
    names = column_names(guessed)
    whole = {f.name for f in guessed if pa.types.is_integer(f.type)} - text_columns
    empty = {f.name for f in guessed if pa.types.is_null(f.type)}
    types = dict.fromkeys(whole | empty, pa.float64())
    types |= dict.fromkeys(text_columns & set(names), pa.string())

    def project(columns: list[str] | None) -> Callable[[], Iterator[Batch]]:
        checked = whole.intersection(columns or names)

        def batches() -> Iterator[Batch]:
            with opened(types, columns) as (raw, file):
                for batch in split(file):
                    for name in checked:
                        _check_whole(name, batch)
                    position.bytes = raw.tell()
                    yield batch

        return lambda: named_errors(batches(), str(path))

    return _of_file(path, names, None, project, size, position)


def _of_file(
    path: Path,
    names: tuple[str, ...],
    n_rows: int | None,
    project: Callable[[list[str] | None], Callable[[], Iterator[Batch]]],
    size: int,
    position: _Position,
) -> Reader:
    return Reader(
        names,
        len(names),
        n_rows,
        project(None),
        source=str(path),
        project=project,
        n_bytes=size,
        bytes_read=position,
    )


def _check_footer(footer: Any) -> None:
    """Raise `pa.ArrowInvalid` for numbers that cannot be: over some, Arrow ends the process."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    if any(group.num_rows < 0 or group.num_columns != footer.num_columns for group in groups):
        raise pa.ArrowInvalid("its groups of rows do not fit together: a damaged file")


def _check_batch(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    """Raise `pa.ArrowInvalid` if a damaged file made Arrow return what cannot be."""
    if batch.num_rows < 0 or not set(names) <= set(batch.schema.names):
        raise pa.ArrowInvalid("its columns or numbers of rows do not fit together: a damaged file")
    batch.validate()


def _check_whole(name: str, batch: pa.RecordBatch) -> None:
    import pyarrow.compute as pc

    extremes = pc.min_max(batch.column(name))
    for value in (extremes["min"].as_py(), extremes["max"].as_py()):
        # Read as float64: 2**53 itself may have been 2**53 + 1 in the file.
        if value is not None and abs(value) >= 2**53 and float(value).is_integer():
            raise integer_too_large(f"column {name!r}", int(value))


def _delimiter(sample: bytes) -> str:
    """Comma, semicolon, tab or bar: whichever the header holds most of."""
    header = sample.partition(b"\n")[0].decode("utf-8", errors="replace")
    return max(",;\t|", key=header.count)
