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
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from json.scanner import make_scanner
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NoReturn, TextIO, TypeAlias

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

#: Key of a value, or keys from the outermost object to it; joined by dots, they name its column.
_Keys: TypeAlias = "str | tuple[str, ...]"
#: Numbers are as written, in bytes; Python's collector would visit each instance of a class.
Value: TypeAlias = "bytes | str | bool | list[Value] | dict[str, Value] | None"
_Row: TypeAlias = dict[_Keys, Value]
_Kind: TypeAlias = Literal["null", "whole", "fraction", "truth", "text", "list"]
_TYPES = {
    "null": pa.null(), "whole": pa.int64(), "fraction": pa.float64(), "truth": pa.bool_(),
    "text": pa.string(), "list": pa.list_(pa.null()),
}  # fmt: skip


_KINDS: dict[type, _Kind] = {bool: "truth", str: "text"}


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
        with _opened(path) as (_, whole):
            return _Objects(path, is_list).reader(whole)


@dataclass(frozen=True)
class _Objects:
    """A file of objects, each in a line, or all in a list."""

    path: Path
    in_list: bool

    def reader(self, file: TextIO) -> Reader:
        """Read each column in the type that fits all its values.

        A first pass finds the keys and their types, because any object may add a key or type: a
        value that is a number in some objects and text in others is text in all.
        """
        kinds: dict[_Keys, _Kind] = {}
        n_rows = last = 0
        for _block, rows in groupby(self._rows(file), itemgetter(0)):
            values: dict[_Keys, list[Value]] = defaultdict(list)
            for _, number, row in rows:  # none is kept: the collector would visit each often
                n_rows, last = n_rows + 1, number
                for keys, value in row.items():
                    values[keys].append(value)
            for keys, column in values.items():
                kinds[keys] = _kind(column, kinds.get(keys, "null"))
        if self.in_list and not n_rows:
            raise refused("no_objects", source=self.path)
        columns, mixed = self._by_name(kinds)
        names = column_names(
            pa.schema([(name, _TYPES[kinds[keys]]) for name, keys in columns.items()])
        )

        def batches(wanted: list[str] | None) -> Iterator[tuple[int, Batch]]:
            chosen = list(wanted or names)
            keys = [columns[name] for name in chosen]
            if nested := [key for key in keys if key in mixed or kinds[key] == "list"]:
                self._refuse_nested(nested, mixed, len(nested) < len(chosen))
            return self._batches(chosen, columns, kinds)

        def place(row: int) -> str:
            return f"{refusal(self._word)} {row + 1}"

        # Not if there are empty lines in between.
        return of_file(self.path, names, batches, n_rows, place if n_rows == last else None)

    def _by_name(self, kinds: dict[_Keys, _Kind]) -> tuple[dict[str, _Keys], set[_Keys]]:
        """Return the keys of the columns by name, and those of objects as well as values."""
        inner = [keys for keys in kinds if isinstance(keys, tuple)]
        outer = {keys[:n] if n > 1 else keys[0] for keys in inner for n in range(1, len(keys))}
        columns: dict[str, _Keys] = {}
        for keys, kind in kinds.items():
            if keys in outer and kind == "null":
                continue
            other = columns.setdefault(_name(keys), keys)
            if other is not keys:
                path, other = (k if isinstance(k, str) else " > ".join(k) for k in (keys, other))
                raise refused(
                    "keys_twice", source=self.path, name=_name(keys), one=path, other=other
                )
        return columns, outer & kinds.keys()

    def _refuse_nested(self, nested: list[_Keys], mixed: set[_Keys], others: bool) -> NoReturn:
        """Raise an error at the first list, or value that is an object elsewhere."""
        with _opened(self.path) as (_, file):
            number, keys, is_list = next(
                (number, keys, isinstance(value, list))
                for _block, number, row in self._rows(file)
                for keys, value in row.items()
                if keys in nested
                and (isinstance(value, list) or (keys in mixed and value is not None))
            )
        kind = "list" if is_list else "mixed"
        words = refusal(kind, source=self._place(number), name=_name(keys))
        add = f"\nAdd: --drop {shlex.quote(joined(map(_name, nested)))}" if others else ""
        raise DataTypeError(words + add)

    def reader_of_texts(self, unasked: Unasked) -> Reader:
        """Read each value as text, whatever the others are.

        What is not an object is left out. The columns do not depend on any row.
        """
        names = unasked.names
        if not names:
            raise UsageError(f"{self.path}: JSON has column names, but the schema has none")
        return of_file(
            self.path, names, lambda chosen: self._batches(chosen or [*names], {}, {}, unasked)
        )

    def _batches(
        self,
        names: list[str],
        columns: Mapping[str, _Keys],
        kinds: dict[_Keys, _Kind],
        unasked: Unasked | None = None,
    ) -> Iterator[tuple[int, Batch]]:
        """Yield the bytes read so far, and the named columns, each in its kind or else as texts."""
        keys = [columns.get(name, name) for name in names]
        with _opened(self.path) as (raw, file):
            for _block, rows in groupby(self._rows(file, unasked), itemgetter(0)):
                values: dict[_Keys, list[Value]] = {key: [] for key in keys}
                adding = [(key, column.append) for key, column in values.items()]
                for _, _, row in rows:
                    for key, add in adding:
                        add(row.get(key))
                arrays = [_array(values[key], kinds.get(key)) for key in keys]
                for batch in split([pa.RecordBatch.from_arrays(arrays, names)]):
                    yield raw.tell(), batch

    @property
    def _word(self) -> str:
        """The word for an object in messages."""
        return "object" if self.in_list else "line"

    def _place(self, number: int) -> str:
        return f"{self.path}: {refusal(self._word)} {number}"

    def _rows(
        self, file: TextIO, unasked: Unasked | None = None
    ) -> Iterator[tuple[int, int, _Row]]:
        """Yield the number of a block, and an object with its number, from 1.

        What is not an object is left out if no person can be asked, and otherwise refused.
        """
        size = 0
        for number, text in enumerate(self._elements(file) if self.in_list else file, 1):
            size += len(text)
            if not (text := text.strip()):
                continue
            try:
                row = _object(text)
                if unasked is not None:
                    row = {_name(keys): value for keys, value in row.items()}
                elif "\\u" in text:  # possibly half of a pair, escaped
                    "".join(v for v in row.values() if isinstance(v, str)).encode()
            except UnicodeEncodeError:
                raise refused("not_utf8_json", source=self._place(number)) from None
            except _OddError as odd:
                kind, facts = odd.args
                if unasked is None:
                    raise refused(kind, source=self._place(number), **facts) from None
                what = f"{self.path}: {self._word}s that do not hold an object, left out"
                unasked.note(what, 1, partial(self._place, number))
                continue
            yield size // _BLOCK, number, row

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
    return keys if isinstance(keys, str) else ".".join(keys)


