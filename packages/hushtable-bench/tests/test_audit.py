"""Audits: the correct release stands, every planted mistake is found out."""

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score

from hushtable import Feature, Plan, Release, Schema, Sketch
from hushtable.errors import UsageError
from hushtable.privacy.accounting import GAUSSIAN, rho_from_epsilon
from hushtable.privacy.budget import calibrated_scale
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Sensitivity, add_noise
from hushtable_bench.attacks import _exact
from hushtable_bench.data import LabelledSet
from hushtable_bench.systems import bounds
from hushtable_bench.systems.audit import (
    audit_canaries,
    audit_neighbours,
    audit_noise,
    audit_replay,
)
from hushtable_bench.systems.bounds import Outcome

# --- planted mistakes -----------------------------------------------------------------------------

#: The claim of every release in this module.
EPSILON, DELTA = 1.0, 1e-6

Ints = NDArray[np.int64]
#: Takes counts and the table of each cell, gives noised counts.
Noise = Callable[[Ints, Ints], Ints]


def _scale(tables: int, epsilon: float = EPSILON) -> float:
    return calibrated_scale("discrete-gaussian", Sensitivity(tables), epsilon=epsilon, delta=DELTA)


def _gaussian(epsilon: float = EPSILON, tables: int | None = None) -> Noise:
    """Return noise that is calibrated to the epsilon and the tables, or to wrong ones."""

    def noise(counts: Ints, table: Ints) -> Ints:
        scale = _scale(tables or int(table.max()) + 1, epsilon)
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


#: The correct release first; then every mistake, which some audit has to reject. Noise that is too
#: small, or that cells share, every audit has to reject: see `SHARED`.
MISTAKES = (
    Mistake("none: the correct release", honest),
    # A row is in every table.
    Mistake("scale of one table", _gaussian(tables=1)),
    Mistake("noise on one table only", noise_on_one_table),
    Mistake("no noise on empty cells", no_noise_on_empty_cells),
    # The total of three rounds, claimed for one round.
    Mistake("noise for three times epsilon", _gaussian(3.0 * EPSILON)),
    Mistake("the paper's epsilon", papers_epsilon),
    Mistake("noise from a seed", seeded_noise),
    Mistake("range from the data", honest, range_from_data=True),
)


def audit_all(
    mistake: Mistake, *, draws: int, trials: int, tables: int = 25, confidence: float = 0.95
) -> Iterator[Outcome]:
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


CORRECT, *WRONG = MISTAKES
#: A correct release fails a test at this confidence once in ten million runs.
SURE = 1 - 1e-7


def test_the_correct_release_stands():
    findings = list(audit_all(CORRECT, draws=1000, trials=30, confidence=SURE))
    assert len(findings) == 3
    for finding in findings:
        assert not finding.rejects, finding.words()


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(mistake, id=mistake.name, marks=[pytest.mark.slow] * (at % 2))
        for at, mistake in enumerate(WRONG)
    ],
)
def test_every_planted_mistake_is_rejected(mistake):
    """The strongest audit clears its 95% bound by many standard deviations."""
    found = []
    for finding in audit_all(mistake, draws=1000, trials=30):
        found.append(finding)
        if finding.rejects:
            return
    pytest.fail("; ".join(finding.words() for finding in found))


@pytest.mark.parametrize(
    ("draws", "confidence", "factor"),
    [
        (1000, 0.95, 3.0),  # these tests
        (1000, 0.95, 2.8),  # noise for three times the epsilon
        (8000, 0.999, 2.0),  # hushtable bench privacy, from outside
    ],
)
def test_a_weak_noise_is_found_in_more_than_999_of_1000_audits(draws, confidence, factor):
    """Exactly, from the chances of each number of right guesses."""
    mu = factor * math.sqrt(2 * rho_from_epsilon(1.0, 1e-6))
    claim = brentq(lambda m: bounds.gaussian_epsilon(m, 1e-6) - 1.0, 1e-3, 9.0)
    right = np.arange(draws + 1)
    error = (1 - confidence) / 4
    proved = stats.norm.ppf(bounds._at_least(right, draws, error))
    # The fewest right guesses without the row that suffice with so many of them with it.
    fewest = np.searchsorted(proved, claim - proved, side="right")
    guesses = stats.binom(draws, stats.norm.cdf(mu / 2))
    chance = float(guesses.pmf(right) @ guesses.sf(fewest - 1))
    for at in guesses.ppf([0.01, 0.5, 0.99]).astype(int):
        found = [
            bounds.gaussian_bound(draws - fewest[at] + i, at, draws, 1e-6, error) for i in (0, 1)
        ]
        assert found[0] > 1.0 >= found[1]
    assert chance > 0.999


