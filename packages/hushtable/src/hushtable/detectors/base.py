"""The base of all detectors: fit, score, rank, flag, explain and list rows, learn, and save."""

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from hushtable import files, progress
from hushtable.arguments import fill_docs, generator
from hushtable.counts import rounds
from hushtable.counts.base import Counts, mergeable
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.sketch import Sketch, count_here
from hushtable.counts.verdicts import LearnedModel, Verdicts
from hushtable.data.calendar import without_parts
from hushtable.data.encoding import encoded_rows
from hushtable.data.labels import fold
from hushtable.data.passes import MOST_BYTES, Weights, count_rows, whole_weights
from hushtable.data.persons import PersonsCounted, some_of_each
from hushtable.data.quality import Follower, followers
from hushtable.data.readers import Reader, as_reader, is_pandas, near_names, no_rows
from hushtable.data.readers.memory import with_absent_keys
from hushtable.data.readers.reader import library_of
from hushtable.data.schema import Schema
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows, with_derived
from hushtable.data.understanding import Inferred, schema_from_data
from hushtable.detectors.estimator import check_fitted, import_sklearn, join_sklearn, suggesting
from hushtable.errors import DataError, MissingExtraError, PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.explain import Explainer
from hushtable.scores.outliers import AMONG, LISTED, Outliers, Search
from hushtable.scores.review import DetectorReview, Review
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.usual import Sample, Usual
from hushtable.streams import outside_beyond, outside_words
from hushtable.words import options

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator, OutlierMixin

    class _Base(OutlierMixin, BaseEstimator):
        """Placeholder: `LightBase` is replaced by scikit-learn's base."""
else:
    from hushtable.detectors.estimator import LightBase as _Base

#: Up to this many numeric values are encoded once, not in each pass: they take little memory.
_FEW_VALUES = 1 << 17

#: Text that docstrings share, by the placeholder that it replaces.
SHARED = {
    "[rows]": """
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.
        """,
    "[rows to fit]": """
        X : array, data frame, Arrow object or path
            Rows: NumPy, pandas, polars or pyarrow, the result of `hushtable.data.read`, or the
            path of a file, a folder or a glob pattern. Missing values and text are allowed.
        y : None
            Not used.
        """,
    "[persons and schema]": """
        person : str, optional
            A column that identifies persons and is not a feature: text or whole numbers, none
            missing.
        rows_per_person : int, default=1
            With ``person``: the largest number of rows to use of each person, so that a person
            with many rows does not become usual for that reason alone. ``persons_`` holds the
            number of rows left out.
        schema : Schema, optional
            Features with their ranges and categories, used instead of those read off the rows;
            other columns are left out.
        """,
    "[shared parameters]": """
        contamination : "auto" or float in (0, 0.5], default="auto"
            Determines `offset_`. A number is the share of the rows of the last `fit` or
            `partial_fit` to flag as outliers. As in scikit-learn, `set_params` changes it only for
            the next `fit`; `set_threshold` changes the threshold of a fitted detector. "auto" takes
            the mean, over the tables, of the score of the rarer half of the counted rows. It needs
            counts only, so a detector made from merged counts has the same threshold; it flags at
            most half of the counted rows.
        n_jobs : int, optional
            Threads: None means one, -1 every core. Counts and scores do not depend on it.
        """,
    "[sample]": """
        n_tables : int, default=100
            Number of tables (m in the paper).
        max_samples : int, default=1000
            Rows sampled for each table, without replacement: s = min(max_samples, n), at most
            65,536.
        """,
    "[attributes]": """
        plan_ : Plan
            Schema, hash functions and score rule.
        sketch_ : Sketch, Release or LocalModel
            The counts; a `Release` if the detector was made from one.
        offset_ : float
            Score below which a row is an outlier, in the unit of the scores.
        n_features_in_ : int
            Number of features seen in `fit`.
        feature_names_in_ : ndarray of str
            Names of the features, if the data had names.
        reading_ : Reading
            How the text of the columns was read; later rows are read in the same way.
        understanding_ : tuple of ColumnUnderstanding
            Columns as `fit` understood them; only after `fit`, because files do not hold it.
        outside_ : dict of str to float
            After `partial_fit`: the columns in which many of the latest rows, beyond chance, are
            outside the ranges or categories, and their shares.
        """,
}


