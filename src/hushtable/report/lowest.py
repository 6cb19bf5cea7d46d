"""What a report says of the rows with the lowest scores: how sure, how rare, and why."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.data.readers import Reader
from hushtable.plots import RankedOutliersDisplay
from hushtable.report.reasons import Reasoned
from hushtable.scores.ranks import Ranks
from hushtable.scores.scorer import Scorer

__all__ = ["LowestRows"]

#: Rows of which a figure shows the reasons.
_PICTURED = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LowestRows:
    """The rows with the lowest scores, lowest first.

    Attributes
    ----------
    display : RankedOutliersDisplay
        Their numbers, scores and standard errors.
    ranks : ndarray of shape (n, 3), or None
        For each, the share of the rows of all sites that is at least as rare, and two shares
        between which it lies; None where no ranks were given.
    reasons : list of Reasoned
        Why they have these scores; empty if that cannot be told.
    no_reasons : str
        Why it cannot.
    """

    display: RankedOutliersDisplay
    ranks: Floats | None
    reasons: list[Reasoned]
    no_reasons: str

    @classmethod
    def of(
        cls,
        display: RankedOutliersDisplay,
        scorer: Scorer,
        reader: Reader,
        ranks: Ranks | None,
        reasons: list[Reasoned],
        no_reasons: str,
    ) -> "LowestRows":
        """Find how sure the scores of these rows are; reads the rows once."""
        if scorer.plan.family.n_tables < 2:  # one table tells no error
            return cls(display, None, reasons, no_reasons)
        order = np.argsort(display.rows)
        errors = np.empty(len(order))
        _, errors[order] = scorer.score_with_errors(reader.take(display.rows[order]))
        display = RankedOutliersDisplay(
            display.rows,
            display.scores,
            threshold=display.threshold,
            unit=display.unit,
            errors=errors,
        )
        if ranks is None:
            return cls(display, None, reasons, no_reasons)
        shares = ranks.of(display.scores), ranks.between(display.scores, errors)
        return cls(display, np.column_stack(shares), reasons, no_reasons)

    @property
    def headers(self) -> list[str]:
        """Of `rows`."""
        return [
            *("row", "score"),
            *([] if self.display.errors is None else ["standard error"]),
            *([] if self.ranks is None else ["rank among all", "between"]),
            *(["features that lower it most"] if self.reasons else []),
        ]

    @property
    def texts(self) -> tuple[int, ...]:
        """Columns, numbered from 1, that hold text."""
        return (len(self.headers),) if self.reasons else ()

    @property
    def rows(self) -> list[list[str]]:
        """A table row for each of the rows."""
        shown = self.display
        pairs = zip(shown.rows.tolist(), shown.scores.tolist(), strict=True)
        table = [[f"{row:,}", f"{score:.4f}"] for row, score in pairs]
        for i, line in enumerate(table):
            if shown.errors is not None:
                line.append(f"{shown.errors[i]:.4f}")
            if self.ranks is not None:
                rank, low, high = self.ranks[i]
                line += [f"{rank:.2%}", f"{low:.2%} and {high:.2%}"]
            if self.reasons:
                line.append(self.reasons[i].listed)
        return table

    @property
    def pictured(self) -> list[Reasoned]:
        """The first of the rows, whose reasons a figure shows."""
        return [reasoned for reasoned in self.reasons if reasoned.display.features][:_PICTURED]

    @property
    def words(self) -> str:
        """The scores, for those who do not see the figure."""
        return f"The {len(self.display.rows)} lowest scores; the table has them."
