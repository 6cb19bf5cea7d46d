"""Rows in JSON: one object per line, or one list of objects.

Numbers are as written until all values of a column are known, because any line may show that they
are texts, such as an identifier with more digits than a number has.
"""

import codecs
import io
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

import pyarrow as pa

from hushtable.data.layout_file import joined
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
from hushtable.errors import DataTypeError, UsageError
from hushtable.words.refusals import refusal, refused

#: Number of characters of objects that become a batch.
_BLOCK = 1 << 20
#: Longest list of numbers in which each is a column: coordinates have two or three.
_POINT = 3
#: Largest depth of nested objects.
_DEEPEST = 64
#: Number of characters parsed at a time, and in the longest object.
_WINDOW, _LONGEST = 1 << 20, 1 << 26
#: More characters than the longest word of JSON has, which the end of a window may cut.
_WORD = 16
#: Number of labels from which they count as those of rows, even if they are no numbers.
_FEW = 20
_BETWEEN = re.compile(r"\s*([,\]])\s*")
# As texts, because numbers may be longer than Python converts.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)

#: Keys from the outermost object to a value; joined by dots, they are the name of its column.
_Keys: TypeAlias = tuple[str, ...]
#: Numbers are as written.
Value: TypeAlias = "str | bool | list[Value] | dict[str, Value] | None"
_Row: TypeAlias = dict[_Keys, Value]
_Kind: TypeAlias = Literal["null", "whole", "fraction", "truth", "text", "list"]
_TYPES = {
    "null": pa.null(), "whole": pa.int64(), "fraction": pa.float64(), "truth": pa.bool_(),
    "text": pa.string(), "list": pa.list_(pa.null()),
}  # fmt: skip


class _Number(str):
    """A number as written in the file."""


def json_file(path: Path, layout: FileLayout) -> Reader:
    """Read JSON: lines of objects, or one list of them."""
    by_name = layout.unasked is not None and path.suffix.lower() != ".json"
    with unchanged(path), _opened(path) as (_, file):
        start = "" if by_name else file.read(_WINDOW).lstrip()
        is_list = start.startswith("[")
        if layout.unasked is not None:
            if not (by_name or is_list):
                raise UsageError(
                    f"{path}: does not begin with a list, so which objects are rows could only be "
                    "guessed from them, which is not allowed when no person can be asked: write a "
                    "list of objects, or let the file's name end in .jsonl if each line is a row"
                )
            return _Objects(path, is_list).reader_of_texts(layout.unasked)
        if not is_list:
            _check_lines(path, start, file)
        return _Objects(path, is_list).reader()


