"""Periods of rows with one budget: an increment for each, and sums that are decoded from all.

A site's file of periods records each release before it leaves. Whatever fails after that, the same
increment is made again from the file, so that no period ever has two different noises.
"""

import itertools
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np

from hushtable import files
from hushtable.arguments import JsonObject, whole
from hushtable.counts.base import Noised
from hushtable.counts.release import Release, check_plan, earlier_of
from hushtable.counts.sketch import Sketch, check_counts
from hushtable.errors import FileError, PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy import mechanisms
from hushtable.privacy.accounting import GAUSSIAN
from hushtable.privacy.budget import ReleaseTerms, Spent, check_public_delta
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Adjacency, Cost


@dataclass(frozen=True, eq=False, repr=False)
class Increment(Noised):
    """Mixed counts of the periods so far, plus noise: everything that a period releases.

    Made by `Periods.release`. Increments of one period and of different sites add. An increment
    cannot score rows: `decoded` takes those of all periods so far.

    Attributes
    ----------
    plan : Plan
        The plan under which rows were counted; it has a horizon.
    counts : ndarray of shape (n_cells,), int64
        Mixed counts plus noise; may be negative.
    ledger : Ledger
        Total cost of all periods, paid once. Its shares are those of every period.
    seal : hushtable_federation.seal.Seal or None
        The coordinator's signature of the result of a round.

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
    mixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        horizon = self.ledger.sensitivity.horizon
        if horizon != self.plan.horizon:
            raise PlanError("the ledger counts other periods than those of the plan")
        if horizon is None or self.ledger.window is not None:
            raise PlanError("an increment needs a plan with a horizon, and is not a sum")
        late = max(self.ledger.shares, key=lambda share: share.start)
        if late.start > self.period:
            raise PlanError(
                f"the site whose share is {late.release[:12]} begins with period {late.start}, but "
                f"this is an increment of period {self.period}"
            )

    @property
    def period(self) -> int:
        """The period that released it, from 1."""
        assert self.ledger.period is not None
        return self.ledger.period

    def spent(self) -> tuple[Spent, ...]:
        """Return the earlier releases on which a plan drawn from these counts depends."""
        return self.ledger.as_spent(self.plan.detector, self.ledger.shares[0].release)


def decoded(increments: Sequence[Increment], window: int | None = None) -> Release:
    """Return a sum of counts of periods, as a release that scores rows.

    It has no cost beyond that of the increments.

    Parameters
    ----------
    increments : sequence of Increment
        One for each period so far, in any order; those of several sites added up.
    window : int, optional
        Number of periods in the sum, the latest ones; by default all.

    Raises
    ------
    PlanError, PrivacyError
        If a period is missing or given twice, or if a site that took part in one is missing later.

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
    for part in increments[1:]:
        if part.plan_id != plan.plan_id:
            raise PlanError(
                f"two increments of different plans cannot be added: {plan.difference(part.plan)}"
            )
    by_period = {part.period: part for part in increments}
    if set(by_period) != set(range(1, period + 1)):
        raise PlanError(
            f"increments of the periods {sorted(part.period for part in increments)}: needs each "
            f"from 1 to {max(by_period)} once (a sum of periods needs what all of them released)"
        )
    ordered = [by_period[t] for t in range(1, period + 1)]
    last = ordered[-1].ledger
    for part, following in itertools.pairwise(ordered):
        _check_sites(part, following.ledger)
    assert plan.horizon is not None  # increments ensure this
    weights = plan.horizon.weights(period, window)
    counts = np.rint(weights @ np.array([part.counts for part in ordered], np.float64))
    ledger = replace(last, window=period if window is None else int(window))
    return Release(plan, counts.astype(np.int64), ledger)


