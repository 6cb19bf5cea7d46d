"""A row to be looked at: its values beside what is usual, and why its score is low."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.readers import Reader
from hushtable.display import Displayed
from hushtable.scores.candidates import Candidates
from hushtable.scores.details import Detail, Details
from hushtable.scores.reasons import Reasons, worth_a_word
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Told, cell, told
from hushtable.scores.usual import Usual


@dataclass(frozen=True)
class Shown(Displayed):
    """A row to be looked at.

    Attributes
    ----------
    row : int
        Its number, from 0.
    score, severity : float
        Score by all verdicts so far, in bits; 100 times one minus the share of rows as rare.
    values : dict of str to Told
        Of each feature: the value in words, and what is usual. The reasons come first.
    kept : dict of str to str
        Of each column to keep, the value as a text; empty if it is missing.
    detail : Detail
        Reasons, columns outside the plan, and what verdicts moved the score by.
    check : str
        Stands for the row's values under the plan.
    """

    row: int
    score: float
    severity: float
    values: dict[str, Told] = field(repr=False)
    kept: dict[str, str]
    detail: Detail = field(repr=False)
    check: str = field(repr=False)

    @property
    def words(self) -> str:
        """Why the row scores low, in a sentence without its full stop."""
        reasons = worth_a_word(self.detail.reasons or [])
        found = [one.told.words for one in reasons if one.told is not None]
        found += [self.detail.likeness] if self.detail.likeness else []
        return "; ".join(found) or "no column stands out"

    def to_dict(self) -> dict[str, Any]:
        """Return row, score, severity, words, and the values by column."""
        values = {name: one.value for name, one in self.values.items()}
        facts = {"row": self.row, "score": self.score, "severity": self.severity}
        return facts | {"words": self.words} | self.kept | values


class Showing:
    """Shows rows as a scorer scores them, with columns to keep beside."""

    def __init__(self, scorer: Scorer, usual: Usual | None, keep: Sequence[str]) -> None:
        self._features, self._keep = scorer.plan.schema.features, tuple(keep)
        names = scorer.plan.schema.names
        self._behind = tuple(name for name in keep if name not in names)
        self._usual = None if usual is None else usual.values
        reasons = Reasons(scorer, usual=self._usual)
        self._details = Details(scorer, 1, reasons=reasons, keep=self._keep)

    def of(self, found: Candidates, k: int, scores: NDArray[np.float64]) -> Shown:
        """Show the k-th of some rows, which have these scores (n,)."""
        row = found.row(k)
        reader = Reader(
            None if isinstance(row, np.ndarray) else tuple(row.schema.names),
            len(self._features) + len(self._behind),
            1,
            lambda: iter((row,)),
            numeric=isinstance(row, np.ndarray),
            keep=self._behind,
        )
        (detail,) = self._details.batches(reader, lambda batch: batch.detail(0))
        share = np.count_nonzero(scores <= scores[k]) / found.n_rows
        return Shown(
            int(found.numbers[k]),
            float(scores[k]),
            round(float(100.0 * (1.0 - share)), 10),
            self._told(row, detail),
            dict(zip(self._keep, map(_text, detail.kept), strict=True)),
            detail,
            found.check(k),
        )

    def _told(self, row: Any, detail: Detail) -> dict[str, Told]:
        """Return each feature's value in words, those of the reasons first."""
        usual = self._usual or [None] * len(self._features)
        values = {
            feature.name: told(feature, cell(row, j, 0), usual[j])
            for j, feature in enumerate(self._features)
        }
        first = [one.feature for one in worth_a_word(detail.reasons or [])]
        return {name: values[name] for name in (*first, *values)}


def _text(value: pa.Array) -> str:
    text = value.cast(pa.string())[0].as_py()
    return "" if text is None else str(text)
