"""The rows that a command reads: which columns, and how their texts are read."""

import csv
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import typer

from hushtable.cli import _omop
from hushtable.cli._errors import explain, notes
from hushtable.cli._options import Columns, Drop, option
from hushtable.cli._output import listed
from hushtable.data.readers import FileLayout, Reader, Unasked, as_reader
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import left_out, open_rows
from hushtable.data.understanding import chosen
from hushtable.errors import DataError, UsageError

_Missing = Annotated[
    str | None, option("A,B,...", "These texts, or numbers such as -9999, are missing values.")
]
_Decimal = Annotated[str | None, option(",|.", "Sign before the decimals, where it is in doubt.")]
_Dates = Annotated[
    str | None, option("dmy|mdy|ymd", "Order of day, month and year, where it is in doubt.")
]
_As = Annotated[
    list[str] | None,
    option(
        "A=KIND,...",
        "Read columns as number, date, category or id. As a number, <0.5 is 0.5, and what is no "
        "number is missing; an id is left out.",
        "--as",
    ),
]
_Encoding = Annotated[str | None, option("NAME", "Encoding of text files, such as cp1252.")]
_Delimiter = Annotated[str | None, option("SIGN", "Sign between the fields of a CSV file.")]
_NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The file has no line of names: column 1, column 2, ...")
]
_SkipLines = Annotated[int | None, option("N", "Lines above the names of a file's columns.", min=0)]
_Sheet = Annotated[str | None, option("NAME", "Sheet of a workbook.")]
_Query = Annotated[
    str | None, option("SQL|FILE", "Question to a database, or the .sql file that holds it.")
]

#: Nothing is known of how rows are read.
_NONE = Reading()


