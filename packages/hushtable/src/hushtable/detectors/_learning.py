"""Learn from verdicts: rows that somebody confirmed as outliers, or found fine."""

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hushtable.counts.base import Counts
from hushtable.counts.learned import LearnedModel
from hushtable.counts.verdicts import Verdicts
from hushtable.detectors._fitted import FittedTables
from hushtable.errors import UsageError
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Usual


class Learning(FittedTables):
    """Changes the scores of a fitted detector by verdicts on rows.

    ``verdicts_`` are those learned so far; there are none without it.
    """

    verdicts_: Counts

    def learn(self, X: Any, y: ArrayLike) -> Self:
        """Learn from verdicts on rows: what is like confirmed outliers scores lower.

        Rows are counted under the model's hash functions, by verdict. A cell that holds more
        confirmed outliers than its share of all rows would bring scores lower, and one that holds
        more rows that are fine, higher: see `hushtable.plans.verdicts`. Verdicts add up: in
        several calls, they give the same scores as in one. They are saved with the detector,
        whose file is then as confidential as the rows are.

        `offset_` follows where it came from the counts (``contamination="auto"``); one that was
        set on rows is kept. Ranks are forgotten: call `set_ranks` again.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows that somebody has looked at, with the columns seen in `fit`; the model may have
            counted them, or not.
        y : array-like of shape (n,)
            The verdicts: 1 for an outlier, 0 for a row that is fine.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If a verdict is neither, or there is not one for each row.
        UsageError
            If the detector learned from a release, in which these verdicts may be already; or of
            detectors whose scores do not take verdicts (`HushTable`'s and `LSHiTables`' do).

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
        """Learn from counts of verdicts: from another's, exactly, or from those of all sites.

        Parameters
        ----------
        verdicts : Verdicts, Release or LocalModel
            Exact verdicts under the plan of this model, which are added; or a merged release, or
            local model, under ``Plan.verdicts`` of it, which takes the place of all others.

        Returns
        -------
        self

        Raises
        ------
        PlanError
            If they are of another model.
        """
        check_is_fitted(self)
        if not isinstance(verdicts, Verdicts):
            return self._learned(verdicts)
        own = self._own_verdicts()
        return self._learned(verdicts if own is None else own + verdicts)

    def forget(self, X: Any = None, y: ArrayLike | None = None) -> Self:
        """Forget verdicts: those given, or all. Scores are then as if they had not been learned.

        Parameters
        ----------
        X : array, data frame, Arrow object or path, optional
            Rows whose verdicts were learned. None forgets all.
        y : array-like of shape (n,), optional
            Their verdicts, as they were learned.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If they were not learned.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise UsageError("forget needs both rows and their verdicts, or neither (for all)")
        if X is None:
            return self._learned(None)
        gone, own = self._judged(X, y), self._own_verdicts()
        if own is None:
            raise UsageError("this detector has learned no verdicts: there is nothing to forget")
        left = own - gone
        return self._learned(left if left.n_rows else None)

    def _judged(self, X: Any, y: Any) -> Verdicts:
        check_is_fitted(self)
        return Verdicts.of_rows(self.plan_, self._open(X), y)

    def _own_verdicts(self) -> Verdicts | None:
        """Return the exact verdicts so far; raises `UsageError` if there are noised ones."""
        found = getattr(self, "verdicts_", None)
        if found is None or isinstance(found, Verdicts):
            return found
        raise UsageError(
            "this detector learned from a release of all sites' verdicts, in which own ones would "
            "count twice: forget() it first, or learn from the local model of the round"
        )

    def _learned(self, verdicts: Counts | None) -> Self:
        """Score by other verdicts from now on."""
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
            del self._ranks  # of other scores
        if isinstance(self._usual, Usual):
            self._usual = self._usual.without_scores()
        return self
