"""Planted mistakes that audits must find, in a release's noise and in the package itself."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.periods import Increment, Periods
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import GAUSSIAN, Horizon
from hushtable.privacy.budget import calibrated_scale, part_scale
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity, add_noise
from hushtable_bench.data import LabelledSet
from hushtable_bench.systems.audit import audit_canaries, audit_noise, audit_replay
from hushtable_bench.systems.bounds import Finding

#: The claim of every release in this module.
EPSILON, DELTA = 1.0, 1e-6

Ints = NDArray[np.int64]


#: Takes counts and the table of each cell, gives noised counts.
Noise = Callable[[Ints, Ints], Ints]


def _scale(tables: int, epsilon: float = EPSILON) -> float:
    return calibrated_scale("discrete-gaussian", Sensitivity(tables), epsilon=epsilon, delta=DELTA)


def _gaussian(
    divisor: float = 1.0, *, epsilon: float = EPSILON, tables: int | None = None
) -> Noise:
    """Return noise that is too small by a divisor, or calibrated to a wrong epsilon or tables."""

    def noise(counts: Ints, table: Ints) -> Ints:
        scale = _scale(tables or int(table.max()) + 1, epsilon) / divisor
        return add_noise(counts.ravel(), "discrete-gaussian", scale).reshape(counts.shape)

    return noise


honest = _gaussian()


def noise_on_one_table(counts: Ints, table: Ints) -> Ints:
    """Add noise to the first table only."""
    return np.where(table == 0, honest(counts, table), counts)


def no_noise_on_empty_cells(counts: Ints, table: Ints) -> Ints:
    """Add noise only to cells that are not empty."""
    return np.where(counts == 0, 0, honest(counts, table))


def papers_epsilon(counts: Ints, table: Ints) -> Ints:
    """Add Lap(1 / epsilon) to each table, and claim epsilon for all tables together."""
    noised = add_noise(counts.ravel(), "discrete-laplace", 1.0 / EPSILON)
    return noised.reshape(counts.shape)


def chunks_alike(counts: Ints, table: Ints) -> Ints:
    """Add the noise of the first chunk of the sampler to every chunk."""
    few = np.zeros(min(counts.size, 4096), np.int64)
    noise = honest(few, np.array([int(table.max())]))
    return counts + np.resize(noise, counts.size).reshape(counts.shape)


def pairs_alike(counts: Ints, table: Ints) -> Ints:
    """Use the noise of each cell for the next one, too."""
    flat = np.zeros(-(-counts.size // 2), np.int64)
    noise = honest(flat, np.array([int(table.max())]))
    return counts + np.repeat(noise, 2)[: counts.size].reshape(counts.shape)


def seeded_noise(counts: Ints, table: Ints) -> Ints:
    """Draw the right noise, but from a seed that everyone can guess."""
    scale = _scale(int(table.max()) + 1)
    noise = np.random.default_rng(0).normal(0.0, scale, counts.shape)
    return counts + np.rint(noise).astype(np.int64)


@dataclass(frozen=True)
class Mistake:
    """A release with a mistake planted in its noise or its range."""

    name: str
    noise: Noise
    range_from_data: bool = False

    def release(self, sketch: Sketch) -> Release:
        """Release with this mistake, under a ledger that does not know of it."""
        family = sketch.plan.family
        table = np.repeat(np.arange(family.n_tables), np.diff(family.offsets))
        share = Share(secrets.token_hex(32), _scale(family.n_tables), "planted")
        terms = "discrete-gaussian", Sensitivity(family.n_tables), DELTA
        ledger = Ledger(*terms, (share,), sketch.plan.behind, accounting=GAUSSIAN)
        return Release(sketch.plan, self.noise(sketch.counts, table), ledger)

    def publish(self, X: NDArray[np.float64]) -> Release:
        """Make a release with this mistake from rows."""
        edges = X if self.range_from_data else np.array([[-9.0, -9.0], [9.0, 9.0]])
        schema = LabelledSet("", edges, np.zeros(len(edges), bool)).schema()
        plan = Plan.draw(schema, random_state=0, n_tables=2)
        return self.release(Sketch.from_data(plan, X))


#: Exact counts under a ledger that claims noise, for attacks without noise.
EXACT = Mistake("no noise at all", lambda counts, table: counts)

#: The correct release first; then every mistake, which some audit has to reject.
MISTAKES = (
    Mistake("none: the correct release", honest),
    # A row is in every table.
    Mistake("scale of one table", _gaussian(tables=1)),
    Mistake("noise on one table only", noise_on_one_table),
    Mistake("no noise on empty cells", no_noise_on_empty_cells),
    # The variance has the wrong unit, or one zero too many.
    Mistake("almost no noise", _gaussian(20.0)),
    Mistake("a third of the noise", _gaussian(3.0)),
    Mistake("four fifths of the noise", _gaussian(1.25)),
    Mistake("the same noise for each chunk of cells", chunks_alike),
    Mistake("the same noise for pairs of cells", pairs_alike),
    # The total of three rounds, claimed for one round.
    Mistake("noise for three times epsilon", _gaussian(epsilon=3.0 * EPSILON)),
    Mistake("the paper's epsilon", papers_epsilon),
    Mistake("noise from a seed", seeded_noise),
    Mistake("range from the data", honest, range_from_data=True),
)


def audit_all(
    mistake: Mistake, *, draws: int, trials: int, tables: int = 25, confidence: float = 0.95
) -> Iterator[Finding]:
    """Run all audits on a release, each with the given confidence.

    ``draws`` is the number of draws for the likelihood ratio, ``trials`` the number of trials for
    the replay, and ``tables`` the number of tables for all other audits.
    """
    claim: Any = {"epsilon": EPSILON, "delta": DELTA, "confidence": confidence}
    table = np.arange(tables)
    yield audit_noise(
        lambda counts: mistake.noise(counts, table), mechanism="discrete-gaussian",
        scale=_scale(tables), tables=tables, draws=draws, **claim,
    )  # fmt: skip
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(6)))
    plan = Plan.draw(schema, random_state=0, n_tables=tables)
    yield audit_canaries(mistake.release, plan, random_state=0, **claim)
    X = np.random.default_rng(0).normal(size=(50, 2))
    yield audit_replay(mistake.publish, X, [8.0, 8.0], trials=trials, **claim)


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


def _columns(planted: Callable[[Horizon], Any]) -> AbstractContextManager[Any]:
    return patch.object(Horizon, "columns", property(planted))


def one_period() -> AbstractContextManager[Any]:
    """Charge once for all periods, with the noise for one: forget that rows stay in later ones."""
    return _columns(lambda horizon: np.array(horizon.factor[:1]))


def one_period_less() -> AbstractContextManager[Any]:
    """Make the noise for a person in one period, although there are rows in two."""
    columns = Horizon.columns.fget  # type: ignore[attr-defined] # a property, as the class has it
    return _columns(lambda horizon: columns(replace(horizon, participations=1)))


@contextmanager
def noise_again() -> Iterator[None]:
    """Draw new noise each time that a period is requested."""
    mixed, kept, latest = Horizon.mixed, Periods.increment, dict[int, Any]()

    def noted(horizon: Horizon, counts: Any) -> Any:
        latest[len(counts)] = mixed(horizon, counts)
        return latest[len(counts)]

    def increment(site: Periods, period: int) -> Increment:
        honest = kept(site, period)
        counts = add_noise(latest[period], honest.ledger.mechanism, site.share.scale)
        return replace(honest, counts=counts)

    with patch.object(Horizon, "mixed", noted), patch.object(Periods, "increment", increment):
        yield


#: Each mistake, the case of `hushtable_bench.outside` that has to find it, and how to make it.
BROKEN: dict[str, tuple[str, Plant]] = {
    "planted, epsilon of one table": ("one round", one_table),
    "planted, epsilon of one table, Laplace": ("discrete Laplace", one_table),
    "planted, marginals not counted": ("two rounds, marginals and tables", nothing_before),
    "planted, a replaced row counted as one more": ("values replaced", one_cell),
    "planted, several rows counted as one": ("three rows a person", one_row),
    "planted, noise shared by all sites": ("masked sum, all but two parts known", all_sites_count),
    "planted, noise for one period": ("twelve periods, a person in one", one_period),
    "planted, a person in a period more": ("twelve periods, a person in two", one_period_less),
    "planted, periods released twice": ("twelve periods, a person in one", noise_again),
}
