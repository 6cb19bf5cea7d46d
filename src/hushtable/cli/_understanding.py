"""Columns as they were understood, on the terminal."""

from collections.abc import Sequence
from typing import Any

from hushtable.cli._output import MOST_LINES, print_sentences, print_table, shown
from hushtable.data.texts.decisions import ColumnUnderstanding
from hushtable.data.understanding import HEADERS, row


def print_understanding(columns: Sequence[ColumnUnderstanding]) -> None:
    """Print a table of the columns: what each is, how sure that is, and what it was seen by."""
    print_table(HEADERS, [[shown(cell) for cell in row(one)] for one in columns], left=len(HEADERS))
    print()


def print_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Print a line for every column that a person should look at."""
    doubtful = [one for one in columns if one.doubt]
    if not doubtful:
        return
    print("Read so, for you to look at:")
    print_sentences((shown(_line(one)) for one in doubtful[:MOST_LINES]), indent="  ")
    if len(doubtful) > MOST_LINES:
        print(f"  ... and {len(doubtful) - MOST_LINES:,} more (--json lists all)")


def _line(one: ColumnUnderstanding) -> str:
    option = f" ({one.option})" if one.option else ""
    return f"{one.name}: {one.doubt}{option}"


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, Any]]:
    """Return the columns for machines."""
    keys = ("name", "kind", "confidence", "evidence", "doubt", "option", "refused")
    return [{key: getattr(one, key) for key in keys} for one in columns]
