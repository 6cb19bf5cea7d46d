"""Arguments, options, rows and files of counts that several commands take, and texts about them."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushtable import files
from hushtable.cli.result import MOST_LINES, Block, TextTable, count, shown
from hushtable.counts.base import Counts, Noised
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import Verdicts
from hushtable.data.options import RowOptions, notes
from hushtable.data.persons import PersonsCounted
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading
from hushtable.describe.plan import signed_by
from hushtable.errors import FileError, PrivacyError, UsageError
from hushtable.language import LANGUAGES
from hushtable.plans.draws import Draw, detectors, draw_of
from hushtable.privacy.mechanisms import Adjacency


def number(text: str) -> float:
    """Return the number that a text holds; NaN if it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def option(metavar: str, help: str, *names: str, **settings: Any) -> object:
    """Return an option that takes a value, for `Annotated`."""
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def flag(name: str, help: str) -> object:
    """Return an option that takes no value, for `Annotated`."""
    return typer.Option(name, help=help)


def argument(metavar: str, help: str) -> object:
    """Return an argument, for `Annotated`."""
    return typer.Argument(metavar=metavar, help=help)


Data: TypeAlias = Annotated[
    str,
    argument(
        "DATA",
        "Rows: a file (CSV, Parquet, JSON, a workbook, an archive or another format), a folder, a "
        "glob pattern in quotes, a URL, or - for standard input.",
    ),
]
ModelFile: TypeAlias = Annotated[
    Path, option("FILE", "Model of hushtable fit, or a (merged) sketch or release.")
]
Output: TypeAlias = Annotated[Path, option("FILE", "File to write.", "--output", "-o")]
Language: TypeAlias = Annotated[
    str, option("CODE", f"Language of the page: {' or '.join(LANGUAGES)}.", "--language")
]
Seed: TypeAlias = Annotated[
    int | None, option("N", "Seed of the hash functions, for a reproducible result.", min=0)
]
Epsilon: TypeAlias = Annotated[
    float | None,
    option(
        "E",
        "Design the plan for private releases at this total budget per person over all rounds; "
        "needs --expected-rows.",
    ),
]
Delta: TypeAlias = Annotated[
    float,
    option("D", "Probability added to the bound e^epsilon; at most 1 / --expected-rows, or 1e-5."),
]
ExpectedRows: TypeAlias = Annotated[
    int | None, option("N", "Public estimate of the number of rows of all sites together.")
]
Sites: TypeAlias = Annotated[
    int, option("K", "Number of releases that will be merged, each with its own noise.", min=1)
]
PlanPasses: TypeAlias = Annotated[
    int,
    option(
        "1|2",
        "With --epsilon: 2 leaves budget for a second round, which counts rows in dense regions "
        "again (hushtable plan gate).",
    ),
]
AdjacencyOption: TypeAlias = Annotated[
    Adjacency,
    typer.Option(
        help="Neighbouring data sets differ in the presence of one person, or in the "
        "values of one person."
    ),
]
RowsPerPerson: TypeAlias = Annotated[
    int, option("N", "Largest number of rows of one person.", min=1)
]
Person: TypeAlias = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column that identifies persons, and is not a feature: only a limited number of rows is "
        "counted per person.",
    ),
]
MostRows: TypeAlias = Annotated[
    int | None,
    option("N", "With --person: largest number of rows to use per person; default 1.", min=1),
]
Context: TypeAlias = Annotated[
    str | None,
    option(
        "A,B,...",
        "Columns that define which rows a row is compared with, such as ward,month (hushtable "
        "only): the other columns are then judged relative to these.",
    ),
]
Json: TypeAlias = Annotated[bool, flag("--json", "Print one JSON object, for machines.")]


def of_persons(person: str | None, most: int | None) -> dict[str, Any]:
    """Return the arguments of a count that are about persons."""
    if person is None and most is not None:
        raise UsageError("--rows-per-person needs --person, the column that identifies persons")
    return {} if person is None else {"person": person, "rows_per_person": most or 1}


