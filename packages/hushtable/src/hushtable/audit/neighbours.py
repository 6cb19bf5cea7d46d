"""The audit of neighbouring data: detect rows in releases of data with and without them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushtable.audit.bounds import Finding, Floats, Ints, exact_cells, judge_ratios
from hushtable.audit.residuals import Residuals, stated_scale
from hushtable.counts.base import Noised
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import named


def audit_neighbours(
    publish: Callable[[Floats], Release | Sequence[Release]],
    X: Floats,
    rows: Sequence[float] | Floats,
    *,
    instead: Floats | None = None,
    copies: int = 1,
    trials: int = 1000,
    **claim: float,
) -> Finding:
    """Detect rows by releases of data with them and without them, end to end.

    As `audit_noise`, but through everything that a site runs: reading, hashing, counting,
    noise, files. The adversary knows all other rows, the plan and the noise; the likelihood
    ratio is taken over all cells that a row changes, in all releases about it together.

    Several rows make one release as telling as several releases: where they share no cell,
    each is a trial of its own, because the noise on each cell is drawn by itself. (Cells that
    two of them share are left out: `apart` finds rows without any.) With
    300 rows, ten releases with them and ten without are 3,000 trials.

    All other cells are looked at, too: their counts are known, and so is the noise on them, which
    must be neither smaller than stated nor shared (`hushtable.audit.residuals`).

    ``publish`` is to be audited: it takes rows (n, d) and returns a release, or all releases that
    are made of these rows one after the other. Always under the same plan, unless it was drawn
    from an earlier one of them; `UsageError` is raised if it depends on the rows, which is what
    `audit_replay` attacks. The adversary knows the rows ``X`` (n, d); ``rows`` are the one in
    question (d,), or one of each of k persons (k, d). Under replace-one, ``instead`` (k, d) are
    these persons' rows in the other case, where by default they have none. Each person has
    ``copies`` of a row: one who has several changes counts the most if all are equal. ``trials``
    are releases with the rows and without them, each. ``claim`` is as `Claim` takes it, for one
    person over all that ``publish`` returns.
    """
    people = People(X, np.atleast_2d(np.asarray(rows, np.float64)), instead, copies)
    seen: tuple[list[Floats], ...] = ([], [])
    for with_them, everybody in enumerate(people.cases):
        for _ in range(trials):
            published = publish(everybody)
            releases = [published] if isinstance(published, Release) else list(published)
            people.check(releases)
            seen[with_them].append(np.sum([people.statistics(one) for one in releases], axis=0))
            for one in releases:
                people.look_at(one, with_them)
    absent, present = (np.concatenate(case, axis=1) for case in seen)
    finding = judge_ratios(
        "likelihood ratio on neighbouring data",
        list(zip(absent, present, strict=True)),
        releases[0].ledger.mechanism,
        people.changes(releases[0].plan).of_one(),
        **claim,
    )
    return replace(finding, p_noise=people.residuals.p_value())


def apart(plan: Plan, rows: Floats) -> Floats:
    """Return those of the rows (n, d), in order, that share no cell with one before them."""
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
    """Changes that persons make under one plan: person, cell and count, an entry a change."""

    without: Ints
    person: Ints
    cell: Ints
    added: Ints
    #: Change of all of them together, in every cell.
    together: Ints

    def of_one(self) -> Ints:
        """Return what the person adds who changes the most counts."""
        most = int(np.bincount(self.person).argmax())
        return np.asarray(self.added[self.person == most], np.int64)


class People:
    """Persons in question, beside rows that are known."""

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
        """Return what each person changes in the counts under a plan."""
        if plan.plan_id not in self._known:
            footprints = [self._footprint(plan, i) for i in range(self.n)]
            cells = [np.flatnonzero(footprint) for footprint in footprints]
            person = np.repeat(np.arange(self.n), [len(one) for one in cells])
            cell = np.concatenate(cells)
            added = np.concatenate([f[at] for f, at in zip(footprints, cells, strict=True)])
            alone = np.bincount(cell, minlength=plan.family.n_cells)[cell] == 1
            if not alone.any():
                raise UsageError(
                    "no row changes a cell that no other changes, too: nothing separates them; "
                    "give rows that share none (apart), or one alone"
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
        """Note the noise on all cells of a release; ``times`` and ``known`` as in `statistics`."""
        changes = self.changes(release.plan)
        noise = release.counts - known * changes.without - times * changes.together
        self.residuals.add(noise, release.ledger.mechanism, stated_scale(release))

    def statistics(self, release: Noised, times: int = 1, known: int = 1) -> list[Floats]:
        """Return, for each person, the log likelihood ratio and the count of exact cells.

        A person's rows are in it so many ``times``, and the rows that are ``known``.
        """
        changes = self.changes(release.plan)
        x = release.counts[changes.cell] - known * changes.without[changes.cell]
        added, noise = times * changes.added, named(release.ledger.mechanism)
        ratio = noise.log_ratio(stated_scale(release), x, added)
        exact = exact_cells(x, added)
        values = (np.bincount(changes.person, one, self.n) for one in (ratio, exact))
        return [np.asarray(one, np.float64) for one in values]