# --- noise that is shared, or too small ----------------------------------------------------------


def gauss(rng, shape, scale):
    return np.rint(rng.normal(0, scale, shape)).astype(np.int64)


#: Noise of a scale on all cells of a table of draws, or of a release: by a generator and a shape.
SHARED = {
    "correct": gauss,
    "four fifths": lambda rng, shape, s: gauss(rng, shape, 0.8 * s),
    "half": lambda rng, shape, s: gauss(rng, shape, 0.5 * s),
    "pairs of cells alike": lambda rng, shape, s: flat(rng, shape, s, lambda z: np.repeat(z, 2)),
    "chunks alike": lambda rng, shape, s: flat(
        rng, shape, s, lambda z: np.resize(z[:4096], 2 * len(z))
    ),
    "antithetic halves": lambda rng, shape, s: flat(
        rng, shape, s, lambda z: np.concatenate([z, -z])
    ),
    "one for all of a run": lambda rng, shape, s: flat(rng, shape, s, lambda z: np.repeat(z, 20)),
    "neighbours lean": lambda rng, shape, s: flat(
        rng, shape, s, lambda z: lean(np.repeat(z, 2), z)
    ),
}


def lean(twice, z):
    """Noise of which each cell's shares an eighth of the variance with the next."""
    return np.rint(twice * 0.35 + np.roll(np.tile(z, 2), 7) * 0.94).astype(np.int64)


