"""PyOD's convention over any detector here."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hushtable.detectors._checks import AnyColumns, share_of_rows
from hushtable.detectors._hushtable import HushTable


class PyODAdapter(AnyColumns):
    """A detector in PyOD's convention: high scores and label 1 are outliers.

    Parameters
    ----------
    detector : estimator, default=HushTable()
        The detector to adapt; it is cloned.
    contamination : float in (0, 0.5], default=0.1
        Share of the training rows that `labels_` marks.

    Attributes
    ----------
    detector_ : estimator
        The fitted clone.
    decision_scores_ : ndarray of shape (n,), float64
        Scores of the training rows; high is abnormal.
    threshold_ : float
        Score above which a row is an outlier.
    labels_ : ndarray of shape (n,), int64
        1 for outliers among the training rows, else 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable, PyODAdapter
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = PyODAdapter(HushTable(random_state=0), contamination=0.05).fit(X)
    >>> int(detector.decision_scores_.argmax()), int(detector.labels_.sum())
    (0, 50)
    """

    def __init__(self, detector: Any = None, *, contamination: float = 0.1) -> None:
        self.detector = detector
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector and score its training rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as the detector takes them.
        y : None
            Not used.

        Returns
        -------
        self
        """
        share = share_of_rows(self.contamination)
        self.detector_ = clone(HushTable() if self.detector is None else self.detector).fit(X)
        self.n_features_in_ = self.detector_.n_features_in_
        if hasattr(self.detector_, "feature_names_in_"):
            self.feature_names_in_ = self.detector_.feature_names_in_
        self.decision_scores_ = -self.detector_.score_samples(X)
        self.threshold_ = float(np.percentile(self.decision_scores_, 100.0 * (1.0 - share)))
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(np.int64)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row, in bits; high is abnormal.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        check_is_fitted(self)
        scores: NDArray[np.float64] = -self.detector_.score_samples(X)
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for outliers and 0 for inliers.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), int64
        """
        return (self.decision_function(X) > self.threshold_).astype(np.int64)
