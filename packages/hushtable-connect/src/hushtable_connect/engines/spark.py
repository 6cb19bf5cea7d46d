"""Sketch and score a Spark data frame by its Arrow batches.

Counts add up exactly, so the sketch is bit-identical to the sketch that a single machine makes.
Data frames go through ``mapInArrow``, which Spark Connect has, too. It needs the extra ``spark``,
and hushtable on the workers. Noise is added once, to the sum: see `Sketch.release`.
"""

from functools import partial
from typing import Any

from hushtable.counts.sketch import Sketch
from hushtable.errors import UsageError
from hushtable.lazy import exports
from hushtable.plans.plan import Plan
from hushtable_connect.engines import added, columns_of, plan_of, total, worker

__all__ = ["score_data", "sketch_data"]

__getattr__, _ = exports(__name__, {})  # refuses what was removed

#: Partitions that add up the sketches of all others, before the driver adds the rest.
_SUMS = 8


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the executors of Spark.

    Parameters
    ----------
    plan : Plan
        The plan to count under.
    data : pyspark.sql.DataFrame
        Rows, classic or Connect; columns that the plan does not name are left out.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    UsageError, DataError
        If this is no Spark data frame, or the data lack a column or have no rows.

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
    shape, rows = "sketch binary", data.select(*_columns(plan, data))
    counted = rows.mapInArrow(worker(plan), shape).repartition(_SUMS)
    return total(plan, counted.mapInArrow(partial(added, plan), shape).toArrow().to_batches())


def score_data(model: Any, data: Any) -> Any:
    """Score a Spark data frame.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        The model that scores; a detector has to be fitted.
    data : pyspark.sql.DataFrame
        Rows.

    Returns
    -------
    pyspark.sql.DataFrame
        ``data`` with an additional column, ``score`` (double; low = abnormal). Spark scores when
        the result is written or collected.

    Raises
    ------
    UsageError, DataError
        If this is no Spark data frame or no model, or the data lack a column or have one named
        score.

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
    _columns(plan_of(model), data)
    if "score" in data.columns:
        raise UsageError("the data already have a column named score: rename it, or leave it out")
    from pyspark.sql.types import DoubleType, StructField, StructType

    types = StructType([*data.schema.fields, StructField("score", DoubleType())])
    return data.mapInArrow(worker(model), types)


def _columns(plan: Plan, data: Any) -> list[str]:
    if not hasattr(data, "mapInArrow"):
        raise UsageError(f"{type(data).__name__} is not a Spark data frame: needs one")
    return columns_of(plan, data)
