"""Both passes over the rows of one site."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.counts.counting import Counter, Ints
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Codes
from hushtable.data.readers import Reader
from hushtable.data.weights import Weights
from hushtable.plans.families import RandomFeature
from hushtable.plans.families._family import EVERY_ROW_ONCE
from hushtable.plans.gate import GATE_BINS, gate_histogram, gate_values, otsu_cell
from hushtable.plans.plan import Plan

#: Bytes of cells that are kept at most, one for each row and table; more rows are read again.
KEPT_BYTES = 1 << 28

Cells = NDArray[np.uint8]


def n_readings(n_rows: int | None, n_tables: int) -> int:
    """Return how often `both_passes` reads rows; an unknown number of them is taken for small."""
    return 1 if (n_rows or 0) * n_tables <= KEPT_BYTES else 3


def both_passes(plan: Plan, reader: Reader, weights: Weights | None, n_jobs: int | None) -> Sketch:
    """Count all rows, find the gate, and count the rows that lie dense.

    The same counts, to the bit, as `Plan.gate` and `Plan.second_pass` give of sketches. Rows are
    read once where their cells can be kept, else three times.
    """
    counter = _Keeping(plan, reader.n_rows)
    counts, tally = counter.count(reader, weights, n_jobs)
    largest = 1 if weights is None else int(weights.max(initial=1))
    first = Sketch(plan, counts, tally, largest_weight=largest)
    if counter.kept is None:
        given: dict[str, Any] = {"sample_weight": weights, "n_jobs": n_jobs}
        gate = Sketch.from_data(Plan.gate(first), reader, **given)
        return Sketch.from_data(plan.second_pass(first, gate), reader, **given)
    cell, second = _second_counts(plan, counts, counter.kept)
    return Sketch(plan.gated(first, cell), second, tally, largest_weight=largest)


class _Keeping(Counter):
    """Counts all rows, and keeps their cells if there are few enough; else ``kept`` is None."""

    def __init__(self, plan: Plan, n_rows: int | None) -> None:
        super().__init__(plan)
        family = plan.family
        small = np.diff(family.offsets).max() <= 1 << 8
        few = n_readings(n_rows, family.n_tables) == 1
        self.kept: list[tuple[Cells, Weights | None]] | None = [] if small and few else None

    def _count(self, codes: Codes, counts: Ints, weights: Weights | None) -> None:
        family, kept = self._plan.family, self.kept
        if kept is None or not isinstance(family, RandomFeature):
            super()._count(codes, counts, weights)
            return
        kept.append((family.count_and_keep(codes, counts, weights), weights))
        if sum(cells.size for cells, _ in kept) > KEPT_BYTES:
            self.kept = None


def _second_counts(
    plan: Plan, first: Ints, kept: list[tuple[Cells, Weights | None]]
) -> tuple[int, Ints]:
    """Return the gate's cell, and the counts of the rows from it on."""
    family, values = plan.family, gate_values(first)
    histogram = gate_histogram(family, values)
    places, rows = [], np.zeros(GATE_BINS, np.int64)
    for cells, weights in kept:
        totals = np.empty(cells.shape[1])
        kernels.sum_kept(cells, values, family.offsets, totals)
        place = histogram.cells(totals / family.n_tables).astype(np.uint8)
        rows += np.bincount(place, weights, GATE_BINS).astype(np.int64)
        places.append(place)
    gate = otsu_cell(rows)
    # What takes less is counted: the rows from the gate on, or those below it.
    above = bool(2 * rows[gate:].sum() < rows.sum())
    second = np.zeros_like(first)
    for (cells, weights), place in zip(kept, places, strict=True):
        some = np.flatnonzero((place >= gate) == above)
        times = EVERY_ROW_ONCE if weights is None else weights[some]
        kernels.count_kept(cells, some, times, family.offsets, second)
    return gate, second if above else first - second
