"""The sketch: counts under a plan, and their algebra."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import files
from hushtable.encoding import Encoder
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError
from hushtable.plan import Plan
from hushtable.privacy.budget import Adjacency, Mechanism
from hushtable.privacy.local import LocalModel
from hushtable.privacy.release import Release, release_counts
from hushtable.readers import Batch, Reader, as_reader, no_rows
from hushtable.scoring import gate_values
from hushtable.threads import for_each, n_threads

__all__ = ["Sketch", "counts_from_file", "numbered", "whole_weights"]


@dataclass(frozen=True, eq=False)
class Sketch:
    """Counts of rows under a plan: a commutative monoid under ``+``.

    ``a + b`` is, to the bit, the sketch of both sites' rows together, in any order, however
    they were split. ``sum(sketches, start=Sketch.zero(plan))`` adds many.

    A sketch holds exact counts: it is not private, and not meant to leave a site. What leaves
    is its `release`.

    Attributes
    ----------
    plan : Plan
        What was counted under.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell, all tables end to end as ``plan.family.offsets`` says.
    tally : ndarray of shape (n_features, 2), int64
        For each feature, rows whose value was missing, and rows whose value was outside the
        range (and clipped to it) or an unseen category. Rows, whatever their weight; with
        ``max_samples``, rows that some table counted.
    sampled : bool
        Whether each table holds a random sample instead of all rows.
    largest_weight : int
        Times that a row was counted at most; above 1 only with ``sample_weight``.
    """

    #: Exact counts have no ledger; those of a `Release` have one.
    ledger: ClassVar[None] = None
    noise_sd: ClassVar[float] = 0.0

    plan: Plan
    counts: NDArray[np.int64]
    tally: NDArray[np.int64] = field(repr=False)
    sampled: bool = False
    largest_weight: int = 1

    def __post_init__(self) -> None:
        shapes = {"counts": (self.plan.family.n_cells,), "tally": (len(self.plan.schema), 2)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.int64 or array.shape != shape:
                raise PlanError(
                    f"sketch: {name} is {array.dtype} {array.shape}; its plan needs int64 {shape}"
                )
            if len(array) and array.min() < 0:
                raise PlanError(f"sketch: {name} holds a negative number")

    @classmethod
    def zero(cls, plan: Plan) -> "Sketch":
        """Return the sketch of no rows, the identity of ``+``."""
        return cls(
            plan,
            np.zeros(plan.family.n_cells, np.int64),
            np.zeros((len(plan.schema), 2), np.int64),
        )

    @classmethod
    def from_data(
        cls,
        plan: Plan,
        X: Any,
        *,
        sample_weight: Any = None,
        max_samples: int | None = None,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ) -> "Sketch":
        """Count rows.

        Parameters
        ----------
        plan : Plan
            The hash functions to count under.
        X : array, data frame, Arrow object or path
            Rows, as `hushtable.readers.as_reader` takes them, with the plan's features as
            columns in the plan's order. Missing values are allowed.
        sample_weight : array-like of shape (n,), optional
            Whole numbers, 0 or more: a row of weight w counts as w equal rows, exactly.
        max_samples : int, optional
            Count, in each table, only a random sample of this many rows, drawn without
            replacement and anew for each table (paper, Algorithm 1). None counts every row
            in every table.
        random_state : int or numpy Generator, optional
            Seed of the samples; not used without ``max_samples``.
        n_jobs : int, optional
            Threads; None is one, -1 every core. The counts are the same for any number.

        Returns
        -------
        Sketch

        Raises
        ------
        DataError
            If there are no rows, the columns are not the plan's, or a value is of the wrong
            kind; the message names the column.
        """
        reader = as_reader(X, text_columns=plan.schema.categorical_names)
        if max_samples is not None:
            if sample_weight is not None:
                raise UsageError("sample_weight needs all rows in every table: drop max_samples")
            reader = reader.repeatable()
        counter = _Counter(plan, n_threads(n_jobs))
        if max_samples is not None:
            counter.draw_samples(_n_rows(reader), max_samples, np.random.default_rng(random_state))
        return counter.count(reader, whole_weights(sample_weight, reader))

    @property
    def n_rows(self) -> int:
        """Rows counted in each table (the sum of the weights, or the sample's size)."""
        return self.plan.rows_counted(self.counts)

    # --- what may leave -----------------------------------------------------------------------

    def release(
        self,
        epsilon: float,
        delta: float = 1e-6,
        *,
        mechanism: Mechanism = "discrete-gaussian",
        adjacency: Adjacency = "add-remove",
        rows_per_person: int = 1,
        after: Release | Sequence[Release] = (),
        share: float | None = None,
        random_state: None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Release:
        """Return the counts with noise: what may leave the site.

        Epsilon is the total for one person: over all tables of this release, the releases that
        the plan was drawn from (marginals, ranges), and those named in ``after``.

        Parameters
        ----------
        epsilon : float
            Whoever sees the release, whatever else they know, can tell the presence of one
            person apart by at most a factor e^epsilon.
        delta : float, default=1e-6
            Probability with which that may fail; at most 1/n. Laplace noise needs none.
        mechanism : {"discrete-gaussian", "discrete-laplace", "laplace-per-table"}
            ``"discrete-gaussian"``: accounted in zCDP; the least noise from about ten tables on.
            ``"discrete-laplace"``: pure epsilon, no delta.
            ``"laplace-per-table"``: the paper's, for its experiments. ``epsilon`` is then what
            the paper counts, for *one table* by itself: Laplace noise of scale 1 / epsilon. The
            ledger states the true total, m times as much.
        adjacency : {"add-remove", "replace-one"}
            Whether the data of two neighbours differ by one person more or less, or by one
            person's values (for data whose number of rows is public).
        rows_per_person : int, default=1
            Rows that one person has at most; the guarantee is for all of them together.
        after : Release or sequence of Release, optional
            Earlier releases about the same rows, which count towards epsilon. Those behind
            the plan count by themselves.
        share : float in (0, 1], optional
            Share of the budget that this release takes. By default a tenth for marginals, a
            twentieth for ranges, and all that is left for a detector's tables.
        random_state : None
            Refused: noise from a seed can be subtracted by whoever guesses the seed.
        progress : callable, optional
            Is told, now and then, how many more cells are done.

        Returns
        -------
        Release

        Raises
        ------
        PrivacyError
            If the promise could not be kept: the plan depends on raw data, the budget is
            exhausted, delta is above 1/n, rows weigh more than ``rows_per_person``, ...
        MissingExtraError
            If OpenDP is not installed.
        """
        if random_state is not None:
            raise PrivacyError(
                "noise takes no seed: whoever guesses random_state subtracts the noise; leave it "
                "out (the seed of the hash functions belongs to Plan.draw)"
            )
        return release_counts(
            self.plan,
            self.counts,
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            share=share,
            after=after,
            sampled=self.sampled,
            largest_weight=self.largest_weight,
            progress=progress,
        )

    # --- the algebra ------------------------------------------------------------------------

    def __add__(self, other: "Sketch") -> "Sketch":
        if isinstance(other, Release):
            raise PrivacyError(
                "a raw sketch and a release do not add: the sum would be neither exact nor "
                "private; release the sketch first"
            )
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.plan.plan_id != other.plan.plan_id:
            raise PlanError(
                f"two sketches of different plans do not add: {self.plan.difference(other.plan)}"
            )
        return Sketch(
            self.plan,
            self.counts + other.counts,
            self.tally + other.tally,
            self.sampled or other.sampled,
            max(self.largest_weight, other.largest_weight),
        )

    def __sub__(self, other: "Sketch") -> "Sketch":
        """Take rows away that were added: ``(a + b) - b`` is, to the bit, ``a``."""
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.plan.plan_id != other.plan.plan_id:
            raise PlanError(
                f"two sketches of different plans do not subtract: "
                f"{self.plan.difference(other.plan)}"
            )
        if (other.counts > self.counts).any() or (other.tally > self.tally).any():
            raise UsageError(
                "a sketch can be subtracted from one that its rows were added to: some count would "
                "be below zero"
            )
        return Sketch(
            self.plan,
            self.counts - other.counts,
            self.tally - other.tally,
            self.sampled,
            self.largest_weight,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return (
            self.plan.plan_id == other.plan.plan_id
            and self.sampled == other.sampled
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.tally, other.tally)
        )

    __hash__ = None  # type: ignore[assignment]

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of a sketch: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        counts = {"counts": self.counts, "tally": self.tally}
        entries["sampled"] = self.sampled
        if self.largest_weight > 1:
            entries["largest_weight"] = self.largest_weight
        return entries, arrays | counts

    @classmethod
    def from_file(cls, content: files.Content) -> "Sketch":
        """Build the sketch that a file carries; raises `PlanError` if it holds none."""
        arrays, sampled = content.arrays, content.manifest.get("sampled")
        if "counts" not in arrays or "tally" not in arrays or not isinstance(sampled, bool):
            raise PlanError(f"a file of kind {content.kind} holds no counts")
        weight = content.manifest.get("largest_weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
            raise PlanError(f"largest_weight={weight!r}: needs a whole number above 0")
        plan = Plan.from_file(content)
        return cls(plan, arrays["counts"], arrays["tally"], sampled, weight)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the sketch to a .hush file, atomically. It holds exact counts: keep it home.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced only by a complete new one.
        """
        files.write(path, "sketch", *self.entries())

    def outside(self) -> dict[str, int]:
        """Return, for each feature that has some, how many rows lay outside the plan."""
        return {
            name: int(rows)
            for name, rows in zip(self.plan.schema.names, self.tally[:, 1], strict=True)
            if rows
        }


def counts_from_file(content: files.Content) -> Sketch | Release | LocalModel:
    """Build the counts that a file carries; raises `PlanError` if it holds none."""
    if "own" in content.manifest:
        return LocalModel.from_file(content)
    detector_of_a_release = content.kind == "detector" and "ledger" in content.manifest
    if content.kind == "release" or detector_of_a_release:
        return Release.from_file(content)
    return Sketch.from_file(content)


class _Counter:
    """One pass of counting: an accumulator for each thread, added up at the end."""

    def __init__(self, plan: Plan, threads: int) -> None:
        self._plan = plan
        self._encoder = Encoder(plan.schema)
        self._threads = threads
        self._idle: SimpleQueue[Sketch] = SimpleQueue()
        for _ in range(threads):
            self._idle.put(Sketch.zero(plan))
        self._rows: list[int] = []
        self._sample: NDArray[np.int64] | None = None
        self._gate = None
        if plan.first_counts is not None:
            self._gate = gate_values(plan.first_counts, plan.first_rows)

    def draw_samples(self, n_rows: int, max_samples: int, rng: np.random.Generator) -> None:
        """Draw the rows of each table: ``max_samples`` of ``n_rows``, without replacement."""
        if max_samples < 1:
            raise UsageError(f"max_samples={max_samples}: needs at least 1")
        size, tables = min(max_samples, n_rows), self._plan.family.n_tables
        # (row, table) pairs as row * tables + table: sorted, they are in the order of reading.
        pairs = [rng.choice(n_rows, size, replace=False) * tables + t for t in range(tables)]
        self._sample = np.sort(np.concatenate(pairs))

    def count(self, reader: Reader, weights: NDArray[np.int64] | None) -> Sketch:
        for_each(self._add, numbered(self._encoder.check(reader), weights), self._threads)
        if not sum(self._rows):
            raise no_rows(reader)
        total = Sketch.zero(self._plan)
        while not self._idle.empty():
            total = total + self._idle.get()
        largest = 1 if weights is None else int(weights.max())
        return Sketch(self._plan, total.counts, total.tally, self._sample is not None, largest)

    def _add(self, item: tuple[int, Batch, NDArray[np.int64] | None]) -> None:
        start, batch, weights = item
        self._rows.append(len(batch))
        if self._sample is not None:
            self._add_sample(start, batch, self._sample)
            return
        codes = self._encoder.encode(batch, start)
        if self._gate is not None:
            values, threshold = self._gate
            dense = self._plan.family.sum(codes, values) >= threshold
            weights = dense.astype(np.int64) if weights is None else weights * dense
        with self._accumulator() as sketch:
            sketch.tally[...] += codes.tally
            self._plan.family.count(codes, sketch.counts, weights)

    def _add_sample(self, start: int, batch: Batch, sample: NDArray[np.int64]) -> None:
        tables = self._plan.family.n_tables
        first, last = np.searchsorted(sample, [start * tables, (start + len(batch)) * tables])
        rows, table = np.divmod(sample[first:last] - start * tables, tables)
        # Only the rows that some table samples are encoded.
        used, place = np.unique(rows, return_inverse=True)
        chosen = batch[used] if isinstance(batch, np.ndarray) else batch.take(pa.array(used))
        codes = self._encoder.encode(chosen, start)
        with self._accumulator() as sketch:
            sketch.tally[...] += codes.tally
            self._plan.family.count_pairs(codes, place, table, sketch.counts)

    @contextlib.contextmanager
    def _accumulator(self) -> Iterator[Sketch]:
        sketch = self._idle.get()
        try:
            yield sketch
        finally:
            self._idle.put(sketch)


def numbered(
    reader: Reader, weights: NDArray[np.int64] | None = None
) -> Iterator[tuple[int, Batch, NDArray[np.int64] | None]]:
    """Yield (number of the first row, batch, weights), without rows of weight zero."""
    start = 0
    for batch in reader.read():
        stop = start + len(batch)
        if weights is None:
            yield start, batch, None
        else:
            here = weights[start:stop]
            keep = here > 0
            if keep.all():
                yield start, batch, here
            elif isinstance(batch, np.ndarray):
                yield start, batch[keep], here[keep]
            else:
                yield start, batch.filter(keep), here[keep]
        start = stop
    if weights is not None and start != len(weights):
        raise DataError(f"sample_weight has {len(weights)} entries for {start} rows")


def whole_weights(sample_weight: Any, reader: Reader) -> NDArray[np.int64] | None:
    """Return weights as int64 of shape (n,), or None; raises `DataError` on anything else."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.ndim == 0:
        weights = np.full(_n_rows(reader), weights)
    if weights.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
    if reader.n_rows is not None and len(weights) != reader.n_rows:
        raise DataError(
            f"sample_weight.shape == {weights.shape}, expected {(reader.n_rows,)}: one a row"
        )
    try:
        with np.errstate(invalid="ignore"):  # NaN: refused below
            whole = weights.astype(np.int64)
    except (TypeError, ValueError):
        raise DataError("sample_weight holds something that is not a number") from None
    if not np.array_equal(whole, weights) or (len(whole) and whole.min() < 0):
        raise DataError(
            "sample_weight must hold whole numbers, 0 or more: a row of weight w counts as w rows"
        )
    if not whole.any():
        raise DataError("every sample_weight is zero: there is no row to count")
    return whole


def _n_rows(reader: Reader) -> int:
    if reader.n_rows is not None:
        return reader.n_rows
    return sum(len(batch) for batch in reader.read())
