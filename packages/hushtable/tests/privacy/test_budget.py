"""Accounting: conversions, calibration and composition, against Google's dp-accounting."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable.errors import PrivacyError, UsageError
from hushtable.privacy.accounting import epsilon_from_rho, rho_from_epsilon
from hushtable.privacy.budget import Charge, at_sites, calibrated_scale
from hushtable.privacy.mechanisms import Cost, Sensitivity
from later import Later

dp_event = Later("dp_accounting.dp_event")
pld = Later("dp_accounting.pld.privacy_loss_distribution")
rdp = Later("dp_accounting.rdp.rdp_privacy_accountant")

GAUSSIAN, LAPLACE = "discrete-gaussian", "discrete-laplace"

GRID = list(
    itertools.product(
        (0.05, 0.1, 0.3, 1.0, 3.0, 8.0, 15.0, 20.0),  # epsilon
        (1e-3, 1e-5, 1e-6, 1e-9, 1e-12),  # delta
        (1, 10, 100, 400, 1555),  # tables
    )
)


def pld_epsilon(sigma, tables, delta):
    one = pld.from_discrete_gaussian_mechanism(sigma, 1, value_discretization_interval=1e-5)
    return one.self_compose(tables).get_epsilon_for_delta(delta)


# --- conversions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(0.1, 3.21e-4), (0.3, 2.54e-3), (1.0, 0.0244), (3.0, 0.185)]
)
def test_known_costs_at_a_millionth(epsilon, rho):
    assert rho_from_epsilon(epsilon, 1e-6) == pytest.approx(rho, rel=2e-3)


@given(st.floats(1e-6, 100.0), st.floats(1e-15, 0.1))
def test_conversions_are_each_others_inverse(rho, delta):
    epsilon = epsilon_from_rho(rho, delta)
    if epsilon > 1e-3:
        assert rho_from_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-6)


@given(st.floats(1e-6, 50.0), st.floats(1e-15, 0.1), st.floats(1.0001, 1e4))
def test_no_order_gives_a_smaller_epsilon(rho, delta, order):
    bound = rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)
    assert epsilon_from_rho(rho, delta) <= max(0.0, bound) + 1e-9


def test_tighter_than_the_textbook_and_never_below_the_optimum():
    for rho in (1e-3, 0.02, 0.5):
        textbook = rho + 2 * math.sqrt(rho * math.log(1e6))
        optimum = pld_epsilon(math.sqrt(1 / (2 * rho)) * 10, 100, 1e-6)
        assert optimum <= epsilon_from_rho(rho, 1e-6) < textbook


def test_agrees_with_renyi_accounting():
    """Google's accountant takes the best of the orders it is given: ours is at most 1% off."""
    orders = [1 + 1.02**x for x in range(-200, 400)]
    for sigma, tables in ((45.3, 100), (20.0, 200), (300.0, 50)):
        accountant = rdp.RdpAccountant(orders)
        accountant.compose(dp_event.GaussianDpEvent(sigma), tables)
        ours = epsilon_from_rho(tables / (2 * sigma**2), 1e-6)
        assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=0.01)


@pytest.mark.filterwarnings("error")
def test_a_cost_beyond_all_reason_is_a_number():
    assert 1e300 <= epsilon_from_rho(1e300, 1e-6) < 1e301


def test_nothing_costs_nothing_and_everything_everything():
    assert epsilon_from_rho(0.0, 1e-6) == 0.0
    assert epsilon_from_rho(math.inf, 1e-6) == math.inf


# --- from a budget to a scale -----------------------------------------------------------------


def test_the_calibrated_epsilon_is_never_above_the_asked_one():
    assert len(GRID) == 200
    for epsilon, delta, tables in GRID:
        sensitivity = Sensitivity(tables)
        scale = calibrated_scale(GAUSSIAN, sensitivity, epsilon=epsilon, delta=delta)
        reached = sensitivity.cost(GAUSSIAN, scale).epsilon(delta)
        assert epsilon * (1 - 1e-4) < reached <= epsilon
        scale = calibrated_scale(LAPLACE, sensitivity, epsilon=epsilon)
        assert epsilon * (1 - 1e-4) < sensitivity.cost(LAPLACE, scale).epsilon(0.0) <= epsilon


@pytest.mark.parametrize("mechanism", [GAUSSIAN, LAPLACE])
def test_shares_of_a_budget_add_up_to_the_whole(mechanism):
    delta = 1e-6 if mechanism == GAUSSIAN else 0.0
    first, second = Sensitivity(21), Sensitivity(200)
    one = calibrated_scale(mechanism, first, epsilon=1.0, delta=delta, share=0.1)
    before = first.cost(mechanism, one)
    two = calibrated_scale(mechanism, second, epsilon=1.0, delta=delta, before=before)
    total = before + second.cost(mechanism, two)
    assert 1.0 - 1e-4 < total.epsilon(delta) <= 1.0
    unit = "rho" if mechanism == GAUSSIAN else "pure"
    assert getattr(before, unit) / getattr(total, unit) == pytest.approx(0.1, rel=1e-3)


