"""What every detector does alike: draw a plan, count, draw the line, save."""

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hushtable import files
from hushtable.arguments import generator
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch, counts_from_file
from hushtable.data.infer import schema_from_data
from hushtable.data.readers import Reader, as_reader
from hushtable.data.schema import Schema
from hushtable.data.weights import whole_weights
from hushtable.detectors._checks import share_of_rows
from hushtable.detectors._fitted import FittedTables
from hushtable.errors import DataError, PlanError, PrivacyError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

__all__ = ["TableDetector"]

Floats = NDArray[np.float64]


class TableDetector(FittedTables, BaseEstimator, ABC):
    """A detector that counts rows into tables.

    A subclass names its draw and says how it draws its plan and counts its rows.
    """

    _detector: ClassVar[str]

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
        self._rng = generator(self.random_state)
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
            self._rng = generator(self.random_state)
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
        if sketch.plan.detector != cls._detector:
            raise PlanError(
                f"these counts are of a {sketch.plan.detector!r} plan, {cls.__name__} needs "
                f"{cls._detector!r}: use the detector that drew the plan"
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
        if hasattr(self, "_ranks"):
            del self._ranks  # of the counts before
        if isinstance(self.contamination, str) or reader is None:
            self.offset_ = self._scorer.auto_offset()
        else:
            self.set_threshold(reader, self.contamination, sample_weight=weights)
        return self

    def _check_contamination(self) -> None:
        if self.contamination != "auto":
            share_of_rows(self.contamination)

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
        # A generator's state is not part of the model, nor a seed that JSON has no number for.
        seed = parameters["random_state"]
        parameters["random_state"] = seed if isinstance(seed, int) and seed < 2**53 else None
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
