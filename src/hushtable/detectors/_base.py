"""What every detector does alike: draw a plan, count, score, draw the line, save."""

import os
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hushtable import files
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError
from hushtable.explain import Explainer
from hushtable.infer import schema_from_data
from hushtable.plan import Plan
from hushtable.privacy.local import LocalModel
from hushtable.privacy.release import Release
from hushtable.readers import Reader, as_reader, no_rows
from hushtable.schema import Schema
from hushtable.scorer import Scorer
from hushtable.sketch import Sketch, counts_from_file
from hushtable.weights import whole_weights

__all__ = ["TableDetector"]

Floats = NDArray[np.float64]


class TableDetector(OutlierMixin, BaseEstimator, ABC):
    """A detector that scores rows by merged tables of counts.

    A subclass names its recipe and says how it draws its plan and counts its rows.
    """

    _recipe: ClassVar[str]

    # Parameters that every subclass stores in __init__.
    contamination: str | float
    n_jobs: int | None
    random_state: Any

    # --- fitting ------------------------------------------------------------------------------

    @abstractmethod
    def _draw_plan(self, schema: Schema, reader: Reader, weights: Any, n_rows: int) -> Plan:
        """Draw the hash functions for rows of this schema."""

    def _sketch(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        return Sketch.from_data(plan, reader, sample_weight=weights, n_jobs=self.n_jobs)

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        reader = as_reader(X).repeatable()
        self._check_contamination()
        weights = whole_weights(sample_weight, reader)
        schema, n_rows = schema_from_data(reader, weights, self.n_jobs)
        if n_rows < 2:
            raise DataError(
                f"{reader.source} has 1 sample (row): n_samples = 1 leaves nothing to compare "
                "with; needs at least 2"
            )
        self._rng = _generator(self.random_state)
        plan = self._draw_plan(schema, reader, weights, n_rows)
        sketch = self._sketch(plan, reader, weights)
        self._set_columns(schema)
        return self._finish(sketch, reader, weights)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to the counts; the first call draws the plan.

        Ranges, cuts and categories are those of the first rows seen; later values outside are
        clipped or count as unseen (``sketch_.outside()`` says how many).

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as `fit` takes them.
        y : None
            Not used.

        Returns
        -------
        self
        """
        if not hasattr(self, "sketch_"):
            return self._fit(X, None)
        reader = as_reader(X, text_columns=self.plan_.schema.categorical_names).repeatable()
        self._check_contamination()
        self._check_columns(reader)
        if isinstance(self.sketch_, Release):
            raise PrivacyError(
                "this detector was made from a release, which exact counts of more rows cannot be "
                "added to: release the new rows' sketch, and make a detector of both releases"
            )
        if not hasattr(self, "_rng"):
            self._rng = _generator(self.random_state)
        return self._finish(self.sketch_ + self._sketch(self.plan_, reader, None), reader, None)

    @classmethod
    def from_counts(
        cls, sketch: Sketch | Release | LocalModel, *, n_jobs: int | None = None
    ) -> Self:
        """Make a fitted detector of merged counts.

        Its `offset_` follows from the counts (``contamination="auto"``); `set_threshold` moves
        it to a share of given rows. Where the noise of a release leaves no threshold to be
        told from the counts, `offset_` is NaN, and `set_threshold` is needed before `predict`.

        Parameters
        ----------
        sketch : Sketch, Release or LocalModel
            The sum of the sites' sketches or releases, under a plan of this detector.
        n_jobs : int, optional
            Threads for scoring; None is one, -1 every core.

        Returns
        -------
        detector

        Raises
        ------
        PlanError
            If the plan is another detector's.
        UsageError
            If no row was counted.
        """
        if sketch.plan.detector != cls._recipe:
            raise PlanError(
                f"these counts are of a {sketch.plan.detector!r} plan, {cls.__name__} needs "
                f"{cls._recipe!r}: use the detector that drew the plan"
            )
        self = cls(**cls._parameters_of(sketch.plan), n_jobs=n_jobs)
        self._set_columns(sketch.plan.schema)
        return self._finish(sketch, None, None)

    @classmethod
    def _parameters_of(cls, plan: Plan) -> dict[str, Any]:
        """Return the constructor parameters that a plan shows."""
        return {"n_tables": plan.family.n_tables}

    def _finish(
        self, sketch: Sketch | Release | LocalModel, reader: Reader | None, weights: Any
    ) -> Self:
        self.plan_, self.sketch_ = sketch.plan, sketch
        self._scorer = Scorer(sketch)
        if self.contamination == "auto" or reader is None:
            self.offset_ = self._scorer.auto_offset()
        else:
            self.set_threshold(reader, self.contamination, sample_weight=weights)
        return self

    def set_threshold(
        self, X: Any, contamination: str | float, *, sample_weight: Any = None
    ) -> Self:
        """Set `offset_` such that the given share of these rows are outliers.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows.
        contamination : float in (0, 0.5]
            Share of the rows.
        sample_weight : array-like of shape (n,), optional
            Whole numbers; a row of weight w counts as w rows.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        share = _share(contamination)
        reader = as_reader(X, text_columns=self.plan_.schema.categorical_names).repeatable()
        weights = whole_weights(sample_weight, reader)
        scores = self._scorer.score(reader, n_jobs=self.n_jobs)
        if weights is not None:
            scores = np.repeat(scores, weights)
        if len(scores) == 0:
            raise no_rows(reader)
        self.offset_ = float(np.percentile(scores, 100.0 * share))
        return self

    def _check_contamination(self) -> None:
        if self.contamination != "auto":
            _share(self.contamination)

    # --- scoring ------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Floats:
        """Return the outlier score of each row: the mean of its cells' scores, in bits.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
            Low is abnormal.
        """
        reader = self._open(X)
        scores = self._scorer.score(reader, n_jobs=self.n_jobs)
        if len(scores) == 0:
            raise no_rows(reader)
        return scores

    def decision_function(self, X: Any) -> Floats:
        """Return `score_samples` minus `offset_`: negative is an outlier.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        check_is_fitted(self)
        if np.isnan(self.offset_):
            raise UsageError(
                "the noise in the released counts leaves no threshold to be told from them: set "
                "one on your own rows, set_threshold(X, 0.05), or use score_samples"
            )
        scores: Floats = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), int64
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    # --- reasons ------------------------------------------------------------------------------

    def explain(self, X: Any) -> Floats:
        """Return each feature's share of what a row's score falls short of a typical score.

        A row's shares add up to the mean score of the counted rows minus the row's own. They
        follow from the counts alone, so that they work on merged and on released counts.
        `HushTable` and `LSHiTables` only.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n, n_features), float64
            In bits; the highest shares are the reasons why a row is an outlier.

        Raises
        ------
        UsageError
            If the detector's tables do not tell features apart.
        """
        reader = self._open(X)
        shares = Explainer(self._scorer).explain(reader, n_jobs=self.n_jobs)
        if len(shares) == 0:
            raise no_rows(reader)
        return shares

    def importances(self, X: Any) -> Floats:
        """Return the mean size of each feature's share, abs(`explain`), over these rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`. Of all rows: which features move the scores.
            Of outliers only: which features make them outliers.

        Returns
        -------
        ndarray of shape (n_features,), float64
            In bits. `HushTable` and `LSHiTables` only.

        Raises
        ------
        UsageError
            If the detector's tables do not tell features apart.
        """
        reader = self._open(X)
        sizes = Explainer(self._scorer).importances(reader, n_jobs=self.n_jobs)
        if np.isnan(sizes).any():
            raise no_rows(reader)
        return sizes

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to a .hush file, atomically.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced only by a complete new one.
        """
        check_is_fitted(self)
        parameters = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        if not isinstance(parameters["random_state"], int | None):
            parameters["random_state"] = None  # a generator's state is not part of the model
        entries, arrays = self.sketch_.entries()
        entries |= {
            "detector": type(self).__name__,
            "parameters": parameters,
            "offset": None if np.isnan(self.offset_) else self.offset_,  # JSON knows no NaN
        }
        files.write(path, "detector", entries, arrays)

    @classmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the detector that a file carries; raises `PlanError` if it does not fit."""
        parameters, offset = content.manifest.get("parameters"), content.manifest.get("offset")
        if (
            not isinstance(parameters, dict)
            or set(parameters) != set(cls._get_param_names())
            or isinstance(offset, bool)
            or not isinstance(offset, int | float | None)
        ):
            raise PlanError(f"not the content of a {cls.__name__}")
        self = cls.from_counts(counts_from_file(content))
        self.set_params(**parameters)
        self.offset_ = float("nan") if offset is None else float(offset)
        return self

    # --- columns, as scikit-learn checks them -------------------------------------------------

    def _open(self, X: Any) -> Reader:
        check_is_fitted(self)
        reader = as_reader(X, text_columns=self.plan_.schema.categorical_names)
        self._check_columns(reader)
        return reader

    def _set_columns(self, schema: Schema) -> None:
        self.n_features_in_ = len(schema)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, reader: Reader) -> None:
        """Compare columns with those of fit, in scikit-learn's words."""
        mine = type(self).__name__
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None and reader.names is not None:
            warnings.warn(
                f"X has feature names, but {mine} was fitted without feature names", stacklevel=4
            )
        elif fitted is not None and reader.names is None:
            warnings.warn(
                f"X does not have valid feature names, but {mine} was fitted with feature names",
                stacklevel=4,
            )
        elif fitted is not None and reader.names != tuple(fitted):
            raise DataError(_names_message(set(fitted), set(reader.names or ())))
        if reader.n_columns != self.n_features_in_:
            raise DataError(
                f"X has {reader.n_columns} features, but {mine} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _names_message(fitted: set[str], given: set[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in (
        ("Feature names unseen at fit time:", sorted(given - fitted)),
        ("Feature names seen at fit time, yet now missing:", sorted(fitted - given)),
    ):
        if names:
            shown = [*names[:5], *(["..."] if len(names) > 5 else [])]
            message += title + "\n" + "".join(f"- {name}\n" for name in shown)
    if fitted == given:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def _share(contamination: Any) -> float:
    if (
        isinstance(contamination, bool)
        or not isinstance(contamination, int | float | np.number)
        or not 0.0 < contamination <= 0.5
    ):
        raise UsageError(
            f"contamination={contamination!r}: needs 'auto', or a share above 0 and at most 0.5"
        )
    return float(contamination)


def _generator(random_state: Any) -> np.random.Generator:
    """Return the generator of hash functions and samples that ``random_state`` means."""
    if random_state is None or isinstance(random_state, int | np.integer | np.random.Generator):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
