"""Rows in a sheet of a workbook: Excel's .xlsx and .xls, and OpenDocument's .ods."""

import datetime as dt
import re
import shlex
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias
from xml.etree import ElementTree

import pyarrow as pa

from hushtable.data.readers.dialect import Header, HeaderSearch, Record, check_once
from hushtable.data.readers.memory import arrow
from hushtable.data.readers.reader import MISSING_WORDS, FileLayout, Reader, as_name
from hushtable.data.readers.totals import (
    MOST_BELOW,
    FirstRows,
    below_error,
    below_words,
    left_out_words,
    repeated_words,
    totals_error,
)
from hushtable.errors import DataError, UsageError
from hushtable.language import _
from hushtable.words.doubts import joined, n_rows
from hushtable.words.refusals import refusal, refused

Cell: TypeAlias = str | float | bool | dt.date | dt.time | dt.timedelta | None
#: Row and column of the first and the last cell, from 0.
Corners: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
Cells: TypeAlias = list[list[Cell]]

#: A sheet and its columns, as Excel writes them.
_COLUMNS = re.compile("'?(?P<sheet>.+?)'?!(?P<first>[A-Z]{1,3}):(?P<last>[A-Z]{1,3})")
#: Raised by the libraries for damaged archives and XML, and for missing parts.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError, LookupError, ValueError,
    NotImplementedError,
)  # fmt: skip
_ERROR_OR_FORMULA = (b't="e"', b"t='e'", b"<f>", b"<f ", b"<f/", b":f>", b":f ", b":f/")
#: The attribute in which LibreOffice states that a formula failed.
_CALC = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}value-type"


def _cells_of(
    path: Path, wanted: str | None, *, asked: bool = True
) -> tuple[str, Cells, list[Corners]]:
    """Return the name of a sheet, its cells, and its merged cells.

    ``wanted`` may end in columns, as in ``Sheet1!A:F``: then cells of other columns are empty. A
    formula without a value is refused if a person is ``asked``, and otherwise missing.
    """
    import python_calamine as calamine

    try:
        files = _parts(path)
        failed = _opendocument_errors(path) if "content.xml" in files else set()
        with path.open("rb") as file, calamine.CalamineWorkbook.from_object(file) as book:
            wanted, columns = _of_columns(wanted, book.sheet_names)
            sheet = _one_sheet(book, path, wanted)
            cells = sheet.to_python(skip_empty_area=False)
            merged = sheet.merged_cell_ranges or []
        if "xl/workbook.xml" in files:
            for row, column, text in _errors(path, sheet.name, asked=asked):
                cells[row][column] = text
        elif asked and sheet.name in failed:
            raise refused("formula_error", source=_where(path, sheet.name))
        elif asked and not files:  # in an old .xls, calamine may have misread the encoding
            for i, row in enumerate(cells):
                j = next((j for j, v in enumerate(row) if isinstance(v, str) and "\0" in v), None)
                if j is not None:
                    raise refused("nul_cell", source=_where(path, sheet.name), cell=_cell(i, j))
    except (DataError, UsageError):
        raise
    except calamine.PasswordError:
        raise refused("password", source=path) from None
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise refused("damaged_workbook", source=path, error=error) from None
    if columns is not None:
        before = [""] * columns.start
        cells = [before + row[columns] for row in cells]
        merged = [(a, b) for a, b in merged if columns.start <= a[1] and b[1] < columns.stop]
    return sheet.name, cells, merged


def _of_columns(wanted: str | None, names: Sequence[str]) -> tuple[str | None, slice | None]:
    match = _COLUMNS.fullmatch(wanted or "")
    if wanted in names or match is None:
        return wanted, None
    first, last = _column_number(match["first"]), _column_number(match["last"])
    if first > last:
        raise UsageError(f"--read sheet={wanted}: the first column comes after the last")
    return match["sheet"], slice(first, last + 1)


