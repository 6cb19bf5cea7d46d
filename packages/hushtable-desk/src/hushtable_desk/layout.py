"""A picture of a file, and a control for each way to read it.

A refusal of reading states options of the command line. A page shows the same sentence with the
names of buttons in their place, and the lines of the file to choose from.
"""

import json
import re
import sqlite3
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from hushtable.data.readers.copies import extracted, members
from hushtable.data.readers.encoding import find_encoding, opened_lines
from hushtable.data.readers.reader import as_name
from hushtable.data.readers.registry import content_of
from hushtable.errors import DataError, UsageError
from hushtable.files import replacing
from hushtable.language import numeral
from hushtable.words.options import Option
from hushtable.words.refusals import REFUSED
from hushtable_desk.folder import Folder
from hushtable_desk.language import _

#: Lines shown of the beginning and of the end, rows of each sheet, and letters of a line.
_FIRST, _LAST, _ROWS, _LETTERS = 8, 6, 3, 200
#: Files larger than this show only their beginning, since counting all lines takes long.
_MOST_BYTES = 1 << 28
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f]")
#: Signs that may separate fields, by their names on the page.
_SIGNS = {",": ",", ";": ";", "\t": "Tab", "|": "|"}
#: Words of a file to tell encodings apart.
_WORDS = 500
#: Encodings, by how often they occur.
_ENCODINGS = (
    "utf-8", "cp1252", "cp1250", "iso-8859-2", "cp1251", "cp1253", "cp1254", "cp874", "cp932",
    "gb18030", "cp949", "big5", "mac-roman", "cp850",
)  # fmt: skip
#: Raised for files that are not what their first bytes promise.
_DAMAGED = (OSError, EOFError, ValueError, LookupError, ParseError, zipfile.BadZipFile, zlib.error,
            sqlite3.Error, DataError)  # fmt: skip


@dataclass(frozen=True)
class FileLine:
    """A line of a file, or a row of a sheet: its number from 1, and its text.

    ``option`` names it as the line of the names, or as the first that is no row.
    """

    number: int
    text: str
    option: Option


@dataclass(frozen=True)
class Part:
    """A sheet, a file of an archive or a table of a database: its first rows, and the option."""

    name: str
    rows: tuple[str, ...]
    option: Option


@dataclass(frozen=True)
class Picture:
    """The parts of a file that a person needs to see to state how it is read."""

    first: tuple[FileLine, ...] = ()
    last: tuple[FileLine, ...] = ()
    #: Signs that separate fields: the name of each, the fields of most lines, and the option.
    signs: tuple[tuple[str, int, Option], ...] = ()
    #: Encodings, each with a part of the file that others read differently.
    encodings: tuple[tuple[str, str, Option], ...] = ()
    parts: tuple[Part, ...] = ()
    #: Names of the lists in a JSON file that holds one object.
    lists: tuple[str, ...] = ()

    def offers(self, option: Option) -> bool:
        """Return whether there is a better button for an option: among words, or with rows."""
        field, _value = option
        return (field == "encoding" and bool(self.encodings)) or option in [
            part.option for part in self.parts
        ]


def picture_of(
    path: Path, sheet: str | None = None, member: str | None = None, encoding: str | None = None
) -> Picture:
    """Return the picture of a file; an empty one if it cannot be looked into.

    ``sheet``, ``member`` and ``encoding`` are the choices so far.
    """
    try:
        ending = content_of(path)[1]
        if ending in REFUSED:
            return Picture()
        if ending in (".xlsx", ".xls", ".ods"):
            return _of_workbook(path, sheet)
        if ending == ".zip":
            return _of_archive(path, member, encoding)
        if ending == ".sqlite":
            return Picture(parts=tuple(_tables(path)))
        if ending == ".json":
            return Picture(lists=tuple(lists_of(path)))
        return _of_text(path, encoding)
    except _DAMAGED:
        return Picture()


# --- text -----------------------------------------------------------------------------------------


def _of_text(path: Path, chosen: str | None) -> Picture:
    with path.open("rb") as file:
        sample = file.read(1 << 16)
    try:
        encoding = chosen or find_encoding(sample, "")
        asks = chosen is not None
    except DataError:
        encoding, asks = "cp1252", True
    with opened_lines(path, encoding) as lines:
        picture = _of_lines(lines, whole=path.stat().st_size <= _MOST_BYTES)
    return Picture(
        picture.first, picture.last, picture.signs, tuple(_encodings(sample)) if asks else ()
    )


