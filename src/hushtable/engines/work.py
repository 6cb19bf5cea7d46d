"""Count and score the rows of one partition, on a worker of any engine."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader, as_reader
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer


def counts_of(model: Any) -> Counts:
    """Return the counts that a model scores by; raises `UsageError` if it is none."""
    counts = getattr(model, "sketch_", model)  # a fitted detector stands for its counts
    if not isinstance(counts, Counts) or counts.hidden:
        raise UsageError(
            f"{type(model).__name__} is no model: needs a fitted detector, a sketch or a release"
        )
    return counts


def count(plan: Plan, rows: Any) -> Sketch:
    """Count the rows of one partition, with one thread; none is no rows."""
    reader = rows_of(plan, rows)
    return Sketch.zero(plan) if reader.n_rows == 0 else Sketch.from_data(plan, reader)


def total(sketches: Sequence[Sketch]) -> Sketch:
    """Add sketches up."""
    return reduce(add, sketches)


def score(scorer: Scorer, rows: Any) -> NDArray[np.float64]:
    """Score the rows of one partition, with one thread."""
    reader = rows_of(scorer.plan, rows)
    return np.empty(0) if reader.n_rows == 0 else scorer.score(reader)


def rows_of(plan: Plan, rows: Any) -> Reader:
    """Open rows, with the plan's columns in its order; others are left out."""
    reader = as_reader(rows, text_columns=plan.schema.categorical_names)
    names = reader.names
    if names is None or not plan.schema.named or not set(plan.schema.names) <= set(names):
        return reader  # the encoder says what is wrong
    return reader if list(names) == plan.schema.names else reader.select(list(plan.schema.names))
