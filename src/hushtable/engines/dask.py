"""Dask: sketch and score a Dask data frame, or files, on any scheduler or cluster.

Counts add up exactly, so that the sketch is, to the bit, the one that a single machine makes,
however the rows are dealt out and whichever workers die. Needs the extra ``dask``. Noise is
added once, to the sum: `Sketch.release`.
"""

import os
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import paths
from hushtable.engines.parts import STAMP, Part, parts_of
from hushtable.engines.work import count, counts_of, score, total
from hushtable.errors import DataError, MissingExtraError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

__all__ = ["score_data", "score_files", "sketch_data"]

#: Sketches that one task adds up.
_FAN_IN = 16


def sketch_data(plan: Plan, data: Any) -> Sketch:
    """Count rows on the workers of Dask.

    Parameters
    ----------
    plan : Plan
        What to count under; sent to each worker once.
    data : dask DataFrame, or path
        Rows; a path names files of CSV or Parquet that every worker can read, a folder of them,
        or a glob pattern: one task a file.

    Returns
    -------
    Sketch
        Equal, to the bit, to ``Sketch.from_data`` of the same rows.

    Raises
    ------
    DataError
        If there is no row, or the columns are not the plan's.
    """
    dask = _dask()
    parts = data.to_delayed() if hasattr(data, "to_delayed") else paths(_path(data))
    shared, counting, adding = dask.delayed(plan), dask.delayed(count), dask.delayed(total)
    waiting = [counting(shared, part) for part in parts]
    while len(waiting) > 1:
        waiting = [adding(waiting[i : i + _FAN_IN]) for i in range(0, len(waiting), _FAN_IN)]
    result: Sketch = waiting[0].compute()
    if result.n_rows == 0:
        raise DataError("the data hold no rows: there is nothing to count")
    return result


def score_data(model: Any, data: Any) -> Any:
    """Score a Dask data frame.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        What to score by; a detector has to be fitted.
    data : dask DataFrame
        Rows.

    Returns
    -------
    dask Series of float64, named "score"
        With the index of ``data``; low = abnormal. Nothing is scored until it is asked for.
    """
    dask = _dask()
    if not hasattr(data, "map_partitions"):
        raise UsageError(
            f"{type(data).__name__} is no Dask data frame: files are scored by score_files"
        )
    shared = dask.delayed(counts_of(model))
    return data.map_partitions(_series, shared, meta=("score", "f8"))


def score_files(
    model: Any, data: "str | os.PathLike[str]", folder: "str | os.PathLike[str]"
) -> list[Path]:
    """Score files into a folder, a file of scores for each file of rows.

    A file of scores that is there already is not made again, unless its rows have changed: an
    interrupted call goes on where it stopped. Each appears only when it is complete.

    Parameters
    ----------
    model : detector, Sketch, Release or LocalModel
        What to score by.
    data : path
        As in `sketch_data`.
    folder : path
        Where; made if it is missing. Parquet, with the columns ``row`` (int64, from 0 in each
        file) and ``score`` (float64).

    Returns
    -------
    list of Path
        The files of scores, in the order of the files of rows.

    Raises
    ------
    UsageError
        If a file there holds something else, such as scores by another model.
    """
    dask = _dask()
    counts = counts_of(model)
    parts = parts_of(counts, _path(data), folder)
    shared, scoring = dask.delayed(counts), dask.delayed(_score_part)
    dask.compute(*(scoring(shared, part) for part in parts if not part.is_done()))
    return [part.target for part in parts]


def _series(part: Any, counts: Any) -> Any:
    import pandas as pd

    return pd.Series(score(Scorer(counts), part), index=part.index, name="score")


def _score_part(counts: Any, part: Part) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = score(Scorer(counts), part.source)
    table = pa.table({"row": np.arange(len(scores)), "score": scores})
    part.target.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(part.target, private=True) as temporary:
        pq.write_table(table.replace_schema_metadata({STAMP: part.stamp()}), temporary)


def _path(data: Any) -> str:
    if not isinstance(data, str | os.PathLike):
        raise UsageError(f"{type(data).__name__}: needs a Dask data frame, or the path of files")
    return os.fspath(data)


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise MissingExtraError("this engine", "Dask", "dask") from None
    return dask
