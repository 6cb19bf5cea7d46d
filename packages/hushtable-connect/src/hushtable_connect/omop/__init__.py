"""OMOP Common Data Model: measurements of a concept set as one row a person, or a visit.

A recipe: the question to PostgreSQL or DuckDB, the checks before it is asked, and the schema with
public ranges. May import the rest of `data`; tested in ``tests/databases/test_omop.py``. The
concept set that comes with it, and where its ranges are published, stand in ``concepts.toml``.
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
    """Return the recipe that options of a command ask for."""
    used = ConceptSet.common() if concepts is None else ConceptSet.from_toml(concepts)
    return Recipe(omop, used, cdm, listed_units, tuple(by), within)