def _of_lines(lines: Iterable[str], *, whole: bool) -> Picture:
    texts = (_CONTROL.sub("·", line.rstrip("\r\n")[:_LETTERS]) for line in lines)
    first = list(islice(texts, _FIRST))
    last: deque[tuple[int, str]] = deque(maxlen=_LAST)
    n_lines = len(first)
    if whole:
        blank: list[tuple[int, str]] = []  # blank lines at the end are none
        for n, text in enumerate(texts, _FIRST + 1):
            blank.append((n, text))
            if text.strip():
                last.extend(blank)
                blank.clear()
                n_lines = n
    return Picture(
        tuple(FileLine(n, text, ("skip_lines", str(n - 1))) for n, text in enumerate(first, 1)),
        tuple(FileLine(n, text, ("skip_footer", str(n_lines - n + 1))) for n, text in last),
        tuple(_signs([*first, *(text for _, text in last)])),
    )


def _signs(lines: list[str]) -> Iterator[tuple[str, int, Option]]:
    """Yield the signs that occur in most lines, with the number of fields of most lines."""
    filled = [line for line in lines if line.strip()]
    for sign, name in _SIGNS.items():
        counts = Counter(line.count(sign) + 1 for line in filled if sign in line)
        if 2 * counts.total() > len(filled):
            yield name, counts.most_common(1)[0][0], ("delimiter", sign)


def _encodings(sample: bytes) -> Iterator[tuple[str, str, Option]]:
    """Yield encodings that can read the sample, each with words that others read differently."""
    words = [word for word in dict.fromkeys(re.split(rb"[\s,;|\"]+", sample)) if not word.isascii()]
    readings: dict[tuple[str, ...], str] = {}
    for name in _ENCODINGS:
        try:
            # A blank that does not break a line separates thousands.
            texts = tuple(word.decode(name).replace("\xa0", " ") for word in words[:_WORDS])
        except UnicodeDecodeError:
            continue
        if all(map(str.isprintable, texts)):
            readings.setdefault(texts, name)
    telling = sorted(range(len(words[:_WORDS])), key=lambda j: -len({text[j] for text in readings}))
    for texts, name in readings.items():
        yield name, " · ".join(texts[j][:30] for j in telling[:3]), ("encoding", name)


# --- workbooks, archives, databases, JSON ---------------------------------------------------------


def _of_workbook(path: Path, chosen: str | None) -> Picture:
    import python_calamine as calamine  # imported only when needed

    with path.open("rb") as file, calamine.CalamineWorkbook.from_object(file) as book:
        sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names}
        filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
        parts = tuple(
            Part(name, tuple(_rows(sheet, _ROWS)), ("sheet", name))
            for name, sheet in filled.items()
        )
        name = (chosen or "").partition("!")[0] or next(iter(filled), "")
        single = len(filled) == 1 or chosen is not None
        rows = _rows(filled[name]) if single and name in filled else iter(())
        picture = _of_lines(rows, whole=True)
    return Picture(picture.first, picture.last, parts=parts if len(parts) > 1 else ())


def _rows(sheet: Any, most: int | None = None) -> Iterator[str]:
    for row in sheet.to_python(skip_empty_area=False, nrows=most):
        text = " | ".join(map(as_name, row))
        yield text[:_LETTERS] if text.strip(" |") else ""


def _of_archive(path: Path, chosen: str | None, encoding: str | None) -> Picture:
    files = members(path)
    parts = tuple(
        Part(f.filename, (_("%(n)s bytes", n=numeral(f.file_size)),), ("member", f.filename))
        for f in files
    )
    names = [f for f in files if f.filename == chosen or len(files) == 1]
    if not names:
        return Picture(parts=parts)
    inside = picture_of(extracted(path, names[0]).path, encoding=encoding)
    return Picture(inside.first, inside.last, inside.signs, inside.encodings,
                   parts if len(parts) > 1 else ())  # fmt: skip


def _tables(path: Path) -> Iterator[Part]:
    address = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        for (name,) in database.execute(query).fetchall():
            quoted = name.replace('"', '""')
            rows = database.execute(f'SELECT * FROM "{quoted}" LIMIT {_ROWS}')
            lines = (" | ".join(map(str, row))[:_LETTERS] for row in rows)
            yield Part(name, tuple(lines), ("member", name))


def lists_of(path: Path) -> list[str]:
    """Return the names of the lists in a JSON file that holds one object."""
    if path.stat().st_size > _MOST_BYTES:
        return []
    content = json.loads(path.read_text("utf-8-sig"))
    entries = content.items() if isinstance(content, dict) else ()
    return [name for name, value in entries if isinstance(value, list)]


def write_list(folder: Folder, path: Path, name: str) -> str:
    """Write a list of a JSON file to a file of its own in the folder; return that file's name."""
    if name not in lists_of(path):
        raise UsageError(f"{path.name} holds no list {name!r}")
    content = json.loads(path.read_text("utf-8-sig"))[name]
    new = folder.new_name(f"{path.stem}.rows.json")
    with replacing(folder.file(new), private=True, new=True) as file:
        file.write(json.dumps(content).encode())
    return new
