"""Drift as ``hushtable drift`` and ``hushtable watch`` measure and say it."""

import math
from typing import Any

from hushtable.cli._output import listed
from hushtable.counts.base import Counts
from hushtable.streams import Drift, drift


def measured(before: Counts, after: Counts, rows: Any = None) -> Drift | None:
    """Return the drift, or None if it cannot be told from what noise and too few rows do."""
    if min(before.n_rows, after.n_rows) < 2:
        return None
    found = drift(before, after, rows=rows)
    return None if math.isnan(found.overall) or math.isnan(found.level) else found


def drift_facts(found: Drift | None) -> dict[str, Any]:
    """Return the drift for machines."""
    if found is None:
        return {"drift": None, "level": None, "beyond_chance": []}
    return {
        "drift": found.overall,
        "level": found.level,
        "beyond_chance": found.beyond_chance,
    }


def drift_words(found: Drift) -> str:
    """Say how far rows drifted, and what chance explains of it."""
    beyond = "beyond" if found.overall > found.level else "within"
    words = (
        f"Drift {found.overall:.4f}, {beyond} what chance explains (up to {found.level:.4f}; 0 is "
        "none, 1 is no cell in common)."
    )
    if found.beyond_chance:
        words += f" Columns that drifted by more than chance: {listed(found.beyond_chance, 5)}."
    return words
