"""Options of commands that read the measurements of an OMOP CDM, which another package reads."""

import csv
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from hushtable import plugins
from hushtable.cli.errors import explain, notes
from hushtable.cli.options import Columns, Drop, flag, option
from hushtable.cli.output import MOST_LINES, listed, print_table, shown
from hushtable.data.persons import PersonsCounted
from hushtable.data.readers import FileLayout, Reader, Unasked, as_reader
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import ColumnUnderstanding, Reading
from hushtable.data.typed import left_out, open_rows
from hushtable.data.understanding import HEADERS, chosen, row
from hushtable.errors import DataError, UsageError

_Omop = Annotated[
    Literal["person", "visit"] | None,
    option(
        "person|visit",
        "DATA is a database with OMOP tables: its measurements as one row a person (the latest "
        "values) or a visit (the first ones).",
    ),
]
_Concepts = Annotated[
    Path | None,
    option("FILE", "With --omop: concept set; default: common vital signs and laboratory values."),
]
_Cdm = Annotated[
    str | None, option("NAME", "With --omop: schema of the database that has the tables.")
]
_ListedUnits = Annotated[
    bool,
    flag(
        "--listed-units",
        "With --omop: leave out measurements in other units than those of the concept set.",
    ),
]


def omop_recipe(omop: Any, concepts: Path | None, cdm: str | None, listed_units: bool) -> Any:
    """Return the recipe that options ask for, with what it reads; None without one."""
    if omop is None:
        given = {"--concepts": concepts, "--cdm": cdm, "--listed-units": listed_units or None}
        if alone := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{alone[0]} goes with --omop person or --omop visit")
        return None
    return plugins.extension("omop", "--omop", "connect")(omop, concepts, cdm, listed_units)


def person_columns(person: str | None, schema: Schema) -> list[str]:
    """Return the columns to keep beside the features; a feature is refused where it is counted."""
    return [] if person is None or person in schema.names else [person]


def person_facts(seen: PersonsCounted | None, nameless: int = 0) -> dict[str, Any]:
    """Return whose rows were counted, for machines; ``nameless`` answers of a book name nobody."""
    if seen is None:
        return {}
    return {
        "persons": {
            "persons": seen.n_persons,
            "rows_per_person": seen.most,
            "rows_left_out": seen.left_out,
            "persons_cut": seen.cut,
            **({} if seen.register is None else _known(seen, nameless)),
        }
    }


def _known(seen: PersonsCounted, nameless: int) -> dict[str, int]:
    return {
        "persons_known": seen.known,
        "rows_of_known": seen.known_rows,
        "answers_without_persons": nameless,
    }


def print_persons(seen: PersonsCounted | None, nameless: int = 0) -> None:
    """Print how many rows of how many persons were left out: here, and nowhere else."""
    if seen is None:
        return
    left_out = seen.left_out - seen.known_rows
    left = f"Left out: {left_out:,} rows of {seen.cut:,} who had more than {seen.most:,}."
    print(f"Persons: {seen.n_persons:,}, in {seen.n_rows:,} rows. {left}")
    if seen.n_persons == seen.n_rows > 1:
        print("Each row is a person of its own, by this column.")
    if seen.known:
        print(
            f"Left out: all {seen.known_rows:,} rows of {seen.known:,} whom this book has counted, "
            "and who may not be counted again."
        )
    if nameless:
        answers = "1 earlier answer" if nameless == 1 else f"{nameless:,} earlier answers"
        print(
            f"{answers} about other rows named no persons: nobody could be left out for that. "
            "Whether these are other people is your word."
        )


def print_understanding(columns: Sequence[ColumnUnderstanding]) -> None:
    """Print a table of the columns: what each is, how sure that is, and what it was seen by."""
    print_table(HEADERS, [[shown(cell) for cell in row(one)] for one in columns], left=len(HEADERS))
    print()


def note_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Note a line for every column that a person should look at."""
    doubtful = [one for one in columns if one.doubt]
    for one in doubtful[:MOST_LINES]:
        option = f" ({one.option})" if one.option else ""
        notes.append(f"{one.name}: {one.doubt}{option}")
    if len(doubtful) > MOST_LINES:
        notes.append(f"and {len(doubtful) - MOST_LINES:,} more columns (--table lists all)")


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, Any]]:
    """Return the columns for machines."""
    keys = ("name", "kind", "confidence", "evidence", "doubt", "option", "refused")
    return [{key: getattr(one, key) for key in keys} for one in columns]


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
    bool, flag("--no-header", "The file has no line of names: column 1, column 2, ...")
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
    omop: _Omop = None
    concepts: _Concepts = None
    cdm: _Cdm = None
    listed_units: _ListedUnits = False

    @cached_property
    def recipe(self) -> Any:
        """How OMOP tables become rows, as far as options say."""
        return omop_recipe(self.omop, self.concepts, self.cdm, self.listed_units)

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
