"""Exports of the world's programs: the clean table, the cases, and how texts are written and read.

Each case writes a file and returns its clean twin, and a function that reads the file back by means
that are not ours. Twins are rounded to what the file shows.
"""

import csv
import io
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

#: Rows of the planted outliers.
ODD = (7, 77, 177, 277, 377)

Form = Callable[[Any], str]
Undo = Callable[[str], Any]


@dataclass(frozen=True)
class Written:
    """A file, what its owner reads in it, and how to verify that."""

    twin: pd.DataFrame
    #: Read the file back without hushtable.
    back: Callable[[], pd.DataFrame]
    #: Other right readings, such as a category in place of a date.
    also: tuple[pd.DataFrame, ...] = ()


@dataclass(frozen=True)
class World:
    """An export: what it is, what its owner knows, and what must come of it."""

    name: str
    #: Which program or country writes it.
    why: str
    make: Callable[[Path], Written]
    ending: str = "csv"
    #: "right", or "right or refused" where a careful tool may refuse.
    must: str = "right"
    #: Options that the owner knows: a codebook, an encoding, the name of a table.
    knows: Mapping[str, str] = field(default_factory=dict)
    #: Columns that the owner can spare, such as identifiers.
    spare: tuple[str, ...] = ()
    #: Modules that write the file.
    needs: tuple[str, ...] = ()
    #: Whether the twin has a line of names; without, it is read with --no-header.
    header: bool = True

    def write(self, folder: Path) -> tuple[Path, Written]:
        """Write the file into a folder."""
        path = folder / f"{self.name}.{self.ending}"
        return path, self.make(path)


WORLD: dict[str, World] = {}


def export(why: str, ending: str = "csv", must: str = "right", **fields: Any) -> Callable[..., Any]:
    """Register a function that writes an export."""

    def register(make: Callable[[Path], Written]) -> Callable[[Path], Written]:
        WORLD[make.__name__] = World(make.__name__, why, make, ending, must, **fields)
        return make

    return register


MAY_REFUSE = "right or refused"


def base(seed: int, sites: str = "Alpha Beta Gamma Delta", n: int = 400) -> pd.DataFrame:
    """Return days, a category, amounts, counts, shares and levels, with five planted outliers."""
    rng = np.random.default_rng([2026, seed])
    table = pd.DataFrame({
        "day": [date(2026, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 320, n)],
        "site": rng.choice(sites.split(), n, p=[0.4, 0.3, 0.2, 0.1]),
        "amount": rng.lognormal(7, 0.6, n).round(2),
        "count": rng.integers(1, 40, n),
        "share": rng.beta(4, 10, n).round(3),
        "level": rng.normal(-2, 6, n).round(1),
    })  # fmt: skip
    for k, row in enumerate(ODD):
        table.loc[row, "amount"] = [148000.5, 139211.25, 0.03, 151234.0, 127650.75][k]
        table.loc[row, "count"] = [390, 1, 402, 377, 350][k]
        table.loc[row, "level"] = [61.5, -48.0, 55.5, -51.5, 49.0][k]
    return table


def named(table: pd.DataFrame, names: str) -> pd.DataFrame:
    """Rename all columns, in their order."""
    return table.set_axis(names.split(), axis=1)


