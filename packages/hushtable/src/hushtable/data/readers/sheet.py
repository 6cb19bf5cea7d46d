"""Rows in a sheet of a workbook: Excel's .xlsx and .xls, and OpenDocument's .ods."""

import datetime as dt
import shlex
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias
from xml.etree import ElementTree

import pyarrow as pa

from hushtable.data.readers.memory import arrow
from hushtable.data.readers.reader import (
    FileLayout,
    Reader,
    Unasked,
    as_name,
    column_names,
    looks_like_total,
    total_refused,
)
from hushtable.errors import DataError

#: By row, and in it by column, from the first of the sheet on; "" is an empty cell.
Cells: TypeAlias = list[list[Any]]

_ERROR_OR_FORMULA = (b't="e"', b"t='e'", b"<f>", b"<f ", b"<f/", b":f>", b":f ", b":f/")
#: Where LibreOffice says that a formula failed.
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}value-type"
#: Raised by the libraries for damaged archives and XML, and by what lacks a part.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError, LookupError, ValueError,
    NotImplementedError,
)  # fmt: skip
_SAVE = "open it and save it as .xlsx"


def cells_of(path: Path, wanted: str | None, *, asked: bool = True) -> tuple[str, Cells, list[Any]]:
    """Return the name of a sheet, its cells, and which of them are merged.

    A formula without a value is refused where a person is ``asked``, and else missing.
    """
    import python_calamine as calamine

    _check_start(path)
    try:
        _check_opendocument(path)
        with path.open("rb") as file, calamine.CalamineWorkbook.from_object(file) as book:
            sheet = _one_sheet(book, path, wanted)
            cells = sheet.to_python(skip_empty_area=False)
            merged = sheet.merged_cell_ranges or []
        if zipfile.is_zipfile(path):
            for row, column, text in _errors(path, sheet.name, asked=asked):
                cells[row][column] = text
    except DataError:
        raise
    except calamine.PasswordError:
        raise _password(path) from None
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise DataError(
            f"{path}: not a workbook that can be read, or a damaged one ({error}): {_SAVE}"
        ) from None
    return sheet.name, cells, merged


def _password(path: Path) -> DataError:
    return DataError(f"{path}: is protected by a password: save it without one")


def _check_start(path: Path) -> None:
    """Refuse what is called a workbook, and is none, in words."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        # An encrypted .xlsx is of the container of an old .xls.
        if "EncryptedPackage".encode("utf-16-le") in path.read_bytes():
            raise _password(path)
    elif not start.startswith(b"PK"):
        text = start.lstrip(b"\xef\xbb\xbf \r\n\t")
        if text.startswith(b"<"):
            raise DataError(f"{path}: is a web page or XML under a workbook's name: {_SAVE}")
        raise DataError(
            f"{path}: is no workbook: {_SAVE}, or call it .csv if it is text with a delimiter"
        )


def _check_opendocument(path: Path) -> None:
    """Raise `ElementTree.ParseError` for broken XML, at which calamine would wait for ever."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "content.xml" in archive.namelist():
                with archive.open("content.xml") as file:
                    for _, element in ElementTree.iterparse(file):
                        element.clear()


def _one_sheet(book: Any, path: Path, wanted: str | None) -> Any:
    import python_calamine as calamine

    names = book.sheet_names
    if wanted is not None:
        if wanted not in names:
            raise DataError(f"{path} has no sheet {wanted!r}: its sheets are {names}")
        return book.get_sheet_by_name(wanted)
    visible = [
        m.name for m in book.sheets_metadata if m.visible == calamine.SheetVisibleEnum.Visible
    ]
    sheets = [book.get_sheet_by_name(name) for name in visible]
    filled = [sheet for sheet in sheets if sheet.height]
    if len(filled) != 1:
        hidden = [name for name in names if name not in visible]
        several = [sheet.name for sheet in filled]
        held = f"several sheets hold values, {several}" if filled else "no sheet holds values"
        if hidden:
            held += f" (hidden: {hidden})"
        largest = max(filled, key=lambda one: one.height * one.width, default=None)
        add = "" if largest is None else f"\nAdd: --sheet {shlex.quote(largest.name)}"
        raise DataError(f"{path}: {held}: give one by --sheet NAME{add}")
    return filled[0]