@dataclass(frozen=True)
class _Objects:
    """A file of objects, each in a line, or all in a list."""

    path: Path
    in_list: bool

    def reader(self) -> Reader:
        """Read each column in the type that fits all its values.

        A first pass finds the keys and their types, because any object may add a key or type: a
        value that is a number in some objects and text in others is text in all.
        """
        found: dict[_Keys, _JsonColumn] = {}
        n_rows = last = 0
        for _at, block in self._blocks():
            for last, row in block:
                for keys, value in row.items():
                    if keys not in found:
                        found[keys] = _JsonColumn(keys)
                    try:
                        found[keys].add(value, last)
                    except UnicodeEncodeError:  # half of a pair, escaped
                        raise refused("not_utf8_json", source=self._place(last)) from None
            n_rows += len(block)
        if self.in_list and not n_rows:
            raise refused("no_objects", source=self.path)
        columns = self._by_name(found)
        names = column_names(pa.schema([(name, _TYPES[c.kind]) for name, c in columns.items()]))

        def batches(wanted: list[str] | None) -> Iterator[tuple[int, Batch]]:
            chosen = list(wanted or names)
            self._refuse_nested([columns[name] for name in chosen])
            for at, block in self._blocks():
                arrays = [columns[name].values(block) for name in chosen]
                for batch in split([pa.RecordBatch.from_arrays(arrays, chosen)]):
                    yield at, batch

        def place(row: int) -> str:
            return f"{refusal(self._word)} {row + 1}"

        # Not if there are empty lines in between.
        return of_file(self.path, names, batches, n_rows, place if n_rows == last else None)

    def _by_name(self, found: dict[_Keys, "_JsonColumn"]) -> dict[str, "_JsonColumn"]:
        """Return the columns by their names; note those that hold objects as well as values."""
        columns: dict[str, _JsonColumn] = {}
        outer = {keys[:n] for keys in found for n in range(1, len(keys))}
        for keys, column in found.items():
            column.mixed = keys in outer
            if column.mixed and column.kind == "null":
                continue
            other = columns.setdefault(_name(keys), column)
            if other is not column:
                raise refused(
                    "keys_twice", source=self.path, name=_name(keys), one=" > ".join(keys),
                    other=" > ".join(other.keys),
                )  # fmt: skip
        return columns

    def _refuse_nested(self, columns: list["_JsonColumn"]) -> None:
        nested = [one for one in columns if one.mixed or one.kind == "list"]
        if nested:
            column = min(nested, key=lambda one: one.first)
            kind = "list" if column.kind == "list" else "mixed"
            words = refusal(kind, source=self._place(column.first), name=_name(column.keys))
            add = f"\nAdd: --drop {shlex.quote(joined(_name(one.keys) for one in nested))}"
            raise DataTypeError(words + (add if len(nested) < len(columns) else ""))

    def reader_of_texts(self, unasked: Unasked) -> Reader:
        """Read each value as text, whatever the others are.

        What is not an object is left out. The columns do not depend on any row.
        """
        names = unasked.names
        if not names:
            raise UsageError(f"{self.path}: JSON has column names, but the schema has none")

        def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
            chosen = list(columns or names)
            for at, block in self._blocks(unasked):
                rows = [{_name(keys): value for keys, value in row.items()} for _, row in block]
                arrays = [
                    pa.array([_text(row.get(name)) for row in rows], pa.string()) for name in chosen
                ]
                for batch in split([pa.RecordBatch.from_arrays(arrays, chosen)]):
                    yield at, batch

        return of_file(self.path, names, batches)

    @property
    def _word(self) -> str:
        """The word for an object in messages."""
        return "object" if self.in_list else "line"

    def _place(self, number: int) -> str:
        return f"{self.path}: {refusal(self._word)} {number}"

    def _blocks(
        self, unasked: Unasked | None = None
    ) -> Iterator[tuple[int, list[tuple[int, _Row]]]]:
        """Yield the bytes read so far, and some objects with their numbers, from 1.

        What is not an object is left out if no person can be asked, and otherwise refused.
        """
        block: list[tuple[int, _Row]] = []
        size = 0
        with _opened(self.path) as (raw, file):
            texts: Iterable[str] = self._elements(file) if self.in_list else file
            for number, text in enumerate(texts, 1):
                size += len(text)
                try:
                    if not text.isspace():
                        row: _Row = {}
                        _add_flat(_object(text), row)
                        block.append((number, row))
                except _OddError as odd:
                    kind, facts = odd.args
                    if unasked is None:
                        raise refused(kind, source=self._place(number), **facts) from None
                    what = f"{self.path}: {self._word}s that do not hold an object, left out"
                    unasked.note(what, 1, partial(self._place, number))
                if size >= _BLOCK:
                    yield raw.tell(), block
                    block, size = [], 0
            yield raw.tell(), block

    def _elements(self, file: TextIO) -> Iterator[str]:
        """Yield the text of each element of the list, window by window."""
        text = file.read(_WINDOW).lstrip()[1:].lstrip()
        at, n, closed = 0, 0, text.startswith("]")
        while not closed:
            try:
                _value, end = _DECODER.raw_decode(text, at)
            except RecursionError:
                raise refused("deep", source=self._place(n + 1)) from None
            except json.JSONDecodeError as found:
                error, end = found.msg, found.pos
                is_cut = error.startswith("Unterminated") or end > len(text) - _WORD
            else:
                if (between := _BETWEEN.match(text, end)) is not None:
                    yield text[at:end]
                    at, n, closed = between.end(), n + 1, between[1] == "]"
                    continue
                error = "a comma or the end of the list is missing"
                is_cut = not text[end:].strip()
            if len(text) - at > _LONGEST:
                raise refused("large_object", source=self._place(n + 1), n=_LONGEST >> 20)
            more = file.read(max(_WINDOW, len(text) - at)) if is_cut else ""
            if not more:
                kind = "cut" if is_cut and "]" not in text[end:] else "odd_json"
                raise refused(kind, source=self._place(n + 1), error=error)
            text, at = (text[at:] + more).lstrip(), 0
        if text[at + (n == 0) :].strip() or file.read(_WINDOW).strip():
            raise refused("below_list", source=self.path)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.OSFile, TextIO]]:
    """Open the text of a file, with its stream of bytes, which tracks progress."""
    with opened_bytes(path) as (_, plain):
        start = plain.read(4)
    encoding = find_encoding(start, str(path), asked=False)  # other text than UTF-8 has a mark
    encoding = "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else encoding
    with opened_bytes(path) as (raw, plain):
        file = io.BufferedReader(plain)
        try:
            # Which line is not UTF-8 is reported when it is parsed.
            yield raw, io.TextIOWrapper(file, encoding, "surrogateescape", newline="\n")
        except UnicodeDecodeError:
            raise refused("not_utf8_json", source=path) from None


