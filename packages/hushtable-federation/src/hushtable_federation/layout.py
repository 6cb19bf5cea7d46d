"""Plans without their hash functions, and counts under them, which a coordinator may have."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import entries, translate_errors
from hushtable.counts.base import Noised
from hushtable.counts.release import Release, check_plan
from hushtable.errors import PlanError
from hushtable.language import numerals
from hushtable.plans.draws import Purpose, purpose_of
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon
from hushtable.privacy.budget import Spent, check_share
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.seal import Seal
from hushtable_federation.keys import crypto, stream
from hushtable_federation.language import _

_ENTRIES = {
    "plan_id": str, "detector": str, "cells": list[int], "behind": list[object], "share": object
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """A plan's id and the sizes of its tables, without its hash functions.

    Anyone who has only the layout can add up counts and check that they belong together, but cannot
    hash rows, and therefore learns nothing about any row's score (the paper's footnote in section
    4).

    Attributes
    ----------
    plan_id : str
        Of the plan.
    detector : str
        Name of the detector that the tables are for, as in `Plan`.
    cells : tuple of int
        Cells of each histogram: of each table, or of each row of its CountMin sketch. Each data row
        counts in one cell of each histogram.
    behind : tuple of Spent
        Costs of the results that the plan was drawn from.
    share : float or None
        Default share of the budget that a release takes.
    horizon : Horizon or None
        The periods for which the plan was drawn.
    shuffled : bool
        Whether sites send the cells of each table in an order that is known only to holders of the
        plan: otherwise, some rows are in the first cell of each table for any hash functions.

    Examples
    --------
    >>> from hushtable_federation import Layout
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> layout = Layout.of(Rehearsal().round.plan)
    >>> layout.cells[:3], layout.n_cells
    ((64, 64, 64), 640)
    """

    plan_id: str
    detector: str
    cells: tuple[int, ...]
    behind: tuple[Spent, ...]
    share: float | None
    horizon: Horizon | None = None
    shuffled: bool = False

    #: Only the plan contains the number of rows that it was designed for.
    expected_rows: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not self.cells or min(self.cells) < 1:
            raise PlanError("a layout needs cells in every table")

    @classmethod
    def of(cls, plan: Plan) -> "Layout":
        """Return the layout of a plan; raise `PrivacyError` if releases under it cannot be private.

        Tables with hidden hash functions are shuffled.
        """
        check_plan(plan)
        cells = tuple(np.diff(plan.family.offsets).tolist())
        about = plan.plan_id, plan.detector, cells, plan.behind, plan.share_of_budget
        return cls(*about, plan.horizon, plan.hidden and plan.purpose.scores_rows)

    @property
    def purpose(self) -> Purpose:
        """Return the use of the counts, as the plan's name shows it."""
        return purpose_of(self.detector)

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return sum(self.cells)

    def check(self, plan: Plan) -> Plan:
        """Return the plan if this is its layout; raise `PlanError` otherwise."""
        if plan.plan_id != self.plan_id:
            raise PlanError(
                f"the plan is {plan.plan_id[:12]}, but the round is about {self.plan_id[:12]}: get "
                "the plan that all sites share"
            )
        whole = Layout.of(plan)
        if whole.shuffled and not self.shuffled:
            raise PlanError(
                "the round requests the cells of hidden hash functions in their original order, "
                "which reveals the cells of some rows: have a site make the layout again "
                "(hushtable plan hide), and the coordinator open the round with it"
            )
        if replace(whole, shuffled=self.shuffled) != self:
            raise PlanError(
                f"the round states tables that differ from those of plan {self.plan_id[:12]}: ask "
                "the coordinator to open it again"
            )
        return plan

    def sent(self, counts: NDArray[np.int64], plan: Plan) -> NDArray[np.int64]:
        """Return counts of shape (n_cells,) in the order that sites send them in."""
        return counts[self._order(plan)] if self.shuffled else counts

    def restored(self, counts: NDArray[np.int64], plan: Plan) -> NDArray[np.int64]:
        """Return counts of shape (n_cells,) in the order of the plan's cells."""
        if not self.shuffled:
            return counts
        found = np.empty_like(counts)
        found[self._order(plan)] = counts
        return found

    def _order(self, plan: Plan) -> NDArray[np.intp]:
        """Return the cells, table by table, in a random order that follows from the plan.

        The order follows from the hash functions in its file, which the id does not reveal: cells
        are sorted by a stream of random words.
        """
        c, arrays = crypto(), plan.arrays()
        content = b"".join(arrays[name].tobytes() for name in sorted(arrays))
        info = rfc8785.dumps(["hushtable", "order of cells", plan.plan_id])
        key = c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(content)
        tables = np.repeat(np.arange(len(self.cells)), self.cells)
        return np.lexsort((stream(bytes(key), self.n_cells), tables))

    def implausible(self, counts: NDArray[np.int64], noise_sd: float) -> str | None:
        """Return why these cannot be honest counts with this noise; None if they can.

        All tables count the same rows, so their totals agree up to the noise; and no cell contains
        fewer than zero rows, or more than all rows. This also holds for rows of several periods
        that a horizon weights, because no weight is below 0. For verdicts, the first table counts
        normal rows and outliers, and all others count outliers minus normal rows. Chance exceeds a
        bound of 8 standard deviations once in 10^15 cells.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            Counts of one site or of all sites.
        noise_sd : float
            Standard deviation of the noise on a cell.
        """
        starts = np.cumsum([0, *self.cells[:-1]])
        # Exact in whole numbers unless numbers are huge, which is checked first.
        if np.abs(counts, dtype=np.float64).max() > 2.0**52:
            return _("a count exceeds 2^52")
        rows = np.add.reduceat(counts, starts).astype(np.float64)
        signed = self.purpose is Purpose.VERDICTS
        all_verdicts = float(rows[0])
        if signed:
            rows[0] = counts[1] - counts[0]
        spread = noise_sd * np.sqrt(self.cells)
        weights = 1.0 / spread**2
        mean = float(rows @ weights / weights.sum())
        off = np.abs(rows - mean) / spread
        worst = int(off.argmax())
        if off[worst] > 8.0:
            return _(
                "the tables hold different numbers of rows: table %(table)s about %(n)s, all "
                "tables on average %(mean)s: %(times)s times the noise apart",
                table=worst + 1, n=numerals(f"{rows[worst]:,.0f}"),
                mean=numerals(f"{mean:,.0f}"), times=f"{off[worst]:.0f}",
            )  # fmt: skip
        total = max(all_verdicts if signed else mean, 0.0)
        most = total + 8.0 * (noise_sd + spread.min())
        cell = int(counts.argmin())
        if counts[cell] < (-most if signed else -8.0 * noise_sd):
            return _("cell %(cell)s holds %(n)s: negative by more than noise explains", cell=cell,
                     n=numerals(f"{counts[cell]:,}"))  # fmt: skip
        cell = int(counts.argmax())
        if counts[cell] > most:
            return _("cell %(cell)s holds %(n)s, more than the %(total)s rows in total", cell=cell,
                     n=numerals(f"{counts[cell]:,}"), total=numerals(f"{total:,.0f}"))  # fmt: skip
        return None

    # --- files ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the layout for JSON."""
        behind = [spent.to_dict() for spent in self.behind]
        record = vars(self) | {"cells": list(self.cells), "behind": behind}
        horizon, shuffled = record.pop("horizon"), record.pop("shuffled")
        record |= {} if horizon is None else {"horizon": horizon.to_dict()}
        return record | ({"shuffled": True} if shuffled else {})

    @classmethod
    def from_dict(cls, content: Any) -> "Layout":
        """Read back what `to_dict` wrote; raise `PlanError` on anything else."""
        record = entries(content, "a layout", _ENTRIES, {"horizon": object, "shuffled": bool})
        with translate_errors(PlanError, "a layout needs a share"):
            check_share(record["share"])
        behind = tuple(Spent.from_dict(spent) for spent in record["behind"])
        horizon = Horizon.from_dict(record["horizon"]) if "horizon" in record else None
        made = {"cells": tuple(record["cells"]), "behind": behind, "horizon": horizon}
        return cls(**record | made)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the layout atomically to a .hush file, for a coordinator."""
        files.write(path, "layout", {"layout": self.to_dict()}, {})

    @classmethod
    def from_file(cls, content: files.Content) -> "Layout":
        """Build the layout from a file: its own, or that of its plan."""
        if "plan" in content.manifest:
            return cls.of(Plan.from_file(content))
        return cls.from_dict(content.manifest.get("layout"))


@dataclass(frozen=True, eq=False)
class Sealed(Noised):
    """Counts of all sites with noise, of shape (n_cells,), their layout and their cost.

    They have a seal if the coordinator signed them.
    """

    kind: ClassVar[str] = "sealed"
    noun: ClassVar[str] = "a sealed result"
    hidden: ClassVar[bool] = True

    layout: Layout
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Seal | None = None

    @property
    def plan(self) -> Plan:  # type: ignore[override] # only the sites have the plan
        """Raise, because the hash functions are hidden from anyone who has only this result."""
        raise PlanError("the hash functions are hidden: open this result with the plan")

    @property
    def plan_id(self) -> str:
        """Return the id of the plan."""
        return self.layout.plan_id

    @property
    def detector(self) -> str:
        """Return the name of the detector that the tables are for, as in `Plan`."""
        return self.layout.detector

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return self.layout.n_cells

    @property
    def n_tables(self) -> int:
        """Return the number of histograms. Each one counts every row once."""
        return len(self.layout.cells)

    def counted_under(self, layout: Layout) -> bool:
        """Return whether these counts are under the plan of a layout."""
        return self.layout == layout

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases behind a plan that is drawn from this result after opening it."""
        return self.ledger.as_spent(self.detector, self.ledger.release_id)

    def open(self, plan: Plan) -> Release:
        """Return the release, given the plan that the sites share; the signature is on the file."""
        # The file states whether cells were shuffled; older results have the original order.
        plan = self.layout.check(replace(plan, hidden=False))
        counts = self.layout.restored(self.counts, plan)
        return Release(replace(plan, hidden=True), counts, self.ledger)

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return the content for a file: manifest entries and arrays."""
        entries = {"layout": self.layout.to_dict(), "ledger": self.ledger.to_dict()}
        return entries, {"counts": self.counts}

    @classmethod
    def from_file(cls, content: files.Content) -> "Sealed":
        """Build the object from a file; raise `PlanError` if its parts do not fit together."""
        record = content.said("sealed result", {"layout": object, "ledger": object})
        layout, ledger = Layout.from_dict(record["layout"]), Ledger.from_dict(record["ledger"])
        return cls(layout, content.array("counts"), ledger, Seal.from_file(content))
