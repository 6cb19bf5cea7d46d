"""Count and score the rows of one partition, on a worker of any engine."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer


def counts_of(model: Any) -> Counts:
    """Return the counts that a model scores by; raises `UsageError` if it is none."""
    # A fitted detector stands for its counts, and for what it has learned.
    counts = model._scorer.sketch if hasattr(model, "sketch_") else model
    if not isinstance(counts, Counts) or counts.hidden:
        raise UsageError(
            f"{type(model).__name__} is no model: needs a fitted detector, a sketch or a release"
        )
    return counts


def count(plan: Plan, rows: Any) -> Sketch:
    """Count the rows of one partition, with one thread; none is no rows."""
    reader = open_rows(rows, plan.schema)
    return Sketch.zero(plan) if reader.n_rows == 0 else Sketch.from_data(plan, reader)


def total(sketches: Sequence[Sketch]) -> Sketch:
    """Add sketches up."""
    return reduce(add, sketches)


def reading_of(model: Any) -> Reading:
    """Return how the rows of a fitted detector were read, which holds for others."""
    reading: Reading = getattr(model, "reading_", Reading())
    return reading


def score(scorer: Scorer, rows: Any, reading: Reading) -> NDArray[np.float64]:
    """Score the rows of one partition, with one thread."""
    reader = open_rows(rows, scorer.plan.schema, reading)
    return np.empty(0) if reader.n_rows == 0 else scorer.score(reader)
