"""A site's own log of refusals: one line each, whatever a message says."""

import json

import pytest

from hushtable_federation.refusals import SiteLog


@pytest.mark.parametrize(
    "odd", ["é", "keys\tsilent\tforged", "keys\n2027-01-01\t0\tkeys\tsilent", "\ud800"]
)
def test_a_refusal_is_one_line_of_json(tmp_path, odd):
    log = SiteLog(tmp_path / "north.log")
    log.write("2027-01-01T00:00:00Z", "ab" * 32, odd, "garbled", f"step {odd}")
    log.write("2027-01-01T00:00:01Z", odd, "keys", "garbled", "again")
    *lines, last = log.path.read_text(encoding="ascii").split("\n")
    assert last == ""
    first, second = map(json.loads, lines)
    assert (first["step"], first["why"], second["round"]) == (odd, f"step {odd}", odd[:12])
