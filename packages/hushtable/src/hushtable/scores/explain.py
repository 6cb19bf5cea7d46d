"""Shares of the features in a row's low score, computed from counts alone.

For each feature and table, the row's cell is compared with the cells that the row would reach if
this feature's value changed and all others stayed. The gain in score is the feature's separable
contribution, a term of cooperative games (Moulin, *The separability axiom and equal-sharing
methods*, 1985). The gains of a row do not add up to the gap between its score and a typical one.
The gap is larger if two features are unusual together, so that changing one alone helps little: the
rest is then divided in proportion to the gains. It is smaller if changing either of two would help:
the difference is then subtracted from all features equally. In both cases the shares add up, and
have the order of the gains.

For a few rows, `Repairs` finds which usual values, in place of their own, would make them no longer
unusual (Wachter, Mittelstadt and Russell, *Counterfactual explanations without opening the black
box*, 2018).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import NOTHING_OUTSIDE, Codes, Outside
from hushtable.data.passes import Numbered
from hushtable.data.readers import Batch
from hushtable.scores.scorer import Scorer

#: A table counts for a row if the row's cell is among the rarest, which hold at most this part of
#: the counted rows: enough to find the causes of an outlier, at a tenth of the work.
RARE = 0.1

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Explained:
    """A batch of rows, with the parts of their scores.

    Attributes
    ----------
    rows : ndarray or pyarrow.RecordBatch
        The rows.
    scores : ndarray of shape (n,), float64
        In the unit of the plan's score rule; low is abnormal.
    shares : ndarray of shape (n, d), float64
        As returned by `Explainer.explain`.
    codes : Codes
        The encoded values, and how many of each feature are missing or outside the plan.

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

    rows: Batch
    scores: Floats
    shares: Floats
    codes: Codes


