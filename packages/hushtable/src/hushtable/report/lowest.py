"""The rows with the lowest scores in a report: how sure, how rare, and why.

No value and no id is among it, unless they are asked for.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hushtable.data.schema import Feature
from hushtable.data.values import value_words
from hushtable.plots import RankedOutliersDisplay
from hushtable.report.odd import ValueChart
from hushtable.scores.distributions import Distributions
from hushtable.scores.outliers import LowRow
from hushtable.scores.reasons import Reason, Reasons, worth_a_word
from hushtable.scores.typical import ValuePhrase, describe_value

#: A feature stands out if its share is so many times the mean of those that are not among the top.
_ABOVE = 1.01


@dataclass(frozen=True)
class RowsToShow:
    """Which single rows a report shows, and how much of them."""

    n: int = 0  # so many, those with the lowest scores
    values: bool = False  # whether to show the values that lower their scores
    kept: tuple[str, ...] = ()  # columns of these rows to show, too
    id: str | None = None  # that one of these which names the rows


NO_ROWS = RowsToShow()


@dataclass(frozen=True)
class NamedFeature:
    """A feature that lowers a row's score, in words."""

    feature: str
    share: float  # bits
    beside: str = ""  # the value beside what is usual; empty where values are not shown


@dataclass(frozen=True)
class RowReasons:
    """Reasons of a low score: features and their shares, and their values where these are shown."""

    row: str  # its number
    shortfall: float  # bits that its score falls short of a typical one
    crowding: str  # how many similar rows a typical row has; empty for counts with noise
    named: list[NamedFeature]
    rest: float  # bits of all other features together
    n_rest: int  # how many these are
    odd: ValueChart | None  # chart of the value that lowers the score most

    @classmethod
    def of(
        cls,
        row: LowRow,
        typical: float,
        n_features: int,
        among: Distributions | None = None,
    ) -> "RowReasons":
        """Return why one of the lowest rows has its score; values where ``among`` is given."""
        shortfall, reasons = typical - row.score, row.detail.reasons or []
        known = sum(reason.share for reason in reasons)
        others = (shortfall - known) / max(1, n_features - len(reasons))
        # What all features share alike makes none of them stand out.
        out = [r for r in worth_a_word(reasons) if r.share > _ABOVE * others]
        phrases = [_phrase(reason, among) for reason in out]
        both = list(zip(out, phrases, strict=True))
        named = [NamedFeature(r.feature, r.share, _beside(r, phrase)) for r, phrase in both]
        charts = (_chart(r, among, phrase) for r, phrase in both)
        return cls(
            f"{row.row:,}",
            shortfall,
            row.detail.crowding,
            named,
            rest=shortfall - sum(one.share for one in named),
            n_rest=n_features - len(named),
            odd=next((chart for chart in charts if chart), None),
        )

    @property
    def largest(self) -> float:
        """The largest share, of a feature or of all others: the longest bar."""
        return max([self.rest, *(one.share for one in self.named)])


def _phrase(reason: Reason, among: Distributions | None) -> ValuePhrase | None:
    """Return a value in the words of the list; beside these rows, if the model knows no others."""
    found = None if among is None else among.of(reason.feature)
    if found is None or reason.phrase is None or reason.kind is None or reason.phrase.compared:
        return reason.phrase
    return describe_value(found.feature, reason.value, reason.kind, found.usual)


def _beside(reason: Reason, phrase: ValuePhrase | None) -> str:
    return "" if phrase is None else phrase.words.removeprefix(reason.feature)


def _chart(
    reason: Reason, among: Distributions | None, phrase: ValuePhrase | None
) -> ValueChart | None:
    found = None if among is None else among.of(reason.feature)
    return None if found is None or phrase is None else ValueChart.of(reason, found, phrase.words)