def _where(path: Path, sheet: str) -> str:
    return refusal("sheet", path=path, name=sheet)


def _parts(path: Path) -> list[str]:
    """Return the files within a workbook; none in an old .xls, which may contain an archive.

    Raises `DataError` for a file that is named like a workbook but is none.
    """
    with path.open("rb") as file:
        start = file.read(4)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(file) as archive:
                return archive.namelist()
        if start != b"\xd0\xcf\x11\xe0":
            raise refused("no_workbook", source=path)
        # An encrypted .xlsx has the container format of an old .xls.
        if "EncryptedPackage".encode("utf-16-le") in file.read():
            raise refused("password", source=path)
        return []


def _one_sheet(book: Any, path: Path, wanted: str | None) -> Any:
    import python_calamine as calamine

    names = book.sheet_names
    if wanted is not None:
        if wanted not in names:
            raise refused("no_sheet", source=path, wanted=wanted, sheets=names)
        return book.get_sheet_by_name(wanted)
    visible = [
        m.name for m in book.sheets_metadata if m.visible == calamine.SheetVisibleEnum.Visible
    ]
    sheets = [book.get_sheet_by_name(name) for name in visible]
    filled = [sheet for sheet in sheets if sheet.height]
    if len(filled) != 1:
        if not filled:
            raise refused("empty_sheets", source=path, sheets=names)
        largest = max(filled, key=lambda candidate: candidate.height * candidate.width)
        raise refused(
            "several_sheets", f"--read {shlex.quote(f'sheet={largest.name}')}", source=path,
            sheets=[sheet.name for sheet in filled],
        )  # fmt: skip
    return filled[0]


#: Cells without a value: the words are the same as in CSV files.
_NO_VALUE = frozenset(("", *MISSING_WORDS))


def _column(values: list[Any], *, alone: bool) -> pa.Array:
    """Return cells of a column, as text if they have several types, or each is read ``alone``."""
    values = [None if value in _NO_VALUE else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float} and not alone:
        whole = all(v is None or (abs(v) <= 2**53 and v == int(v)) for v in values)
        return pa.array(values, pa.int64() if whole and kinds else pa.float64())
    if kinds == {dt.date, dt.datetime} and not alone:  # the latter if there is a time of day
        midnight = dt.time()
        values = [dt.datetime.combine(v, midnight) if type(v) is dt.date else v for v in values]
        return pa.array(values, pa.timestamp("us"))
    if alone or len(kinds) > 1 or kinds == {str}:
        values = [None if value is None else as_name(value) for value in values]
        return pa.array(values, pa.string())
    return pa.array(values)


#: Number of rows in which the names are searched, and of those that others are compared with.
_FIRST = 100
#: Largest share of the rows that a second table next to the first fills.
_SHORT = 0.8


def sheet_file(path: Path, layout: FileLayout) -> Reader:
    """Read the only sheet with rows, or the one that ``layout`` names, into memory."""
    sheet = _Sheet.of(path, layout)
    size, places, header = path.stat().st_size, sheet.places, sheet.header
    names = dict(zip(sheet.columns, header.names, strict=True))
    order = [j for j, name in names.items() if name not in header.left_out]
    rows = [sheet.cells[i] for i in places]
    alone = layout.unasked is not None
    columns = [_column([row[j] for row in rows], alone=alone) for j in order]
    table = arrow(pa.Table.from_arrays(columns, [names[j] for j in order]))

    def place(row: int) -> str:
        return _("row %(n)s of sheet %(name)s", n=places[row] + 1, name=repr(sheet.name))

    source = replace(
        table.sources[0], name=str(path), n_bytes=size, bytes_read=lambda: size, place=place
    )
    return replace(table, sources=(source,), source=source.name, found=tuple(sheet.notes))


