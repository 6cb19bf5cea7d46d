"""The rows with the lowest scores, found while rows pass."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushtable.scores.details import Detail, Scored


@dataclass(frozen=True, order=True)
class LowRow:
    """One of the rows with the lowest scores."""

    score: float
    #: That the row is in; empty if there is only one.
    file: str
    #: Its number in the file, from 0.
    row: int
    detail: Detail = field(default_factory=Detail, compare=False)

    def facts(self) -> dict[str, Any]:
        """Return the row for machines."""
        place = {"file": self.file} if self.file else {}
        return {**place, "row": self.row, "score": self.score, **self.detail.facts()}


class Lowest:
    """Keeps the rows with the lowest scores; of equal scores, those of the earlier file and row."""

    def __init__(self, most: int, file: str = "") -> None:
        self.most, self.file = most, file
        #: Rows that came with `add`, and those of them with the highest score of ``rows``.
        self.n_rows = self._ties = 0
        #: The lowest first.
        self.rows: list[LowRow] = []

    def add(self, batch: Scored, start: int) -> None:
        """Take in the next batch; ``start`` is the number of its first row."""
        # Of equal scores, the one that is here already is the earlier.
        before, bar = self.rows, self._bar
        self.merge(
            LowRow(float(batch.scores[i]), self.file, start + i, batch.detail(k))
            for k, i in enumerate(batch.lowest.tolist())
            if batch.scores[i] < bar
        )
        self.n_rows += len(batch.scores)
        # Below the bar there are fewer rows than ``most``: those that now lie on it were listed.
        listed = self._ties if self._bar == bar else sum(r.score == self._bar for r in before)
        self._ties = listed + int((batch.scores == self._bar).sum())

    @property
    def _bar(self) -> float:
        return self.rows[-1].score if self.rows and len(self.rows) == self.most else np.inf

    def as_rare(self, score: float) -> int:
        """Return how many of all rows that came score as low as one of ``rows``, or lower."""
        if score == self._bar:
            return sum(row.score < score for row in self.rows) + self._ties
        return sum(row.score <= score for row in self.rows)

    def merge(self, rows: Iterable[LowRow]) -> None:
        """Take in rows that were found elsewhere."""
        self.rows = heapq.nsmallest(self.most, [*self.rows, *rows])
