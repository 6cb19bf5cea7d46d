"""Noise: its distribution, its independence, its speed."""

import math
import sys

import numpy as np
import pytest
from scipy import stats

from hushtable.errors import MissingExtraError, PrivacyError
from hushtable.privacy import mechanisms as mechanism
from hushtable.privacy.mechanisms import Sensitivity, add_noise, library, named

GAUSSIAN, LAPLACE = "discrete-gaussian", "discrete-laplace"
#: A correct sampler fails one of the tests of fit once in a million runs.
RARE = 1e-7


def weights(kind, scale, x):
    return np.exp(-(x**2) / (2 * scale**2)) if kind == GAUSSIAN else np.exp(-np.abs(x) / scale)


def pmf(kind, scale):
    reach = math.ceil(40 * scale) + 40
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    p = weights(kind, scale, x)
    return x, p / p.sum()


def fit(sample, kind, scale):
    """P-value of a chi-square test over some thirty groups of about equal probability."""
    x, p = pmf(kind, scale)
    middle = np.cumsum(p) - p / 2
    _, group = np.unique(np.floor(30 * middle).clip(0, 29), return_inverse=True)
    expected = np.bincount(group, p * len(sample))
    seen = np.bincount(group[(sample - x[0]).astype(int)], minlength=len(expected))
    assert expected.min() > 50
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        (GAUSSIAN, 0.7),
        (LAPLACE, 4.5),
        pytest.param(GAUSSIAN, 45.3, marks=pytest.mark.slow),
        pytest.param(LAPLACE, 0.7, marks=pytest.mark.slow),
        pytest.param(GAUSSIAN, 4.5, marks=pytest.mark.slow),
        pytest.param(LAPLACE, 45.3, marks=pytest.mark.slow),
    ],
)
def test_noise_fits_its_distribution(kind, scale):
    n = 150_000
    sample = add_noise(np.zeros(n, np.int64), kind, scale)
    assert fit(sample, kind, scale) > RARE
    # ... and the test can tell: 5% more or less noise does not fit.
    for wrong in (scale * 1.05, scale / 1.05):
        assert fit(sample, kind, wrong) < RARE
    assert abs(sample.mean()) < 6 * sample.std() / math.sqrt(n)


@pytest.mark.parametrize("kind", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("scale", [0.7, 1.6, 4.5, 45.3])
def test_the_standard_deviation_is_that_of_the_distribution(kind, scale):
    x, p = pmf(kind, scale)
    exact = math.sqrt((p * x**2).sum())
    assert named(kind).noise_sd(scale) == pytest.approx(exact, rel=2e-3)
    assert named(kind).noise_sd(scale) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 10_000])
def test_every_cell_gets_noise_of_its_own(length):
    counts = np.arange(length) * 1_000_000
    noise = add_noise(counts, GAUSSIAN, 100.0) - counts
    assert noise.shape == (length,)
    assert np.abs(noise).max() < 1200  # 12 standard deviations
    if length > 1:
        assert noise.std() == pytest.approx(100, rel=6 / math.sqrt(2 * length))
        # No cell's noise goes with another's, at whatever distance.
        assert p_value(noise) > RARE


@pytest.mark.parametrize(
    "planted",
    [
        lambda z: np.resize(z[:4096], 10_000),  # each chunk of a call has the noise of the first
        lambda z: np.resize(z[:100], 10_000),
        lambda z: np.repeat(z[:5000], 2),
        lambda z: np.concatenate([z[:5000], -z[:5000]]),
        lambda z: np.cumsum(z - z.mean()) // 50,
        lambda z: np.concatenate([z[:8000], z[:2000]]),
        lambda z: z * 9 // 10,
    ],
    ids=["chunks", "tables", "pairs", "antithetic", "walk", "a part of it", "nine tenths"],
)
def test_noise_that_cells_share_is_seen(planted):
    noise = planted(add_noise(np.zeros(10_000, np.int64), GAUSSIAN, 100.0))
    assert p_value(noise) < RARE


def p_value(noise):
    bounds = pytest.importorskip("hushtable_bench.systems.bounds", reason="needs hushtable-bench")
    residuals = bounds.Residuals()
    residuals.add(noise, GAUSSIAN, 100.0)
    return residuals.p_value()


def test_two_calls_differ_whatever_numpys_seed():
    noised = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002 (what the noise must not listen to)
        noised.append(add_noise(np.zeros(100, np.int64), GAUSSIAN, 50.0))
    assert not np.array_equal(*noised)


def test_counts_stay_as_they_were():
    counts = np.arange(10)
    add_noise(counts, GAUSSIAN, 10.0)
    assert np.array_equal(counts, np.arange(10))


@pytest.mark.parametrize("tables", [1, 7, 100, 1555])
@pytest.mark.parametrize("scale", [2.0, 45.3088, 1234.5])
def test_opendps_own_map_agrees_with_the_cost(tables, scale):
    gauss = mechanism._sampler(GAUSSIAN, scale, 10)
    sensitivity = Sensitivity(tables)
    rho = gauss.map(math.nextafter(math.sqrt(sensitivity.l2_squared), math.inf))
    assert rho == pytest.approx(sensitivity.cost(GAUSSIAN, scale).rho, rel=1e-9)
    epsilon = mechanism._sampler(LAPLACE, scale, 10).map(sensitivity.l1)
    assert epsilon == pytest.approx(sensitivity.cost(LAPLACE, scale).pure, rel=1e-9)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**41])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(PrivacyError, match="noise of scale"):
        add_noise(np.zeros(3, np.int64), GAUSSIAN, scale)


def test_the_largest_scale_is_drawn():
    assert np.abs(add_noise(np.zeros(9, np.int64), GAUSSIAN, 2.0**40)).max() > 2**36


def test_a_missing_opendp_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    for call in (library, lambda: add_noise(np.zeros(3, np.int64), GAUSSIAN, 1.0)):
        with pytest.raises(MissingExtraError, match=r"pip install 'hushtable\[private\]'"):
            call()


@pytest.mark.parametrize("installed", ["0.9.2", "0.12.0", "0.14.1"])
def test_an_opendp_that_draws_biased_noise_is_refused(monkeypatch, installed):
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)
    for call in (library, lambda: add_noise(np.zeros(3, np.int64), GAUSSIAN, 1.0)):
        with pytest.raises(PrivacyError, match=rf"OpenDP {installed} .*0\.14\.2 or.*--upgrade"):
            call()


@pytest.mark.parametrize("installed", ["0.14.2", "0.15.0a20260301001", "1.0.0"])
def test_an_opendp_that_draws_well_is_taken(monkeypatch, installed):
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)
    assert library() == f"opendp {installed}"
