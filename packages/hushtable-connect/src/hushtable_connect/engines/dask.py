"""Sketch and score a Dask data frame, or files, on any Dask scheduler or cluster.

Counts add up exactly, so the sketch is bit-identical to the sketch that a single machine makes,
no matter how the rows are distributed and which workers fail. It needs the extra ``dask``. Noise
is added once, to the sum: see `Sketch.release`.
"""

import os
from pathlib import Path
from typing import Any

from hushtable.counts.sketch import Sketch
from hushtable.data.readers import paths
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError, MissingExtraError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.files import score_files_of
from hushtable.scores.scorer import Scorer
from hushtable_connect.engines.work import (
    count,
    counts_of,
    path_of,
    reading_of,
    score,
    score_file,
    total,
)

__all__ = ["score_data", "score_files", "sketch_data"]

#: Sketches that one task adds up.
_FAN_IN = 16


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the workers of Dask.

    Parameters
    ----------
    plan : Plan
        The plan to count under; it is sent to each worker once.
    data : dask DataFrame, or path
        Rows. A path names files that every worker can read, a folder of them, or a glob pattern;
        each file is one task.

    Returns
    -------
    Sketch
        Bit-identical to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    DataError
        If there are no rows, or the columns are not the plan's.

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
    dask = _dask()
    partitions = data.to_delayed() if hasattr(data, "to_delayed") else paths(path_of(data, "Dask"))
    shared, counting, adding = dask.delayed(plan), dask.delayed(count), dask.delayed(total)
    waiting = [counting(shared, one) for one in partitions]
    while len(waiting) > 1:
        waiting = [adding(waiting[i : i + _FAN_IN]) for i in range(0, len(waiting), _FAN_IN)]
    result: Sketch = waiting[0].compute()
    if result.n_rows == 0:
        raise DataError("the data hold no rows: needs 1 or more")
    return result


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
    dask = _dask()
    if not hasattr(data, "map_partitions"):
        raise UsageError(
            f"{type(data).__name__} is not a Dask data frame: use score_files to score files"
        )
    shared = dask.delayed(counts_of(model))
    return data.map_partitions(_series, shared, reading_of(model), meta=("score", "f8"))


def score_files(
    model: Any, data: "str | os.PathLike[str]", folder: "str | os.PathLike[str]"
) -> list[Path]:
    """Score files into a folder: one file of scores for each file of rows.

    An existing file of scores is kept unless its rows have changed, so an interrupted call
    continues where it stopped. Each file appears only when it is complete.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        The model that scores.
    data : path
        As in `sketch_data`.
    folder : path
        The folder for the scores; it is created if it is missing. The files are Parquet, with the
        columns ``row`` (int64, from 0 in each file) and ``score`` (float64).

    Returns
    -------
    list of Path
        The files of scores, in the order of the files of rows.

    Raises
    ------
    UsageError
        If a file in the folder holds something else, such as scores by another model.

    Examples
    --------
    >>> import pandas
    >>> from hushtable import HushTable
    >>> from hushtable_connect.engines.dask import score_files
    >>> rows = pandas.DataFrame({"age": [30.0] * 99 + [80.0]})
    >>> rows.to_parquet("rows.parquet")
    >>> [str(path) for path in score_files(HushTable().fit(rows), "rows.parquet", "scores")]
    ['scores/rows.scores.parquet']
    """
    dask = _dask()
    counts = counts_of(model)
    pairs = score_files_of(counts, path_of(data, "Dask"), folder)
    shared, scoring = dask.delayed((counts, reading_of(model))), dask.delayed(score_file)
    dask.compute(*(scoring(shared, pair) for pair in pairs if not pair.is_done()))
    return [pair.target for pair in pairs]


def _series(rows: Any, counts: Any, reading: Reading) -> Any:
    import pandas as pd  # comes with Dask's data frames

    return pd.Series(score(Scorer(counts), rows, reading), index=rows.index, name="score")


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise MissingExtraError("this engine", "Dask", "dask") from None
    return dask
