"""Options of every command that reads rows, and texts printed about rows that were read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from hushtable.cli.options import Columns, Drop, flag, option
from hushtable.cli.output import count, shown
from hushtable.cli.result import MOST_LINES, Block, TextTable
from hushtable.data.options import RowOptions, notes
from hushtable.data.persons import PersonsCounted
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading

_Omop = Annotated[
    Literal["person", "visit"] | None,
    option(
        "person|visit",
        "DATA is a database with OMOP tables: read its measurements as one row per person (the "
        "latest values) or per visit (the first values).",
    ),
]
_Concepts = Annotated[
    Path | None,
    option("FILE", "With --omop: concept set; default: common vital signs and laboratory values."),
]
_Cdm = Annotated[
    str | None, option("NAME", "With --omop: database schema that contains the tables.")
]
_ListedUnits = Annotated[
    bool,
    flag(
        "--listed-units",
        "With --omop: leave out measurements whose unit is not the one of the concept set.",
    ),
]
_By = Annotated[
    str | None,
    option("sex,age", "With --omop: one column per concept for each sex, age band, or both."),
]
_Within = Annotated[
    int | None,
    option(
        "DAYS",
        "With --omop person: use values from this many days before a person's latest measurement; "
        "default: all.",
        min=1,
    ),
]


def person_facts(seen: PersonsCounted | None, nameless: int = 0) -> dict[str, Any]:
    """Return whose rows were counted, for machines; ``nameless`` answers name no persons."""
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
    """Report how many rows of how many persons were left out: here, and nowhere else."""
    if seen is None:
        return
    left_out = seen.left_out - seen.known_rows
    left = (
        f"Left out: {left_out:,} rows of {seen.cut:,} persons who had more than {seen.most:,} rows."
    )
    yield f"{count(seen.n_persons, 'person')} in {count(seen.n_rows, 'row')}. {left}"
    if seen.n_persons == seen.n_rows > 1:
        yield "By this column, each row belongs to a different person."
    if seen.known:
        yield (
            f"Left out: all {seen.known_rows:,} rows of {seen.known:,} persons whom this book has "
            "already counted, and who may not be counted again."
        )
    if nameless:
        answers = "1 earlier answer" if nameless == 1 else f"{nameless:,} earlier answers"
        yield (
            f"{answers} about other rows did not identify persons, so no one could be left out "
            "because of them. By answering, you assert that these are other people."
        )


def understanding_blocks(columns: Sequence[ColumnUnderstanding]) -> Iterator[Block]:
    """Return a table of the columns: kind, certainty, and evidence."""
    from hushtable.data.understanding import HEADERS, row  # for rows without a model

    yield TextTable(
        HEADERS, [[shown(cell) for cell in row(one)] for one in columns], left=len(HEADERS)
    )
    yield ""


def note_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Note a line for every column that a person should check."""
    doubtful = [one for one in columns if one.doubt]
    for one in doubtful[:MOST_LINES]:
        option = f" ({one.option})" if one.option else ""
        notes.append(f"{one.name}: {one.question}{option}")
    if len(doubtful) > MOST_LINES:
        notes.append(f"and {len(doubtful) - MOST_LINES:,} more columns (hushtable check lists all)")


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, Any]]:
    """Return the columns for machines."""
    return [
        {
            "name": one.name, "kind": one.kind, "confidence": one.confidence,
            "evidence": one.evidence, "doubt": one.question, "option": one.option,
            "refused": one.refused,
        }
        for one in columns
    ]  # fmt: skip


def coverage_blocks(coverage: Mapping[str, float]) -> Iterator[Block]:
    """Return a table of the share of OMOP rows that have a value of each concept."""
    if coverage:
        shares = [[shown(name), f"{share:.1%}"] for name, share in coverage.items()]
        yield TextTable(("concept", "rows with a value"), shares)
        yield ""


_Missing = Annotated[
    str | None, option("A,B,...", "Treat these texts, or numbers such as -9999, as missing values.")
]
_Decimal = Annotated[str | None, option(",|.", "Decimal separator, if it is ambiguous.")]
_Dates = Annotated[
    str | None, option("dmy|mdy|ymd", "Order of day, month and year, if it is ambiguous.")
]
_As = Annotated[
    list[str] | None,
    option(
        "A=KIND,...",
        "Read columns as number, date, category, label or id. For a number, <0.5 is read as 0.5, "
        "and text that is not a number counts as missing; for a label, spellings that differ only "
        "by case, accents or look-alike letters are the same; an id is left out.",
        "--as",
    ),
]
_Encoding = Annotated[str | None, option("NAME", "Encoding of text files, such as cp1252.")]
_Delimiter = Annotated[str | None, option("SIGN", "Character between the fields of a CSV file.")]
_NoHeader = Annotated[
    bool,
    flag("--no-header", "The file has no header line: name the columns column 1, column 2, ..."),
]
_SkipLines = Annotated[int | None, option("N", "Number of lines above the header line.", min=0)]
_SkipFooter = Annotated[
    int | None,
    option(
        "N",
        "Leave out the last N lines of a text file, or rows of a sheet, such as a total. Blank "
        "lines are not counted.",
        min=0,
    ),
]
_Sheet = Annotated[
    str | None, option("NAME", "Sheet of a workbook; 'NAME!A:F' for some of its columns.")
]
_Member = Annotated[
    str | None,
    option("NAME", "Part of a file: a file in an archive, or a table of a database."),
]
_Query = Annotated[
    str | None, option("SQL|FILE", "SQL query for a database, or a .sql file that holds it.")
]
_Independent = Annotated[
    bool,
    flag(
        "--independent",
        "With --query or a view: you state that each row depends on the records of one person "
        "only, which a release requires.",
    ),
]

_Time = Annotated[
    str | None,
    option(
        "A", "Column of points in time: replace it by the features hour, weekday, day and month."
    ),
]
_Zone = Annotated[
    str | None,
    option(
        "PLACE",
        "With --time: time zone of the clock that counts, such as Europe/Berlin, if "
        "times state their zone.",
    ),
]

_Entity = Annotated[
    str | None,
    option(
        "A",
        "With --time: column that identifies the entity of a reading. Instead of the numbers, the "
        "features then compare a reading with earlier readings of its entity.",
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
        "independent": _Independent,
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
    },
]
#: No option given.
READS = RowOptions()


@dataclass(frozen=True)
class Rows:
    """Rows as the command line names them, and how the rows of a model were read."""

    data: str
    reads: RowOptions
    reading: Reading
    threads: int

    def open(self, schema: Schema, keep: Sequence[str] = ()) -> Reader:
        """Open them under a schema; see `RowOptions.open_as`."""
        return self.reads.open_as(self.data, schema, self.reading, keep)