@dataclass(frozen=True)
class Reads:
    """Options of every command that reads rows: which columns, and how they are read."""

    columns: Columns = None
    drop: Drop = None
    missing: _Missing = None
    decimal: _Decimal = None
    dates: _Dates = None
    as_: _As = None
    encoding: _Encoding = None
    delimiter: _Delimiter = None
    no_header: _NoHeader = False
    skip_lines: _SkipLines = None
    sheet: _Sheet = None
    query: _Query = None
    omop: _omop.Omop = None
    concepts: _omop.Concepts = None
    cdm: _omop.Cdm = None
    listed_units: _omop.ListedUnits = False

    @cached_property
    def recipe(self) -> Any:
        """How OMOP tables become rows, as far as options say."""
        return _omop.recipe(self.omop, self.concepts, self.cdm, self.listed_units)

    @property
    def schema(self) -> Schema | None:
        """The public schema of OMOP rows; None of others, whose ranges nobody knows."""
        if self.recipe is None:
            return None
        columns = None if self.columns is None else names_in(self.columns)
        schema: Schema = self.recipe.schema_of(columns, names_in(self.drop or ""))
        return schema

    @property
    def sources(self) -> list[str]:
        """Where the ranges of OMOP rows are from, a text a feature of the schema."""
        if self.recipe is None or self.schema is None:
            return []
        sources: list[str] = self.recipe.sources_of(self.schema)
        return sources

    def id_or(self, id_: str | None) -> str | None:
        """Return the column that tells rows: the one that is named, or the key of OMOP rows."""
        return self.recipe.key if id_ is None and self.recipe is not None else id_

    @property
    def reading(self) -> Reading:
        """How texts are read, as far as options say."""
        kinds: dict[str, str] = {}
        for one in [pair for said in self.as_ or [] for pair in names_in(said)]:
            name, equals, kind = one.rpartition("=")
            if not equals:
                raise UsageError(f"--as {one}: needs a column and a kind, such as --as tsh=number")
            kinds[name] = kind
        missing, drop = names_in(self.missing or ""), names_in(self.drop or "")
        said = Reading(tuple(missing), self.decimal, self.dates, kinds, tuple(drop))  # type: ignore[arg-type] # it checks
        return replace(said, layout=self.layout.kept)

    @property
    def layout(self) -> FileLayout:
        """How files are laid out, as far as options say."""
        header = False if self.no_header else None
        delimiter = {"tab": "\t", "\\t": "\t"}.get(self.delimiter or "", self.delimiter)
        return FileLayout(self.encoding, delimiter, header, self.skip_lines, self.sheet, self.query)

    def opened(self, data: str, model: Reading = _NONE, unasked: Unasked | None = None) -> Reader:
        """Open all columns as they are.

        ``model`` says how a model's rows were read; ``unasked``, that nobody is here to be asked.
        """
        recipe = self.recipe
        if recipe is not None:
            self.layout.check_used((), "--omop")
            rows: Reader = recipe.open(data)
            return rows
        try:
            layout = replace(self.layout, unasked=unasked)
            return as_reader(data, layout=layout, kept=model.layout)
        except OSError as error:
            scheme, address, _ = data.partition("://")
            name = f"{scheme}://..." if address else data  # which may hold a password
            raise DataError(f"cannot read {name}: {explain(error)}") from error

    def open(
        self,
        data: str,
        keep: Sequence[str] = (),
        model: Reading = _NONE,
        unasked: Unasked | None = None,
    ) -> Reader:
        """Open rows with the columns that are used, to be understood, and those to keep."""
        if self.columns is not None and self.drop is not None:
            raise UsageError("--columns and --drop exclude each other: give one of them")
        reading, reader = self.reading, self.opened(data, model, unasked)
        for words in reader.found:
            notes.append(f"{reader.source}: {words}")
        columns = None if self.columns is None else names_in(self.columns)
        if columns is not None and len(set(columns)) < len(columns):
            raise UsageError("--columns names a column twice: name each once")
        if columns is None and self.recipe is not None:
            columns = [name for name in reader.names or () if name not in self.recipe.identifiers]
        if reader.names and not keep and reading.dropped.issuperset(columns or reader.names):
            raise UsageError(f"{reader.source}: no column is left: leave fewer out")
        try:
            return chosen(reader, reading, columns, keep)
        except DataError as error:
            raise DataError(f"{error} (--columns, --drop, --as, --id, --keep, --person)") from None

    def open_as(
        self,
        data: str,
        schema: Schema,
        reading: Reading | None = None,
        keep: Sequence[str] = (),
        *,
        attended: bool = True,
    ) -> Reader:
        """Open rows under a schema, and say which columns are left out."""
        unasked = None if attended else Unasked([*schema.names, *keep] if schema.named else ())
        rows = self.open(data, keep, reading or _NONE, unasked)
        # Of a database, which has no layout to be found.
        return under(replace(rows, unasked=unasked), schema, reading, keep)


def under(
    reader: Reader,
    schema: Schema,
    reading: Reading | None = None,
    keep: Sequence[str] = (),
) -> Reader:
    """Return rows under a schema; which columns are left out is noted."""
    known = () if reading is None else reading.dropped
    further = [name for name in left_out(reader, schema, keep) if name not in known]
    if further:
        are = "it is no feature" if len(further) == 1 else "they are no features"
        notes.append(f"{reader.source}: left out, as {are}: {listed(further, most=5)}")
    return open_rows(reader, schema, reading, keep)


@dataclass(frozen=True)
class Rows:
    """Rows as the command line names them, and how a model's were read."""

    data: str
    reads: Reads
    reading: Reading
    threads: int
    quiet: bool

    def open(self, schema: Schema, keep: Sequence[str] = ()) -> Reader:
        """Open them under a schema; see `Reads.open_as`."""
        return self.reads.open_as(self.data, schema, self.reading, keep)


#: No option given.
READS = Reads()


def names_in(option: str) -> list[str]:
    """Split at commas; a name that holds one stands in double quotes, as in a CSV file."""
    return [name.strip() for name in next(csv.reader([option], skipinitialspace=True), [])]


def joined(names: Sequence[str]) -> str:
    """Return names as an option takes them, quoted for the shell."""
    fields = [f'"{name}"' if "," in name or name != name.strip() else name for name in names]
    text = ",".join(fields)
    return shlex.quote(text) if os.name == "posix" else text
