"""Insertion of rows into the cells of a plan's tables: the loops of Algorithm 1 of the paper.

A row is encoded once, hashed by the functions of each table, and adds one to the counter of its
cell there. `hushtable.privacy.mechanisms` draws the noise on counters that are released.
"""

import contextlib
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.passes import Numbered, Weights, numbered
from hushtable.data.persons import PersonRows
from hushtable.data.readers import Batch, Reader, taken
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.families.histograms import GATE_BINS, otsu_cell
from hushtable.plans.plan import Plan
from hushtable.threads import FEW_TO_COUNT, for_each, n_threads

Ints = NDArray[np.int64]


class Counter:
    """Counts rows under a plan, with an accumulator for each thread; these are added at the end.

    Under a plan of the second pass, only dense rows are counted. With ``persons``, which names the
    column, only the chosen rows of each person are counted.
    """

    def __init__(self, plan: Plan, persons: PersonRows | None = None) -> None:
        self._plan, self._persons = plan, persons
        self._encoder = Encoder(plan.schema)
        self._idle: SimpleQueue[tuple[Ints, Ints]] = SimpleQueue()
        self._rows: list[int] = []
        self._sample: Ints | None = None
        self._gate = plan.dense_rows()
        self._loop = None if self._gate else plan.family.counting_numbers()

    def draw_samples(self, n_rows: int, max_samples: int, rng: "np.random.Generator") -> None:
        """Draw the rows of each table: ``max_samples`` of ``n_rows``, without replacement."""
        size, tables = min(whole("max_samples", max_samples), n_rows), self._plan.family.n_tables
        # (row, table) pairs as row * tables + table: in sorted order, they are read in order.
        pairs = [rng.choice(n_rows, size, replace=False) * tables + t for t in range(tables)]
        self._sample = np.sort(np.concatenate(pairs))

    def count(
        self, reader: Reader, weights: Weights | None, n_jobs: int | None
    ) -> tuple[Ints, Ints]:
        """Count every row, or the sample; return counts (n_cells,) and tally (n_features, 2)."""
        sources = numbered(reader, weights)
        if self._sample is not None and reader.n_bytes is None:
            # Few rows of a batch in memory are counted, so that most of the work is Python's.
            threads = n_threads(n_jobs, len(self._sample) // self._plan.family.n_tables)
        else:
            threads = n_threads(n_jobs, reader.n_rows, few=FEW_TO_COUNT)
        cells, features = self._plan.family.n_cells, len(self._plan.schema)
        for _ in range(threads):
            self._idle.put((np.zeros(cells, np.int64), np.zeros((features, 2), np.int64)))
        with naming_places(reader):
            for_each(self._add, sources, threads)
        if self._persons is not None:
            for codes in self._persons.chosen():
                self._add_codes(codes, None)
        counts, tally = self._idle.get()
        while not self._idle.empty():
            some_counts, some_tally = self._idle.get()
            counts += some_counts
            tally += some_tally
        return counts, tally

    @property
    def n_rows(self) -> int:
        """Number of rows read so far, without those of weight zero."""
        return sum(self._rows)

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        self._rows.append(len(batch))
        if self._sample is not None:
            self._add_sample(start, batch, self._sample)
            return
        if self._persons is not None:
            ids = batch[:, -1] if isinstance(batch, np.ndarray) else batch.columns[-1]
            self._persons.add(self._encoder.encode(batch, start), ids, start)
            return
        if weights is None and self._loop is not None:
            with self._accumulator() as (counts, tally):
                if self._encoder.scan(batch, start, self._loop, counts, tally):
                    return
        self._add_codes(self._encoder.encode(batch, start), weights)

    def _add_codes(self, codes: Codes, weights: Weights | None) -> None:
        if self._gate is not None:
            dense = self._gate(codes)
            weights = dense.astype(np.int64) if weights is None else weights * dense
        with self._accumulator() as (counts, tally):
            tally += codes.tally
            self._plan.family.count(codes, counts, weights)

    def _add_sample(self, start: int, batch: Batch, sample: Ints) -> None:
        tables = self._plan.family.n_tables
        first, last = np.searchsorted(sample, [start * tables, (start + len(batch)) * tables])
        rows, table = np.divmod(sample[first:last] - start * tables, tables)
        # Only rows that at least one table samples are encoded.
        used, place = np.unique(rows, return_inverse=True)
        codes = self._encoder.encode(taken(batch, used), start)
        with self._accumulator() as (counts, tally):
            tally += codes.tally
            self._plan.family.count_pairs(codes, place, table, counts)

    @contextlib.contextmanager
    def _accumulator(self) -> Iterator[tuple[Ints, Ints]]:
        accumulator = self._idle.get()
        try:
            yield accumulator
        finally:
            self._idle.put(accumulator)


class Placing(Counter):
    """Finds the rows' places, and counts again those on one side of the guessed gate.

    ``placed`` has, by the number of a batch's first row, the cells (n,) of its rows in the gate's
    histogram, and the guessed cell from which on, or below which, they were counted. ``guess`` is
    the gate of the rows so far, which in the end is the gate. ``above`` states whether the rows
    from the gate on are counted, or those below it: whichever are fewer in the first batch.
    """

    def __init__(self, plan: Plan, histogram: ScoreHistogram) -> None:
        super().__init__(plan)
        self._histogram = histogram
        self._lock = Lock()
        self._seen = np.zeros(GATE_BINS, np.int64)
        self.placed: dict[int, tuple[NDArray[np.uint8], int]] = {}
        self.above, self.guess = True, 0

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:  # the next batch has the same number
            return
        codes = self._encoder.encode(batch, start)
        cells = self._histogram.cells_of(codes).astype(np.uint8)
        with self._lock:
            first = not self._seen.any()
            self._seen += np.bincount(cells, weights, GATE_BINS).astype(np.int64)
            guess = self.guess = otsu_cell(self._seen)
            if first:
                self.above = bool(2 * self._seen[guess:].sum() < self._seen.sum())
        self.placed[start] = cells, guess
        rows = np.flatnonzero((cells >= guess) == self.above)
        if len(rows):
            times = None if weights is None else weights[rows]
            with self._accumulator() as (counts, _):
                self._plan.family.count(codes.take(rows), counts, times)


class Correcting(Counter):
    """Counts the rows that the guessed gate missed, and subtracts those that it wrongly counted."""

    def __init__(self, plan: Plan, placing: Placing) -> None:
        super().__init__(plan)
        self._placing = placing

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:
            return
        cells, guess = self._placing.placed[start]
        gate = self._placing.guess
        rows = np.flatnonzero((cells >= min(guess, gate)) & (cells < max(guess, gate)))
        if len(rows):
            times = None if weights is None else weights[rows]
            if (guess < gate) == self._placing.above:
                times = np.full(len(rows), -1) if times is None else -times
            super()._add((start, taken(batch, rows), times))
