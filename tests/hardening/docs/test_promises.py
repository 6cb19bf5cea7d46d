"""Every test that the page of promises names is there, in the file that it names."""

import re

from docs_reader import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text()
VERSIONS = (ROOT / "docs" / "versions.md").read_text()


def named(page):
    """Yield (file, test) for each test on the page; a file by itself stands for all in it."""
    file = None
    for word in re.findall(r"`((?:tests/[\w/]+\.py)|(?:test_\w+))`", page):
        if word.startswith("tests/"):
            file = word
            yield file, None
        else:
            yield file, word


def test_the_tests_are_there():
    assert len(list(named(PAGE))) > 50
    assert len(list(named(VERSIONS))) > 15
    for file, test in [*named(PAGE), *named(VERSIONS)]:
        text = (ROOT / file).read_text()
        assert test is None or re.search(rf"^def {test}\(", text, re.MULTILINE), (file, test)


def test_every_promise_has_a_test():
    promises = re.split(r"^\*\*", PAGE.partition("\n## What was tried")[0], flags=re.MULTILINE)[1:]
    assert len(promises) > 10
    for promise in promises:
        assert "`tests/" in promise, promise
