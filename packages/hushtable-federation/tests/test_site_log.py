"""A site's own log of refusals: one line each, whatever a message says."""

import json
import os

import pytest

from hushtable.errors import FileError
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


def test_a_line_is_there_as_a_whole_or_not_at_all(tmp_path):
    """Where a disk takes a part of it alone."""
    resource = pytest.importorskip("resource")
    log, shared = SiteLog(tmp_path / "north.log", str(tmp_path / "shared")), tmp_path / "shared"
    log.visit({"state": "waiting"})
    before, (soft, hard) = shared.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5, hard))
    try:
        with pytest.raises(FileError, match=r"cannot be written: .*free some space"):
            log.visit({"state": "done"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert shared.read_bytes() == before
    log.visit({"state": "done"})
    assert [json.loads(line)["state"] for line in shared.read_text().splitlines()] == [
        "waiting", "done",
    ]  # fmt: skip


def test_what_is_shared_has_no_reason(tmp_path):
    log = SiteLog(tmp_path / "north.log", str(tmp_path / "shared"))
    log.write("2027-01-01T00:00:00Z", "ab" * 32, "begin", "unavailable", "row 3: 'Ann'")
    assert "Ann" in log.path.read_text()
    assert "Ann" not in (tmp_path / "shared").read_text()
    assert json.loads((tmp_path / "shared").read_text())["word"] == "unavailable"


def test_what_depends_on_a_row_is_in_no_shared_log(tmp_path):
    log = SiteLog(tmp_path / "north.log", str(tmp_path / "shared"))
    log.note("2027-01-01T00:00:00Z", "ab" * 32, "keys", "unread", "age is no number in row 3")
    assert json.loads(log.path.read_text())["why"] == "age is no number in row 3"
    assert not (tmp_path / "shared").exists()


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
