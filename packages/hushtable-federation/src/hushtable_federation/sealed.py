"""The result of a round whose hash functions the coordinator does not have."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.counts.release import Release
from hushtable.errors import PlanError
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.seal import Seal
from hushtable_federation.layout import Layout


@dataclass(frozen=True, eq=False)
class Sealed(Noised):
    """Counts of all sites with noise, of shape (n_cells,), their layout and their cost.

    With a seal, if the coordinator signed them.
    """

    kind: ClassVar[str] = "sealed"
    noun: ClassVar[str] = "a sealed result"
    hidden: ClassVar[bool] = True

    layout: Layout
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Seal | None = None

    @property
    def plan(self) -> Plan:  # type: ignore[override] # only the sites have it
        """Refuse: the hash functions are hidden from whoever has only this result."""
        raise PlanError("the hash functions are hidden: open this result with the plan")

    @property
    def plan_id(self) -> str:
        """Id of the plan."""
        return self.layout.plan_id

    @property
    def detector(self) -> str:
        """Name of the detector whose tables they are, as in `Plan`."""
        return self.layout.detector

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return self.layout.n_cells

    @property
    def n_tables(self) -> int:
        """Histograms of which each holds every row once."""
        return len(self.layout.cells)

    def counted_under(self, layout: Layout) -> bool:
        """Return whether these counts are under the plan that a layout is of."""
        return self.layout == layout

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from this result, once opened, has behind it."""
        return self.ledger.as_spent(self.detector, self.ledger.release_id)

    def open(self, plan: Plan) -> Release:
        """Return the release, given the plan that the sites share; what was signed is the file."""
        # Whether cells were shuffled, the file says: results of before have them in their order.
        plan = self.layout.check(replace(plan, hidden=False))
        counts = self.layout.restored(self.counts, plan)
        return Release(replace(plan, hidden=True), counts, self.ledger)

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of it: manifest entries and arrays."""
        entries = {"layout": self.layout.to_dict(), "ledger": self.ledger.to_dict()}
        return entries, {"counts": self.counts}

    @classmethod
    def from_file(cls, content: files.Content) -> "Sealed":
        """Build what a file carries; raises `PlanError` if it does not fit together."""
        said = content.said("sealed result", {"layout": object, "ledger": object})
        layout, ledger = Layout.from_dict(said["layout"]), Ledger.from_dict(said["ledger"])
        return cls(layout, content.array("counts"), ledger, Seal.from_file(content))
