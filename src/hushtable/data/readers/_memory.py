"""Rows in memory: matrices, data frames, Arrow objects and streams."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers._reader import (
    Batch,
    Reader,
    column_names,
    integer_too_large,
    named_errors,
    slices,
    split,
)
from hushtable.errors import DataError, DataTypeError

__all__ = ["c_stream", "matrix", "pandas_frame", "polars_frame", "stream", "table"]


def matrix(data: Any) -> Reader:
    """Read a NumPy array, or anything that NumPy makes one of."""
    if hasattr(data, "toarray"):
        raise DataTypeError(
            "Sparse data was passed, but dense data is required: use X.toarray() if it fits"
        )
    try:
        X = np.asarray(data)
    except ValueError as error:
        raise DataError(f"cannot read {type(data).__name__} as rows and columns: {error}") from None
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: got complex numbers, needs real ones")
    if X.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {X.ndim}D array of shape {X.shape} instead. Reshape your "
            "data with .reshape(-1, 1) if it has a single feature or .reshape(1, -1) if it has "
            "a single row"
        )
    n, d = X.shape
    if d == 0:
        raise DataError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.dtype.kind in "fiub":
        if X.dtype not in (np.float64, np.float32):
            return Reader(None, d, n, lambda: (_floats(X[rows]) for rows in slices(n, d)))
        return Reader(None, d, n, lambda: (X[rows] for rows in slices(n, d)))
    return Reader(None, d, n, lambda: (_objects(X[rows]) for rows in slices(n, d)))


def _floats(block: np.ndarray[Any, Any]) -> Batch:
    """Integers and small floats as float64, which holds them exactly; larger integers refused."""
    wide = block.dtype.kind in "iu" and block.dtype.itemsize == 8 and block.size
    # Two comparisons, since abs(-2**63) overflows.
    if wide and (block.max() > 2**53 or block.min() < -(2**53)):
        row, column = np.nonzero((block > 2**53) | (block < -(2**53)))
        raise integer_too_large(f"column {column[0]}", block[row[0], column[0]])
    return block.astype(np.float64)


def _objects(block: np.ndarray[Any, Any]) -> Batch:
    columns = []
    for j in range(block.shape[1]):
        try:
            columns.append(pa.array(block[:, j].tolist(), from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise DataTypeError(
                f"column {j} mixes types: argument must be a string or a real number in the "
                f"whole column ({error})"
            ) from None
    return pa.RecordBatch.from_arrays(columns, [str(j) for j in range(len(columns))])


def pandas_frame(frame: Any) -> Reader:
    """Read a pandas frame, made Arrow one batch at a time."""
    if frame.ndim != 2:
        raise DataError("Expected 2D array, got 1D array instead. Reshape your data")
    n, d = frame.shape
    if d == 0:
        raise DataError(f"0 feature(s) (shape={frame.shape}) while a minimum of 1 is required.")
    names = list(frame.columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"column names are of several types: {sorted({type(name).__name__ for name in names})}"
        )

    def batches() -> Iterator[Batch]:
        for here in slices(n, d):
            part = frame.iloc[here]
            try:
                # As a table, since text of a frame put together of others comes in several chunks.
                rows = pa.Table.from_pandas(part, preserve_index=False, nthreads=1)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise DataTypeError(
                    f"a column mixes types: {error}; convert it to numbers or to text"
                ) from None
            yield from rows.combine_chunks().to_batches()

    return Reader(tuple(names) if all(texts) else None, d, n, batches)


def table(rows: pa.Table) -> Reader:
    """Read a pyarrow Table, without a copy."""
    names = column_names(rows.schema)
    return Reader(names, len(names), len(rows), lambda: split(iter(rows.to_batches())))


def stream(schema: pa.Schema, read: Callable[[], Any], *, one_shot: bool = False) -> Reader:
    """Read record batches from ``read``, called once a pass."""
    names = column_names(schema)

    def batches() -> Iterator[Batch]:
        yield from split(named_errors(iter(read()), "the data"))

    return Reader(names, len(names), None, batches, one_shot)


def c_stream(data: Any) -> Reader:
    """Read anything with ``__arrow_c_stream__``, once."""
    opened = pa.RecordBatchReader.from_stream(data)
    return stream(opened.schema, lambda: opened, one_shot=True)


def polars_frame(frame: Any) -> Reader:
    """Read a polars DataFrame, as often as asked."""
    names = tuple(frame.columns)
    return Reader(names, len(names), len(frame), lambda: split(iter(frame.to_arrow().to_batches())))