@dataclass
class _Sheet:
    path: Path
    layout: FileLayout
    name: str
    #: By row, then by column, from the first of the sheet on; "" is an empty cell.
    cells: Cells
    #: Corners of merged cells.
    merged: Sequence[Corners]
    #: Numbers of the columns that hold anything, and of the rows below the names that do.
    columns: list[int]
    places: list[int]
    header: Header
    where: str
    notes: list[str]

    @classmethod
    def of(cls, path: Path, layout: FileLayout) -> "_Sheet":
        name, cells, merged = _cells_of(path, layout.sheet, asked=layout.unasked is None)
        where, start = _where(path, name), layout.skip_lines or 0
        width = max(map(len, cells), default=0)
        columns = [j for j in range(width) if any(row[j] != "" for row in cells[start:])]
        filled = [i for i in range(start, len(cells)) if any(value != "" for value in cells[i])]
        if not filled or (start and filled[0] > start):
            raise refused("no_such_row" if start else "empty_sheet", source=where, number=start + 1)
        first = [Record(i, i + 1, [as_name(cells[i][j]) for j in columns]) for i in filled[:_FIRST]]
        labels = [*map(_letters, columns)]
        header = HeaderSearch(first, layout, start, where, "row", labels=labels).header()
        below = [i for i in filled if i >= header.body]
        footer, notes = layout.skip_footer or 0, list(header.notes)
        places = below[: max(0, len(below) - footer)]
        if below and not places and layout.unasked is None:
            raise refused("all_skipped", source=where, n=len(below), footer=footer)
        sheet = cls(path, layout, name, cells, merged, columns, places, header, where, notes)
        if below[len(places) :]:
            n, begins = len(below) - len(places), sheet.words(below[len(places)])
            notes.append(left_out_words(n, begins))
        if layout.unasked is None:
            sheet.check()
        check_once(header, where, "row")
        return sheet

    def texts(self, i: int) -> list[str]:
        """Return a row's cells as texts."""
        return [as_name(self.cells[i][j]) for j in self.columns]

    def words(self, i: int) -> str:
        """Return a row's cells as one text."""
        return " | ".join(self.texts(i))

    def check(self) -> None:
        """Raise `DataError` if there is more than one table, or a row is no row of it."""
        self._check_side_by_side()
        top_row = self.header.body if self.header.at is None else self.header.at.first
        for (top, left), (bottom, right) in self.merged:  # all but the first would be missing
            if bottom >= top_row and top < len(self.cells) and left < len(self.cells[top]):
                raise refused(
                    "merged", source=self.where, first=_cell(top, left), last=_cell(bottom, right)
                )
        head = None if self.header.at is None else self.cells[self.header.at.first]
        again = [i for i in self.places if self.cells[i] == head and len(self.columns) > 1]
        if again:
            self.places = [i for i in self.places if i not in again]
            self.notes.append(repeated_words([i + 1 for i in again]))
        if self.layout.skip_footer == 0 or not self.places:
            return
        last = [self.texts(i) for i in self.places[-MOST_BELOW:]]
        upper = [self.texts(i) for i in self.places[:_FIRST]]
        first = FirstRows.of(upper, len(self.columns))
        for k in range(1, len(self.places)):
            if self.places[k] - self.places[k - 1] > 1:
                row = self.texts(self.places[k])
                if first.is_names(row) or first.is_bare(row) or sum(map(bool, row)) == 1:
                    self._refuse_below(k, "another_table")
        n = first.n_below(last, len(self.places))
        always = [self.columns[j] for j in first.always]
        gaps = (
            i for i in self.places
            if "" in self.cells[i] and any(self.cells[i][j] == "" for j in always)
        )  # fmt: skip
        among = [i for i in gaps if first.is_total(self.texts(i))]
        if among and among[0] not in self.places[len(self.places) - n :]:
            numbers = [i + 1 for i in among]
            raise totals_error(self.where, "row", numbers, len(among), self.words(among[0]))
        if n:
            self._refuse_below(len(self.places) - n, "notes")

    def _refuse_below(self, k: int, what: str) -> NoReturn:
        first, last = self.places[k] + 1, self.places[-1] + 1
        begins = self.words(self.places[k])
        words = below_words(self.where, "row", first, last, begins, what)

        def read_without(n: int) -> None:
            _Sheet.of(self.path, replace(self.layout, skip_footer=n))

        n = len(self.places) - k + (self.layout.skip_footer or 0)
        raise below_error(words, n, read_without)

    def _check_side_by_side(self) -> None:
        """Raise `DataError` if two tables are side by side, with an empty column between them."""
        names = dict(zip(self.columns, self.header.names, strict=True))
        blocks: list[list[int]] = []
        for j in self.columns:
            if names[j] in self.header.left_out:
                continue
            if not blocks or j - blocks[-1][-1] > 1:
                blocks.append([])
            blocks[-1].append(j)
        if len(blocks) < 2:
            return
        sizes = []
        for block in blocks:
            rows = enumerate(self.places, 1)
            filled = (k for k, i in rows if any(self.cells[i][j] != "" for j in block))
            sizes.append(max(filled, default=0))
        short = (
            0 < n <= _SHORT * len(self.places) and len(block) > 1
            and all(self.cells[i][j] != "" for i in self.places[:n] for j in block)
            for n, block in zip(sizes, blocks, strict=True)
        )  # fmt: skip
        if not any(short):
            return
        spans = [f"{_letters(block[0])}:{_letters(block[-1])}" for block in blocks]
        parts = [f"{span} ({n_rows(n)})" for span, n in zip(spans, sizes, strict=True)]
        largest = spans[max(range(len(spans)), key=lambda k: sizes[k] * len(blocks[k]))]
        sheet = f"{self.name}!{largest}"
        add = ""
        with suppress(DataError):
            _Sheet.of(self.path, replace(self.layout, sheet=sheet))
            add = f"--read {shlex.quote(f'sheet={sheet}')}"
        raise refused("side_by_side", add, source=self.where, parts=joined(parts))


