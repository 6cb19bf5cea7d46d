"""Rows in a polars frame, eager or lazy."""

from collections.abc import Iterator
from typing import Any

from hushtable.data.readers._arrow import stream
from hushtable.data.readers._reader import Batch, OfFrame, Reader, library_of, split
from hushtable.errors import DataError

#: Types that NumPy has, too. (Polars has integers of 128 bits.)
_OF_NUMPY = {f"{kind}{bits}" for kind in ("Float", "Int", "UInt") for bits in (8, 16, 32, 64)}


def is_frame(data: Any) -> bool:
    """Whether this is a frame, eager or lazy."""
    return library_of(data) == "polars" and (hasattr(data, "collect") or hasattr(data, "to_arrow"))


def frame(data: Any) -> Reader:
    """Read a frame, as often as asked; a lazy one batch by batch."""
    if not hasattr(type(data), "columns"):
        raise DataError("Expected 2D array, got 1D array instead: a Series. Use series.to_frame()")
    if hasattr(data, "collect_batches"):
        schema = data.head(0).collect().to_arrow().schema
        return stream(
            schema,
            lambda: (b for part in data.collect_batches() for b in part.to_arrow().to_batches()),
        )
    if hasattr(data, "collect"):
        data = data.collect()  # before polars 1.34, a lazy frame gave no batches
    names, kinds = tuple(data.columns), set(data.dtypes)

    def batches() -> Iterator[Batch]:
        return split(iter(data.to_arrow().to_batches()))

    one: Any = kinds.pop() if len(kinds) == 1 else None
    # NumPy has no integers that are missing.
    numeric = str(one) in _OF_NUMPY and (one.is_float() or not any(data.null_count().row(0)))
    read = OfFrame(batches, data.to_numpy) if numeric else batches
    return Reader(names, len(names), len(data), read)
