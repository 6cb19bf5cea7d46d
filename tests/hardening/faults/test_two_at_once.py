"""Two processes on one book or one output; a site that comes back with its book, or an old one."""

import contextlib
import shutil
import sqlite3
import time

import pytest
from world import COMMANDS, lead, snapshot

from hushtable.errors import FileError
from hushtable_federation.book import chain
from hushtable_federation.book.book import Book


def at_once(world, *lines):
    """Run commands that begin at the same moment."""
    return world.run_all(list(lines), seconds=time.time() + 0.3)


def submit(world, box="first.box", keys="north"):
    line = COMMANDS["round sync"].line(world.root)
    line[line.index(f"{world.root}/first.box")] = f"{world.root}/{box}"
    line[line.index(f"{world.root}/north.key")] = f"{world.root}/{keys}.key"
    return line


def sent(world, box="first.box"):
    return list((world.root / box).glob("*.masked.north.*"))


def test_two_answers_to_one_round_are_one(world):
    both = at_once(world, submit(world), submit(world))
    assert [run.code for run in both] == [0, 0], [run.said for run in both]
    assert len(sent(world)) == 1
    with Book.open(world.root / "north.book") as book:
        assert len(book.answers()) == 1


def test_the_cap_holds_for_two_at_once(world):
    assert world.run("round", "book", world.root / "north.book", "--cap", 1.2).code == 0
    both = at_once(world, submit(world), submit(world, "third.box"))
    assert sorted(run.code for run in both) == [0, 1], [run.said for run in both]
    (late,) = (run for run in both if run.code)
    assert "the cap of 'north' is 1.2" in late.said
    assert len(sent(world)) + len(sent(world, "third.box")) == 1
    with Book.open(world.root / "north.book") as book:
        assert len(book.answers()) == 1
        assert book.total("all rows") <= 1.2


@pytest.mark.parametrize(
    "name",
    [
        "score to a folder",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("sketch", "fit", "release", "score to Parquet", "score to CSV", "merge")
        ),
    ],
)
def test_two_on_one_output(world, name):
    command = COMMANDS[name]
    line = command.line(world.root)
    both = at_once(world, line, line)
    assert [run.code for run in both] == [0, 0], [run.said for run in both]
    command.right(world.root)
    assert not [path for path in snapshot(world.root) if path.endswith(".part")]
    left = snapshot(world.root)
    assert all(path in left for path in command.outputs)
    if command.exact:
        for path in command.outputs:
            (world.root / path).unlink()
        assert world.run(*line).code == 0
        assert snapshot(world.root) == left


def test_two_keygens_of_one_name(world):
    """One has its keys, or, if each took a file that the other wanted, both say so."""
    command = COMMANDS["round keygen"]
    both = at_once(world, command.line(world.root), command.line(world.root))
    assert "a bug" not in both[0].said + both[1].said
    codes = [run.code for run in both]
    assert codes.count(0) <= 1
    if 0 in codes:
        command.right(world.root)


def test_a_book_that_another_process_holds(world, monkeypatch):
    monkeypatch.setattr(chain, "_PATIENCE", 0.05)
    path = world.root / "north.book"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with (
            Book.open(path) as book,
            pytest.raises(FileError, match=r"another process has locked it .*: wait for that"),
        ):
            book.set_cap(1.0, 1e-6)
        other.execute("rollback")


# --- another machine ----------------------------------------------------------------------------


def moved(world, name, book):
    """Give a site's keys another name, with this book: as on another machine."""
    shutil.copy2(world.root / "north.key", world.root / f"{name}.key")
    (world.root / f"{name}.book").write_bytes(book)
    (world.root / f"{name}.book").chmod(0o600)
    shutil.copy2(world.root / "north.policy.toml", world.root / f"{name}.policy.toml")


def test_a_site_that_comes_back_with_its_book_sends_the_same(world):
    assert world.run(*submit(world)).code == 0
    (path,) = sent(world)
    content, book = path.read_bytes(), (world.root / "north.book").read_bytes()
    moved(world, "machine2", book)
    path.unlink()
    assert world.run(*submit(world, keys="machine2")).code == 0
    assert path.read_bytes() == content


def test_a_site_that_comes_back_with_an_old_book(world):
    """Where the folder is shared, nothing is sent; where files are mailed, neither answer counts.

    An old book has forgotten what was answered since, and its total is too low. So a site that
    restores a backup asks the coordinator first which rounds it has answered.
    """
    old = (world.root / "north.book").read_bytes()
    shutil.copytree(world.root / "first.box", world.root / "mailed.box")
    assert world.run(*submit(world)).code == 0
    moved(world, "machine2", old)
    late = world.run(*submit(world, keys="machine2"))
    assert late.code == 1
    assert "the book is an outdated copy" in " ".join(late.said.split())
    assert len(sent(world)) == 1
    assert world.run(*submit(world, "mailed.box", keys="machine2")).code == 0
    for path in (world.root / "mailed.box").iterdir():
        shutil.copy(path, world.root / "first.box")
    seen = world.run(*lead("first").replace("@", f"{world.root}/").split())
    assert "north signed two different answers to step" in " ".join(seen.said.split())
    assert not list((world.root / "first.box").glob("*.result.*"))
