"""Releases that go on: each period is released once, and running sums are decoded from all.

A site keeps the exact counts of its periods in `Periods`. What leaves is an `Increment` a period:
the counts of the periods so far, mixed by the plan's `Horizon`, plus noise. Increments of several
sites add up; `decoded` makes of those of all periods so far a release that scores rows.
"""

import secrets
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from hushtable import files
from hushtable.arguments import whole
from hushtable.counts.increments import Increment
from hushtable.counts.release import Release
from hushtable.counts.releasing import check_counts, check_plan, earlier_of
from hushtable.counts.sketch import Sketch
from hushtable.display import Displayed
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy import noise
from hushtable.privacy.accounting import GAUSSIAN
from hushtable.privacy.budget import check_public_delta
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Adjacency, Cost
from hushtable.privacy.terms import Terms


class Periods(Displayed):
    """The periods of one site so far: exact counts that stay, and what was released of them.

    The total epsilon is charged once, for all periods of the horizon. Each is released once: asked
    again, `release` returns the same increment, whatever it is given. A period without rows is
    released, too. Keep it where the rows are, and `save` it before an increment leaves.

    Parameters
    ----------
    plan : Plan
        A plan with a horizon.
    epsilon, delta, adjacency, rows_per_person
        As in `Sketch.release`, for all periods together; ``rows_per_person`` is of one period.
    start : int, default=1
        The first period of a site that joins later.
    after : Release or sequence of Release, optional
        Earlier releases about the same people, which epsilon counts as well. They are named before
        the first period: a later release names the stream, by a sum that `decoded` returned.

    Attributes
    ----------
    counts : ndarray of shape (t, n_cells), int64
        Exact counts of the t periods so far.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Periods, Plan, Schema, Sketch
    >>> schema = Schema([Feature.numeric("age", low=0, high=99)])
    >>> plan = Plan.draw(schema, epsilon=1.0, expected_rows=9000, horizon=3, random_state=0)
    >>> north = Periods(plan, epsilon=1.0)
    >>> for month in (30.0, 40.0, 50.0):
    ...     increment = north.release(Sketch.from_data(plan, np.full((3000, 1), month)))
    >>> len(north), round(increment.ledger.epsilon, 2)
    (3, 1.0)
    """

    def __init__(
        self,
        plan: Plan,
        epsilon: float | Terms,
        *,
        delta: float = 1e-6,
        adjacency: Adjacency = "add-remove",
        rows_per_person: int = 1,
        start: int = 1,
        after: Release | Sequence[Release] = (),
    ) -> None:
        if plan.horizon is None:
            raise UsageError(
                "the plan has no horizon: draw one that says for how many periods (horizon=, "
                "hushtable plan draw --horizon)"
            )
        self.horizon = plan.horizon
        check_plan(plan)
        self.start = whole("start", start, 1, self.horizon.periods)
        self.plan = plan
        self.terms = Terms.given(
            epsilon, delta=delta, adjacency=adjacency, rows_per_person=rows_per_person
        )
        check_public_delta(self.terms.delta, plan.expected_rows)
        unit = self.terms.sensitivity(plan.family.n_histograms, horizon=self.horizon)
        earlier = earlier_of(after, plan)
        before = Cost.total(spent.cost for spent in (*plan.behind, *earlier))
        scale = self.terms.scale(unit, before)
        library = noise.library()
        self.share = Share(secrets.token_hex(32), scale, library, earlier, start=self.start)
        # Of the periods before, a site that joins later has counted nothing and sent nothing.
        self.counts = np.zeros((self.start - 1, plan.family.n_cells), np.int64)
        self._released = self.counts.copy()
        self.ledger(1)  # which checks the terms, before anything is counted

    def __len__(self) -> int:
        """Return the last period that was released, 0 before the first."""
        return len(self._released)

    def __repr__(self) -> str:
        return f"Periods({len(self)} of {self.horizon.periods}, {self.terms.words()})"

    def ledger(self, period: int) -> Ledger:
        """Return what all periods cost together, as the increment of one states it."""
        plan, terms = self.plan, self.terms
        unit = terms.sensitivity(plan.family.n_histograms, horizon=plan.horizon)
        about = terms.mechanism, unit, terms.delta, (self.share,), plan.behind
        return Ledger(*about, accounting=GAUSSIAN, period=period)

    def release(self, sketch: Sketch, period: int | None = None) -> Increment:
        """Return what leaves the site for a period.

        Parameters
        ----------
        sketch : Sketch
            The rows of this period, and of no other, under the plan.
        period : int, optional
            Which one it is, from 1; by default the next. One that was released is returned as it
            was, and ``sketch`` is not looked at.

        Raises
        ------
        UsageError
            If the period is not the next one, or beyond the horizon.
        PlanError, PrivacyError
            If the sketch is of another plan, or may not be released.
        """
        upcoming = len(self) + 1
        period = upcoming if period is None else whole("period", period)
        if period < upcoming:
            return self.increment(period)
        self.check_within(period)
        if period > upcoming:
            raise UsageError(
                f"period={period}: the next one is {upcoming}; release those between first, with "
                "Sketch.zero(plan) where there were no rows"
            )
        if not isinstance(sketch, Sketch) or sketch.plan_id != self.plan.plan_id:
            raise PlanError("the sketch is of another plan than these periods")
        check_counts(sketch, self.terms.mechanism, self.terms.rows_per_person)
        counts = np.vstack([self.counts, sketch.counts])
        mixed = self.horizon.mixed(counts)
        noised = noise.add_noise(mixed, self.terms.mechanism, self.share.scale)
        self.counts, self._released = counts, np.vstack([self._released, noised])
        return self.increment(period)

    def check_within(self, period: int) -> None:
        """Raise `UsageError` if a period is beyond the horizon."""
        if period > self.horizon.periods:
            raise UsageError(
                f"period {period}: the plan is for {self.horizon.periods} periods; draw a new "
                "plan, at a budget of its own"
            )

    def increment(self, period: int) -> Increment:
        """Return what a period released, bit for bit."""
        period = whole("period", period, self.start, len(self))
        return Increment(self.plan, self._released[period - 1], self.ledger(period))

    # --- files --------------------------------------------------------------------------------

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the periods to a .hush file, atomically, which must not leave the site."""
        entries, arrays = self.plan.entries()
        entries["ledger"] = self.ledger(max(1, len(self))).to_dict()
        entries["terms"] = {
            "epsilon": self.terms.epsilon, "delta": self.terms.delta,
            "adjacency": self.terms.adjacency, "rows_per_person": self.terms.rows_per_person,
        }  # fmt: skip
        entries["start"] = self.start
        files.write(
            path, "periods", entries, arrays | {"counts": self.counts, "released": self._released}
        )

    @classmethod
    def from_file(cls, content: files.Content) -> "Periods":
        """Build the periods that a file carries; raises `PlanError` if it holds none."""
        said: dict[str, Any] = content.said(
            "periods", {"ledger": object, "terms": dict, "start": int}
        )
        try:
            periods = cls(Plan.from_file(content), Terms(**said["terms"]), start=said["start"])
        except (TypeError, UsageError, PrivacyError) as error:
            raise PlanError(f"periods: {error}") from None
        ledger = Ledger.from_dict(said["ledger"])
        periods.share = ledger.shares[0]
        counts, released = content.array("counts"), content.array("released")
        n, cells = counts.shape if counts.ndim == 2 else (0, 0)
        fit = counts.shape == released.shape and cells == periods.plan.family.n_cells
        fit &= counts.dtype == released.dtype == np.int64
        if not (fit and periods.start - 1 <= n <= periods.horizon.periods and (counts >= 0).all()):
            raise PlanError("periods: what was counted and what was released do not fit")
        periods.counts, periods._released = counts, released
        beyond = ledger.epsilon > periods.terms.epsilon * (1.0 + 1e-9)
        if beyond or ledger != periods.ledger(max(1, n)):
            raise PlanError("periods: the ledger is of another plan, or of other terms")
        return periods
