"""Tables that are held in memory: data frames of R, ARFF files, and tables of web pages."""

import csv
import io
import itertools
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers.csv import csv_file
from hushtable.data.readers.encoding import codec, find_encoding, opened_lines
from hushtable.data.readers.memory import arrow
from hushtable.data.readers.reader import (
    FILE_ROWS,
    Copy,
    FileLayout,
    Reader,
    column_names,
    unchanged,
)
from hushtable.errors import DataError, MissingExtraError

_BEGINNING = 1 << 16


def _read(path: Path, table: pa.Table, found: Sequence[str] = ()) -> Reader:
    """Read a table that came from a file."""
    column_names(table.schema)
    size = path.stat().st_size
    return replace(
        arrow(table.combine_chunks()), source=str(path), n_bytes=size, bytes_read=lambda: size,
        place=lambda row: f"row {row + 1}", found=tuple(found),
    )  # fmt: skip


def _one(path: Path, kind: str, tables: Mapping[str, Any], wanted: str | None, largest: str) -> str:
    """Return the name of the only table, or of the requested one."""
    if wanted is not None:
        if wanted not in tables:
            raise DataError(
                f"{path}: the file has no {kind} {wanted!r}: it holds {list(tables)[:10]}"
            )
        return wanted
    if not tables:
        raise DataError(f"{path}: the file holds no {kind} with rows and columns: export it as CSV")
    if len(tables) > 1:
        raise DataError(
            f"{path}: the file holds several {kind}s, {list(tables)[:10]}: choose one with "
            "--member NAME\n"
            f"Add: --member {shlex.quote(largest)}"
        )
    return next(iter(tables))


# --- R --------------------------------------------------------------------------------------------

_DAY = 86_400
_UNITS = {"secs": 1, "mins": 60, "hours": 3600, "days": _DAY, "weeks": 7 * _DAY}
#: How bit64 writes a missing whole number.
_MISSING_64 = np.iinfo(np.int64).min


@dataclass(frozen=True)
class _FrameOfR:
    """A data frame of R: its columns, and its attributes."""

    columns: Mapping[str, Any]
    attributes: Mapping[str, Any]

    @property
    def n_rows(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)


def r_file(path: Path, layout: FileLayout) -> Reader:
    """Read the data frame in a file of R."""
    try:
        import rdata
    except ModuleNotFoundError:
        raise MissingExtraError(f"{path}: a file of R", "rdata", "files") from None
    encoding = None if layout.encoding is None else codec(layout.encoding)
    try:
        with unchanged(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes whose base it reads
            parsed = rdata.parser.parse_file(path)
            held = rdata.conversion.convert(parsed, _MADE, default_encoding=encoding)
    except DataError:
        raise
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: the file does not state the encoding of its texts: give it with --encoding "
            "NAME, such as latin-1"
        ) from None
    except Exception as error:  # any exception: the library checks little
        raise DataError(
            f"{path}: not an R file that can be read, or damaged ({error or 'cut off'}): save it "
            "again with saveRDS or write.csv"
        ) from None
    frames = {"": held} if isinstance(held, _FrameOfR) else _frames(held)
    largest = max(frames, key=lambda name: frames[name].n_rows, default="")
    frame = frames[_one(path, "data frame", frames, layout.member, largest)]
    return _of_frame(path, frame)


def _frames(held: Any) -> dict[str, _FrameOfR]:
    named = held.items() if isinstance(held, Mapping) else ()
    return {str(name): one for name, one in named if isinstance(one, _FrameOfR)}


def _of_frame(path: Path, frame: _FrameOfR) -> Reader:
    if len(frame.columns) < len(frame.attributes.get("names", ())):
        raise DataError(
            f"{path}: two columns of the data frame have the same name: rename one of them"
        )
    columns = {}
    for key, values in frame.columns.items():
        name, kind = str(key), getattr(values, "dtype", np.dtype(object)).kind
        if isinstance(values, _FrameOfR | Mapping | list) or getattr(values, "ndim", 1) != 1:
            raise DataError(
                f"{path}: column {name!r} holds lists or tables, not values: leave it out in R"
            )
        if kind == "c":
            raise DataError(f"{path}: column {name!r} holds complex numbers: leave it out in R")
        columns[name] = values if isinstance(values, pa.Array) else _array(values)
    rows = frame.attributes.get("row.names", ())
    numbered = [str(one) for one in rows] == [str(i + 1) for i in range(len(rows))]
    texts = not numbered and getattr(rows, "dtype", np.dtype(int)).kind in "UO"
    first = f", such as {rows[0]!s:.20}" if texts and len(rows) else ""
    found = (f"row names left out{first}",) if texts else ()
    return _read(path, pa.table(columns), found)


def _array(values: Any) -> pa.Array:
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    if values.dtype.kind in "UO":
        return pa.array([None if one is None else str(one) for one in values], pa.string())
    return pa.array(values, from_pandas=True)  # R's NA is a NaN


def _factor(codes: Any, attributes: Mapping[str, Any]) -> pa.Array:
    masked = np.ma.masked_less(codes, 1)
    places = pa.array(masked.filled(1).astype(np.int64) - 1, mask=np.ma.getmaskarray(masked))
    return pa.array([str(one) for one in attributes["levels"]], pa.string()).take(places)


def _seconds(values: Any, unit: float, kind: pa.DataType) -> pa.Array:
    """Return numbers as an Arrow type that counts microseconds; the unit is given in seconds."""
    numbers = np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    missing = ~np.isfinite(numbers)
    whole = np.round(np.where(missing, 0, numbers) * unit * 1e6)
    return pa.array(whole.astype(np.int64), mask=missing).cast(kind)