# --- values ---------------------------------------------------------------------------------------


def _name(keys: _Keys) -> str:
    return ".".join(keys)


class _OddError(Exception):
    """A text is no object of values: the kind of its refusal, and facts for it."""


def _once(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _OddError("key_twice", {"name": twice})
    return row


_OBJECTS = json.JSONDecoder(
    parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_once
)


def _object(text: str) -> dict[str, Value]:
    try:
        text.encode()
        row = _OBJECTS.decode(text)
    except RecursionError:
        raise _OddError("deep", {}) from None
    except json.JSONDecodeError as error:
        kind = "not_utf8_json" if "\0" in text else "no_json"
        raise _OddError(kind, {"error": error}) from None
    except UnicodeEncodeError:
        raise _OddError("not_utf8_json", {}) from None
    if not isinstance(row, dict):
        raise _OddError("no_object", {})
    return row


def _add_flat(row: dict[str, Value], found: _Row, outer: _Keys = ()) -> None:
    """Add the keys and each value in an object, and in nested objects.

    Lists of a few numbers, such as GeoJSON coordinates, are objects with the keys 0, 1, ...
    """
    if len(outer) > _DEEPEST:
        raise _OddError("deep", {})
    for key, value in row.items():
        keys = (*outer, key)
        if isinstance(value, dict):
            _add_flat(value, found, keys)
        elif (
            isinstance(value, list)
            and 0 < len(value) <= _POINT
            and all(isinstance(one, _Number) for one in value)
        ):
            found.update(((*keys, str(k)), number) for k, number in enumerate(value))
        else:
            found[keys] = value


@dataclass
class _JsonColumn:
    """The values that some keys lead to."""

    keys: _Keys
    kind: _Kind = "null"
    #: Number of the first object with a value, or with a list if it is a column of these.
    first: int = 0
    #: Whether it holds objects elsewhere.
    mixed: bool = False

    def add(self, value: Value, number: int) -> None:
        """Make the kind fit one more value."""
        if value is None or self.kind == "list":
            return
        kind = _kind(value)
        if kind == self.kind:
            return
        if kind == "list" or self.kind == "null":
            self.kind, self.first = kind, number
        else:
            numbers = {self.kind, kind} == {"whole", "fraction"}
            self.kind = "fraction" if numbers else "text"

    def values(self, block: list[tuple[int, _Row]]) -> pa.Array:
        """Return the values of some objects in the type of all."""
        keys, convert = self.keys, _CONVERT.get(self.kind)
        values = [row.get(keys) for _number, row in block]
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return pa.array(values, _TYPES[self.kind])


def _kind(value: Value) -> _Kind:
    if isinstance(value, list):
        return "list"
    if isinstance(value, bool):
        return "truth"
    if not isinstance(value, _Number):
        str(value).encode()
        return "text"
    whole = value.lstrip("-").isdigit()
    if whole and len(value) < 21 and abs(int(value)) < 2**63:
        return "whole"
    # Too long for a number: an identifier, in which every digit counts.
    too_long = whole or (value[-1].isdigit() and math.isinf(float(value)))
    return "text" if too_long else "fraction"


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_CONVERT: dict[_Kind, Any] = {"whole": int, "fraction": float, "text": _written}


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, list):
        return None
    if isinstance(value, _Number):
        return as_name(float(value)) if set(value) & set(".eE") else str(value)
    return as_name(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- objects that are no rows ---------------------------------------------------------------------


def _check_lines(path: Path, start: str, file: TextIO) -> None:
    first, _, more = start.partition("\n")
    try:
        only = _DECODER.decode(first)
        if more.strip():
            return
    except (ValueError, RecursionError):
        try:
            only = _DECODER.decode(start + file.read(_LONGEST))
        except (ValueError, RecursionError):
            return  # reading its lines explains what is wrong
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
