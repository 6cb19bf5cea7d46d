"""Rows in a sheet of a workbook: Excel's .xlsx and .xls, and OpenDocument's .ods."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.data.readers._arrow import arrow
from hushtable.data.readers._layout import Layout
from hushtable.data.readers._reader import Reader, column_names
from hushtable.data.readers._sheet_cells import (
    Cells,
    as_column,
    as_name,
    as_texts,
    cell,
    cells_of,
    letters,
)
from hushtable.data.readers._totals import looks_like_total, total_refused
from hushtable.data.readers._unasked import Unasked
from hushtable.errors import DataError

#: Among so many rows the names are looked for.
_FIRST = 30


def sheet_file(path: Path, layout: Layout) -> Reader:
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