class Explainer:
    """Divides the difference between a typical score and a row's score among the features.

    Parameters
    ----------
    scorer : Scorer
        Scorer of a plan whose tables keep features separate: of `HushTable` or `LSHiTables`.

    Attributes
    ----------
    scorer : Scorer
        The scorer whose scores are divided.
    typical : float
        Mean score of the counted rows, in bits; numbers beyond a range count as its end.
    equal : ndarray of shape (d,), float64
        Equal shares, for the features that can have any, of what no feature accounts for.

    Raises
    ------
    UsageError
        If the plan belongs to another detector.

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
        self.scorer, self._schema = scorer, scorer.plan.schema
        self._family, can_gain = scorer.plan.family, scorer.plan.family.can_gain
        self._limits = rare_below(scorer)
        sharing = can_gain if can_gain.any() else np.ones_like(can_gain)
        self.equal = self._of_columns(sharing / sharing.sum())
        self._ones = np.ones(len(self.equal))
        self.typical = float(scorer.histogram_means().mean())

    def explain(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """Return how much each feature adds to the gap between a typical and a row's score.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that `hushtable.data.readers.as_reader` takes.
        n_jobs : int, optional
            Threads: None means one, -1 every core. The shares do not depend on it.

        Returns
        -------
        ndarray of shape (n, d), float64
            In bits; high makes the row an outlier. A row's shares add up to `typical` minus its
            score. A feature with only one value, or without a hash function, has no share. What a
            row loses by numbers beyond the ranges is shared by how far they are beyond.
        """
        shape = (len(self.equal),)
        return self.scorer.filled(X, lambda item: self.explained(item).shares, shape, n_jobs)

    def importances(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """Return the mean size of each feature's share over these rows; memory stays flat.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows; give only outliers to see what makes them outliers.
        n_jobs : int, optional
            Threads: None means one, -1 every core.

        Returns
        -------
        ndarray of shape (d,), float64
            Mean of abs(share), in bits; NaN if there are no rows.
        """

        def add_up(item: Numbered) -> tuple[int, Floats]:
            shares = self.explained(item).shares
            return len(shares), np.abs(shares).sum(axis=0)

        n_rows, sums = 0, np.zeros(len(self.equal))
        for rows, size in self.scorer.mapped(X, add_up, n_jobs):
            n_rows += rows
            sums += size
        return sums / n_rows if n_rows else np.full(len(sums), np.nan)

    def batches(
        self,
        X: object,
        reduce: Callable[[Explained], T],
        *,
        n_jobs: int | None = None,
        keep: Sequence[str] = (),
    ) -> Iterator[T]:
        """Yield ``reduce`` of each batch, in order; ``rows`` also have the columns ``keep``.

        The threads call ``reduce``. Memory stays flat if it keeps little of a batch.
        """
        return self.scorer.mapped(X, lambda item: reduce(self.explained(item)), n_jobs, keep)

    def explained(self, item: Numbered) -> Explained:
        """Return a numbered batch of rows with the shares of its features."""
        rows = item[1]
        codes = self.scorer.encode(item)
        totals, shares = self._family.gains(codes, self.scorer.values, self._limits)
        shares = self._of_columns(shares)
        n_tables = self.scorer.plan.family.n_tables
        scores = totals / n_tables
        # Exact in any order in which BLAS adds: values of cells are multiples of 2**-20.
        gained = shares @ self._ones
        rest = n_tables * (self.typical - scores) - gained
        scale = np.ones(len(rest))
        np.divide(gained + rest, gained, out=scale, where=(rest > 0.0) & (gained > 0.0))
        rest[scale > 1.0] = 0.0
        shares *= (scale / n_tables)[:, np.newaxis]
        shares += np.multiply.outer(rest / n_tables, self.equal)
        outside = codes.outside
        if len(outside):
            lost = self.scorer.scoring.lost(codes, scores)
            scores -= lost
            # Assigned to the features beyond their range, by how far beyond they are.
            total = outside.totals(len(lost))[outside.rows]
            part = np.divide(outside.beyond, total, out=np.zeros(len(total)), where=total > 0.0)
            shares[outside.rows, outside.features] += part * lost[outside.rows]
        return Explained(rows, scores, shares, codes)

    def _of_columns(self, shares: Floats) -> Floats:
        """Return shares (..., d) of the columns, given those of all features.

        The gain of a column's difference from the context's prediction belongs to the column.
        """
        differences, d = self._schema.differences, len(self._schema.of_rows)
        if differences is None:
            return shares
        shares[..., differences.columns] += shares[..., d:]
        return np.ascontiguousarray(shares[..., :d])


def rare_below(scorer: Scorer) -> Floats:
    """Return the score below which a cell is rare, in each table (n_tables,)."""
    counts, values = np.maximum(scorer.row_counts, 0), scorer.values
    limits = []
    for first, last in itertools.pairwise(scorer.plan.family.offsets):
        order = np.argsort(values[first:last], kind="stable")
        rows = np.cumsum(counts[first:last][order])
        # The lowest score that is not rare: cells with the same score are treated equally.
        at = np.searchsorted(rows, RARE * rows[-1], side="right")
        limits.append(values[first:last][order][min(at, len(rows) - 1)])
    return np.array(limits)


#: Largest number of columns to repair.
MOST_REPAIRED = 3
#: Number of columns of a row to try: those with the largest shares.
_TRIED = 32
#: Cap on the distance of a value from the usual, in standard deviations.
_FARTHEST = 100.0


@dataclass(frozen=True)
class Repair:
    """The columns that make a row usual again, if they are repaired one after the other.

    Attributes
    ----------
    columns : list of int
        Their numbers, in the order of the repairs: at most three.
    score : float
        Score after all repairs.
    enough : bool
        Whether the row is then no longer unusual.
    alone : dict of int to float
        For each column that was tried, the gain in score if only this column is repaired.
    """

    columns: list[int]
    score: float
    enough: bool
    alone: dict[int, float]


class Repairs:
    """Replaces values of some rows by usual ones, given for each feature of each row.

    None means that nothing usual is known for a feature.
    """

    def __init__(
        self, scorer: Scorer, rows: Batch, usual: Sequence[Sequence[float | str | None]]
    ) -> None:
        self._scorer, schema = scorer, scorer.plan.schema
        self._codes = scorer.encode((0, rows, None))
        columns = []
        for j, feature in enumerate(schema.features):
            values = [known[j] for known in usual]
            if feature.kind == "numeric":
                numbers = [np.nan if x is None else float(x) for x in values]
                columns.append(as_column(np.array(numbers, np.float64)))
            else:  # any value if it is unknown
                texts = [feature.categories[0] if x is None else str(x) for x in values]
                columns.append(texts_column(texts))
        self._usual = scorer.encode((0, pa.RecordBatch.from_arrays(columns, schema.names), None))
        self._derived: dict[int, int] = {}
        if schema.differences is not None:
            d = len(schema.of_rows)
            self._derived = {j: d + k for k, j in enumerate(schema.differences.columns)}
        #: (n, d): which values can be repaired.
        known = [[value is not None for value in values] for values in usual]
        self.possible = np.array(known).reshape(len(rows), -1)
        self.scores = scorer.scoring(self._codes)

    def find(
        self,
        i: int,
        shares: Floats,
        bar: float,
        distance: Callable[[int], float],
        far: Sequence[int] = (),
    ) -> Repair:
        """Find the columns to repair until row i scores above ``bar``.

        ``shares`` (d,) determine which columns to try. Those that are ``far`` outside everything
        come first; then, of those that raise the score, the one with the largest product of gain
        and ``distance`` from the usual value.
        """
        order = [*far, *np.argsort(-shares, kind="stable").tolist()]
        tried = [j for j in dict.fromkeys(order) if self.possible[i, j]][:_TRIED]
        score, columns = float(self.scores[i]), list[int]()
        alone: dict[int, float] = {}
        while tried and len(columns) < MOST_REPAIRED and (not columns or score <= bar or far):
            gains = self._repaired(i, [[*columns, j] for j in tried]) - score
            weights = [g * min(distance(j), _FARTHEST) for j, g in zip(tried, gains, strict=True)]
            if enough := [j for j, g in zip(tried, gains, strict=True) if score + g > bar]:
                weights = [distance(j) if j in enough else -np.inf for j in tried]
            if far := [j for j in far if j in tried]:
                weights = [w if j in far else -np.inf for j, w in zip(tried, weights, strict=True)]
            if not columns:
                alone = dict(zip(tried, gains.tolist(), strict=True))
            best = int(np.argmax(weights))
            if weights[best] <= 0.0 and not far:
                break
            columns.append(tried.pop(best))
            score += float(gains[best])
            far = [j for j in far if j in tried]
        return Repair(columns, score, score > bar, alone)

    def _repaired(self, i: int, choices: list[list[int]]) -> Floats:
        n, codes, usual = len(choices), self._codes, self._usual.codes[:, i]
        d = len(codes.tally)
        repaired = np.repeat(codes.codes[:, [i]], n, axis=1)
        for k, columns in enumerate(choices):
            for j in [*columns, *(self._derived[j] for j in columns if j in self._derived)]:
                repaired[j::d, k] = usual[j]
        outside, here = NOTHING_OUTSIDE, codes.outside.rows == i
        if here.any():
            features, beyond = codes.outside.features[here], codes.outside.beyond[here]
            kept = [~np.isin(features, columns) for columns in choices]
            outside = Outside(
                np.repeat(np.arange(n), [int(left.sum()) for left in kept]),
                np.concatenate([features[left] for left in kept]),
                np.concatenate([beyond[left] for left in kept]),
            )
        return self._scorer.scoring(Codes(repaired, codes.tally, outside))