def test_an_exhausted_budget_is_refused():
    spent = Cost(rho_from_epsilon(1.0, 1e-6))
    with pytest.raises(PrivacyError, match=r"exhausted: earlier releases.* add up to epsilon 1:"):
        calibrated_scale(GAUSSIAN, Sensitivity(10), epsilon=1.0, delta=1e-6, before=spent)
    half = Cost(0.5 * spent.rho)
    with pytest.raises(
        PrivacyError, match=r"add up to epsilon 0\.691, .*this one should cost 60\.0%"
    ):
        calibrated_scale(GAUSSIAN, Sensitivity(10), epsilon=1.0, delta=1e-6, before=half, share=0.6)
    with pytest.raises(PrivacyError, match="pure epsilon cannot follow"):
        calibrated_scale(LAPLACE, Sensitivity(10), epsilon=1.0, before=half)


@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [
        (GAUSSIAN, {"epsilon": 1.0, "delta": 1e-30, "share": 5e-324}),
        (GAUSSIAN, {"epsilon": 1e-12, "delta": 1e-30}),
        (GAUSSIAN, {"epsilon": 5e-324, "delta": 5e-324}),
        (LAPLACE, {"epsilon": 5e-324}),
        (LAPLACE, {"epsilon": 1e-11}),
    ],
)
def test_a_budget_that_no_noise_is_large_enough_for_is_refused(mechanism, terms):
    with pytest.raises(PrivacyError, match=r"needs noise beyond 2\^40 .*: raise epsilon"):
        calibrated_scale(mechanism, Sensitivity(100), **terms)


# --- sensitivity and composition ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("adjacency", "rows", "l1", "l2_squared"),
    [
        ("add-remove", 1, 100, 100),
        ("replace-one", 1, 200, 200),
        ("add-remove", 3, 300, 900),
        ("replace-one", 3, 600, 1800),
    ],
)
def test_sensitivities(adjacency, rows, l1, l2_squared):
    sensitivity = Sensitivity(100, adjacency, rows)
    assert (sensitivity.l1, sensitivity.l2_squared) == (l1, l2_squared)


def test_a_sample_of_fixed_size_changes_two_cells_of_a_table():
    assert Sensitivity(100, sampled=True).l1 == Sensitivity(100, "replace-one").l1


def test_gaussian_beats_laplace_from_about_ten_tables_on():
    def sd(tables, mechanism):
        sensitivity = Sensitivity(tables)
        if mechanism == LAPLACE:
            return math.sqrt(2) * calibrated_scale(LAPLACE, sensitivity, epsilon=1.0)
        return calibrated_scale(GAUSSIAN, sensitivity, epsilon=1.0, delta=1e-6)

    assert sd(8, GAUSSIAN) > sd(8, LAPLACE)
    assert sd(10, GAUSSIAN) < sd(10, LAPLACE)
    assert sd(100, LAPLACE) == pytest.approx(141, abs=0.5)


def test_the_papers_epsilon_is_that_of_one_table():
    """Lap(1 / .01) on each of 100 tables: the paper says .01, the whole release costs 1."""
    assert Sensitivity(100).cost("laplace-per-table", 100.0).epsilon(0.0) == pytest.approx(1.0)


def test_laplace_in_zcdp_holds_for_the_optimal_accountant():
    cost = Sensitivity(100).cost(LAPLACE, 100.0)
    one = pld.from_laplace_mechanism(100.0, 1, value_discretization_interval=1e-5)
    assert one.self_compose(100).get_epsilon_for_delta(1e-6) <= cost.epsilon(1e-6) < 1.0


def test_costs_on_the_same_rows_add_and_disjoint_sites_do_not():
    a, b = Cost(0.01), Cost(0.02)
    assert (a + b).rho == pytest.approx(0.03)
    assert Cost.largest([a, b]) == b
    assert Cost.total([]).epsilon(1e-6) == 0.0
    mixed = a + Cost(0.005, 0.1)
    assert mixed.pure == math.inf
    assert mixed.epsilon(1e-6) == epsilon_from_rho(0.015, 1e-6)
    # The same on every version of Python: since 3.12, sum() of floats rounds in another way.
    assert at_sites([[Charge(Cost(0.0, 0.1, 0.0))]] * 10, 10).pure == 1.0


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, None, 10**400])
def test_a_privacy_unit_of_no_rows_is_refused(rows):
    with pytest.raises(UsageError, match="rows_per_person="):
        Sensitivity(10, rows_per_person=rows)


@pytest.mark.parametrize("tables", [0, 10**400])
def test_tables_that_no_plan_has_are_refused(tables):
    with pytest.raises(UsageError, match="tables="):
        Sensitivity(tables)


def test_an_unknown_adjacency_is_refused():
    with pytest.raises(UsageError, match="adjacency='bounded': needs 'add-remove'"):
        Sensitivity(10, "bounded")
