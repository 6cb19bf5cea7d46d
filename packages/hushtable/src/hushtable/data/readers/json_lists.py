"""Lists of objects in JSON, rewritten once as JSON lines, which can be read fast."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from hushtable.data.readers.encoding import decompressed, marked_encoding
from hushtable.data.readers.json_lines import lines_file
from hushtable.data.readers.reader import Copy, FileLayout, Reader, unchanged
from hushtable.errors import DataError, UsageError
from hushtable.language import _

#: Number of characters parsed at a time, in a short object, and in the longest object.
_WINDOW, _SHORT, _LONGEST = 1 << 20, 1 << 20, 1 << 26
#: Objects within objects.
_DEEPEST = 64
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
    """Read JSON: lines of objects, an array of them, or an object that holds a list of them."""
    if layout.unasked is not None and path.suffix.lower() not in (".json", ".geojson"):
        return lines_file(path, layout)
    with unchanged(path):
        lists = _Lists(path, layout.member, asked=layout.unasked is None)
        if lists.read() is None:
            return lines_file(path, layout)
    name, copy = lists.chosen()
    rows = copy.reader(lambda lines: lines_file(lines, layout, "object"))
    return replace(rows, found=(_("the list %(name)s", name=repr(name)),) if name else ())


class _Lists:
    """The lists of objects in a file of JSON, each as a copy in JSON lines."""

    def __init__(self, path: Path, wanted: str | None, *, asked: bool) -> None:
        self.path, self.wanted, self.asked = path, wanted, asked
        #: Copy of each list, and number of its objects, by the keys that lead to it.
        self.found: dict[str, tuple[Copy, int]] = {}
        self.has_values = False

    def read(self) -> "_Lists | None":
        """Find the lists; return None for a file of JSON lines, which needs no copy."""
        with _opened(self.path) as file:
            window = _Window(file, self.path)
            if window.peek() == "[":
                self._list(window, "")
                window.end()
                return self
            if not self.asked:
                self._check_named()
                self._object(window, "", 0)
                return self
            only, kind = window.first() if window.peek() == "{" else ("", "lines")
            if kind == "lines" and file.encoding == "utf-8":
                return None
            if kind:
                self._write("", window.objects())
                return self
            self._object(window, "", 0)
            window.end()
        if not self.found and only:
            if self.asked and _is_frame(json.loads(only, parse_int=str, parse_float=str)):
                raise DataError(
                    f"{self.path}: holds all rows in one object, by column or by their labels: "
                    "write one object per row (in pandas, orient='records')"
                )
            if "\n" not in only and file.encoding == "utf-8":
                return None
            if self.has_values:
                self._write("", iter((only,)))
        return self

    def _check_named(self) -> None:
        """Raise `UsageError` if, without a person, objects would show which of them are rows."""
        if self.wanted is None:
            raise UsageError(
                f"{self.path}: does not begin with a list, so which objects are rows could only be "
                "guessed from them, which is not allowed when no person can be asked: name the "
                "list with --member NAME, or let the file's name end in .jsonl if each line is a "
                "row"
            )

    def chosen(self) -> tuple[str, Copy]:
        """Return the name of the only list, or of the requested one, and its copy."""
        names = list(self.found)
        if self.wanted is not None and self.wanted not in self.found:
            held = f"the lists {names}" if any(names) else "one list without a name"
            raise DataError(f"{self.path}: has no list {self.wanted!r}: it contains {held}")
        if len(names) == 1 or self.wanted is not None:
            name = names[0] if self.wanted is None else self.wanted
            return name, self.found[name][0]
        if not names:
            raise DataError(
                f'{self.path}: contains no list of objects, such as [{{"age": 42}}, ...]: write '
                "one object per row (in pandas, orient='records')"
            )
        longest = max(names, key=lambda name: self.found[name][1])
        raise DataError(
            f"{self.path}: contains several lists of objects, {names[:10]}: choose one with "
            f"--member NAME\nAdd: --member {shlex.quote(longest)}"
        )

    def _object(self, window: "_Window", outer: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise window.error(f"objects are nested more than {_DEEPEST} deep: flatten them")
        for key in window.members():
            name, sign = f"{outer}.{key}" if outer else key, window.peek()
            if sign == "{":
                self._object(window, name, depth + 1)
            elif sign == "[":
                self._list(window, name)
            else:
                self.has_values = True
                window.value()

    def _list(self, window: "_Window", name: str) -> None:
        elements = window.elements()
        if not self.asked and name == (self.wanted or ""):
            self._write(name, elements)  # whatever they are: those that are no objects are left out
            return
        first = next(elements, None)
        if first is None or (name and not first.startswith("{")):
            for _ in elements:
                pass
            if first is None and not name:
                raise DataError(f"{self.path}: the list contains no objects: needs one per row")
            return
        if self.wanted is None or name == self.wanted:
            self._write(name, _after(first, elements))
        else:
            self.found.setdefault(name, (Copy.of(str(self.path), ".jsonl"), 0))
            for _ in elements:
                pass

    def _write(self, name: str, objects: Iterator[str]) -> None:
        copy, n = Copy.of(str(self.path), ".jsonl"), 0
        with copy.path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for text in objects:
                n += 1
                # Line breaks occur only between values: within texts they are escaped.
                file.write(text.replace("\n", " ").replace("\r", " ") + "\n")
        self.found[name] = copy, n


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


def _after(first: str, others: Iterator[str]) -> Iterator[str]:
    yield first
    yield from others


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
                words = "is cut off" if cut else f"is not JSON ({error.msg})"
                raise self.error(f"{words}: export the file again") from None
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

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the value follows each key."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                self.take('"')
            name = str(json.loads(self.value()))
            self.take(":")
            yield name
            if self.take(",}") == "}":
                return

    def objects(self) -> Iterator[str]:
        """Yield consecutive values."""
        while self.peek():
            yield self.value()

    def end(self) -> None:
        """Refuse anything after the outermost value."""
        if self.peek():
            raise self.error("there is text after the end of the outermost object")

    def first(self) -> tuple[str, str]:
        """Return the first object, if it is short, and how others follow; do not consume it.

        "lines" if each seems to be on its own line, otherwise "objects"; empty if none follow.
        """
        while True:
            try:
                _, end = self._parse(self._text, self._at)
            except json.JSONDecodeError:
                if len(self._text) < _SHORT and self._more():
                    continue
                return "", ""  # reading the whole file raises the error
            except RecursionError:
                return "", ""
            next_ = _BLANKS.match(self._text, end).end()  # type: ignore[union-attr] # it does
            if next_ < len(self._text) or not self._more():
                break
        text = self._text[self._at : end]
        if next_ == len(self._text):
            return text, ""
        in_lines = "\n" not in text and "\n" in self._text[end:next_]
        return text, "lines" if in_lines else "objects"
