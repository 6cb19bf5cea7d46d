"""What a report says of why rows have low scores: features and their shares, and no value."""

import itertools
from dataclasses import dataclass

import numpy as np

from hushtable.errors import UsageError
from hushtable.plots import ExplanationDisplay
from hushtable.scores.reasons import Lowest, Reasons
from hushtable.scores.scorer import Scorer

__all__ = ["Reasoned", "explaining"]

#: A feature stands out if its share is so many times the mean of those that are not among the top.
_ABOVE = 1.01


@dataclass(frozen=True)
class Reasoned:
    """Why a row has a low score: features and their shares, and no value.

    Attributes
    ----------
    row : str
        Its number.
    shortfall : float
        What its score falls short of a typical one, in bits.
    display : ExplanationDisplay
        The shares.
    """

    row: str
    shortfall: float
    display: ExplanationDisplay

    @classmethod
    def of(cls, lowest: Lowest, typical: float, n_features: int) -> "Reasoned":
        """Return why one of the lowest rows has its score."""
        shortfall = typical - lowest.score
        known = sum(reason.share for reason in lowest.reasons)
        others = (shortfall - known) / max(1, n_features - len(lowest.reasons))
        # What all features share alike makes none of them stand out.
        named = [(r.feature, r.share) for r in lowest.telling if r.share > _ABOVE * others]
        shares = np.array([share for _, share in named])
        display = ExplanationDisplay(
            [feature for feature, _ in named],
            shares,
            rest=shortfall - float(shares.sum()),
            n_rest=n_features - len(named),
        )
        return cls(f"{lowest.row:,}", shortfall, display)

    @property
    def listed(self) -> str:
        """The features and their shares."""
        shares = self.display.shares.tolist()
        units = itertools.chain([" bits"], itertools.repeat(""))
        named = [
            f"{name} ({share:.2f}{unit})"
            for name, share, unit in zip(self.display.features, shares, units, strict=False)
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


def explaining(scorer: Scorer, n_shown: int) -> tuple[Reasons | None, str]:
    """Return what explains the lowest rows, or why nothing does."""
    if not n_shown:
        return None, "nobody asked for single rows"
    try:
        return Reasons(scorer, n_shown, values=False), ""
    except UsageError as error:
        return None, str(error)
