"""Costs in the book that people read and sign: no printed figure is below the true one."""

import re
from pathlib import Path

import pytest

from hushtable.cli.result import as_text
from hushtable_federation.cli import book as book_command
from round_helpers import Consortium

#: What adding up in floating point may make of a sum.
FLOATING = 1.0 - 2e-9


def figures(pattern, text):
    """Return all numbers that a pattern finds, and at least one."""
    found = [float(x) for x in re.findall(pattern, text)]
    assert found, (pattern, text)
    return found


@pytest.mark.parametrize("epsilon", [0.3334, 0.50001, 0.7071])
def test_no_figure_of_the_book_is_below_the_truth(tmp_path, epsilon):
    those = Consortium(tmp_path, 2, cap=2.0)
    try:
        site = those.sites["s00"]
        round_ = those.open(epsilon=epsilon)
        site.submit(round_)
        spent = site.book.total("all rows")
        book = as_text(book_command.book(Path(site.book.path)).blocks)
        assert spent * FLOATING <= figures(r"all rows +([\d.]+) +2", book)[0] <= 1.01 * spent
        rho = site.book.spent("all rows")[0].cost.rho
        assert rho * FLOATING <= figures(r" ([\d.e-]+)\n\nrows", book)[0] <= 1.01 * rho
        stated = figures(r"epsilon ([\d.]+), delta", round_.terms.words())[0]
        assert epsilon * FLOATING <= stated
    finally:
        those.close()