class _OddError(Exception):
    """A text is no object of values: the kind of its refusal, and facts for it."""


def _once(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _OddError("key_twice", {"name": twice})
    return row


#: Parses the value at a place of a text; takes half the time of `json.JSONDecoder.decode`.
_DECODER_OF_ROWS: Any = json.JSONDecoder(
    parse_int=str.encode, parse_float=str.encode, parse_constant=str.encode, object_pairs_hook=_once
)
_SCAN = make_scanner(_DECODER_OF_ROWS)


def _object(text: str) -> _Row:
    """Return the values of an object and of the objects within it."""
    try:
        text.encode()
        row, end = _SCAN(text, 0)
        if end < len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except StopIteration as stop:
        error = json.JSONDecodeError("Expecting value", text, stop.value)
        raise _OddError("no_json", {"error": error}) from None
    except RecursionError:
        raise _OddError("deep", {}) from None
    except json.JSONDecodeError as error:
        kind = "not_utf8_json" if "\0" in text else "no_json"
        raise _OddError(kind, {"error": error}) from None
    except UnicodeEncodeError:
        raise _OddError("not_utf8_json", {}) from None
    if not isinstance(row, dict):
        raise _OddError("no_object", {})
    if "[" not in text and text.count("{") == 1:
        return row
    flat: _Row = {}
    _add_flat(row, flat)
    return flat


def _add_flat(row: dict[str, Value], flat: _Row, outer: tuple[str, ...] = ()) -> None:
    """Add the keys and each value in an object, and in nested objects.

    Lists of a few numbers, such as GeoJSON coordinates, are objects with the keys 0, 1, ...
    """
    if len(outer) > _DEEPEST:
        raise _OddError("deep", {})
    for key, value in row.items():
        keys = (*outer, key)
        if isinstance(value, dict):
            _add_flat(value, flat, keys)
        elif (
            isinstance(value, list)
            and 0 < len(value) <= _POINT
            and all(isinstance(item, bytes) for item in value)
        ):
            flat.update(((*keys, str(k)), number) for k, number in enumerate(value))
        else:
            flat[keys if outer else key] = value


def _kind(values: list[Value], kind: _Kind) -> _Kind:
    """Return the kind of a column that has some more values."""
    types = {*map(type, values)} - {type(None)}
    if list in types or kind == "list":
        return "list"
    kinds = {kind, *(_KINDS[key] for key in types & _KINDS.keys())} - {"null"}
    if bytes in types and "text" not in kinds:
        numbers = [value for value in values if isinstance(value, bytes)]
        written = b"".join(numbers)
        powers = b"e" in written or b"E" in written
        fractions = powers or b"." in written or b"N" in written or b"I" in written
        kinds.add("fraction" if fractions else "whole")
        # Too long for a number: an identifier, in which every digit counts.
        if (powers or max(map(len, numbers)) > 18) and any(map(_is_long, numbers)):
            return "text"
    if kinds == {"whole", "fraction"}:
        return "fraction"
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "null"


def _is_long(number: bytes) -> bool:
    if not -(2.0**63) < float(number) < 2.0**63:
        if number.lstrip(b"-").isdigit():
            return len(number) > 20 or abs(int(number)) >= 2**63
        return number[-1:].isdigit() and math.isinf(float(number))
    return False


def _array(values: list[Value], kind: _Kind | None) -> pa.Array:
    """Return values as the kind of their column; without one, each as a text."""
    if kind is None:
        return pa.array(map(_text, values), pa.string())
    known: list[Any] = values
    if kind == "whole" or kind == "fraction":
        convert = int if kind == "whole" else float
        known = [None if value is None else convert(value) for value in known]
    elif kind == "text":
        known = [str(value).lower() if isinstance(value, bool) else value for value in known]
    return pa.array(known, _TYPES[kind])


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, list):
        return None
    if isinstance(value, bytes):
        return as_name(float(value)) if {*b".eE"} & {*value} else value.decode()
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
        longest, _rows = max(lists, key=lambda keyed: len(keyed[1]))
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
        elif isinstance(inner, list) and inner and all(isinstance(v, dict) for v in inner):
            yield (*outer, key), inner


def _is_frame(row: dict[str, Value]) -> bool:
    """Return whether an object holds a table, not a row: as pandas writes unless asked for rows."""
    if {"columns", "data"} <= row.keys():
        return all(isinstance(value, list) for value in row.values())
    inner = [value for value in row.values() if isinstance(value, dict) and value]
    if not inner or len(inner) < len(row):
        return False
    labels, alike = inner[0].keys(), all(value.keys() == inner[0].keys() for value in inner)
    numbered = any(all(label.isdigit() for label in keys) for keys in (row, labels))
    return alike and (numbered or max(len(row), len(labels)) >= _FEW)
