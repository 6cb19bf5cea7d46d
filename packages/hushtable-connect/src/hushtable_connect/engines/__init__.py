"""The same sketch and the same scores in Dask and Spark, each with its own extra.

`worker` is the one function that both engines call on the Arrow batches of a partition. May import
`scores` and the layers below it; tested in ``tests/engines``, on one machine.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, UsageError
from hushtable.lazy import exports
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

__all__ = ["total", "worker"]

__getattr__, _ = exports(__name__, {})  # refuses what was removed

Batches = Iterator[pa.RecordBatch]


def worker(work: Any) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """Return the function that counts or scores the Arrow batches of one partition.

    Any engine that calls functions on Arrow batches can use it, such as Spark's ``mapInArrow``.

    Parameters
    ----------
    work : Plan, or fitted detector, Sketch, Release or LocalModel
        A plan to count under, or a model that scores.

    Returns
    -------
    callable
        Takes the batches of a partition. For a plan, it yields one batch with the column
        ``sketch``, a binary that `total` adds up; it holds exact counts: protect it like the rows.
        For a model, it yields each batch with an additional column ``score`` (float64; low =
        abnormal).

    Raises
    ------
    UsageError
        If this is neither a plan nor a model.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines import total, worker
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> batch = pa.RecordBatch.from_pydict({"age": [30.0, 31.0, 80.0]})
    >>> sketch = total(plan, worker(plan)([batch]))
    >>> [scored] = worker(sketch)([batch])
    >>> sketch.n_rows, scored.column("score").to_numpy().argmin()
    (3, np.int64(2))
    """
    if isinstance(work, Plan):
        return lambda batches: iter([_counted(work, iter(batches))])
    counts = _counts_of(work)
    reading: Reading = getattr(work, "reading_", Reading())
    return lambda batches: _scored(Scorer(counts), reading, batches)


def _counts_of(model: Any) -> Counts:
    # Of a fitted detector, the counts include what it has learned.
    counts = model._scorer.sketch if hasattr(model, "sketch_") else model
    if not isinstance(counts, Counts):
        raise UsageError(
            f"{type(model).__name__} is not a model: needs a fitted detector, sketch or release"
        )
    return counts


def _counted(plan: Plan, batches: Batches) -> pa.RecordBatch:
    first = next(batches, None)
    if first is None:
        return _packed(Sketch.zero(plan))
    rows = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
    return _packed(Sketch.from_data(plan, rows, allow_empty=True))


def _scored(scorer: Scorer, reading: Reading, batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        rows = open_rows(batch, scorer.plan.schema, reading)
        scores = scorer.score(rows) if len(batch) else np.empty(0)
        yield batch.append_column("score", pa.array(scores, pa.float64()))


def _packed(sketch: Sketch) -> pa.RecordBatch:
    content = b"".join(part.astype("<i8").tobytes() for part in (sketch.counts, sketch.tally))
    return pa.RecordBatch.from_pydict({"sketch": pa.array([content], pa.binary())})


def added(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield one batch with the sum of the sketches that workers counted."""
    yield _packed(_sum(plan, batches))


def _sum(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Sketch:
    sketch, cells = Sketch.zero(plan), plan.family.n_cells
    for content in (one for batch in batches for one in batch.column(0).to_pylist()):
        numbers = np.frombuffer(content, "<i8").astype(np.int64)
        sketch += Sketch(plan, numbers[:cells], numbers[cells:].reshape(-1, 2))
    return sketch


def total(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Sketch:
    """Add up the sketches that workers counted.

    Parameters
    ----------
    plan : Plan
        The plan that the rows were counted under.
    batches : iterable of pyarrow.RecordBatch
        What `worker` yielded for all partitions.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of all rows.

    Raises
    ------
    DataError
        If there are no rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines import total, worker
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> rows = pa.table({"age": [30.0, 31.0, 80.0]})
    >>> total(plan, worker(plan)(rows.to_batches())).n_rows
    3
    """
    sketch = _sum(plan, batches)
    if sketch.n_rows == 0:
        raise DataError("the data hold no rows: needs 1 or more")
    return sketch


def plan_of(model: Any) -> Plan:
    """Return the plan of a model; raise `UsageError` if it is not a model."""
    return _counts_of(model).plan


def columns_of(plan: Plan, data: Any) -> list[str]:
    """Return the columns of a data frame that a plan reads; raise `DataError` if one is missing."""
    if not isinstance(plan, Plan):
        raise UsageError(
            f"{type(plan).__name__} is not a plan: needs a plan of Plan.draw, or of a model"
        )
    names, columns = plan.schema.of_rows.names, list(data.columns)
    if lacking := [name for name in names if name not in columns]:
        raise DataError(f"the data lack the columns {lacking}: their columns are {columns}")
    return names
