"""Types of databases, as the few that rows have elsewhere: numbers, texts, times, true or false."""

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.columns import integer_too_large
from hushtable.errors import DataError, DataTypeError

_TIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
_TAKEN = (str, int, float, Decimal, UUID, *_TIMES)
_ADVICE = "leave it out (--drop {0}), or make it a number or a text in the query: CAST({0} AS ...)"
#: Python's years end at 9999; PostgreSQL's infinity lies beyond.
_DAYS = (-719_162, 2_932_896)
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def server_type(field: pa.Field) -> str:
    """Return what the server calls a column's type, if it is known, else what Arrow calls it."""
    notes = field.metadata or {}
    name = notes.get(b"POSTGRESQL:type") or notes.get(b"server") or str(field.type).encode()
    return str(name.decode())


def check_types(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise `DataTypeError` for columns of which no numbers, texts or times can be made."""
    refused = [
        f"{name!r} ({server_type(schema.field(name))})"
        for name in columns
        if not _is_plain(schema.field(name))
    ]
    if refused:
        name = columns[[not _is_plain(schema.field(name)) for name in columns].index(True)]
        raise DataTypeError(
            f"of no type that can be read: {', '.join(refused)}: {_ADVICE.format(name)}"
        )


def _is_plain(field: pa.Field) -> bool:
    name, kind = server_type(field).lower(), field.type
    if name in ("numeric", "uuid"):
        return True
    # Of money, the number of decimals is the server's secret.
    if name in ("json", "jsonb", "money", "xml") or isinstance(kind, pa.BaseExtensionType):
        return False
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return not (binary or pa.types.is_nested(kind) or pa.types.is_fixed_size_binary(kind))


def plain(batch: pa.RecordBatch, columns: Sequence[str], first: int) -> pa.RecordBatch:
    """Return the columns as numbers, texts and times; ``first`` is the number of the first row."""
    arrays = [
        _plain(batch.column(name), batch.schema.field(name), f"column {name!r}", first)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def _plain(column: pa.Array, field: pa.Field, what: str, first: int) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if server_type(field) == "uuid" and not pa.types.is_string(kind):
        return _uuids(column)
    if server_type(field) == "numeric" or pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if kind == pa.month_day_nano_interval():
        return _durations(column, what, first)
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        _check_times(column, what)
    return column


def _uuids(column: pa.Array) -> pa.Array:
    """Write 16 bytes as 8-4-4-4-12 hexadecimal digits."""
    n = len(column)
    raw = column.buffers()[1].slice(16 * column.offset, 16 * n).to_pybytes() if n else b""
    digits = np.frombuffer(raw.hex().encode(), np.uint8).reshape(n, 32)
    text = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    ends = pa.py_buffer(np.arange(0, 36 * (n + 1), 36, dtype=np.int32))
    texts = pa.StringArray.from_buffers(n, ends, pa.py_buffer(text.tobytes()))
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))


def _durations(column: pa.Array, what: str, first: int) -> pa.Array:
    """Make durations of intervals; those of months have no length."""
    parts = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
    n, valid = len(column), column.is_valid()
    if n == 0:
        return pa.nulls(0, pa.duration("us"))
    raw = np.frombuffer(column.buffers()[1], parts)[column.offset :][:n]
    present = np.from_dlpack(valid.cast(pa.uint8())) == 1
    months = np.flatnonzero(present & (raw["months"] != 0))
    if len(months):
        raise DataError(
            f"{what} holds an interval of months, which have no fixed length, in row "
            f"{first + months[0]}: use EXTRACT(EPOCH FROM ...) in the query"
        )
    us = raw["days"].astype(np.int64) * _PER_DAY["us"] + raw["ns"] // 1000
    lengths = pa.Array.from_buffers(pa.duration("us"), n, [None, pa.py_buffer(us)])
    return pc.if_else(valid, lengths, pa.scalar(None, pa.duration("us")))


def _check_times(column: pa.Array, what: str) -> None:
    kind = column.type
    whole = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    per_day = 1 if pa.types.is_date32(kind) else _PER_DAY[kind.unit]
    ends = pc.min_max(whole)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < _DAYS[0] * per_day or high >= (_DAYS[1] + 1) * per_day):
        raise DataError(
            f"{what} holds a time that is infinite, or outside the years 1 to 9999: make it NULL "
            "in the query"
        )


class Columns:
    """Rows of Python's objects, as Arrow: a column keeps the type that its first values had."""

    def __init__(self) -> None:
        self._kinds: dict[str, pa.DataType] = {}

    def batch(
        self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int
    ) -> pa.RecordBatch:
        """Return rows, the first of which has this number, as a batch."""
        values = zip(*rows, strict=True)
        columns = [self._column(n, v, first) for n, v in zip(names, values, strict=True)]
        return pa.RecordBatch.from_arrays(columns, list(names))

    def _column(self, name: str, values: Sequence[Any], first: int) -> pa.Array:
        known = self._kinds.get(name)
        kinds = {type(value) for value in values} - {type(None)}
        if not kinds:
            return pa.nulls(len(values), known or pa.null())
        if pa.types.is_string(known or pa.null()):
            return pa.array([_text(value) for value in values], pa.string())
        column = _of_objects(name, values, kinds, first)
        if known is None or column.type == known:
            self._kinds[name] = column.type
            return column
        if pa.types.is_float64(known) and pa.types.is_integer(column.type):
            return column.cast(known, safe=False)
        if pa.types.is_timestamp(known) and pa.types.is_timestamp(column.type):
            return column.cast(known)
        other = next(v for v in values if v is not None and pa.scalar(v).type != known)
        raise DataError(
            f"column {name!r} held values of type {known} before row {first}, and of type "
            f"{column.type} from there on, such as {other!r}: make them alike in "
            f"the query, as by CAST({name} AS ...) or NULLIF"
        )


def _of_objects(name: str, values: Sequence[Any], kinds: set[type], first: int) -> pa.Array:
    if kinds <= {int, float, Decimal, bool} and kinds not in ({bool}, {int}):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    refused = [kind for kind in kinds if not issubclass(kind, _TAKEN)]
    if refused:
        row = first + next(i for i, v in enumerate(values) if isinstance(v, refused[0]))
        raise DataTypeError(
            f"column {name!r} holds a value of type {refused[0].__name__} in row {row}: "
            + _ADVICE.format(name)
        )
    if len(kinds) > 1 or kinds & {str, UUID}:
        return pa.array([_text(value) for value in values], pa.string())
    try:
        return pa.array(values)
    except OverflowError:
        large = next(v for v in values if isinstance(v, int) and abs(v) >= 2**63)
        raise integer_too_large(f"column {name!r}", large) from None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, _TIMES[:3]) else str(value)
