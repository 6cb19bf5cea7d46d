"""The sketch: counts of rows under a plan, and their algebra."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files, progress
from hushtable.arguments import generator
from hushtable.counts.base import Counts, check_coupled, coupling_words
from hushtable.counts.counter import Correcting, Counter, Placing
from hushtable.counts.release import Release, check_plan, release_counts
from hushtable.counts.rounds import gated
from hushtable.data.passes import Weights, count_rows, whole_weights
from hushtable.data.persons import PersonRows, PersonsCounted
from hushtable.data.readers import Reader, Unasked, no_rows
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError
from hushtable.plans.families.histograms import gate_histogram
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import ReleaseTerms
from hushtable.privacy.mechanisms import DEFAULT, MECHANISMS, Adjacency, named


def _of_persons(
    plan: Plan,
    X: object,
    rows: PersonRows,
    n_jobs: int | None,
    *,
    allow_empty: bool,
    attended: bool,
) -> "Sketch":
    """Count the rows that ``rows`` chooses of each person; see `Sketch.from_data`."""
    if rows.column in plan.schema.names:
        raise UsageError(
            f"column {rows.column!r} identifies persons, but the plan counts it as a feature: "
            "leave it out of the schema (--drop), or name another column"
        )
    with rows:
        reader = open_rows(X, plan.schema, keep=[rows.column], attended=attended)
        check_coupled(plan, reader, rows.column)
        rows.unasked, rows.doubts_one_person = reader.unasked, not allow_empty
        if reader.names is None or reader.names[-1] != rows.column:
            raise DataError(
                f"{reader.source} has no column names, so it has no column {rows.column!r}: give "
                "a frame or a table"
            )
        counts, tally = Counter(plan, rows).count(reader, None, n_jobs)
    if not allow_empty and not rows.counted.n_rows:
        raise no_rows(reader)
    return Sketch(
        plan,
        counts,
        tally,
        rows_per_person=rows.most,
        persons=rows.counted,
        unread=_words(rows.unasked),
    )


def _words(unasked: Unasked | None) -> tuple[str, ...]:
    return () if unasked is None else unasked.words


def count_here(
    plan: Plan,
    X: object,
    *,
    sample_weight: object = None,
    max_samples: int | None = None,
    random_state: object = None,
    n_jobs: int | None = None,
    allow_empty: bool = False,
) -> "Sketch":
    """Count rows as `Sketch.from_data` does, but coupled rows, too: no release is made of them."""
    reader = open_rows(X, plan.schema)
    coupled = coupling_words(plan, reader, None)
    counter = Counter(plan)
    if max_samples is not None:
        if sample_weight is not None:
            raise UsageError("sample_weight needs all rows in every table: leave max_samples out")
        rng, reader = generator(random_state), reader.repeatable()
        counter.draw_samples(count_rows(reader), max_samples, rng)
    weights = whole_weights(sample_weight, reader, allow_empty=allow_empty)
    counts, tally = counter.count(reader, weights, n_jobs)
    if not allow_empty and not counter.n_rows:
        raise no_rows(reader)
    largest = 1 if weights is None else int(weights.max(initial=1))
    sampled = max_samples is not None
    return Sketch(
        plan,
        counts,
        tally,
        sampled=sampled,
        largest_weight=largest,
        fresh_samples=sampled and random_state is None,
        coupled=coupled,
    )


def both_passes(
    plan: Plan, reader: Reader, weights: Weights | None, n_jobs: int | None
) -> "Sketch":
    """Count all rows, find the gate, and count the rows in dense regions.

    The counts are bit-identical to those of the rounds `gate` and `second_pass` with sketches, but
    faster: rows are placed in the gate's histogram once, and usually fewer than half are counted
    again, while they are placed, with a gate that is guessed from the rows before. The rows are
    read once more only if there may be rows between the guess and the gate. It stores one byte for
    each row.
    """
    counts, tally = Counter(plan).count(reader, weights, n_jobs)
    placing = Placing(plan, gate_histogram(plan.family, plan.score, counts, 0.0))
    counted, _ = placing.count(reader, weights, n_jobs)
    if any(guess != placing.guess for _, guess in placing.placed.values()):
        counted += Correcting(plan, placing).count(reader, weights, n_jobs)[0]
    largest = 1 if weights is None else int(weights.max(initial=1))
    second = counted if placing.above else counts - counted
    return Sketch(gated(plan, counts, placing.guess), second, tally, largest_weight=largest)


@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Counts):
    """Counts of rows under a plan: a commutative monoid under ``+``.

    ``a + b`` is bit-identical to the sketch of both sites' rows together, in any order and for any
    division of the rows. ``sum(sketches, start=Sketch.zero(plan))`` adds many.

    A sketch holds exact counts: it is not private, and not meant to leave a site. Its `release` may
    leave.

    Attributes
    ----------
    plan : Plan
        The plan under which rows were counted.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell; the tables are end to end, divided by ``plan.family.offsets``.
    tally : ndarray of shape (n_features, 2), int64
        For each feature, rows whose value was missing, and rows whose value was outside the
            range (and clipped to it) or an unseen category. Each row counts once, whatever its
            weight; with ``max_samples``, only rows that some table counted.
    sampled : bool
        Whether each table holds a random sample instead of all rows.
    largest_weight : int
        Largest number of times that a row was counted; above 1 only with ``sample_weight``.
    fresh_samples : bool
        Whether no one can know how the samples were drawn: from the system's entropy, not from
        a seed or a generator.
    rows_per_person : int or None
        Largest number of rows of a person, if a column identifies persons; for a sum, of its parts
        together. 0 for `zero`, which is the identity of ``+`` for any other part.
    coupled : str
        Why no release can be made, if one person's records may have changed the features of other
        persons' rows; empty otherwise.
    persons : hushtable.data.persons.PersonsCounted or None
        How many rows of how many persons were left out; not in files.
    unread : tuple of str
        What could not be read of rows counted with ``attended=False``, in sentences for
        the site's own people; not in files.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> north, south = (Sketch.from_data(plan, np.full((500, 1), age)) for age in (30.0, 40.0))
    >>> (north + south).n_rows
    1000
    """

    kind: ClassVar[str] = "sketch"
    noun: ClassVar[str] = "a raw sketch"
    adds: ClassVar[bool] = True
    ledger = None  # exact counts have no ledger

    plan: Plan
    counts: NDArray[np.int64]
    tally: NDArray[np.int64] = field(repr=False)
    sampled: bool = False
    largest_weight: int = 1
    fresh_samples: bool = False
    rows_per_person: int | None = None
    coupled: str = field(default="", repr=False)
    persons: PersonsCounted | None = field(default=None, repr=False)
    unread: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_array("tally", (len(self.plan.schema), 2))
        for name, array in (("counts", self.counts), ("tally", self.tally)):
            if len(array) and array.min() < 0:
                raise PlanError(f"sketch: {name} holds a negative number")
        rows = np.add.reduceat(self.counts, self.plan.family.offsets[:-1], dtype=np.float64)
        if abs(rows).max() > 2**52 or (rows != rows[0]).any() or self.n_rows < 0:
            raise PlanError(
                f"sketch: its tables hold {rows.min():,.0f} to {rows.max():,.0f} rows: needs the "
                "same rows in each, at most 2^52"
            )

    @classmethod
    def zero(cls, plan: Plan) -> "Sketch":
        """Return the sketch of no rows, the identity of ``+``."""
        tally = np.zeros((len(plan.schema), 2), np.int64)
        return cls(plan, np.zeros(plan.family.n_cells, np.int64), tally, rows_per_person=0)

    @classmethod
    @progress.with_progress("Counting")
    def from_data(
        cls,
        plan: Plan,
        X: object,
        *,
        sample_weight: object = None,
        max_samples: int | None = None,
        random_state: "int | np.random.Generator | None" = None,
        n_jobs: int | None = None,
        allow_empty: bool = False,
        attended: bool = True,
        person: str | None = None,
        rows_per_person: int = 1,
        key: bytes | None = None,
        known: NDArray[np.uint64] | None = None,
    ) -> "Sketch":
        """Count rows.

        Parameters
        ----------
        plan : Plan
            The plan with the hash functions.
        X : array, data frame, Arrow object or path
            Rows, in any form that `hushtable.data.readers.as_reader` takes, with the plan's
            features as columns, by name. Missing values are allowed.
        sample_weight : array-like of shape (n,), optional
            Whole numbers, 0 or more: a row of weight w counts exactly like w equal rows.
        max_samples : int, optional
            Count, in each table, only a random sample of this many rows, drawn without
            replacement and again for each table (paper, Algorithm 1). None counts every row
            in every table.
        random_state : int or numpy Generator, optional
            Seed of the samples; not used without ``max_samples``. With a seed or a generator,
            the counts can be reproduced, and therefore cannot be released.
        n_jobs : int, optional
            Threads: None means one, -1 every core. The counts do not depend on it.
        allow_empty : bool, default=False
            Whether to count the rows of no person, or of a single person, like any others, instead
            of raising an error. If others can see whether there is a release, as in a round, an
            error would reveal whose rows there are.
        attended : bool, default=True
            Whether a person is present who can react to an error about a value. If not, as in an
            unattended round, no value decides whether there is a sketch: values that cannot be read
            under the plan's schema count as missing, rows without an id are left out, and
            ``unread`` reports this. Only the plan's names then determine where a file has its
            column names. Includes ``allow_empty``.
        person : str, optional
            The column that identifies persons: text or whole numbers, none missing, not a feature
            of the plan. At most ``rows_per_person`` rows of each are counted, the same in any
            order.
        rows_per_person : int, default=1
            The number of rows of each person that count at most.
        key, known : bytes, and ndarray of shape (n,), uint64; optional
            Secret of 16 bytes or more, with which ``person`` is hashed, by default the plan's id;
            and persons not to count, as sorted digests under it
            (`hushtable_federation.Reply.barred`).

        Returns
        -------
        Sketch

        Raises
        ------
        DataError
            If there are no rows (unless ``allow_empty``), the columns are not the plan's, or a
            value is of the wrong kind; the message names the column.
        PrivacyError
            If counts under the plan may be released, but one person's records may change the
            features of other persons' rows: by histories, or in the result of a query. It
            depends on how the rows are made, never on a value.
        """
        allow_empty = allow_empty or not attended
        if person is not None:
            if max_samples is not None or sample_weight is not None:
                raise UsageError("person= counts whole rows: drop sample_weight and max_samples")
            rows = PersonRows(person, rows_per_person, key, plan.plan_id, known)
            return _of_persons(plan, X, rows, n_jobs, allow_empty=allow_empty, attended=attended)
        if rows_per_person != 1 or key is not None or known is not None:
            raise UsageError("rows_per_person=, key= and known= need person=: name the column")
        reader = open_rows(X, plan.schema, attended=attended)
        check_coupled(plan, reader, None)
        sketch = count_here(
            plan,
            reader,
            sample_weight=sample_weight,
            max_samples=max_samples,
            random_state=random_state,
            n_jobs=n_jobs,
            allow_empty=allow_empty,
        )
        return replace(sketch, unread=_words(reader.unasked))

    @property
    def n_rows(self) -> int:
        """Number of rows in each table (the sum of the weights, or the sample's size)."""
        return self.plan.rows_counted(self.counts)

    @property
    def seeded(self) -> bool:
        """Whether someone may know how the samples were drawn, which forbids a release."""
        return self.sampled and not self.fresh_samples

    def first_pass(self) -> "Sketch":
        """Return the counts of all rows; for two passes with exact counts, those of the first."""
        first = self.plan.first_counts
        if first is None or self.plan.first_noise_sd is not None:
            return self
        return replace(self, plan=self.plan.first_pass(), counts=first)

    # --- what may leave -----------------------------------------------------------------------

    def release(
        self,
        epsilon: float | ReleaseTerms,
        delta: float = 1e-6,
        *,
        mechanism: str = DEFAULT,
        adjacency: Adjacency = "add-remove",
        rows_per_person: int | None = None,
        after: Release | Sequence[Release] = (),
        share: float | None = None,
        random_state: None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Release:
        """Return the counts with noise, which may leave the site.

        Epsilon is the total for one person: over all tables of this release, the releases from
        which the plan was drawn (marginals, ranges), and those named in ``after``.

        Parameters
        ----------
        epsilon : float, or hushtable.privacy.ReleaseTerms
            The presence of one person changes the probability of anything that the release may
            reveal by at most a factor e^epsilon, plus delta. Or all terms in one object.
        delta : float, default=1e-6
            The probability that is added to that bound. At most 1/n for the ``expected_rows`` for
            which the plan was laid out, and 1e-5 under other plans: whether there is a release
            never depends on the rows counted. Laplace noise needs none.
        mechanism : {"discrete-gaussian", "discrete-laplace", "laplace-per-table"}
            ``"discrete-gaussian"``: accounted in zCDP; the least noise with about ten tables or
            more. ``"discrete-laplace"``: pure epsilon, no delta.
            ``"laplace-per-table"``: the paper's, for its experiments. ``epsilon`` is then that of
            the paper, for *one table* alone: Laplace noise of scale 1 / epsilon. The ledger states
            the true total, m times as much.
        adjacency : {"add-remove", "replace-one"}
            Whether neighbouring data differ by one person more or less, or by one person's values
            (for data whose number of rows is public).
        rows_per_person : int, optional
            Largest number of rows of one person; the guarantee is for all of them together. By
            default the sketch's, otherwise 1.
        after : Release or sequence of Release, optional
            Earlier releases about the same rows, which count towards epsilon. Those behind the plan
            count automatically; but if the plan was drawn from a merged release, also give what was
            released before that.
        share : float in (0, 1], optional
            Share of the budget that this release takes. By default a tenth for marginals, a
            twentieth for ranges, and all that is left for a detector's tables; with a plan drawn
            with ``passes=2``, half of what those leave for the first pass, and a twentieth for the
            gate.
        random_state : None
            Refused: noise from a seed can be subtracted by anyone who guesses the seed.
        progress : callable, optional
            Called from time to time with the number of further cells that are done.

        Returns
        -------
        Release

        Raises
        ------
        PrivacyError
            If the guarantee could not be kept: the plan depends on raw data, rows on other persons'
            records (``coupled``), the budget is exhausted, delta is too large, rows weigh more than
            ``rows_per_person``, ...
        MissingExtraError
            If OpenDP is not installed.
        """
        if random_state is not None:
            raise PrivacyError(
                "noise takes no seed: anyone who guesses random_state can subtract the noise; "
                "leave it out (the seed of the hash functions belongs to Plan.draw)"
            )
        most = rows_per_person
        if most is None:
            most = 1 if isinstance(epsilon, ReleaseTerms) else self.rows_per_person or 1
        terms = ReleaseTerms.given(
            epsilon,
            delta=delta,
            adjacency=adjacency,
            rows_per_person=most,
            share=share,
            mechanism=mechanism,
        )
        check_plan(self.plan)
        check_counts(self, terms.mechanism, terms.rows_per_person)
        return release_counts(self, terms, after, progress)

    # --- the algebra ------------------------------------------------------------------------

    def __add__(self, other: "Sketch") -> "Sketch":
        if not self._addable(other):
            return NotImplemented
        mine, theirs = self.rows_per_person, other.rows_per_person
        return Sketch(
            self.plan,
            self.counts + other.counts,
            self.tally + other.tally,
            sampled=self.sampled or other.sampled,
            largest_weight=max(self.largest_weight, other.largest_weight),
            fresh_samples=not (self.seeded or other.seeded),
            # A person in both has the rows of both. The sum depends on how the parts were counted,
            # not on rows: the noise is scaled by it, and its scale is public.
            rows_per_person=None if mine is None or theirs is None else mine + theirs,
            coupled=self.coupled or other.coupled,
        )

    def __sub__(self, other: "Sketch") -> "Sketch":
        """Subtract rows that were added: ``(a + b) - b`` is bit-identical to ``a``."""
        if not self._addable(other, "subtract"):
            return NotImplemented
        if (other.counts > self.counts).any() or (other.tally > self.tally).any():
            raise UsageError(
                "a sketch can only be subtracted from one to which its rows were added: some count "
                "would be below zero"
            )
        counts, tally = self.counts - other.counts, self.tally - other.tally
        return replace(self, counts=counts, tally=tally)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return (
            self.plan.plan_id == other.plan.plan_id
            and self.sampled == other.sampled
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.tally, other.tally)
        )

    # It is compared by its arrays, which have no hash.
    __hash__ = None  # type: ignore[assignment]

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> files.Part:
        """Return a sketch's part of a file: manifest entries and arrays."""
        entries, arrays = super().entries()
        entries["sampled"] = self.sampled
        if self.sampled and self.fresh_samples:
            entries["fresh_samples"] = True
        if self.largest_weight > 1:
            entries["largest_weight"] = self.largest_weight
        if self.rows_per_person is not None:
            entries["rows_per_person"] = self.rows_per_person
        if self.coupled:
            entries["coupled"] = self.coupled
        return entries, arrays | {"tally": self.tally}

    @classmethod
    def from_file(cls, content: files.Content) -> "Sketch":
        """Build the sketch in a file; raise `PlanError` if it has none."""
        maybe = {
            "largest_weight": object, "fresh_samples": bool, "rows_per_person": object,
            "coupled": str,
        }  # fmt: skip
        stated = content.said("counts", {"sampled": bool}, maybe)
        weight, fresh = stated.get("largest_weight", 1), stated.get("fresh_samples", False)
        most = stated.get("rows_per_person")
        counts, tally = content.array("counts"), content.array("tally")
        # A bound of zero rows per person is possible only without any rows: in `zero`.
        fewest = int(counts.any() or tally.any())
        numbers = ("largest_weight", weight, 1), ("rows_per_person", most, fewest)
        for name, value, least in numbers:
            if (value is not None or name in stated) and (type(value) is not int or value < least):
                raise PlanError(f"{name}={value!r}: needs a whole number, {least} or more")
        return cls(
            Plan.from_file(content),
            counts,
            tally,
            sampled=stated["sampled"],
            largest_weight=weight,
            fresh_samples=fresh,
            rows_per_person=most,
            coupled=stated.get("coupled", ""),
        )

    def outside(self) -> dict[str, int]:
        """Return, for each feature that has some, how many rows were outside the plan."""
        outside = zip(self.plan.schema.names, self.tally[:, 1].tolist(), strict=True)
        return {name: rows for name, rows in outside if rows}


def check_counts(sketch: Sketch, mechanism: str, rows_per_person: int) -> None:
    """Raise `PrivacyError` if a row may have changed more counts than the accounting covers."""
    if sketch.coupled:
        raise PrivacyError(sketch.coupled)
    if sketch.sampled and not named(mechanism).takes_samples:
        that = next(one.name for one in MECHANISMS.values() if one.takes_samples)
        raise PrivacyError(
            "the tables hold random samples of fixed size: an additional row pushes another out, "
            "which doubles the effect of a row and has no benefit: sketch again without "
            f"max_samples (or use the paper's mechanism={that!r}, which accounts for it)"
        )
    if sketch.seeded:
        raise PrivacyError(
            "the samples in the tables were drawn from a seed or a generator, or the file does not "
            "state how: a seed reveals which rows are in each sample, and an additional row "
            "may redraw them all: sketch the rows again and leave random_state out, "
            "or max_samples"
        )
    # If everyone has at most that many rows, no weight exceeds it.
    if (weight := sketch.largest_weight) > rows_per_person:
        raise PrivacyError(
            f"rows were counted with sample_weight, up to {weight} times each: one person's rows "
            f"can change a count by that: give rows_per_person={weight} or more"
        )
    if (most := sketch.rows_per_person or 0) > rows_per_person:
        raise PrivacyError(
            f"up to {most} rows of a person were counted, but the noise would be for "
            f"{rows_per_person}: give rows_per_person={most} or more, or count fewer (of sketches "
            "that were added, a person in several has the rows of each: sketch all rows at once)"
        )