@dataclass(frozen=True)
class LowestRows:
    """The rows with the lowest scores, lowest first."""

    found: list[LowRow]  # with their standard errors and ranks where these are known
    display: RankedOutliersDisplay  # their numbers, scores and standard errors
    reasons: list[RowReasons]  # why they have these scores; empty if the model gives no reasons
    no_reasons: str  # why it gives none
    values: bool = False  # whether the reasons show values
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)  # further columns, as text
    id: str | None = None  # that one of these which names the rows

    @classmethod
    def of(
        cls,
        found: list[LowRow],
        threshold: float,
        unit: str,
        shown: RowsToShow,
        reasons: Reasons | None,
        no_reasons: str,
        among: Distributions | None = None,
    ) -> "LowestRows | None":
        """Return the rows with their picture; None if none is to be shown."""
        if not shown.n:
            return None
        why = []
        if reasons is not None:
            typical, n_features = reasons.explainer.typical, len(reasons.features)
            why = [RowReasons.of(row, typical, n_features, among) for row in found]
        errors = np.array([math.nan if r.detail.error is None else r.detail.error for r in found])
        display = RankedOutliersDisplay(
            np.array([row.row for row in found]),
            np.array([row.score for row in found]),
            threshold=threshold,
            unit=unit,
            errors=None if np.isnan(errors).any() else errors,
        )
        kept = {name: [_text(row, k) for row in found] for k, name in enumerate(shown.kept)}
        return cls(found, display, why, no_reasons, shown.values, kept, shown.id)

    @property
    def ranked(self) -> bool:
        """Whether ranks are known."""
        return self.found[0].detail.ranks is not None

    @property
    def crowded(self) -> bool:
        """Whether counts say how many more similar rows a typical row has."""
        return any(one.crowding for one in self.reasons)

    @property
    def shows(self) -> list[str]:
        """Values of these rows that are shown, in words."""
        lowering = ["the values that lower their scores"] if self.values and self.reasons else []
        return [*self._names, *self._others, *lowering]

    @property
    def _names(self) -> list[str]:
        return [] if self.id is None else [self.id]

    @property
    def _others(self) -> list[str]:
        return [name for name in self.kept if name != self.id]

    @property
    def headers(self) -> list[str]:
        """Of `rows`."""
        return [
            *self._names,
            "row",
            *self._others,
            "score",
            *([] if self.display.errors is None else ["standard error"]),
            *(["rank among all", "between"] if self.ranked else []),
            *(["features that lower it most"] if self.reasons else []),
        ]

    @property
    def texts(self) -> tuple[int, ...]:
        """Columns, numbered from 1, that hold text."""
        first, others = len(self._names), len(self._others)
        kept = [*range(1, first + 1), *range(first + 2, first + 2 + others)]
        return (*kept, *([len(self.headers)] if self.reasons else []))

    @property
    def rows(self) -> list[list[str]]:
        """A table row for each of the rows, without its reasons."""
        return [
            [
                *(self.kept[name][k] for name in self._names),
                f"{row.row:,}",
                *(self.kept[name][k] for name in self._others),
                f"{row.score:.4f}",
                *([] if self.display.errors is None else [f"{row.detail.error:.4f}"]),
                *row.detail.rank_words,
            ]
            for k, row in enumerate(self.found)
        ]

    @property
    def lines(self) -> list[tuple[list[str], RowReasons | None]]:
        """The table rows, each with its reasons."""
        return list(itertools.zip_longest(self.rows, self.reasons))

    @property
    def scale(self) -> float:
        """Bits that the longest bar stands for: one scale for all rows."""
        return max((one.largest for one in self.reasons), default=0.0) or 1.0

    @property
    def words(self) -> str:
        """The scores, for those who do not see the figure."""
        return f"The {len(self.found)} lowest scores; the table has them."


def _text(row: LowRow, k: int) -> str:
    """Return the value of a further column of a row, as text; empty where it is missing."""
    value = row.detail.kept[k][0].as_py()
    # As it is in the data: no unit, and no number is shortened.
    return "" if value is None else value_words(Feature.categorical("text", ()), value)
