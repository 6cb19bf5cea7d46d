"""Sketch and score a Spark data frame by its Arrow batches, or files in the executors.

Counts add up exactly, so the sketch is bit-identical to the sketch that a single machine makes.
Data frames go through ``mapInArrow``, and functions in SQL are Arrow functions; Spark Connect has
both. It needs the extra ``spark``, and hushtable on the workers. Noise is added once, to the sum:
see `Sketch.release`.
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

#: Spark's setting for the number of rows that it passes on at a time; its default is 10,000.
_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Partitions that add up the sketches of all others, before the driver adds the rest.
_SUMS = 8


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the executors of Spark.

    Parameters
    ----------
    plan : Plan
        The plan to count under.
    data : pyspark.sql.DataFrame, or path
        Rows, classic or Connect; columns that the plan does not name are left out. A path names
        files that every executor can read, a folder of them, or a glob pattern; each file is one
        task under the active session. hushtable reads the files itself, which is three times as
        fast as receiving rows that Spark's JVM has read.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    UsageError, DataError
        If the data are neither, lack a column, or have no rows; or if no session is active.

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
        raise DataError("the data hold no rows: needs 1 or more")
    return result


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
        raise UsageError("the data already have a column named score: rename it, or leave it out")

    def scoring(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scorer = Scorer(counts)
        for batch in batches:
            scores = pa.array(score(scorer, batch, reading))
            schema = batch.schema.append(pa.field("score", pa.float64()))
            yield pa.RecordBatch.from_arrays([*batch.columns, scores], schema=schema)

    # typed by pyspark, which may be missing
    from pyspark.sql.types import DoubleType, StructField, StructType

    types = StructType([*data.schema.fields, StructField("score", DoubleType())])
    return data.mapInArrow(scoring, types)


def score_files(
    model: Any, data: "str | os.PathLike[str]", folder: "str | os.PathLike[str]"
) -> list[Path]:
    """Score files into a folder, one file of scores for each file of rows, by the active session.

    Files are written, or kept, as by `score_files` of `hushtable_connect.engines.dask`.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        The model that scores.
    data : path
        As in `sketch_data`.
    folder : path
        The folder for the scores, which every executor can write; it is created if it is missing.
        The files are Parquet, with the columns ``row`` (int64, from 0 in each file) and ``score``
        (float64).

    Returns
    -------
    list of Path
        The files of scores, in the order of the files of rows.

    Raises
    ------
    UsageError
        If a file in the folder holds something else, such as scores by another model; or if no
        session is active.

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
            # Executors have their own working folder.
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
    """Register a model as a function of Spark SQL, from a row's columns to its score.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        The session that gets the function, classic or Connect.
    model : detector, Sketch, Release or LocalModel
        The model that scores; a detector has to be fitted.
    name : str, default="hush_score"
        The function's name. An existing function of that name is replaced.

    Returns
    -------
    str
        The call to write into a query, with the model's columns in their order. NULL is a missing
        value; the function returns a double, low = abnormal.

    Raises
    ------
    UsageError
        If this is not a session or not a model, or the name is not a plain name.

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

    # Spark reads from the types that it is called once per partition.
    def scores(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        scorer = Scorer(counts)
        for columns in batches:
            # A single column does not come as a tuple.
            rows = rows_of(columns if isinstance(columns, tuple) else (columns,), names)
            yield pa.array(score(scorer, rows, reading))

    _register(session, name, scores, "double")
    return call(name, names, "`")


def register_sketch(session: Any, plan: Plan, name: str = "hush_sketch") -> str:
    """Register counting under a plan as an aggregate of Spark SQL, from rows to a sketch.

    One worker counts all rows of a group in its memory. To count all rows, use
    `sketch_data`.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        The session that gets the function, classic or Connect.
    plan : Plan
        The plan to count under.
    name : str, default="hush_sketch"
        The function's name. An existing function of that name is replaced.

    Returns
    -------
    str
        The call to write into a query with GROUP BY, with the plan's columns in their order. The
        function returns a binary, which `hushtable_connect.engines.sketch_of` converts to a
        sketch. It holds exact counts: protect it like the rows.

    Raises
    ------
    UsageError
        If this is not a session or not a plan, or the name is not a plain name.

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

    # Spark reads from the types that this is an aggregate.
    def sketched(*columns: pa.Array) -> bytes:
        return packed(count(plan, rows_of(columns, names)))

    _register(session, name, sketched, "binary")
    return call(name, names, "`")


def _register(session: Any, name: str, function: Any, gives: str) -> None:
    check_name(name)
    if not hasattr(session, "udf"):
        raise UsageError(f"{type(session).__name__} is not a Spark session: needs a SparkSession")
    from pyspark.sql.pandas import functions

    arrow_udf: Any = (
        functions.arrow_udf
    )  # its stubs allow only functions of a fixed number of columns
    session.udf.register(name, arrow_udf(function, gives))


def _files(names: Sequence[Path | str]) -> Any:
    """Return a data frame of paths, each in a task of its own, under the active session."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise UsageError("no Spark session is active: first make one with SparkSession.builder")
    rows = [
        (str(Path(name).absolute()),) for name in names
    ]  # executors have another working folder
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
    """Let Spark pass on more rows at a time inside this block, unless it already does."""
    before = session.conf.get(_AT_ONCE)
    session.conf.set(_AT_ONCE, str(FILE_ROWS) if 0 < int(before) < FILE_ROWS else before)
    try:
        yield
    finally:
        session.conf.set(_AT_ONCE, before)


def _chosen(plan: Plan, data: Any) -> Any:
    if not hasattr(data, "mapInArrow"):
        raise UsageError(f"{type(data).__name__} is not a Spark data frame: needs one")
    names = plan.schema.of_rows.names
    lacking = [name for name in names if name not in data.columns]
    if lacking:
        raise DataError(
            f"the data lack the plan's columns {lacking}: their columns are {data.columns}"
        )
    return data.select(*names)


def _batch(sketch: Sketch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sketch": pa.array([packed(sketch)], pa.binary())})


def _sketches(plan: Plan, rows: Any) -> list[Sketch]:
    return [sketch_of(plan, one) for one in rows.column(0).to_pylist()]
