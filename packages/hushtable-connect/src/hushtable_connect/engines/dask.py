"""Sketch and score a Dask data frame, on any Dask scheduler or cluster.

Counts add up exactly, so the sketch is bit-identical to the sketch that a single machine makes,
no matter how the rows are distributed and which workers fail. It needs the extra ``dask``. Noise
is added once, to the sum: see `Sketch.release`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from hushtable.counts.sketch import Sketch
from hushtable.errors import UsageError
from hushtable.lazy import exports
from hushtable.plans.plan import Plan
from hushtable_connect.engines import added, columns_of, plan_of, total, worker

__all__ = ["score_data", "sketch_data"]

__getattr__, _ = exports(__name__, {})  # refuses what was removed

#: Sketches that one task adds up.
_FAN_IN = 16


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the workers of Dask.

    Parameters
    ----------
    plan : Plan
        The plan to count under.
    data : dask DataFrame
        Rows; columns that the plan does not name are left out.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    UsageError, DataError
        If this is no Dask data frame, or the data lack a column or have no rows.

    Examples
    --------
    >>> import dask.dataframe, pandas
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines.dask import sketch_data
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> frame = dask.dataframe.from_pandas(pandas.DataFrame({"age": [30.0, 40.0]}), npartitions=2)
    >>> sketch_data(plan, frame).n_rows
    2
    """
    rows = _checked(plan, data)
    from dask.delayed import delayed  # it is installed if there is a frame

    waiting = rows.map_partitions(_sketch, worker(plan), meta={"sketch": object}).to_delayed()
    adding = delayed(_added)
    while len(waiting) > 1:
        waiting = [adding(plan, waiting[i : i + _FAN_IN]) for i in range(0, len(waiting), _FAN_IN)]
    return total(plan, _batches(waiting[0].compute()))


def score_data(model: Any, data: Any) -> Any:
    """Score a Dask data frame.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        The model that scores; a detector has to be fitted.
    data : dask DataFrame
        Rows.

    Returns
    -------
    dask Series of float64, named "score"
        With the index of ``data``; low = abnormal. Rows are scored when the result is computed.

    Raises
    ------
    UsageError, DataError
        If this is no Dask data frame or no model, or the data lack a column.

    Examples
    --------
    >>> import dask.dataframe, pandas
    >>> from hushtable import HushTable
    >>> from hushtable_connect.engines.dask import score_data
    >>> rows = pandas.DataFrame({"age": [30.0] * 99 + [80.0]})
    >>> model = HushTable(random_state=0).fit(rows)
    >>> score_data(model, dask.dataframe.from_pandas(rows, npartitions=2)).compute().idxmin()
    99
    """
    rows = _checked(plan_of(model), data)
    return rows.map_partitions(_scores, worker(model), meta=("score", "f8"))


def _checked(plan: Plan, data: Any) -> Any:
    if not hasattr(data, "map_partitions"):
        raise UsageError(
            f"{type(data).__name__} is not a Dask data frame: needs one, as dask.dataframe reads it"
        )
    return data[columns_of(plan, data)]


def _batches(rows: Any) -> Iterator[pa.RecordBatch]:
    return iter(pa.Table.from_pandas(rows, preserve_index=False).to_batches())


def _sketch(rows: Any, count: Callable[..., Iterator[pa.RecordBatch]]) -> Any:
    return pa.Table.from_batches(count(_batches(rows))).to_pandas()


def _added(plan: Plan, sketches: list[Any]) -> Any:
    batches = (batch for rows in sketches for batch in _batches(rows))
    return pa.Table.from_batches(added(plan, batches)).to_pandas()


def _scores(rows: Any, score: Callable[..., Iterator[pa.RecordBatch]]) -> Any:
    import pandas as pd  # comes with Dask's data frames

    all_scores = [s for batch in score(_batches(rows)) for s in batch.column("score").to_pylist()]
    return pd.Series(all_scores, index=rows.index, name="score", dtype="f8")
