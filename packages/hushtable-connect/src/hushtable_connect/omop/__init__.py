"""OMOP Common Data Model: measurements of a concept set as one row per person or visit.

A recipe has the query for PostgreSQL or DuckDB, the checks before the query runs, and the schema
with public ranges. May import the rest of `data`; tested in ``tests/databases/test_omop.py``.
``concepts.toml`` holds the default concept set and the sources of its ranges.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hushtable_connect.omop.concepts import Concept, ConceptSet
from hushtable_connect.omop.recipe import Recipe

__all__ = ["Concept", "ConceptSet", "Recipe"]


def recipe(
    omop: Literal["person", "visit"],
    concepts: Path | None,
    cdm: str | None,
    listed_units: bool,
    by: Sequence[str] = (),
    within: int | None = None,
) -> Recipe:
    """Return the recipe for the options of a command."""
    used = ConceptSet.common() if concepts is None else ConceptSet.from_toml(concepts)
    return Recipe(omop, used, cdm, listed_units, tuple(by), within)
