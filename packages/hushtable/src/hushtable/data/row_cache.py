"""Rows that several passes read: the results of the first pass are kept for the others."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.readers.reader import Read, Reader, taken

#: Largest number of bytes that a fit keeps of its rows. Otherwise, each pass reads the rows again.
MOST_BYTES = 1 << 28


class MemoryBudget:
    """A memory budget that several readers can share, from any thread."""

    def __init__(self, n_bytes: int) -> None:
        self._left = n_bytes
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> bool:
        """Take this many bytes, or none if fewer are left; a negative number returns them."""
        with self._lock:
            enough = n_bytes <= self._left
            self._left -= n_bytes * enough
            return enough


@dataclass(frozen=True)
class FirstReading:
    """A batch in the first pass over rows: later passes read the result that this pass keeps."""

    rows: Any
    #: Takes the result of the rows, and the number of the first row.
    keep: Callable[[int, Any], None]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[np.int64]) -> Any:
        """Return some of the rows, by their numbers, without keeping anything."""
        return taken(self.rows, rows)


class RowCache:
    """Starts passes over rows; from the second on, over the kept results of the first.

    Nothing is kept if it takes more memory than available, or more than ``most`` bytes per row, or
    if the first pass did not hand over a result for each batch: then all passes read the rows.
    """

    def __init__(self, read: Read, memory: MemoryBudget, most: float = np.inf) -> None:
        self._read, self._memory, self._most = read, memory, most
        self._lock = threading.Lock()
        self._begin()

    def __call__(self) -> Iterator[Any]:
        """Start a pass."""
        if self.n_rows is None:
            self._begin()
            return self._first_pass()
        return iter([self._batches[start] for start in sorted(self._batches)])

    @property
    def n_rows(self) -> int | None:
        """Kept results of all rows; None if any are missing."""
        kept = sum(map(len, self._batches.values()))
        return kept if kept == self._n_read and not self._full else None

    def _begin(self) -> None:
        self._batches: dict[int, Any] = {}
        self._n_bytes = 0
        self._n_read: int | None = None
        self._full = False

    def _first_pass(self) -> Iterator[FirstReading]:
        n_rows = 0
        for batch in self._read():
            n_rows += len(batch)
            yield FirstReading(batch, self._keep)
        self._n_read = n_rows

    def _keep(self, start: int, made: Any) -> None:
        with self._lock:
            if self._full or not len(made):
                return
            small = made.nbytes <= self._most * len(made)
            self._full = not (small and self._memory.take(made.nbytes))
            self._n_bytes += made.nbytes
            self._batches[start] = made
            if self._full:
                self._memory.take(made.nbytes - self._n_bytes)
                self._batches = {}


def cached_rows(reader: Reader, memory: MemoryBudget, most: float = np.inf) -> Reader:
    """Return a reader of the same rows, whose first pass yields each batch as a `FirstReading`.

    At most ``most`` bytes per row are kept.
    """
    if reader.n_rows is None or not reader.files:
        return replace(reader, read=RowCache(reader.read, memory, most), files=(), project=None)
    return reader.with_parts([cached_rows(part, memory, most) for part in reader.files])
