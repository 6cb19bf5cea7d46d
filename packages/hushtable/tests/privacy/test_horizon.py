"""Mixing the counts of periods: what it costs, what it decodes to, and how exact that is."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import toeplitz

from hushtable.errors import PlanError, UsageError
from hushtable.privacy import Horizon


def matrix(horizon):
    return np.tril(toeplitz(horizon.factor))


def releases(horizon, counts, noise):
    """What all periods release, for counts and noise (T, cells)."""
    mixed = [horizon.mixed(counts[: t + 1]) for t in range(len(counts))]
    return np.array(mixed) + noise


@pytest.mark.parametrize(("periods", "most"), [(12, 3.6), (60, 6.0)])
def test_the_running_sum_is_nearly_as_exact_as_one_release(periods, most):
    horizon = Horizon.of(periods)
    rng, cells, sigma = np.random.default_rng(0), 40_000, 10.0
    counts = rng.poisson(3.0, (periods, cells))
    noise = np.rint(rng.normal(0.0, sigma * horizon.sensitivity_squared**0.5, counts.shape))
    decoded = horizon.weights(periods) @ releases(horizon, counts, noise)
    found = np.var(decoded - counts.sum(axis=0)) / sigma**2
    worst = max(horizon.variance(t) for t in range(1, periods + 1))
    print(f"{periods} periods: {found:.2f} times one release's variance, {worst:.2f} by formula")
    assert found == pytest.approx(horizon.variance(periods), rel=0.03)
    assert worst <= most


@given(
    periods=st.integers(1, 40),
    window=st.integers(1, 40),
    participations=st.integers(1, 3),
    apart=st.integers(1, 6),
)
def test_without_noise_sums_come_back(periods, window, participations, apart):
    if apart * (participations - 1) >= periods:
        return
    horizon = Horizon.of(periods, participations, apart)
    counts = np.random.default_rng(periods).integers(0, 1000, (periods, 5))
    released = releases(horizon, counts, 0)
    np.testing.assert_array_equal(released, matrix(horizon) @ counts)
    for t in range(1, periods + 1):
        sums = horizon.weights(t) @ released[:t]
        np.testing.assert_allclose(sums, counts[:t].sum(axis=0), atol=1e-6)
        last = min(window, t)
        sums = horizon.weights(t, last) @ released[:t]
        np.testing.assert_allclose(sums, counts[t - last : t].sum(axis=0), atol=1e-6)


@pytest.mark.parametrize("periods", [1, 2, 5, 9])
@pytest.mark.parametrize("participations", [1, 2, 3])
@pytest.mark.parametrize("apart", [1, 2, 4])
def test_no_choice_of_periods_changes_more(periods, participations, apart):
    if apart * (participations - 1) >= periods:
        pytest.skip("so many do not fit")
    horizon = Horizon.of(periods, participations, apart)
    mixing = matrix(horizon)
    changes = [
        mixing[:, list(chosen)].sum(axis=1)
        for k in range(1, participations + 1)
        for chosen in itertools.combinations(range(periods), k)
        if all(b - a >= apart for a, b in itertools.pairwise(chosen))
    ]
    assert horizon.sensitivity_squared == max((one**2).sum() for one in changes)
    assert horizon.most == max(one.max() for one in changes)


def test_a_band_helps_persons_who_come_back_rarely():
    yearly = Horizon.of(60, participations=5, apart=12)
    unbanded = Horizon(Horizon.of(60).factor, 5, 12)
    print(f"{yearly.variance(60):.1f} in a band, {unbanded.variance(60):.1f} without, 25 at once")
    assert 25.0 < yearly.variance(60) < unbanded.variance(60)


def test_mixing_is_linear_so_that_sites_and_masks_add_up():
    horizon = Horizon.of(7)
    rng = np.random.default_rng(0)
    north, south = rng.integers(-(2**40), 2**40, (2, 7, 4))
    both = horizon.mixed(north) + horizon.mixed(south)
    np.testing.assert_array_equal(both, horizon.mixed(north + south))
    late = south.copy()
    late[:3] = 0  # a site that joins in the fourth period
    np.testing.assert_array_equal(horizon.mixed(late), horizon.mixed(south[3:]))


def test_one_period_is_one_release():
    assert Horizon.of(1).variance(1) == 1.0


@pytest.mark.parametrize("horizon", [Horizon.of(12), Horizon.of(24, 2, 12)], ids=str)
def test_it_travels_in_a_file(horizon):
    said = json.loads(json.dumps(horizon.to_dict()))
    assert Horizon.from_dict(said) == horizon


@pytest.mark.parametrize(
    "wrong",
    [
        {"factor": []}, {"factor": [0, 0]}, {"factor": [1, 2]}, {"factor": [2, -1]},
        {"factor": [1.5]}, {"factor": [True]}, {"factor": [33]}, {"factor": [1] * 521},
        {"factor": [2, 1], "participations": 3}, {"factor": [2, 1], "apart": 0}, {}, [],
        {"factor": [2, 1], "participations": 2, "apart": 2}, {"factor": [1], "more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_other_files_are_refused(wrong):
    with pytest.raises(PlanError):
        Horizon.from_dict(wrong)


@pytest.mark.parametrize(
    ("periods", "more"), [(0, {}), (521, {}), (2.5, {}), (5, {"participations": 6})]
)
def test_bad_wishes_are_refused(periods, more):
    with pytest.raises(UsageError):
        Horizon.of(periods, **more)


@pytest.mark.parametrize(("period", "window"), [(0, None), (13, None), (4, 5), (4, 0)])
def test_sums_of_other_periods_are_refused(period, window):
    with pytest.raises(UsageError):
        Horizon.of(12).weights(period, window)
