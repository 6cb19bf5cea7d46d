"""Rows against merged counts: a score a row."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.encoding import Encoder
from hushtable.readers import Batch, Reader, as_reader
from hushtable.sketch import Sketch, numbered
from hushtable.threads import for_each, map_in_order, n_threads

__all__ = ["Scorer"]


class Scorer:
    """Scores rows against the counts of a (merged) sketch.

    Parameters
    ----------
    sketch : Sketch
        The counts, and the plan that says how they become scores.

    Attributes
    ----------
    values : ndarray of shape (n_cells,), float64
        Score of every cell, in bits.
    """

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch
        self.plan = sketch.plan
        self.values = self.plan.cell_scores(sketch.counts)
        self._encoder = Encoder(self.plan.schema)

    def batches(self, X: Any, *, n_jobs: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (scores, tally) of each batch of rows, in order; memory stays flat."""
        yield from map_in_order(self._score, numbered(self._open(X)), n_threads(n_jobs))

    def _open(self, X: Any) -> Reader:
        reader = as_reader(X, text_columns=self.plan.schema.categorical_names)
        return self._encoder.check(reader)

    def _score(self, item: tuple[int, Batch, Any]) -> tuple[NDArray[np.float64], Any]:
        start, batch, _ = item
        codes = self._encoder.encode(batch, start)
        totals = self.plan.family.sum(codes, self.values)
        return totals / self.plan.family.n_tables, codes.tally

    def score(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the mean over the tables of each row's cell scores, in bits; low = abnormal.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as `hushtable.readers.as_reader` takes them.
        n_jobs : int, optional
            Threads; None is one, -1 every core. The scores are the same for any number.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        reader = self._open(X)
        if reader.n_rows is None:
            parts = [scores for scores, _ in self.batches(reader, n_jobs=n_jobs)]
            return np.concatenate(parts) if parts else np.empty(0)
        result = np.empty(reader.n_rows)

        def fill(item: tuple[int, Batch, Any]) -> None:
            scores, _ = self._score(item)
            result[item[0] : item[0] + len(scores)] = scores

        for_each(fill, numbered(reader), n_threads(n_jobs))
        return result

    def auto_offset(self) -> float:
        """Return a threshold from the counts alone.

        In each table, take the mean score of the rarer half of the counted rows; return the
        mean over the tables, in bits. A mean over a share of worst rows is a coherent measure
        of risk (expected shortfall: Acerbi and Tasche, 2002), so that the mean over the tables
        is at most the mean score of the rarer half of the rows themselves: never more than
        half of the counted rows lie below.
        """
        # In a plan of the second pass, all rows were counted in the first.
        counts = self.sketch.counts if self.plan.first_counts is None else self.plan.first_counts
        offsets = self.plan.family.offsets
        shortfalls = []
        for first, last in itertools.pairwise(offsets):
            order = np.argsort(self.values[first:last], kind="stable")
            rows = np.cumsum(counts[first:last][order])
            half = rows[-1] / 2.0
            share = np.diff(np.minimum(rows, half), prepend=0.0) / half
            shortfalls.append(share @ self.values[first:last][order])
        return float(np.mean(shortfalls))
