"""Arguments and options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = [
    "Adjacency",
    "AdjacencyOption",
    "Columns",
    "Data",
    "Delta",
    "Drop",
    "Epsilon",
    "ExpectedRows",
    "Json",
    "Output",
    "RowsPerPerson",
    "Seed",
    "Sites",
    "Tables",
    "Threads",
]


class Adjacency(StrEnum):
    """What neighbouring data are."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


def _threads(value: int) -> int:
    if value < -1 or value == 0:
        raise typer.BadParameter(f"{value}: needs 1 or more, or -1 for every core")
    return value


Data: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Rows in CSV or Parquet: a file, a folder of files, or a glob pattern in quotes.",
    ),
]
Output: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")
]
Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Use these columns only, in this order."),
]
Drop: TypeAlias = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Use all columns but these.")
]
Threads: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", callback=_threads, help="Threads; -1 is every core. The result is the same."
    ),
]
Tables: TypeAlias = Annotated[
    int, typer.Option(metavar="M", min=1, max=10_000, help="Number of tables.")
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Seed of the hash functions, for the same result again."),
]
Epsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="E",
        help="Lay the plan out for private release at this total of one person, all rounds "
        "together; needs --expected-rows.",
    ),
]
Delta: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="D",
        help="Probability with which the bound may fail; at most 1 / --expected-rows, or 1e-5.",
    ),
]
ExpectedRows: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Public guess of the rows of all sites together."),
]
Sites: TypeAlias = Annotated[
    int,
    typer.Option(metavar="K", min=1, help="Releases that will be merged, each with its own noise."),
]
AdjacencyOption: TypeAlias = Annotated[
    Adjacency,
    typer.Option(help="Neighbouring data have one person more or less, or other values."),
]
RowsPerPerson: TypeAlias = Annotated[
    int, typer.Option(metavar="N", min=1, help="Rows that one person has at most.")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, for machines.")
]
