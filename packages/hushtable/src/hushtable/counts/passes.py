"""Both passes over the rows of one site."""

from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.counter import Counter, Ints
from hushtable.counts.rounds import gated
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader, taken
from hushtable.data.weights import Numbered, Weights
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.gate import GATE_BINS, gate_histogram, otsu_cell
from hushtable.plans.plan import Plan


def both_passes(plan: Plan, reader: Reader, weights: Weights | None, n_jobs: int | None) -> Sketch:
    """Count all rows, find the gate, and count the rows in dense regions.

    The counts are bit-identical to those of the rounds `gate` and `second_pass` with sketches, but
    faster: rows are placed in the gate's histogram once, and usually fewer than half are counted
    again, while they are placed, with a gate that is guessed from the rows before. The rows are
    read once more only if there may be rows between the guess and the gate. It stores one byte for
    each row.
    """
    counts, tally = Counter(plan).count(reader, weights, n_jobs)
    placing = _Placing(plan, gate_histogram(plan.family, plan.score, counts, 0.0))
    some, _ = placing.count(reader, weights, n_jobs)
    placed, above = placing.placed, placing.above
    gate = placing.guess
    if any(one.guess != gate for one in placed.values()):
        some += _Correcting(plan, placed, gate, above).count(reader, weights, n_jobs)[0]
    largest = 1 if weights is None else int(weights.max(initial=1))
    second = some if above else counts - some
    return Sketch(gated(plan, counts, gate), second, tally, largest_weight=largest)


class _Placed(NamedTuple):
    """The rows of a batch in the gate's histogram: their cells (n,) uint8, and their weights.

    ``guess`` is the cell from which on, or below which, they were counted.
    """

    cells: NDArray[np.uint8]
    weights: Weights | None
    guess: int

    def counts(self) -> Ints:
        return np.bincount(self.cells, self.weights, GATE_BINS).astype(np.int64)


class _Placing(Counter):
    """Finds the rows' places, and counts again those on one side of the guessed gate.

    ``placed`` has the places by the number of a batch's first row; ``guess`` is the gate of the
    rows so far, which in the end is the gate. ``above`` states whether the rows from the gate on
    are counted, or those below it: whichever are fewer in the first batch.
    """

    def __init__(self, plan: Plan, histogram: ScoreHistogram) -> None:
        super().__init__(plan)
        self._histogram = histogram
        self._lock = Lock()
        self._seen = np.zeros(GATE_BINS, np.int64)
        self.placed: dict[int, _Placed] = {}
        self.above, self.guess = True, 0

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:  # the next batch has the same number
            return
        codes = self._encoder.encode(batch, start)
        cells = self._histogram.cells_of(codes).astype(np.uint8)
        with self._lock:
            guess = self.guess = self._guess(_Placed(cells, weights, 0).counts())
        self.placed[start] = _Placed(cells, weights, guess)
        rows = np.flatnonzero((cells >= guess) == self.above)
        if len(rows):
            times = None if weights is None else weights[rows]
            with self._accumulator() as (counts, _):
                self._plan.family.count(codes.take(rows), counts, times)

    def _guess(self, counts: Ints) -> int:
        """Return the gate of the rows placed so far; more rows will follow."""
        first = not self._seen.any()
        self._seen += counts
        guess = otsu_cell(self._seen)
        if first:
            self.above = bool(2 * counts[guess:].sum() < counts.sum())
        return guess


class _Correcting(Counter):
    """Counts the rows that the guessed gate missed, and subtracts those that it wrongly counted."""

    def __init__(self, plan: Plan, placed: Mapping[int, _Placed], gate: int, above: bool) -> None:
        super().__init__(plan)
        self._placed, self._gate_cell, self._above = placed, gate, above

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:
            return
        cells, _, guess = self._placed[start]
        gate = self._gate_cell
        rows = np.flatnonzero((cells >= min(guess, gate)) & (cells < max(guess, gate)))
        if len(rows):
            times = None if weights is None else weights[rows]
            if (guess < gate) == self._above:
                times = np.full(len(rows), -1) if times is None else -times
            super()._add((start, taken(batch, rows), times))
