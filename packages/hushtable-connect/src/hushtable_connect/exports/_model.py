"""The model to be exported: what scores, and the line below which a row is an outlier."""

import os
from dataclasses import dataclass
from typing import Any

from hushtable.counts.base import Counts
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.models import open_model
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
        """Take a fitted detector, counts that score, or the path of their .hush file.

        Raises
        ------
        UsageError
            If it is none of these, or takes numbers or categories for missing ones, which no
            runtime is told.
        FileError, OSError
            If the file cannot be read, or holds counts that do not score.
        """
        if isinstance(source, str | os.PathLike):
            opened = open_model(source)
            _check_missing(opened.reading, opened.scorer.plan.schema)
            return cls(opened.scorer, opened.threshold)
        if isinstance(source, Counts):
            scorer = Scorer(source)
            return cls(scorer, scorer.auto_offset())
        if not hasattr(source, "offset_"):
            raise UsageError(f"a {type(source).__name__}: needs a fitted detector, or counts")
        _check_missing(source.reading_, source._scorer.plan.schema)
        return cls(source._scorer, float(source.offset_))


def _check_missing(reading: Reading, schema: Schema) -> None:
    """Raise `UsageError` if values stand for missing ones: other runtimes would score them.

    A text that is no number cannot be a value where all features are numeric.
    """
    if reading.absent or (reading.missing and schema.categorical_names):
        raise UsageError(
            f"the model takes {', '.join(map(repr, reading.missing))} for missing values, which "
            "an export cannot say: replace them by nothing (null) in the rows, fit again without "
            "missing (--missing), and do the same to rows before they are scored"
        )
