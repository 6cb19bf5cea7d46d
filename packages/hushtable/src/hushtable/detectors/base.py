"""The base of all detectors: draw a plan, count, set the threshold, learn from verdicts, save."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable import files, progress
from hushtable.arguments import fill_docs, generator
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.sketch import Sketch, count_here
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.calendar import without_parts
from hushtable.data.encoding import encoded_rows
from hushtable.data.followers import Follower, followers
from hushtable.data.labels import fold
from hushtable.data.persons import PersonsCounted, some_of_each
from hushtable.data.readers import Reader, as_reader, no_rows
from hushtable.data.row_cache import MOST_BYTES
from hushtable.data.schema import Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.data.understanding import Inferred, schema_from_data
from hushtable.data.weights import count_rows, whole_weights
from hushtable.detectors.estimator import check_fitted, suggesting
from hushtable.detectors.fitted import SHARED, FittedTables, share_of_rows
from hushtable.display import html
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError
from hushtable.plans.families import FINE, OUTLIER
from hushtable.plans.plan import Plan
from hushtable.scores.finding import Finding
from hushtable.scores.review import Review
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Sample, Usual
from hushtable.scores.verdict_log import SKIP
from hushtable.streams import outside_beyond, outside_words
from hushtable.words import options

#: Up to this many numeric values are encoded once, not in each pass: they take little memory.
_FEW_VALUES = 1 << 17


class DetectorReview:
    """A review of rows by a detector, which learns from each answer.

    Attributes
    ----------
    row : Finding or None
        The row to judge: ``row.row`` is its number, ``row.words`` says why it is listed, and
        ``row.to_dict()`` has its values. None if no row is left.
    """

    def __init__(self, detector: "TableDetector", review: Review) -> None:
        self._detector, self._review = detector, review
        self._known = self._learned()
        self.row: Finding | None = review.next()

    def __iter__(self) -> Iterator[Finding]:
        """Yield the rows to judge; the review skips a row that the loop does not answer."""
        while (row := self.row) is not None:
            yield row
            if self.row is row:
                self.skip()

    def outlier(self, note: str = "") -> Finding | None:
        """Mark the row as an outlier; return the next row."""
        return self._answer(OUTLIER, note)

    def fine(self, note: str = "") -> Finding | None:
        """Mark the row as fine; return the next row."""
        return self._answer(FINE, note)

    def skip(self) -> Finding | None:
        """Give no verdict on the row; return the next row."""
        return self._answer(SKIP)

    def undo(self) -> Finding | None:
        """Take back the last answer; return the row to judge."""
        self._check()
        if self._review.undo() is None:
            raise UsageError("there is no answer to take back")
        return self._go_on()

    def rescan(self) -> Finding | None:
        """Score all rows again with all verdicts so far; return the row to judge."""
        self._review.rescan()
        self.row = self._review.next()
        return self.row

    def list_of(self, n: int = 10) -> list[Finding]:
        """Return the lowest unanswered rows that differ from each other, for a team to share."""
        return self._review.list_of(n)

    def choose(self, row: Finding) -> Self:
        """Choose a row, for example one from a list, as the one to answer next."""
        self.row = self._review.of_row(row.row)
        return self

    def found(self) -> dict[str, int]:
        """Return the counts of this review: rows judged, outliers, fine rows, skipped rows.

        ``by_score_alone`` is the number of confirmed outliers among as many rows, taken by their
        scores without verdicts.
        """
        return self._review.found()

    def answered(self) -> dict[int, str]:
        """Return the last answer to each row, by its number: "outlier", "fine" or "skip"."""
        return {row: answer.verdict for row, answer in self._review.last().items()}

    @property
    def verdicts(self) -> Verdicts:
        """All verdicts that the detector has learned."""
        return self._review.verdicts

    def _answer(self, verdict: str, note: str = "") -> Finding | None:
        self._check()
        if self.row is None:
            raise UsageError("no row is left to judge: call rescan(), or review other rows")
        self._review.answer(self.row, verdict, note)
        return self._go_on()

    def _go_on(self) -> Finding | None:
        verdicts = self._review.verdicts
        self._detector._learned(verdicts if verdicts.n_rows else None)
        self._known = self._learned()
        self.row = self._review.next()
        return self.row

    def _learned(self) -> Counts | None:
        return getattr(self._detector, "verdicts_", None)

    def _check(self) -> None:
        """Refuse to overwrite verdicts that the detector learned elsewhere in the meantime."""
        if self._learned() is not self._known:
            raise UsageError(
                "the detector has learned or forgotten other verdicts since this review began: "
                "start a new one with detector.review(X)"
            )

    def _repr_html_(self) -> str:
        if self.row is None:
            return "<p>No row is left to judge.</p>"
        return html(self.row._view())


class TableDetector(FittedTables, ABC):
    """A detector that counts rows into tables.

    A subclass names the draw of its tables and the further arguments of the draw and the count.
    """

    _detector: ClassVar[str]
    #: Whether `fit` encodes the rows in several passes.
    _reads_again: ClassVar[bool] = False
    #: The verdicts learned so far; the attribute is missing if there are none.
    verdicts_: Counts
    #: Shares of the rows of the last `partial_fit` outside ranges or categories, where many are.
    outside_: dict[str, float]
    #: For each column whose level moved, the counts before; set by `partial_fit`.
    _quiet: dict[str, Counts]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_docs(cls, SHARED)
        if "__init__" in vars(cls):
            cls.__init__ = suggesting(cls.__init__)  # type: ignore[method-assign]

    # Parameters that every subclass stores in __init__.
    n_tables: int
    contamination: str | float
    n_jobs: int | None
    random_state: Any

    # --- fitting ------------------------------------------------------------------------------

    @abstractmethod
    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Any, n_rows: int
    ) -> dict[str, Any]:
        """Return the arguments of `Plan.draw` for these rows, besides those of every draw."""

    def _to_fit(self, reader: Reader) -> Reader:
        """Return the rows to fit, read as this detector's parameters require."""
        return reader

    def _schema(self, inferred: Inferred) -> Schema:
        """Return the schema to draw a plan for, given that of the rows."""
        # With a history, the features compare hours already.
        plain = not inferred.reading.entity
        return inferred.schema if plain else without_parts(inferred.schema, ())

    def _related(self, schema: Schema, reader: Reader, weights: Any, n_rows: int) -> Schema:
        """Return the schema with the relations between its columns, if this detector uses them."""
        return schema

    def _sketch(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        return count_here(plan, reader, sample_weight=weights, n_jobs=self.n_jobs)

    def _sketch_all(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        """Return the counts of all rows; no rows can be added to them later."""
        return self._sketch(plan, reader, weights)

    def _so_far(self) -> Counts:
        """Return the counts of the rows so far; other rows can be added to them."""
        return self.sketch_

    @progress.with_progress("Fitting")
    def _fit(
        self, X: Any, sample_weight: Any, *, all_rows: bool = True, schema: Schema | None = None
    ) -> Self:
        reader = self._to_fit(as_reader(X).repeatable())
        self._check_parameters()
        weights = whole_weights(sample_weight, reader)
        inferred = self._inferred(reader, weights, schema)
        schema, n_rows = inferred.schema, inferred.n_rows
        self.understanding_ = inferred.columns
        self._warn_of(inferred.columns)
        if n_rows < 2:
            raise DataError(
                f"{reader.source} has 1 sample (row): n_samples = 1 leaves nothing to compare "
                "with; needs at least 2"
            )
        self.reading_ = inferred.reading
        reader = open_rows(replace(inferred.rows, reading=None), schema, self.reading_)
        self._rng = generator(self.random_state)
        chosen = self._chosen_rows(n_rows, weights)
        some, n_rows = (reader, n_rows) if chosen is None else (reader.take(chosen), len(chosen))
        schema = self._related(schema, some, weights, n_rows)
        reader, some = (open_rows(one, schema, self.reading_) for one in (reader, some))
        sample = Sample(n_rows, len(schema), weights, schema.features)
        some = sample.of(some)
        pays = not some.numeric or chosen is not None or n_rows * len(schema) <= _FEW_VALUES
        if self._reads_again and weights is None and pays:
            left = MOST_BYTES - inferred.n_bytes
            some = encoded_rows(some, schema, n_rows, left, self.n_jobs)
        drawn_by = self._drawn_by(schema, some, weights, n_rows) | {"n_tables": self.n_tables}
        plan = Plan.draw(schema, detector=self._detector, random_state=self._rng, **drawn_by)
        sketch = (self._sketch_all if all_rows else self._sketch)(plan, some, weights)
        if chosen is not None:
            sketch = replace(sketch, sampled=True, fresh_samples=self.random_state is None)
        self._set_columns(schema)
        for name in ("verdicts_", "_quiet"):
            if hasattr(self, name):
                delattr(self, name)  # they belong to the previous plan
        self.outside_ = {}
        self._finish(sketch, reader, weights)
        self._usual = sample
        return self

    def followers(self) -> list[Follower]:
        """Return the columns of numbers that follow from the others, the best predicted first.

        Rows that break what binds such columns are found with `HushTable`'s ``relations=True``.
        A column is judged if it has at least 20 values more than there are columns of numbers.
        Derived from a sample of the rows of `fit`, and known only before the model is saved.

        Returns
        -------
        list of Follower
            Each has a ``name``, the ``others`` that predict it best, and ``r2``, .9 or more.
        """
        check_fitted(self)
        sample = self._usual
        return followers(sample.numbers(self.plan_.schema)) if isinstance(sample, Sample) else []

    def _chosen_rows(self, n_rows: int, weights: Any) -> NDArray[np.int64] | None:
        """Return the numbers of the rows to count, in rising order; None for all rows."""
        return None

    def _inferred(self, reader: Reader, weights: Any, schema: Schema | None) -> Inferred:
        if schema is None:
            inferred = schema_from_data(reader, weights, self.n_jobs, MOST_BYTES)
            return replace(inferred, schema=self._schema(inferred))
        if not isinstance(schema, Schema):
            raise UsageError(
                f"schema= is a {type(schema).__name__}: needs a Schema, such as "
                'Schema.from_toml("schema.toml")'
            )
        n_rows = count_rows(reader)
        if n_rows == 0:
            raise no_rows(reader)
        return Inferred(schema, n_rows, reader.reading or Reading(), (), reader)

    def _warn_of(self, columns: Sequence[ColumnUnderstanding]) -> None:
        doubts = [one for one in columns if one.options]
        for one in columns:
            if one.doubt and one.reading is not None and one.reading.lenient and not one.options:
                warnings.warn(f"{one.name}: {one.question}", UserWarning, stacklevel=5)
        names = [one.name for one in doubts if one.kind in ("id", "text")]
        if names:
            words = f"columns {names} look like identifiers or free text: leave them out"
            way = f"X without them, or hushtable.data.read(X, drop={names})"
            warnings.warn(f"{words} ({way})", UserWarning, stacklevel=5)
        for one in doubts:
            if one.name not in names:
                words = f"{one.name}: {one.question}{options.way(one.options)}"
                warnings.warn(words, UserWarning, stacklevel=5)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        person: str | None = None,
        rows_per_person: int = 1,
        schema: Schema | None = None,
    ) -> Self:
        """Read ranges off the rows, draw the plan, and count all rows in every table.

        Parameters
        ----------
        [rows to fit]
        sample_weight : array-like of shape (n,), optional
            Whole numbers, 0 or more: a row of weight w counts exactly like w equal rows.
        [persons and schema]

        Raises
        ------
        DataError
            If there are fewer than 2 rows, or a column cannot be used; the message names it.
        """
        rows = self._of_persons(X, person, rows_per_person, sample_weight)
        return self._fit(rows, sample_weight, schema=schema)

    def _of_persons(self, X: Any, person: str | None, most: int, sample_weight: Any) -> Any:
        self.persons_: PersonsCounted | None = None
        if person is None:
            if most != 1:
                raise UsageError(
                    "rows_per_person= is given without person=: name the column of persons"
                )
            return X
        if sample_weight is not None:
            raise UsageError(
                "person= counts whole rows, so it takes no sample_weight: leave sample_weight out"
            )
        person = fold(person)
        rows = as_reader(X, text_columns=frozenset([person])).repeatable()
        some, self.persons_ = some_of_each(rows, person, most)
        return some

    @progress.with_progress("Fitting")
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to the counts; the first call draws the plan.

        Ranges, cuts and categories come from the first rows; later values outside them are
        clipped, or count as unseen categories (``sketch_.outside()`` returns their numbers). If a
        fifth of the rows of a call or more are outside in a column, beyond what chance explains, a
        warning names the share, and the row from which on this is so: the level has moved, or the
        first rows were too few, and the model does not distinguish such values. ``outside_`` holds
        these shares for the last call. It stays empty for samples (`LSHiTables`).

        Parameters
        ----------
        [rows to fit]
        """
        if not hasattr(self, "sketch_"):
            return self._fit(X, None, all_rows=False)
        self._check_parameters()
        reader = self._open(X).repeatable()
        if self.sketch_.ledger is not None:
            raise PrivacyError(
                f"this detector was made from {self.sketch_.noun}, to which exact counts cannot "
                "be added: release a sketch of the new rows, and make a detector from the merged "
                "releases"
            )
        if not hasattr(self, "_rng"):
            self._rng = generator(self.random_state)
        before = self._so_far()
        more = self._sketch(before.plan, reader, None)
        self._note_outside(before, more)
        after = before + more
        if before is not self.sketch_:  # otherwise the scale of scores stays the same
            warnings.warn(
                "partial_fit continues with the first of the two passes of fit, because the second "
                "pass needs all rows at once. From now on, scores and offset_ (until now "
                f"{self.offset_:.2f}) are on another, lower scale: thresholds that you set before "
                "no longer apply. To keep both passes, fit again on all rows; to add rows without "
                "a change of scale, fit with passes=1",
                UserWarning,
                stacklevel=3,
            )
        return self._finish(after, reader, None)

    def _note_outside(self, before: Counts, more: Counts) -> None:
        """Compare the latest rows with those before each level moved; warn if many are outside."""
        quiet = getattr(self, "_quiet", {})
        found = {
            name: share
            for counts in {id(one): one for one in (before, *quiet.values())}.values()
            for name, share in outside_beyond(counts, more).items()
            if counts is quiet.get(name, before)
        }
        self.outside_ = dict(sorted(found.items(), key=lambda one: -one[1]))
        self._quiet = {name: quiet.get(name, before) for name in self.outside_}
        if self.outside_:
            named = {
                f"{name} since row {self._quiet[name].n_rows:,}": share
                for name, share in self.outside_.items()
            }
            words = f"{outside_words(named)} Rows are those counted, numbered from 0."
            warnings.warn(words, UserWarning, stacklevel=4)

    @classmethod
    def from_counts(cls, sketch: Counts, *, n_jobs: int | None = None) -> Self:
        """Make a fitted detector from merged counts.

        Its `offset_` follows from the counts (``contamination="auto"``); `set_threshold` sets it
        so that it flags a share of given rows. If a release is too noisy to derive a threshold
        from its counts, `offset_` is NaN; call `set_threshold` before `predict`.

        Parameters
        ----------
        sketch : Sketch, Release or LocalModel
            The sum of the sites' sketches or releases, under a plan of this detector.
        n_jobs : int, optional
            Threads for scoring: None means one, -1 every core.

        Returns
        -------
        detector

        Raises
        ------
        PlanError
            If the plan belongs to another detector.
        UsageError
            If no row was counted.
        """
        if sketch.plan.detector != cls._detector:
            raise PlanError(
                f"these counts are of a {sketch.plan.detector!r} plan, {cls.__name__} needs "
                f"{cls._detector!r}: use the detector that drew the plan"
            )
        self = cls(**cls._parameters_of(sketch.plan), n_jobs=n_jobs)
        self.reading_ = Reading()
        self._set_columns(sketch.plan.schema)
        if isinstance(sketch, LearnedModel):
            return self._finish(sketch.model, None, None).learn_from(sketch.verdicts)
        return self._finish(sketch, None, None)

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        return {"n_tables": plan.family.n_tables}

    def _finish(self, sketch: Counts, reader: Reader | None, weights: Any) -> Self:
        self.plan_, self.sketch_ = sketch.plan, sketch
        learned = hasattr(self, "verdicts_")
        self._scorer = Scorer(LearnedModel(sketch, self.verdicts_) if learned else sketch)
        if hasattr(self, "_ranks"):
            del self._ranks  # they belong to the previous counts
        self._usual = None
        if isinstance(self.contamination, str) or reader is None:
            self.offset_ = self._scorer.auto_offset()
        else:
            self.set_threshold(reader, self.contamination, sample_weight=weights)
        return self

    def _check_parameters(self) -> None:
        if self.contamination != "auto":
            share_of_rows(self.contamination)

    # --- verdicts --------------------------------------------------------------------------------

    def learn(self, X: Any, y: ArrayLike) -> Self:
        """Learn from verdicts on rows: rows similar to confirmed outliers score lower afterwards.

        Rows are counted with the model's hash functions, separately by verdict. A cell with more
        confirmed outliers than its share of all rows predicts scores lower, and a cell with more
        fine rows scores higher: see `hushtable.plans.verdicts`. Verdicts add up: several calls
        give the same scores as one. The detector saves its verdicts, so its file is then as
        confidential as the rows are.

        `offset_` follows if it came from the counts (``contamination="auto"``); a threshold that
        was set on rows is kept. Ranks are discarded: call `set_ranks` again.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows that someone has judged, with the columns seen in `fit`. The model may have
            counted them or not.
        y : array-like of shape (n,)
            The verdicts: 1 for an outlier, 0 for a row that is fine.

        Raises
        ------
        DataError
            If a verdict is not 0 or 1, or there is not one verdict for each row.
        UsageError
            If the detector learned from a release, which may already include these verdicts, or
            if its scores do not take verdicts (those of `HushTable` and `LSHiTables` do).

        Examples
        --------
        >>> import numpy as np
        >>> from hushtable import HushTable
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> X[:20, 0] += 3.0
        >>> detector = HushTable(random_state=0).fit(X)
        >>> before = detector.score_samples(X[10:20]).mean()
        >>> detector.learn(X[[0, 1, 2, 100, 101]], [1, 1, 1, 0, 0]).verdicts_
        Verdicts(3 outliers, 2 fine, plan_id='...')
        >>> bool(detector.score_samples(X[10:20]).mean() < before)
        True
        """
        more = self._judged(X, y)
        own = self._own_verdicts()
        return self._learned(more if own is None else own + more)

    def learn_from(self, verdicts: Counts) -> Self:
        """Learn from counts of verdicts: exact ones of another detector, or those of all sites.

        Parameters
        ----------
        verdicts : Verdicts, Release or LocalModel
            Exact verdicts under the plan of this model, which are added; or a merged release or
            local model under its plan of verdicts, which replaces all other verdicts.

        Raises
        ------
        PlanError
            If they belong to another model.
        """
        check_fitted(self)
        if not isinstance(verdicts, Verdicts):
            return self._learned(verdicts)
        own = self._own_verdicts()
        return self._learned(verdicts if own is None else own + verdicts)

    def forget(self, X: Any = None, y: ArrayLike | None = None) -> Self:
        """Forget given verdicts, or all. Scores are then as if they had never been learned.

        Parameters
        ----------
        X : array, data frame, Arrow object or path, optional
            Rows whose verdicts were learned. None forgets all.
        y : array-like of shape (n,), optional
            The verdicts on them, as they were learned.

        Raises
        ------
        UsageError
            If they were not learned.
        """
        check_fitted(self)
        if (X is None) != (y is None):
            raise UsageError(
                "forget was given one of X and y: it needs both, or neither to forget all verdicts"
            )
        if X is None:
            return self._learned(None)
        gone, own = self._judged(X, y), self._own_verdicts()
        if own is None:
            raise UsageError("this detector has learned no verdicts: there is nothing to forget")
        left = own - gone
        return self._learned(left if left.n_rows else None)

    def _judged(self, X: Any, y: Any) -> Verdicts:
        check_fitted(self)
        return Verdicts.of_rows(self.plan_, self._open(X), y)

    def _own_verdicts(self) -> Verdicts | None:
        """Return the exact verdicts so far; raise `UsageError` if there are noisy ones."""
        found = getattr(self, "verdicts_", None)
        if found is None or isinstance(found, Verdicts):
            return found
        raise UsageError(
            "this detector learned from a release of all sites' verdicts, so your own would "
            "count twice: call forget() first, or learn from the local model of the round"
        )

    def _learned(self, verdicts: Counts | None) -> Self:
        model = self.sketch_ if verdicts is None else LearnedModel(self.sketch_, verdicts)
        scorer = Scorer(model)
        follows = self.offset_ == self._scorer.auto_offset()
        self._scorer = scorer
        if follows:
            self.offset_ = scorer.auto_offset()
        if verdicts is not None:
            self.verdicts_ = verdicts
        elif hasattr(self, "verdicts_"):
            del self.verdicts_
        if hasattr(self, "_ranks"):
            del self._ranks  # they belong to the previous scores
        if isinstance(self._usual, Usual):
            self._usual = self._usual.without_scores(learned=verdicts is not None)
        return self

    def review(self, X: Any, keep: Sequence[str] = ()) -> "DetectorReview":
        """Show rows one by one, the lowest score first, and learn from each answer immediately.

        All rows are scored once. After each answer, the 20,000 lowest rows are scored again, which
        takes a few milliseconds; the others are scored again when you call ``rescan()``.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit` and those named by ``keep``.
        keep : sequence of str, optional
            Columns to show with each row: features, or others such as an identifier.

        Returns
        -------
        DetectorReview
            Iterate over it, or call its methods: ``row`` is the row to judge; ``outlier()``,
            ``fine()`` and ``skip()`` answer, and return the next row; ``undo()`` takes back the
            last answer; ``list_of(10)`` returns low rows that differ from each other; ``found()``
            returns how many rows were judged, and with which answers.

        Raises
        ------
        DataError
            If there are no rows, or the columns do not fit.
        UsageError
            If the detector's scores do not take verdicts, or it learned from a release.

        Examples
        --------
        >>> import numpy as np
        >>> from hushtable import HushTable
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> X[:20, 0] += 4.0
        >>> detector = HushTable(random_state=0).fit(X)
        >>> review = detector.review(X)
        >>> for row in review:
        ...     if row.row < 20:
        ...         review.outlier()
        ...     else:
        ...         review.fine()
        ...     if review.found()["looked_at"] == 10:
        ...         break
        >>> detector.verdicts_.n_rows
        10
        """
        check_fitted(self)
        if isinstance(keep, str):
            raise UsageError(f"keep={keep!r}: needs a list of columns, such as [{keep!r}]")
        reader, usual = self._open(X, keep), self._usual_values()
        found = Review(self._scorer, reader, keep=keep, usual=usual, n_jobs=self.n_jobs)
        return DetectorReview(self, found)

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to a .hush file, atomically: the whole file or nothing."""
        files.write(path, "detector", *self._entries())

    def _entries(self) -> tuple[dict[str, Any], files.Arrays]:
        check_fitted(self)
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        # The state of a generator is not part of the model; JSON cannot hold every seed.
        seed = parameters["random_state"]
        parameters["random_state"] = seed if isinstance(seed, int) and seed < 2**53 else None
        entries, arrays = self._scorer.sketch.entries()
        entries |= {
            "detector": type(self).__name__,
            "parameters": parameters,
            "offset": None if np.isnan(self.offset_) else self.offset_,  # JSON has no NaN
        }
        if reading := self.reading_.to_dict():
            entries["reading"] = reading
        if (usual := self._usual_values()) is not None:
            more, scores = usual.entries()
            entries, arrays = entries | more, arrays | scores
        return entries, arrays

    @classmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the detector of a file; raise `PlanError` if the parts do not fit."""
        optional = {"offset": float | None, "reading": dict}
        said = content.said(cls.__name__, {"parameters": dict}, optional)
        parameters, offset = said["parameters"], said.get("offset")
        # A later version may have more parameters.
        if not set(parameters) <= set(cls._get_param_names()):
            raise PlanError(f"not the parameters of a {cls.__name__}")
        self = cls.from_counts(counts_from_file(content))
        self.set_params(**parameters)
        self._usual = Usual.from_file(content, self.plan_.schema)
        self.offset_ = float("nan") if offset is None else float(offset)
        self.reading_ = Reading.from_dict(said.get("reading", {}))
        return self


fill_docs(TableDetector, SHARED)
