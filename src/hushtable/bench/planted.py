"""Releases with planted mistakes: what an audit of privacy must find out.

Each is a mistake that has been made, here or elsewhere. None is reachable from the package's
own release.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.audit.audit import Finding, audit_canaries, audit_noise, audit_replay
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Sensitivity, calibrated_scale
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.noise import add_noise

__all__ = ["DELTA", "EPSILON", "EXACT", "MISTAKES", "Mistake", "audit_all"]

#: What every release here claims.
EPSILON, DELTA = 1.0, 1e-6

Ints = NDArray[np.int64]


def _scale(tables: int, epsilon: float = EPSILON) -> float:
    return calibrated_scale("discrete-gaussian", Sensitivity(tables), epsilon=epsilon, delta=DELTA)


def _gaussian(counts: Ints, scale: float) -> Ints:
    return add_noise(counts.ravel(), "discrete-gaussian", scale).reshape(counts.shape)


# --- noise: counts and the table of each cell, to noised counts -----------------------------------


def honest(counts: Ints, table: Ints) -> Ints:
    """Add the noise that the claim asks for."""
    return _gaussian(counts, _scale(int(table.max()) + 1))


def scale_of_one_table(counts: Ints, table: Ints) -> Ints:
    """Forget that a row is in every table."""
    return _gaussian(counts, _scale(1))


def noise_on_one_table(counts: Ints, table: Ints) -> Ints:
    """Add noise to the first table only."""
    return np.where(table == 0, honest(counts, table), counts)


def no_noise_on_empty_cells(counts: Ints, table: Ints) -> Ints:
    """Add noise to what there is, and leave out what there is not."""
    return np.where(counts == 0, 0, honest(counts, table))


def no_noise(counts: Ints, table: Ints) -> Ints:
    """Add none."""
    return counts


def almost_no_noise(counts: Ints, table: Ints) -> Ints:
    """Mistake the variance's unit, or add a zero too many."""
    return _gaussian(counts, _scale(int(table.max()) + 1) / 20.0)


def a_third_of_the_noise(counts: Ints, table: Ints) -> Ints:
    """Lose a factor of three on the way to the sampler."""
    return _gaussian(counts, _scale(int(table.max()) + 1) / 3.0)


def noise_for_three_times_epsilon(counts: Ints, table: Ints) -> Ints:
    """Calibrate to the total of three rounds, and say that of one."""
    return _gaussian(counts, _scale(int(table.max()) + 1, 3.0 * EPSILON))


def papers_epsilon(counts: Ints, table: Ints) -> Ints:
    """Add Lap(1 / epsilon) to each table, and call the whole epsilon-private."""
    noised = add_noise(counts.ravel(), "discrete-laplace", 1.0 / EPSILON)
    return noised.reshape(counts.shape)


def seeded_noise(counts: Ints, table: Ints) -> Ints:
    """Draw the right noise from a seed that everybody can guess."""
    scale = _scale(int(table.max()) + 1)
    noise = np.random.default_rng(0).normal(0.0, scale, counts.shape)
    return counts + np.rint(noise).astype(np.int64)


@dataclass(frozen=True)
class Mistake:
    """A planted mistake, and the audits that it is put before."""

    name: str
    noise: Callable[[Ints, Ints], Ints]
    range_from_data: bool = False

    def release(self, sketch: Sketch) -> Release:
        """Release with this mistake, under a ledger that does not know of it."""
        family = sketch.plan.family
        table = np.repeat(np.arange(family.n_tables), np.diff(family.offsets))
        share = Share(secrets.token_hex(32), _scale(family.n_tables), "planted")
        ledger = Ledger(
            "discrete-gaussian", Sensitivity(family.n_tables), DELTA, (share,), sketch.plan.behind
        )
        return Release(sketch.plan, self.noise(sketch.counts, table), ledger)

    def publish(self, X: NDArray[np.float64]) -> Release:
        """Go the whole way from rows to a release with this mistake."""
        edges = (
            (X.min(axis=0), X.max(axis=0)) if self.range_from_data else ((-9.0,) * 2, (9.0,) * 2)
        )
        features = (
            Feature.numeric(f"x{j}", low=float(low), high=float(high))
            for j, (low, high) in enumerate(zip(*edges, strict=True))
        )
        plan = Plan.draw(Schema(tuple(features), named=False), random_state=0, n_tables=2)
        return self.release(Sketch.from_data(plan, X))


#: Exact counts under a ledger that claims noise: what attacks without noise are shown on.
EXACT = Mistake("no noise at all", no_noise)

#: The correct release first; then every mistake, which some audit has to reject.
MISTAKES = (
    Mistake("none: the correct release", honest),
    Mistake("scale of one table", scale_of_one_table),
    Mistake("noise on one table only", noise_on_one_table),
    Mistake("no noise on empty cells", no_noise_on_empty_cells),
    Mistake("almost no noise", almost_no_noise),
    Mistake("a third of the noise", a_third_of_the_noise),
    Mistake("noise for three times epsilon", noise_for_three_times_epsilon),
    Mistake("the paper's epsilon", papers_epsilon),
    Mistake("noise from a seed", seeded_noise),
    Mistake("range from the data", honest, range_from_data=True),
)


def audit_all(
    mistake: Mistake, *, draws: int, trials: int, tables: int = 25, confidence: float = 0.95
) -> Iterator[Finding]:
    """Put a release before one audit after the other.

    Parameters
    ----------
    mistake : Mistake
        What to audit.
    draws : int
        For the likelihood ratio.
    trials : int
        For the replay.
    tables : int
        Number of tables, for all but the replay.
    confidence : float
        Of each audit.
    """
    claim: Any = {"epsilon": EPSILON, "delta": DELTA, "confidence": confidence}
    table = np.arange(tables)
    yield audit_noise(
        lambda counts: mistake.noise(counts, table),
        mechanism="discrete-gaussian",
        scale=_scale(tables),
        tables=tables,
        draws=draws,
        **claim,
    )
    schema = Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(6)))
    plan = Plan.draw(schema, random_state=0, n_tables=tables)
    yield audit_canaries(mistake.release, plan, random_state=0, **claim)
    X = np.random.default_rng(0).normal(size=(50, 2))
    yield audit_replay(mistake.publish, X, [8.0, 8.0], trials=trials, **claim)
