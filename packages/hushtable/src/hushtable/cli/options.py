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
        raise typer.BadParameter(f"{value}: needs 1 or more, or -1 for all cores")
    return value


def number(text: str) -> float:
    """Return the number that a text holds; NaN if it holds none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_contamination(share: float | None) -> None:
    """Refuse a value of --contamination that is not a share."""
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
Columns: TypeAlias = Annotated[
    str | None, option("A,B,...", "Use only these columns, in this order.")
]
Drop: TypeAlias = Annotated[str | None, option("A,B,...", "Use all columns except these.")]
Threads: TypeAlias = Annotated[
    int,
    option(
        "N",
        "Number of threads; -1 means all cores. The result does not depend on it.",
        callback=_threads,
    ),
]
Tables: TypeAlias = Annotated[int, option("M", "Number of tables.", min=1, max=10_000)]
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
Context: TypeAlias = Annotated[
    str | None,
    option(
        "A,B,...",
        "Columns that define which rows a row is compared with, such as ward,month (hushtable "
        "only): the other columns are then judged relative to these.",
    ),
]
Values: TypeAlias = Annotated[
    bool,
    flag(
        "--values",
        "Also show ranges and categories that were taken from rows; public ones "
        "are always included.",
    ),
]
#: Accepted for scripts of earlier versions; `hushtable check` shows more.
Table: TypeAlias = Annotated[
    bool, typer.Option("--table", help="Print how each column was read.", hidden=True)
]
Json: TypeAlias = Annotated[bool, flag("--json", "Print one JSON object, for machines.")]
