"""Data frames of R, which are held in memory."""

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers.encoding import codec
from hushtable.data.readers.memory import arrow
from hushtable.data.readers.reader import FileLayout, Reader, column_names, unchanged
from hushtable.errors import DataError, MissingExtraError


def _read(path: Path, table: pa.Table, found: Sequence[str] = ()) -> Reader:
    """Read a table that came from a file."""
    column_names(table.schema)
    size = path.stat().st_size
    return replace(
        arrow(table.combine_chunks()), source=str(path), n_bytes=size, bytes_read=lambda: size,
        place=lambda row: f"row {row + 1}", found=tuple(found),
    )  # fmt: skip


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
    return _of_frame(path, frames[_chosen(path, frames, layout.member)])


def _chosen(path: Path, frames: Mapping[str, _FrameOfR], wanted: str | None) -> str:
    """Return the name of the only data frame, or of the requested one."""
    if wanted is not None:
        if wanted not in frames:
            raise DataError(
                f"{path}: the file has no data frame {wanted!r}: it holds {list(frames)[:10]}"
            )
        return wanted
    if not frames:
        raise DataError(
            f"{path}: the file holds no data frame with rows and columns: export it as CSV"
        )
    if len(frames) > 1:
        largest = max(frames, key=lambda name: frames[name].n_rows)
        raise DataError(
            f"{path}: the file holds several data frames, {list(frames)[:10]}: choose one with "
            "--member NAME\n"
            f"Add: --member {shlex.quote(largest)}"
        )
    return next(iter(frames))


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
