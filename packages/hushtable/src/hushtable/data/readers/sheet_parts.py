"""Files within a workbook: errors, formulas without values, hidden rows and columns."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from hushtable.errors import DataError
from hushtable.language import _, ngettext

_ERROR_OR_FORMULA = (b't="e"', b"t='e'", b"<f>", b"<f ", b"<f/", b":f>", b":f ", b":f/")
_HIDDEN = (b'hidden="1"', b'hidden="true"', b"hidden='1'", b"hidden='true'")
#: The attribute in which LibreOffice states that a formula failed.
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}value-type"
#: Number of rows of the largest sheets.
_MOST = 1 << 20
_OPENDOCUMENT_HIDDEN = (b':visibility="collapse"', b':visibility="filter"')


def parts(path: Path) -> list[str]:
    """Return the files within a workbook; none in an old .xls, which may contain an archive."""
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            return []
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()


def errors(path: Path, sheet: str, *, asked: bool) -> Iterator[tuple[int, int, str]]:
    """Yield row, column and text of the cells that hold errors, such as ``#DIV/0!``.

    calamine reads them as empty, which would turn an error into a missing value. Raises `DataError`
    for a formula without a value: programs that write workbooks may leave its calculation to Excel.
    """
    with zipfile.ZipFile(path) as archive:
        part = _part(archive, sheet)
        with archive.open(part) as file:
            if not _has(file, _ERROR_OR_FORMULA):  # most sheets, which then are not parsed twice
                return
        with archive.open(part) as file:
            row = column = -1
            for event, element in ElementTree.iterparse(file, ("start", "end")):
                tag = element.tag.rpartition("}")[2]
                if tag == "row" and event == "start":
                    row, column = int(element.get("r", row + 2)) - 1, -1
                elif tag == "row":
                    element.clear()
                elif tag == "c" and event == "end":
                    column = column_number(element.get("r", ""), column + 1)
                    value = _child(element, "v")
                    if element.get("t") == "e":
                        yield row, column, value or "#ERROR!"
                    elif (
                        asked
                        and _child(element, "f") is not None
                        and not value
                        and not element.get("t")
                    ):
                        raise DataError(
                            f"{path}: sheet {sheet!r}: {cell(row, column)} holds a formula whose "
                            "value was never calculated: open it in Excel or LibreOffice, and save"
                        )


@dataclass(frozen=True)
class Hidden:
    """Numbers, from 0, of the rows and columns that a sheet does not show."""

    rows: frozenset[int] = frozenset()
    columns: frozenset[int] = frozenset()


def hidden_words(gone: Hidden, rows: Sequence[int], columns: Sequence[int]) -> tuple[str, ...]:
    """Return words on hidden rows and columns of a sheet that are read."""
    n_rows = len(gone.rows.intersection(rows))
    names = [letters(j) for j in columns if j in gone.columns]
    rows_too = ngettext("%(n)s hidden row", "%(n)s hidden rows", n_rows)
    parts = [rows_too] if n_rows else []
    if names:
        more = _(" and %(n)s more", n=len(names) - 5) if len(names) > 5 else ""
        listed = ", ".join(names[:5]) + more
        parts.append(
            ngettext(
                "hidden column %(names)s", "hidden columns %(names)s", len(names), names=listed
            )
        )
    words = ngettext("%(what)s is read", "%(what)s are read", n_rows + len(names),
                     what=_(" and ").join(parts))  # fmt: skip
    return (words,) if parts else ()


def hidden(path: Path, sheet: str) -> Hidden:
    """Return the hidden rows and columns of a sheet; unknown for an old .xls."""
    files = parts(path)
    if not files:
        return Hidden()
    with zipfile.ZipFile(path) as archive:
        excel = "xl/workbook.xml" in files
        part = _part(archive, sheet) if excel else "content.xml"
        with archive.open(part) as file:
            if not _has(file, _HIDDEN if excel else _OPENDOCUMENT_HIDDEN):
                return Hidden()
        with archive.open(part) as file:
            return _hidden_of_excel(file) if excel else _hidden_of_opendocument(file, sheet)


def _hidden_of_excel(file: IO[bytes]) -> Hidden:
    rows: set[int] = set()
    columns: set[int] = set()
    row = -1
    for _event, element in ElementTree.iterparse(file):
        tag, gone = element.tag.rpartition("}")[2], element.get("hidden") in ("1", "true")
        if tag == "row":
            row = int(element.get("r", row + 2)) - 1
            if gone:
                rows.add(row)
            element.clear()
        elif tag == "col" and gone:
            last = min(int(element.get("max", 1)), _MOST)
            columns.update(range(int(element.get("min", 1)) - 1, last))
    return Hidden(frozenset(rows), frozenset(columns))


def _hidden_of_opendocument(file: IO[bytes], sheet: str) -> Hidden:
    found: dict[str, set[int]] = {"row": set(), "column": set()}
    at = dict.fromkeys(found, 0)
    inside = False
    for event, element in ElementTree.iterparse(file, ("start", "end")):
        tag = element.tag.rpartition("}")[2]
        keys = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        if tag == "table" and event == "start":
            inside = keys.get("name") == sheet
        kind = tag.removeprefix("table-")
        if event == "start" or kind not in found:
            continue
        if inside:
            times = int(keys.get(f"number-{kind}s-repeated", 1))
            if keys.get("visibility") in ("collapse", "filter"):
                found[kind].update(range(at[kind], min(at[kind] + times, _MOST)))
            at[kind] += times
        element.clear()
    return Hidden(frozenset(found["row"]), frozenset(found["column"]))


def _has(file: IO[bytes], words: tuple[bytes, ...]) -> bool:
    end = b""
    while block := file.read(1 << 20):
        if any(word in end + block for word in words):
            return True
        end = block[-32:]
    return False


def _child(element: Any, tag: str) -> str | None:
    return next((c.text or "" for c in element if c.tag.rpartition("}")[2] == tag), None)


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    (keys,) = (e.attrib for e in book.iter() if e.get("name") == sheet and "sheetId" in e.attrib)
    (key,) = (value for name, value in keys.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    (target,) = (e.get("Target", "") for e in links if e.get("Id") == key)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def opendocument_errors(path: Path) -> set[str]:
    """Return the names of the sheets that hold an error, which calamine also reads as empty.

    Raises `ElementTree.ParseError` for broken XML, on which calamine would hang.
    """
    name, sheets = "", set()
    with zipfile.ZipFile(path) as archive, archive.open("content.xml") as file:
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            if event == "start" and element.tag.endswith("}table"):
                keys = element.attrib.items()
                name = next((value for key, value in keys if key.endswith("}name")), "")
            elif element.get(_CALC) == "error":
                sheets.add(name)
            elif event == "end" and element.tag.endswith("}table-row"):
                element.clear()
    return sheets


def letters(column: int) -> str:
    """Return the sheet's name for a column, numbered from 0: A, B, ..., Z, AA, ..."""
    text = ""
    while column >= 0:
        column, letter = column // 26 - 1, column % 26
        text = chr(ord("A") + letter) + text
    return text


def cell(row: int, column: int) -> str:
    """Return the sheet's name for a cell, such as ``C7``."""
    return f"{letters(column)}{row + 1}"


def column_number(name: str, otherwise: int = -1) -> int:
    """Return the number, from 0, of the column of a cell's name, if it has one."""
    column = 0
    for letter in name.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
    return column - 1 if name else otherwise
