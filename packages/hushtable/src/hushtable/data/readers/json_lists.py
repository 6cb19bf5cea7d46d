"""A list of objects in JSON, rewritten once as JSON lines, which can be read fast."""

import io
import json
import re
import shutil
from collections.abc import Iterator
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
_BETWEEN = re.compile(r"\s*([,\]])\s*")
_MISSING = "a comma or the end of the list is missing"
_CUT = "the file ends in the middle: was it truncated? Export it again"
# As texts, because numbers may be longer than Python converts.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
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
        return lines_file(path, layout)
    copy = Copy.of(str(path), ".jsonl")
    with unchanged(path), _opened(path) as file, copy.path.open("w", encoding="utf-8") as lines:
        shutil.copyfileobj(file, lines)
    return copy.reader(lambda rows: lines_file(rows, layout))


def _of_list(path: Path, layout: FileLayout, start: str, file: TextIO) -> Reader:
    copy, n = Copy.of(str(path), ".jsonl"), 0
    with copy.path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for text in _elements(path, start, file):
            # Line breaks occur only between values: within texts they are escaped.
            lines.write(text.replace("\n", " ").replace("\r", " ") + "\n")
            n += 1
    if not n and layout.unasked is None:
        raise DataError(f"{path}: the list contains no objects: needs one per row")
    return copy.reader(lambda rows: lines_file(rows, layout, "object"))


def _elements(path: Path, text: str, file: TextIO) -> Iterator[str]:
    at, n, sign = 0, 0, text[:1]
    while sign != "]":
        try:
            _value, end = _DECODER.raw_decode(text, at)
            between = _BETWEEN.match(text, end)
            if between is None:
                raise json.JSONDecodeError(_MISSING, text, end)
        except RecursionError:
            raise DataError(
                f"{path}: object {n + 1}: objects and lists are nested too deeply: flatten them"
            ) from None
        except json.JSONDecodeError as error:
            if len(text) - at > _LONGEST:
                raise DataError(
                    f"{path}: object {n + 1} is larger than {_LONGEST >> 20} MB: write smaller ones"
                ) from None
            is_cut = not text[error.pos :].strip() or (
                error.pos > at and error.pos > len(text) - 16 and not error.msg.startswith(_MISSING)
            )
            is_cut = is_cut or error.msg.startswith("Unterminated")
            block = file.read(max(_WINDOW, len(text) - at)) if is_cut else ""
            if not block:
                words = _CUT if is_cut else f"this is not JSON ({error.msg}): export the file again"
                raise DataError(f"{path}: object {n + 1}: {words}") from None
            text, at = (text[at:] + block).lstrip(), 0
            continue
        yield text[at:end]
        at, n, sign = between.end(), n + 1, between[1]
    if text[at + (n == 0) :].strip() or file.read(_WINDOW).strip():
        raise DataError(f"{path}: there is text after the end of the list")


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
    if "\n" in start.strip():
        raise DataError(
            f"{path}: holds one object over several lines, and no list of objects: write one "
            "object per row, in a line of its own (in pandas, orient='records')"
        )


def _whole(path: Path, text: str, first: str) -> Any:
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise DataError(f"{path}: line 1: objects are nested too deeply: flatten them") from None
    except json.JSONDecodeError as error:
        is_cut = error.pos > len(text) - 16 or error.msg.startswith("Unterminated")
        if is_cut and text.lstrip().startswith(("{", "[")):
            raise DataError(f"{path}: line {error.lineno}: {_CUT}") from None
        return None
    if text[end:].strip() and "\n" in text[:end]:
        raise DataError(
            f"{path}: its objects take several lines each: write one object per line (jq -c .), or "
            "a list of them"
        )
    return None if text[end:].strip() else value


def _lists(value: dict[str, Any], outer: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
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
