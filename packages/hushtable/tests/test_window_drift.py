"""What moved between two sums of periods: noise that both share is allowed for."""

from dataclasses import replace

import numpy as np
import pytest

from hushtable import Feature, Periods, Plan, Schema, Sketch, decoded, drift
from hushtable.errors import UsageError
from hushtable.streams import shared_noise

pytest.importorskip("opendp")

SCHEMA = Schema([Feature.numeric(name, low=-6, high=6) for name in "abc"])
#: Few and small tables, that many draws are fast.
SMALL = {"n_tables": 12, "n_cells": 16, "min_depth": 2, "max_depth": 4, "random_state": 0}
PLAN = Plan.draw(SCHEMA, epsilon=0.7, expected_rows=4_000, horizon=6, **SMALL)


def stream(rng, months, shift=0.0, at=99, rows=600):
    """Return what these months released; from month ``at`` on, column b has moved."""
    site, found = Periods(PLAN, epsilon=0.7), []
    for month in range(months):
        X = rng.normal(size=(rows, 3))
        X[:, 1] += shift * (month >= at)
        found.append(site.release(Sketch.from_data(PLAN, X)))
    return found


def before_and_after(increments, window):
    return decoded(increments[:-window]), decoded(increments, window=window)


@pytest.mark.parametrize(
    ("months", "window"),
    [
        (2, 1),
        pytest.param(6, 2, marks=pytest.mark.slow),
        pytest.param(6, 5, marks=pytest.mark.slow),
    ],
)
def test_the_noises_share_what_the_weights_say(months, window):
    zero, released = Sketch.zero(PLAN), []
    for _ in range(120):
        site = Periods(PLAN, epsilon=0.7)
        increments = [site.release(zero) for _ in range(months)]
        before, after = before_and_after(increments, window)
        released.append((before.counts, after.counts))
    a, b = np.array(released, float).transpose(1, 0, 2).reshape(2, -1)
    said = shared_noise(before, after)
    assert said < 0.0  # so that to take them for independent would give false alarms
    products, five = a * b, 5.0 / np.sqrt(len(a))  # standard errors
    assert five * products.std() < 0.15 * abs(said)  # so few that another share would be seen
    assert products.mean() == pytest.approx(said, abs=five * products.std())
    both = before.noise_sd**2 + after.noise_sd**2 - 2.0 * said
    assert (a - b).var() == pytest.approx(both, rel=0.1)


def alarms(plan, rows, draws):
    """Return drifts over their levels, of sums of four months to which nothing happened.

    The noise is drawn at the covariance that the test above measures: many draws are fast.
    """
    site = Periods(plan, epsilon=plan.design.epsilon)
    sums = before_and_after([site.release(Sketch.zero(plan)) for _ in range(4)], 1)
    variances = [one.noise_sd**2 for one in sums]
    shared = shared_noise(*sums)
    root = np.linalg.cholesky([[variances[0], shared], [shared, variances[1]]])
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        noises = np.rint(root @ rng.normal(size=(2, plan.family.n_cells))).astype(np.int64)
        sides = [
            replace(one, counts=noise + Sketch.from_data(plan, rng.normal(size=(n, 3))).counts)
            for one, noise, n in zip(sums, noises, (3 * rows, rows), strict=True)
        ]
        found.append(drift(*sides))
    return found


def test_sums_with_a_period_in_common_are_refused():
    increments = stream(np.random.default_rng(2), 4)
    for before, after in (
        (decoded(increments), decoded(increments, window=1)),
        (decoded(increments[:3]), decoded(increments, window=2)),
        (decoded(increments), decoded(increments)),
    ):
        for pair in ((before, after), (after, before)):
            with pytest.raises(UsageError, match="a period is in both"):
                drift(*pair)
    other = decoded(stream(np.random.default_rng(3), 4))  # of other people
    assert shared_noise(decoded(increments), other) == 0.0
    assert not np.isnan(drift(decoded(increments), other).level)
    with pytest.raises(UsageError, match="decode"):
        drift(increments[0], increments[1])
