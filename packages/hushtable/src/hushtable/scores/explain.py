"""Shares of the features in a row's low score, from counts alone.

For each feature and table, the row's cell is compared with the cells that the row reaches if this
feature's value changes and all others stay. What the score would gain by that is the feature's
separable contribution, in the words of cooperative games (Moulin, *The separability axiom and
equal-sharing methods*, 1985). A row's score falls short of a typical one by some other amount
than its gains add up to. By more, where two features are odd at once, so that changing one alone
helps little: the rest is then divided in proportion to the gains. By less, where either of two
changes would help: the rest is then taken off all features alike. Either way the shares add up,
and have the order of the gains.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch
from hushtable.data.weights import Numbered
from hushtable.scores.scorer import Scorer

#: A table counts for a row if the row's cell is among the rarest, which hold at most this part of
#: the counted rows: enough to find what makes an outlier, at a tenth of the work.
RARE = 0.1

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Explained:
    """A batch of rows with what their scores are made of.

    Attributes
    ----------
    start : int
        Number of the first row.
    rows : ndarray or pyarrow.RecordBatch
        The rows.
    scores : ndarray of shape (n,), float64
        In the unit of the plan's score rule; low is abnormal.
    shares : ndarray of shape (n, d), float64
        As `Explainer.explain` returns them.
    codes : Codes
        What the values are encoded to, and how many of each feature are missing or outside the
        plan.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> from hushtable.scores import Explainer, Scorer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> X[7, 2] = 9.0
    >>> explainer = Explainer(Scorer(HushTable(random_state=0).fit(X).sketch_))
    >>> [shares] = explainer.batches(X, lambda batch: batch.shares)
    >>> shares.shape
    (500, 3)
    """

    start: int
    rows: Batch
    scores: Floats
    shares: Floats
    codes: Codes


class Explainer:
    """Divides the difference between a typical score and a row's among the features.

    Parameters
    ----------
    scorer : Scorer
        Of a plan whose tables keep features apart: `HushTable` or `LSHiTables`.

    Attributes
    ----------
    typical : float
        Mean score of the counted rows, in bits; numbers beyond count as their range's end.
    equal : ndarray of shape (d,), float64
        Shares in equal parts, of the features that can have any: of what no feature accounts for.

    Raises
    ------
    UsageError
        If the plan is another detector's.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> from hushtable.scores import Explainer, Scorer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> X[7, 2] = 9.0
    >>> explainer = Explainer(Scorer(HushTable(random_state=0).fit(X).sketch_))
    >>> int(explainer.explain(X)[7].argmax())
    2
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self._schema = scorer, scorer.plan.schema
        family = scorer.plan.family
        self._gains = family.gaining(scorer.values, rare_below(scorer))
        can_gain = self._gains.features
        sharing = can_gain if can_gain.any() else np.ones_like(can_gain)
        self.equal = self._of_columns(sharing / sharing.sum())
        self._ones = np.ones(len(self.equal))
        self.typical = float(scorer.histogram_means().mean())

    def explain(self, X: Any, *, n_jobs: int | None = None) -> Floats:
        """Return how much each feature adds to the gap between a typical score and a row's.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, as `hushtable.data.readers.as_reader` takes them.
        n_jobs : int, optional
            Threads; None is one, -1 every core. The shares are the same for any number.

        Returns
        -------
        ndarray of shape (n, d), float64
            In bits; high makes the row an outlier. A row's shares add up to `typical` minus its
            score. A feature that takes one value only, or has no hash function, has none. What a
            row loses by numbers beyond the ranges is theirs, by how far they are beyond.
        """
        shape = (len(self.equal),)
        return self._scorer.filled(X, lambda item: self._explain(item).shares, shape, n_jobs)

    def importances(self, X: Any, *, n_jobs: int | None = None) -> Floats:
        """Return the mean size of each feature's share over these rows; memory stays flat.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows; give outliers alone to see what makes them so.
        n_jobs : int, optional
            Threads; None is one, -1 every core.

        Returns
        -------
        ndarray of shape (d,), float64
            Mean of abs(share), in bits; NaN if there are no rows.
        """

        def add_up(batch: Explained) -> tuple[int, Floats]:
            return len(batch.shares), np.abs(batch.shares).sum(axis=0)

        n_rows, sums = 0, np.zeros(len(self.equal))
        for rows, some in self.batches(X, add_up, n_jobs=n_jobs):
            n_rows += rows
            sums += some
        return sums / n_rows if n_rows else np.full(len(sums), np.nan)

    def moved_from(self, other: "Explainer", X: Any, *, n_jobs: int | None = None) -> Floats:
        """Return the mean distance of each feature's shares from those by another model's scores.

        Parameters
        ----------
        other : Explainer
            Of other scores under the same plan, such as those before verdicts were learned.
        X : array, data frame, Arrow object or path
            Rows.
        n_jobs : int, optional
            Threads; None is one, -1 every core.

        Returns
        -------
        ndarray of shape (d,), float64
            Mean of abs(share - the other's share), in bits; NaN if there are no rows.
        """

        def add_up(item: Numbered) -> tuple[int, Floats]:
            distance = self._explain(item).shares - other._explain(item).shares
            return len(distance), np.abs(distance).sum(axis=0)

        n_rows, sums = 0, np.zeros(len(self.equal))
        for rows, some in self._scorer.mapped(X, add_up, n_jobs):
            n_rows += rows
            sums += some
        return sums / n_rows if n_rows else np.full(len(sums), np.nan)

    def batches(
        self,
        X: Any,
        reduce: Callable[[Explained], T],
        *,
        n_jobs: int | None = None,
        keep: Sequence[str] = (),
    ) -> Iterator[T]:
        """Yield ``reduce`` of each batch, in order; its ``rows`` have the columns ``keep``, too.

        ``reduce`` is called by the threads. Memory stays flat if it keeps little of a batch.
        """
        return self._scorer.mapped(X, lambda item: reduce(self._explain(item)), n_jobs, keep)

    def _explain(self, item: Numbered) -> Explained:
        start, rows, _ = item
        codes = self._scorer.encode(item)
        totals, shares = self._gains(codes)
        shares = self._of_columns(shares)
        n_tables = self._scorer.plan.family.n_tables
        scores = totals / n_tables
        # Exact, in whatever order BLAS adds: values of cells are multiples of 2**-20.
        gained = shares @ self._ones
        rest = n_tables * (self.typical - scores) - gained
        scale = np.ones(len(rest))
        np.divide(gained + rest, gained, out=scale, where=(rest > 0.0) & (gained > 0.0))
        rest[scale > 1.0] = 0.0
        shares *= (scale / n_tables)[:, np.newaxis]
        shares += np.multiply.outer(rest / n_tables, self.equal)
        outside = codes.outside
        if len(outside):
            lost = self._scorer.scoring.lost(codes, scores)
            scores -= lost
            # To the features beyond, by how far they are.
            total = outside.totals(len(lost))[outside.rows]
            part = np.divide(outside.beyond, total, out=np.zeros(len(total)), where=total > 0.0)
            shares[outside.rows, outside.features] += part * lost[outside.rows]
        return Explained(start, rows, scores, shares, codes)

    def _of_columns(self, shares: Floats) -> Floats:
        """Return shares (..., d) of the columns, given those of all features.

        What a column's difference from what the context predicts gains is the column's.
        """
        differences, d = self._schema.differences, len(self._schema.of_rows)
        if differences is None:
            return shares
        shares[..., differences.columns] += shares[..., d:]
        return np.ascontiguousarray(shares[..., :d])


def rare_below(scorer: Scorer) -> Floats:
    """Return the score below which a cell is a rare one, in each table (n_tables,)."""
    counts, values = np.maximum(scorer.row_counts, 0), scorer.values
    limits = []
    for first, last in itertools.pairwise(scorer.plan.family.offsets):
        order = np.argsort(values[first:last], kind="stable")
        rows = np.cumsum(counts[first:last][order])
        # The lowest score that is not rare: cells of the same score are alike.
        at = np.searchsorted(rows, RARE * rows[-1], side="right")
        limits.append(values[first:last][order][min(at, len(rows) - 1)])
    return np.array(limits)
