"""Spark: sketch and score a Spark data frame by its Arrow batches, or files in the executors.

Counts add up exactly, so that the sketch is, to the bit, the one that a single machine makes.
Data frames go through ``mapInArrow``, functions in SQL are Arrow functions: Spark Connect has both.
Needs the extra ``spark``, and hushtable on the workers. Noise is added once, to the sum:
`Sketch.release`.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.counts.sketch import Sketch
from hushtable.data.readers import paths
from hushtable.data.readers.reader import FILE_ROWS
from hushtable.errors import DataError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.files import score_files_of
from hushtable.scores.scorer import Scorer
from hushtable_connect.engines.work import (
    call,
    check_name,
    check_plan,
    count,
    counts_of,
    packed,
    path_of,
    reading_of,
    rows_of,
    score,
    score_file,
    sketch_of,
    total,
)

__all__ = ["register_score", "register_sketch", "score_data", "score_files", "sketch_data"]

#: Spark's setting of how many rows it passes on at a time: 10,000, unless someone changes it.
_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Partitions that the sketches of all others are added up in, before the driver adds the rest.
_SUMS = 8


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the executors of Spark.

    Parameters
    ----------
    plan : Plan
        What to count under.
    data : pyspark.sql.DataFrame, or path
        Rows, classic or Connect; columns that the plan does not name are left out. A path names
        files that every executor can read, a folder of them, or a glob pattern: one task a file,
        under the active session. hushtable reads them itself, three times as fast as rows that
        Spark's JVM has read and passes on.

    Returns
    -------
    Sketch
        Equal, to the bit, to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    UsageError, DataError
        If it is neither, lacks a column, or has no row; or if no session is active.

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
    is_frame = hasattr(data, "mapInArrow")
    rows = _chosen(plan, data) if is_frame else _files(paths(path_of(data, "Spark")))

    def counting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if is_frame:
            yield _batch(_of_stream(plan, batches))
        else:
            for batch in batches:
                yield from (_batch(count(plan, path)) for path in batch.column(0).to_pylist())

    def adding(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sketches = [one for batch in batches for one in _sketches(plan, batch)]
        if sketches:
            yield _batch(total(sketches))

    shape = "sketch binary"
    sums = rows.mapInArrow(counting, shape).repartition(_SUMS).mapInArrow(adding, shape)
    with _large_batches(rows.sparkSession):
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


def score_files(
    model: Any, data: "str | os.PathLike[str]", folder: "str | os.PathLike[str]"
) -> list[Path]:
    """Score files into a folder, a file of scores for each file of rows, under the active session.

    What is written, and what is not made again, is as in `hushtable_connect.engines.dask`.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        What to score by.
    data : path
        As in `sketch_data`.
    folder : path
        Where, for every executor; made if it is missing. Parquet, with the columns ``row`` (int64,
        from 0 in each file) and ``score`` (float64).

    Returns
    -------
    list of Path
        The files of scores, in the order of the files of rows.

    Raises
    ------
    UsageError
        If a file there holds something else, such as scores by another model; or if no session is
        active.

    Examples
    --------
    >>> import pandas
    >>> from hushtable import HushTable
    >>> from hushtable_connect.engines.spark import score_files
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.master("local[1]").getOrCreate()
    >>> rows = pandas.DataFrame({"age": [30.0] * 99 + [80.0]})
    >>> rows.to_parquet("rows.parquet")
    >>> [str(path) for path in score_files(HushTable().fit(rows), "rows.parquet", "scores")]
    ['scores/rows.scores.parquet']
    """
    counts, reading = counts_of(model), reading_of(model)
    pairs = score_files_of(counts, path_of(data, "Spark"), folder)
    waiting = {}
    for pair in pairs:
        if not pair.is_done():
            # Executors have a folder of their own.
            source, target = pair.source.absolute(), pair.target.absolute()
            waiting[str(source)] = replace(pair, source=source, target=target)

    def scoring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                score_file((counts, reading), waiting[path])
            yield batch

    if waiting:
        _files(list(waiting)).mapInArrow(scoring, "path string").toArrow()
    return [pair.target for pair in pairs]


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


def _files(names: Sequence[Path | str]) -> Any:
    """Return a data frame of paths, each in a task of its own, under the active session."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise UsageError("no Spark session is active: make one with SparkSession.builder first")
    rows = [(str(Path(name).absolute()),) for name in names]  # executors have their own folder
    return session.createDataFrame(rows, "path string").repartition(len(rows))


def _of_stream(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Sketch:
    """Count the batches of a partition, as one stream of rows."""
    first = next(batches, None)
    if first is None:
        return Sketch.zero(plan)
    rows = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], batches))
    return Sketch.from_data(plan, rows, allow_empty=True)


@contextmanager
def _large_batches(session: Any) -> Iterator[None]:
    """Have Spark pass on more rows at a time, where it passes on fewer; in here."""
    before = session.conf.get(_AT_ONCE)
    session.conf.set(_AT_ONCE, str(FILE_ROWS) if 0 < int(before) < FILE_ROWS else before)
    try:
        yield
    finally:
        session.conf.set(_AT_ONCE, before)


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
