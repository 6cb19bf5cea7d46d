"""Spark: sketch and score a Spark data frame by its Arrow batches.

Counts add up exactly, so that the sketch is, to the bit, the one that a single machine makes.
Data frames go through ``mapInArrow``, functions in SQL are Arrow functions: Spark Connect has both.
Needs the extra ``spark``, and hushtable on the workers. Noise is added once, to the sum:
`Sketch.release`.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hushtable.counts.sketch import Sketch
from hushtable.errors import DataError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer
from hushtable_connect.engines.work import (
    call,
    check_name,
    check_plan,
    count,
    counts_of,
    packed,
    reading_of,
    rows_of,
    score,
    sketch_of,
    total,
)

__all__ = ["register_score", "register_sketch", "score_data", "sketch_data"]

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
    >>> from hushtable_connect.engines.spark import sketch_data
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
        yield _batch(found)

    def adding(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sketches = [one for batch in batches for one in _sketches(plan, batch)]
        if sketches:
            yield _batch(total(sketches))

    shape = "sketch binary"
    sums = rows.mapInArrow(counting, shape).repartition(_SUMS).mapInArrow(adding, shape)
    sketches = _sketches(plan, sums.toArrow())
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
    >>> from hushtable_connect.engines.spark import score_data
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


def register_score(session: Any, model: Any, name: str = "hush_score") -> str:
    """Make a model a function of Spark SQL, from a row's columns to its score.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        Where the function is known, classic or Connect.
    model : detector, Sketch, Release or LocalModel
        What to score by; a detector has to be fitted.
    name : str, default="hush_score"
        The function's name. One of that name is replaced.

    Returns
    -------
    str
        The call, on the model's columns in its order, for a query. NULL is missing; the function
        returns a double, low = abnormal.

    Raises
    ------
    UsageError
        If this is no session or no model, or no plain name.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable_connect.engines.spark import register_score
    >>> session = SparkSession.builder.master("local[1]").getOrCreate()
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> register_score(session, Sketch.from_data(plan, [[30.0], [31.0], [80.0]]))
    'hush_score(`age`)'
    >>> session.sql("SELECT hush_score(30) > hush_score(80) AS found").first()
    Row(found=True)
    """
    counts, reading = counts_of(model), reading_of(model)
    names = counts.plan.schema.of_rows.names

    # The types are Spark's: they say that it is called once a partition.
    def scores(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        scorer = Scorer(counts)
        for columns in batches:
            # A single column comes by itself.
            rows = rows_of(columns if isinstance(columns, tuple) else (columns,), names)
            yield pa.array(score(scorer, rows, reading))

    _register(session, name, scores, "double")
    return call(name, names, "`")


def register_sketch(session: Any, plan: Plan, name: str = "hush_sketch") -> str:
    """Make counting under a plan an aggregate of Spark SQL, from rows to a sketch.

    The rows of a group are counted by one worker, in its memory. To count all rows, use
    `sketch_data`.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        Where the function is known, classic or Connect.
    plan : Plan
        What to count under.
    name : str, default="hush_sketch"
        The function's name. One of that name is replaced.

    Returns
    -------
    str
        The call, on the plan's columns in its order, for a query with GROUP BY. The function
        returns a binary, which `hushtable_connect.engines.sketch_of` makes a sketch. It holds exact
        counts: it is kept like the rows.

    Raises
    ------
    UsageError
        If this is no session or no plan, or no plain name.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines import sketch_of
    >>> from hushtable_connect.engines.spark import register_sketch
    >>> session = SparkSession.builder.master("local[1]").getOrCreate()
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketched = register_sketch(session, plan)
    >>> rows = "(SELECT id AS age FROM range(40))"
    >>> row = session.sql(f"SELECT {sketched} AS sketch FROM {rows} GROUP BY age < 50").first()
    >>> sketch_of(plan, row.sketch).n_rows
    40
    """
    check_plan(plan)
    names = plan.schema.of_rows.names

    # The types are Spark's: they say that this is an aggregate.
    def sketched(*columns: pa.Array) -> bytes:
        return packed(count(plan, rows_of(columns, names)))

    _register(session, name, sketched, "binary")
    return call(name, names, "`")


def _register(session: Any, name: str, function: Any, gives: str) -> None:
    check_name(name)
    if not hasattr(session, "udf"):
        raise UsageError(f"{type(session).__name__} is no Spark session: needs a SparkSession")
    from pyspark.sql.pandas import functions

    arrow_udf: Any = functions.arrow_udf  # its stubs take a function of fixed columns alone
    session.udf.register(name, arrow_udf(function, gives))


def _chosen(plan: Plan, data: Any) -> Any:
    if not hasattr(data, "mapInArrow"):
        raise UsageError(f"{type(data).__name__} is no Spark data frame")
    names = plan.schema.of_rows.names
    lacking = [name for name in names if name not in data.columns]
    if lacking:
        raise DataError(f"the data lack the plan's columns {lacking}: they have {data.columns}")
    return data.select(*names)


def _batch(sketch: Sketch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sketch": pa.array([packed(sketch)], pa.binary())})


def _sketches(plan: Plan, rows: Any) -> list[Sketch]:
    return [sketch_of(plan, one) for one in rows.column(0).to_pylist()]
