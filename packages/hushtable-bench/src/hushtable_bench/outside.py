"""Audits from outside, which use only public calls and files, like any recipient.

Each case publishes the rows of hundreds of persons who share no cell, reads the published files,
and infers from them whose rows were counted. The adversary knows everything else. Counts, noise,
accounting, rounds, and files are the package's own. To prove that the audits would find a mistake
in them, `BROKEN` temporarily plants mistakes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Noised
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.detectors.load import load
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import MAX_EPSILON, calibrated_scale, part_scale
from hushtable.privacy.mechanisms import Cost, Sensitivity, add_noise
from hushtable_bench.results import Page, Promise, ResultTable, judged
from hushtable_bench.systems.audit import apart, audit_neighbours
from hushtable_bench.systems.bounds import Outcome
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.reply import trust
from hushtable_federation.round import Round

DELTA = 1e-6
#: Confidence of each audit: with seven audits, at most 0.7% of runs reject the correct package.
CONFIDENCE = 0.999
#: Tables of a plan, and rows that the audit does not ask about.
TABLES, OTHERS = 4, 50
#: Tables so deep that hundreds of rows share no cell.
DEEP: dict[str, Any] = {"n_cells": 1024, "min_depth": 16, "max_depth": 16}
#: Sites of a masked round, colluding sites, and parts of the noise that no one else knows.
SITES, COLLUDERS = 6, 3
K_MIN = SITES - 1 - COLLUDERS

Floats = NDArray[np.float64]
#: Takes all rows and a folder to write to; returns the values that a recipient reads there.
Publish = Callable[[Floats, Path], Sequence[Release]]

SCHEMA = Schema(tuple(Feature.numeric(f"x{j}", low=0.0, high=1.0) for j in range(16)))


@cache
def tables_plan() -> Plan:
    """Return a plan with few deep tables."""
    return Plan.draw(SCHEMA, random_state=0, n_tables=TABLES, **DEEP)


def _through_a_file(release: Noised, path: Path) -> Release:
    release.save(path)
    read = load(path)
    assert isinstance(read, Release)
    return read


# --- what is published ----------------------------------------------------------------------------


def one_round(X: Floats, folder: Path, **terms: Any) -> list[Release]:
    """Count, release, save, and read back."""
    release = Sketch.from_data(tables_plan(), X).release(delta=DELTA, **terms)
    return [_through_a_file(release, folder / "release.hush")]


def marginals_then_tables(X: Floats, folder: Path, epsilon: float) -> list[Release]:
    """Release marginals, draw the tables' plan from them, release tables: one budget for both."""
    noised = Sketch.from_data(Plan.marginals(SCHEMA), X).release(epsilon, DELTA, share=0.9)
    first = _through_a_file(noised, folder / "marginals.hush")
    plan = Plan.draw(SCHEMA, marginals=first, random_state=0, n_tables=2, **DEEP)
    second = Sketch.from_data(plan, X).release(epsilon, DELTA)
    return [first, _through_a_file(second, folder / "tables.hush")]


def _counted(X: Floats, round_: Round) -> Sketch:
    return Sketch.from_data(round_.plan, X)


def masked_round(X: Floats, folder: Path, epsilon: float) -> list[Release]:
    """Run a masked round; subtract from its sum the parts of all sites but k_min.

    All persons that the audit asks about are at the first site, with three rows each. The last
    site reads the sum, and the sites before it collude.
    """
    keys, lead = [Keys.generate(f"site{i}") for i in range(SITES)], Keys.generate("lead")
    round_ = Round.open(
        tables_plan(), [key.card for key in keys], lead, epsilon=epsilon, delta=DELTA,
        colluders=COLLUDERS, rows_per_person=3, deadline=now() + timedelta(days=1),
    )  # fmt: skip
    known = np.zeros(round_.plan.family.n_cells, np.int64)
    with TemporaryDirectory(dir=folder) as place, ExitStack() as books:
        sites = {}
        for i, key in enumerate(keys):
            # The audit tests the noise, not the cap, so the cap must not stop anything.
            path = Path(place) / f"{i}.book"
            book = books.enter_context(Book.create(path, key.card, epsilon=MAX_EPSILON))
            trust(book, round_, [lead.card, *round_.sites])
            count = partial(_counted, X if i == 0 else X[:OTHERS])
            sites[key.card.name] = OnlineSite(key, book, count, attended=True), book
        answers = {name: site.answer for name, (site, _) in sites.items()}
        merged = SecureSum(round_, lead, Memory(answers)).run()
        for _, book in list(sites.values())[K_MIN:]:
            answer = book.answer(round_.round_id)
            assert answer is not None
            known += answer.sent
    result = _through_a_file(merged, folder / "result.hush")
    known += (K_MIN - 1) * Sketch.from_data(result.plan, X[:OTHERS]).counts
    return [Release(result.plan, result.counts - known, result.ledger)]