def flat(rng, shape, scale, make):
    size = int(np.prod(shape))
    return make(gauss(rng, -(-size // 2), scale))[:size].reshape(shape)


CLAIM = {"epsilon": 1.0, "delta": DELTA}
GAUSS = calibrated_scale("discrete-gaussian", Sensitivity(50), **CLAIM)


def of_draws(name, rng, draws, confidence=0.95):
    return audit_noise(
        lambda counts: counts + SHARED[name](rng, counts.shape, GAUSS),
        mechanism="discrete-gaussian", scale=GAUSS, tables=50, draws=draws, confidence=confidence,
        **CLAIM,
    )  # fmt: skip


@pytest.fixture(scope="module")
def six():
    schema = Schema([Feature.numeric(name, low=0, high=1) for name in "abcdef"])
    depths = {"n_tables": 10, "n_cells": 4096, "min_depth": 12, "max_depth": 12}
    plan = Plan.draw(schema, random_state=1, **depths)
    return plan, Sketch.zero(plan).release(**CLAIM)


def releasing(name, rng, six):
    plan, pattern = six
    scale = pattern.ledger.shares[0].scale

    def publish(rows):
        sketch = rows if isinstance(rows, Sketch) else Sketch.from_data(plan, rows)
        noise = SHARED[name](rng, sketch.counts.shape, scale)
        return type(pattern)(plan, sketch.counts + noise, pattern.ledger)

    return publish


@pytest.mark.parametrize("name", SHARED)
def test_shared_or_small_noise_is_found_in_every_audit(name, six, rng):
    """Differences of cells were exact, and no audit saw it."""
    X = rng.random((50, 6))
    rows = X[:3] / 2 + 0.25
    found = {
        "draws": of_draws(name, rng, 1000, SURE),
        "canaries": audit_canaries(
            releasing(name, rng, six), six[0], canaries=300, **CLAIM, confidence=SURE
        ),
        "neighbours": audit_neighbours(
            releasing(name, rng, six), X, rows, trials=2, **CLAIM, confidence=SURE
        ),
    }  # fmt: skip
    assert {audit for audit, one in found.items() if one.rejects} == (
        set() if name == "correct" else set(found)
    )


def test_noise_that_is_used_again_for_another_release_is_found(six, rng):
    """Of one release no one can see it; of two, their noise goes together."""
    kept = gauss(rng, six[0].family.n_cells, six[1].ledger.shares[0].scale)

    def publish(rows):
        return type(six[1])(six[0], Sketch.from_data(six[0], rows).counts + kept, six[1].ledger)

    X = rng.random((50, 6))
    found = audit_neighbours(publish, X, X[:3] / 2, trials=2, **CLAIM, confidence=SURE)
    assert found.is_other_noise, found.words()
    assert "the noise is not the stated one" in found.words()


@pytest.mark.parametrize("scale", [0.3, 0.7, 2.0, 45.3])
@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_correct_noise_of_any_scale_stands(mechanism, scale):
    """What a ledger says of the sd of small noise is rounded up; the test adds up the true one."""
    terms = {"mechanism": mechanism, "scale": scale, "tables": 20, "draws": 2000, "delta": DELTA}
    assert audit_noise(epsilon=1e9, confidence=SURE, **terms).p_noise > 1e-7

    def less(counts):
        return add_noise(counts.ravel(), mechanism, 0.8 * scale).reshape(counts.shape)

    assert audit_noise(less, epsilon=1e9, confidence=SURE, **terms).p_noise < 1e-7


@pytest.mark.slow
def test_the_power_of_the_audits_and_their_false_alarms(six, rng):
    """Prints how often each audit rejects, at 95% confidence."""
    times, row = {"1,000 draws": 40, "10,000 draws": 10, "canaries": 20}, {}
    for name in SHARED:
        row[name] = [
            sum(of_draws(name, rng, 1000).rejects for _ in range(40)),
            sum(of_draws(name, rng, 10_000).rejects for _ in range(10)),
            sum(
                audit_canaries(releasing(name, rng, six), six[0], canaries=300, **CLAIM).rejects
                for _ in range(20)
            ),
        ]  # fmt: skip
        said = ", ".join(
            f"{k} of {n} ({what})" for k, (what, n) in zip(row[name], times.items(), strict=True)
        )
        print(f"{name}: {said}")
    # 5.5% of 70 audits: more than 12 would be one run in a thousand.
    assert sum(row.pop("correct")) <= 12
    assert all(found == [40, 10, 20] for found in row.values())


@pytest.mark.slow
def test_the_audit_of_30_000_draws():
    """It bounds epsilon 1 from below so closely that a claim of half of it would not stand."""
    scale = calibrated_scale("discrete-gaussian", Sensitivity(100), epsilon=1.0, delta=1e-6)
    terms = {"mechanism": "discrete-gaussian", "scale": scale, "tables": 100, "delta": 1e-6}
    finding = audit_noise(epsilon=1.0, confidence=SURE, **terms)
    assert not finding.rejects
    assert finding.gaussian_bound < 1.0
    finding = audit_noise(epsilon=0.5, **terms)
    print(finding.words(), f"assuming Gaussian noise: {finding.gaussian_bound:.2f}")
    assert finding.gaussian_bound > 0.5


def test_laplace_is_audited_by_its_own_likelihood():
    """A pure epsilon of 1 stands; noise for half the tables' sensitivity does not at 8."""
    terms = {"mechanism": "discrete-laplace", "tables": 20, "delta": 0.0}
    assert not audit_noise(scale=20.0, epsilon=1.0, draws=2000, confidence=SURE, **terms).rejects
    assert audit_noise(scale=1.0, epsilon=1.0, draws=2000, **terms).rejects


@pytest.fixture(scope="module")
def few_tables():
    schema = Schema([Feature.numeric(f"x{j}", low=-9, high=9) for j in range(2)])
    return Plan.draw(schema, random_state=0, n_tables=4, n_cells=4, min_depth=2, max_depth=2)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_neighbouring_data_cannot_be_told_apart(few_tables, mechanism, rng):
    X = rng.normal(size=(30, 2))
    claim = {"epsilon": 4.0, "delta": DELTA}

    def publish(rows):
        return Sketch.from_data(few_tables, rows).release(4.0, DELTA, mechanism=mechanism)

    finding = audit_neighbours(publish, X, [8, 8], trials=100, confidence=SURE, **claim)
    assert not finding.rejects, finding.words()
    assert (finding.gaussian_bound is None) == (mechanism == "discrete-laplace")

    def exact(rows):
        return _exact(Sketch.from_data(few_tables, rows))

    finding = audit_neighbours(exact, X, [8, 8], trials=30, epsilon=2.0, delta=DELTA)
    assert finding.auc == 1.0
    assert finding.rejects, finding.words()


def test_a_plan_that_depends_on_the_rows_is_for_the_replay(rng):
    planted = next(mistake for mistake in WRONG if mistake.range_from_data)
    with pytest.raises(UsageError, match="audit_replay"):
        audit_neighbours(
            planted.publish, rng.normal(size=(30, 2)), [8, 8], trials=2, epsilon=1.0, delta=DELTA
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 0.05), (4.0, 0.0)])
def test_what_epsilon_allows_an_attack(epsilon, delta):
    """Both lines of the region, and the area under them by adding up."""
    false = np.linspace(0, 1, 100_001)
    true = bounds.most_true(epsilon, delta, false)
    assert (true <= np.exp(epsilon) * false + delta + 1e-12).all()
    assert (1 - false <= np.exp(epsilon) * (1 - true) + delta + 1e-12).all()
    assert true[0] == pytest.approx(delta)
    assert true[-1] == 1.0
    assert bounds.most_area(epsilon, delta) == pytest.approx(np.trapezoid(true, false), abs=1e-4)


def test_the_area_is_that_of_the_roc_curve(rng):
    absent, present = np.round(rng.normal(size=40), 1), np.round(rng.normal(1, 1, size=60), 1)
    expected = roc_auc_score(np.repeat([0, 1], [40, 60]), np.concatenate([absent, present]))
    assert bounds.area(absent, present) == pytest.approx(expected)


def test_canaries_work_on_categories_and_missing_ranges():
    schema = Schema((
        Feature.categorical("a", [f"c{i}" for i in range(50)]),
        Feature.categorical("b", []),
        Feature.numeric("c", low=3, high=3),
        Feature.numeric("d", low=0, high=1),
    ))  # fmt: skip
    plan = Plan.draw(schema, random_state=0, n_tables=50)

    def raw(sketch):
        release = sketch.release(1.0)
        return type(release)(sketch.plan, sketch.counts, release.ledger)

    finding = audit_canaries(raw, plan, epsilon=EPSILON, delta=DELTA, random_state=0)
    assert finding.rejects


def test_two_guesses_for_three_canaries():
    """Raw counts under deep tables give every guess away; no more than all can be right."""
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(4)])
    depths = {"min_depth": 14, "max_depth": 16, "n_cells": 2**16}
    plan = Plan.draw(schema, random_state=0, n_tables=50, **depths)
    terms = {"epsilon": 1.0, "delta": DELTA, "canaries": 100, "random_state": 0}
    finding = audit_canaries(lambda sketch: sketch, plan, **terms)
    assert finding.lower_bound == bounds.canary_bound(100, 66, 66, DELTA, 0.05)


