"""The lowest rows as a table, and what a fitted detector knows of the rows that it counted."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hushtable.data.readers import Reader
from hushtable.detectors._frames import OutputFrames, frame_like
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.outliers import Outliers, find_outliers
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Sample, Usual


class OutlierLists(OutputFrames):
    """Lists the rows with the lowest scores.

    A subclass fits: it sets what is declared here.
    """

    n_jobs: int | None
    plan_: Plan
    _scorer: Scorer
    #: What the fit knows of the rows that it counted; a sample is scored on first use.
    _usual: Usual | Sample | None = None

    def _open(self, X: Any, keep: Sequence[str] = ()) -> Reader:
        raise NotImplementedError

    def outliers(self, X: Any, n: int = 20, keep: Sequence[str] = ()) -> Any:
        """Return the n rows with the lowest scores: how rare, how sure, and why.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns seen in `fit`, and those to ``keep``.
        n : int, default=20
            How many.
        keep : sequence of str, optional
            Columns whose values stand beside: features, or others such as an identifier.

        Returns
        -------
        DataFrame or pyarrow.Table
            Of pandas (with the rows' index) or polars if the rows are, else a Table. A line for
            each row, the lowest score first, with the columns

            - ``rank``, from 1; ``file``, if there are several; ``row``, from 0;
            - those to ``keep``;
            - ``severity``, from 0 to 100: 100 times one minus the share of the rows that were
              counted that are as rare, or rarer. Where the model does not know those (merged
              counts, releases, older files, after `partial_fit`), and wherever `set_ranks` was
              called, among other rows: the table's metadata says which
              (``hushtable.severity_among``; in pandas ``attrs["severity_among"]``);
            - ``score`` and ``error``, its standard error, as `standard_errors` has it;
            - ``outside``, the columns beyond the plan's range or categories;
            - of `HushTable` and `LSHiTables`, for each of three reasons ``reason_1``, the
              column, ``value_1``, ``usual_1`` (the middle 90% of the counted rows, or the most
              frequent categories), ``direction_1`` (high, low, rare, missing, beyond the plan, or
              none of these), and ``words``, all in words. A reason not worth a word is null.

        Raises
        ------
        DataError
            If there are no rows, or the columns do not fit.
        UsageError
            If n is not a whole number above 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from hushtable import HushTable
        >>> rows = pd.DataFrame({"name": list("abcd") * 25, "pulse": [*range(60, 159), 300]})
        >>> detector = HushTable(random_state=0).fit(rows[["pulse"]])
        >>> detector.outliers(rows, n=1, keep=["name"])[["name", "severity", "words"]].values
        array([['d', 99.0, 'pulse 300, usually 64 to 154: high']], dtype=object)
        """
        check_is_fitted(self)
        if isinstance(keep, str):
            raise UsageError(f"keep={keep!r}: needs a list of columns, such as [{keep!r}]")
        if len(set(keep)) < len(keep):
            raise UsageError(f"keep={list(keep)} names a column twice: name each once")
        return frame_like(self._lowest(X, n, keep).table(), X)

    def _lowest(
        self, X: Any, n: int, keep: Sequence[str] = (), reasons: Reasons | None = None
    ) -> Outliers:
        """Find the n rows with the lowest scores."""
        return find_outliers(
            self._scorer,
            self._open(X, keep),
            n,
            keep=keep,
            usual=self._usual_values(),
            ranks=getattr(self, "_ranks", None),
            reasons=reasons,
            n_jobs=self.n_jobs,
        )

    def _usual_values(self) -> Usual | None:
        """Return what is known of the counted rows; the first call scores a sample of them."""
        usual = self._usual
        return usual.usual(self._scorer) if isinstance(usual, Sample) else usual

    def __getstate__(self) -> Any:
        """Return what is pickled: no rows."""
        state: Any = super().__getstate__()
        return {**state, "_usual": self._usual_values()}
