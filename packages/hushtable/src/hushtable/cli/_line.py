"""The line below which rows are outliers, as options draw it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushtable.errors import DataError, UsageError
from hushtable.scores.scorer import Ranks, Scorer


@dataclass(frozen=True)
class Line:
    """One of three ways to draw the line, or none: then it is the model's.

    ``share`` is that of the rows to flag (of those scored, or of those of all sites where ranks
    are given, ``ranked``), ``count`` their number, ``score`` the one below which they lie.
    """

    share: float | None
    count: int | None
    score: float | None
    ranked: bool

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.share, self.count, self.score)) > 1:
            raise UsageError("--contamination, --count and --threshold exclude each other")
        if self.share is not None and not 0.0 < self.share <= 0.5:
            raise UsageError(f"--contamination {self.share}: needs a share above 0, at most 0.5")
        if self.count is not None and self.count < 1:
            raise UsageError(f"--count {self.count}: needs 1 or more")

    @property
    def drawn(self) -> bool:
        """Whether an option draws it."""
        return any(way is not None for way in (self.share, self.count, self.score))

    @property
    def reads_all_rows(self) -> bool:
        """Whether all rows have to be scored before the first is flagged."""
        return self.count is not None or (self.share is not None and not self.ranked)

    def offset(self, of_model: float, ranks: Ranks | None) -> float:
        """Return the score below which a row is an outlier, where that needs no rows."""
        if self.score is not None:
            return self.score
        if self.share is not None and ranks is not None:
            return ranks.threshold(self.share)
        return of_model

    def offset_of_rows(self, scorer: Scorer, reader: Any, threads: int) -> float:
        """Return the score below which a row is an outlier; holds 8 bytes a row."""
        batches = list(scorer.batches(reader, lambda _, scores: scores, n_jobs=threads))
        if not batches:
            raise DataError(f"{reader.source} has no rows: there is nothing to score")
        scores = np.concatenate(batches)
        if self.count is None:
            return float(np.percentile(scores, 100.0 * (self.share or 0.0)))
        if self.count >= len(scores):
            raise UsageError(
                f"--count {self.count:,}: {reader.source} has {len(scores):,} rows; give fewer"
            )
        # Rows of equal scores are flagged together, or not at all.
        return float(np.partition(scores, self.count)[self.count])
