"""Options of every command that reads rows, and what is printed of rows that were read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from hushtable.cli.options import Columns, Drop, flag, option
from hushtable.cli.output import shown
from hushtable.cli.result import MOST_LINES, Block, TextTable
from hushtable.data.options import RowOptions, notes
from hushtable.data.persons import PersonsCounted
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import ColumnUnderstanding, Reading

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
_By = Annotated[
    str | None,
    option("sex,age", "With --omop: one column for each sex, or age band, or both, of a concept."),
]
_Within = Annotated[
    int | None,
    option(
        "DAYS",
        "With --omop person: values of so many days before a person's latest measurement; "
        "default: all.",
        min=1,
    ),
]
_Join = Annotated[
    list[str] | None,
    option(
        "FILE on KEY: A,...",
        "Features of the rows of another table that have a row's key: 'visits.csv on patient: "
        "count, mean of value, last date'; or, without FILE, one row of all of DATA with a key.",
        "--join",
    ),
]


def person_facts(seen: PersonsCounted | None, nameless: int = 0) -> dict[str, Any]:
    """Return whose rows were counted, for machines; ``nameless`` answers of a book name no one."""
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


def persons_blocks(seen: PersonsCounted | None, nameless: int = 0) -> Iterator[Block]:
    """Say how many rows of how many persons were left out: here, and nowhere else."""
    if seen is None:
        return
    left_out = seen.left_out - seen.known_rows
    left = f"Left out: {left_out:,} rows of {seen.cut:,} who had more than {seen.most:,}."
    yield f"Persons: {seen.n_persons:,}, in {seen.n_rows:,} rows. {left}"
    if seen.n_persons == seen.n_rows > 1:
        yield "Each row is a person of its own, by this column."
    if seen.known:
        yield (
            f"Left out: all {seen.known_rows:,} rows of {seen.known:,} whom this book has counted, "
            "and who may not be counted again."
        )
    if nameless:
        answers = "1 earlier answer" if nameless == 1 else f"{nameless:,} earlier answers"
        yield (
            f"{answers} about other rows named no persons: no one could be left out for that. "
            "Whether these are other people is your word."
        )


def understanding_blocks(columns: Sequence[ColumnUnderstanding]) -> Iterator[Block]:
    """Give a table of the columns: what each is, how sure that is, and what it was seen by."""
    from hushtable.data.understanding import HEADERS, row  # of rows without a model

    yield TextTable(
        HEADERS, [[shown(cell) for cell in row(one)] for one in columns], left=len(HEADERS)
    )
    yield ""


def note_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Note a line for every column that a person should look at."""
    doubtful = [one for one in columns if one.doubt]
    for one in doubtful[:MOST_LINES]:
        option = f" ({one.option})" if one.option else ""
        notes.append(f"{one.name}: {one.doubt}{option}")
    if len(doubtful) > MOST_LINES:
        notes.append(f"and {len(doubtful) - MOST_LINES:,} more columns (hushtable check lists all)")


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, Any]]:
    """Return the columns for machines."""
    keys = ("name", "kind", "confidence", "evidence", "doubt", "option", "refused")
    return [{key: getattr(one, key) for key in keys} for one in columns]


def coverage_blocks(coverage: Mapping[str, float]) -> Iterator[Block]:
    """Give a table of the share of OMOP rows that have a value of each concept."""
    if coverage:
        shares = [[shown(name), f"{share:.1%}"] for name, share in coverage.items()]
        yield TextTable(("concept", "rows with a value"), shares)
        yield ""


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
        "Read columns as number, date, category, label or id. As a number, <0.5 is 0.5, and what "
        "is no number is missing; of a label, spellings that differ by case, accents or look-alike "
        "letters are one; an id is left out.",
        "--as",
    ),
]
_Encoding = Annotated[str | None, option("NAME", "Encoding of text files, such as cp1252.")]
_Delimiter = Annotated[str | None, option("SIGN", "Sign between the fields of a CSV file.")]
_NoHeader = Annotated[
    bool, flag("--no-header", "The file has no line of names: column 1, column 2, ...")
]
_SkipLines = Annotated[int | None, option("N", "Lines above the names of a file's columns.", min=0)]
_SkipFooter = Annotated[
    int | None,
    option(
        "N",
        "Leave out the last N lines of a text file, or rows of a sheet, such as a total; blank "
        "ones do not count.",
        min=0,
    ),
]
_Sheet = Annotated[
    str | None, option("NAME", "Sheet of a workbook; 'NAME!A:F' for some of its columns.")
]
_Member = Annotated[
    str | None,
    option("NAME", "Part of a file: a file in an archive, a table of a database or a page."),
]
_Query = Annotated[
    str | None, option("SQL|FILE", "Question to a database, or the .sql file that holds it.")
]

_Time = Annotated[
    str | None,
    option(
        "A", "Column of points in time: hour, weekday, day and month are features in its place."
    ),
]
_Zone = Annotated[
    str | None,
    option("PLACE", "With --time: by whose clock, such as Europe/Berlin, if times say their zone."),
]

_Entity = Annotated[
    str | None,
    option(
        "A",
        "With --time: column that says whose reading a row is. In place of numbers, features "
        "compare a reading with the earlier ones of its entity.",
    ),
]

#: How rows are read, with the option of each field.
Reads: TypeAlias = Annotated[
    RowOptions,
    {
        "columns": Columns,
        "drop": Drop,
        "missing": _Missing,
        "decimal": _Decimal,
        "dates": _Dates,
        "as_": _As,
        "encoding": _Encoding,
        "delimiter": _Delimiter,
        "no_header": _NoHeader,
        "skip_lines": _SkipLines,
        "skip_footer": _SkipFooter,
        "sheet": _Sheet,
        "query": _Query,
        "member": _Member,
        "time": _Time,
        "zone": _Zone,
        "entity": _Entity,
        "omop": _Omop,
        "concepts": _Concepts,
        "cdm": _Cdm,
        "listed_units": _ListedUnits,
        "by": _By,
        "within": _Within,
        "join": _Join,
    },
]
#: No option given.
READS = RowOptions()


@dataclass(frozen=True)
class Rows:
    """Rows as the command line names them, and how a model's were read."""

    data: str
    reads: RowOptions
    reading: Reading
    threads: int

    def open(self, schema: Schema, keep: Sequence[str] = ()) -> Reader:
        """Open them under a schema; see `RowOptions.open_as`."""
        return self.reads.open_as(self.data, schema, self.reading, keep)