def test_a_replay_says_what_it_is_sure_of():
    schema = Schema([Feature.numeric("x", low=0, high=1)])
    plan = Plan.draw(schema, random_state=0, n_tables=2)
    finding = audit_replay(
        lambda X: Sketch.from_data(plan, X).release(1.0),
        np.full((3, 1), 0.5), [0.9], epsilon=1.0, delta=0.1, trials=2,
    )  # fmt: skip
    assert (finding.confidence, finding.trials, finding.lower_bound) == (0.95, 4, 0.0)


@pytest.mark.parametrize(
    ("guesses", "right", "epsilon"), [(60, 45, 0.5), (60, 31, 0.5), (60, 58, 2.0), (9, 9, 0)]
)
def test_the_p_value_is_that_of_the_theorem(guesses, right, epsilon):
    q, canaries, delta = math.exp(epsilon) / (1 + math.exp(epsilon)), 100, 1e-3
    tail = sum(stats.binom.pmf(j, guesses, q) for j in range(right, guesses + 1))
    alpha, window = 0.0, 0.0
    for i in range(1, right + 1):
        window += stats.binom.pmf(right - i, guesses, q)
        alpha = max(alpha, window / i)
    expected = min(1.0, tail + 2 * canaries * delta * alpha)
    assert bounds.canary_p_value(canaries, guesses, right, epsilon, delta) == pytest.approx(
        expected
    )


def test_more_right_guesses_prove_more():
    found = [bounds.canary_bound(1000, 600, right, 1e-6, 0.05) for right in range(300, 601, 20)]
    assert found == sorted(found)
    assert found[0] == 0.0
    # All of 600 right: (e^eps / (1 + e^eps))^600 = .05 at epsilon 5.3.
    assert found[-1] == pytest.approx(5.3, abs=0.05)


def test_the_bound_of_perfect_and_of_blind_guesses():
    n, delta = 1000, 0.0
    perfect = bounds.epsilon_bound(np.zeros(n), np.ones(n), delta, 0.05)
    # 0 of 500 false at an eighth of 10%: at most 1.0%; 500 of 500 true: at least 99.1%.
    worst = 1 - 0.0125 ** (1 / 500)
    assert perfect == pytest.approx(math.log((1 - worst) / worst), rel=1e-3)
    assert bounds.epsilon_bound(np.zeros(n), np.zeros(n), delta, 0.05) == 0.0


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_intervals_are_clopper_and_pearsons(hits):
    exact = stats.binomtest(hits, 20).proportion_ci(0.9)
    least, most = bounds._at_least(hits, 20, 0.05), bounds._at_most(hits, 20, 0.05)
    assert (float(least), float(most)) == pytest.approx((exact.low, exact.high))


def test_the_gaussian_curve_agrees_with_the_accountant():
    from dp_accounting.pld import privacy_loss_distribution as pld

    for mu in (0.2, 1.0, 3.0):
        exact = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
        expected = exact.get_epsilon_for_delta(1e-6)
        assert bounds.gaussian_epsilon(mu, 1e-6) == pytest.approx(expected, abs=2e-3)


def test_words_say_the_verdict():
    finding = Outcome("attack", 1.0, 1e-6, 3.456, 0.95, 100)
    assert finding.words() == (
        "attack: epsilon is at least 3.46 (95% confidence, 100 trials); the claim of 1 is rejected"
    )
