"""Options of commands that read the measurements of an OMOP CDM, which another package reads."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hushtable import plugins
from hushtable.cli._options import option
from hushtable.errors import UsageError

Omop = Annotated[
    Literal["person", "visit"] | None,
    option(
        "person|visit",
        "DATA is a database with OMOP tables: its measurements as one row a person (the latest "
        "values) or a visit (the first ones).",
    ),
]
Concepts = Annotated[
    Path | None,
    option("FILE", "With --omop: concept set; default: common vital signs and laboratory values."),
]
Cdm = Annotated[
    str | None, option("NAME", "With --omop: schema of the database that has the tables.")
]
ListedUnits = Annotated[
    bool,
    typer.Option(
        "--listed-units",
        help="With --omop: leave out measurements in other units than those of the concept set.",
    ),
]


def recipe(omop: Any, concepts: Path | None, cdm: str | None, listed_units: bool) -> Any:
    """Return the recipe that options ask for, with what it reads; None without one."""
    if omop is None:
        given = {"--concepts": concepts, "--cdm": cdm, "--listed-units": listed_units or None}
        if alone := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{alone[0]} goes with --omop person or --omop visit")
        return None
    return plugins.extension("omop", "--omop", "connect")(omop, concepts, cdm, listed_units)