def _whole(values: Any, _: Mapping[str, Any]) -> pa.Array:
    bits = np.asarray(values, np.float64).view(np.int64)
    return pa.array(bits, mask=bits == _MISSING_64)


def _length(values: Any, attributes: Mapping[str, Any]) -> pa.Array:
    [unit] = attributes.get("units", ["secs"])
    return _seconds(values, _UNITS[str(unit)], pa.duration("us"))


#: For each class in R, the function that makes a column of its numbers.
_MADE: dict[str | bytes, Callable[[Any, Mapping[str, Any]], Any]] = {
    "data.frame": _FrameOfR,
    "factor": _factor,
    "Date": lambda values, _: _seconds(values, _DAY, pa.timestamp("us")).cast(pa.date32()),
    "POSIXct": lambda values, _: _seconds(values, 1, pa.timestamp("us")),
    "difftime": _length,
    "integer64": _whole,
}


# --- ARFF -----------------------------------------------------------------------------------------


#: A date is read as a text.
_DATE = re.compile(r"^(\s*@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+)date\b.*", re.IGNORECASE)


def arff_file(path: Path, layout: FileLayout) -> Reader:
    """Read a file of Weka: numbers, nominal values, texts, and dates."""
    try:
        import arff
    except ModuleNotFoundError:
        raise MissingExtraError(f"{path}: an ARFF file", "liac-arff", "files") from None
    with path.open("rb") as raw:
        sample = raw.read(_BEGINNING)
    encoding = codec(layout.encoding) if layout.encoding else find_encoding(sample, str(path))
    try:
        with unchanged(path), opened_lines(path, encoding) as lines:
            plain = (_DATE.sub(r"\1string", line) for line in lines)
            held = arff.load(plain, return_type=arff.DENSE_GEN)
            schema = pa.schema(
                [(name, pa.float64() if kind in _NUMBERS else pa.string())
                 for name, kind in held["attributes"]]
            )  # fmt: skip
            table = _of_rows(iter(held["data"]), schema)
    except (arff.ArffException, ValueError, IndexError) as error:
        raise DataError(
            f"{path}: not an ARFF file that can be read ({error or 'cut off'}): correct it, or "
            "export it as CSV (in Weka: Save as, CSV)"
        ) from None
    return _read(path, table)


_NUMBERS = ("NUMERIC", "REAL", "INTEGER")


def _of_rows(rows: Iterator[list[Any]], schema: pa.Schema) -> pa.Table:
    batches = []
    while some := list(itertools.islice(rows, FILE_ROWS)):
        columns = zip(*some, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


# --- web pages ------------------------------------------------------------------------------------

_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?\s*([\w-]+)", re.IGNORECASE)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def page(path: Path, layout: FileLayout) -> Reader:
    """Read a table of a web page, each cell as a text."""
    with unchanged(path):
        raw = path.read_bytes()
    tables = _tables(path, _decoded(path, raw, layout.encoding))
    largest = max(tables, key=lambda name: tables[name].size, default="")
    names = {number: number for number in tables} | {
        tables[number].attrs["name"]: number for number in tables if tables[number].attrs["name"]
    }
    wanted = names.get(layout.member or "", layout.member)
    frame = tables[_one(path, "table", tables, wanted, largest)]
    copy = Copy.of(str(path), ".csv")
    with copy.path.open("w", encoding="utf-8", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        if frame.columns.dtype.kind != "i":  # the page says which cells are names
            names_of = [one if isinstance(one, tuple) else (one,) for one in frame.columns]
            write([" ".join(dict.fromkeys(map(str, one))) for one in names_of])
        for row in frame.itertuples(index=False, name=None):
            write([" ".join(str(one).split()) for one in row])
    inner = replace(layout, delimiter=",", encoding="utf-8", member=None)
    rows = copy.reader(lambda plain: csv_file(plain, inner))
    said = (f"table {frame.attrs['number']} of the page",) if layout.member else ()
    return replace(rows, place=lambda row: f"row {row + 1}", found=(*said, *rows.found))


def _decoded(path: Path, raw: bytes, given: str | None) -> str:
    said = _CHARSET.search(raw[:_BEGINNING])
    if given:
        encoding = codec(given)
    elif said and not raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        encoding = codec(said[1].decode())
    else:
        encoding = find_encoding(raw[:_BEGINNING], str(path))
    try:
        return _DECLARATION.sub("", raw.decode(encoding).removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: its bytes are not {encoding}: give another encoding, such as "
            "--encoding cp1252"
        ) from None


def _tables(path: Path, text: str) -> dict[str, Any]:
    """Return the tables that have rows and columns and hold no other table, by number from 1."""
    try:
        import pandas as pd
        from lxml import etree, html
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{path}: a web page", str(error.name), "files") from None
    found = {}
    try:
        elements = html.document_fromstring(text).iter("table")
    except (etree.ParserError, ValueError) as error:
        raise DataError(f"{path}: not a web page that can be read ({error})") from None
    for number, element in enumerate(elements, 1):
        if next(element.iterdescendants("table"), None) is not None:
            continue
        written = html.tostring(element, encoding="unicode")
        try:
            [guessed] = pd.read_html(io.StringIO(written), flavor="lxml")
        except ValueError:  # a table without cells
            continue
        [frame] = pd.read_html(
            io.StringIO(written), flavor="lxml", keep_default_na=False, na_values=[],
            thousands=None,  # type: ignore[arg-type] # documented
            converters=dict.fromkeys(range(guessed.shape[1]), str),
        )  # fmt: skip
        caption = element.findtext("caption")
        frame.attrs = {"number": number, "name": element.get("id") or (caption or "").strip()}
        if frame.shape[0] > 1 and frame.shape[1] > 1:
            found[str(number)] = frame
    return found
