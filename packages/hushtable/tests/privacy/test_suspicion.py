"""The table of suspicion against the exact law of the privacy loss, added up on whole numbers."""

import math
import re

import numpy as np
import pytest

from hushtable.errors import PrivacyError, UsageError
from hushtable.privacy import Sensitivity, suspicion
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import calibrated_scale
from places import DOCS

DELTA = 1e-6
EPSILONS = 0.1, 0.3, 1.0, 3.0, 8.0


def loss_beyond(factor, tables, scale):
    """Return the probability that the odds of a counted row rise by more than e^factor.

    The row adds 1 to a cell of each table; the loss follows from the sum of their noise, whose
    law is found by convolving that of one cell.
    """
    reach = 1 << math.ceil(math.log2(12.0 * scale * math.sqrt(tables)) + 1)
    sums = np.arange(-reach // 2, reach // 2)
    one = np.exp(-0.5 * (sums / scale) ** 2)
    spectrum = np.fft.fft(np.fft.ifftshift(one / one.sum())) ** tables
    law = np.maximum(np.fft.fftshift(np.fft.ifft(spectrum).real), 0.0)
    return float(law[(tables / 2.0 + sums) / scale**2 > factor].sum())


def scale_of(epsilon, tables):
    return calibrated_scale("discrete-gaussian", Sensitivity(tables), epsilon=epsilon, delta=DELTA)


def log_odds(probability):
    return math.log(probability / (1.0 - probability))


@pytest.mark.parametrize("tables", [100, 400])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_suspicion_grows_beyond_it_except_with_probability_delta(epsilon, tables):
    scale, after = scale_of(epsilon, tables), suspicion(0.5, epsilon, DELTA)
    # On whole numbers, the loss moves in steps: half a step is what the tails may differ by.
    step = 1.0 / scale**2
    assert loss_beyond(log_odds(after) + step, tables, scale) <= DELTA
    assert loss_beyond(log_odds(after) - step, tables, scale) >= DELTA
    assert loss_beyond(log_odds(stated(after) / 100.0), tables, scale) <= DELTA


def stated(probability):
    """Return a suspicion as the pages state it, in percent: rounded up, and never to certainty."""
    percent = 100.0 * probability
    return next(x for digits in (3, 4) if (x := rounded_up(percent, digits)) < 100.0)


def test_the_page_on_privacy_states_these_figures():
    rows = re.findall(
        r"^\| ([\d.]+) \| ([\d.,]+) \| ([\d.]+)% \| ([\d.]+)% \|$",
        text("explanation/privacy"),
        re.M,
    )
    assert [float(row[0]) for row in rows] == list(EPSILONS)
    for row in rows:
        epsilon, factor, even, unlikely = (float(x.replace(",", "")) for x in row)
        assert factor == float(f"{math.exp(epsilon):.{3 if epsilon < 8 else 4}g}")
        assert even == stated(suspicion(0.5, epsilon, DELTA))
        assert unlikely == stated(suspicion(0.01, epsilon, DELTA))


def test_the_page_on_privacy_states_the_noise():
    said = r"For m\s+= 100, epsilon 1 and delta 1e-6, . is ([\d.]+)\."
    stated = re.search(said, text("explanation/privacy"))
    assert float(stated[1]) == round(scale_of(1.0, 100), 1)


def text(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def test_the_odds_rise_beyond_e_to_the_epsilon_more_often_than_delta():
    """The clause "except with probability delta" would be wrong by these factors."""
    often = {e: loss_beyond(e, 100, scale_of(e, 100)) / DELTA for e in (0.1, 0.3, 1.0, 3.0)}
    assert {e: round(x) for e, x in often.items()} == {0.1: 149, 0.3: 57, 1.0: 20, 3.0: 8}
    assert suspicion(0.5, 1.0, DELTA) > 1.03 * suspicion(0.5, 1.0)


@pytest.mark.parametrize("before", [0.01, 0.5, 0.9])
def test_without_delta_the_odds_rise_by_e_to_the_epsilon(before):
    after = suspicion(before, 2.0)
    assert math.isclose(log_odds(after), log_odds(before) + 2.0)


@pytest.mark.parametrize("before", [0.0, 1.0, -0.1, math.nan])
def test_a_suspicion_is_a_probability(before):
    with pytest.raises(UsageError, match="needs a probability above 0 and below 1"):
        suspicion(before, 1.0, DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (-1.0, DELTA), (1.0, 2.0), (50.0, 0.0)])
def test_no_suspicion_for_what_is_no_guarantee(epsilon, delta):
    with pytest.raises(PrivacyError):
        suspicion(0.5, epsilon, delta)
