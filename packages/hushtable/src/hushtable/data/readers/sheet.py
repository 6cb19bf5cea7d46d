"""Rows in a sheet of a workbook: Excel's .xlsx and .xls, and OpenDocument's .ods."""

import datetime as dt
import re
import shlex
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from hushtable.data.readers.dialect import check_named
from hushtable.data.readers.memory import arrow
from hushtable.data.readers.reader import FileLayout, Reader, Unasked, as_name
from hushtable.data.readers.sheet_parts import (
    Hidden,
    cell,
    column_number,
    errors,
    hidden,
    hidden_words,
    is_archive,
    letters,
)
from hushtable.data.readers.sheet_rows import Cells, check_rows, check_side_by_side, row_words
from hushtable.data.readers.totals import left_out_words
from hushtable.data.sentinels import WORDS
from hushtable.errors import DataError, UsageError
from hushtable.language import _

#: A sheet and its columns, as Excel writes them.
_COLUMNS = re.compile("'?(?P<sheet>.+?)'?!(?P<first>[A-Z]{1,3}):(?P<last>[A-Z]{1,3})")
#: Raised by the libraries for damaged archives and XML, and for missing parts.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError, LookupError, ValueError,
    NotImplementedError,
)  # fmt: skip
_SAVE = "open it and save it as .xlsx"


def cells_of(
    path: Path, wanted: str | None, *, asked: bool = True
) -> tuple[str, Cells, list[Any], Hidden]:
    """Return the name of a sheet, its cells, merged cells, and hidden rows and columns.

    ``wanted`` may end in columns, as in ``Sheet1!A:F``: then cells of other columns are empty. A
    formula without a value is refused if a person is ``asked``, and otherwise missing.
    """
    import python_calamine as calamine

    _check_start(path)
    try:
        _check_opendocument(path)
        with path.open("rb") as file, calamine.CalamineWorkbook.from_object(file) as book:
            wanted, columns = _of_columns(wanted, book.sheet_names)
            sheet = _one_sheet(book, path, wanted)
            cells = sheet.to_python(skip_empty_area=False)
            merged = sheet.merged_cell_ranges or []
        if is_archive(path):
            for row, column, text in errors(path, sheet.name, asked=asked):
                cells[row][column] = text
        elif asked:
            _check_texts(path, sheet.name, cells)
        gone = hidden(path, sheet.name)
    except (DataError, UsageError):
        raise
    except calamine.PasswordError:
        raise _password(path) from None
    except (*_DAMAGED, calamine.CalamineError) as error:
        raise DataError(
            f"{path}: not a readable workbook, or a damaged one ({error}): {_SAVE}"
        ) from None
    if columns is not None:
        before = [""] * columns.start
        cells = [before + row[columns] for row in cells]
        merged = [(a, b) for a, b in merged if columns.start <= a[1] and b[1] < columns.stop]
    return sheet.name, cells, merged, gone


def _of_columns(wanted: str | None, names: Sequence[str]) -> tuple[str | None, slice | None]:
    """Split ``Sheet1!A:F`` into the name of a sheet and the columns, if no sheet has that name."""
    found = _COLUMNS.fullmatch(wanted or "")
    if wanted in names or found is None:
        return wanted, None
    first, last = column_number(found["first"]), column_number(found["last"])
    if first > last:
        raise UsageError(f"--read sheet={wanted}: the first column comes after the last")
    return found["sheet"], slice(first, last + 1)


def _password(path: Path) -> DataError:
    return DataError(f"{path}: protected by a password: save it without one")


