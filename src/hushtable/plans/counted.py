"""What plans need of counts, without knowing sketches or releases."""

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger

if TYPE_CHECKING:
    from hushtable.plans.plan import Plan

__all__ = ["Counted"]


class Counted(Protocol):
    """Counts under a plan, of whichever kind; `hushtable.counts.base.Counts` is what they are.

    Attributes
    ----------
    plan : Plan
        What was counted under.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell.
    ledger : Ledger or None
        What the noise in them promises; None for exact counts.
    noise_sd : float
        Standard deviation of the noise on a cell; 0 for exact counts.
    """

    @property
    def plan(self) -> "Plan": ...  # noqa: D102
    @property
    def counts(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def ledger(self) -> Ledger | None: ...  # noqa: D102
    @property
    def noise_sd(self) -> float: ...  # noqa: D102

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
