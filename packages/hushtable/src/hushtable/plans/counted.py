"""Counts as plans see them, without knowing sketches or releases."""

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger

if TYPE_CHECKING:
    from hushtable.plans.plan import Plan


class Counted(Protocol):
    """Counts under a plan, of whichever kind; `hushtable.counts.base.Counts` describes them."""

    @property
    def plan(self) -> "Plan": ...  # noqa: D102
    @property
    def counts(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def ledger(self) -> Ledger | None: ...  # noqa: D102
    @property
    def noise_sd(self) -> float: ...  # noqa: D102
    @property
    def may_leave(self) -> bool: ...  # noqa: D102

    def cell_scores(self) -> NDArray[np.float64]:
        """Return the score of every cell (n_cells,), in the unit of the plan's score rule."""

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
