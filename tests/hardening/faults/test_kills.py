"""Killed before any one change of the disk: nothing half, nothing lost, and it goes on."""

import fnmatch
import os

import pytest
from faults import KILLED, put
from world import COMMANDS, LITTER, snapshot

from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys

#: Every how many changes a quick run kills once.
QUICK = {"sketch": 2, "merge": 3, "round keygen": 18}


def sweep(served, name, step):
    """Kill a command at every ``step``-th change, until it comes to its end; return how often."""
    server, before = served
    command, folder = COMMANDS[name], server.root
    line = command.line(folder)
    put(before, folder)
    whole = server.run(*line)
    assert whole.code == 0, whole.said
    command.right(folder)
    expected = snapshot(folder)
    deaths = 0
    for kill_at in range(1, len(whole.changes) + 1, step):
        put(before, folder)
        died = server.run(*line, kill_at=kill_at)
        assert died.code == KILLED, died.said
        deaths += 1
        at = f"{name}, killed before change {kill_at}: {died.changes[-1]}"
        check_left(command, folder, before, expected, at)
        check_book(folder, at)
        again = server.run(*line)
        # What a command does last is to remove its lock: all was written before.
        wrote_all = died.changes[-1].startswith("unlink") and died.changes[-1].endswith(".lock")
        assert wrote_all or again.code == 0, f"{at}: {again.said}"
        command.right(folder)
        check_left(command, folder, before, expected, at)
    return deaths


def check_left(command, folder, before, expected, at):
    """Outputs are absent, as they were, or whole; all else is as it was."""
    for path, content in snapshot(folder).items():
        if any(fnmatch.fnmatch(path, pattern) for pattern in command.outputs):
            if command.exact:
                assert content in (before.get(path), expected[path]), f"{at}: {path}"
            continue
        if path in before:
            assert content == before[path], f"{at}: {path} changed"
        else:
            assert LITTER.fullmatch(path.rpartition("/")[2]), f"{at}: {path} is left"


def check_book(folder, at):
    """What may have left the site is in its book."""
    if not list((folder / "first.box").glob("*.masked.north.*")):
        return
    keys = Keys.load(folder / "north.key")
    with Book.open(folder / "north.book", keys.card) as book:
        assert len(book.answers()) == 1, at
        assert book.total("all rows") > 0.1, at


@pytest.mark.parametrize("name", QUICK)
def test_killed_at_some_changes(served, name):
    assert sweep(served, name, QUICK[name]) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_every_change(served, name):
    deaths = sweep(served, name, 1)
    assert deaths > 1
    print(f"{name}: killed at {deaths} of {deaths} changes, survived {deaths}")


def test_what_a_killed_command_left_goes_a_day_later(world):
    sketch = COMMANDS["sketch"].line(world.root)
    assert world.run(*sketch, kill_at=4).code == KILLED
    (left,) = world.root.glob(".new.sketch.hush.*.part")
    assert world.run(*sketch).code == 0
    assert left.exists()  # another process may be writing it
    os.utime(left, (1e9, 1e9))
    assert world.run(*sketch).code == 0
    assert not left.exists()

    lake = COMMANDS["score to a folder"].line(world.root)
    assert world.run(*lake, kill_at=9).code == KILLED
    (left,) = (world.root / "scores").glob(".*.part")
    os.utime(left, (1e9, 1e9))
    assert world.run(*lake).code == 0
    assert not left.exists()
