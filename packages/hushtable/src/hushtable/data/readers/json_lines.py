"""Rows in JSON lines: one object a line."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.readers.encoding import COMPRESSIONS
from hushtable.data.readers.reader import (
    Batch,
    FileLayout,
    Reader,
    Unasked,
    as_name,
    column_names,
    of_file,
    split,
)
from hushtable.errors import DataError, DataTypeError, UsageError

#: Bytes parsed at a time, up to the end of a line.
_BLOCK = 1 << 22
_NESTED = pa.list_(pa.null())


def json_file(path: Path, layout: FileLayout) -> Reader:
    """Read JSON lines, some at a time; see `_file` and `_file_of_texts`."""
    return _file(path) if layout.unasked is None else _file_of_texts(path, layout.unasked)


def _file(path: Path) -> Reader:
    """Read JSON lines, each column of the type that fits all its values.

    A first pass finds the keys and their types, since any line may bring another: what is a
    number in some lines and text in others is text in all.
    """
    types: dict[str, pa.DataType] = {}
    line = n_rows = 0
    for _at, block in _blocks(path):
        table = _parsed(block, None, path, line)
        for field in table.schema:
            types[field.name] = _common(types.get(field.name), field.type)
        line += _lines(block)
        n_rows += len(table)
    schema = pa.schema(types)
    names = column_names(schema)

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        chosen, line = pa.schema([schema.field(name) for name in columns or names]), 0
        for at, block in _blocks(path):
            _refuse_nested(chosen, block, path, line)
            table = _parsed(block, chosen, path, line)
            line += _lines(block)
            for batch in split(iter(table.combine_chunks().to_batches())):
                yield at, batch

    rows = of_file(path, names, batches, n_rows)
    # Not if there are empty lines between.
    return replace(rows, place=lambda row: f"line {row + 1}") if n_rows == line else rows


def _file_of_texts(path: Path, unasked: Unasked) -> Reader:
    """Read JSON lines, each value as the text that it is, whatever the others are.

    A line that is no object is left out. Which columns there are is known by no line.
    """
    names = unasked.names
    if not names:
        raise UsageError(f"{path}: JSON lines have names of columns, and the schema has none")

    def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
        line = 0
        for at, block in _blocks(path):
            rows = [row for _, row in _objects(block, path, line, unasked)]
            line += _lines(block)
            made = [
                pa.array([_text(row.get(name)) for row in rows], pa.string())
                for name in columns or names
            ]
            for batch in split(iter([pa.RecordBatch.from_arrays(made, list(columns or names))])):
                yield at, batch

    return of_file(path, names, batches)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, _Number):
        return as_name(float(value)) if set(value) & set(".eE") else str(value)
    return as_name(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _lines(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield how many bytes of the file have been read, and whole lines."""
    with (
        pa.OSFile(str(path)) as raw,
        pa.input_stream(raw, compression=COMPRESSIONS.get(path.suffix.lower())) as plain,
    ):
        left = b""
        while read := plain.read(_BLOCK):
            lines, end, rest = (left + read).rpartition(b"\n")
            left = rest
            if lines + end:
                yield raw.tell(), lines + end
        if left.strip():
            yield raw.tell(), left


