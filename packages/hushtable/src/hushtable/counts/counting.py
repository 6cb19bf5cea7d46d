"""One pass over the rows: counts under a plan."""

import contextlib
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.persons import PersonRows
from hushtable.data.readers import Batch, Reader, no_rows, taken
from hushtable.data.typed import open_rows
from hushtable.data.weights import Numbered, Weights, numbered
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.threads import FEW_TO_COUNT, for_each, n_threads

if TYPE_CHECKING:
    from hushtable.counts.sketch import Sketch

Ints = NDArray[np.int64]


class Counter:
    """Counts rows under a plan: an accumulator for each thread, added up at the end.

    Under a plan of the second pass, only dense rows are counted. With ``persons``, which tells
    the column, only those of each person's rows that it chooses.
    """

    def __init__(self, plan: Plan, persons: PersonRows | None = None) -> None:
        self._plan, self._persons = plan, persons
        self._encoder = Encoder(plan.schema)
        self._idle: SimpleQueue[tuple[Ints, Ints]] = SimpleQueue()
        self._rows: list[int] = []
        self._sample: Ints | None = None
        self._gate = plan.dense_rows()
        self._loop = None if self._gate else plan.family.counting_numbers()

    def draw_samples(self, n_rows: int, max_samples: int, rng: np.random.Generator) -> None:
        """Draw the rows of each table: ``max_samples`` of ``n_rows``, without replacement."""
        size, tables = min(whole("max_samples", max_samples), n_rows), self._plan.family.n_tables
        # (row, table) pairs as row * tables + table: sorted, they are in the order of reading.
        pairs = [rng.choice(n_rows, size, replace=False) * tables + t for t in range(tables)]
        self._sample = np.sort(np.concatenate(pairs))

    def count(
        self, reader: Reader, weights: Weights | None, n_jobs: int | None
    ) -> tuple[Ints, Ints]:
        """Count every row, or the sample; return counts (n_cells,) and tally (n_features, 2)."""
        sources = numbered(reader, weights)
        threads = self._threads(n_jobs, reader)
        for _ in range(threads):
            self._idle.put(self._nothing())
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
        """Rows read so far, without those of weight zero."""
        return sum(self._rows)

    def _threads(self, n_jobs: int | None, reader: Reader) -> int:
        if self._sample is not None and not reader.files:
            # Of a batch in memory, few rows are counted: next to no work but Python's.
            return n_threads(n_jobs, len(self._sample) // self._plan.family.n_tables)
        return n_threads(n_jobs, reader.n_rows, few=FEW_TO_COUNT)

    def _nothing(self) -> tuple[Ints, Ints]:
        cells, features = self._plan.family.n_cells, len(self._plan.schema)
        return np.zeros(cells, np.int64), np.zeros((features, 2), np.int64)

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
        # Only the rows that some table samples are encoded.
        used, place = np.unique(rows, return_inverse=True)
        codes = self._encoder.encode(taken(batch, used), start)
        with self._accumulator() as (counts, tally):
            tally += codes.tally
            self._plan.family.count_pairs(codes, place, table, counts)

    @contextlib.contextmanager
    def _accumulator(self) -> Iterator[tuple[Ints, Ints]]:
        own = self._idle.get()
        try:
            yield own
        finally:
            self._idle.put(own)


def count_persons(
    plan: Plan,
    X: Any,
    rows: PersonRows,
    n_jobs: int | None,
    *,
    allow_empty: bool,
    attended: bool = True,
) -> tuple[Ints, Ints]:
    """Count those rows that ``rows`` chooses of each person; see `Counter.count`."""
    if rows.column in plan.schema.names:
        raise UsageError(
            f"column {rows.column!r} tells persons, and the plan counts it as a feature: an id is "
            "no feature; leave it out of the schema (--drop), or name another column"
        )
    with rows:
        reader = open_rows(X, plan.schema, keep=[rows.column], attended=attended)
        rows.unasked, rows.doubts_one_person = reader.unasked, not allow_empty
        if reader.names is None or reader.names[-1] != rows.column:
            raise DataError(
                f"{reader.source} has no names of columns, and so no column {rows.column!r}: give "
                "a frame or a table"
            )
        found = Counter(plan, rows).count(reader, None, n_jobs)
    if not allow_empty and not rows.counted.n_rows:
        raise no_rows(reader)
    return found


def most_together(a: "Sketch", b: "Sketch") -> int | None:
    """Return how many rows of a person a sum has at most: a person in both has the rows of both.

    It depends on how the parts were counted, and on no row: the noise is scaled by it, and its
    scale is public. A sketch that counted no rows keeps its bound; `Sketch.zero` has a bound of 0.
    """
    one, other = a.rows_per_person, b.rows_per_person
    return None if one is None or other is None else one + other


def check_tables(plan: Plan, counts: Ints) -> None:
    """Raise `PlanError` if the tables of a sketch hold different numbers of rows, or too many."""
    rows = np.add.reduceat(counts.astype(np.float64), plan.family.offsets[:-1])
    if plan.purpose is Purpose.VERDICTS:  # the first histogram counts rows, all others by sign
        rows[0] = counts[1] - counts[0]
    if abs(rows).max() > 2**52 or (rows != rows[0]).any() or plan.rows_counted(counts) < 0:
        raise PlanError(
            f"sketch: its tables hold {rows.min():,.0f} to {rows.max():,.0f} rows: needs the "
            "same rows in each, at most 2^52"
        )
