"""Drift between two sets of rows: whether it can be measured, and what chance explains."""

import math
from typing import Any

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.options import first_names
from hushtable.language import N_, _, numerals
from hushtable.streams import Drift, drift, outside_words


def why_no_drift(counted: Counts) -> str:
    """Return why rows cannot be compared with these counts; empty if they can be."""
    if not counted.adds:
        return N_("a local model mixes exact counts with noisy ones: compare with the result")
    if counted.plan.first_noise_sd is not None:
        return N_("the model's second pass counts dense rows only, and the first has noise")
    return ""


def of_all_rows(counted: Counts) -> Counts:
    """Return the counts with which to compare rows: with two passes, those of the first."""
    counted = counted.unlearned
    return counted.first_pass() if isinstance(counted, Sketch) else counted


def measured(before: Counts, after: Counts, rows: Any = None) -> Drift | None:
    """Return the drift, or None if noise and too few rows make it undetectable."""
    if min(before.n_rows, after.n_rows) < 2:
        return None
    found = drift(before, after, rows=rows)
    return None if math.isnan(found.overall) or math.isnan(found.level) else found


def drift_words(found: Drift) -> str:
    """Describe how far rows drifted, and how much of it chance explains."""
    words = N_(
        "Drift %(drift)s%(context)s, within what chance explains (up to %(level)s; 0 is none, 1 is "
        "no cell in common)."
    )
    if found.overall > found.level:
        words = N_(
            "Drift %(drift)s%(context)s, beyond what chance explains (up to %(level)s; 0 is none, "
            "1 is no cell in common)."
        )
    within = _(" within %(names)s", names=", ".join(found.context)) if found.context else ""
    drifted, level = (numerals(f"{number:.4f}") for number in (found.overall, found.level))
    words = _(words, drift=drifted, context=within, level=level)
    if found.beyond_chance:
        names = first_names(found.beyond_chance, 5)
        words += _(" Columns that drifted by more than chance: %(names)s.", names=names)
    return f"{words} {outside_words(found.outside)}".rstrip()
