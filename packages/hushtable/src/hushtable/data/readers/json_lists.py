"""A list of objects in JSON, rewritten once as JSON lines, which can be read fast."""

import io
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from hushtable.data.readers.encoding import decompressed, marked_encoding
from hushtable.data.readers.json_lines import lines_file
from hushtable.data.readers.reader import Copy, FileLayout, Reader, unchanged
from hushtable.errors import DataError, UsageError

#: Number of characters parsed at a time, and in the longest object.
_WINDOW, _LONGEST = 1 << 20, 1 << 26
#: Number of labels from which they count as those of rows, even if they are no numbers.
_FEW = 20
_BLANKS = re.compile(r"[ \t\r\n]*")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a text in a Unicode encoding, decompressed."""
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        mark = marked_encoding(plain.read(4))
    encoding = {None: "utf-8", "utf-8": "utf-8-sig"}.get(mark) or mark
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        try:
            # The reader of the copy reports which line is not UTF-8.
            yield io.TextIOWrapper(io.BufferedReader(plain), encoding, "surrogateescape")
        except UnicodeDecodeError:
            raise DataError(f"{path}: not UTF-8: save the file as UTF-8") from None


def json_file(path: Path, layout: FileLayout) -> Reader:
    """Read JSON: lines of objects, or one list of them."""
    if layout.unasked is not None and path.suffix.lower() != ".json":
        return lines_file(path, layout)
    with unchanged(path), _opened(path) as file:
        window = _Window(file, path)
        if window.peek() == "[":
            copy = Copy.of(str(path), ".jsonl")
            with copy.path.open(
                "w", encoding="utf-8", errors="surrogateescape", newline="\n"
            ) as lines:
                n = 0
                for n, text in enumerate(window.elements(), 1):  # noqa: B007 # the number remains
                    # Line breaks occur only between values: within texts they are escaped.
                    lines.write(text.replace("\n", " ").replace("\r", " ") + "\n")
            window.end()
            if not n and layout.unasked is None:
                raise DataError(f"{path}: the list contains no objects: needs one per row")
            return copy.reader(lambda rows: lines_file(rows, layout, "object"))
        if layout.unasked is not None:
            raise UsageError(
                f"{path}: does not begin with a list, so which objects are rows could only be "
                "guessed from them, which is not allowed when no person can be asked: write a list "
                "of objects, or let the file's name end in .jsonl if each line is a row"
            )
        if window.peek():
            _check_lines(path, window)
    if file.encoding == "utf-8":
        return lines_file(path, layout)
    copy = Copy.of(str(path), ".jsonl")
    with unchanged(path), _opened(path) as file, copy.path.open("w", encoding="utf-8") as lines:
        shutil.copyfileobj(file, lines)
    return copy.reader(lambda rows: lines_file(rows, layout))


def _check_lines(path: Path, window: "_Window") -> None:
    """Raise `DataError` if a file that is not a list does not hold an object in each line."""
    first = window.value()
    if window.peek():
        if "\n" in first:
            raise DataError(
                f"{path}: its objects take several lines each: write one object per line (jq -c "
                ".), or a list of them"
            )
        return
    only = json.loads(first, parse_int=str, parse_float=str)
    if not isinstance(only, dict):
        return
    if _is_frame(only):
        raise DataError(
            f"{path}: holds all rows in one object, by column or by their labels: write one object "
            "per row (in pandas, orient='records')"
        )
    lists = list(_lists(only, ()))
    if lists:
        longest, _rows = max(lists, key=lambda one: len(one[1]))
        at = "".join(f"[{key!r}]" for key in longest)
        named = [".".join(keys) for keys, _rows in lists][:10]
        written, whole = str(path.with_suffix("").with_suffix(".rows.json")), str(path)
        raise DataError(
            f"{path}: holds one object, with the lists {named}, not rows: write one list to a file "
            f"of its own, for example in Python: pathlib.Path({written!r}).write_text(json.dumps("
            f"json.loads(pathlib.Path({whole!r}).read_text('utf-8')){at}))"
        )
    if "\n" in first:
        raise DataError(
            f"{path}: holds one object over several lines, and no list of objects: write one "
            "object per row, in a line of its own (in pandas, orient='records')"
        )


def _lists(value: dict[str, Any], outer: tuple[str, ...]) -> Iterator[tuple[Sequence[str], Any]]:
    """Yield the keys that lead to lists of objects, and the lists."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _lists(inner, (*outer, key))
        elif isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            yield (*outer, key), inner


def _is_frame(row: dict[str, Any]) -> bool:
    """Return whether an object holds a table, not a row: as pandas writes unless asked for rows."""
    values = list(row.values())
    if {"columns", "data"} <= row.keys():
        return all(isinstance(value, list) for value in values)
    if not all(isinstance(value, dict) and value for value in values) or not values:
        return False
    labels, alike = values[0].keys(), all(value.keys() == values[0].keys() for value in values)
    numbered = any(all(label.isdigit() for label in one) for one in (row, labels))
    return alike and (numbered or max(len(row), len(labels)) >= _FEW)


class _Window:
    """A file of JSON, a part of it at a time."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file, self._path = file, path
        self._text, self._at, self._line = "", 0, 1
        # As texts, because numbers may be longer than Python converts.
        self._parse = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode

    def error(self, words: str) -> DataError:
        """Return an error about the current position."""
        line = self._line + self._text.count("\n", 0, self._at)
        return DataError(f"{self._path}: line {line}: {words}")

    def _more(self) -> bool:
        """Read on, and forget the parsed part; return whether there was more."""
        if len(self._text) - self._at > _LONGEST:
            raise self.error(f"an object is larger than {_LONGEST >> 20} MB: write smaller ones")
        block = self._file.read(max(_WINDOW, len(self._text) - self._at))
        self._line += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + block, 0
        return bool(block)

    def peek(self) -> str:
        """Return the next character that is not blank, without consuming it; empty at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr] # it does
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, signs: str) -> str:
        """Return the next character, which must be one of ``signs``."""
        sign = self.peek()
        if not sign:
            raise self.error("the file ends in the middle: was it truncated? Export it again")
        if sign not in signs:
            raise self.error(f"has {sign!r} where JSON has one of {' '.join(signs)}")
        self._at += 1
        return sign

    def value(self) -> str:
        """Return the next value, as written."""
        if not self.peek():
            self.take("{[")
        while True:
            try:
                _, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos > len(self._text) - 16 or error.msg.startswith("Unterminated")
                if cut and self._more():
                    continue
                self._at = self._at if cut else error.pos
                words = "is cut off: was it truncated?" if cut else f"is not JSON ({error.msg}):"
                raise self.error(f"{words} export the file again") from None
            except RecursionError:
                raise self.error("objects and lists are nested too deeply: flatten them") from None
            # A number at the end may continue.
            if end < len(self._text) or self._text[end - 1] in '}]"' or not self._more():
                text, self._at = self._text[self._at : end], end
                return text

    def elements(self) -> Iterator[str]:
        """Yield the values of a list."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        parse = self._parse
        while True:
            self.peek()
            try:  # the fast path, for a complete element
                _, end = parse(self._text, self._at)
                text, sign = self._text[self._at : end], self._text[end]
                self._at = end + 1 if sign in ",]" else end
            except (ValueError, IndexError, RecursionError):
                text, sign = self.value(), ""
            yield text
            if sign != "," and (sign == "]" or self.take(",]") == "]"):
                return

    def end(self) -> None:
        """Refuse anything after the list."""
        if self.peek():
            raise self.error("there is text after the end of the list")
