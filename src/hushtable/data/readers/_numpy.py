"""Rows in a NumPy array, or in anything that NumPy makes one of."""

from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers._reader import Batch, Reader, integer_too_large, slices
from hushtable.errors import DataError, DataTypeError


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