def _names_message(fitted: set[str], given: set[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in (
        ("Feature names unseen at fit time:", sorted(given - fitted)),
        ("Feature names seen at fit time, yet now missing:", sorted(fitted - given)),
    ):
        if names:
            listed = [*names[:5], *(["..."] if len(names) > 5 else [])]
            message += title + "\n" + "".join(f"- {name}\n" for name in listed)
    if near := near_names(sorted(fitted - given), sorted(given - fitted)):
        message += f"{near.removeprefix('; ')}\n"
    if fitted == given:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def share_of_rows(contamination: object) -> float:
    """Return a share of rows to flag; raise `UsageError` if it is not a valid share."""
    if (
        isinstance(contamination, bool)
        or not isinstance(contamination, int | float | np.number)
        or not 0.0 < contamination <= 0.5
    ):
        raise UsageError(
            f"contamination={contamination!r}: needs 'auto', or a share above 0 and at most 0.5"
        )
    return float(contamination)


def n_outliers(contamination: object, n_rows: int) -> float:
    """Return how many of the rows to flag; raise `UsageError` if it is none or more than half."""
    if isinstance(contamination, bool) or not isinstance(contamination, int | np.integer):
        return share_of_rows(contamination) * n_rows
    if not 1 <= contamination <= n_rows / 2:
        raise UsageError(
            f"contamination={contamination!r}: a number of rows needs to be 1 or more, and at "
            f"most half of the {n_rows:,} rows"
        )
    return float(contamination)


#: Part of the rows to flag below which a warning says that ties prevent it, and their least number.
_OF_ASKED, _LEAST_ASKED = 0.5, 5

#: Columns of a list that people read first.
_READ_FIRST = ("file", "row", "severity", "words")
#: Output formats, by scikit-learn's names.
_OUTPUTS = ("default", "pandas", "polars")


def frame_like(table: pa.Table, X: Any) -> Any:
    """Return a table of some rows of X, numbered by its column ``row``, in the same library as X.

    A pandas frame gets the index of the rows; rows from other libraries than pandas and polars
    give a pyarrow Table.
    """
    library = library_of(X)
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    if library != "pandas":
        return table
    frame = table.to_pandas()
    frame.index = X.index[table["row"].to_numpy()]
    frame.attrs["severity_among"] = (table.schema.metadata or {}).get(AMONG, b"").decode()
    return frame


Floats = NDArray[np.float64]
Values = TypeVar("Values")


class TableDetector(_Base):
    """A detector that counts rows into tables.

    A subclass names the draw of its tables and the further arguments of the draw and the count.
    """

    _detector: ClassVar[str]
    #: Whether `fit` encodes the rows in several passes.
    _reads_again: ClassVar[bool] = False
    #: The verdicts learned so far; the attribute is missing if there are none.
    verdicts_: Verdicts
    #: Shares of the rows of the last `partial_fit` outside ranges or categories, where many are.
    outside_: dict[str, float]
    #: For each column whose level moved, the counts before; set by `partial_fit`.
    _quiet: dict[str, Counts]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        fill_docs(cls, SHARED)
        if "__init__" in vars(cls):
            cls.__init__ = suggesting(cls.__init__)  # type: ignore[method-assign]

    plan_: Plan
    sketch_: Counts
    offset_: float
    reading_: Reading
    _scorer: Scorer
    _ranks: Ranks
    #: The counted rows, known after `fit`; a sample of them is scored on first use.
    _usual: Usual | Sample | None = None
    #: Made on first use, because this takes longer than explaining a row.
    _kept_explainer: Explainer | None = None

    # Parameters that every subclass stores in __init__.
    n_tables: int
    contamination: str | float
    n_jobs: int | None
    random_state: Any

    # --- fitting ------------------------------------------------------------------------------

    def _drawn_by(
        self, schema: Schema, reader: Reader, weights: Weights | None, n_rows: int
    ) -> dict[str, Any]:
        """Return the arguments of `Plan.draw` for these rows, besides those of every draw."""
        raise NotImplementedError

    def _to_fit(self, reader: Reader) -> Reader:
        """Return the rows to fit, read as this detector's parameters require."""
        return reader

    def _schema(self, inferred: Inferred) -> Schema:
        """Return the schema to draw a plan for, given that of the rows."""
        # With a history, the features compare hours already.
        plain = not inferred.reading.entity
        return inferred.schema if plain else without_parts(inferred.schema, ())

    def _related(
        self, schema: Schema, reader: Reader, weights: Weights | None, n_rows: int
    ) -> Schema:
        """Return the schema with the relations between its columns, if this detector uses them."""
        return schema

    def _sketch(
        self, plan: Plan, reader: Reader, weights: Weights | None, *, all_rows: bool = False
    ) -> Sketch:
        """Return the counts of rows; with ``all_rows``, none can be added to them later."""
        return count_here(plan, reader, sample_weight=weights, n_jobs=self.n_jobs)

    def _so_far(self) -> Counts:
        """Return the counts of the rows so far; other rows can be added to them."""
        return self.sketch_

    @progress.with_progress("Fitting")
    def _fit(
        self,
        X: object,
        sample_weight: object,
        *,
        all_rows: bool = True,
        schema: Schema | None = None,
    ) -> Self:
        reader = self._to_fit(as_reader(X).repeatable())
        self._check_parameters()
        weights = whole_weights(sample_weight, reader)
        inferred = self._inferred(reader, weights, schema)
        schema, n_rows = inferred.schema.read_as(inferred.reading.columns), inferred.n_rows
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
        counted, n_rows = (reader, n_rows) if chosen is None else (reader.take(chosen), len(chosen))
        schema = self._related(schema, counted, weights, n_rows)
        reader, counted = (open_rows(part, schema, self.reading_) for part in (reader, counted))
        sample = Sample(n_rows, schema.features, weights)
        counted = sample.of(counted)
        pays = not counted.numeric or chosen is not None or n_rows * len(schema) <= _FEW_VALUES
        if self._reads_again and weights is None and pays:
            left = MOST_BYTES - inferred.n_bytes
            counted = encoded_rows(counted, schema, n_rows, left, self.n_jobs)
        drawn_by = self._drawn_by(schema, counted, weights, n_rows) | {"n_tables": self.n_tables}
        plan = Plan.draw(schema, detector=self._detector, random_state=self._rng, **drawn_by)
        sketch = self._sketch(plan, counted, weights, all_rows=all_rows)
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

    def _chosen_rows(self, n_rows: int, weights: Weights | None) -> NDArray[np.int64] | None:
        """Return the numbers of the rows to count, in rising order; None for all rows."""
        return None

    def _inferred(self, reader: Reader, weights: Weights | None, schema: Schema | None) -> Inferred:
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
        doubts = [col for col in columns if col.options]
        for col in columns:
            if col.doubt and col.reading is not None and col.reading.lenient and not col.options:
                warnings.warn(f"{col.name}: {col.question}", UserWarning, stacklevel=5)
        names = [col.name for col in doubts if col.kind in ("id", "text")]
        if names:
            words = f"columns {names} look like identifiers or free text: leave them out"
            way = f"X without them, or hushtable.data.read(X, drop={names})"
            warnings.warn(f"{words} ({way})", UserWarning, stacklevel=5)
        for col in doubts:
            if col.name not in names:
                words = f"{col.name}: {col.question}{options.way(col.options)}"
                warnings.warn(words, UserWarning, stacklevel=5)

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
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

    def _of_persons(self, X: object, person: str | None, most: int, sample_weight: object) -> Any:
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
        chosen, self.persons_ = some_of_each(rows, person, most)
        return chosen

    @progress.with_progress("Fitting")
    def partial_fit(self, X: object, y: object = None) -> Self:
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
        shares = {
            name: share
            for counts in {id(item): item for item in (before, *quiet.values())}.values()
            for name, share in outside_beyond(counts, more).items()
            if counts is quiet.get(name, before)
        }
        self.outside_ = dict(sorted(shares.items(), key=lambda item: -item[1]))
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

    def _finish(self, sketch: Counts, reader: Reader | None, weights: Weights | None) -> Self:
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

    # --- scoring ------------------------------------------------------------------------------

    def score_samples(self, X: object) -> Floats:
        """Return the outlier score of each row: the mean of its cells' scores, in bits.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), float64
            Low is abnormal.
        """
        return self._output(self._scores(X), X, "score")

    def _scores(self, X: object) -> Floats:
        reader = self._open(X)
        return _some(self._scorer.score(reader, n_jobs=self.n_jobs), reader)

    def decision_function(self, X: object) -> Floats:
        """Return `score_samples` minus `offset_`: negative values are outliers.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), float64
        """
        return self._output(self._decisions(X), X, "decision")

    def _decisions(self, X: object) -> Floats:
        check_fitted(self)
        if np.isnan(self.offset_):
            raise UsageError(
                "the released counts are too noisy to derive a threshold from them: set one on "
                "your own rows with set_threshold(X, 0.05), or use score_samples"
            )
        return self._scores(X) - self.offset_

    def predict(self, X: object) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), int64
        """
        return self._output(np.where(self._decisions(X) < 0, -1, 1), X, "label")

    # --- the threshold, and ranks -----------------------------------------------------------------

    def set_threshold(
        self, X: object, contamination: float | int, *, sample_weight: object = None
    ) -> Self:
        """Set `offset_` so that the given share or number of these rows are outliers.

        You can also set a score directly: ``detector.offset_ = 7.5``.

        Parameters
        ----------
        X : array, data frame, Arrow object or path; or Sketch or Release
            Rows; or merged counts under a plan of ranks, which represent the rows of all sites:
            the threshold is then the same at every site.
        contamination : float in (0, 0.5], or int
            Share of the rows, or the largest number of rows (rows of equal scores are flagged
            together or not at all).
        sample_weight : array-like of shape (n,), optional
            Whole numbers; a row of weight w counts as w rows.
        """
        check_fitted(self)
        if (counts := mergeable(X)) is not None:
            n_rows = max(1, counts.n_rows)
            share = n_outliers(contamination, n_rows) / n_rows
            self.offset_ = Ranks(counts, self._scorer).threshold(share)
            return self
        reader = self._open(X).repeatable()
        weights = whole_weights(sample_weight, reader)
        scores = _some(self._scorer.score(reader, n_jobs=self.n_jobs), reader)
        times = np.ones(len(scores), np.int64) if weights is None else weights
        n_rows = int(times.sum())
        most = int(n_outliers(contamination, n_rows))
        if isinstance(contamination, int | np.integer):
            self.offset_ = float(_in_order(scores, weights, [most])[0])
        elif weights is None:
            self.offset_ = float(np.percentile(scores, 100.0 * contamination))
        else:  # halfway between the two rows around the position
            place = contamination * (n_rows - 1)
            ends = _in_order(scores, weights, [math.floor(place), math.ceil(place)])
            self.offset_ = float(np.percentile(ends, 100.0 * (place - math.floor(place))))
        flagged, tied = (
            int(times[below].sum()) for below in (scores < self.offset_, scores == self.offset_)
        )
        if most >= _LEAST_ASKED and flagged < _OF_ASKED * most and tied > 1:
            warnings.warn(
                f"contamination={contamination} asks for {most:,} of {n_rows:,} rows, but only "
                f"{flagged:,} have a score below offset_ ({self.offset_:.4g}), because {tied:,} "
                "rows have exactly this score, and rows of equal scores are flagged together or "
                f"not at all. To flag them, too, ask for {flagged + tied:,} rows or more, or set "
                "offset_ above their score",
                UserWarning,
                stacklevel=2,
            )
        return self

    def set_ranks(self, X: object) -> Self:
        """Set the rows among which `rank_samples` ranks others.

        Parameters
        ----------
        X : array, data frame, Arrow object or path; or Sketch or Release
            Rows; or merged counts under a plan of ranks, which represent the rows of all sites.
            `save` does not include them: save such counts separately.
        """
        check_fitted(self)
        counts = mergeable(X)
        if counts is None:
            if not self.sketch_.adds:
                raise UsageError(f"{self.sketch_.noun} has no ranks: use the released model")
            counts = count_here(rounds.ranks(self._scorer.sketch), X, n_jobs=self.n_jobs)
        self._ranks = Ranks(counts, self._scorer)
        return self

    def standard_errors(self, X: object) -> Floats:
        """Return how far each row's score may be from its value with many more tables.

        This is one standard error, over the draw of the hash functions and of the noise in
        released counts. Two rows whose scores differ by less may well swap places under another
        ``random_state``. `docs/explanation/score.md` defines it.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), float64
            In the unit of the scores.
        """
        return self._with_errors(X)[1]

    def rank_samples(
        self, X: object, *, return_interval: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the share of the rows of `set_ranks` that are at least as rare as each row.

        Parameters
        ----------
        [rows]
        return_interval : bool, default=False
            Whether to return also the interval of ranks that contains the row's rank 19 times out
            of 20, under other draws of the hash functions and of the noise.

        Returns
        -------
        ranks : ndarray of shape (n,), float64
            From 0 to 1; low is abnormal. 0.001: one row in a thousand is as rare or rarer.
        interval : ndarray of shape (n, 2), float64
            Only with ``return_interval``.

        Raises
        ------
        UsageError
            If `set_ranks` was not called for this model.
        """
        check_fitted(self)
        if not hasattr(self, "_ranks"):
            raise UsageError(
                "there are no rows to rank among yet: call set_ranks first, with rows or "
                "with merged counts under a plan of ranks"
            )
        if not return_interval:
            return self._ranks.of(self._scores(X))
        scores, errors = self._with_errors(X)
        return self._ranks.of(scores), self._ranks.between(scores, errors)

    def _with_errors(self, X: object) -> tuple[Floats, Floats]:
        reader = self._open(X)
        scores, errors = self._scorer.score_with_errors(reader, n_jobs=self.n_jobs)
        return _some(scores, reader), errors

    # --- reasons ------------------------------------------------------------------------------

    def explain(self, X: object) -> Any:
        """Return how much each feature contributes to the gap between a typical and a row's score.

        A row's contributions add up to the mean score of the counted rows minus the row's own.
        They follow from the counts alone, so they also work on merged and on released counts.
        Only `HushTable` and `LSHiTables` support this.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray, or DataFrame, of shape (n, n_features), float64
            In bits; higher is more unusual: the highest contributions are the reasons why a row is
            an outlier, and a value that is more usual than most has a contribution below 0. A
            pandas frame (with the rows' index) or a polars frame if the rows are one and
            `set_output` does not choose another format.

        Raises
        ------
        UsageError
            If the detector's tables do not separate the features.
        """
        reader = self._open(X)
        shares = _some(self._explainer().explain(reader, n_jobs=self.n_jobs), reader)
        return self._output(shares, X, "", self.plan_.schema.of_rows.names)

    def importances(self, X: object) -> Floats:
        """Return each feature's mean contribution size, the mean of abs(`explain`), over rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`. With all rows, the result shows which features
            move the scores; with outliers only, which features make them outliers.

        Returns
        -------
        ndarray of shape (n_features,), float64
            In bits. Only `HushTable` and `LSHiTables` support this.

        Raises
        ------
        UsageError
            If the detector's tables do not separate the features.
        """
        reader = self._open(X)
        sizes = self._explainer().importances(reader, n_jobs=self.n_jobs)
        if np.isnan(sizes).any():
            raise no_rows(reader)
        return sizes

    def _explainer(self) -> Explainer:
        kept = self._kept_explainer
        if kept is None or kept.scorer is not self._scorer:
            kept = self._kept_explainer = Explainer(self._scorer)
        return kept

    # --- the lowest rows, and results in frames ---------------------------------------------------

    def outliers(self, X: object, n: int = 20, keep: Sequence[str] = ()) -> Any:
        """Return the n rows with the lowest scores: how rare, how certain, and why.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit` and those named by ``keep``.
        n : int, default=20
            Number of rows to return.
        keep : sequence of str, optional
            Columns whose values to include: features, or others such as an identifier; none with
            the name of a column of the list.

        Returns
        -------
        DataFrame or pyarrow.Table
            A pandas frame (with the rows' index) or a polars frame if the rows are one, otherwise
            a Table. It has a line for each row, the lowest score first, with the columns

            - ``file``, if there are several files; ``row``, from 0; those named by ``keep``;
            - ``severity``, from 0 to 100: 100 times one minus the share of the counted rows that
              are as rare or rarer. If the model does not know the counted rows (merged counts,
              releases, older files, after `partial_fit`), or if you called `set_ranks`, the share
              is taken among other rows: the table's metadata names them
              (``hushtable.severity_among``; in pandas ``attrs["severity_among"]``);
            - for `HushTable` and `LSHiTables`, ``words``: all reasons in words;
            - ``rank``, from 1; ``score`` and ``error``, its standard error as returned by
              `standard_errors`;
            - ``outside``, the columns with values outside the plan's range or categories;
            - for `HushTable` and `LSHiTables`, three reasons: ``reason_1`` is the column,
              ``value_1`` its value, ``usual_1`` what is usual (the middle 90% of the counted rows,
              or their most frequent values), ``direction_1`` is high, low, rare, missing, beyond
              the plan, or the value that it is rare with, or empty. A reason too weak to mention is
              null. ``repair`` names the columns whose usual values would take the row off the list,
              and ``incident`` numbers the groups of rows with the same strongest reason.

            Rows with a value far outside all others come first, the farthest first, until verdicts
            are learned. If no value is a reason, ``words`` says that no column stands out.

        Raises
        ------
        DataError
            If there are no rows, or the columns do not fit.
        UsageError
            If n is not a whole number above 0, or the list has its own column of a kept name.

        Examples
        --------
        >>> import pandas as pd
        >>> from hushtable import HushTable
        >>> rows = pd.DataFrame({"name": list("abcd") * 25, "pulse": [*range(60, 159), 300]})
        >>> detector = HushTable(random_state=0).fit(rows[["pulse"]])
        >>> detector.outliers(rows, n=1, keep=["name"])[["name", "severity", "words"]].values
        array([['d', 99.0, 'pulse 300, usually 64 to 154: far above']], dtype=object)
        """
        check_fitted(self)
        if isinstance(keep, str):
            raise UsageError(f"keep={keep!r}: needs a list of columns, such as [{keep!r}]")
        if len(set(keep)) < len(keep):
            raise UsageError(f"keep={list(keep)} names a column twice: name each once")
        if taken := [name for name in keep if name in LISTED]:
            raise UsageError(
                f"keep={taken}: the list has its own column {taken[0]!r}: rename the column of the "
                "rows"
            )
        table = self._lowest(X, n, keep).table()
        first = [name for name in _READ_FIRST if name in table.column_names]
        first[first.index("severity") : first.index("severity")] = keep
        others = [name for name in table.column_names if name not in first]
        return frame_like(table.select([*first, *others]), X)

    def _lowest(self, X: object, n: int, keep: Sequence[str] = ()) -> Outliers:
        search = Search(
            self._scorer,
            n,
            keep=keep,
            usual=self._usual_values(),
            ranks=getattr(self, "_ranks", None),
        )
        return search.find(self._open(X, keep), n_jobs=self.n_jobs)

    def _usual_values(self) -> Usual | None:
        """Return what the model knows of the counted rows; the first call scores a sample."""
        usual = self._usual
        return usual.usual(self._scorer) if isinstance(usual, Sample) else usual

    def __getstate__(self) -> object:
        """Return the state to pickle, which contains no rows, and nothing that follows from it."""
        state: Any = super().__getstate__()
        return {**state, "_usual": self._usual_values(), "_kept_explainer": None}

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the output format of scores, predictions and explanations.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            The default returns arrays; "pandas" returns pandas objects, with the index of the rows
            if these are in a pandas object; "polars" returns polars objects, which have no index.
            None leaves the setting unchanged.

        Examples
        --------
        >>> import pandas as pd
        >>> from hushtable import HushTable
        >>> rows = pd.DataFrame({"pulse": [70, 71, 72, 180]}, index=["ann", "ben", "cem", "dan"])
        >>> detector = HushTable(random_state=0).fit(rows).set_output(transform="pandas")
        >>> detector.score_samples(rows).idxmin()
        'dan'
        """
        if transform is not None:
            if transform not in _OUTPUTS:
                raise UsageError(f"transform={transform!r}: needs one of {list(_OUTPUTS)}")
            # scikit-learn's clone copies it by this name.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output(
        self, values: Values, X: Any, name: str, columns: Sequence[str] | None = None
    ) -> Values:
        """Return values in the format of `set_output`, which is then no array."""
        kind = getattr(self, "_sklearn_output_config", {}).get("transform")
        if kind is None and columns is not None:
            kind = library_of(X)  # columns without names say little
        if kind not in _OUTPUTS[1:]:
            return values
        try:
            library = __import__(kind)
        except ImportError:
            raise MissingExtraError(f"set_output(transform={kind!r})", kind, kind) from None
        index = {"index": X.index if is_pandas(X) else None} if kind == "pandas" else {}
        if columns is None:
            series = {"data": values} if kind == "pandas" else {"values": values}
            output: Values = library.Series(name=name, **series, **index)
        else:
            names = {"columns": columns} if kind == "pandas" else {"schema": list(columns)}
            output = library.DataFrame(values, **names, **index)
        return output

    # --- columns, as scikit-learn checks them -------------------------------------------------

    def _open(self, X: object, keep: Sequence[str] = ()) -> Reader:
        if not hasattr(self, "plan_"):  # checking every attribute takes as long as encoding a row
            check_fitted(self)
        texts = self.plan_.schema.categorical_names
        X = with_absent_keys(X, getattr(self, "feature_names_in_", ()))
        reader = as_reader(X, text_columns=texts.union(keep), kept=self.reading_.layout)
        reading = self.reading_.updated(reader.reading)
        features = self.plan_.schema.names
        kept = [*map(fold, keep)]  # like the reader's names
        reader = with_derived(reader, reading, features, kept)
        names = reader.names or ()
        if lacking := [name for name in keep if fold(name) not in names]:
            raise DataError(
                f"keep={lacking}: {reader.source} has no such column: name some of {list(names)}"
            )
        self._check_columns(reader, X, kept)
        return open_rows(reader, self.plan_.schema, self.reading_, keep)

    def _set_columns(self, schema: Schema) -> None:
        self.n_features_in_ = len(schema.of_rows)
        if schema.named:
            self.feature_names_in_ = np.array(schema.of_rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, reader: Reader, X: object, keep: Sequence[str]) -> None:
        """Compare columns with those of fit, with scikit-learn's messages; for pandas, in order."""
        mine = type(self).__name__
        fitted = getattr(self, "feature_names_in_", None)
        if (fitted is None) != (reader.names is None):
            have, had = "does not have valid", "with"
            if fitted is None:
                have, had = "has", "without"
            words = f"X {have} feature names, but {mine} was fitted {had} feature names"
            warnings.warn(words, stacklevel=4)
        elif fitted is not None:
            fitted = [*map(fold, fitted)]  # names of an older model may not be folded
            seen, kept = {*fitted}, {*map(fold, (*reader.keep, *keep))}
            names = [n for n in reader.names or () if n in seen or n not in kept]
            used = [name for name in names if name in seen]
            if len(used) < len(seen) or (is_pandas(X) and used != fitted):
                raise DataError(_names_message(seen, set(names)))
            known = seen | self.reading_.dropped
            if further := [name for name in names if name not in known]:
                words = f"columns {further} were not seen in fit and are ignored"
                warnings.warn(words, stacklevel=4)
            return
        if reader.n_columns != self.n_features_in_:
            raise DataError(
                f"X has {reader.n_columns} features, but {mine} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def __sklearn_tags__(self) -> Any:
        import_sklearn()  # from which super() has it
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        tags.input_tags.sparse = tags.input_tags.string = True
        return tags

    # --- verdicts --------------------------------------------------------------------------------

    def learn(self, X: object, y: ArrayLike) -> Self:
        """Learn from verdicts on rows: rows similar to confirmed outliers score lower afterwards.

        Rows are counted with the model's hash functions, separately by verdict. A cell with more
        confirmed outliers than its share of all rows predicts scores lower, and a cell with more
        fine rows scores higher: see `hushtable.counts.verdicts`. Verdicts add up: several calls
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
            If its scores do not take verdicts (those of `HushTable` and `LSHiTables` do).

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
        check_fitted(self)
        return self.learn_from(Verdicts.of_rows(self.plan_, self._open(X), y))

    def learn_from(self, verdicts: Verdicts) -> Self:
        """Learn from counts of verdicts, such as those of another detector.

        Parameters
        ----------
        verdicts : Verdicts
            Exact verdicts under the plan of this model, which are added.

        Raises
        ------
        PlanError
            If they belong to another model.
        """
        check_fitted(self)
        mine = self.verdicts_ if hasattr(self, "verdicts_") else None
        return self._learned(verdicts if mine is None else mine + verdicts)

    def forget(self, X: object = None, y: ArrayLike | None = None) -> Self:
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
        if X is None and y is None:
            return self._learned(None)
        if X is None or y is None:
            raise UsageError(
                "forget was given one of X and y: it needs both, or neither to forget all verdicts"
            )
        gone = Verdicts.of_rows(self.plan_, self._open(X), y)
        if not hasattr(self, "verdicts_"):
            raise UsageError("this detector has learned no verdicts: there is nothing to forget")
        left = self.verdicts_ - gone
        return self._learned(left if left.n_rows else None)

    def _learned(self, verdicts: Verdicts | None) -> Self:
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

    def review(self, X: object, keep: Sequence[str] = ()) -> DetectorReview:
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
            last answer; ``found()`` returns how many rows were judged, and with which answers.

        Raises
        ------
        DataError
            If there are no rows, or the columns do not fit.
        UsageError
            If the detector's scores do not take verdicts.

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
        review = Review(self._scorer, reader, keep=keep, usual=usual, n_jobs=self.n_jobs)
        return DetectorReview(review, lambda: getattr(self, "verdicts_", None), self._learned)

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to a .hush file, atomically: the whole file or nothing."""
        files.write(path, "detector", *self._entries())

    def _entries(self) -> files.Part:
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
        stated = content.said(cls.__name__, {"parameters": dict}, optional)
        parameters, offset = stated["parameters"], stated.get("offset")
        # A later version may have more parameters.
        if not set(parameters) <= set(cls._get_param_names()):
            raise PlanError(f"not the parameters of a {cls.__name__}")
        self = cls.from_counts(counts_from_file(content))
        self.set_params(**parameters)
        self._usual = Usual.from_file(content, self.plan_.schema)
        self.offset_ = float("nan") if offset is None else float(offset)
        self.reading_ = Reading.from_dict(stated.get("reading", {}))
        return self


join_sklearn(TableDetector)
fill_docs(TableDetector, SHARED)


def _some(rows: Floats, reader: Reader) -> Floats:
    if len(rows) == 0:
        raise no_rows(reader)
    return rows


def _in_order(scores: Floats, weights: Weights | None, places: list[int]) -> Floats:
    """Return the scores at some positions, from 0, of all rows in the order of their scores."""
    if weights is None:
        return np.asarray(np.partition(scores, places)[places], np.float64)
    order = np.argsort(scores)
    rows = np.searchsorted(np.cumsum(weights[order]), places, side="right")
    return np.asarray(scores[order[rows]], np.float64)
