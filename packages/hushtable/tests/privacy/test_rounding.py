"""Costs that people read and sign: no printed figure is below the true one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable.describe import describe_ledger
from hushtable.describe.ledger import ledger_lines, ledger_rows
from hushtable.privacy import Ledger, Sensitivity, Share
from hushtable.privacy.accounting import rounded_up

#: What adding up in floating point may make of a sum.
FLOATING = 1.0 - 2e-9
SCALES = st.floats(2.0, 2000.0)
DELTAS = st.floats(1e-12, 1e-3)


@given(st.floats(1e-12, 1e9), st.integers(1, 9))
def test_a_figure_is_rounded_up_to_its_digits(number, digits):
    up = rounded_up(number, digits)
    assert number * FLOATING <= up <= number * (1.0 + 10.0 ** (1 - digits)) * (1.0 + 1e-9)
    assert up == float(f"{up:.{digits}g}")


@pytest.mark.parametrize(
    ("number", "digits", "up"),
    [
        (1.0042, 3, 1.01), (1.00001, 3, 1.01), (1.0 + 1e-12, 3, 1.0), (0.1 + 0.2, 3, 0.3),
        (0.0, 3, 0.0), (0.30001, 1, 0.4), (1e-6, 3, 1e-6), (1234.5, 2, 1300.0),
        (float("inf"), 3, float("inf")),
    ],
)  # fmt: skip
def test_figures_next_to_a_round_number(number, digits, up):
    assert rounded_up(number, digits) == up


def figures(pattern, text):
    """Return all numbers that a pattern finds, and at least one."""
    found = [float(x) for x in re.findall(pattern, text)]
    assert found, (pattern, text)
    return found


@given(SCALES, SCALES, DELTAS)
def test_no_sentence_and_no_line_about_a_ledger_is_below_the_truth(scale, other, delta):
    shares = tuple(Share(name, s, "opendp") for name, s in (("a1", scale), ("b2", other)))
    terms = "discrete-gaussian", Sensitivity(20), delta
    ledger = Ledger(*terms, shares, accounting="gaussian")
    first, *_, last = describe_ledger(ledger)
    epsilon, plus = figures(r"e\^([\d.e+-]+),", first) + figures(r"plus ([\d.e-]+)\.$", first)
    assert ledger.epsilon * FLOATING <= epsilon
    assert delta * FLOATING <= plus
    at_both = figures(r"e\^([\d.e+]+)\.$", last)[0]
    assert ledger.epsilon_at(2) * FLOATING <= at_both
    total = ledger_lines(ledger, ledger.noise_sd)["Total"]
    stated = figures(r"(?:rho|epsilon|delta) ([\d.e+-]+)", total)
    for figure, true in zip(stated, (ledger.rho, ledger.epsilon, delta), strict=True):
        assert true * FLOATING <= figure <= 1.02 * true
    for row, share in zip(ledger_rows(ledger), shares, strict=True):
        assert ledger.cost_of(share).rho * FLOATING <= float(row[3])
