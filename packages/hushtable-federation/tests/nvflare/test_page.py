"""What the page on carriers says about NVFlare is true: it is followed up to the job."""

import pytest

pytest.importorskip("nvflare.apis", reason="NVFlare is not installed: make test-nvflare")


from docs_reader import ROOT, Reader
from hushtable.cli import main

SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120
"""


def people_make_keys():
    for name in ("lead", "north", "south"):
        assert main(["round", "keygen", name]) == 0


@pytest.mark.slow
def test_the_section_can_be_followed(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "rounds").mkdir()
    before = {"hushtable plan draw": people_make_keys}
    done = Reader(ROOT / "docs/how-to/carriers.md", tmp_path, before, section="NVFlare").follow()
    assert len(done.did) == 2
    assert any((tmp_path / "jobs").rglob("meta.json"))
