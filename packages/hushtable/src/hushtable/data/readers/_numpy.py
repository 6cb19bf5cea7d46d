"""Rows in a NumPy array, or in anything that NumPy makes one of."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers._arrow import arrow
from hushtable.data.readers._reader import Batch, Reader, integer_too_large, slices
from hushtable.data.readers._records import of_one_type
from hushtable.errors import DataError


def matrix(data: Any) -> Reader:
    """Read a NumPy array, or anything that NumPy makes one of; what is masked is missing."""
    try:
        if isinstance(data, list | tuple) and any(isinstance(r, np.ma.MaskedArray) for r in data):
            data = np.ma.stack(data)  # of a list of rows, asarray would forget the masks
        X = np.asanyarray(data) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    except ValueError as error:
        raise DataError(f"cannot read {type(data).__name__} as rows and columns: {error}") from None
    if X.dtype.names is not None:
        return _structured(X)
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: got complex numbers, needs real ones")
    if X.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {X.ndim}D array of shape {X.shape} instead. Reshape your "
            "data with .reshape(-1, 1) if it has a single feature or .reshape(1, -1) if it has "
            "a single row"
        )
    n, d = X.shape

    def blocks(X: Any) -> Iterator[Any]:
        return (X[rows] for rows in slices(n, d))

    if d == 0:
        raise DataError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if isinstance(X, np.ma.MaskedArray):
        return Reader(None, d, n, lambda: map(_unmasked, blocks(X)))
    if X.dtype.kind in "fiub":
        if X.dtype not in (np.float64, np.float32):
            return Reader(None, d, n, lambda: map(_floats, blocks(X)), numeric=True)
        return Reader(None, d, n, lambda: blocks(X), numeric=True)
    return Reader(None, d, n, lambda: map(_objects, blocks(X)))


def _floats(block: np.ndarray[Any, Any]) -> Batch:
    """Integers and small floats as float64, which holds them exactly; larger integers refused."""
    wide = block.dtype.kind in "iu" and block.dtype.itemsize == 8 and block.size
    # Two comparisons, since abs(-2**63) overflows.
    if wide and (block.max() > 2**53 or block.min() < -(2**53)):
        row, column = np.nonzero((block > 2**53) | (block < -(2**53)))
        raise integer_too_large(f"column {column[0]}", block[row[0], column[0]])
    return block.astype(np.float64)


def _unmasked(block: Any) -> Batch:
    """Return a block with NaN, or None among objects, where it is masked."""
    if block.dtype.kind not in "fiub":
        objects = np.array(block.data, object)
        objects[np.ma.getmaskarray(block)] = None
        return _objects(objects)
    numbers = block.filled(0)
    if block.dtype not in (np.float64, np.float32):
        numbers = _floats(numbers)
    numbers[np.ma.getmaskarray(block)] = np.nan
    return numbers


def _structured(rows: np.ndarray[Any, Any]) -> Reader:
    """Read an array of records: its fields are columns, with their names."""
    if rows.ndim != 1 or any(rows.dtype[name].shape for name in rows.dtype.names):
        raise DataError(
            f"Expected one row a record, got a structured array of shape {rows.shape} and type "
            f"{rows.dtype}: needs shape (n,), and one value in each field"
        )
    fields = {}
    for name in rows.dtype.names:
        values = rows[name]
        if values.dtype.kind == "c":
            raise DataError(f"Complex data not supported: field {name!r} needs real numbers")
        fields[name] = of_one_type(values.tolist(), repr(name))  # None where it is masked
    return arrow(pa.table(fields))


def _objects(block: np.ndarray[Any, Any]) -> Batch:
    columns = [of_one_type(block[:, j].tolist(), str(j)) for j in range(block.shape[1])]
    return pa.RecordBatch.from_arrays(columns, [str(j) for j in range(len(columns))])
