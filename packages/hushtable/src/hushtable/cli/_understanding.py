"""Columns as they were understood, on the terminal."""

from collections.abc import Sequence
from typing import Any

from hushtable.cli._errors import notes
from hushtable.cli._output import MOST_LINES, print_table, shown
from hushtable.data.texts.reading import ColumnUnderstanding
from hushtable.data.understanding import HEADERS, row


def print_understanding(columns: Sequence[ColumnUnderstanding]) -> None:
    """Print a table of the columns: what each is, how sure that is, and what it was seen by."""
    print_table(HEADERS, [[shown(cell) for cell in row(one)] for one in columns], left=len(HEADERS))
    print()


def note_doubts(columns: Sequence[ColumnUnderstanding]) -> None:
    """Note a line for every column that a person should look at."""
    doubtful = [one for one in columns if one.doubt]
    for one in doubtful[:MOST_LINES]:
        option = f" ({one.option})" if one.option else ""
        notes.append(f"{one.name}: {one.doubt}{option}")
    if len(doubtful) > MOST_LINES:
        notes.append(f"and {len(doubtful) - MOST_LINES:,} more columns (--table lists all)")


def understanding_facts(columns: Sequence[ColumnUnderstanding]) -> list[dict[str, Any]]:
    """Return the columns for machines."""
    keys = ("name", "kind", "confidence", "evidence", "doubt", "option", "refused")
    return [{key: getattr(one, key) for key in keys} for one in columns]