def _errors(path: Path, sheet: str, *, asked: bool) -> Iterator[tuple[int, int, str]]:
    """Yield row, column and text of the cells that hold errors, such as ``#DIV/0!``.

    calamine has them empty, which would make of a fault a missing value. Raises `DataError` for a
    formula without a value: programs that write workbooks may leave it to Excel to work it out.
    """
    with zipfile.ZipFile(path) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            if asked:
                _refuse_errors(archive, path, sheet)
            return
        part = _part(archive, sheet)
        with archive.open(part) as file:
            if not _has(file, _ERROR_OR_FORMULA):  # most sheets: they need not be parsed twice
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
                    column = _column(element.get("r", ""), column + 1)
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
                            "value was never worked out: open it in Excel or LibreOffice, and save"
                        )


def _has(file: IO[bytes], words: tuple[bytes, ...]) -> bool:
    """Whether a file holds one of these words, of 8 bytes at most."""
    end = b""
    while block := file.read(1 << 20):
        if any(word in end + block for word in words):
            return True
        end = block[-8:]
    return False


def _child(element: Any, tag: str) -> str | None:
    """Return the text of a child, "" if it has none, or None if there is no such child."""
    return next((c.text or "" for c in element if c.tag.rpartition("}")[2] == tag), None)


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of the file within the archive that holds a sheet."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    (keys,) = (e.attrib for e in book.iter() if e.get("name") == sheet and "sheetId" in e.attrib)
    (key,) = (value for name, value in keys.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    (target,) = (e.get("Target", "") for e in links if e.get("Id") == key)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _refuse_errors(archive: zipfile.ZipFile, path: Path, sheet: str) -> None:
    """Refuse errors in a sheet of OpenDocument, where calamine tells them from nothing neither."""
    with archive.open("content.xml") as file:
        inside = False
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            keys = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
            if element.tag.endswith("}table") and event == "start":
                inside = keys.get("name") == sheet
            elif inside and element.get(_CALC) == "error":
                raise DataError(
                    f"{path}: sheet {sheet!r} holds a formula that failed: correct it, empty the "
                    "cell, or save the workbook as .xlsx"
                )
            elif event == "end" and element.tag.endswith("}table-row"):
                element.clear()


def letters(column: int) -> str:
    """Return what a sheet calls a column, numbered from 0: A, B, ..., Z, AA, ..."""
    text = ""
    while column >= 0:
        column, letter = column // 26 - 1, column % 26
        text = chr(ord("A") + letter) + text
    return text


def cell(row: int, column: int) -> str:
    """Return what a sheet calls a cell, such as ``C7``."""
    return f"{letters(column)}{row + 1}"


def _column(name: str, otherwise: int) -> int:
    """Return the number, from 0, of the column of a cell's name, if it has one."""
    column = 0
    for letter in name.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
    return column - 1 if name else otherwise


def as_texts(values: list[Any]) -> pa.Array:
    """Return cells of a column as texts, each by itself: whatever types the others have."""
    return pa.array([None if value == "" else as_name(value) for value in values], pa.string())


def as_column(values: list[Any]) -> pa.Array:
    """Return cells of a column, as text if they are of several types."""
    values = [None if value == "" else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float}:
        whole = all(v is None or (abs(v) <= 2**53 and v == int(v)) for v in values)
        return pa.array(values, pa.int64() if whole and kinds else pa.float64())
    if kinds == {dt.date, dt.datetime}:  # the latter where there is a time of the day
        midnight = dt.time()
        values = [dt.datetime.combine(v, midnight) if type(v) is dt.date else v for v in values]
        return pa.array(values, pa.timestamp("us"))
    if len(kinds) > 1 or kinds == {str}:
        values = [None if value is None else as_name(value) for value in values]
        return pa.array(values, pa.string())
    return pa.array(values)


#: Among so many rows the names are looked for.
_FIRST = 30


def sheet_file(path: Path, layout: FileLayout) -> Reader:
    """Read the one sheet that holds rows, or the one that ``layout`` names; held in memory."""
    unasked = layout.unasked
    sheet, cells, merged = cells_of(path, layout.sheet, asked=unasked is None)
    where = f"{path}: sheet {sheet!r}"
    skipped = layout.skip_lines or 0
    if layout.header is False:
        header, first = None, skipped
    else:
        header = skipped if layout.skip_lines is not None else _header(cells, where, unasked)
        first = header + 1
    # A row without any value is none, as a blank line of a CSV file is none.
    places = [i for i in range(first, len(cells)) if any(value != "" for value in cells[i])]
    width = max(map(len, cells), default=0)
    used = [j for j in range(width) if any(cells[i][j] != "" for i in places)]
    if header is None:
        names = {j: f"column {k}" for k, j in enumerate(used, 1)}
    else:
        names = _names(cells, header, where)
    order = sorted(names)
    if unasked is None:
        nameless = [(i, j) for j in used if j not in names for i in places if cells[i][j] != ""]
        if nameless:
            raise _no_name(cells, *nameless[0], header or 0, where)
        _refuse_merged(merged, first - (header is not None), cells, where)
        _refuse_total(cells, places, order, where)
    made = as_column if unasked is None else as_texts
    columns = [made([cells[i][j] for i in places]) for j in order]
    table = pa.Table.from_arrays(columns, [names[j] for j in order])
    column_names(table.schema)
    found = (f"{header} rows above the names left out",) if header else ()
    return replace(
        arrow(table),
        source=str(path),
        n_bytes=path.stat().st_size,
        bytes_read=lambda: path.stat().st_size,
        place=lambda row: f"row {places[row] + 1} of sheet {sheet!r}",
        found=found,
    )


def _no_name(cells: Cells, i: int, j: int, header: int, where: str) -> DataError:
    return DataError(
        f"{where}: column {letters(j)} has values, such as {cells[i][j]!r} in {cell(i, j)}, but no "
        f"name in row {header + 1}: name it, empty it, or say where the names are by "
        "--skip-lines N or --no-header"
    )


def _refuse_total(cells: Cells, places: Sequence[int], used: Sequence[int], where: str) -> None:
    """Refuse a last row that adds up those above it."""
    *rows, last = places or [0]
    if len(rows) < 3:  # as in text files: too few to say what no row leaves empty
        return
    fields = [as_name(cells[last][j]) for j in used]
    always = [k for k, j in enumerate(used) if all(cells[i][j] != "" for i in rows)]

    def above(k: int) -> pa.Array:
        return pa.array([as_name(cells[i][used[k]]) or None for i in rows], pa.string())

    if looks_like_total(fields, always, above):
        begins = " | ".join(fields)[:40].rstrip()
        raise total_refused(f"{where}: row {last + 1}", begins)


def _names(cells: Cells, header: int, where: str) -> dict[int, str]:
    """Return the names in the row of this number, by column."""
    if header >= len(cells):
        raise DataError(f"{where} has no row {header + 1}: lower --skip-lines")
    return {j: as_name(value) for j, value in enumerate(cells[header]) if value != ""}


def _header(cells: Cells, where: str, unasked: Unasked | None) -> int:
    """Return the number of the row of names: the first that has a text in each column in use.

    Where nobody is here to be asked, the first that holds the names of a schema.
    """
    if unasked is not None:
        named = (i for i, row in enumerate(cells) if unasked.is_header([*map(as_name, row)]))
        if (at := next(named, None)) is None:
            raise DataError(
                f"{where}: no row names all columns that are needed, {list(unasked.names)[:5]}: "
                "write a row of names above the others"
            )
        return at
    width = max((sum(v != "" for v in row) for row in cells[:_FIRST]), default=0)
    for i, row in enumerate(cells[:_FIRST]):
        filled = [value for value in row if value != ""]
        # Lines above a table fill a cell or two of it.
        if filled and 2 * len(filled) > width:
            other = next((j for j, v in enumerate(row) if not isinstance(v, str)), None)
            if other is None:
                return i
            raise DataError(
                f"{where}: row {i + 1} should hold the names of the columns, but "
                f"{cell(i, other)} holds {row[other]}: say that it is a row of values, or that "
                f"these are names (--skip-lines {i})\nAdd: --no-header"
            )
    raise DataError(f"{where} is empty: needs a row of names, and rows of values below")


def _refuse_merged(merged: Any, first: int, cells: Cells, where: str) -> None:
    """Refuse merged cells in the table: but for the first, their values would be missing."""
    for (top, left), (bottom, right) in merged:
        if bottom >= first and top < len(cells) and left < len(cells[top]):
            raise DataError(
                f"{where}: the cells {cell(top, left)}:{cell(bottom, right)} are merged, and hold "
                "one value for all: unmerge them, and fill in each"
            )
