"""Rows in JSON: one object per line, or one list of objects, which is rewritten once as lines."""

import codecs
import io
import json
import math
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.layout_file import joined
from hushtable.data.readers.copies import Copy
from hushtable.data.readers.encoding import find_encoding, opened_bytes
from hushtable.data.readers.reader import (
    Batch,
    FileLayout,
    Reader,
    Unasked,
    as_name,
    column_names,
    of_file,
    split,
    unchanged,
)
from hushtable.errors import DataError, DataTypeError, UsageError
from hushtable.words.refusals import refusal, refused

#: Number of bytes parsed at a time, up to the end of a line.
_BLOCK = 1 << 22
_NESTED = pa.list_(pa.null())
#: Longest list of numbers in which each is a column: coordinates have two or three.
_POINT = 3
#: Largest depth of nested objects; number of braces and brackets in a line that may be too deep.
_DEEPEST, _MANY = 64, 256
#: Number of characters parsed at a time, and in the longest object.
_WINDOW, _LONGEST = 1 << 20, 1 << 26
#: Number of labels from which they count as those of rows, even if they are no numbers.
_FEW = 20
_BETWEEN = re.compile(r"\s*([,\]])\s*")
_MISSING = "a comma or the end of the list is missing"
# As texts, because numbers may be longer than Python converts.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)

#: Keys from the outermost object to a value; joined by dots, they are the name of its column.
_Keys: TypeAlias = tuple[str, ...]
#: Numbers are as written.
Value: TypeAlias = "str | bool | list[Value] | dict[str, Value] | None"
_Types: TypeAlias = dict[_Keys, pa.DataType]


def _lines_file(path: Path, layout: FileLayout, word: str = "line") -> Reader:
    """Read JSON lines, some at a time; messages call a line ``word``."""
    lines = _Lines(path, word)
    return lines.reader() if layout.unasked is None else lines.reader_of_texts(layout.unasked)


def _name(keys: _Keys) -> str:
    return ".".join(keys)


