"""Steps that every baseline takes alike: check the rows, score them in blocks, draw the line."""

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hushtable.errors import UsageError
from hushtable.threads import for_each, n_threads

Floats = NDArray[np.float64]


class Baseline(OutlierMixin, BaseEstimator, ABC):
    """A detector over numeric arrays. A subclass fits to rows, and scores rows."""

    # Parameters that every subclass stores in __init__.
    contamination: float
    n_jobs: int | None
    random_state: Any
    offset_: float

    #: Rows that are scored at a time.
    _rows = 16_384

    @abstractmethod
    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
        """Learn from the rows; whatever is drawn comes from ``rng``."""

    @abstractmethod
    def _score(self, rows: Floats) -> Floats:
        """Return a score for each of some rows; low is abnormal."""

    def _scores(self, X: Floats) -> Floats:
        scores = np.empty(len(X))

        def fill(start: int) -> None:
            here = slice(start, start + self._rows)
            scores[here] = self._score(X[here])

        for_each(fill, [range(0, len(X), self._rows)], n_threads(self.n_jobs))
        return scores

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows of finite numbers.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If a parameter is out of range.
        ValueError
            If the rows are not finite numbers, or fewer than 2.
        """
        share = self.contamination
        if isinstance(share, bool) or not isinstance(share, Real) or not 0.0 < share <= 0.5:
            raise UsageError(f"contamination={share!r}: needs a share above 0 and at most 0.5")
        n_threads(self.n_jobs)
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        state = check_random_state(self.random_state)
        self._fit(X, np.random.default_rng(state.randint(2**31, size=4)))
        self.scores_ = self._scores(X)
        self.offset_ = float(np.percentile(self.scores_, 100.0 * float(share)))
        return self

    def score_samples(self, X: Any) -> Floats:
        """Return the score of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
            Low is abnormal.
        """
        check_is_fitted(self)
        return self._scores(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def decision_function(self, X: Any) -> Floats:
        """Return `score_samples` minus `offset_`: negative is an outlier.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        scores: Floats = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), int64
        """
        return np.where(self.decision_function(X) < 0, -1, 1)
