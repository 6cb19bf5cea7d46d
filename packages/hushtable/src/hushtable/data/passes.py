"""Passes over rows: batches with numbers and weights, and batches kept for the passes after it."""

import threading
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushtable import progress
from hushtable.arguments import MOST
from hushtable.data.readers import Batch, Reader, taken
from hushtable.errors import DataError

Weights: TypeAlias = NDArray[np.int64]
#: Number of the first row, the rows, and their weights, if any.
Numbered: TypeAlias = tuple[int, Batch, Weights | None]


def numbered(reader: Reader, weights: Weights | None = None) -> list[Iterator[Numbered]]:
    """Return sources of numbered batches, without rows of weight zero.

    There is one source for each part of the reader that can be read separately, if the number of
    rows before it is known.
    """
    line = progress.begin_pass(reader.n_rows)
    if reader.n_rows is None:
        return [_numbered(reader.read(), 0, weights, line, ends=True)]
    sources, start = [], 0
    for part in reader.parts:
        sources.append(_numbered(part.read(), start, weights, line))
        start += part.n_rows or 0
    return sources


def _numbered(
    batches: Iterator[Batch],
    start: int,
    weights: Weights | None,
    line: progress.Bar | None,
    *,
    ends: bool = False,
) -> Iterator[Numbered]:
    for batch in batches:
        stop = start + len(batch)
        if weights is None:
            yield start, batch, None
        else:
            here = weights[start:stop]
            keep = here > 0
            kept = batch if keep.all() else taken(batch, np.flatnonzero(keep))
            yield start, kept, here[keep]
        start = stop
        if line is not None:
            line.add(len(batch))
    if ends and weights is not None and start != len(weights):
        raise DataError(f"sample_weight has {len(weights)} entries for {start} rows")


def whole_weights(
    sample_weight: Any, reader: Reader, *, allow_empty: bool = False
) -> Weights | None:
    """Return weights as int64 of shape (n,), or None; raises `DataError` on anything else.

    Weights that are all zero also raise, unless ``allow_empty``.
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim == 0:
        weights = np.full(count_rows(reader), weights)
    if weights.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
    if reader.n_rows is not None and len(weights) != reader.n_rows:
        raise DataError(
            f"sample_weight.shape == {weights.shape}, expected {(reader.n_rows,)}: one per row"
        )
    try:
        with np.errstate(invalid="ignore"):  # NaN: refused below
            whole = weights.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("sample_weight holds something that is not a number") from None
    if not np.array_equal(whole, weights) or (len(whole) and whole.min() < 0):
        raise DataError(
            "sample_weight must hold whole numbers, 0 or more: a row of weight w counts as w rows"
        )
    if not allow_empty and not whole.any():
        raise DataError("every sample_weight is zero: there are no rows to count")
    if whole.sum(dtype=np.float64) > MOST:
        raise DataError("the sample_weight of all rows add up to more than 2^40: give smaller ones")
    return whole


def count_rows(reader: Reader) -> int:
    """Return the number of rows, reading them where it is not known."""
    if reader.n_rows is not None:
        return reader.n_rows
    return sum(len(batch) for batch in reader.read())


#: Largest number of bytes that a fit keeps of its rows. Otherwise, each pass reads the rows again.
MOST_BYTES = 1 << 28


class KeptBatches:
    """Batches of rows, kept from any thread; none if they take more memory than there is.

    Parameters
    ----------
    n_bytes : int
        Largest number of bytes of all batches.
    per_row : float
        Largest number of bytes per row, in each batch.
    """

    def __init__(self, n_bytes: int, per_row: float = np.inf) -> None:
        self._batches: dict[int, Batch] | None = {}
        self._most, self._per_row = n_bytes, per_row
        self._lock = threading.Lock()
        self.n_bytes = 0

    def add(self, start: int, batch: Batch) -> None:
        """Keep a batch; ``start`` is the number of its first row."""
        with self._lock:
            if self._batches is None or not len(batch):
                return
            self.n_bytes += batch.nbytes
            if self.n_bytes > self._most or batch.nbytes > self._per_row * len(batch):
                self.clear()
            else:
                self._batches[start] = batch

    def clear(self) -> None:
        """Keep nothing, from now on either."""
        self._batches, self.n_bytes = None, 0

    def rows(self, reader: Reader, n_rows: int) -> Reader | None:
        """Return a reader of the kept batches; None unless they are all ``n_rows`` of a reader."""
        batches = (
            [] if self._batches is None else [batch for _, batch in sorted(self._batches.items())]
        )
        if sum(map(len, batches)) != n_rows:
            return None
        return reader.of_batches(lambda: iter(batches), n_rows)