@dataclass(frozen=True)
class _Lines:
    """A file of JSON lines."""

    path: Path
    #: What a line is called in messages.
    word: str

    def reader(self) -> Reader:
        """Read each column in the type that fits all its values.

        A first pass finds the keys and their types, because any line may add a key or type: a value
        that is a number in some lines and text in others is text in all.
        """
        types: _Types = {}
        line = n_rows = 0
        for _at, block in _blocks(self.path):
            table, found = self._parsed(block, None, line)
            for keys, kind in found.items():
                types[keys] = _common(types.get(keys), kind)
            line += _lines(block)
            n_rows += len(table)
        types, torn = self._one_kind_each(types)
        names = column_names(pa.schema([(_name(keys), kind) for keys, kind in types.items()]))
        of_name = dict(zip(names, types, strict=True))

        def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
            chosen, line = {of_name[n]: types[of_name[n]] for n in columns or names}, 0
            for at, block in _blocks(self.path):
                self._refuse_nested(chosen, torn, block, line)
                table, _ = self._parsed(block, chosen, line)
                line += _lines(block)
                for batch in split(table.combine_chunks().to_batches()):
                    yield at, batch

        def place(row: int) -> str:
            return f"{refusal(self.word)} {row + 1}"

        # Not if there are empty lines in between.
        return of_file(self.path, names, batches, n_rows, place if n_rows == line else None)

    def reader_of_texts(self, unasked: Unasked) -> Reader:
        """Read each value as text, whatever the others are.

        A line that is not an object is left out. The columns do not depend on any line.
        """
        names = unasked.names
        if not names:
            raise UsageError(f"{self.path}: JSON has column names, but the schema has none")

        def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
            line = 0
            for at, block in _blocks(self.path):
                rows = [
                    {_name(keys): value for keys, value in row.items()}
                    for _, row in self._objects(block, line, unasked)
                ]
                line += _lines(block)
                made = [
                    pa.array([_text(row.get(name)) for row in rows], pa.string())
                    for name in columns or names
                ]
                whole = pa.RecordBatch.from_arrays(made, list(columns or names))
                for batch in split([whole]):
                    yield at, batch

        return of_file(self.path, names, batches)

    def _one_kind_each(self, types: _Types) -> tuple[_Types, set[_Keys]]:
        """Return the types with one name for each column, and the keys of mixed values.

        Mixed values are plain in some lines, and objects in others: they have no type.
        """
        torn = {keys[:n] for keys in types for n in range(1, len(keys))} & types.keys()
        torn = {keys for keys in torn if not pa.types.is_null(types.pop(keys))}
        types = types | dict.fromkeys(torn, _NESTED)
        of_name: dict[str, _Keys] = {}
        for keys in types:
            other = of_name.setdefault(_name(keys), keys)
            if other != keys:
                raise refused(
                    "keys_twice", source=self.path, name=_name(keys), one=" > ".join(keys),
                    other=" > ".join(other),
                )  # fmt: skip
        return types, torn

    def _parsed(self, block: bytes, types: _Types | None, line: int) -> tuple[pa.Table, _Types]:
        """Return the rows of some lines, numbered from ``line``, counted from 0.

        Only the columns in ``types``; if it is None, all columns, and their types are returned.
        """
        table = _by_arrow(block, types)
        if table is None:
            # Slow, but it explains errors, and reads types that change, which Arrow cannot.
            return self._slowly(block, types, line)
        found = dict(_leaves(table.schema))
        while any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        if _doubtful(table, block):
            return self._slowly(block, types, line)
        if types is None:
            return table, found
        columns = dict(zip(found, table.columns, strict=True))
        nothing = pa.nulls(len(table), _NESTED)  # lists were refused before
        chosen = [columns.get(keys, nothing) for keys in types]
        return pa.Table.from_arrays(chosen, [_name(keys) for keys in types]), types

    def _slowly(self, block: bytes, types: _Types | None, line: int) -> tuple[pa.Table, _Types]:
        rows = [row for _, row in self._objects(block, line)]
        if types is None:
            every = dict.fromkeys(keys for row in rows for keys in row)
            types = {keys: _type([row.get(keys) for row in rows]) for keys in every}
        columns = [
            pa.array([_as(row.get(keys), kind) for row in rows], kind)
            for keys, kind in types.items()
        ]
        return pa.Table.from_arrays(columns, [_name(keys) for keys in types]), types

    def _objects(
        self, block: bytes, line: int, unasked: Unasked | None = None
    ) -> Iterator[tuple[int, dict[_Keys, Value]]]:
        """Yield the number of each line, from 1, and its values, with numbers as written.

        Lines without an object are left out if no person can be asked, and otherwise refused.
        """
        for number, text in enumerate(block.split(b"\n"), line + 1):
            if not text.strip():
                continue
            where = _place(self.path, self.word, number)
            try:
                row = dict(_flat(_object(text, where), where))
            except DataError:
                if unasked is None:
                    raise
                what = f"{self.path}: {self.word}s that do not hold an object, left out"
                unasked.note(what, 1, where.__str__)
                continue
            yield number, row

    def _refuse_nested(self, types: _Types, torn: set[_Keys], block: bytes, line: int) -> None:
        """Refuse a list in a used column, and a value where other lines have an object."""
        nested = [keys for keys, kind in types.items() if pa.types.is_nested(kind)]
        for number, row in self._objects(block, line) if nested else ():
            for keys in nested:
                value = row.get(keys)
                if isinstance(value, list) or (value is not None and keys in torn):
                    kind = "list" if isinstance(value, list) else "mixed"
                    where = _place(self.path, self.word, number)
                    add = f"\nAdd: --drop {shlex.quote(joined(map(_name, nested)))}"
                    words = refusal(kind, source=where, name=_name(keys))
                    raise DataTypeError(words + (add if len(nested) < len(types) else ""))


