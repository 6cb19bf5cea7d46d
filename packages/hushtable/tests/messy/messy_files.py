"""Tables written as other systems write them, and the list of cases.

A case makes a `File`: a path, and the table that a careful person reads in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from messy_tables import Column, Table
from python_calamine import load_workbook


@dataclass(frozen=True)
class Style:
    """How a system writes values and lines."""

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    missing: str = ""
    day: str = "%Y-%m-%d"
    time: str = " %H:%M"
    encoding: str = "utf-8"
    newline: str = "\n"
    quoted: bool = False

    def number(self, value: float, digits: int) -> str:
        text = f"{value:,.{digits}f}"
        return text.translate({ord(","): self.thousands, ord("."): self.decimal})

    def texts(self, column: Column) -> list[str]:
        """Write one column's values."""
        if column.kind == "number":
            written = [self.number(value, column.digits) for value in column.values]
        elif column.kind == "date":
            timed = (column.values != column.values.astype("datetime64[D]")).any()
            form = self.day + self.time * bool(timed)
            written = [value.strftime(form) for value in column.values.tolist()]
        else:
            written = list(column.values)
        return [
            self.missing if gap else text for text, gap in zip(written, column.missing, strict=True)
        ]

    def line(self, cells: Sequence[str]) -> str:
        """Write one line, with quotes where they are needed or the style has them always."""
        special = (self.delimiter, '"', "\n")
        return self.delimiter.join(
            '"' + cell.replace('"', '""') + '"'
            if self.quoted or any(mark in cell for mark in special)
            else cell
            for cell in cells
        )


GERMAN = Style(";", ",", ".", day="%d.%m.%Y", encoding="cp1252", newline="\r\n")
FRENCH = Style(";", ",", "\N{NARROW NO-BREAK SPACE}", day="%d/%m/%Y", missing="n.d.")
US = Style(thousands=",", day="%m/%d/%Y", time=" %I:%M %p", newline="\r\n")


@dataclass(frozen=True)
class File:
    """What a case made, and what is right."""

    path: Path
    #: What a careful person reads in it; a row that is none of data has no label.
    table: Table
    style: Style = Style()
    #: Other readings that are right, too, such as a value below the limit taken as the limit.
    also: tuple[Table, ...] = ()
    #: By column, the texts in it that are no values of it.
    bad: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Columns of numbers that read well but stand for something else: a doubt must be said.
    said: Mapping[str, str] = field(default_factory=dict)
    #: What the person who has the file knows, by option.
    knows: Mapping[str, str] = field(default_factory=dict)
    #: Options that this person gives at once.
    given: tuple[str, ...] = ()
    #: Lines, from 1, that this person strikes out when a message names one of them
    #: and no option.
    strike: tuple[int, ...] = ()
    #: For reading back: lines above the header (None: there is no header) and below the rows.
    above: int | None = 0
    below: int = 0

    @property
    def readings(self) -> tuple[Table, ...]:
        return (self.table, *self.also)

    def lines(self) -> list[str]:
        """Return the lines of a file of text, or the rows of a sheet."""
        if self.path.suffix == ".xlsx":
            book = load_workbook(self.path)
            sheet = book.get_sheet_by_name(self.knows.get("--sheet", book.sheet_names[0]))
            rows = sheet.to_python(skip_empty_area=False)
            return ["\t".join(map(str, row)) for row in rows]
        return self.path.read_bytes().decode(self.style.encoding).splitlines()

    def struck(self) -> "File":
        """Return the file without the lines that its owner strikes out."""
        lines = self.lines()
        kept = [line for i, line in enumerate(lines, 1) if i not in self.strike]
        text = self.style.newline.join([*kept, ""])
        path = self.path.with_stem(self.path.stem + "-struck")
        path.write_bytes(text.encode(self.style.encoding))
        return replace(self, path=path, strike=())


class Cells:
    """The texts of a table, to be spoilt one by one and written."""

    def __init__(self, table: Table, style: Style) -> None:
        self.table, self.style = table, style
        self.names = list(table.names)
        self.columns = {one.name: style.texts(one) for one in table.columns}

    def change(self, name: str, change: Callable[[str], str]) -> "Cells":
        """Write every value of a column in another way."""
        self.columns[name] = [change(text) if text else text for text in self.columns[name]]
        return self

    def put(self, name: str, texts: Mapping[int, str]) -> "Cells":
        """Write texts in some rows; they are no values, and the table has none there."""
        for row, text in texts.items():
            self.columns[name][row] = text
        self.table = self.table.without(name, list(texts))
        return self

    def rows(self) -> list[list[str]]:
        return [list(row) for row in zip(*self.columns.values(), strict=True)]

    def lines(self) -> list[str]:
        """Return the header's line and the rows'."""
        return [self.style.line(cells) for cells in [self.names, *self.rows()]]

    def write(self, path: Path, lines: Sequence[str] | None = None, **fields: Any) -> File:
        """Write ``lines``, else the header and the rows."""
        text = self.style.newline.join([*(self.lines() if lines is None else lines), ""])
        path.write_bytes(text.encode(self.style.encoding))
        return File(path, fields.pop("table", self.table), self.style, **fields)


def plain_rows(table: Table, n: int) -> list[int]:
    """Choose rows, spread over the table, that are no outliers and miss nothing."""
    good = np.all([~one.missing for one in table.columns], axis=0) & (table.odd == 0)
    return [int(row) for row in np.flatnonzero(good)[:: good.sum() // n][:n]]


Maker = Callable[[Table, Path], File]


@dataclass(frozen=True)
class Case:
    """A habit of some system, and what may come of it."""

    name: str
    make: Maker
    table: Callable[[], Table]
    #: "right": without a question; "refused": a guess would be wrong half of the time; "any":
    #: right, or refused with the option that makes it right; "final": right, or refused for good.
    must: str = "any"
    #: Also through the command line.
    command: bool = False

    def file(self, folder: Path) -> File:
        """Make the file."""
        return self.make(self.table(), folder)


CASES: dict[str, Case] = {}


def case(
    table: Callable[[], Table], must: str = "any", *, command: bool = False
) -> Callable[[Maker], Maker]:
    """Register the function below as a case, by its name."""

    def register(make: Maker) -> Maker:
        name = make.__name__
        assert name not in CASES, name
        CASES[name] = Case(name, make, table, must, command)
        return make

    return register
