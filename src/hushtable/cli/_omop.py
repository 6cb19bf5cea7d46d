"""Options of commands that read the measurements of an OMOP CDM, and the schema that follows."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hushtable.cli._options import option
from hushtable.data.omop import ConceptSet, Recipe
from hushtable.data.schema import Schema
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

#: Above a schema that is drafted for OMOP tables.
OMOP_HEAD = """\
# Measurements of the OMOP Common Data Model, with public ranges: nothing here is taken from the
# data. A value beyond its range counts as the nearest end. Take out what few persons have.
"""


def recipe(omop: Any, concepts: Path | None, cdm: str | None, listed_units: bool) -> Recipe | None:
    """Return the recipe that options ask for; None without ``--omop``."""
    if omop is None:
        given = {"--concepts": concepts, "--cdm": cdm, "--listed-units": listed_units or None}
        if alone := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{alone[0]} goes with --omop person or --omop visit")
        return None
    used = ConceptSet.common() if concepts is None else ConceptSet.from_toml(concepts)
    return Recipe(omop, used, cdm, listed_units)


def schema_of(asked: Recipe, columns: list[str] | None, dropped: list[str]) -> Schema:
    """Return the recipe's schema of the columns that are used."""
    schema = asked.schema
    known = {*schema.names, *asked.identifiers}
    if unknown := [name for name in [*(columns or ()), *dropped] if name not in known]:
        raise UsageError(f"{unknown[0]!r} is no column of the rows: they are {schema.names}")
    names = schema.names if columns is None else columns
    used = {one.name: one for one in schema.features if one.name not in dropped}
    return replace(schema, features=tuple(used[name] for name in names if name in used))


def sources_of(asked: Recipe, schema: Schema) -> list[str]:
    """Return where each feature's range is from, with ids of its concepts and units."""
    known = {
        "age": "years since the year of birth; range: known columns of hushtable",
        "sex": "gender_concept_id 8532 is female, 8507 male; others count as unseen",
    }
    for one in asked.concepts:
        concepts, units = (", ".join(map(str, ids)) for ids in (one.concepts, one.units))
        known[one.name] = (
            f"measurement_concept_id {concepts}; unit_concept_id {units}; range: {one.source}"
        )
    return [known[name] for name in schema.names]
