"""The page on OMOP is true: it is followed, with a CDM in a PostgreSQL server."""

import pytest

from cdm import Cdm
from docs_pages import RANGES
from docs_reader import ROOT, Reader, blocks

PAGE = ROOT / "docs/how-to/omop.md"


@pytest.mark.slow
def test_the_page_can_be_followed(postgres, tmp_path, monkeypatch):
    pytest.importorskip("opendp", reason="the page makes a release")
    Cdm.made(400).into_postgres(postgres)
    service = f"host=127.0.0.1\nport={postgres.port}\nuser=trusted\ndbname=postgres\n"
    (tmp_path / "services").write_text(f"[hospital]\n{service}")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    ranges = frozenset(block.first for block in blocks(PAGE, RANGES))  # followed without a server
    read = Reader(PAGE, tmp_path, but_not=ranges).follow()
    assert sum("omop=" in command for command in read.did) == 5
    assert (tmp_path / "site.hush").exists()
