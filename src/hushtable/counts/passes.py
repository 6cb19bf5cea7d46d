"""Both passes over the rows of one site."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.counting import Counter, Ints
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader, taken
from hushtable.data.weights import Numbered, Weights
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.gate import GATE_BINS, gate_histogram, otsu_cell
from hushtable.plans.plan import Plan

#: How often `both_passes` reads rows.
READINGS = 3


def both_passes(plan: Plan, reader: Reader, weights: Weights | None, n_jobs: int | None) -> Sketch:
    """Count all rows, find the gate, and count the rows that lie dense.

    The same counts, to the bit, as `Plan.gate` and `Plan.second_pass` give of sketches, in less
    time: rows are placed in the gate's histogram once, and fewer than half are counted again. It
    keeps one byte of each row.
    """
    counts, tally = Counter(plan).count(reader, weights, n_jobs)
    placing = _Placing(plan, gate_histogram(plan.family, counts))
    placing.count(reader, weights, n_jobs)
    placed = placing.placed
    total = sum((one.counts() for one in placed.values()), start=np.zeros(GATE_BINS, np.int64))
    gate = otsu_cell(total)
    # The fewer of the rows from the gate on and those below it.
    above = bool(2 * total[gate:].sum() < total.sum())
    some, _ = _Choosing(plan, placed, gate, above).count(reader, weights, n_jobs)
    largest = 1 if weights is None else int(weights.max(initial=1))
    first = Sketch(plan, counts, tally, largest_weight=largest)
    second = some if above else counts - some
    return Sketch(plan.gated(first, gate), second, tally, largest_weight=largest)


class _Placed(NamedTuple):
    """The rows of a batch in the gate's histogram: their cells (n,) uint8, and their weights."""

    cells: NDArray[np.uint8]
    weights: Weights | None

    def counts(self) -> Ints:
        return np.bincount(self.cells, self.weights, GATE_BINS).astype(np.int64)


class _Placing(Counter):
    """Finds the rows' places; ``placed`` has them by the number of a batch's first row."""

    def __init__(self, plan: Plan, histogram: ScoreHistogram) -> None:
        super().__init__(plan)
        self._histogram = histogram
        self.placed: dict[int, _Placed] = {}

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:  # the next one has the same number
            return
        cells = self._histogram.cells_of(self._encoder.encode(batch, start))
        self.placed[start] = _Placed(cells.astype(np.uint8), weights)


class _Choosing(Counter):
    """Counts the rows that lie from the gate on, or those below it."""

    def __init__(self, plan: Plan, placed: Mapping[int, _Placed], gate: int, above: bool) -> None:
        super().__init__(plan)
        self._placed, self._gate_cell, self._above = placed, gate, above

    def _add(self, item: Numbered) -> None:
        start, batch, weights = item
        if len(batch) == 0:
            return
        rows = np.flatnonzero((self._placed[start].cells >= self._gate_cell) == self._above)
        if len(rows):
            times = None if weights is None else weights[rows]
            super()._add((start, taken(batch, rows), times))