def _by_arrow(block: bytes, types: _Types | None) -> pa.Table | None:
    """Return the rows of some lines; None if Arrow cannot read them."""
    from pyarrow import json as arrow_json  # not needed for other formats

    signs = np.frombuffer(block, np.uint8)
    opened = np.flatnonzero((signs == ord("{")) | (signs == ord("[")))
    lines = np.searchsorted(np.flatnonzero(signs == ord("\n")), opened)
    if np.bincount(lines).max(initial=0) > _MANY:
        return None  # a line may be nested so deeply that Arrow would end the process
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    known = {} if types is None else types
    plain = {keys: kind for keys, kind in known.items() if not pa.types.is_nested(kind)}
    parsing = arrow_json.ParseOptions(
        explicit_schema=None if types is None else pa.schema(_fields(plain)),
        unexpected_field_behavior="infer" if types is None else "ignore",
    )
    try:
        table = arrow_json.read_json(pa.BufferReader(block), reading, parsing)
        table.validate(full=True)  # texts may not be UTF-8
    except pa.ArrowInvalid:
        return None
    return table


def _leaves(fields: Iterable[pa.Field], outer: _Keys = ()) -> Iterator[tuple[_Keys, pa.DataType]]:
    for field in fields:
        keys = (*outer, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, keys)
        else:
            yield keys, field.type


def _fields(types: _Types) -> list[pa.Field]:
    inner: dict[str, _Types] = {}
    for (first, *rest), kind in types.items():
        inner.setdefault(first, {})[tuple(rest)] = kind
    return [
        pa.field(name, below[()] if () in below else pa.struct(_fields(below)))
        for name, below in inner.items()
    ]


