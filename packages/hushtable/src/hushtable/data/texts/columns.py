"""Columns as they were understood, and the options that resolve doubts about them."""

import csv
import io
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hushtable.data.texts.reading import ColumnReading, Reading

Kind: TypeAlias = Literal["number", "date", "category", "id", "text", "constant", "empty"]


@dataclass(frozen=True)
class ColumnUnderstanding:
    """One column as it was understood.

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "date", "category", "id", "text", "constant", "empty"}
        Where "id" is an identifier and "text" free text.
    confidence : float
        From 0 to 1.
    evidence : str
        What it was seen by.
    doubt : str
        What a person should look at; empty if there is nothing.
    options : tuple of (str, str)
        Options of the command line that resolve the doubt, each with its value.
    refused : bool
        Whether `fit` refuses the column until the doubt is resolved. (The command refuses
        identifiers and free text, too.)
    reading : ColumnReading or None
        How its texts become values; None for columns that hold values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"seen": ["05/11/2026", "01/02/2026"]}))
    >>> one.kind, one.refused, one.option
    ('date', True, '--dates dmy')
    """

    name: str
    kind: Kind
    confidence: float
    evidence: str
    doubt: str = ""
    options: tuple[tuple[str, str], ...] = ()
    refused: bool = False
    reading: ColumnReading | None = None

    @property
    def option(self) -> str:
        """The options as they are typed in a shell."""
        return joined_options(self.options)


def joined_options(options: Iterable[tuple[str, str]], reading: Reading | None = None) -> str:
    """Return options as they are typed in a shell, the values of each together.

    Those that a ``reading`` was given already come first.
    """
    together: dict[str, list[str]] = {}
    if reading is not None:
        together["--missing"] = list(reading.missing)
        together["--as"] = [f"{name}={kind}" for name, kind in reading.kinds.items()]
        together["--drop"] = list(reading.drop)
    asked = list(options)
    for flag, value in asked:
        values = together.setdefault(flag, [])
        if value not in values:
            values.append(value)
    used = dict.fromkeys(flag for flag, _ in asked)
    return " ".join(f"{flag} {quoted(together[flag])}" for flag in used)


def quoted(values: Iterable[str]) -> str:
    """Return values as an option takes them, parted by commas, quoted for the shell."""
    values = list(values)
    if values in ([","], ["."]):
        return values[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    text = line.getvalue().removesuffix("\n")
    return shlex.quote(text) if os.name == "posix" else text
