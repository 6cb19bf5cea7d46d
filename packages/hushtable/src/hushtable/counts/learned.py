"""The learned model: merged counts, with the verdicts that change their scores."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import Verdicts
from hushtable.entries import entries
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import TOTALS, Labelled
from hushtable.plans.plan import Plan
from hushtable.plans.score_rule import exact
from hushtable.plans.verdicts import Judged, noised_verdict_values, spread_of, verdict_values
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.seal import Seal

#: Of the arrays of verdicts in a file: what their names begin with.
_OF = "verdicts."


@dataclass(frozen=True, eq=False)
class LearnedModel(Counts):
    """Counts that score rows, with verdicts that raise and lower the scores of their cells.

    A detector that has learned scores by it, and saves it.

    Attributes
    ----------
    model : Sketch, Release or LocalModel
        The counts.
    verdicts : Verdicts, Release or LocalModel
        Exact verdicts under the model's plan, or those of all sites under ``Plan.verdicts``.

    Raises
    ------
    PlanError
        If the verdicts are of another model.
    UsageError
        If verdicts cannot change the scores of these counts.
    """

    kind: ClassVar[str] = "detector"
    noun: ClassVar[str] = "a model with verdicts"

    model: Counts
    verdicts: Counts
    plan: Plan = field(init=False, repr=False)
    counts: NDArray[np.int64] = field(init=False, repr=False)
    ledger: Ledger | None = field(init=False, repr=False)
    sampled: bool = field(init=False, repr=False)
    tally: NDArray[np.int64] | None = field(init=False, repr=False)
    seal: Seal | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        plan, given = self.model.plan.first_pass(), self.verdicts.plan
        family = given.family
        if isinstance(self.verdicts, Verdicts):
            if given.plan_id != plan.plan_id:
                raise PlanError(
                    "these verdicts were counted under another plan than the model, and say "
                    f"nothing of its tables: {plan.difference(given)}"
                )
        elif not isinstance(family, Labelled) or self.verdicts.ledger is None:
            raise UsageError(
                f"{self.verdicts.noun} of a {given.detector!r} plan: needs verdicts, exact ones or "
                "a release under Plan.verdicts of the model"
            )
        elif not family.model.same(plan.family):
            raise PlanError(
                "these verdicts were released under other hash functions than the model's: count "
                "them again under Plan.verdicts of this model"
            )

        for name in ("plan", "counts", "ledger", "sampled", "tally", "seal"):
            object.__setattr__(self, name, getattr(self.model, name))

    @property
    def unlearned(self) -> Counts:
        """The model."""
        return self.model

    @property
    def adds(self) -> bool:  # type: ignore[override] # as its model does
        """Whether counts of other rows can be added to the model's."""
        return self.model.adds

    @property
    def n_rows(self) -> int:
        """Rows counted by the model."""
        return self.model.n_rows

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell of the model, in counts."""
        return self.model.noise_sd

    @property
    def may_leave(self) -> bool:  # type: ignore[override] # as both parts may
        """Whether no exact counts are in it."""
        return self.model.may_leave and self.verdicts.may_leave

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases of the model and of the verdicts."""
        found = (*self.model.spent(), *self.verdicts.spent())
        return tuple({one.release: one for one in found}.values())

    def cell_scores(self) -> NDArray[np.float64]:
        """Return the score of every cell, in bits: the model's, and what verdicts add."""
        of_model = self.model.cell_scores()
        return exact(of_model + self._of_verdicts(of_model))

    def verdict_scores(self) -> NDArray[np.float64]:
        """Return what verdicts add to the score of every cell, in bits."""
        return self._of_verdicts(self.model.cell_scores())

    def _of_verdicts(self, of_model: NDArray[np.float64]) -> NDArray[np.float64]:
        given, family = self.verdicts, self.plan.family
        share, spread = self._share(), self.spread(of_model)
        if isinstance(given, Verdicts):
            judged = Judged(given.outliers, given.n_outliers, given.fine, given.n_fine)
            return verdict_values(judged, share, family.offsets, spread)
        difference, n_verdicts = given.counts[TOTALS:], max(0, given.n_rows)
        return noised_verdict_values(
            difference, given.noise_sd, n_verdicts, family.n_tables, spread
        )

    def spread(self, of_model: NDArray[np.float64]) -> float:
        """Return the spread of the model's scores, given those of its cells (n_cells,)."""
        return spread_of(of_model, self._share(), self.plan.family.offsets)

    def _share(self) -> NDArray[np.float64]:
        """Return the share of all counted rows in each cell; none is below 0."""
        first, offsets = self.plan.first_counts, self.plan.family.offsets
        rows = np.maximum(self.counts if first is None else first, 0).astype(np.float64)
        each = np.maximum(np.add.reduceat(rows, offsets[:-1]), 1.0)
        return np.asarray(rows / np.repeat(each, np.diff(offsets)), np.float64)

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of the model and the verdicts: manifest entries and arrays."""
        said, arrays = self.model.entries()
        given, found = self.verdicts, {"counts": self.verdicts.counts}
        told: dict[str, Any] = {}
        if isinstance(given, Verdicts):
            found = {"outliers": given.outliers, "fine": given.fine}
        else:
            assert given.ledger is not None
            # Its hash functions are the model's.
            told = {"plan": given.plan.to_dict(), "ledger": given.ledger.to_dict()}
            told |= {"own": given.own} if isinstance(given, LocalModel) else {}
        named = {f"{_OF}{name}": array for name, array in found.items()}
        return said | {"verdicts": told}, arrays | named

    @classmethod
    def from_file(cls, content: files.Content) -> "LearnedModel":
        """Build the model that a file carries, and its verdicts; raises `PlanError`."""
        model = model_from_file(content)
        told = content.said("verdicts", {"verdicts": dict})["verdicts"]
        if not told:
            arrays = (content.array(f"{_OF}{name}") for name in ("outliers", "fine"))
            return cls(model, Verdicts(model.plan.first_pass(), *arrays))
        said = entries(told, "verdicts", {"plan": dict, "ledger": object}, {"own": str})
        plan = Plan.from_content(said["plan"], model.plan.family.arrays())
        counts, ledger = content.array(f"{_OF}counts"), Ledger.from_dict(said["ledger"])
        if "own" in said:
            return cls(model, LocalModel(plan, counts, ledger, said["own"]))
        return cls(model, Release(plan, counts, ledger))


def model_from_file(content: files.Content) -> Counts:
    """Build the counts of a detector's file, of whichever kind; raises `PlanError`."""
    entries = content.manifest
    made = LocalModel if "own" in entries else Release if "ledger" in entries else Sketch
    counts: Counts = made.from_file(content)
    return counts
