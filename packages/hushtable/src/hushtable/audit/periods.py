"""The audit of a stream: detect a person by all that the periods of a horizon release."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hushtable.arguments import whole
from hushtable.audit.bounds import Finding, Floats, Ints, judge_ratios
from hushtable.audit.neighbours import People
from hushtable.counts.increments import Increment
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.horizon import Horizon
from hushtable.privacy.mechanisms import DEFAULT


def audit_periods(
    publish: Callable[[list[Floats]], Sequence[Increment]],
    plan: Plan,
    X: Floats,
    rows: Sequence[float] | Floats,
    *,
    periods: Sequence[int] | None = None,
    copies: int = 1,
    trials: int = 20,
    **claim: float,
) -> Finding:
    """Detect persons by the increments of all periods, with their rows and without them.

    As `audit_neighbours`, for a plan with a horizon. A person's rows of one period are in the
    increments of those that follow, so that the likelihood ratio is taken over all cells of all
    increments together. Persons who share no cell are trials of their own.

    ``publish`` is to be audited: it takes the rows of each period (n, d), of all T of them, and
    returns every increment that leaves, in any order; one period may be there several times.
    The adversary knows the rows ``X`` (n, d), which are the same in each period. ``rows`` are
    those of the persons (k, d), who have them in each of ``periods``, from 1: by default in as
    many as the horizon allows, the first and closest, which change the increments most. ``copies``
    and ``trials`` are as in `audit_neighbours`; ``claim`` is as `Claim` takes it, for one person
    over all periods.
    """
    horizon = plan.horizon
    if horizon is None:
        raise UsageError("the plan has no horizon: attack its releases with audit_neighbours")
    chosen = _chosen(horizon, periods)
    # How often rows of these periods, and of all, are in each increment.
    times, known = _mixed(horizon, chosen), np.cumsum(horizon.factor)
    people = People(X, np.atleast_2d(np.asarray(rows, np.float64)), None, copies)

    def statistics(one: Increment, with_them: int) -> list[Floats]:
        if one.plan_id != plan.plan_id:
            raise UsageError("an increment of another plan: needs all of the plan that is given")
        mine, all_rows = int(times[one.period - 1]), int(known[one.period - 1])
        people.look_at(one, with_them * mine, all_rows)
        return people.statistics(one, mine, all_rows)

    seen: tuple[list[Floats], ...] = ([], [])
    for with_them, case in enumerate(seen):
        months = [people.cases[with_them * (t in chosen)] for t in range(1, horizon.periods + 1)]
        for _ in range(trials):
            case.append(np.sum([statistics(one, with_them) for one in publish(months)], axis=0))
    absent, present = (np.concatenate(case, axis=1) for case in seen)
    finding = judge_ratios(
        "likelihood ratio of a stream",
        list(zip(absent, present, strict=True)),
        DEFAULT,  # which every horizon has
        np.outer(times, people.changes(plan).of_one()).ravel(),
        **claim,
    )
    return replace(finding, p_noise=people.residuals.p_value())


def _chosen(horizon: Horizon, periods: Sequence[int] | None) -> set[int]:
    """Return the periods in which a person has rows, from 1; the dearest by default."""
    if periods is None:
        return set(range(1, 1 + horizon.participations * horizon.apart, horizon.apart))
    chosen = {whole("a period", period, 1, horizon.periods) for period in periods}
    if not chosen or len(chosen) < len(periods):
        raise UsageError(f"periods={periods!r}: needs one or more, each once")
    return chosen


def _mixed(horizon: Horizon, chosen: set[int]) -> Ints:
    """Return how often a row in each of these periods is in each release, (T,)."""
    times = np.zeros(horizon.periods, np.int64)
    for period in chosen:
        times[period - 1 :] += horizon.factor[: horizon.periods - period + 1]
    return times
