"""A new user finds answers within two clicks from the first page."""

import re
from pathlib import PurePosixPath

import pytest

from docs_reader import ROOT

#: A question: the page, and its heading, that answers it.
ANSWERS = {
    "My CSV is misread": ("docs/how-to/files.md", "Your CSV is misread"),
    "I want only one ward": ("docs/tutorials/one-table.md", "Unusual for its ward"),
    "We are three hospitals": ("docs/tutorials/several-hospitals.md", "A round of three hospitals"),
    "What is epsilon?": ("docs/explanation/privacy.md", "What epsilon means"),
    "What leaves?": ("docs/explanation/privacy.md", "What leaves a site"),
    "How fast is it?": ("docs/benchmarks/speed.md", "Speed"),
    "How accurate is it?": ("docs/benchmarks/accuracy.md", "Accuracy"),
    "Which licence?": ("README.md", "Paper and licence"),
}


def linked(page):
    """Return the pages of the documentation that a page links to."""
    links = re.findall(r"\]\(([^)#\s]+\.md)", (ROOT / page).read_text("utf-8"))
    here = PurePosixPath(page).parent
    found = set()
    for link in links:
        parts = []
        for part in (here / link).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        found.add("/".join(parts))
    return found


def clicks():
    """Return how many clicks each page is away from the README, with which the site begins."""
    away, level = {"README.md": 0}, ["README.md"]
    while level:
        level = sorted({to for page in level for to in linked(page)} - {*away})
        level = [page for page in level if (ROOT / page).is_file()]
        away |= dict.fromkeys(level, max(away.values()) + 1)
    return away


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_is_two_clicks_away(question):
    page, heading = ANSWERS[question]
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert any(one.startswith(heading) for one in headings), headings
    print(f"{question} {page}, {heading!r}: {clicks()[page]} clicks")
    assert clicks()[page] <= 2


def test_the_site_begins_with_the_readme():
    assert (ROOT / "docs/index.md").read_text().startswith("```{include} ../README.md\n")


def test_every_page_is_linked_from_another():
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*/*.md")}
    pages = {page for page in pages if page.split("/")[1] not in ("_build", "generated", "gallery")}
    assert pages <= {*clicks()}
