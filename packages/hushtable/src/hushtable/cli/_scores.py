"""Scores as they are written, a row each, and what they add up to."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from hushtable.cli._details import SHOWN
from hushtable.cli._formulas import harmless_schema, harmless_table
from hushtable.data.columns import as_column
from hushtable.files import replacing
from hushtable.scores.details import Scored
from hushtable.scores.outliers import Lowest, LowRow

#: Rows written at a time: a Parquet row group of about 4 MB.
_GROUP_ROWS = 1 << 18


class Summary:
    """Adds up what the scores come to, as they pass.

    Scores below ``offset`` are outliers; NaN if there is no threshold. ``tally`` (d, 2) holds the
    missing and outside values of each feature.
    """

    def __init__(self, n_features: int, offset: float, source: str = "") -> None:
        self.offset = offset
        self.n_rows = 0
        self.n_outliers = 0
        self.tally = np.zeros((n_features, 2), np.int64)
        self._lowest = Lowest(SHOWN, source)

    @property
    def lowest(self) -> list[LowRow]:
        """The rows with the lowest scores, the lowest first."""
        return self._lowest.rows

    def rows(self, batches: Iterable[tuple[Scored, Sequence[Any]]]) -> Iterator[tuple[Any, ...]]:
        """Yield (number of the first row, scores, outliers, more columns) of each batch."""
        for batch, columns in batches:
            outliers = None if math.isnan(self.offset) else batch.scores < self.offset
            self.n_outliers += 0 if outliers is None else int(outliers.sum())
            self.tally += batch.tally
            self._lowest.add(batch, self.n_rows)
            yield self.n_rows, batch.scores, outliers, *columns
            self.n_rows += len(batch.scores)

    def merge(self, other: "Summary") -> None:
        """Take in what the scores of another file come to."""
        self.n_rows += other.n_rows
        self.n_outliers += other.n_outliers
        self.tally += other.tally
        self._lowest.merge(other.lowest)


def write_scores(
    path: Path,
    rows: Iterable[tuple[Any, ...]],
    metadata: dict[bytes, bytes] | None = None,
    more: Sequence[tuple[str, Any]] = (),
) -> None:
    """Write scores as `Summary.rows` yields them: as CSV if the path ends so, else as Parquet.

    The path holds all of them, or what it held before. ``metadata`` is for Parquet; ``more`` are
    the names and types of the columns behind row, score and outlier.
    """
    rows = iter(rows)
    begin = list(itertools.islice(rows, 1))
    rows = itertools.chain(begin, rows)
    # A kept column has the type that it has in the first batch.
    found = [column.type for batch in begin for column in batch[3:]] or [pa.string()] * len(more)
    kept = [(name, kind or found[k]) for k, (name, kind) in enumerate(more)]
    fields = [("row", pa.int64()), ("score", pa.float64()), ("outlier", pa.bool_()), *kept]
    schema = pa.schema(fields, metadata)
    with replacing(path, private=True) as file:
        as_csv = path.suffix == ".csv"
        written = harmless_schema(schema) if as_csv else schema
        with (csv.CSVWriter if as_csv else parquet.ParquetWriter)(file, written) as writer:
            for table in _grouped(rows, schema):
                writer.write_table(harmless_table(table) if as_csv else table)


def _grouped(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.Table]:
    batches, waiting = [], 0
    for start, scores, outliers, *more in rows:
        n_rows = len(scores)
        arrays = [
            as_column(np.arange(start, start + n_rows)),
            as_column(scores),
            pa.nulls(n_rows, pa.bool_()) if outliers is None else as_column(outliers),
            *more,
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        waiting += n_rows
        if waiting >= _GROUP_ROWS:
            yield pa.Table.from_batches(batches).combine_chunks()
            batches, waiting = [], 0
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()
