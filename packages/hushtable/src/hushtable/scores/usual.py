"""Usual rows, of those that a model counted: their scores, and each feature's values.

It is read off an evenly spaced sample of the rows, by their numbers: the same one for any batches,
threads and sources. A row of weight w stands for w rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.readers import Batch, Reader, taken
from hushtable.data.schema import Schema
from hushtable.data.weights import Weights
from hushtable.errors import PlanError
from hushtable.files import Content
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import UsualValues

#: All of so many rows are in the sample; of more, one in 16, at most so many. Measured to make a
#: fit slower by 3% at most: rows in memory are copied, since a detector must hold none of the
#: caller's.
FEW, ONE_IN, MOST = 2_048, 16, 8_192
#: Values that it has at most.
MOST_VALUES = 1 << 22
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Usual:
    """The scores of counted rows, (n,) rising, and the values of each feature among them.

    Scores are None where the model has learned from verdicts since.
    """

    scores: Floats | None
    values: tuple[UsualValues, ...]

    def without_scores(self) -> "Usual":
        """Return what is left when rows score otherwise."""
        return replace(self, scores=None)

    def as_rare(self, scores: Floats) -> Floats:
        """Return the share of the counted rows that score as low as each score, or lower."""
        assert self.scores is not None
        below = np.searchsorted(self.scores, scores, side="right")
        return np.asarray(below / len(self.scores), np.float64)

    def entries(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a file carries: manifest entries and arrays."""
        values = [one.to_dict() for one in self.values]
        return {"usual": values}, {} if self.scores is None else {"usual.scores": self.scores}

    @classmethod
    def from_file(cls, content: Content, schema: Schema) -> "Usual | None":
        """Build what a file carries, if it does; raises `PlanError` if that cannot be."""
        if "usual" not in content.manifest:
            return None
        found = content.said("usual values", {"usual": list})["usual"]
        scores = content.arrays.get("usual.scores")
        if scores is not None:
            _check_scores(scores)
        if len(found) != len(schema):
            raise PlanError(f"what is usual: {len(found)} entries for {len(schema)} features")
        values = map(UsualValues.from_dict, found, schema.features)
        return cls(scores, tuple(values))


def _check_scores(scores: NDArray[Any]) -> None:
    right = scores.dtype == np.float64 and scores.ndim == 1 and 0 < len(scores) <= MOST
    if not right or not np.isfinite(scores).all() or (np.diff(scores) < 0.0).any():
        raise PlanError("the scores of counted rows: needs some float64 numbers that rise")


class Sample:
    """Evenly spaced rows of those that are counted, picked up while a pass reads them.

    Parameters
    ----------
    n_rows : int
        Rows that are counted.
    n_columns : int
        Columns that they have.
    weights : ndarray of shape (n,), int64, optional
        Weights of all rows that are read.
    """

    def __init__(self, n_rows: int, n_columns: int, weights: Weights | None) -> None:
        total = n_rows if weights is None else int(weights.sum())
        size = min(total, max(FEW, total // ONE_IN), MOST, max(1, MOST_VALUES // n_columns))
        self._rows = np.arange(size) * total // size
        self._times = np.ones(size, np.int64)
        if weights is not None:
            rows = np.searchsorted(np.cumsum(weights), self._rows, side="right")
            self._rows, self._times = np.unique(rows, return_counts=True)
        #: By the number of its first row, what is sampled of a batch.
        self._batches: dict[int, Batch] = {}
        self._found: tuple[Scorer, Usual] | None = None

    def of(self, reader: Reader) -> Reader:
        """Return a reader of the same rows: whoever reads them, fills the sample."""
        files, start = [], 0
        if reader.n_rows is not None:
            for part in reader.files:
                files.append(replace(part, read=partial(self._read, part, start)))
                start += part.n_rows or 0
        return replace(reader, read=partial(self._read, reader, 0), files=tuple(files))

    def _read(self, part: Reader, start: int) -> Iterator[Batch]:
        for batch in part.read():
            stop = start + len(batch)
            first, last = np.searchsorted(self._rows, [start, stop])
            if last > first and start not in self._batches:
                self._batches[start] = taken(batch, self._rows[first:last] - start)
            yield batch
            start = stop

    def usual(self, scorer: Scorer) -> Usual:
        """Return what is usual among the rows of the sample, as a scorer scores them."""
        if self._found is not None and self._found[0] is scorer:
            return self._found[1]
        batches = [self._batches[start] for start in sorted(self._batches)]
        parts = [scorer.scored((0, batch, None))[1] for batch in batches]
        scores = np.sort(np.repeat(np.concatenate(parts), self._times))
        values = (
            UsualValues.of(
                feature,
                [b[:, j] if isinstance(b, np.ndarray) else b.column(j) for b in batches],
                self._times,
            )
            for j, feature in enumerate(scorer.plan.schema.features)
        )
        found = Usual(scores, tuple(values))
        self._found = scorer, found
        return found