# --- files within a workbook ----------------------------------------------------------------------


def _errors(path: Path, sheet: str, *, asked: bool) -> Iterator[tuple[int, int, str]]:
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
                    column = _column_number(element.get("r", ""), column + 1)
                    value = _child(element, "v")
                    if element.get("t") == "e":
                        yield row, column, value or "#ERROR!"
                    elif (
                        asked
                        and _child(element, "f") is not None
                        and not value
                        and not element.get("t")
                    ):
                        raise refused(
                            "not_calculated", source=_where(path, sheet), cell=_cell(row, column)
                        )


def _has(file: IO[bytes], words: tuple[bytes, ...]) -> bool:
    end = b""
    while block := file.read(1 << 20):
        if any(word in end + block for word in words):
            return True
        end = block[-32:]
    return False


def _child(element: ElementTree.Element, tag: str) -> str | None:
    return next((c.text or "" for c in element if c.tag.rpartition("}")[2] == tag), None)


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    (keys,) = (e.attrib for e in book.iter() if e.get("name") == sheet and "sheetId" in e.attrib)
    (key,) = (value for name, value in keys.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    (target,) = (e.get("Target", "") for e in links if e.get("Id") == key)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _opendocument_errors(path: Path) -> set[str]:
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


def _letters(column: int) -> str:
    """Return the sheet's name for a column, numbered from 0: A, B, ..., Z, AA, ..."""
    text = ""
    while column >= 0:
        column, letter = column // 26 - 1, column % 26
        text = chr(ord("A") + letter) + text
    return text


def _cell(row: int, column: int) -> str:
    """Return the sheet's name for a cell, such as ``C7``."""
    return f"{_letters(column)}{row + 1}"


def _column_number(name: str, otherwise: int = -1) -> int:
    """Return the number, from 0, of the column of a cell's name, if it has one."""
    column = 0
    for letter in name.rstrip("0123456789"):
        column = 26 * column + ord(letter) - ord("A") + 1
    return column - 1 if name else otherwise
