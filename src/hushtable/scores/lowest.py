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
        #: The lowest first.
        self.rows: list[LowRow] = []

    def add(self, batch: Scored, start: int) -> None:
        """Take in the next batch; ``start`` is the number of its first row."""
        # Of equal scores, the one that is here already is the earlier.
        bar = self.rows[-1].score if self.rows and len(self.rows) == self.most else np.inf
        self.merge(
            LowRow(float(batch.scores[i]), self.file, start + i, batch.detail(k))
            for k, i in enumerate(batch.lowest.tolist())
            if batch.scores[i] < bar
        )

    def merge(self, rows: Iterable[LowRow]) -> None:
        """Take in rows that were found elsewhere."""
        self.rows = heapq.nsmallest(self.most, [*self.rows, *rows])
