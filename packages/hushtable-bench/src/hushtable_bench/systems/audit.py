"""The audit of neighbouring data: detect rows in releases of data with and without them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.arguments import generator, whole
from hushtable.counts.base import Noised
from hushtable.counts.periods import Increment
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.data.schema import Feature
from hushtable.data.typed import open_rows
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon
from hushtable.privacy.mechanisms import DEFAULT, add_noise, named
from hushtable_bench.systems.bounds import (
    Claim,
    Floats,
    Ints,
    Outcome,
    Residuals,
    area,
    canary_bound,
    exact_cells,
    judge_ratios,
    least_epsilon,
    p_of_release,
    stated_scale,
)


def audit_neighbours(
    publish: Callable[[Floats], Release | Sequence[Release]],
    X: Floats,
    rows: Sequence[float] | Floats,
    *,
    instead: Floats | None = None,
    copies: int = 1,
    trials: int = 1000,
    **claim: float,
) -> Outcome:
    """Detect rows from releases of data with them and without them, end to end.

    Like `audit_noise`, but through everything that a site runs: reading, hashing, counting,
    noise, files. The adversary knows all other rows, the plan and the noise; the likelihood
    ratio is computed over all cells that a row changes, in all releases about it together.

    Several rows make one release as informative as several releases: if they share no cell, each
    row is a separate trial, because the noise on each cell is drawn separately. (Cells that two
    rows share are left out: `apart` finds rows without shared cells.) With 300 rows, ten releases
    with them and ten without are 3,000 trials.

    All other cells are examined too: their counts are known, and therefore the noise on them, which
    must be neither smaller than stated nor shared (`hushtable_bench.systems.bounds`).

    ``publish`` is the function to audit: it takes rows (n, d) and returns a release, or all
    releases of these rows in succession. It must always use the same plan, unless that is drawn
    from an earlier one of these releases; `UsageError` is raised if the plan depends on the rows,
    which `audit_replay` attacks. The adversary knows the rows ``X`` (n, d); ``rows`` are the row in
    question (d,), or one row of each of k persons (k, d). Under replace-one, ``instead`` (k, d) are
    these persons' rows in the other case; by default they have none. Each person has ``copies`` of
    a row: a person with several rows changes the counts most if all are equal. ``trials`` is the
    number of releases with the rows, and also of those without them. ``claim`` are the arguments
    of `Claim`, for one person over everything that ``publish`` returns.
    """
    people = People(X, np.atleast_2d(np.asarray(rows, np.float64)), instead, copies)
    sums: tuple[list[Floats], ...] = ([], [])
    for with_them, everyone in enumerate(people.cases):
        for _ in range(trials):
            published = publish(everyone)
            releases = [published] if isinstance(published, Release) else list(published)
            people.check(releases)
            sums[with_them].append(np.sum([people.statistics(r) for r in releases], axis=0))
            for r in releases:
                people.look_at(r, with_them)
    absent, present = (np.concatenate(case, axis=1) for case in sums)
    finding = judge_ratios(
        "likelihood ratio on neighbouring data",
        list(zip(absent, present, strict=True)),
        releases[0].ledger.mechanism,
        people.changes(releases[0].plan).of_one(),
        **claim,
    )
    return replace(finding, p_noise=people.residuals.p_value())


def apart(plan: Plan, rows: Floats) -> Floats:
    """Return those of the rows (n, d), in order, that share no cell with an earlier one."""
    taken = np.zeros(plan.family.n_cells, np.bool_)
    kept = []
    for i, row in enumerate(rows):
        cells = np.flatnonzero(Sketch.from_data(plan, row[None]).counts)
        if not taken[cells].any():
            taken[cells] = True
            kept.append(i)
    return rows[kept]


@dataclass(frozen=True, slots=True)
class _Changes:
    """Changes that persons make under one plan: person, cell and count, one entry per change."""

    without: Ints
    person: Ints
    cell: Ints
    added: Ints
    #: Change by all of them together, in every cell.
    together: Ints

    def of_one(self) -> Ints:
        """Return the contribution of the person who changes the counts most."""
        most = int(np.bincount(self.person).argmax())
        return np.asarray(self.added[self.person == most], np.int64)


class People:
    """Persons in question, together with rows that are known."""

    def __init__(self, X: Floats, rows: Floats, instead: Floats | None, copies: int) -> None:
        self.n = len(rows)
        self._rows, self._instead, self._copies = rows, instead, copies
        absent = X[:0] if instead is None else np.repeat(instead, copies, axis=0)
        self.cases = np.vstack([X, absent]), np.vstack([X, np.repeat(rows, copies, axis=0)])
        self._plan = ""
        self._known: dict[str, _Changes] = {}
        self.residuals = Residuals()

    def check(self, releases: Sequence[Release]) -> None:
        """Raise `UsageError` if a plan can depend on the rows."""
        public = []
        for at, release in enumerate(releases):
            earlier = {one.release_id for one in releases[:at]}
            if not earlier.intersection(spent.release for spent in release.plan.behind):
                public.append(release.plan.plan_id)
        self._plan = self._plan or " ".join(public)
        if self._plan != " ".join(public):
            raise UsageError("the plan depends on the rows: attack it with audit_replay")

    def changes(self, plan: Plan) -> _Changes:
        """Return the changes that each person makes in the counts under a plan."""
        if plan.plan_id not in self._known:
            footprints = [self._footprint(plan, i) for i in range(self.n)]
            cells = [np.flatnonzero(footprint) for footprint in footprints]
            person = np.repeat(np.arange(self.n), [len(person_cells) for person_cells in cells])
            cell = np.concatenate(cells)
            added = np.concatenate([f[at] for f, at in zip(footprints, cells, strict=True)])
            alone = np.bincount(cell, minlength=plan.family.n_cells)[cell] == 1
            if not alone.any():
                raise UsageError(
                    "every cell that a row changes is also changed by another, so nothing "
                    "separates them: give rows that share no cell (see apart), or a single row"
                )
            without = Sketch.from_data(plan, self.cases[False]).counts
            of_each = person[alone], cell[alone], added[alone]
            together = np.sum(footprints, axis=0)
            self._known[plan.plan_id] = _Changes(without, *of_each, together)
        return self._known[plan.plan_id]

    def _footprint(self, plan: Plan, i: int) -> Ints:
        change = Sketch.from_data(plan, self._rows[i : i + 1]).counts
        if self._instead is not None:
            change = change - Sketch.from_data(plan, self._instead[i : i + 1]).counts
        return np.asarray(change * self._copies, np.int64)

    def look_at(self, release: Noised, times: int, known: int = 1) -> None:
        """Record the noise on all cells of a release; arguments as in `statistics`."""
        changes = self.changes(release.plan)
        noise = release.counts - known * changes.without - times * changes.together
        self.residuals.add(noise, release.ledger.mechanism, stated_scale(release))

    def statistics(self, release: Noised, times: int = 1, known: int = 1) -> list[Floats]:
        """Return, for each person, the log likelihood ratio and the count of exact cells.

        The release has a person's rows ``times`` times, and the rows that are ``known``.
        """
        changes = self.changes(release.plan)
        x = release.counts[changes.cell] - known * changes.without[changes.cell]
        added, noise = times * changes.added, named(release.ledger.mechanism)
        ratio = noise.log_ratio(stated_scale(release), x, added)
        exact = exact_cells(x, added)
        values = (np.bincount(changes.person, each, self.n) for each in (ratio, exact))
        return [np.asarray(each, np.float64) for each in values]


# --- the likelihood ratio of one row's cells ----------------------------------------------------


def audit_noise(
    noise: Callable[[Ints], Ints] | None = None,
    *,
    mechanism: str,
    scale: float,
    tables: int,
    draws: int = 30_000,
    **claim: float,
) -> Outcome:
    """Detect a row by the likelihood ratio of its m cells, through the real sampler.

    The adversary knows all other rows, so that only the m cells of the row in question depend on
    it. The best test uses the likelihood ratio (Neyman and Pearson); a second one counts cells that
    hold the exact count, in case noise is missing. The threshold is chosen on one half of the draws
    and evaluated on the other by Clopper-Pearson intervals: epsilon is at least
    ln((true positives - delta) / false positives) (Jagielski, Ullman and Oprea, 2020). Gaussian
    noise is also compared with its own trade-off of errors, which needs far fewer draws: noise of a
    third of the scale is found in more than 999 of 1,000 audits of 1,000 draws, at an epsilon of 1
    and 95% confidence. All cells of all draws together also show whether the noise is as large as
    stated, and separate for each cell: see `hushtable_bench.systems.bounds`.

    ``noise`` is the function to audit: it takes counts (draws, m), int64, and returns them with
    noise; by default it is the sampler of every release. ``mechanism`` and ``scale`` are those that
    the release claims; ``tables`` is m; ``draws`` is the number of releases of the m cells with the
    row, and also of those without it; ``claim`` are the arguments of `Claim`: epsilon, delta,
    confidence.
    """
    if noise is None:

        def noise(counts: Ints) -> Ints:
            return add_noise(counts.ravel(), mechanism, scale).reshape(counts.shape)

    cases = [noise(np.full((draws, tables), present, np.int64)) for present in (0, 1)]
    residuals = Residuals()
    for present, x in enumerate(cases):
        residuals.add(x - present, mechanism, scale)
    single = np.ones(tables, np.int64)
    ratios = [named(mechanism).log_ratio(scale, x, single).sum(axis=1) for x in cases]
    exact = [exact_cells(x, single).sum(axis=1) for x in cases]
    finding = judge_ratios(
        "likelihood ratio of one row's cells",
        [(ratios[0], ratios[1]), (exact[0], exact[1])],
        mechanism,
        single,
        **claim,
    )
    return replace(finding, p_noise=residuals.p_value())


# --- canaries in one release --------------------------------------------------------------------


def audit_canaries(
    release: Callable[[Sketch], Release],
    plan: Plan,
    *,
    canaries: int = 1000,
    random_state: "int | np.random.Generator | None" = None,
    **claim: float,
) -> Outcome:
    """Guess, from one release, which of many canary rows are in it.

    Canary rows are drawn on the plan's ranges and categories; a coin decides for each whether it is
    counted. A canary's score is the mean over its cells of the released count, minus what the other
    canaries there are expected to add. The highest third are guessed to be in, the lowest third to
    be out; the number of right guesses bounds epsilon (Steinke, Nasr and Jagielski, *Privacy
    Auditing with One (1) Training Run*, 2023, theorem 5.2). The noise on all cells, whose counts
    are known here, is examined too: see `hushtable_bench.systems.bounds`.

    Parameters
    ----------
    release : callable
        The function to audit: it takes a sketch and returns its release.
    plan : Plan
        The plan to count under; deep tables separate canaries best.
    canaries : int
        Their number.
    random_state : int or numpy Generator, optional
        Seed of the canaries and coins (not of the noise).
    **claim : float
        The arguments of `Claim`: epsilon, delta, confidence.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_bench.systems import audit_canaries
    >>> schema = Schema([Feature.numeric(name, low=0, high=1) for name in "abcdef"])
    >>> plan = Plan.draw(schema, n_tables=20, random_state=0)
    >>> claim = {"epsilon": 1.0, "delta": 1e-6, "canaries": 100}
    >>> audit_canaries(lambda sketch: sketch.release(epsilon=1.0), plan, **claim).rejects
    False
    """
    claimed = Claim(**claim)
    source = generator(random_state)
    rows = pa.table({f.name: _random_values(f, canaries, source) for f in plan.schema.features})
    included = source.random(canaries) < 0.5
    sketch = Sketch.from_data(plan, rows.filter(pa.array(included)))
    released = release(sketch)
    crowd = Sketch.from_data(plan, rows).counts
    values = (released.counts - 0.5 * crowd) / np.maximum(np.abs(crowd), 1)
    encoder = Encoder(plan.schema)
    reader = open_rows(rows, plan.schema)
    scores = np.concatenate([plan.family.sum(encoder.encode(b), values) for b in reader.read()])
    order = np.argsort(scores, kind="stable")
    third = canaries // 3
    right = int(included[order[-third:]].sum() + (~included[order[:third]]).sum())
    bound = canary_bound(canaries, 2 * third, right, claimed.delta, claimed.error)
    auc = area(scores[~included], scores[included])
    p_noise = p_of_release(released, sketch.counts)
    return claimed.finding("canaries in one release", bound, canaries, auc=auc, p_noise=p_noise)


def _random_values(feature: Feature, n: int, rng: "np.random.Generator") -> Any:
    if feature.kind == "numeric":
        return feature.low + rng.random(n) * (feature.high - feature.low)
    if not feature.categories:
        return pa.nulls(n, pa.string())
    return [feature.categories[i] for i in rng.integers(len(feature.categories), size=n)]


# --- replaying a whole release ------------------------------------------------------------------


def audit_replay(
    publish: Callable[[Floats], Release],
    X: Floats,
    row: Sequence[float] | Floats,
    *,
    trials: int = 200,
    **claim: float,
) -> Outcome:
    """Detect a row by repeating what the site did, with and without it, and comparing the results.

    This finds problems that no statistic of the noise finds: a plan that depends on the data (the
    received plan is the one that the row would lead to), and noise that can be drawn again.

    ``publish`` is the function to audit: it takes rows (n, d) and returns the release that the site
    would send, including its plan. The adversary knows the rows ``X`` (n, d), and asks about
    ``row`` (d,). ``trials`` is the number of releases with the row, and also of those without it;
    ``claim`` are the arguments of `Claim`.
    """
    claimed = Claim(**claim)
    both = np.vstack([X, np.asarray(row, np.float64)])
    without, replay = publish(X), publish(both)

    def looks_present(release: Release) -> bool:
        if replay.plan.plan_id != without.plan.plan_id:
            return release.plan.plan_id == replay.plan.plan_id
        return np.array_equal(release.counts, replay.counts)

    false = sum(looks_present(publish(X)) for _ in range(trials))
    true = sum(looks_present(publish(both)) for _ in range(trials))
    delta, error = claimed.delta, claimed.error / 4.0
    cases = (false, true), (trials - true, trials - false)
    bound = max(0.0, *(float(least_epsilon(*case, trials, delta, error)) for case in cases))
    return claimed.finding("replay of the whole release", bound, 2 * trials)


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
) -> Outcome:
    """Detect persons from the increments of all periods, with their rows and without them.

    Like `audit_neighbours`, for a plan with a horizon. A person's rows of one period are in the
    increments of the following periods, so the likelihood ratio is computed over all cells of all
    increments together. Persons who share no cell are separate trials.

    ``publish`` is the function to audit: it takes the rows of each period (n, d), of all T of them,
    and returns every increment that leaves, in any order; a period may occur several times. The
    adversary knows the rows ``X`` (n, d), which are the same in each period. ``rows`` are those of
    the persons (k, d), who have them in each of ``periods``, from 1: by default in as many as the
    horizon allows, the first and closest, which change the increments most. ``copies`` and
    ``trials`` are as in `audit_neighbours`; ``claim`` are the arguments of `Claim`, for one person
    over all periods.
    """
    horizon = plan.horizon
    if horizon is None:
        raise UsageError("the plan has no horizon: attack its releases with audit_neighbours")
    chosen = _chosen(horizon, periods)
    # How many times rows of these periods, and of all periods, are in each increment.
    times, known = _mixed(horizon, chosen), np.cumsum(horizon.factor)
    people = People(X, np.atleast_2d(np.asarray(rows, np.float64)), None, copies)

    def statistics(i: Increment, with_them: int) -> list[Floats]:
        if i.plan_id != plan.plan_id:
            raise UsageError("an increment of another plan: needs all increments of the given plan")
        mine, all_rows = int(times[i.period - 1]), int(known[i.period - 1])
        people.look_at(i, with_them * mine, all_rows)
        return people.statistics(i, mine, all_rows)

    sums: tuple[list[Floats], ...] = ([], [])
    for with_them, case in enumerate(sums):
        months = [people.cases[with_them * (t in chosen)] for t in range(1, horizon.periods + 1)]
        for _ in range(trials):
            case.append(np.sum([statistics(i, with_them) for i in publish(months)], axis=0))
    absent, present = (np.concatenate(case, axis=1) for case in sums)
    finding = judge_ratios(
        "likelihood ratio of a stream",
        list(zip(absent, present, strict=True)),
        DEFAULT,  # the mechanism of every horizon
        np.outer(times, people.changes(plan).of_one()).ravel(),
        **claim,
    )
    return replace(finding, p_noise=people.residuals.p_value())


def _chosen(horizon: Horizon, periods: Sequence[int] | None) -> set[int]:
    """Return the periods in which a person has rows, from 1; the most expensive by default."""
    if periods is None:
        return set(range(1, 1 + horizon.participations * horizon.apart, horizon.apart))
    chosen = {whole("a period", period, 1, horizon.periods) for period in periods}
    if not chosen or len(chosen) < len(periods):
        raise UsageError(f"periods={periods!r}: needs one or more, each once")
    return chosen


def _mixed(horizon: Horizon, chosen: set[int]) -> Ints:
    """Return how many times a row in each of these periods is in each release, (T,)."""
    times = np.zeros(horizon.periods, np.int64)
    for period in chosen:
        times[period - 1 :] += horizon.factor[: horizon.periods - period + 1]
    return times
