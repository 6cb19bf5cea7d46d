"""An adapter that gives any of these detectors PyOD's convention."""

import functools
import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from scipy.stats import binom
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import precision_score, roc_auc_score
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from hushtable.arguments import fill_docs
from hushtable.detectors.fitted import SHARED, accept_any_columns, share_of_rows
from hushtable.detectors.hushtable import HushTable
from hushtable.errors import MissingExtraError, UsageError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@functools.cache
def _base_detector() -> Any:
    """Return PyOD's base class, which from then on recognises adapters; None without PyOD."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # caused by PyOD itself
            from pyod.models.base import BaseDetector
    except ImportError:
        return None
    BaseDetector.register(PyODAdapter)
    return BaseDetector


class PyODAdapter(BaseEstimator):
    """A detector in PyOD's convention: high scores and label 1 are outliers.

    If PyOD is installed, an adapter is an instance of its ``BaseDetector``, and the methods here
    return the same results as that class computes from the same scores. All methods except the
    statistics of rejection work without PyOD.

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
    classes_ : ndarray of shape (2,), int64
        0 and 1: the columns of `predict_proba`.

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

    # It has the parameters of __init__ because Python 3.11 reads a class's signature from it.
    def __new__(cls, detector: Any = None, *, contamination: float = 0.1) -> Self:
        """Make an adapter, and register it with PyOD if that is installed."""
        _base_detector()
        made: Self = super().__new__(cls)
        return made

    def __init__(self, detector: Any = None, *, contamination: float = 0.1) -> None:
        self.detector = detector
        self.contamination = contamination

    def __sklearn_tags__(self) -> Any:
        tags = accept_any_columns(super().__sklearn_tags__())
        tags.estimator_type = "outlier_detector"  # as PyOD's own detectors
        # scikit-learn asks every estimator with predict_proba for its number of classes.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector and score its training rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that the detector takes.
        y : None
            Not used.
        """
        share = share_of_rows(self.contamination)
        self.detector_ = clone(HushTable() if self.detector is None else self.detector).fit(X)
        self.n_features_in_ = self.detector_.n_features_in_
        if hasattr(self.detector_, "feature_names_in_"):
            self.feature_names_in_ = self.detector_.feature_names_in_
        self.decision_scores_ = -self.detector_.score_samples(X)
        self.threshold_ = float(np.percentile(self.decision_scores_, 100.0 * (1.0 - share)))
        self.labels_ = self._labels(self.decision_scores_)
        self.classes_ = np.array([0, 1])
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Fit the detector and return the labels of its training rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that the detector takes.
        y : None
            Not used.

        Returns
        -------
        ndarray of shape (n,), int64
            `labels_`: 1 for outliers, else 0.
        """
        self.fit(X)
        return self.labels_

    def fit_predict_score(self, X: Any, y: Any, scoring: str = "roc_auc_score") -> float:
        """Fit the detector, and return how well its scores separate the labelled rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that the detector takes.
        y : array-like of shape (n,)
            1 for an outlier, 0 for a row that is fine.
        scoring : {"roc_auc_score", "prc_n_score"}, default="roc_auc_score"
            The area under the ROC curve; or the share of outliers among as many rows with the
            highest scores as there are outliers (rows of a tied last score are left out).

        Returns
        -------
        float

        Raises
        ------
        UsageError
            If the scoring is unknown.
        """
        if scoring not in ("roc_auc_score", "prc_n_score"):
            raise UsageError(f"scoring={scoring!r}: needs 'roc_auc_score' or 'prc_n_score'")
        found, truth = self.fit(X).decision_scores_, np.asarray(y)
        if scoring == "roc_auc_score":
            return float(roc_auc_score(truth, found))
        n = int(np.count_nonzero(truth))
        threshold = np.percentile(found, 100.0 * (1.0 - n / len(truth)))
        marked = found > threshold
        return float(precision_score(truth, marked))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row, in bits; high is abnormal.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), float64
        """
        check_is_fitted(self)
        scores: NDArray[np.float64] = -self.detector_.score_samples(X)
        return scores

    def predict(self, X: Any, return_confidence: bool = False) -> Labels | tuple[Labels, Floats]:
        """Return 1 for outliers and 0 for inliers.

        Parameters
        ----------
        [rows]
        return_confidence : bool, default=False
            Whether to return `predict_confidence` too.

        Returns
        -------
        labels : ndarray of shape (n,), int64
        confidence : ndarray of shape (n,), float64
            Only with ``return_confidence``.
        """
        scores = self.decision_function(X)
        labels = self._labels(scores)
        return (labels, self._confidence(scores)) if return_confidence else labels

    def predict_proba(
        self,
        X: Any,
        method: Literal["linear", "unify"] = "linear",
        return_confidence: bool = False,
    ) -> Floats | tuple[Floats, Floats]:
        """Return scores as probabilities; they rank rows as scores do, and are not calibrated.

        Parameters
        ----------
        [rows]
        method : {"linear", "unify"}
            ``"linear"``: the position of the score between the lowest and the highest of the
            training rows. ``"unify"``: the error function of the score, in standard deviations
            above their mean (Kriegel et al., 2011).
        return_confidence : bool, default=False
            Whether to return `predict_confidence` too.

        Returns
        -------
        probabilities : ndarray of shape (n, 2), float64
            Of an inlier and of an outlier; each row adds up to 1.
        confidence : ndarray of shape (n,), float64
            Only with ``return_confidence``.

        Raises
        ------
        UsageError
            If the method is unknown.
        """
        if method not in ("linear", "unify"):
            raise UsageError(f"method={method!r}: needs 'linear' or 'unify'")
        scores = self.decision_function(X)
        known = self.decision_scores_
        if method == "linear":
            odd = (scores - known.min()) / (np.ptp(known) or 1.0)
        else:
            odd = erf((scores - known.mean()) / ((known.std() or 1.0) * np.sqrt(2.0)))
        odd = odd.clip(0.0, 1.0)
        both = np.column_stack([1.0 - odd, odd])
        return (both, self._confidence(scores)) if return_confidence else both

    def predict_confidence(self, X: Any) -> Floats:
        """Return how likely each label would stay the same after training on other such rows.

        Parameters
        ----------
        [rows]

        Returns
        -------
        ndarray of shape (n,), float64
            From 0 to 1 (Perini, Vercruyssen and Davis, 2020).
        """
        return self._confidence(self.decision_function(X))

    def predict_with_rejection(
        self,
        X: Any,
        T: float = 32,
        return_stats: bool = False,
        delta: float = 0.1,
        c_fp: float = 1,
        c_fn: float = 1,
        c_r: float = -1,
    ) -> Labels | tuple[Labels, list[float]]:
        """Return 1 for outliers, 0 for inliers and -2 for unreliable labels.

        Parameters
        ----------
        [rows]
        T : float, default=32
            Rejects labels with a confidence up to ``1 - 2 exp(-T)``; a higher T rejects more.
        return_stats : bool, default=False
            Whether to return the result of `compute_rejection_stats` too.
        delta, c_fp, c_fn, c_r : float
            As in `compute_rejection_stats`.

        Returns
        -------
        labels : ndarray of shape (n,), int64
        statistics : list of three floats
            Only with ``return_stats``.
        """
        scores = self.decision_function(X)
        labels, sure = self._labels(scores), self._confidence(scores)
        self.rejection_threshold_ = 1.0 - 2.0 * np.exp(-T)
        labels[2.0 * np.abs(sure - 0.5) <= self.rejection_threshold_] = -2
        if not return_stats:
            return labels
        return labels, list(self.compute_rejection_stats(T, delta, c_fp, c_fn, c_r))

    def compute_rejection_stats(
        self,
        T: float = 32,
        delta: float = 0.1,
        c_fp: float = 1,
        c_fn: float = 1,
        c_r: float = -1,
        verbose: bool = False,
    ) -> tuple[float, float, float]:
        """Return PyOD's rejection statistics: expected rate, bound of rate, and bound of cost.

        Parameters
        ----------
        T : float, default=32
            As in `predict_with_rejection`.
        delta : float, default=0.1
            Probability that the bound of the rate does not hold.
        c_fp, c_fn, c_r : float
            Costs of a false alarm, of a missed outlier, and of a rejection (negative:
            `contamination`).
        verbose : bool, default=False
            Whether to print them too.

        Returns
        -------
        expected_rate, rate_bound, cost_bound : float

        Raises
        ------
        MissingExtraError
            If PyOD is not installed.
        """
        check_is_fitted(self)
        if (base := _base_detector()) is None:
            raise MissingExtraError("the statistics of rejection", "pyod", "bench")
        found: tuple[float, float, float] = base.compute_rejection_stats(
            self, T, delta, c_fp, c_fn, c_r, verbose
        )
        return found

    def _labels(self, scores: Floats) -> Labels:
        return (scores > self.threshold_).astype(np.int64)

    def _confidence(self, scores: Floats) -> Floats:
        n = len(self.decision_scores_)
        below = np.searchsorted(np.sort(self.decision_scores_), scores, side="right")
        outlier = 1.0 - binom.cdf(n - int(n * self.contamination), n, (1 + below) / (2 + n))
        sure: Floats = np.where(scores > self.threshold_, outlier, 1.0 - outlier)
        return sure


fill_docs(PyODAdapter, SHARED)
