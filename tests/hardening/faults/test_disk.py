"""A full disk, and a read-only one: a refusal that says so, and what was there is there still."""

import contextlib
import os
import shutil
import subprocess

import pytest
from faults import Server, put
from test_kills import check_left
from world import COMMANDS, snapshot

from hushtable_federation.book.book import Book

SAYS_FULL = ("free some space", "No space left on device")


def fill(served, name, step):
    """Let the disk be full from every ``step``-th change on; return how often it failed."""
    server, before = served
    command, folder = COMMANDS[name], server.root
    line = command.line(folder)
    put(before, folder)
    whole = server.run(*line)
    assert whole.code == 0, whole.said
    expected = snapshot(folder)
    failures = 0
    for full_from in range(1, len(whole.changes) + 1, step):
        put(before, folder)
        failed = server.run(*line, full_from=full_from)
        at = f"{name}, full from change {full_from}: {whole.changes[full_from - 1]}"
        if failed.code == 0:  # only what takes no space was left to do
            assert not any(c.split()[0] in ("open", "write") for c in failed.changes[full_from:]), (
                at
            )
            continue
        failures += 1
        assert failed.code == 1, at
        assert any(words in failed.said for words in SAYS_FULL), f"{at}: {failed.said}"
        assert "a bug" not in failed.said, at
        check_left(command, folder, before, expected, at)
        assert not [path for path in snapshot(folder) if path.endswith(".part")], at
        again = server.run(*line)
        assert again.code == 0, f"{at}: {again.said}"
        command.right(folder)
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_full_at_every_change(served, name):
    failures = fill(served, name, 1)
    assert failures > 0
    print(f"{name}: disk full from each of {failures} changes on, survived {failures}")


@contextlib.contextmanager
def mounted(folder, *options):
    """Mount a file system of its own in memory, where that is allowed."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "none", folder]
    if shutil.which("mount") is None or subprocess.run(command, check=False, stderr=-3).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def elsewhere(shim, tmp_path):
    """A server whose folder is a file system of its own."""
    server = Server(shim, tmp_path / "world")
    yield server
    server.close()


@pytest.mark.slow
def test_a_read_only_disk(served, elsewhere):
    _, files = served
    with mounted(elsewhere.root, "size=8m"):
        for name, content in files.items():
            path = elsewhere.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o600)
        subprocess.run(["mount", "-o", "remount,ro", elsewhere.root], check=True)
        for name, command in COMMANDS.items():
            failed = elsewhere.run(*command.line(elsewhere.root))
            assert failed.code == 1, name
            assert "read-only" in failed.said, f"{name}: {failed.said}"
        # The book cannot note what would be sent: nothing is.
        out = elsewhere.root.parent / "elsewhere"
        shutil.copytree(elsewhere.root / "first.box", out)
        there = os.listdir(out)
        line = COMMANDS["round sync"].line(elsewhere.root)
        line[line.index(f"{elsewhere.root}/first.box")] = str(out)
        failed = elsewhere.run(*line)
        assert failed.code == 1
        assert "use a folder that is not read-only" in failed.said
        assert os.listdir(out) == there
        with Book.open(elsewhere.root / "north.book") as book:
            assert book.answers() == []
