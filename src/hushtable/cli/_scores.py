"""Scores as they are written: a row each, and what they come to."""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from hushtable.files import replacing

__all__ = ["SHOWN", "Lowest", "Scored", "Summary", "write_scores"]

#: Lowest scores that are listed.
SHOWN = 5
#: Rows written at a time: a Parquet row group of about 4 MB.
_GROUP_ROWS = 1 << 18


@dataclass(frozen=True)
class Scored:
    """A batch of rows, scored.

    Attributes
    ----------
    scores : ndarray of shape (n,), float64
        Low is abnormal.
    tally : ndarray of shape (d, 2), int64
        Missing and outside values of each feature.
    columns : tuple of pyarrow.Array
        What else is written of each row.
    details : callable
        From a row of the batch to what else is said of it, as JSON has it.
    """

    scores: Any
    tally: Any
    columns: tuple[Any, ...] = ()
    details: Callable[[int], dict[str, Any]] = lambda _: {}


@dataclass(frozen=True, order=True)
class Lowest:
    """One of the rows with the lowest scores; ``file`` is empty if there is only one."""

    score: float
    file: str
    row: int
    details: dict[str, Any] = field(compare=False)

    def facts(self) -> dict[str, Any]:
        """Return what is said of the row, for machines."""
        place = {"file": self.file} if self.file else {}
        return {**place, "row": self.row, "score": self.score, **self.details}


class Summary:
    """What the scores come to, gathered as they pass.

    Attributes
    ----------
    offset : float
        Scores below are outliers; NaN if there is no threshold.
    n_rows, n_outliers : int
        How many.
    tally : ndarray of shape (d, 2), int64
        Missing and outside values of each feature.
    lowest : list of Lowest
        The rows with the lowest scores.
    """

    def __init__(self, n_features: int, offset: float, source: str = "") -> None:

        self.offset = offset
        self.n_rows = 0
        self.n_outliers = 0
        self.tally = np.zeros((n_features, 2), np.int64)
        self.lowest: list[Lowest] = []
        self._source = source

    def rows(self, batches: Iterable[Scored]) -> Iterator[tuple[Any, ...]]:
        """Yield (number of the first row, scores, outliers, more columns) of each batch."""
        for batch in batches:
            outliers = None if math.isnan(self.offset) else batch.scores < self.offset
            self.n_outliers += 0 if outliers is None else int(outliers.sum())
            self.tally += batch.tally
            self._note_lowest(batch)
            yield self.n_rows, batch.scores, outliers, *batch.columns
            self.n_rows += len(batch.scores)

    def merge(self, other: "Summary") -> None:
        """Take in what the scores of another file come to."""
        self.n_rows += other.n_rows
        self.n_outliers += other.n_outliers
        self.tally += other.tally
        self.lowest = heapq.nsmallest(SHOWN, [*self.lowest, *other.lowest])

    def _note_lowest(self, batch: Scored) -> None:

        # Only what may be among the lowest so far; ties go to the earlier row.
        scores = batch.scores
        bar = np.partition(scores, SHOWN)[SHOWN] if len(scores) > SHOWN else np.inf
        if len(self.lowest) == SHOWN:
            bar = min(bar, self.lowest[-1].score)
        found = heapq.nsmallest(
            SHOWN, ((float(scores[i]), i) for i in np.flatnonzero(scores <= bar))
        )
        new = [
            Lowest(score, self._source, int(i) + self.n_rows, batch.details(int(i)))
            for score, i in found
        ]
        self.lowest = heapq.nsmallest(SHOWN, [*self.lowest, *new])


def write_scores(
    path: Path,
    rows: Iterable[tuple[Any, ...]],
    metadata: dict[bytes, bytes] | None = None,
    more: Sequence[tuple[str, Any]] = (),
) -> None:
    """Write scores as they come; the path holds all of them, or what it held before.

    Parameters
    ----------
    path : Path
        With the suffix .csv, or else Parquet.
    rows : iterable of tuple
        As `Summary.rows` yields them.
    metadata : dict, optional
        Of a Parquet file.
    more : sequence of (str, pyarrow.DataType)
        Names and types of the columns behind row, score and outlier.
    """
    fields = [("row", pa.int64()), ("score", pa.float64()), ("outlier", pa.bool_()), *more]
    schema = pa.schema(fields, metadata)
    with replacing(path, private=True) as temporary:
        if path.suffix == ".csv":
            writer = csv.CSVWriter(str(temporary), schema)
        else:
            writer = parquet.ParquetWriter(str(temporary), schema)
        with writer:
            for table in _grouped(rows, schema):
                writer.write_table(table)


def _grouped(rows: Iterable[tuple[Any, ...]], schema: Any) -> Iterator[Any]:

    def column(kind: Any, length: int, values: Any) -> Any:
        # Not pa.array, which imports pandas where it is installed: a quarter of a second.
        return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(values)])

    batches, waiting = [], 0
    for start, scores, outliers, *more in rows:
        n_rows = len(scores)
        arrays = [
            column(pa.int64(), n_rows, np.arange(start, start + n_rows)),
            column(pa.float64(), n_rows, scores),
            pa.nulls(n_rows, pa.bool_())
            if outliers is None
            else column(pa.bool_(), n_rows, np.packbits(outliers, bitorder="little")),
            *more,
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        waiting += n_rows
        if waiting >= _GROUP_ROWS:
            yield pa.Table.from_batches(batches).combine_chunks()
            batches, waiting = [], 0
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()
