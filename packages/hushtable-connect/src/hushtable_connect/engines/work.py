"""Count and score the rows of one partition, on a worker of any engine."""

import os
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.files import STAMP, ScoreFile
from hushtable.scores.scorer import Scorer


def call(name: str, arguments: Sequence[str], quote: str) -> str:
    """Return the call of a function on columns, quoted so that no name is read as SQL."""
    return f"{name}({', '.join(quoted(one, quote) for one in arguments)})"


def quoted(column: str, quote: str) -> str:
    """Return the name of a column quoted for SQL, whatever characters it holds."""
    return f"{quote}{column.replace(quote, 2 * quote)}{quote}"


def check_name(name: str) -> None:
    """Raise `UsageError` unless a function can have this name without quotes."""
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier():
        raise UsageError(
            f"name={name!r}: needs letters, digits and _, with a letter first: 'hush_score'"
        )


def check_plan(plan: object) -> None:
    """Raise `UsageError` unless it is a plan."""
    if not isinstance(plan, Plan):
        raise UsageError(
            f"{type(plan).__name__} is not a plan: needs a plan of Plan.draw, or of a model"
        )


def rows_of(columns: Sequence[Any], names: Sequence[str]) -> pa.Table:
    """Return the arguments of a function as rows; raises `UsageError` if there are too few."""
    if len(columns) != len(names):
        raise UsageError(
            f"the function got {len(columns)} columns: needs {len(names)}, in this order: "
            f"{', '.join(names)}"
        )
    return pa.table(list(columns), list(names))


def packed(sketch: Sketch) -> bytes:
    """Return the id of a sketch's plan, its counts and its tally as bytes."""
    arrays = (array.astype("<i8").tobytes() for array in (sketch.counts, sketch.tally))
    return b"".join([bytes.fromhex(sketch.plan.plan_id), *arrays])


def sketch_of(plan: Plan, packed: bytes) -> Sketch:
    """Return the sketch in the bytes that an engine's ``hush_sketch`` returned.

    Parameters
    ----------
    plan : Plan
        The plan that the rows were counted under.
    packed : bytes
        A value of the function's column.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of the rows of the group.

    Raises
    ------
    UsageError
        If the bytes are not a sketch, or a sketch under another plan.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines import sketch_of
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketch_of(plan, b"something else")
    Traceback (most recent call last):
    ...
    hushtable.errors.UsageError: 14 bytes: no sketch under this plan; needs a value of hush_sketch
    """
    cells, features, name = plan.family.n_cells, len(plan.schema), bytes.fromhex(plan.plan_id)
    if not isinstance(packed, bytes | bytearray | memoryview):
        raise UsageError(f"{type(packed).__name__}: needs the bytes of hush_sketch")
    content = bytes(packed)
    if len(content) != len(name) + 8 * (cells + 2 * features) or not content.startswith(name):
        raise UsageError(
            f"{len(content):,} bytes: no sketch under this plan; needs a value of hush_sketch"
        )
    numbers = np.frombuffer(content, "<i8", offset=len(name)).astype(np.int64)
    return Sketch(plan, numbers[:cells], numbers[cells:].reshape(features, 2))


def counts_of(model: Any) -> Counts:
    """Return the counts that a model scores by; raise `UsageError` if it is not a model."""
    # From a fitted detector, take its counts and what it has learned.
    counts = model._scorer.sketch if hasattr(model, "sketch_") else model
    if not isinstance(counts, Counts):
        raise UsageError(
            f"{type(model).__name__} is not a model: needs a fitted detector, sketch or release"
        )
    return counts


def count(plan: Plan, rows: Any) -> Sketch:
    """Count the rows of one partition, with one thread; return None if there are no rows."""
    reader = open_rows(rows, plan.schema)
    return Sketch.zero(plan) if reader.n_rows == 0 else Sketch.from_data(plan, reader)


def total(sketches: Sequence[Sketch]) -> Sketch:
    """Add sketches up."""
    return reduce(add, sketches)


def reading_of(model: Any) -> Reading:
    """Return how the rows of a fitted detector were read, which applies to other rows, too."""
    reading: Reading = getattr(model, "reading_", Reading())
    return reading


def score(scorer: Scorer, rows: Any, reading: Reading) -> NDArray[np.float64]:
    """Score the rows of one partition, with one thread."""
    reader = open_rows(rows, scorer.plan.schema, reading)
    return np.empty(0) if reader.n_rows == 0 else scorer.score(reader)


def score_file(model: tuple[Counts, Reading], pair: ScoreFile) -> None:
    """Score a file of rows into a file of scores, which appears when it is complete."""
    counts, reading = model
    scores = score(Scorer(counts), pair.source, reading)
    table = pa.table({"row": np.arange(len(scores)), "score": scores})
    pair.target.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(pair.target, private=True) as file:
        pq.write_table(table.replace_schema_metadata({STAMP: pair.stamp()}), file)


def path_of(data: Any, engine: str) -> str:
    """Return the path of files; raise `UsageError` if it is not a path."""
    if not isinstance(data, str | os.PathLike):
        raise UsageError(f"{type(data).__name__}: needs a {engine} data frame or the path of files")
    return os.fspath(data)
