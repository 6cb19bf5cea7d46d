"""Rows that are kept of many: those with the lowest scores, and those that somebody names."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, Reader, taken
from hushtable.data.weights import Numbered
from hushtable.scores.details import lowest_rows
from hushtable.scores.scorer import Scorer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Some rows of many, with all that a review needs of them.

    Attributes
    ----------
    numbers : ndarray of shape (n,), int64
        Of the rows, from 0, among all that were read.
    rows : ndarray or pyarrow.RecordBatch
        The features, and the columns to keep.
    codes : Codes
        The features, encoded.
    n_rows : int
        All rows that were read.
    """

    numbers: Ints
    rows: Batch
    codes: Codes
    n_rows: int

    def row(self, k: int) -> Batch:
        """Return the k-th row alone."""
        return self.rows[k : k + 1] if isinstance(self.rows, np.ndarray) else self.rows.slice(k, 1)

    def check(self, k: int) -> str:
        """Return what stands for the k-th row's values under the plan: another row has another."""
        values = self.codes.codes[: len(self.codes.tally), k]
        return hashlib.sha256(values.tobytes()).hexdigest()[:16]

    def place(self, number: int) -> int | None:
        """Return the place of a row among these, if it is one of them."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if len(found) else None


def lowest_candidates(
    scorer: Scorer, reader: Reader, most: int, keep: Sequence[str], n_jobs: int | None
) -> Candidates | None:
    """Keep the rows with the lowest scores in one pass, lowest first; None if there are no rows.

    Memory stays flat: two times ``most`` rows are held at most, besides the batches under way.
    """
    found: list[tuple[Ints, Floats, Batch]] = []
    held, n_rows, bar = 0, 0, np.inf

    def few(item: Numbered) -> tuple[int, Ints, Floats, Batch]:
        start, rows, _ = item
        scores = scorer.scored(item)[1]
        some = lowest_rows(scores, most)
        some = some[scores[some] < bar]
        return len(scores), start + some, scores[some], taken(rows, some)

    for n, numbers, scores, rows in scorer.mapped(reader, few, n_jobs, keep):
        n_rows += n
        found.append((numbers, scores, rows))
        held += len(numbers)
        if held > 2 * most:
            found = [_lowest(found, most)]
            held, bar = most, float(found[0][1][-1])
    if not n_rows:
        return None
    numbers, _, rows = _lowest(found, most)
    return Candidates(numbers, rows, scorer.encode((0, rows, None)), n_rows)


def _lowest(found: list[tuple[Ints, Floats, Batch]], most: int) -> tuple[Ints, Floats, Batch]:
    """Return the lowest of rows that came in order; of equal scores, the earlier."""
    numbers, scores = (np.concatenate([one[k] for one in found]) for k in (0, 1))
    order = np.lexsort((numbers, scores))[:most]
    return numbers[order], scores[order], taken(joined([one[2] for one in found]), order)


def named_candidates(
    scorer: Scorer, reader: Reader, numbers: Iterable[int], keep: Sequence[str] = ()
) -> Candidates:
    """Pick rows by their numbers, in one pass; those that are not there are left out."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    opened = scorer.open(reader, keep)
    found, at, start = list[Batch](), list[Ints](), 0
    for batch in opened.read():
        here = wanted[slice(*np.searchsorted(wanted, [start, start + len(batch)]))]
        if len(here) or not found:
            found.append(taken(batch, here - start))
            at.append(here)
        start += len(batch)
    rows: Batch = joined(found) if found else np.empty((0, len(scorer.plan.schema)))
    picked = np.concatenate(at) if at else wanted[:0]
    return Candidates(picked, rows, scorer.encode((0, rows, None)), start)


def joined(batches: Sequence[Any]) -> Batch:
    """Return batches of the same columns as one; where types differ, as the wider one, or texts."""
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], np.ndarray):
        return np.concatenate(batches)
    names = batches[0].schema.names
    columns = [_column([batch.column(j) for batch in batches]) for j in range(len(names))]
    return pa.RecordBatch.from_arrays(columns, names)


def _column(parts: list[Any]) -> Any:
    """Return parts of a column as one array."""
    parts = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in parts]
    kinds = {one.type for one in parts if not pa.types.is_null(one.type)}
    if len(kinds) > 1:
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        kinds = {pa.float64() if numbers else pa.string()}
    kind = kinds.pop() if kinds else pa.null()
    return pa.concat_arrays([one if one.type == kind else one.cast(kind) for one in parts])