def _check_sites(old: Increment, following: Ledger) -> None:
    mine = {share.release for share in old.ledger.shares}
    shares = {share.release: (share.scale, following.pool_of(share)) for share in following.shares}
    for share in old.ledger.shares:
        scale, pool = shares.get(share.release, (0.0, old.ledger.pool_of(share)))
        if pool != old.ledger.pool_of(share):
            raise PrivacyError(
                "increments of two streams of rounds, or with and without masks, cannot be added"
            )
        if scale != share.scale:
            raise PrivacyError(
                f"the site whose share is {share.release[:12]} is in period {old.period}, but not "
                f"in period {following.period} with the same noise: its mixed counts cannot be "
                f"decoded. If what it sent for period {following.period} came late, add it (in a "
                "round: collect again). If it left permanently, decode up to period "
                f"{old.period}, and start a new plan"
            )
    for share in following.shares:
        if share.release not in mine and share.start != following.period:
            raise PrivacyError(
                f"the site whose share is {share.release[:12]} began with period {share.start}, "
                f"but is not in period {old.period}: its mixed counts cannot be decoded. Add what "
                f"it sent for each period since {share.start} (in a round: collect again)"
            )


class Periods:
    """The periods of one site so far: exact counts, which stay, and what was released of them.

    The total epsilon is charged once, for all periods of the horizon. Each period is released once:
    if called again for it, `release` returns the same increment, whatever its arguments. A period
    without rows is released too. Keep the file with the rows, and `save` it before an increment
    leaves.

    Parameters
    ----------
    plan : Plan
        A plan with a horizon.
    epsilon, delta, adjacency, rows_per_person
        As in `Sketch.release`, for all periods together; ``rows_per_person`` is per period.
    start : int, default=1
        The first period, for a site that joins later.
    after : Release or sequence of Release, optional
        Earlier releases about the same people, which also count towards epsilon. Give them before
        the first period: a later release names the stream, as a sum returned by `decoded`.

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
        epsilon: float | ReleaseTerms,
        *,
        delta: float = 1e-6,
        adjacency: Adjacency = "add-remove",
        rows_per_person: int = 1,
        start: int = 1,
        after: Release | Sequence[Release] = (),
    ) -> None:
        if plan.horizon is None:
            raise UsageError(
                "the plan has no horizon: draw one with the number of periods (horizon=, "
                "hushtable plan draw --horizon)"
            )
        self.horizon = plan.horizon
        check_plan(plan)
        self.start = whole("start", start, 1, self.horizon.periods)
        self.plan = plan
        self.terms = ReleaseTerms.given(
            epsilon, delta=delta, adjacency=adjacency, rows_per_person=rows_per_person
        )
        check_public_delta(self.terms.delta, plan.expected_rows)
        unit = self.terms.sensitivity(plan.family.n_histograms, horizon=self.horizon)
        earlier = earlier_of(after, plan)
        before = Cost.total(spent.cost for spent in (*plan.behind, *earlier))
        scale = self.terms.scale(unit, before)
        library = mechanisms.library()
        self.share = Share(secrets.token_hex(32), scale, library, earlier, start=self.start)
        # In the periods before it joined, a site has counted nothing and sent nothing.
        self.counts = np.zeros((self.start - 1, plan.family.n_cells), np.int64)
        self._released = self.counts.copy()
        self.ledger(1)  # checks the terms before anything is counted

    def __len__(self) -> int:
        """Return the last period that was released, 0 before the first."""
        return len(self._released)

    def __repr__(self) -> str:
        return f"Periods({len(self)} of {self.horizon.periods}, {self.terms.words()})"

    def ledger(self, period: int) -> Ledger:
        """Return the total cost of all periods, as stated in the increment of one."""
        plan, terms = self.plan, self.terms
        unit = terms.sensitivity(plan.family.n_histograms, horizon=plan.horizon)
        return Ledger(
            mechanism=terms.mechanism,
            sensitivity=unit,
            delta=terms.delta,
            shares=(self.share,),
            behind_plan=plan.behind,
            accounting=GAUSSIAN,
            period=period,
        )

    def release(self, sketch: Sketch, period: int | None = None) -> Increment:
        """Return the increment that leaves the site for a period.

        Parameters
        ----------
        sketch : Sketch
            The rows of this period, and no others, under the plan.
        period : int, optional
            Number of the period, from 1; by default the next. If the period was released already,
            the same increment is returned, and ``sketch`` is ignored.

        Raises
        ------
        UsageError
            If the period is not the next one, or is beyond the horizon.
        PlanError, PrivacyError
            If the sketch belongs to another plan, or may not be released.
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
        noised = mechanisms.add_noise(mixed, self.terms.mechanism, self.share.scale)
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
        """Return what a period released, bit-identical."""
        period = whole("period", period, self.start, len(self))
        return Increment(self.plan, self._released[period - 1], self.ledger(period))

    # --- files --------------------------------------------------------------------------------

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the periods to a .hush file, atomically; the file must not leave the site."""
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
        """Build the periods in a file; raise `PlanError` if it has none."""
        given: JsonObject = content.said("periods", {"ledger": object, "terms": dict, "start": int})
        try:
            periods = cls(
                Plan.from_file(content), ReleaseTerms(**given["terms"]), start=given["start"]
            )
        except (TypeError, UsageError, PrivacyError) as error:
            raise PlanError(f"periods: {error}") from None
        ledger = Ledger.from_dict(given["ledger"])
        periods.share = ledger.shares[0]
        counts, released = content.array("counts"), content.array("released")
        n, cells = counts.shape if counts.ndim == 2 else (0, 0)
        fit = counts.shape == released.shape and cells == periods.plan.family.n_cells
        fit &= counts.dtype == released.dtype == np.int64
        if not (fit and periods.start - 1 <= n <= periods.horizon.periods and (counts >= 0).all()):
            raise PlanError("periods: the counts and the releases do not fit each other")
        periods.counts, periods._released = counts, released
        beyond = ledger.epsilon > periods.terms.epsilon * (1.0 + 1e-9)
        if beyond or ledger != periods.ledger(max(1, n)):
            raise PlanError("periods: the ledger belongs to another plan, or to other terms")
        return periods


def release_period(
    path: Path,
    sketch: Sketch,
    terms: ReleaseTerms | None,
    *,
    start: int | None = None,
    period: int | None = None,
    after: Sequence[Release] = (),
) -> tuple[Increment, Periods]:
    """Release a period and record it in a file, which the first period creates.

    Parameters
    ----------
    path : path
        The periods of the site.
    sketch : Sketch
        The rows of this period, and no others.
    terms : ReleaseTerms or None
        The terms of all periods together. Needed to create the file, which then stores them.
    start, period, after
        As in `Periods` and `Periods.release`; like ``start``, ``after`` is only for a new file.

    Raises
    ------
    FileError
        If the file is damaged, or another process is releasing from it.
    UsageError, PlanError, PrivacyError
        If the terms differ from the file's, and in the cases of `Periods.release`.
    """
    with files.locked(path):
        periods = _opened(path, sketch, terms, start, after)
        if period is not None:
            periods.check_within(period)
        same = np.flatnonzero((periods.counts == sketch.counts).all(axis=1))
        if period is None and len(same) and sketch.counts.any():
            again = int(same[-1]) + 1
            raise UsageError(
                f"the sketch has exactly the counts of period {again}: if it is of the same "
                f"rows, ask for that period again (period {again}); if not, name the next one "
                f"({len(periods) + 1} of {periods.horizon.periods})"
            )
        before = len(periods)
        increment = periods.release(sketch, period)
        if len(periods) > before:
            periods.save(path)
    return increment, periods


def _opened(
    path: Path,
    sketch: Sketch,
    terms: ReleaseTerms | None,
    start: int | None,
    after: Sequence[Release],
) -> Periods:
    if not path.exists():
        if terms is None:
            raise UsageError(f"there is no {path} yet: give epsilon, for all periods, to create it")
        first = 1 if start is None else start
        return Periods(sketch.plan, terms, start=first, after=after)
    periods = files.read(path).expect("periods").build(Periods.from_file)
    if sketch.plan_id != periods.plan.plan_id:
        raise FileError(
            f"{path} holds periods of another plan than the sketch's: "
            f"{periods.plan.difference(sketch.plan)}"
        )
    if start not in (None, periods.start):
        raise UsageError(f"start={start}: {path} began with period {periods.start}")
    if after and {*earlier_of(after, periods.plan)} != {*periods.share.earlier}:
        raise UsageError(
            f"{path} was created after {len(periods.share.earlier)} earlier releases, not after "
            "these: earlier releases are named only with the first period; leave them out. A "
            "release made since then names the stream instead (the sum of hushtable decode)"
        )
    if terms is not None and terms != replace(periods.terms, share=terms.share):
        raise UsageError(
            f"{path} was created with {periods.terms.words()}, for all periods, not with "
            f"{terms.words()}: leave the terms out"
        )
    return periods
