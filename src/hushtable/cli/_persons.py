"""Whose rows a command counts: the column that tells persons, and what is said of them."""

from typing import Any

from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Schema


def kept(person: str | None, schema: Schema) -> list[str]:
    """Return the columns to keep beside the features; a feature is refused where it is counted."""
    return [] if person is None or person in schema.names else [person]


def facts_of(counted: Sketch) -> dict[str, Any]:
    """Return whose rows were counted, for machines."""
    seen = counted.persons
    if seen is None:
        return {}
    return {
        "persons": {
            "persons": seen.n_persons,
            "rows_per_person": counted.rows_per_person,
            "rows_left_out": seen.left_out,
            "persons_cut": seen.cut,
        }
    }


def print_persons(counted: Sketch) -> None:
    """Print how many rows of how many persons were left out: here, and nowhere else."""
    seen = counted.persons
    if seen is None:
        return
    left = f"Left out: {seen.left_out:,} rows of {seen.cut:,} who had more than"
    print(
        f"Persons: {seen.n_persons:,}, in {seen.n_rows:,} rows. {left} {counted.rows_per_person:,}."
    )
