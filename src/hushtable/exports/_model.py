"""What is exported: what scores, and the line below which a row is an outlier."""

import os
from dataclasses import dataclass
from typing import Any

from hushtable.counts.base import Counts
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer


@dataclass(frozen=True)
class Model:
    """A model to be exported."""

    scorer: Scorer
    #: Rows that score below are outliers; NaN where noise leaves no line.
    threshold: float

    @property
    def plan(self) -> Plan:
        """The features, the hash functions, and how counts become scores."""
        return self.scorer.plan

    @classmethod
    def of(cls, source: Any) -> "Model":
        """Take a fitted detector, counts that score, or the path of their .hush file."""
        if isinstance(source, str | os.PathLike):
            raise NotImplementedError  # the next commit
        if isinstance(source, Counts):
            scorer = Scorer(source)
            return cls(scorer, scorer.auto_offset())
        if not hasattr(source, "offset_"):
            raise UsageError(f"a {type(source).__name__}: needs a fitted detector, or counts")
        return cls(source._scorer, float(source.offset_))
