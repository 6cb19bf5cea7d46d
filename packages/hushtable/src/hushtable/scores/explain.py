"""Shares of the features in a row's low score, from counts alone.

For each feature and table, the row's cell is compared with the cells that the row reaches if this
feature's value changes and all others stay. What the score would gain by that is the feature's
separable contribution, in the words of cooperative games (Moulin, *The separability axiom and
equal-sharing methods*, 1985). A row's score falls short of a typical one by some other amount
than its gains add up to. By more, where two features are odd at once, so that changing one alone
helps little: the rest is then divided in proportion to the gains. By less, where either of two
changes would help: the rest is then taken off all features alike. Either way the shares add up,
and have the order of the gains.

Of a few rows, `Repairs` asks which usual values in place of their own would make them unusual no
more (Wachter, Mittelstadt and Russell, *Counterfactual explanations without opening the black box*,
2018).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import NOTHING_OUTSIDE, Codes, Outside
from hushtable.data.readers import Batch
from hushtable.data.schema import Feature
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


#: Columns that are repaired at most.
MOST_REPAIRED = 3
#: Columns of a row that are tried, those with the largest shares.
_TRIED = 32
#: A value that is further from the usual than this counts as no further, in standard deviations.
_FARTHEST = 100.0


@dataclass(frozen=True)
class Repair:
    """The columns that bring a row back, if they are repaired one after the other.

    Attributes
    ----------
    columns : list of int
        Their numbers, in the order of the repairs: three at most.
    score : float
        After all of them.
    enough : bool
        Whether the row is then unusual no more.
    alone : dict of int to float
        What the score gains by each column that was tried, if it alone is repaired.
    """

    columns: list[int]
    score: float
    enough: bool
    alone: dict[int, float]


class Repairs:
    """Repairs values of some rows by usual ones, given for each feature of each row.

    None stands for a feature of which nothing usual is known.
    """

    def __init__(
        self, scorer: Scorer, rows: Batch, usual: Sequence[Sequence[float | str | None]]
    ) -> None:
        self._scorer, schema = scorer, scorer.plan.schema
        self._codes = scorer.encode((0, rows, None))
        known = [[one is not None for one in values] for values in usual]
        columns = [
            _usual_column(feature, [values[j] for values in usual])
            for j, feature in enumerate(schema.features)
        ]
        self._usual = scorer.encode((0, pa.RecordBatch.from_arrays(columns, schema.names), None))
        self._derived: dict[int, int] = {}
        if schema.differences is not None:
            d = len(schema.of_rows)
            self._derived = {j: d + k for k, j in enumerate(schema.differences.columns)}
        #: (n, d): which values can be repaired.
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

        ``shares`` (d,) say which columns to try. Those that are ``far`` outside everything come
        first; then, of those that raise the score, the one with the largest product of gain and
        ``distance`` from the usual.
        """
        order = [*far, *np.argsort(-shares, kind="stable").tolist()]
        tried = [j for j in dict.fromkeys(order) if self.possible[i, j]][:_TRIED]
        score, columns = float(self.scores[i]), list[int]()
        alone: dict[int, float] = {}
        while tried and len(columns) < MOST_REPAIRED and (not columns or score <= bar or far):
            found = self._repaired(i, [[*columns, j] for j in tried]) - score
            weights = [g * min(distance(j), _FARTHEST) for j, g in zip(tried, found, strict=True)]
            if enough := [j for j, g in zip(tried, found, strict=True) if score + g > bar]:
                weights = [distance(j) if j in enough else -np.inf for j in tried]
            if far := [j for j in far if j in tried]:
                weights = [w if j in far else -np.inf for j, w in zip(tried, weights, strict=True)]
            if not columns:
                alone = dict(zip(tried, found.tolist(), strict=True))
            best = int(np.argmax(weights))
            if weights[best] <= 0.0 and not far:
                break
            columns.append(tried.pop(best))
            score += float(found[best])
            far = [j for j in far if j in tried]
        return Repair(columns, score, score > bar, alone)

    def _repaired(self, i: int, choices: list[list[int]]) -> Floats:
        """Return the score of row i with each choice of columns repaired (n,)."""
        n, codes, usual = len(choices), self._codes, self._usual.codes[:, i]
        d = len(codes.tally)
        found = np.repeat(codes.codes[:, [i]], n, axis=1)
        for k, columns in enumerate(choices):
            for j in [*columns, *(self._derived[j] for j in columns if j in self._derived)]:
                found[j::d, k] = usual[j]
        outside = _left_outside(codes.outside, i, choices)
        return self._scorer.scoring(Codes(found, codes.tally, outside))


def _usual_column(feature: Feature, values: Sequence[float | str | None]) -> pa.Array:
    """Return the usual values of a feature, one for each row; any where none is known."""
    if feature.kind == "numeric":
        numbers = [np.nan if x is None else float(x) for x in values]
        return as_column(np.array(numbers, np.float64))
    return texts_column([feature.categories[0] if x is None else str(x) for x in values])


def _left_outside(outside: Outside, i: int, choices: list[list[int]]) -> Outside:
    """Return what of row i lies outside of the plan after the repairs of each choice."""
    here = outside.rows == i
    if not here.any():
        return NOTHING_OUTSIDE
    features, beyond = outside.features[here], outside.beyond[here]
    kept = [~np.isin(features, columns) for columns in choices]
    rows = np.concatenate([np.full(int(one.sum()), k) for k, one in enumerate(kept)])
    return Outside(
        rows.astype(np.int64),
        np.concatenate([features[one] for one in kept]),
        np.concatenate([beyond[one] for one in kept]),
    )
