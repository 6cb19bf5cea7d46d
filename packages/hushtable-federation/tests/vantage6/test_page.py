"""The page on carriers is true of vantage6 where it is installed: the rehearsal, too."""

import os
from unittest import mock

import pytest

pytest.importorskip(
    "vantage6.algorithm.tools", reason="vantage6's tools are not installed: make test-vantage6"
)

from docs_pages import NOT_RUN, PAGES, VANTAGE6
from hushtable_federation.online import carriers


def test_the_section_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    name = "docs/how-to/carriers.md"
    left = {line for (page, line), why in NOT_RUN.items() if page == name and why != VANTAGE6}
    with mock.patch.dict(os.environ):  # the page sets it
        monkeypatch.setattr("docs_pages.NOT_RUN", {(name, line): "" for line in left})
        PAGES[name].follow(name, tmp_path, "vantage6")
    outliers = (tmp_path / "outliers.csv").read_text()
    assert "rank" in outliers.splitlines()[0]
