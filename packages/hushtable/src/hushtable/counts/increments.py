"""Increments, one for each period, and how sums of periods are decoded from all of them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.counts.release import Release
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.composition import Spent
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.merging import check_parts
from hushtable.privacy.seal import Seal


@dataclass(frozen=True, eq=False)
class Increment(Noised):
    """Mixed counts of the periods so far, plus noise: all that a period releases.

    Made by `Periods.release`. Increments of one period and of different sites add. By itself it
    scores nothing: `decoded` takes those of all periods so far.

    Attributes
    ----------
    plan : Plan
        What was counted under; it has a horizon.
    counts : ndarray of shape (n_cells,), int64
        Mixed counts plus noise; may be negative.
    ledger : Ledger
        What all periods cost together, paid once. Its shares are those of every period.
    seal : Seal or None
        Of the result of a round that its coordinator signed.

    Examples
    --------
    >>> from hushtable import Feature, Periods, Plan, Schema, Sketch
    >>> schema = Schema([Feature.numeric("age", low=0, high=99)])
    >>> plan = Plan.draw(schema, epsilon=1.0, expected_rows=9000, horizon=3, random_state=0)
    >>> north, south = (Periods(plan, epsilon=1.0) for _ in range(2))
    >>> both = north.release(Sketch.zero(plan)) + south.release(Sketch.zero(plan))
    >>> both.period
    1
    """

    kind: ClassVar[str] = "increment"
    noun: ClassVar[str] = "an increment"
    adds: ClassVar[bool] = True
    mixed: ClassVar[bool] = True

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Seal | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        unit = self.ledger.sensitivity
        if unit.tables != self.plan.family.n_histograms or unit.horizon != self.plan.horizon:
            raise PlanError("the ledger counts other tables, or other periods, than the plan has")
        if unit.horizon is None or self.ledger.window is not None:
            raise PlanError("an increment needs a plan with a horizon, and is no sum")
        check_parts(self.ledger)
        late = max(self.ledger.shares, key=lambda share: share.start)
        if late.start > self.period:
            raise PlanError(
                f"the site whose share is {late.release[:12]} begins with period {late.start}, and "
                f"this is an increment of period {self.period}"
            )
        if self.ledger.behind_plan != self.plan.behind:
            raise PlanError("the ledger leaves out, or adds to, the releases behind the plan")

    @property
    def period(self) -> int:
        """The period that released it, from 1."""
        assert self.ledger.period is not None
        return self.ledger.period

    def __add__(self, other: "Increment") -> "Increment":
        if not self._addable(other):
            return NotImplemented
        return Increment(self.plan, self.counts + other.counts, self.ledger + other.ledger)

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
        return self.ledger.as_spent(self.plan.detector, self.ledger.shares[0].release)

    @classmethod
    def from_file(cls, content: files.Content) -> "Increment":
        """Build the increment that a file carries; raises `PlanError` if it holds none."""
        ledger = Ledger.from_dict(content.said("increment", {"ledger": object})["ledger"])
        plan, seal = Plan.from_file(content), Seal.from_file(content)
        return cls(plan, content.array("counts"), ledger, seal)


def decoded(increments: Sequence[Increment], window: int | None = None) -> Release:
    """Return a sum of counts of periods, as a release that scores rows.

    It costs nothing that the increments did not.

    Parameters
    ----------
    increments : sequence of Increment
        Of all periods so far, each once, in any order; those of several sites added up.
    window : int, optional
        How many periods the sum has, the latest ones; by default all.

    Raises
    ------
    PlanError, PrivacyError
        If a period is missing or there twice, or a site that took part is in no later period.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Periods, Plan, Schema, Sketch, decoded
    >>> schema = Schema([Feature.numeric("age", low=0, high=99)])
    >>> plan = Plan.draw(schema, epsilon=1.0, expected_rows=9000, horizon=3, random_state=0)
    >>> north, month = Periods(plan, epsilon=1.0), np.full((3000, 1), 40.0)
    >>> increments = [north.release(Sketch.from_data(plan, month)) for _ in range(3)]
    >>> model, latest = decoded(increments), decoded(increments, window=1)
    >>> 8500 < model.n_rows < 9500, round(model.ledger.epsilon, 2)
    (True, 1.0)
    """
    if not increments:
        raise UsageError("increments=[]: needs those of all periods so far")
    plan, period = increments[0].plan, len(increments)
    for one in increments[1:]:
        if one.plan_id != plan.plan_id:
            raise PlanError(
                f"two increments of different plans make no sum: {plan.difference(one.plan)}"
            )
    by_period = {one.period: one for one in increments}
    if set(by_period) != set(range(1, period + 1)):
        raise PlanError(
            f"increments of the periods {sorted(one.period for one in increments)}: needs each "
            f"from 1 to {max(by_period)} once (a sum of periods needs what all of them released)"
        )
    ordered = [by_period[t] for t in range(1, period + 1)]
    last = ordered[-1].ledger
    for one, following in itertools.pairwise(ordered):
        _check_sites(one, following.ledger)
    assert plan.horizon is not None  # which increments see to
    weights = plan.horizon.weights(period, window)
    counts = np.rint(weights @ np.array([one.counts for one in ordered], np.float64))
    ledger = replace(last, window=period if window is None else int(window))
    return Release(plan, counts.astype(np.int64), ledger)


def _check_sites(one: Increment, following: Ledger) -> None:
    """Raise `PrivacyError` unless those who sent one increment, and who begin, sent the next."""
    mine = {share.release for share in one.ledger.shares}
    shares = {share.release: (share.scale, following.pool_of(share)) for share in following.shares}
    for share in one.ledger.shares:
        scale, pool = shares.get(share.release, (0.0, one.ledger.pool_of(share)))
        if pool != one.ledger.pool_of(share):
            raise PrivacyError(
                "increments of two streams of rounds, or with masks and without, make no sum"
            )
        if scale != share.scale:
            raise PrivacyError(
                f"the site whose share is {share.release[:12]} is in period {one.period}, and not "
                f"in period {following.period} with the same noise: its mixed counts cannot be "
                f"decoded. If what it sent for period {following.period} came late, add it (in a "
                "round: collect again). If it left for good, decode up to period "
                f"{one.period}, and begin a new plan"
            )
    for share in following.shares:
        if share.release not in mine and share.start != following.period:
            raise PrivacyError(
                f"the site whose share is {share.release[:12]} began with period {share.start}, "
                f"and is not in period {one.period}: its mixed counts cannot be decoded. Add what "
                f"it sent for each period since {share.start} (in a round: collect again)"
            )
