"""The rows with the lowest scores in a report: how sure, how rare, and why; and no value."""

import math
from dataclasses import dataclass

import numpy as np

from hushtable.plots import ExplanationDisplay, RankedOutliersDisplay
from hushtable.scores.lowest import LowRow
from hushtable.scores.reasons import worth_a_word

#: Rows of which a figure shows the reasons.
_PICTURED = 4
#: A feature stands out if its share is so many times the mean of those that are not among the top.
_ABOVE = 1.01


@dataclass(frozen=True)
class Reasoned:
    """Reasons of a low score: features and their shares, and no value."""

    row: str  # its number
    shortfall: float  # bits that its score falls short of a typical one
    display: ExplanationDisplay  # the shares

    @classmethod
    def of(cls, row: LowRow, typical: float, n_features: int) -> "Reasoned":
        """Return why one of the lowest rows has its score."""
        shortfall, reasons = typical - row.score, row.detail.reasons or []
        known = sum(reason.share for reason in reasons)
        others = (shortfall - known) / max(1, n_features - len(reasons))
        # What all features share alike makes none of them stand out.
        named = [r for r in worth_a_word(reasons) if r.share > _ABOVE * others]
        shares = np.array([reason.share for reason in named])
        display = ExplanationDisplay(
            [reason.feature for reason in named],
            shares,
            rest=shortfall - float(shares.sum()),
            n_rest=n_features - len(named),
        )
        return cls(f"{row.row:,}", shortfall, display)

    @property
    def listed(self) -> str:
        """The features and their shares."""
        shares = zip(self.display.features, self.display.shares.tolist(), strict=True)
        named = [
            f"{name} ({share:.2f}{'' if j else ' bits'})" for j, (name, share) in enumerate(shares)
        ]
        return ", ".join(named) or "no feature stands out"

    @property
    def words(self) -> str:
        """The shares, for those who do not see the figure."""
        rest = self.display.rest
        others = f"; the others together {rest:.2f}" if self.display.n_rest else ""
        return (
            f"Row {self.row} falls {self.shortfall:.2f} bits short of a typical score: "
            f"{self.listed}{others}."
        )


@dataclass(frozen=True)
class LowestRows:
    """The rows with the lowest scores, lowest first."""

    found: list[LowRow]  # with their standard errors and ranks where these are known
    display: RankedOutliersDisplay  # their numbers, scores and standard errors
    reasons: list[Reasoned]  # why they have these scores; empty if the model gives no reasons
    no_reasons: str  # why it gives none

    @classmethod
    def of(
        cls,
        found: list[LowRow],
        threshold: float,
        unit: str,
        reasons: list[Reasoned],
        no_reasons: str,
    ) -> "LowestRows":
        """Return the rows with their picture."""
        errors = np.array([math.nan if r.detail.error is None else r.detail.error for r in found])
        display = RankedOutliersDisplay(
            np.array([row.row for row in found]),
            np.array([row.score for row in found]),
            threshold=threshold,
            unit=unit,
            errors=None if np.isnan(errors).any() else errors,
        )
        return cls(found, display, reasons, no_reasons)

    @property
    def ranked(self) -> bool:
        """Whether ranks are known."""
        return self.found[0].detail.ranks is not None

    @property
    def headers(self) -> list[str]:
        """Of `rows`."""
        return [
            *("row", "score"),
            *([] if self.display.errors is None else ["standard error"]),
            *(["rank among all", "between"] if self.ranked else []),
            *(["features that lower it most"] if self.reasons else []),
        ]

    @property
    def texts(self) -> tuple[int, ...]:
        """Columns, numbered from 1, that hold text."""
        return (len(self.headers),) if self.reasons else ()

    @property
    def rows(self) -> list[list[str]]:
        """A table row for each of the rows."""
        errors = [[] if r.detail.error is None else [f"{r.detail.error:.4f}"] for r in self.found]
        listed = [[one.listed] for one in self.reasons] or [[] for _ in self.found]
        return [
            [f"{row.row:,}", f"{row.score:.4f}", *error, *row.detail.rank_words, *why]
            for row, error, why in zip(self.found, errors, listed, strict=True)
        ]

    @property
    def pictured(self) -> list[Reasoned]:
        """The first of the rows, whose reasons a figure shows."""
        return [reasoned for reasoned in self.reasons if reasoned.display.features][:_PICTURED]

    @property
    def words(self) -> str:
        """The scores, for those who do not see the figure."""
        return f"The {len(self.found)} lowest scores; the table has them."