def moments(table: pd.DataFrame, seed: int, step: int = 60) -> list[datetime]:
    """Return a point in time on each day of the first column."""
    seconds = np.random.default_rng([7, seed]).integers(0, 86400 // step, len(table)) * step
    return [
        datetime(d.year, d.month, d.day) + timedelta(seconds=int(s))
        for d, s in zip(table.iloc[:, 0], seconds, strict=True)
    ]


def chance(seed: int, share: float = 0.5, n: int = 400) -> np.ndarray:
    """Return n truth values; False in the rows of planted outliers."""
    drawn = np.random.default_rng([11, seed]).random(n) < share
    drawn[list(ODD)] = False
    return drawn


# How values are written.


def grouped(value: float, thousands: str, decimal: str, digits: int = 2) -> str:
    """Write a number with signs for thousands and decimals."""
    text = f"{value:,.{digits}f}"
    return text.translate({ord(","): thousands, ord("."): decimal})


def comma(value: Any) -> str:
    """Write a number with a decimal comma."""
    return str(value).replace(".", ",")


def lakhs(value: float) -> str:
    """Write a number in the Indian manner: three digits, then groups of two."""
    whole, _, rest = f"{abs(value):.2f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    pairs = [head[max(0, i - 2) : i] for i in range(len(head), 0, -2)][::-1]
    return "-" * (value < 0) + ",".join([*pairs, tail]) + "." + rest


def digits_of(zero: str) -> dict[int, str]:
    """Return the table that turns ASCII digits into those of another script."""
    return {ord("0") + i: chr(ord(zero) + i) for i in range(10)}


# How values are read back.


def plain(text: str) -> float:
    """Read a number behind whatever surrounds it: digits of all scripts, dots as decimals."""
    signs = [str(unicodedata.decimal(s)) if s.isdecimal() else s for s in text]
    return float("".join(s for s in signs if s.isdigit() or s in ".-").strip("."))


def european(text: str) -> float:
    """Read a number with a decimal comma; dots are thousands."""
    return plain(text.replace(".", "").replace(",", "."))


def scaled(text: str, factor: str) -> float:
    """Multiply a decimal number without a binary fault."""
    return float(Decimal(text) * Decimal(factor))


def month_number(locale: str, name: str, width: str = "wide") -> int:
    """Look a month up in CLDR."""
    dates = pytest.importorskip("babel.dates")
    names = dates.get_month_names(width, "format", locale)
    return {str(value).strip(".").lower(): key for key, value in names.items()}[
        name.strip(".").lower()
    ]


def day_in(locale: str, width: str = "wide") -> Undo:
    """Return a function that reads day, name of a month and year."""

    def read(text: str) -> str:
        day, month, year = (word for word in text.split() if word != "de")
        return date(int(year), month_number(locale, month, width), int(day.strip("."))).isoformat()

    return read


def day_by(pattern: str) -> Undo:
    """Return a function that reads a day by a pattern of strptime, in digits of any script."""

    def read(text: str) -> str:
        latin = "".join(str(unicodedata.decimal(s)) if s.isdecimal() else s for s in text)
        return datetime.strptime(latin, pattern).date().isoformat()

    return read


# Files of delimited text.


def spelled(table: pd.DataFrame, forms: Mapping[str, Form]) -> pd.DataFrame:
    """Return the texts of a table; None is an empty cell."""

    def column(name: str) -> list[str]:
        form = forms.get(name, str)
        return ["" if pd.isna(value) else form(value) for value in table[name]]

    return pd.DataFrame({name: column(name) for name in table.columns})


def text_of(texts: pd.DataFrame, delimiter: str = ",", newline: str = "\n") -> str:
    """Return delimited text, with quotes where they are needed."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=newline)
    writer.writerow(texts.columns)
    writer.writerows(texts.itertuples(index=False))
    return out.getvalue()


def undone(texts: pd.DataFrame, undo: Mapping[str, Undo]) -> pd.DataFrame:
    """Turn each column's texts into values; others stay texts."""
    same: Undo = str
    return pd.DataFrame({
        name: [undo.get(name, same)(text) if text != "" else None for text in texts[name]]
        for name in texts.columns
    })  # fmt: skip


def cells_back(text: str, delimiter: str = ",") -> pd.DataFrame:
    """Read delimited text as cells."""
    first, *others = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return pd.DataFrame(others, columns=first)


def delimited(
    path: Path,
    twin: pd.DataFrame,
    forms: Mapping[str, Form],
    undo: Mapping[str, Undo],
    delimiter: str = ",",
    encoding: str = "utf-8",
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    also: tuple[pd.DataFrame, ...] = (),
) -> Written:
    """Write delimited text, with lines above the names and below the rows."""
    text = text_of(spelled(twin, forms), delimiter)
    lines = [f"{line}\n" for line in above], [f"{line}\n" for line in below]
    path.write_bytes("".join([*lines[0], text, *lines[1]]).encode(encoding))

    def back() -> pd.DataFrame:
        read = path.read_bytes().decode(encoding).split("\n")
        kept = read[len(above) : len(read) - 1 - len(below)]
        return undone(cells_back("\n".join(kept), delimiter), undo)

    return Written(twin, back, also)