# --- who is asked about ---------------------------------------------------------------------------


@cache
def _lone_rows() -> Floats:
    """Return rows that share no cell of `tables_plan`."""
    return apart(tables_plan(), np.random.default_rng(1).random((2000, len(SCHEMA))))


def _own_bins() -> Floats:
    """Return 32 rows, each in its own bin of every marginal."""
    rng = np.random.default_rng(1)
    columns = [(rng.permutation(32) + 0.5) / 32.0 for _ in SCHEMA.features]
    return np.stack(columns, axis=1)


# --- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A way to publish, the persons that the audit asks about, and the claim."""

    epsilon: float  # claimed for one person
    publish: Publish  # what is audited
    persons: int  # trials needed of both cases; releases are made until there are enough
    delta: float = DELTA
    rows: Callable[[], Floats] = _lone_rows  # makes the rows that the audit asks about
    replaced: bool = False  # every second row replaces the row before it
    copies: int = 1  # rows of each person

    def audit(
        self, folder: Path, *, confidence: float = CONFIDENCE, effort: float = 1.0,
        publish: Publish | None = None,
    ) -> Outcome:  # fmt: skip
        """Audit the case; ``effort`` is the share of the releases to make, above 0."""
        rows, instead = self.rows(), None
        if self.replaced:
            rows, instead = rows[0 : 2 * (len(rows) // 2) : 2], rows[1::2]
        others = np.random.default_rng(2).random((OTHERS, len(SCHEMA)))
        release = publish or self.publish
        return audit_neighbours(
            lambda X: release(X, folder), others, rows, instead=instead, copies=self.copies,
            epsilon=self.epsilon, delta=self.delta, confidence=confidence,
            trials=int(np.ceil(effort * self.persons / len(rows))),
        )  # fmt: skip


#: With larger epsilons, an audit with as many trials finds smaller mistakes in the accounting.
CASES: dict[str, Case] = {
    "one round": Case(1.0, partial(one_round, epsilon=1.0), 8000),
    "two rounds, marginals and tables": Case(
        8.0, partial(marginals_then_tables, epsilon=8.0), 1920, rows=_own_bins
    ),
    "values replaced": Case(
        4.0, partial(one_round, epsilon=4.0, adjacency="replace-one"), 5000, replaced=True
    ),
    "three rows a person": Case(
        4.0, partial(one_round, epsilon=4.0, rows_per_person=3), 1500, copies=3
    ),
    "discrete Laplace": Case(
        2.0, partial(one_round, epsilon=2.0, mechanism="discrete-laplace"), 4000, delta=0.0
    ),
    "Laplace per table, the paper's": Case(
        TABLES * 0.5, partial(one_round, epsilon=0.5, mechanism="laplace-per-table"), 4000, delta=0
    ),
    "masked sum, all but two parts known": Case(
        4.0, partial(masked_round, epsilon=4.0), 1500, copies=3
    ),
}


# --- planted mistakes -----------------------------------------------------------------------------

Plant = Callable[[], AbstractContextManager[Any]]


def a_third_of_the_noise() -> AbstractContextManager[Any]:
    """Lose a factor of three on the way to the sampler."""

    def weak(counts: Any, mechanism: Any, scale: float, **options: Any) -> Any:
        return add_noise(counts, mechanism, scale / 3.0, **options)

    return patch("hushtable.privacy.mechanisms.add_noise", weak)


def _sensitivity(
    l1: Callable[[Sensitivity], int], l2_squared: Callable[[Sensitivity], int]
) -> AbstractContextManager[Any]:
    planted: AbstractContextManager[Any] = patch.multiple(
        Sensitivity, l1=property(l1), l2_squared=property(l2_squared)
    )
    return planted


def one_table() -> AbstractContextManager[Any]:
    """Use epsilon for one table: forget that a row is in all m tables."""
    return _sensitivity(
        lambda s: s.rows_per_person * s._cells, lambda s: s.rows_per_person**2 * s._cells
    )


def one_row() -> AbstractContextManager[Any]:
    """Forget that a person has several rows."""
    return _sensitivity(lambda s: s._cells * s.tables, lambda s: s._cells * s.tables)


def one_cell() -> AbstractContextManager[Any]:
    """Forget that a row whose values change leaves one cell and enters another."""
    return _sensitivity(
        lambda s: s.rows_per_person * s.tables, lambda s: s.rows_per_person**2 * s.tables
    )


def nothing_before() -> AbstractContextManager[Any]:
    """Leave out the cost of the plan's marginals."""

    def forgetful(*given: Any, **terms: Any) -> float:
        return calibrated_scale(*given, **terms | {"before": Cost(0.0, 0.0, 0.0)})

    return patch("hushtable.privacy.budget.calibrated_scale", forgetful)


def all_sites_count() -> AbstractContextManager[Any]:
    """Divide a shared noise by the root of all six sites, not of the sites with unknown noise."""
    return patch("hushtable_federation.round.part_scale", lambda scale, parts: part_scale(scale, 6))


#: Each mistake, the case that has to find it, and how to make it.
BROKEN: dict[str, tuple[str, Plant]] = {
    "planted, epsilon of one table": ("one round", one_table),
    "planted, epsilon of one table, Laplace": ("discrete Laplace", one_table),
    "planted, marginals not counted": ("two rounds, marginals and tables", nothing_before),
    "planted, a replaced row counted as one more": ("values replaced", one_cell),
    "planted, several rows counted as one": ("three rows a person", one_row),
    "planted, noise shared by all sites": ("masked sum, all but two parts known", all_sites_count),
}

#: Each planted mistake, the case that has to find it, and how to make it.
MISTAKES: dict[str, tuple[str, Plant]] = {
    f"planted, a third of the noise: {case}": (case, a_third_of_the_noise) for case in CASES
} | BROKEN


def n_audits(quick: bool = False) -> int:
    """Return the number of audits."""
    return len(CASES) + (0 if quick else len(MISTAKES))


def audits(quick: bool = False) -> Iterator[tuple[str, Outcome]]:
    """Audit every case of the unchanged package; unless ``quick``, also with planted mistakes."""
    with TemporaryDirectory() as folder:
        for name, case in CASES.items():
            yield name, case.audit(Path(folder), effort=0.1 if quick else 1.0)
        for mistake, (name, plant) in () if quick else MISTAKES.items():
            with plant():
                outcome = CASES[name].audit(Path(folder))
            yield mistake, outcome


def page(outcomes: Sequence[tuple[str, Outcome]]) -> Page:
    """Lay out the bounds on epsilon beside the claims."""
    rows = []
    for name, finding in outcomes:
        bound, gaussian, verdict = judged(finding)
        trials, epsilon, ideal = finding.trials, finding.epsilon, finding.ideal or 0.0
        rows.append((name, f"{trials:,}", f"{epsilon:g}", bound, gaussian, f"{ideal:.2f}", verdict))
    header = (
        "audited from outside", "trials", "total epsilon", "epsilon is at least", "if Gaussian",
        "bound for an ideal mechanism", "claim",
    )  # fmt: skip
    how = f"Only through public calls and files, with {100 * CONFIDENCE:.4g}% confidence each:"
    return [f"\n{how}\n", ResultTable(header, rows)]


def targets(outcomes: Sequence[tuple[str, Outcome]]) -> list[Promise]:
    """Require that the package passes, and that every planted mistake is found."""
    return [
        Promise(
            f"from outside, {name}: lower bound over epsilon",
            finding.bound / finding.epsilon, "<=" if name in CASES else ">", 1.0, ".2f",
        )
        for name, finding in outcomes
    ]  # fmt: skip
