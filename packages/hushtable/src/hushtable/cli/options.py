"""Arguments and options that several commands share."""

import math
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushtable.errors import UsageError
from hushtable.language import LANGUAGES
from hushtable.privacy.mechanisms import Adjacency


def _threads(value: int) -> int:
    if value < -1 or value == 0:
        raise typer.BadParameter(f"{value}: needs 1 or more, or -1 for every core")
    return value


def number(text: str) -> float:
    """Return the number that a text says; NaN if it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_contamination(share: float | None) -> None:
    """Refuse a share of --contamination that is none."""
    if share is not None and not 0.0 < share <= 0.5:
        raise UsageError(f"--contamination {share}: needs a share above 0, at most 0.5")


def option(metavar: str, help: str, *names: str, **settings: Any) -> Any:
    """Return an option that takes a value, for `Annotated`."""
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def flag(name: str, help: str) -> Any:
    """Return an option that takes no value, for `Annotated`."""
    return typer.Option(name, help=help)


def argument(metavar: str, help: str) -> Any:
    """Return an argument, for `Annotated`."""
    return typer.Argument(metavar=metavar, help=help)


Data: TypeAlias = Annotated[
    str,
    argument(
        "DATA",
        "Rows: a file (CSV, Parquet, JSON, a workbook, an archive and others), a folder, a glob "
        "pattern in quotes, a URL, or - for standard input.",
    ),
]
ModelFile: TypeAlias = Annotated[
    Path, option("FILE", "Model of hushtable fit, or a (merged) sketch or release.")
]
Output: TypeAlias = Annotated[Path, option("FILE", "File to write.", "--output", "-o")]
Language: TypeAlias = Annotated[
    str, option("CODE", f"Language of the page: {' or '.join(LANGUAGES)}.", "--language")
]
Columns: TypeAlias = Annotated[
    str | None, option("A,B,...", "Use these columns only, in this order.")
]
Drop: TypeAlias = Annotated[str | None, option("A,B,...", "Use all columns but these.")]
Threads: TypeAlias = Annotated[
    int, option("N", "Threads; -1 is every core. The result is the same.", callback=_threads)
]
Tables: TypeAlias = Annotated[int, option("M", "Number of tables.", min=1, max=10_000)]
Seed: TypeAlias = Annotated[
    int | None, option("N", "Seed of the hash functions, for the same result again.", min=0)
]
Epsilon: TypeAlias = Annotated[
    float | None,
    option(
        "E",
        "Lay the plan out for private release at this total of one person, all rounds together; "
        "needs --expected-rows.",
    ),
]
Delta: TypeAlias = Annotated[
    float,
    option("D", "Probability added to the bound e^epsilon; at most 1 / --expected-rows, or 1e-5."),
]
ExpectedRows: TypeAlias = Annotated[
    int | None, option("N", "Public guess of the rows of all sites together.")
]
Sites: TypeAlias = Annotated[
    int, option("K", "Releases that will be merged, each with its own noise.", min=1)
]
PlanPasses: TypeAlias = Annotated[
    int,
    option(
        "1|2",
        "With --epsilon: 2 leaves budget for a second round, which counts the denser rows again "
        "(hushtable plan gate).",
    ),
]
AdjacencyOption: TypeAlias = Annotated[
    Adjacency,
    typer.Option(help="Neighbouring data have one person more or less, or other values."),
]
RowsPerPerson: TypeAlias = Annotated[int, option("N", "Rows that one person has at most.", min=1)]
Person: TypeAlias = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column that tells persons, and is no feature: of each, so many rows at most are counted.",
    ),
]
Context: TypeAlias = Annotated[
    str | None,
    option(
        "A,B,...",
        "Columns that say what a row is compared with, such as ward,month (hushtable): the others "
        "are unusual for these, or not.",
    ),
]
Values: TypeAlias = Annotated[
    bool,
    flag("--values", "Also show ranges and categories read off rows; public ones always are."),
]
#: Accepted for scripts of earlier versions; `hushtable check` shows more.
Table: TypeAlias = Annotated[
    bool, typer.Option("--table", help="Print what each column was understood to be.", hidden=True)
]
Json: TypeAlias = Annotated[bool, flag("--json", "Print one JSON object, for machines.")]