def person_facts(tally: PersonsCounted | None, nameless: int = 0) -> dict[str, object]:
    """Return whose rows were counted, for machines; ``nameless`` answers name no persons."""
    if tally is None:
        return {}
    known = {
        "persons_known": tally.known,
        "rows_of_known": tally.known_rows,
        "answers_without_persons": nameless,
    }
    return {
        "persons": {
            "persons": tally.n_persons,
            "rows_per_person": tally.most,
            "rows_left_out": tally.left_out,
            "persons_cut": tally.cut,
            **(known if tally.register is not None else {}),
        }
    }


def persons_blocks(tally: PersonsCounted | None, nameless: int = 0) -> Iterator[Block]:
    """Report how many rows of how many persons were left out: here, and nowhere else."""
    if tally is None:
        return
    left_out = tally.left_out - tally.known_rows
    left = f"Left out: {left_out:,} rows of {tally.cut:,} persons who had more than "
    left += f"{tally.most:,} rows."
    yield f"{count(tally.n_persons, 'person')} in {count(tally.n_rows, 'row')}. {left}"
    if tally.n_persons == tally.n_rows > 1:
        yield "By this column, each row belongs to a different person."
    if tally.known:
        yield (
            f"Left out: all {tally.known_rows:,} rows of {tally.known:,} persons whom this book "
            "has already counted, and who may not be counted again."
        )
    if nameless:
        answers = "1 earlier answer" if nameless == 1 else f"{nameless:,} earlier answers"
        yield (
            f"{answers} about other rows did not identify persons, so no one could be left out "
            "because of them. By answering, you assert that these are other people."
        )


