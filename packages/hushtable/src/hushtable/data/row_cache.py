"""Rows that several passes read: a pass keeps batches in memory for the passes after it."""

import threading

import numpy as np

from hushtable.data.readers import Batch, Reader

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
        batches = [] if self._batches is None else [one for _, one in sorted(self._batches.items())]
        if sum(map(len, batches)) != n_rows:
            return None
        return reader.of_batches(lambda: iter(batches), n_rows)
