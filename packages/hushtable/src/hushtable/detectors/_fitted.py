"""Score, rank, flag and explain rows by a fitted detector."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from hushtable.counts.base import Counts, mergeable
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader, as_reader, is_pandas, no_rows
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.data.weights import Weights, whole_weights
from hushtable.detectors._checks import n_outliers, names_message, share_of_rows
from hushtable.detectors._outliers import OutlierLists
from hushtable.errors import DataError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.explain import Explainer
from hushtable.scores.ranks import Ranks
from hushtable.scores.scorer import Scorer

Floats = NDArray[np.float64]


class FittedTables(OutlierLists, OutlierMixin):
    """Scores rows by merged tables of counts.

    A subclass fits: it sets what is declared here.
    """

    n_jobs: int | None
    plan_: Plan
    sketch_: Counts
    offset_: float
    reading_: Reading
    _scorer: Scorer
    _ranks: Ranks

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
        scores: Floats = self._output(self._scores(X), X, "score")
        return scores

    def _scores(self, X: Any) -> Floats:
        reader = self._open(X)
        return _some(self._scorer.score(reader, n_jobs=self.n_jobs), reader)

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
        decisions: Floats = self._output(self._decisions(X), X, "decision")
        return decisions

    def _decisions(self, X: Any) -> Floats:
        check_is_fitted(self)
        if np.isnan(self.offset_):
            raise UsageError(
                "the released counts are too noisy to derive a threshold: set one on your own "
                "rows, set_threshold(X, 0.05), or use score_samples"
            )
        return self._scores(X) - self.offset_

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
        labels = np.where(self._decisions(X) < 0, -1, 1)
        found: NDArray[np.int64] = self._output(labels, X, "label")
        return found

    # --- the threshold, and ranks -----------------------------------------------------------------

    def set_threshold(
        self, X: Any, contamination: float | int, *, sample_weight: Any = None
    ) -> Self:
        """Set `offset_` such that the given share of these rows, or number of them, are outliers.

        A score can be set as it is: ``detector.offset_ = 7.5``.

        Parameters
        ----------
        X : array, data frame, Arrow object or path; or Sketch or Release
            Rows; or merged counts under ``Plan.ranks``, which stand for the rows of all sites:
            the threshold is then the same at every site.
        contamination : float in (0, 0.5], or int
            Share of the rows; or how many rows, at most (rows of equal scores are flagged
            together, or not at all).
        sample_weight : array-like of shape (n,), optional
            Whole numbers; a row of weight w counts as w rows.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if (counts := mergeable(X)) is not None:
            n_rows = max(1, counts.n_rows)
            share = n_outliers(contamination, n_rows) / n_rows
            self.offset_ = Ranks(counts, self._scorer).threshold(share)
            return self
        reader = self._open(X).repeatable()
        weights = whole_weights(sample_weight, reader)
        scores = _some(self._scorer.score(reader, n_jobs=self.n_jobs), reader)
        n_rows = len(scores) if weights is None else int(weights.sum())
        if isinstance(contamination, int | np.integer):
            most = int(n_outliers(contamination, n_rows))
            self.offset_ = float(_in_order(scores, weights, [most])[0])
        else:
            share = share_of_rows(contamination)
            if weights is not None:  # between the two rows around the place
                place = share * (n_rows - 1)
                share = place - math.floor(place)
                scores = _in_order(scores, weights, [math.floor(place), math.ceil(place)])
            self.offset_ = float(np.percentile(scores, 100.0 * share))
        return self

    def set_ranks(self, X: Any) -> Self:
        """Set the rows that `rank_samples` ranks others among.

        Parameters
        ----------
        X : array, data frame, Arrow object or path; or Sketch or Release
            Rows; or merged counts under ``Plan.ranks``, which stand for the rows of all sites.
            `save` leaves them out: counts are saved by themselves.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        counts = mergeable(X)
        if counts is None:
            if not self.sketch_.adds:
                raise UsageError(f"{self.sketch_.noun} has no ranks: use the released model")
            counts = Sketch.from_data(Plan.ranks(self._scorer.sketch), X, n_jobs=self.n_jobs)
        self._ranks = Ranks(counts, self._scorer)
        return self

    def standard_errors(self, X: Any) -> Floats:
        """Return how far each row's score may be from what more tables would give.

        One standard error, over the draw of the hash functions and of the noise in released
        counts. Two rows whose scores differ by less may well change places under another
        ``random_state``. See `docs/scores.md` for how it is worked out, and how well it holds.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
            In the unit of the scores.
        """
        return self._with_errors(X)[1]

    def rank_samples(
        self, X: Any, *, return_interval: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the share of the rows of `set_ranks` that are at least as rare as each row.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.
        return_interval : bool, default=False
            Whether to return, too, between which ranks the row's lies, 19 times of 20, under
            other draws of the hash functions and of the noise.

        Returns
        -------
        ranks : ndarray of shape (n,), float64
            From 0 to 1; low is abnormal. 0.001: one row of a thousand is as rare, or rarer.
        interval : ndarray of shape (n, 2), float64
            Only with ``return_interval``.

        Raises
        ------
        UsageError
            If `set_ranks` was not called for this model.
        """
        check_is_fitted(self)
        if not hasattr(self, "_ranks"):
            raise UsageError(
                "nothing is known of the rows to rank among: call set_ranks first, with rows or "
                "with merged counts under Plan.ranks"
            )
        if not return_interval:
            return self._ranks.of(self._scores(X))
        scores, errors = self._with_errors(X)
        return self._ranks.of(scores), self._ranks.between(scores, errors)

    def _with_errors(self, X: Any) -> tuple[Floats, Floats]:
        reader = self._open(X)
        scores, errors = self._scorer.score_with_errors(reader, n_jobs=self.n_jobs)
        return _some(scores, reader), errors

    # --- reasons ------------------------------------------------------------------------------

    def explain(self, X: Any) -> Floats:
        """Return how much each feature contributes to the gap between a typical score and a row's.

        A row's contributions add up to the mean score of the counted rows minus the row's own.
        They follow from the counts alone, so that they work on merged and on released counts.
        `HushTable` and `LSHiTables` only.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n, n_features), float64
            In bits; the highest are the reasons why a row is an outlier.

        Raises
        ------
        UsageError
            If the tables of the detector do not separate the features.
        """
        reader = self._open(X)
        shares = _some(Explainer(self._scorer).explain(reader, n_jobs=self.n_jobs), reader)
        found: Floats = self._output(shares, X, "", self.plan_.schema.names)
        return found

    def importances(self, X: Any) -> Floats:
        """Return the mean size of each feature's contribution, abs(`explain`), over these rows.

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
            If the tables of the detector do not separate the features.
        """
        reader = self._open(X)
        sizes = Explainer(self._scorer).importances(reader, n_jobs=self.n_jobs)
        if np.isnan(sizes).any():
            raise no_rows(reader)
        return sizes

    # --- columns, as scikit-learn checks them -------------------------------------------------

    def _open(self, X: Any, keep: Sequence[str] = ()) -> Reader:
        """Open rows with the columns seen in `fit`, and others that are kept as they are."""
        if not hasattr(self, "plan_"):  # a look at every attribute takes as long as to encode a row
            check_is_fitted(self)
        texts = self.plan_.schema.categorical_names
        reader = as_reader(X, text_columns=texts.union(keep), kept=self.reading_.layout)
        names = reader.names or ()
        if lacking := [name for name in keep if name not in names]:
            raise DataError(f"keep: {reader.source} has no column {lacking}: it has {list(names)}")
        self._check_columns(reader, X, keep)
        return open_rows(reader, self.plan_.schema, self.reading_, keep)

    def _set_columns(self, schema: Schema) -> None:
        self.n_features_in_ = len(schema)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, reader: Reader, X: Any, keep: Sequence[str]) -> None:
        """Compare columns with those of fit, in scikit-learn's words; pandas' in order too."""
        mine = type(self).__name__
        fitted = getattr(self, "feature_names_in_", None)
        if (fitted is None) != (reader.names is None):
            have, had = "does not have valid", "with"
            if fitted is None:
                have, had = "has", "without"
            words = f"X {have} feature names, but {mine} was fitted {had} feature names"
            warnings.warn(words, stacklevel=4)
        elif fitted is not None:
            seen, kept = {*fitted}, {*reader.keep, *keep}
            names = [n for n in reader.names or () if n in seen or n not in kept]
            used = [name for name in names if name in seen]
            if len(used) < len(seen) or (is_pandas(X) and used != list(fitted)):
                raise DataError(names_message(seen, set(names)))
            known = seen | self.reading_.dropped
            if further := [name for name in names if name not in known]:
                warnings.warn(f"columns {further} were not seen in fit: left out", stacklevel=4)
            return
        if reader.n_columns != self.n_features_in_:
            raise DataError(
                f"X has {reader.n_columns} features, but {mine} is expecting "
                f"{self.n_features_in_} features as input"
            )


def _some(found: Floats, reader: Reader) -> Floats:
    """Return what was found of rows; raises `DataError` if there were none."""
    if len(found) == 0:
        raise no_rows(reader)
    return found


def _in_order(scores: Floats, weights: Weights | None, places: list[int]) -> Floats:
    """Return the scores at some places, from 0, if all rows stood in order of their scores."""
    if weights is None:
        return np.asarray(np.partition(scores, places)[places], np.float64)
    order = np.argsort(scores)
    rows = np.searchsorted(np.cumsum(weights[order]), places, side="right")
    return np.asarray(scores[order[rows]], np.float64)
