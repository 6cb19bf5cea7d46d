"""Reviews in Python: rows to look at, one after the other, from which a detector learns at once."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from hushtable.counts.base import Counts
from hushtable.counts.verdicts import Verdicts
from hushtable.detectors._learning import Learning
from hushtable.display import html
from hushtable.errors import UsageError
from hushtable.scores.review import FINE, OUTLIER, SKIP, Review, ReviewRow


class Reviewing(Learning):
    """Shows the rows that score lowest, for somebody to judge."""

    def review(self, X: Any, keep: Sequence[str] = ()) -> "DetectorReview":
        """Show rows, the lowest score first, and learn from each answer at once.

        All rows are scored once. After each answer, the 20,000 lowest are scored again, in a few
        milliseconds; the others when the review's ``rescan()`` is called.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`, and those to ``keep``.
        keep : sequence of str, optional
            Columns that are shown beside: features, or others such as an identifier.

        Returns
        -------
        DetectorReview
            Iterate over it, or call its methods: ``row`` is the row to look at; ``outlier()``,
            ``fine()`` and ``skip()`` answer, and return the next row; ``undo()`` takes the last
            answer back; ``list_of(10)`` are low rows that are unlike each other; ``found()``
            says how many were looked at, and what they were.

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
        check_is_fitted(self)
        if isinstance(keep, str):
            raise UsageError(f"keep={keep!r}: needs a list of columns, such as [{keep!r}]")
        reader, usual = self._open(X, keep), self._usual_values()
        found = Review(self._scorer, reader, keep=keep, usual=usual, n_jobs=self.n_jobs)
        return DetectorReview(self, found)


class DetectorReview:
    """A review of rows by a detector, which learns from each answer.

    Attributes
    ----------
    row : ReviewRow or None
        The row to look at: ``row.row`` is its number, ``row.words`` why it is here, and
        ``row.to_dict()`` has its values. None if no row is left.
    """

    def __init__(self, detector: Learning, review: Review) -> None:
        self._detector, self._review = detector, review
        self._known = self._learned()
        self.row: ReviewRow | None = review.next()

    def __iter__(self) -> Iterator[ReviewRow]:
        """Yield the rows to look at; one that the loop does not answer is skipped."""
        while (row := self.row) is not None:
            yield row
            if self.row is row:
                self.skip()

    def outlier(self, note: str = "") -> ReviewRow | None:
        """Say that the row is an outlier; return the next."""
        return self._answer(OUTLIER, note)

    def fine(self, note: str = "") -> ReviewRow | None:
        """Say that the row is fine; return the next."""
        return self._answer(FINE, note)

    def skip(self) -> ReviewRow | None:
        """Give no verdict on the row; return the next."""
        return self._answer(SKIP)

    def undo(self) -> ReviewRow | None:
        """Take the last answer back; return the row to look at."""
        self._check()
        if self._review.undo() is None:
            raise UsageError("there is no answer to take back")
        return self._go_on()

    def rescan(self) -> ReviewRow | None:
        """Score all rows again, by all verdicts so far; return the row to look at."""
        self._review.rescan()
        self.row = self._review.next()
        return self.row

    def list_of(self, n: int = 10) -> list[ReviewRow]:
        """Return the lowest rows without an answer that are unlike each other, for a team."""
        return self._review.list_of(n)

    def choose(self, row: ReviewRow) -> Self:
        """Take a row, such as one of a list, as the one to answer."""
        self.row = self._review.of_row(row.row)
        return self

    def found(self) -> dict[str, int]:
        """Return what was looked at: verdicts, outliers, rows that are fine, skipped.

        ``by_score_alone`` are the confirmed outliers among as many rows of the lowest scores
        without verdicts.
        """
        return self._review.found()

    def answered(self) -> dict[int, str]:
        """Return the last answer to each row, by its number: "outlier", "fine" or "skip"."""
        return {row: answer.verdict for row, answer in self._review.last().items()}

    @property
    def verdicts(self) -> Verdicts:
        """All verdicts that the detector has learned."""
        return self._review.verdicts

    def _answer(self, verdict: str, note: str = "") -> ReviewRow | None:
        self._check()
        if self.row is None:
            raise UsageError("no row is left to look at: rescan(), or review other rows")
        self._review.answer(self.row, verdict, note)
        return self._go_on()

    def _go_on(self) -> ReviewRow | None:
        verdicts = self._review.verdicts
        self._detector._learned(verdicts if verdicts.n_rows else None)
        self._known = self._learned()
        self.row = self._review.next()
        return self.row

    def _learned(self) -> Counts | None:
        return getattr(self._detector, "verdicts_", None)

    def _check(self) -> None:
        """Refuse to overwrite what the detector learned from somebody else meanwhile."""
        if self._learned() is not self._known:
            raise UsageError(
                "the detector has learned or forgotten other verdicts since this review began: "
                "begin another, detector.review(X)"
            )

    def _repr_html_(self) -> str:
        if self.row is None:
            return "<p>No row is left to look at.</p>"
        return html(self.row._view())
