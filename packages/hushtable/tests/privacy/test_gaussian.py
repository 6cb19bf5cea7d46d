"""The account of Gaussian noise: never below the truth of the discrete mechanism, and near it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import logsumexp

from hushtable.errors import PlanError, UsageError
from hushtable.privacy import Horizon
from hushtable.privacy.accounting import (
    epsilon_bound,
    epsilon_from_rho,
    rho_bound,
    rho_from_epsilon,
    spread_of,
)
from hushtable.privacy.budget import Spent, calibrated_scale
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import MECHANISMS, Cost, Mechanism, Sensitivity, register
from later import Later

pld = Later("dp_accounting.pld.privacy_loss_distribution")

GAUSSIAN = "discrete-gaussian"
EPSILONS = (0.01, 0.1, 0.3, 1.0, 3.0, 8.0, 20.0)
DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)
TABLES = (1, 2, 3, 10, 30, 100, 400)
ROWS = (1, 3, 50)


def logs_of_noise(scale, reach):
    """Logarithms of the probabilities of discrete Gaussian noise from -reach to reach."""
    x = np.arange(-reach, reach + 1)
    logs = -0.5 * (x / scale) ** 2
    return logs - logsumexp(logs)


def true_delta(epsilon, scale, tables, rows=1):
    """Return delta at epsilon for a person with so many rows, always in the same cells.

    The privacy loss is linear in the sum of the noise on their cells, which is one discrete
    Gaussian, exactly for one table and to within 1e-15 for more, from a scale of 2 on.
    """
    wide = scale * math.sqrt(tables)
    # In units of rows: what lies below the place where the loss is epsilon counts nothing.
    first = epsilon * scale**2 / rows - 0.5 * rows * tables
    x = np.arange(math.ceil(first), math.ceil(max(first, 0.0) + 14.0 * wide) + 2)
    loss = (rows**2 * tables + 2.0 * rows * x) / (2.0 * scale**2)
    spread = np.arange(math.ceil(14.0 * wide) + 2)
    total = 2.0 * np.exp(-0.5 * (spread / wide) ** 2).sum() - 1.0
    return float(
        (np.exp(-0.5 * (x / wide) ** 2) * -np.expm1(np.minimum(epsilon - loss, 0))).sum() / total
    )


def cases():
    for epsilon, delta, tables, rows in itertools.product(EPSILONS, DELTAS, TABLES, ROWS):
        sensitivity = Sensitivity(tables, rows_per_person=rows)
        scale = calibrated_scale(GAUSSIAN, sensitivity, epsilon=epsilon, delta=delta)
        if scale * math.sqrt(tables) < 2e4:  # beyond, the truth is too long to add up
            yield epsilon, delta, tables, rows, scale


def test_over_a_grid_the_truth_is_never_above_the_asked_epsilon_and_near_it():
    checked = near = 0
    for epsilon, delta, tables, rows, scale in cases():
        if tables > 1 and scale < 2.0:
            continue
        checked += 1
        assert true_delta(epsilon, scale, tables, rows) <= delta
        # Of 30 tables and more; of fewer, where one cell is a small part of the whole.
        mu = rows * math.sqrt(tables) / scale
        if tables >= 30 or mu <= min(0.1 * tables * rows, 3.0):
            near += 1
            assert true_delta(0.995 * epsilon, scale, tables, rows) > delta
    assert (checked, near) == (470, 406)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_google_s_accountant_finds_no_more_than_was_asked(every):
    for epsilon, delta, tables, rows, scale in itertools.islice(cases(), 0, None, every):
        interval = 1e-4 * epsilon
        if rows > 1 or tables not in (1, 10, 100) or not 2.0 < scale * math.sqrt(tables) < 3e4:
            continue
        one = pld.from_discrete_gaussian_mechanism(
            scale * math.sqrt(tables), tables, value_discretization_interval=interval
        )
        found = one.get_epsilon_for_delta(delta)  # rounded up to the interval
        assert found <= epsilon + interval


@pytest.mark.parametrize("scales", [(8.0,), (9.0, 14.0), (3.0, 5.5, 21.0), (40.0,) * 12])
def test_releases_of_different_scales_compose(scales):
    """Each of one table, whose lattices do not go together: the sum of their losses, by FFT."""
    total = None
    for scale in scales:
        one = pld.from_discrete_gaussian_mechanism(scale, 1, value_discretization_interval=1e-4)
        total = one if total is None else total.compose(one)
    cost = Cost.total(Sensitivity(1).cost(GAUSSIAN, scale) for scale in scales)
    for delta in (1e-4, 1e-8):
        true, said = total.get_epsilon_for_delta(delta), cost.epsilon(delta)
        # The accountant rounds each loss up.
        assert true <= said + 1e-4 * len(scales)
        assert said < epsilon_from_rho(cost.rho, delta)


def test_rows_in_different_numbers_in_each_cell_are_covered():
    """Three rows of a person, over two tables: any way to lay them into cells."""
    scale, delta = 9.0, 1e-5
    sensitivity = Sensitivity(2, rows_per_person=3)
    said = sensitivity.cost(GAUSSIAN, scale).epsilon(delta)
    logs = logs_of_noise(scale, 120)
    x = np.arange(-120, 121)
    for shift in itertools.product([(3,), (2, 1), (1, 1, 1)], repeat=2):
        masses, losses = np.ones(1), np.zeros(1)
        for cell in itertools.chain(*shift):
            if len(masses) > 2000:  # equal losses are one
                losses, which = np.unique(np.round(losses * 2 * scale**2), return_inverse=True)
                losses, masses = losses / (2 * scale**2), np.bincount(which, masses)
            loss = (cell**2 + 2 * cell * x) / (2 * scale**2)
            masses = np.outer(masses, np.exp(logs)).ravel()
            losses = np.add.outer(losses, loss).ravel()
        assert (masses * -np.expm1(np.minimum(said - losses, 0.0))).sum() <= delta


def test_sigma_for_a_hundred_tables_at_epsilon_one():
    scale = calibrated_scale(GAUSSIAN, Sensitivity(100), epsilon=1.0, delta=1e-6)
    print(f"sigma for (1, 1e-6), m=100: {scale}")
    assert scale <= 42.4
    assert true_delta(1.0, scale, 100) < 1e-6 < true_delta(0.9998, scale, 100)


# --- numbers ------------------------------------------------------------------------------------

RHOS, SPREADS, SMALL = st.floats(1e-9, 50.0), st.floats(0.0, 1.0), st.floats(1e-15, 0.1)


@given(RHOS, RHOS, SPREADS, SPREADS, SMALL, SMALL)
def test_epsilon_rises_with_every_cost_and_falls_with_delta(a, b, s, t, d, e):
    low, high = sorted((a, b)), sorted((s, t))
    small, large = sorted((d, e))
    least = epsilon_bound(low[0], high[0], large)
    assert least <= epsilon_bound(low[1], high[1], small) * (1 + 1e-9)
    assert least <= epsilon_bound(low[1], high[0], large) * (1 + 1e-9)
    assert least <= epsilon_bound(low[0], high[1], large) * (1 + 1e-9)
    assert least <= epsilon_from_rho(low[0], large)


@given(st.floats(0.01, 20.0), st.floats(1e-12, 1e-3), SPREADS)
def test_rho_and_epsilon_are_each_others_inverse(epsilon, delta, spread):
    rho = rho_bound(epsilon, spread, delta)
    assert rho >= rho_from_epsilon(epsilon, delta)
    assert epsilon_bound(rho, spread, delta) == pytest.approx(epsilon, rel=1e-6)


@given(st.floats(0.01, 20.0), st.floats(1.01, 3.0), st.integers(1, 400), st.integers(1, 50))
def test_more_epsilon_takes_less_noise(epsilon, factor, tables, rows):
    terms = GAUSSIAN, Sensitivity(tables, rows_per_person=rows)
    assume(epsilon * factor <= 20.0)
    more = calibrated_scale(*terms, epsilon=epsilon * factor, delta=1e-6)
    assert more < calibrated_scale(*terms, epsilon=epsilon, delta=1e-6)


@given(st.floats(1e-6, 0.1), st.integers(1, 50), st.integers(1, 400))
def test_a_spread_falls_with_tables_and_is_least_where_they_are_known(rho, rows, tables):
    known = spread_of(rho, rows, rows**2 * tables)
    assert known <= spread_of(rho, rows, rows**2)


def test_noise_that_is_too_coarse_to_be_gaussian_is_accounted_in_zcdp():
    cost = Sensitivity(4).cost(GAUSSIAN, 0.9)
    assert cost.spread == math.inf
    assert cost.epsilon(1e-6) == epsilon_from_rho(cost.rho, 1e-6)
    assert Sensitivity(4).cost(GAUSSIAN, 1.1).spread < math.inf
    assert spread_of(1.5, 2, 4) == math.inf  # a step of 1.5


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-30])
def test_the_smallest_deltas_are_accounted(delta):
    cost = Sensitivity(100).cost(GAUSSIAN, 400.0)
    assert 0.0 < cost.epsilon(delta) <= epsilon_from_rho(cost.rho, delta)


# --- where it holds, and where zCDP stays -------------------------------------------------------


def test_laplace_noise_beside_gaussian_leaves_zcdp():
    gauss, laplace = (
        Sensitivity(9).cost(GAUSSIAN, 50.0),
        Sensitivity(9).cost("discrete-laplace", 90),
    )
    both = gauss + laplace
    assert both.epsilon(1e-6) == epsilon_from_rho(both.rho, 1e-6)
    assert Cost(0.01).epsilon(1e-6) == epsilon_from_rho(0.01, 1e-6)
    assert gauss.epsilon(1e-6) < gauss.by_zcdp().epsilon(1e-6)


def test_an_earlier_release_counts_as_one_of_a_single_table():
    own = Sensitivity(100).cost(GAUSSIAN, 60.0)
    spent = Spent("a", "tables", own, "add-remove", 1)
    assert spent.cost.rho == own.rho
    assert own.spread < spent.cost.spread < 0.04 * own.rho
    assert Spent.from_dict(spent.to_dict()) == spent
    stated = Spent("a", "tables", own, "add-remove", 1, tables=100)
    assert stated.cost == own
    assert Spent.from_dict(stated.to_dict()) == stated
    # What a plan says of fewer tables, or nothing, contains what its site knows; not of more.
    assert spent.contains([stated])
    assert not stated.contains([spent])
    laplace = Spent("b", "tables", Sensitivity(5).cost("discrete-laplace", 9.0), "add-remove", 1)
    assert laplace.cost.spread == math.inf


def test_a_mechanism_that_is_neither_pure_nor_gaussian_is_refused():
    class Other(Mechanism):
        name, words, pure, excess_kurtosis = "other", "", False, 0.0
        cost = scale = sampler = noise_sd = log_ratio = None

    with pytest.raises(UsageError, match=r"'other': needs a pure epsilon, or Gaussian noise"):
        register(Other())
    assert "other" not in MECHANISMS


def ledger(accounting, release="a"):
    return Ledger(
        GAUSSIAN, Sensitivity(100), 1e-6, (Share(release, 45.3088, ""),), accounting=accounting
    )


def test_a_ledger_from_before_keeps_the_figure_that_it_states():
    old, new = ledger("zcdp"), ledger("gaussian")
    assert "accounting" not in old.to_dict()
    assert old.epsilon == pytest.approx(1.0, rel=1e-5)
    assert new.epsilon == pytest.approx(0.928, abs=1e-3)
    for one in (old, new):
        assert Ledger.from_dict(one.to_dict()) == one
    # Neither passes for the other.
    for one, other in ((old, new), (new, old)):
        with pytest.raises(PlanError, match="states epsilon"):
            Ledger.from_dict(one.to_dict() | {"epsilon": other.epsilon})
    with pytest.raises(PlanError, match="accounting='exact': needs 'gaussian' or 'zcdp'"):
        Ledger.from_dict(new.to_dict() | {"accounting": "exact"})


def test_releases_old_and_new_merge_in_any_order():
    old, new = ledger("zcdp"), ledger("gaussian", "b")
    assert (old + new).epsilon == (new + old).epsilon == new.epsilon
    assert (old + ledger("zcdp", "c")).accounting == "zcdp"


@pytest.mark.parametrize("rows", [1, 2, 5, 32, 160])
def test_a_smaller_change_in_a_period_costs_a_smaller_factor(rows):
    """Step 4 under a horizon: of a change by t times the largest, theta is at most .0008 t a."""
    worst = 0.0
    for a in np.geomspace(1e-9, 1.0, 60):
        variance = rows / a
        smooth = math.log(2.0 / (0.0008 * a)) / (2.0 * math.pi**2)
        assert 0.39 <= smooth <= 0.4 * variance
        for t in np.linspace(1e-3, 1.0, 200):
            r2 = 1.0 / (t**2 / smooth + (1.0 - t**2) / variance)
            theta = 2.0 * sum(math.exp(-2.0 * math.pi**2 * r2 * k * k) for k in range(1, 6))
            worst = max(worst, theta / (0.0008 * t * a))
    assert worst <= 1.0 + 1e-9 + math.exp(-6.0 * math.pi**2 * 0.39)


@pytest.mark.parametrize("tables", [1, 3, 200])
@pytest.mark.parametrize("periods", [12, 60, 520])
def test_the_factor_of_a_stream_is_within_what_the_proof_allows(periods, tables):
    """520 largest changes of one table are more than mu^2; the sum of the actual ones is not."""
    horizon = Horizon.of(periods)
    unit = Sensitivity(tables, horizon=horizon)
    scale = calibrated_scale("discrete-gaussian", unit, epsilon=1.0, delta=1e-6)
    rho = unit.l2_squared / (2.0 * scale**2)
    changes = horizon.columns[horizon.columns > 0].astype(float)
    assert changes.sum() / scale**2 <= tables * (changes**2).sum() / scale**2
    assert tables * (changes**2).sum() / scale**2 <= 2.0 * rho * (1.0 + 1e-9)
    if (periods, tables) == (520, 1):  # the largest change in each period would be too much
        assert periods * horizon.most / scale**2 > 2.0 * rho
