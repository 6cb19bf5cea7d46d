"""A site's own log of refusals: one line each, whatever a message says."""

import json
import os

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


def test_a_line_is_there_as_a_whole_or_not_at_all(tmp_path, caplog):
    """Where a disk takes a part of it alone."""
    resource = pytest.importorskip("resource")
    log = SiteLog(tmp_path / "north.log")
    log.write("2027-01-01T00:00:00Z", "ab" * 32, "keys", "budget", "first")
    before, (soft, hard) = log.path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, hard))
    try:
        log.write("2027-01-01T00:00:01Z", "ab" * 32, "keys", "budget", "second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.path.read_bytes() == before
    assert "cannot be written" in caplog.text
    log.write("2027-01-01T00:00:02Z", "ab" * 32, "keys", "budget", "third")
    assert [json.loads(line)["why"] for line in log.path.read_text().splitlines()] == [
        "first", "third",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="this system has no such flag")
def test_the_log_of_reasons_follows_no_link(tmp_path, caplog):
    log, target = SiteLog(tmp_path / "north.log"), tmp_path / "notes.txt"
    target.write_text("mine\n")
    target.chmod(0o644)
    log.path.symlink_to(target)
    log.write("2027-01-01T00:00:00Z", "ab" * 32, "begin", "policy", "a person refused it")
    assert target.read_text() == "mine\n"
    assert target.stat().st_mode & 0o777 == 0o644
    assert "north.log cannot be written" in caplog.text
