"""Options of every command that reads rows, and texts printed about rows that were read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from hushtable.cli.options import Columns, Drop, option
from hushtable.cli.output import count, shown
from hushtable.cli.result import MOST_LINES, Block, TextTable
from hushtable.data.options import RowOptions, notes
from hushtable.data.persons import PersonsCounted
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading


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
_Read = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE|FILE",
        "Further settings of reading, or a TOML file of them (hushtable check DATA -o FILE.toml "
        "writes one). Files: encoding, delimiter, no_header, skip_lines, skip_footer, sheet, "
        "member. Databases: query, independent, omop, concepts, cdm, listed_units, by, within. "
        "Features of time: time, zone, entity. Can be given several times.",
    ),
]

#: How rows are read, with the option of each field.
Reads: TypeAlias = Annotated[
    RowOptions,
    RowOptions.typed,
    {
        "columns": Columns,
        "drop": Drop,
        "missing": _Missing,
        "decimal": _Decimal,
        "dates": _Dates,
        "as_": _As,
        "read": _Read,
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