def _common(one: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    """Return the type of a column that has values of both."""
    if pa.types.is_timestamp(other):
        other = pa.string()  # JSON has no dates: what a text means is found out above
    if one is None or pa.types.is_null(one):
        return _NESTED if pa.types.is_nested(other) else other
    if pa.types.is_null(other) or one == other:
        return one
    if pa.types.is_nested(one) or pa.types.is_nested(other):
        return _NESTED
    numbers = {one, other} <= {pa.int64(), pa.float64()}
    return pa.float64() if numbers else pa.string()


def _parsed(block: bytes, schema: pa.Schema | None, path: Path, line: int) -> pa.Table:
    """Return the rows of some lines, the first of which is number ``line`` from 0."""
    from pyarrow import json as arrow_json  # who reads other formats does without

    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    parsing = arrow_json.ParseOptions(
        explicit_schema=schema,
        unexpected_field_behavior="infer" if schema is None else "ignore",
    )
    try:
        table = arrow_json.read_json(pa.BufferReader(block), reading, parsing)
        table.validate(full=True)  # texts may be no UTF-8
    except pa.ArrowInvalid:
        table = None
    if table is None or _doubtful(table, block):
        # Slow, but it tells what is wrong, and reads what Arrow does not: types that change.
        return _slowly(block, schema, path, line)
    return table if schema is None else table.select(schema.names)


def _doubtful(table: pa.Table, block: bytes) -> bool:
    """Whether an object is not in a line of its own, or a whole number may have lost digits."""
    if len(table) != _lines(block):
        filled = sum(1 for text in block.split(b"\n") if text.strip())
        if len(table) != filled:
            return True
    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    ends = (value for column in floats for value in pc.min_max(column).as_py().values())
    return any(value is not None and abs(value) >= 2.0**63 for value in ends)


def _slowly(block: bytes, schema: pa.Schema | None, path: Path, line: int) -> pa.Table:
    rows = [row for _, row in _objects(block, path, line)]
    names = schema.names if schema else list(dict.fromkeys(key for row in rows for key in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = schema.field(name).type if schema else _type(values)
        columns.append(pa.array([_as(value, kind) for value in values], kind))
    return pa.Table.from_arrays(columns, list(names))


class _Number(str):
    """A number as it is written."""


def _objects(
    block: bytes, path: Path, line: int, unasked: Unasked | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line, from 1, and its object, the numbers as they are written.

    Lines that hold none are left out where nobody is here to be asked, else refused.
    """
    for number, text in enumerate(block.split(b"\n"), line + 1):
        if not text.strip():
            continue
        where = f"{path}: line {number}"
        try:
            row = _object(text, where)
        except DataError:
            if unasked is None:
                raise
            unasked.note(f"{path}: lines that hold no object, left out", 1, where.__str__)
            continue
        yield number, row


def _object(text: bytes, where: str) -> dict[str, Any]:
    """Return the object in a line; raises `DataError` if there is none."""
    try:
        row = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_Number,
            object_pairs_hook=_Once(where),
        )  # fmt: skip
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8: save the file as UTF-8") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        if b"\0" in text:
            raise DataError(f"{where} is not UTF-8: save the file as UTF-8") from None
        raise DataError(
            f"{where} is not one object in JSON ({error}): needs an object a line, each "
            "whole in its line; was the file cut off?"
        ) from None
    if not isinstance(row, dict):
        raise DataError(
            f'{where} holds no object: needs one a line, such as {{"age": 42, "ward": "a"}}'
        )
    return row


@dataclass(frozen=True)
class _Once:
    """Makes a dict of the pairs of an object, no key of which may stand twice."""

    where: str

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise DataError(f"{self.where} has the key {twice!r} twice: rename one of the two")
        return row


def _type(values: list[Any]) -> pa.DataType:
    found = pa.null()
    for value in values:
        if isinstance(value, dict | list):
            return _NESTED
        if isinstance(value, _Number):
            whole = value.lstrip("-").isdigit()
            kind = pa.int64() if whole and abs(int(value)) < 2**63 else pa.float64()
            # Too long for a number: an identifier, every digit of which counts.
            kind = pa.string() if whole and kind == pa.float64() else kind
        else:
            kind = pa.bool_() if isinstance(value, bool) else pa.string()
        found = found if value is None else _common(found, kind)
    return found


def _as(value: Any, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_nested(kind):
        return None
    if pa.types.is_string(kind):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, _Number):
        return int(value) if pa.types.is_integer(kind) else float(value)
    return value


def _refuse_nested(schema: pa.Schema, block: bytes, path: Path, line: int) -> None:
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        for number, row in _objects(block, path, line):
            for name in nested:
                if isinstance(row.get(name), dict | list):
                    kind = "an object" if isinstance(row[name], dict) else "a list"
                    raise DataTypeError(
                        f"{path}: line {number}: {name!r} holds {kind}: needs a number, a text, "
                        "true or false; flatten it (such as by pandas.json_normalize), or leave "
                        "the column out"
                    )
