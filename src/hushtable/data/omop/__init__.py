"""OMOP Common Data Model: measurements of a concept set as one row a person, or a visit.

A recipe: the question to PostgreSQL or DuckDB, the checks before it is asked, and the schema with
public ranges. May import the rest of `data`; tested in ``tests/databases/test_omop.py``. The
concept set that comes with it, and where its ranges are published, stand in ``concepts.toml``.
"""

from hushtable.data.omop.concepts import Concept, ConceptSet
from hushtable.data.omop.recipe import Recipe

__all__ = ["Concept", "ConceptSet", "Recipe"]
