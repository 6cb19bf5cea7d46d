"""A detector of hushtable among PyOD's detectors; it needs the extra ``pyod``."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hushtable import HushTable
from hushtable.errors import MissingExtraError

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # caused by PyOD itself
        from pyod.models.base import BaseDetector
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pyod":
        raise
    raise MissingExtraError("PyODAdapter", "PyOD", "pyod") from None

__all__ = ["PyODAdapter"]


class PyODAdapter(BaseDetector):
    """A detector in PyOD's convention: high scores and label 1 are outliers.

    All methods and attributes that are not described here are PyOD's own, such as ``predict``,
    ``predict_proba``, ``predict_confidence``, ``threshold_``, and ``labels_``.

    Parameters
    ----------
    detector : estimator, default=HushTable()
        The detector to adapt; it is cloned.
    contamination : float in (0, 0.5], default=0.1
        Share of the training rows that ``labels_`` marks.

    Attributes
    ----------
    detector_ : estimator
        The fitted clone.
    decision_scores_ : ndarray of shape (n,), float64
        Scores of the training rows; high is abnormal.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> from hushtable_connect.pyod import PyODAdapter
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[0] = 8.0
    >>> detector = PyODAdapter(HushTable(random_state=0), contamination=0.05).fit(X)
    >>> int(detector.decision_scores_.argmax()), int(detector.labels_.sum())
    (0, 50)
    """

    def __init__(self, detector: Any = None, *, contamination: float = 0.1) -> None:
        super().__init__(contamination=contamination)
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector and score its training rows.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that the detector takes.
        y : None
            Not used.
        """
        self.detector_ = clone(HushTable() if self.detector is None else self.detector).fit(X)
        self.decision_scores_ = self.decision_function(X)
        self._set_n_classes(None)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row, in bits; high is abnormal.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that the detector takes.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        scores: NDArray[np.float64] = -self.detector_.score_samples(X)
        return scores
