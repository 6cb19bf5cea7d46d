"""The crowding of rows in words."""

import numpy as np
import pytest

from hushtable import HushTable
from hushtable.scores.reasons import Crowding, crowding_words
from hushtable.scores.scorer import Scorer


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (-1.0, "fewer"),
        (0.0, "as many"),
        (0.14, "a tenth more"),
        (0.26, "a tenth more"),
        (0.27, "a quarter more"),
        (0.43, "a quarter more"),
        (0.44, "half again as many"),
        (0.8, "half again as many"),
        (0.81, "twice as many"),
        (1.0, "twice as many"),
        (1.78, "three times as many"),
        (3.2, "nine times as many"),
        (3.4, "about 11 times as many"),
        (6.7, "about 100 times as many"),
        (10.0, "about 1,000 times as many"),
    ],
)
def test_crowding(bits, words):
    assert crowding_words(bits) == f"{words} similar rows"


@pytest.mark.parametrize("passes", [1, 2])
def test_crowding_is_the_rows_in_a_rows_cells(X, passes):
    """Counted one by one: two rows share a cell if a table cannot tell them apart."""
    detector = HushTable(random_state=0, n_tables=20, passes=passes, n_jobs=1).fit(X)
    scorer = Scorer(detector.sketch_)
    crowding, family = Crowding(scorer), scorer.plan.family
    (codes,) = scorer.mapped(X, scorer.encode, None)
    logarithms = np.zeros((len(X), 20))
    for t in range(20):
        # The number of a row's cell in one table: the sum of values that are 0 in all others.
        numbers = np.zeros(len(scorer.values))
        here = slice(*family.offsets[t : t + 2])
        numbers[here] = np.arange(1, family.offsets[t + 1] - family.offsets[t] + 1)
        cells = family.summing(numbers)(codes)
        logarithms[:, t] = np.log2((cells[:, np.newaxis] == cells).sum(axis=1))
    expected = logarithms.mean() - logarithms.mean(axis=1)
    found = [crowding.bits(codes.take(np.array([i]))) for i in range(50)]
    np.testing.assert_allclose(found, expected[:50], atol=1e-4)
    assert crowding_words(crowding.bits(codes.take(np.array([0])))).endswith(
        "times as many similar rows"
    )
