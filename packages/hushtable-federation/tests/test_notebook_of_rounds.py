"""Pages of rounds and results in a notebook stand by themselves, and say what an officer signs."""

import pytest

from hushtable_federation import Result, SecureSum
from hushtable_federation.describe import officer_words
from notebook_pages import Page
from rehearsal import Rehearsal


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Rehearse a round; its books are kept in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Rehearsal()


def test_pages_of_a_round_and_its_result(here):
    SecureSum(here.round, here.lead, here.transport()).run().save("sum.hush")
    asked, result = Page(here.round), Page(Result.load("sum.hush"))
    words = officer_words(here.round)
    assert "asks 2 sites to count their rows by 2 columns" in words[0]
    assert asked.sentences == ["Round. " + words[0], *words[1:]]
    assert {"north", "south"} <= set(asked.cells)
    sentence = "Adding or removing one record changes the probability"
    assert sentence in result.sentences[0]
    for page in (asked, result):
        assert set(page.tags) <= {"div", "p", "b", "table", "tr", "th", "td"}
        assert page.cells
