"""Whose rows a command counts: the column that tells persons, and what is said of them."""

from typing import Any

from hushtable.data.persons import PersonsCounted
from hushtable.data.schema import Schema


def kept(person: str | None, schema: Schema) -> list[str]:
    """Return the columns to keep beside the features; a feature is refused where it is counted."""
    return [] if person is None or person in schema.names else [person]


def facts_of(seen: PersonsCounted | None, nameless: int = 0) -> dict[str, Any]:
    """Return whose rows were counted, for machines; ``nameless`` answers of a book name nobody."""
    if seen is None:
        return {}
    return {
        "persons": {
            "persons": seen.n_persons,
            "rows_per_person": seen.most,
            "rows_left_out": seen.left_out,
            "persons_cut": seen.cut,
            **({} if seen.register is None else _known(seen, nameless)),
        }
    }


def _known(seen: PersonsCounted, nameless: int) -> dict[str, int]:
    return {
        "persons_known": seen.known,
        "rows_of_known": seen.known_rows,
        "answers_without_persons": nameless,
    }


def print_persons(seen: PersonsCounted | None, nameless: int = 0) -> None:
    """Print how many rows of how many persons were left out: here, and nowhere else."""
    if seen is None:
        return
    left_out = seen.left_out - seen.known_rows
    left = f"Left out: {left_out:,} rows of {seen.cut:,} who had more than {seen.most:,}."
    print(f"Persons: {seen.n_persons:,}, in {seen.n_rows:,} rows. {left}")
    if seen.n_persons == seen.n_rows > 1:
        print("Each row is a person of its own, by this column.")
    if seen.known:
        print(
            f"Left out: all {seen.known_rows:,} rows of {seen.known:,} whom this book has counted, "
            "and who may not be counted again."
        )
    if nameless:
        answers = "1 earlier answer" if nameless == 1 else f"{nameless:,} earlier answers"
        print(
            f"{answers} about other rows named no persons: nobody could be left out for that. "
            "Whether these are other people is your word."
        )
