"""Spark: sketch and score a Spark data frame by its Arrow batches.

Counts add up exactly, so that the sketch is, to the bit, the one that a single machine makes.
Uses ``mapInArrow`` alone, which Spark Connect has too. Needs the extra ``spark``, and hushtable
on the workers. Noise is added once, to the sum: `Sketch.release`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.counts.sketch import Sketch
from hushtable.engines.work import count, counts_of, reading_of, score, total
from hushtable.errors import DataError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

__all__ = ["score_data", "sketch_data"]

_COUNTS = pa.schema([("counts", pa.binary()), ("tally", pa.binary())])
#: Partitions that the sketches of all others are added up in, before the driver adds the rest.
_SUMS = 8


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count the rows of a Spark data frame on its executors.

    Parameters
    ----------
    plan : Plan
        What to count under.
    data : pyspark.sql.DataFrame
        Rows, classic or Connect; columns that the plan does not name are left out.

    Returns
    -------
    Sketch
        Equal, to the bit, to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    UsageError, DataError
        If it is no Spark data frame, or lacks a column, or has no row.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable.engines.spark import sketch_data
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketch_data(plan, spark.createDataFrame([(30.0,), (40.0,)], ["age"])).n_rows
    2
    """
    rows = _chosen(plan, data)

    def counting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = Sketch.zero(plan)
        for batch in batches:
            found = found + count(plan, batch)
        yield _packed(found)

    def adding(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sketches = [one for batch in batches for one in _unpacked(plan, batch)]
        if sketches:
            yield _packed(total(sketches))

    shape = "counts binary, tally binary"
    sums = rows.mapInArrow(counting, shape).repartition(_SUMS).mapInArrow(adding, shape)
    sketches = [one for batch in sums.toArrow().to_batches() for one in _unpacked(plan, batch)]
    result = total([Sketch.zero(plan), *sketches])
    if result.n_rows == 0:
        raise DataError("the data hold no rows: there is nothing to count")
    return result


def score_data(model: Any, data: Any) -> Any:
    """Score a Spark data frame.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        What to score by; a detector has to be fitted.
    data : pyspark.sql.DataFrame
        Rows.

    Returns
    -------
    pyspark.sql.DataFrame
        ``data`` with a column more, ``score`` (double; low = abnormal). Spark scores when the
        result is written or collected.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable.engines.spark import score_data
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> model = Sketch.from_data(plan, [[30.0], [31.0], [80.0]])
    >>> score_data(model, spark.createDataFrame([(30.0,), (40.0,)], ["age"])).columns
    ['age', 'score']
    """
    counts, reading = counts_of(model), reading_of(model)
    _chosen(counts.plan, data)  # lacks no column
    if "score" in data.columns:
        raise UsageError("the data have a column named score: rename it, or leave it out")

    def scoring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scorer = Scorer(counts)
        for batch in batches:
            scores = pa.array(score(scorer, batch, reading))
            schema = batch.schema.append(pa.field("score", pa.float64()))
            yield pa.RecordBatch.from_arrays([*batch.columns, scores], schema=schema)

    # The engine's own types: pyspark is the extra.
    from pyspark.sql.types import DoubleType, StructField, StructType

    types = StructType([*data.schema.fields, StructField("score", DoubleType())])
    return data.mapInArrow(scoring, types)


def _chosen(plan: Plan, data: Any) -> Any:
    if not hasattr(data, "mapInArrow"):
        raise UsageError(f"{type(data).__name__} is no Spark data frame")
    lacking = [name for name in plan.schema.names if name not in data.columns]
    if lacking:
        raise DataError(f"the data lack the plan's columns {lacking}: they have {data.columns}")
    return data.select(*plan.schema.names)


def _packed(sketch: Sketch) -> pa.RecordBatch:
    arrays = [
        pa.array([array.astype("<i8").tobytes()], pa.binary())
        for array in (sketch.counts, sketch.tally)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_COUNTS)


def _unpacked(plan: Plan, batch: pa.RecordBatch) -> Iterator[Sketch]:
    for counts, tally in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Sketch(
            plan,
            np.frombuffer(counts, "<i8").astype(np.int64),
            np.frombuffer(tally, "<i8").astype(np.int64).reshape(-1, 2),
        )