def note_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Note a line for every column that a person should check."""
    doubtful = [column for column in columns if column.doubt]
    for column in doubtful[:MOST_LINES]:
        option = f" ({column.option})" if column.option else ""
        notes.append(f"{column.name}: {column.question}{option}")
    if len(doubtful) > MOST_LINES:
        notes.append(f"and {len(doubtful) - MOST_LINES:,} more columns (hushtable check lists all)")


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, object]]:
    """Return the columns for machines."""
    return [
        {
            "name": one.name, "kind": one.kind, "evidence": one.evidence,
            "doubt": one.question, "option": one.option,
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


#: How rows are read, with the option of each field.
Reads: TypeAlias = Annotated[
    RowOptions,
    RowOptions.typed,
    {
        "columns": Annotated[
            str | None, option("A,B,...", "Use only these columns, in this order.")
        ],
        "drop": Annotated[str | None, option("A,B,...", "Use all columns except these.")],
        "missing": Annotated[
            str | None,
            option("A,B,...", "Treat these texts, or numbers such as -9999, as missing values."),
        ],
        "decimal": Annotated[str | None, option(",|.", "Decimal separator, if it is ambiguous.")],
        "dates": Annotated[
            str | None, option("dmy|mdy|ymd", "Order of day, month and year, if it is ambiguous.")
        ],
        "as_": Annotated[
            list[str] | None,
            option(
                "A=KIND,...",
                "Read columns as number, date, category, label or id. For a number, <0.5 is read "
                "as 0.5, and text that is not a number counts as missing; for a label, spellings "
                "that differ only by case, accents or look-alike letters are the same; an id is "
                "left out.",
                "--as",
            ),
        ],
        "read": Annotated[
            list[str] | None,
            option(
                "NAME=VALUE|FILE",
                "Further settings of reading, or a TOML file of them (hushtable check DATA -o "
                "FILE.toml writes one). Files: encoding, delimiter, no_header, skip_lines, "
                "skip_below, skip_footer, sheet, member. Databases: query, independent, omop, "
                "concepts, cdm, listed_units, by, within. Features of time: time, zone, entity. "
                "Can be given several times.",
            ),
        ],
    },
]
#: How rows are read beside a model, which states how its own rows were read.
ModelReads: TypeAlias = Annotated[
    RowOptions,
    RowOptions.typed,
    {
        "read": Annotated[
            list[str] | None,
            option(
                "NAME=VALUE|FILE",
                "How rows are read, if not as the rows of the model: columns, drop, missing, "
                "decimal, dates, as, or another entry that --read of hushtable fit takes, or a "
                "TOML file of them. Can be given several times.",
            ),
        ],
    },
]
#: No option given.
READS = RowOptions()


@dataclass(frozen=True)
class KeptColumns:
    """Columns of the rows that results contain next to the features."""

    id_: Annotated[
        str | None,
        option("NAME", "Column that identifies rows; it is copied next to the results.", "--id"),
    ] = None
    keep: Annotated[
        str | None, option("A,B,...", "Copy these columns of the rows, unchanged, too.")
    ] = None

    def beside(self, reads: RowOptions) -> tuple[str | None, list[str]]:
        """Return the column that identifies rows, and all columns kept: see `RowOptions.beside`."""
        return reads.beside(self.id_, self.keep)


@dataclass(frozen=True)
class Rows:
    """Rows as the command line names them, and how the rows of a model were read."""

    data: str
    reads: RowOptions
    reading: Reading

    def open(self, schema: Schema, keep: Sequence[str] = ()) -> Reader:
        """Open them under a schema; see `RowOptions.open_as`."""
        return self.reads.open_as(self.data, schema, self.reading, keep)


def _spelled() -> list[str]:
    return [name.replace("_", "-") for name in detectors()]


Detector = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=_spelled,
        help=f"Detector: {' or '.join(_spelled())}, or one of another package.",
    ),
]
HUSHTABLE = "hushtable"


def draw_spelled(spelled: str) -> Draw:
    """Return the draw of a detector as the command line spells it."""
    return draw_of(spelled.replace("-", "_"))


def read_counts(path: Path, *more: str) -> Counts:
    """Read a file that must hold a sketch, a release, or another of the given kinds."""
    content = files.read(path)
    if content.kind == Verdicts.kind:
        raise PrivacyError(
            f"{path} holds exact verdicts, from which rows can be read, so keep it where the rows "
            "are. To add up the verdicts of one site, use hushtable learn"
        )
    return content.expect("sketch", "release", *more).build(counts_from_file)


def read_sketch(path: Path) -> Sketch:
    """Read a file that must hold a sketch."""
    content = files.read(path).expect("sketch", "release")
    if content.kind == Release.kind:
        raise FileError(
            f"{path} is already a release with noise: send it as it is (only a sketch of hushtable "
            "sketch can be released)"
        )
    return content.build(Sketch.from_file)


def read_release(path: Path) -> Release:
    """Read a file that must hold a release."""
    content = files.read(path).expect("release", "sketch")
    if content.kind == Sketch.kind:
        raise FileError(
            f"{path} is a raw sketch, and its exact counts must not leave the site: give a release "
            f"(hushtable release {path} --epsilon 1 -o FILE)"
        )
    return content.build(Release.from_file)


def cost(release: Noised) -> dict[str, float]:
    """Return the cost of a release, for machines."""
    ledger = release.ledger
    return {"epsilon": ledger.epsilon, "delta": ledger.delta, "noise_sd": ledger.noise_sd}


def refuse_repeated(paths: Sequence[Path]) -> None:
    """Raise `UsageError` if a file is given twice."""
    given: dict[str, Path] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in given:
            raise UsageError(f"{path} is given twice, and its rows would count twice: give it once")
        given[real] = path


def standing(counts: Counts, what: str = "The result") -> str:
    """Return one sentence on whether counts are signed, and how to check the signature."""
    who = signed_by(counts)
    if who is None:
        return f"{what} is not signed: anyone could have made or changed it."
    by = f"{what} is signed by {shown(who['name'])} ({who['fingerprint']})"
    return f"{by}: hushtable round verify checks the signature."
