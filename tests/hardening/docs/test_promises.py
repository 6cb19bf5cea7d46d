"""Every test that a page names is there, in the file that it names."""

import re

import pytest

from docs_reader import ROOT

PAGES = {
    "explanation/threats.md": 150,
    "install.md": 15,
}  # and how many tests, at least


def text_of(name):
    return (ROOT / "docs" / name).read_text()


def named(page):
    """Yield (file, test) for each test on a page; a file by itself stands for all in it."""
    file = None
    for word in re.findall(r"`((?:(?:packages/[\w-]+/)?tests/[\w/]+\.py)|(?:test_\w+))`", page):
        if "/" in word:
            file = word
            yield file, None
        else:
            yield file, word


@pytest.mark.parametrize("name", PAGES)
def test_the_tests_are_there(name):
    places = list(named(text_of(name)))
    assert len(places) > PAGES[name]
    for file, test in places:
        text = (ROOT / file).read_text()
        assert test is None or re.search(rf"^def {test}\(", text, re.MULTILINE), (file, test)


def test_every_promise_has_a_test():
    page = text_of("explanation/threats.md").partition("## What is promised, against whom")[2]
    promises = re.split(r"^\*\*", page, flags=re.MULTILINE)[1:]
    assert len(promises) > 10
    for promise in promises:
        assert "tests/" in promise, promise
