"""Rows against merged counts: a score a row."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.encoding import Codes, Encoder
from hushtable.privacy.local import LocalModel
from hushtable.privacy.release import Release
from hushtable.readers import Reader, as_reader
from hushtable.sketch import Sketch
from hushtable.threads import for_each, map_in_order, n_threads
from hushtable.weights import Numbered, numbered

__all__ = ["Scorer"]


class Scorer:
    """Scores rows against the counts of a (merged) sketch.

    Parameters
    ----------
    sketch : Sketch, Release or LocalModel
        The counts, and the plan that says how they become scores.

    Attributes
    ----------
    values : ndarray of shape (n_cells,), float64
        Score of every cell, in bits.
    """

    def __init__(self, sketch: Sketch | Release | LocalModel) -> None:
        self.sketch = sketch
        self.plan = sketch.plan
        self.values = self.plan.cell_scores(sketch.counts, sketch.noise_sd)
        self._encoder = Encoder(self.plan.schema)
        self._sum = self.plan.family.summing(self.values)

    def batches(self, X: Any, *, n_jobs: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (scores, tally) of each batch of rows, in order; memory stays flat."""
        reader = self.open(X)
        items = itertools.chain.from_iterable(numbered(reader))
        yield from map_in_order(self._score, items, n_threads(n_jobs, reader.n_rows))

    def open(self, X: Any) -> Reader:
        """Return a reader of rows, which have the plan's features as columns."""
        reader = as_reader(X, text_columns=self.plan.schema.categorical_names)
        return self._encoder.check(reader)

    def encode(self, item: Numbered) -> Codes:
        """Return the codes of a numbered batch."""
        start, batch, _ = item
        return self._encoder.encode(batch, start)

    def _score(self, item: Numbered) -> tuple[NDArray[np.float64], Any]:
        codes = self.encode(item)
        return self._sum(codes) / self.plan.family.n_tables, codes.tally

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
        reader = self.open(X)
        if reader.n_rows is None:
            parts = [scores for scores, _ in self.batches(reader, n_jobs=n_jobs)]
            return np.concatenate(parts) if parts else np.empty(0)
        result = np.empty(reader.n_rows)

        def fill(item: Numbered) -> None:
            scores, _ = self._score(item)
            result[item[0] : item[0] + len(scores)] = scores

        for_each(fill, numbered(reader), n_threads(n_jobs, reader.n_rows))
        return result

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Counts of all rows: under a plan of the second pass, those of the first."""
        first = self.plan.first_counts
        return self.sketch.counts if first is None else first

    def histogram_means(self) -> NDArray[np.float64]:
        """Return the mean score of the counted rows in each histogram, from the counts alone.

        From noised counts it is estimated, without bias for Gaussian noise: the rows' mean of
        f(score) is the cells' sum of true count times f, which Stein's lemma gives from the
        noised counts c as the sum of c f - sigma^2 df/dc. (A cell drawn high by noise scores
        high too: the plain sum of c f would count that as rows.)
        """
        sums = np.add.reduceat(self._row_sums(self.values), self.plan.family.offsets[:-1])
        return np.asarray(sums / self._n_rows)

    def _row_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each cell, the sum of its rows' ``values``: scores less any constant."""
        noise_sd = self.sketch.noise_sd
        if noise_sd == 0.0:
            return self.row_counts * values
        counts = self.sketch.counts
        return counts * values - noise_sd**2 * self.plan.score.noisy_slopes(counts, noise_sd)

    @property
    def _n_rows(self) -> int:
        if self.sketch.noise_sd == 0.0:
            return self.plan.rows_counted(self.row_counts)
        return max(1, self.sketch.n_rows)

    def auto_offset(self) -> float:
        """Return a threshold from the counts alone.

        In each table, take the mean score of the rarer half of the counted rows; return the
        mean over the tables, in bits. A mean over a share of worst rows is a coherent measure
        of risk (expected shortfall: Acerbi and Tasche, 2002), so that the mean over the tables
        is at most the mean score of the rarer half of the rows themselves: never more than
        half of the counted rows lie below.

        From noised counts the same is estimated; NaN if the noise leaves it too uncertain.
        """
        if self.sketch.noise_sd > 0.0:
            return self._noisy_offset()
        counts, offsets = self.row_counts, self.plan.family.offsets
        shortfalls = []
        for first, last in itertools.pairwise(offsets):
            order = np.argsort(self.values[first:last], kind="stable")
            rows = np.cumsum(counts[first:last][order])
            half = rows[-1] / 2.0
            share = np.diff(np.minimum(rows, half), prepend=0.0) / half
            # Not with @: BLAS adds in an order that depends on the processor.
            shortfalls.append((share * self.values[first:last][order]).sum())
        return float(np.mean(shortfalls))

    def _noisy_offset(self) -> float:
        """Estimate the threshold from counts with noise.

        The mean takes the place of the median: q + 2 E min(score - q, 0), q the mean score, is
        at most the mean of the rarer half. For Laplace noise, `histogram_means` and this hold
        roughly.
        """
        family, means = self.plan.family, self.histogram_means()
        mean = np.repeat(means, np.diff(family.offsets))
        rarer = np.where(self.values < mean, self._row_sums(self.values - mean), 0.0)
        offsets = means + 2.0 * np.add.reduceat(rarer, family.offsets[:-1]) / self._n_rows
        error = offsets.std() / np.sqrt(family.n_histograms)
        return float(offsets.mean()) if 3.0 * error < (means - offsets).mean() else float("nan")
