"""How a file is laid out, where its reader should not find out by itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Layout of a file or the like, as far as it is given; None: the reader finds out."""

    #: As Python names it, such as ``"cp1252"``.
    encoding: str | None = None
    #: One character between two fields.
    delimiter: str | None = None
    #: False: there is no line of names, and columns are called ``column 1``, ``column 2``, ...
    header: bool | None = None
    #: Lines above the line of names, or above the first row if there is none.
    skip_lines: int | None = None
    #: Name of a sheet.
    sheet: str | None = None
    #: Question to a database, in SQL.
    query: str | None = None
