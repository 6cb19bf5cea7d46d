"""Rows that a review may ask about: the lowest of all, or those with given numbers."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, Reader, joined, taken
from hushtable.data.weights import Numbered
from hushtable.scores.details import far_outside, lowest_rows
from hushtable.scores.finding import FAR_FIRST, IMPOSSIBLE_FIRST
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Some rows out of many, with everything that a review needs to know about them.

    Attributes
    ----------
    numbers : ndarray of shape (n,), int64
        Numbers of the rows, from 0, among all that were read.
    rows : ndarray or pyarrow.RecordBatch
        The features, and the columns to keep.
    codes : Codes
        The features, encoded for scoring.
    n_rows : int
        Number of all rows that were read.
    """

    numbers: Ints
    rows: Batch
    codes: Codes
    n_rows: int

    @classmethod
    def of(cls, scorer: Scorer, numbers: Ints, rows: Batch, n_rows: int) -> "Candidates":
        """Encode some of the rows that were read."""
        return cls(numbers, rows, scorer.encode((0, rows, None)), n_rows)

    def row(self, k: int) -> Batch:
        """Return the k-th row as a batch of its own."""
        return self.rows[k : k + 1] if isinstance(self.rows, np.ndarray) else self.rows.slice(k, 1)

    def check(self, k: int) -> str:
        """Return a check value of the k-th row under the plan, which differs for other rows."""
        values = self.codes.codes[: len(self.codes.tally), k]
        return hashlib.sha256(values.tobytes()).hexdigest()[:16]

    def place(self, number: int) -> int | None:
        """Return the position of a row among these, or None if it is not one of them."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if len(found) else None


def lowest_candidates(
    scorer: Scorer,
    reader: Reader,
    most: int,
    keep: Sequence[str],
    usual: Usual | None,
    n_jobs: int | None,
) -> Candidates | None:
    """Keep the rows with the lowest scores in one pass, lowest first; None if there are no rows.

    Rows with a value far outside what is ``usual`` are lower than others. With the owner's rules,
    rows with an impossible value are the lowest, and known rows are left out. Memory stays flat: it
    holds at most two times ``most`` rows, besides the batches being processed.
    """
    found: list[tuple[Ints, Floats, Batch]] = []
    held, n_rows, bar = 0, 0, np.inf

    def few(item: Numbered) -> tuple[int, Ints, Floats, Batch]:
        start, rows, _ = item
        keys = scorer.scored(item)[1] - FAR_FIRST * far_outside(scorer, usual, rows)
        keys -= IMPOSSIBLE_FIRST * impossible(scorer, rows)
        some = lowest_rows(keys, most)
        some = some[keys[some] < bar]
        if scorer.rules is not None:
            some = some[~scorer.rules.known(taken(rows, some))]
        return len(keys), start + some, keys[some], taken(rows, some)

    for n, numbers, scores, rows in scorer.mapped(reader, few, n_jobs, keep):
        n_rows += n
        found.append((numbers, scores, rows))
        held += len(numbers)
        if held > 2 * most:
            found = [_lowest(found, most, scorer)]
            held, bar = most, float(found[0][1][-1])
    if not n_rows:
        return None
    numbers, _, rows = _lowest(found, most, scorer)
    return Candidates.of(scorer, numbers, rows, n_rows)


def impossible(scorer: Scorer, rows: Batch) -> NDArray[np.bool_]:
    """Return which rows (n,) have a value that is impossible by their owner's rules."""
    if scorer.rules is None:
        return np.zeros(len(rows), np.bool_)
    return scorer.rules.impossible(rows) >= 0


def _lowest(
    found: list[tuple[Ints, Floats, Batch]], most: int, scorer: Scorer
) -> tuple[Ints, Floats, Batch]:
    """Return the lowest of rows that arrived in order; of equal scores, the earlier ones."""
    numbers, scores = (np.concatenate([one[k] for one in found]) for k in (0, 1))
    order = np.lexsort((numbers, scores))[:most]
    rows = joined([one[2] for one in found], _numeric(scorer))
    return numbers[order], scores[order], taken(rows, order)


def _numeric(scorer: Scorer) -> set[str]:
    return {one.name for one in scorer.plan.schema.features if one.kind == "numeric"}


def named_candidates(
    scorer: Scorer, reader: Reader, numbers: Iterable[int], keep: Sequence[str] = ()
) -> Candidates:
    """Pick rows by their numbers in one pass; numbers without a row are left out."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    opened = scorer.open(reader, keep)
    found, at, start = list[Batch](), list[Ints](), 0
    for batch in opened.read():
        here = wanted[slice(*np.searchsorted(wanted, [start, start + len(batch)]))]
        if len(here) or not found:
            found.append(taken(batch, here - start))
            at.append(here)
        start += len(batch)
    rows: Batch = (
        joined(found, _numeric(scorer)) if found else np.empty((0, len(scorer.plan.schema)))
    )
    picked = np.concatenate(at) if at else wanted[:0]
    return Candidates.of(scorer, picked, rows, start)
