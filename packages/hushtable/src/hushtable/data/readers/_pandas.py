"""Rows in a pandas frame."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers._reader import Batch, OfFrame, Reader, library_of, slices
from hushtable.data.readers._records import half_a_character
from hushtable.errors import DataError, DataTypeError


def is_frame(data: Any) -> bool:
    """Whether this is a frame, or a series."""
    return library_of(data) == "pandas" and hasattr(data, "iloc")


def frame(data: Any) -> Reader:
    """Read a pandas frame, made Arrow one batch at a time."""
    if data.ndim != 2:
        raise DataError(
            "Expected 2D array, got 1D array instead: a Series. Reshape your data: a frame of one "
            "column is series.to_frame()"
        )
    n, d = data.shape
    if d == 0:
        raise DataError(f"0 feature(s) (shape={data.shape}) while a minimum of 1 is required.")
    names, kinds = list(data.columns), list(data.dtypes)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"column names are of several types: {sorted({type(name).__name__ for name in names})}"
        )

    # Arrow takes no sparse columns.
    dense = {
        name: kind.subtype
        for name, kind in zip(names, kinds, strict=True)
        if not isinstance(kind, np.dtype) and str(kind).startswith("Sparse[")
    }

    def batches() -> Iterator[Batch]:
        for here in slices(n, d):
            part = data.iloc[here]
            if dense:
                part = part.astype(dense)
            yield from _as_table(part).combine_chunks().to_batches()

    read = OfFrame(batches, data.to_numpy) if _of_numpy(data, kinds) else batches
    return Reader(tuple(names) if all(texts) else None, d, n, read)


def _as_table(part: Any) -> pa.Table:
    """Return rows as a table, since text of a frame put together of others comes in chunks."""
    try:
        return pa.Table.from_pandas(part, preserve_index=False, nthreads=1)
    except UnicodeEncodeError as error:
        raise half_a_character("of the frame", error) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataTypeError(
            f"a column mixes types: {error}; convert it to numbers or to text"
        ) from None


def _of_numpy(data: Any, kinds: list[Any]) -> bool:
    """Whether all columns are of one type of NumPy's, and none is named as another is."""
    return len(set(kinds)) == 1 and isinstance(kinds[0], np.dtype) and data.columns.is_unique