def _check_start(path: Path) -> None:
    """Explain why a file that is named like a workbook is not one."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        # An encrypted .xlsx has the container format of an old .xls.
        if "EncryptedPackage".encode("utf-16-le") in path.read_bytes():
            raise _password(path)
    elif not start.startswith(b"PK"):
        text = start.lstrip(b"\xef\xbb\xbf \r\n\t")
        if text.startswith(b"<"):
            raise DataError(f"{path}: a web page or XML named like a workbook: {_SAVE}")
        raise DataError(
            f"{path}: not a workbook: {_SAVE}, or rename it to .csv if it is text with a delimiter"
        )


def _check_opendocument(path: Path) -> None:
    """Raise `ElementTree.ParseError` for broken XML, on which calamine would hang."""
    if is_archive(path):
        with zipfile.ZipFile(path) as archive:
            if "content.xml" in archive.namelist():
                with archive.open("content.xml") as file:
                    for _, element in ElementTree.iterparse(file):
                        element.clear()


def _check_texts(path: Path, sheet: str, cells: Cells) -> None:
    """Raise `DataError` for texts of an old .xls whose encoding calamine misread."""
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            if isinstance(value, str) and "\0" in value:
                raise DataError(
                    f"{path}: sheet {sheet!r}: {cell(i, j)} holds a NUL character, which does not "
                    f"occur in text: {_SAVE}"
                )


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
        add = "" if largest is None else f"\nAdd: --read {shlex.quote(f'sheet={largest.name}')}"
        raise DataError(f"{path}: {held}: choose one with --read sheet=NAME{add}")
    return filled[0]


#: Cells without a value: the words are the same as in CSV files.
_NO_VALUE = frozenset(("", *WORDS))


def as_texts(values: list[Any]) -> pa.Array:
    """Return cells of a column as texts, each on its own, whatever types the others have."""
    texts = [None if value in _NO_VALUE else as_name(value) for value in values]
    return pa.array(texts, pa.string())


def as_column(values: list[Any]) -> pa.Array:
    """Return cells of a column, as text if they have several types."""
    values = [None if value in _NO_VALUE else value for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float}:
        whole = all(v is None or (abs(v) <= 2**53 and v == int(v)) for v in values)
        return pa.array(values, pa.int64() if whole and kinds else pa.float64())
    if kinds == {dt.date, dt.datetime}:  # the latter if there is a time of day
        midnight = dt.time()
        values = [dt.datetime.combine(v, midnight) if type(v) is dt.date else v for v in values]
        return pa.array(values, pa.timestamp("us"))
    if len(kinds) > 1 or kinds == {str}:
        values = [None if value is None else as_name(value) for value in values]
        return pa.array(values, pa.string())
    return pa.array(values)


#: Number of rows in which the names are searched.
_FIRST = 30


def sheet_file(path: Path, layout: FileLayout) -> Reader:
    """Read the only sheet with rows, or the one that ``layout`` names, into memory."""
    unasked = layout.unasked
    check_named(layout, str(path))
    sheet, cells, merged, gone = cells_of(path, layout.sheet, asked=unasked is None)
    where = f"{path}: sheet {sheet!r}"
    skipped = layout.skip_lines or 0
    if layout.header is False:
        header, first = None, skipped
    else:
        header = skipped if layout.skip_lines is not None else _header(cells, where, unasked)
        first = header + 1
    every, places = _rows(cells, first, layout, where)
    width = max(map(len, cells), default=0)
    used = [j for j in range(width) if any(cells[i][j] != "" for i in places)]
    if header is None:
        names = {j: f"column {k}" for k, j in enumerate(used, 1)}
    else:
        names = _names(cells, header, where)
    found = [_("%(n)s rows above the names left out", n=header)] if header else []
    if unasked is None:
        found += _name_index(names, used, cells, places, header or 0, where)
        check_side_by_side(cells, places, names, where, sheet)
        _refuse_merged(merged, first - (header is not None), cells, where)
        check_rows(cells, places, names, where, layout)
    _refuse_twice(names, header or 0, where)
    order = sorted(names)
    made = as_column if unasked is None else as_texts
    columns = [made([cells[i][j] for i in places]) for j in order]
    table = pa.Table.from_arrays(columns, [names[j] for j in order])
    if below := every[len(places) :]:
        found.append(left_out_words(len(below), row_words(cells[below[0]])))
    return replace(
        arrow(table),
        source=str(path),
        n_bytes=path.stat().st_size,
        bytes_read=lambda: path.stat().st_size,
        place=lambda row: _("row %(n)s of sheet %(name)s", n=places[row] + 1, name=repr(sheet)),
        found=(*found, *hidden_words(gone, places, order)),
    )


def _rows(cells: Cells, first: int, layout: FileLayout, where: str) -> tuple[list[int], list[int]]:
    """Return the numbers of all rows from one on, and of the rows that are not left out.

    A row without any value does not count, like a blank line of a CSV file.
    """
    every = [i for i in range(first, len(cells)) if any(value != "" for value in cells[i])]
    places = every[: max(0, len(every) - layout.footer)]
    if every and not places and layout.unasked is None:
        raise DataError(
            f"{where} has {len(every):,} rows below the names, and --read "
            f"skip_footer={layout.footer} "
            "leaves out all of them: lower it"
        )
    return every, places


def _name_index(
    names: dict[int, str],
    used: Sequence[int],
    cells: Cells,
    places: Sequence[int],
    header: int,
    where: str,
) -> list[str]:
    """Name the first column if it is the only one without a name, and return words on it.

    Raises `DataError` for other columns with values and without a name. If the first row has no
    other value, it is not a row: pandas writes names of indexes there.
    """
    nameless = [j for j in used if j not in names]
    if not nameless:
        return []
    j = nameless[0]
    if nameless == [used[0]] and len(used) > 1 and any(cells[places[0]][k] != "" for k in used[1:]):
        names[j] = "column 1"
        return [f"column {letters(j)} has no name: called {names[j]!r}"]
    i = next(i for i in places if cells[i][j] != "")
    raise DataError(
        f"{where}: column {letters(j)} has values, such as {as_name(cells[i][j])!r} in "
        f"{cell(i, j)}, but no name in row {header + 1}: name it, empty it, or specify where the "
        "names are with --read skip_lines=N or --read no_header=true"
    )


def _names(cells: Cells, header: int, where: str) -> dict[int, str]:
    """Return the names in the row of this number, by column."""
    if header >= len(cells):
        raise DataError(f"{where} has no row {header + 1}: lower --read skip_lines=...")
    return {j: as_name(value) for j, value in enumerate(cells[header]) if value != ""}


def _refuse_twice(names: dict[int, str], header: int, where: str) -> None:
    first: dict[str, int] = {}
    for j, name in names.items():
        if (i := first.setdefault(name, j)) != j:
            raise DataError(
                f"{where}: column {name!r} is listed twice, in {cell(header, i)} and "
                f"{cell(header, j)}: rename one of the two"
            )


def _header(cells: Cells, where: str, unasked: Unasked | None) -> int:
    """Return the number of the header row: the first that has a text in each used column.

    If no person can be asked, the first that holds the names of a schema.
    """
    if unasked is not None:
        named = (i for i, row in enumerate(cells) if unasked.is_header([*map(as_name, row)]))
        if (at := next(named, None)) is None:
            raise DataError(
                f"{where}: no row contains all required column names, {list(unasked.names)[:5]}: "
                "add a header row above the others"
            )
        return at
    width = max((sum(v != "" for v in row) for row in cells[:_FIRST]), default=0)
    for i, row in enumerate(cells[:_FIRST]):
        filled = [value for value in row if value != ""]
        # Lines above a table fill one or two cells.
        if filled and (2 * len(filled) > width or _is_above_index(row, cells[i + 1 : _FIRST])):
            other = next((j for j, v in enumerate(row) if not isinstance(v, str)), None)
            if other is None:
                return i
            raise DataError(
                f"{where}: row {i + 1} should hold the names of the columns, but {cell(i, other)} "
                f"holds {row[other]}: confirm that it is a row of values (--read no_header=true), "
                f"or that "
                f"these are names (--read skip_lines={i})\nAdd: --read no_header=true"
            )
    raise DataError(f"{where} is empty: needs a row of names, and rows of values below it")


def _is_above_index(row: list[Any], below: Cells) -> bool:
    """Return whether a row names only the second of two columns, above numbers or dates.

    So pandas writes a series.
    """
    used = sorted({j for other in below for j, value in enumerate(other) if value != ""})
    filled = [j for j, value in enumerate(row) if value != ""]
    return len(used) == 2 and filled == used[1:] and not all(isinstance(v, str) for v in below[0])


def _refuse_merged(merged: Any, first: int, cells: Cells, where: str) -> None:
    """Refuse merged cells in the table: except for the first, their values would be missing."""
    for (top, left), (bottom, right) in merged:
        if bottom >= first and top < len(cells) and left < len(cells[top]):
            raise DataError(
                f"{where}: the cells {cell(top, left)}:{cell(bottom, right)} are merged, and hold "
                "a single value: unmerge them, and fill in each cell"
            )