def _flat(row: dict[str, Value], where: str, outer: _Keys = ()) -> Iterator[tuple[_Keys, Value]]:
    """Yield the keys and each value in an object, and in nested objects.

    Lists of a few numbers, such as GeoJSON coordinates, are objects with the keys 0, 1, ...
    """
    if len(outer) > _DEEPEST:
        raise refused("deep", source=where)
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, where, (*outer, key))
        elif (
            isinstance(value, list)
            and 0 < len(value) <= _POINT
            and all(isinstance(one, _Number) for one in value)
        ):
            yield from (((*outer, key, str(k)), number) for k, number in enumerate(value))
        else:
            yield (*outer, key), value


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, list):
        return None
    if isinstance(value, _Number):
        return as_name(float(value)) if set(value) & set(".eE") else str(value)
    return as_name(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _lines(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    with opened_bytes(path) as (raw, plain):
        left = b""
        while read := plain.read(_BLOCK):
            lines, end, rest = (left + read).rpartition(b"\n")
            left = rest
            if lines + end:
                yield raw.tell(), lines + end
        if left.strip():
            yield raw.tell(), left


def _common(one: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(other):
        other = pa.string()  # JSON has no dates: the meaning of texts is decided elsewhere
    if one is None or pa.types.is_null(one):
        return _NESTED if pa.types.is_nested(other) else other
    if pa.types.is_null(other) or one == other:
        return one
    if pa.types.is_nested(one) or pa.types.is_nested(other):
        return _NESTED
    numbers = {one, other} <= {pa.int64(), pa.float64()}
    return pa.float64() if numbers else pa.string()


def _doubtful(table: pa.Table, block: bytes) -> bool:
    """Return whether Arrow may have misread lines.

    An object is not on its own line, a whole number may have lost digits, or lists of a few numbers
    are separate columns, such as GeoJSON coordinates.
    """
    n_lines = _lines(block)
    if len(table) != n_lines:
        n_lines = sum(1 for text in block.split(b"\n") if text.strip())
    if len(table) != n_lines:
        return True
    for column in table.columns:
        kind = column.type
        if pa.types.is_floating(kind):
            ends = pc.min_max(column).as_py().values()
            if any(value is not None and abs(value) >= 2.0**63 for value in ends):
                return True
        elif pa.types.is_list(kind) and (
            pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)
        ):
            longest = pc.max(pc.list_value_length(column)).as_py()
            if longest is not None and 0 < longest <= _POINT:
                return True
    return False


class _Number(str):
    """A number as written in the file."""


def _object(text: bytes, where: str) -> dict[str, Value]:
    try:
        row = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_Number,
            object_pairs_hook=partial(_once, where),
        )  # fmt: skip
    except DataError:
        raise
    except RecursionError:
        raise refused("deep", source=where) from None
    except ValueError as error:
        is_text = not isinstance(error, UnicodeDecodeError) and b"\0" not in text
        raise refused(
            "no_json" if is_text else "not_utf8_json", source=where, error=error
        ) from None
    if not isinstance(row, dict):
        raise refused("no_object", source=where)
    return row


def _once(where: str, pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise refused("key_twice", source=where, name=twice)
    return row


def _type(values: list[Value]) -> pa.DataType:
    found = pa.null()
    for value in values:
        if isinstance(value, dict | list):
            return _NESTED
        if isinstance(value, _Number):
            whole = value.lstrip("-").isdigit()
            fits = whole and len(value) < 21 and abs(int(value)) < 2**63
            kind = pa.int64() if fits else pa.float64()
            # Too long for a number: an identifier, in which every digit counts.
            if not fits and (whole or (value[-1].isdigit() and math.isinf(float(value)))):
                kind = pa.string()
        else:
            kind = pa.bool_() if isinstance(value, bool) else pa.string()
        found = found if value is None else _common(found, kind)
    return found


def _as(value: Value, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_nested(kind):
        return None
    if pa.types.is_string(kind):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, _Number):
        return int(value) if pa.types.is_integer(kind) else float(value)
    return value


# --- lists of objects ----------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with opened_bytes(path) as (_, plain):
        start = plain.read(4)
    encoding = find_encoding(start, str(path), asked=False)  # other text than UTF-8 has a mark
    encoding = "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else encoding
    with opened_bytes(path) as (_, plain):
        try:
            # The reader of the copy reports which line is not UTF-8.
            yield io.TextIOWrapper(io.BufferedReader(plain), encoding, "surrogateescape")
        except UnicodeDecodeError:
            raise refused("not_utf8_json", source=path) from None


def json_file(path: Path, layout: FileLayout) -> Reader:
    """Read JSON: lines of objects, or one list of them."""
    if layout.unasked is not None and path.suffix.lower() != ".json":
        return _lines_file(path, layout)
    with unchanged(path), _opened(path) as file:
        start = file.read(_WINDOW).lstrip()
        if start.startswith("["):
            return _of_list(path, layout, start[1:].lstrip(), file)
        if layout.unasked is not None:
            raise UsageError(
                f"{path}: does not begin with a list, so which objects are rows could only be "
                "guessed from them, which is not allowed when no person can be asked: write a list "
                "of objects, or let the file's name end in .jsonl if each line is a row"
            )
        _check_lines(path, start, file)
    if file.encoding == "utf-8":
        return _lines_file(path, layout)
    copy = Copy.of(str(path), ".jsonl")
    with unchanged(path), _opened(path) as file, copy.path.open("w", encoding="utf-8") as lines:
        shutil.copyfileobj(file, lines)
    return copy.reader(lambda rows: _lines_file(rows, layout))


def _of_list(path: Path, layout: FileLayout, start: str, file: TextIO) -> Reader:
    copy, n = Copy.of(str(path), ".jsonl"), 0
    with copy.path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for text in _elements(path, start, file):
            # Line breaks occur only between values: within texts they are escaped.
            lines.write(text.replace("\n", " ").replace("\r", " ") + "\n")
            n += 1
    if not n and layout.unasked is None:
        raise refused("no_objects", source=path)
    return copy.reader(lambda rows: _lines_file(rows, layout, "object"))


def _elements(path: Path, text: str, file: TextIO) -> Iterator[str]:
    at, n, sign = 0, 0, text[:1]
    while sign != "]":
        try:
            _value, end = _DECODER.raw_decode(text, at)
            between = _BETWEEN.match(text, end)
            if between is None:
                raise json.JSONDecodeError(_MISSING, text, end)
        except RecursionError:
            raise refused("deep", source=_place(path, "object", n + 1)) from None
        except json.JSONDecodeError as error:
            if len(text) - at > _LONGEST:
                raise refused(
                    "large_object", source=_place(path, "object", n + 1), n=_LONGEST >> 20
                ) from None
            is_cut = (
                error.msg.startswith("Unterminated")
                or not text[error.pos :].strip()
                or (
                    error.pos > at
                    and error.pos > len(text) - 16
                    and not error.msg.startswith(_MISSING)
                )
            )
            block = file.read(max(_WINDOW, len(text) - at)) if is_cut else ""
            if not block:
                kind, where = "cut" if is_cut else "odd_json", _place(path, "object", n + 1)
                raise refused(kind, source=where, error=error.msg) from None
            text, at = (text[at:] + block).lstrip(), 0
            continue
        yield text[at:end]
        at, n, sign = between.end(), n + 1, between[1]
    if text[at + (n == 0) :].strip() or file.read(_WINDOW).strip():
        raise refused("below_list", source=path)


def _place(path: Path, word: str, number: int) -> str:
    return f"{path}: {refusal(word)} {number}"


def _check_lines(path: Path, start: str, file: TextIO) -> None:
    first, _, more = start.partition("\n")
    try:
        only = _DECODER.decode(first)
        if more.strip():
            return
    except (ValueError, RecursionError):
        only = _whole(path, start + file.read(_LONGEST), first)
    if not isinstance(only, dict):
        return
    if _is_frame(only):
        raise refused("one_object", source=path)
    lists = list(_lists(only, ()))
    if lists:
        longest, _rows = max(lists, key=lambda one: len(one[1]))
        at = "".join(f"[{key!r}]" for key in longest)
        named = [".".join(keys) for keys, _rows in lists][:10]
        written, whole = str(path.with_suffix("").with_suffix(".rows.json")), str(path)
        call = (
            f"pathlib.Path({written!r}).write_text(json.dumps(json.loads(pathlib.Path({whole!r})"
            f".read_text('utf-8')){at}))"
        )
        raise refused("lists", source=path, lists=named, call=call)
    if "\n" in start.strip():
        raise refused("lines_of_object", source=path)


def _whole(path: Path, text: str, first: str) -> Any:
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise refused("deep", source=_place(path, "line", 1)) from None
    except json.JSONDecodeError as error:
        is_cut = error.pos > len(text) - 16 or error.msg.startswith("Unterminated")
        if is_cut and text.lstrip().startswith(("{", "[")):
            raise refused("cut", source=_place(path, "line", error.lineno)) from None
        return None
    if text[end:].strip() and "\n" in text[:end]:
        raise refused("objects_of_lines", source=path)
    return None if text[end:].strip() else value


def _lists(value: dict[str, Value], outer: _Keys) -> Iterator[tuple[_Keys, list[Value]]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _lists(inner, (*outer, key))
        elif isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            yield (*outer, key), inner


def _is_frame(row: dict[str, Value]) -> bool:
    """Return whether an object holds a table, not a row: as pandas writes unless asked for rows."""
    if {"columns", "data"} <= row.keys():
        return all(isinstance(value, list) for value in row.values())
    inner = [value for value in row.values() if isinstance(value, dict) and value]
    if not inner or len(inner) < len(row):
        return False
    labels, alike = inner[0].keys(), all(value.keys() == inner[0].keys() for value in inner)
    numbered = any(all(label.isdigit() for label in one) for one in (row, labels))
    return alike and (numbered or max(len(row), len(labels)) >= _FEW)
