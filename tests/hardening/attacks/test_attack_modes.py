"""Attacks by other users of the same machine: who may read what is written, and what is taken."""

import contextlib
import os
import signal
import stat
from pathlib import Path

import numpy as np
import pytest

from hushtable import HushTable, Plan, Schema, Sketch, files
from hushtable.cli import main
from hushtable.errors import FileError
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.keys import Keys
from hushtable_federation.policy import write_policy
from round_helpers import SCHEMA

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")

ROUND = "0123456789abcdef" * 4
SIZES = {"n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder in which whatever is not written for its owner alone, everyone may read."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


@pytest.fixture
def rows(rng):
    rows = rng.normal(size=(200, 3))
    np.savetxt("rows.csv", rows, delimiter=",", header="x0,x1,x2", comments="")
    return rows


def run(line, code=0):
    assert main(line.split()) == code, line


# --- a threshold of local rows --------------------------------------------------------------------


def test_a_threshold_of_local_rows_is_for_the_owner_alone(rows):
    """No. 6: the score of one of the site's rows stands in the file of such a detector."""
    schema = Schema(SCHEMA.features, named=False)
    release = Sketch.from_data(Plan.draw(schema, random_state=0, **SIZES), rows).release(1.0)
    detector = HushTable.from_counts(release).set_threshold(rows, 1)
    assert np.isin(detector.offset_, detector.score_samples(rows))
    detector.save("d.hush")
    assert mode("d.hush") == 0o600
    HushTable.from_counts(release).save("none.hush")
    assert mode("none.hush") == 0o600


# --- a temporary file that someone else replaces -------------------------------------------------


def lay_link(name, book):
    os.unlink(name)
    os.symlink(book, name)


def lay_hard_link(name, book):
    os.unlink(name)
    os.link(book, name)


def lay_file(name, book):
    os.unlink(name)
    Path(name).write_bytes(b"of someone else")


def lay_pipe(name, book):
    os.unlink(name)
    os.mkfifo(name)


def lay_folder(name, book):
    os.unlink(name)
    os.mkdir(name)


def lay_nothing(name, book):
    os.unlink(name)


def lay_link_for_the_folder(name, book):
    folder = Path(name).parent
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(book.parent)


@contextlib.contextmanager
def in_time(seconds):
    """Fail what waits for ever, such as for a reader of a pipe."""

    def fail(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


WRITERS = {
    "a file": lambda box: files.write_bytes(box / "a", b"12", private=False),
    "a round's file": lambda box: Store.open(box).add(name_of(ROUND, "keys", "a", b"1"), b"1"),
    "keys": lambda box: Keys.generate("a").save(box / "a.key"),
    "a card": lambda box: Keys.generate("a").card.save(box / "a.card"),
    "a policy": lambda box: write_policy(box / "a.toml", "a", 1.0, 1e-6),
    "a book": lambda box: Book.create(box / "a.book", Keys.generate("a").card, epsilon=1.0),
    "scores": lambda box: run(f"score rows.csv --model m.hush -o {box}/s.csv", 1),
    "scores in Parquet": lambda box: run(f"score rows.csv --model m.hush -o {box}/s.parquet", 1),
    "the lowest rows": lambda box: run(f"score rows.csv --model m.hush --top 2 -o {box}/s.xlsx", 1),
    "a model": lambda box: run(f"fit rows.csv -o {box}/n.hush", 1),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "lay",
    [
        *(lay_link, lay_hard_link, lay_file, lay_pipe, lay_folder, lay_nothing),
        lay_link_for_the_folder,
    ],
)
def test_nothing_is_written_through_a_name_that_others_replaced(
    here, rows, monkeypatch, lay, writer
):
    """A drive that all may write to: right after its file was made, its name is another's."""
    if writer in ("scores", "scores in Parquet", "the lowest rows"):
        run("fit rows.csv -o m.hush")
    book, box, opened, hit = here / "home" / "north.book", here / "box", os.open, []
    book.parent.mkdir()
    book.write_bytes(b"the only copy")
    box.mkdir(mode=0o700)

    def open_and_swap(path, flags, *more, **options):
        descriptor = opened(path, flags, *more, **options)
        if str(path).endswith(".part") and not hit:
            hit.append(path)
            lay(path, book)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_swap)
    with contextlib.suppress(FileError), in_time(20):
        WRITERS[writer](box)
    assert hit
    assert book.read_bytes() == b"the only copy"
    left = {path.name for path in (*box.iterdir(), *book.parent.iterdir())} - {"north.book"}
    assert not {name for name in left if not name.endswith(".part")}, "a name for another's file"
