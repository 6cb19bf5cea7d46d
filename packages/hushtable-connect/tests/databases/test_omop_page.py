"""The page on OMOP is true: it is followed, with a CDM in a PostgreSQL server."""

import re

import pytest

from cdm import Cdm
from docs_reader import ROOT, Reader
from hushtable_connect.omop import ConceptSet

PAGE = ROOT / "docs/how-to/omop.md"
SOURCES = {"MIMIC-Extract, variable_ranges.csv": "M", "OHDSI DataQualityDashboard 1.4.1": "D"}


@pytest.mark.slow
def test_the_page_can_be_followed(postgres, tmp_path, monkeypatch):
    pytest.importorskip("opendp", reason="the page makes a release")
    Cdm.made(400).into_postgres(postgres)
    service = f"host=127.0.0.1\nport={postgres.port}\nuser=trusted\ndbname=postgres\n"
    (tmp_path / "services").write_text(f"[hospital]\n{service}")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    read = Reader(PAGE, tmp_path).follow()
    assert sum("--omop" in command for command in read.did) == 7
    assert (tmp_path / "site.hush").exists()


def test_the_table_is_the_concept_set():
    rows = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| ([MD]) \|$",
                      PAGE.read_text(), re.MULTILINE)  # fmt: skip
    assert rows == [
        (
            one.name, ", ".join(map(str, one.concepts)), one.unit, ", ".join(map(str, one.units)),
            f"{one.low:g} to {one.high:g}", f"{one.usual:g}", SOURCES[one.source],
        )
        for one in ConceptSet.common()
    ]  # fmt: skip
