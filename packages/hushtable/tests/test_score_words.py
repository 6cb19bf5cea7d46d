"""What a difference between two scores stands for: the sentence of each model, and its proof."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch
from hushtable.counts import rounds
from hushtable.errors import PlanError
from hushtable.plans.score_rule import ScoreRule

RULES = ScoreRule("log2"), ScoreRule("smoothed_log2", 0.2), ScoreRule("pseudocount_log2", 0.05)
WORDS = {"one": 1, "two": 2}
#: Scores are rounded to multiples of 2**-20.
ROUNDED = 2.0**-19
COUNTS = st.lists(st.integers(0, 2**40), min_size=1, max_size=20).map(
    lambda half: np.array(half, np.int64)
)


def bits_in(words):
    return WORDS[re.search(r"lower by at most (one|two) bits?\b", words)[1]]


@given(st.sampled_from(RULES), COUNTS, st.floats(0.01, 1e6), st.integers(0, 2**41))
def test_half_as_many_rows_take_one_bit_a_pass_at_most(rule, half, noise_sd, n_rows):
    full = 2 * half
    lost = rule.values(full, n_rows + 1) - rule.values(half, n_rows + 1)
    assert lost.min() >= -ROUNDED
    assert lost.max() <= 1.0 + ROUNDED
    more, fewer = (rule.two_pass_values(c, c, n_rows + 1) for c in (full, half))
    lost = more - fewer
    assert lost.max() <= 2.0 + ROUNDED
    lost = rule.noisy_values(full, noise_sd) - rule.noisy_values(half, noise_sd)
    assert lost.max() <= 1.0 + ROUNDED


@pytest.mark.parametrize(
    ("make", "bits"),
    [
        (lambda: HushTable(random_state=0, n_tables=20), 2),
        (lambda: HushTable(random_state=0, n_tables=20, passes=1), 1),
        (lambda: HushTable(random_state=0, n_tables=20, novelty=True), 1),
        (lambda: LSHiTables(random_state=0, n_tables=20), 1),
    ],
)
def test_each_model_says_how_many_passes_it_has(make, bits, X):
    detector = make().fit(X)
    words = detector._lowest(X, 3).meaning
    assert bits_in(words) == bits
    assert ("in two passes" in words) == (bits == 2)


def test_a_release_of_two_passes_says_two_bits(X):
    """Under noise, the first pass counts where its noise is known."""
    schema = Schema([Feature.numeric(name, low=-9, high=9) for name in "abcd"])
    terms = {"epsilon": 20.0, "expected_rows": 300_000}
    plan = Plan.draw(schema, random_state=0, **terms, passes=2)
    first = Sketch.from_data(plan, X).release(20.0, share=0.4)
    assert bits_in(plan.score_words(first.noise_sd)) == 1
    gate = Sketch.from_data(rounds.gate(first), X).release(20.0, share=0.1)
    second = rounds.second_pass(first, gate)
    assert bits_in(second.score_words(5.0)) == 2


def test_a_rule_of_a_damaged_plan_that_is_no_text_is_refused():
    with pytest.raises(PlanError, match="is unknown: needs one of"):
        ScoreRule({"name": "log2"})
