"""The site's book survives kill -9 at any moment, and two processes at once."""

import signal
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from hushtable import Plan, Sketch
from hushtable.errors import FileError, PrivacyError
from hushtable_federation.book.book import Book
from hushtable_federation.reply import Reply
from round_helpers import SCHEMA, T0, Consortium, send

#: Moments in which a site may die while it answers, as what is patched to kill.
MOMENTS = {
    "before the noise": "mechanism, 'add_noise'",
    "before the book is asked": "Book, 'record'",
    "inside the transaction": "Chain, 'append'",
    "while the file is written": "os, 'fsync'",
    "before the file takes its name": "os, 'replace'",
}

SUBMIT = """
import os, signal, sys
import numpy as np
from datetime import datetime
from pathlib import Path
from hushtable import Sketch, files
from hushtable_federation import reply as site
from hushtable_federation.book.book import Book
from hushtable_federation.book.chain import Chain
from hushtable_federation.keys import Keys
from hushtable_federation.round import Round
from hushtable.privacy import mechanisms as mechanism

here = Path(sys.argv[1])

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

{patch}
keys = Keys.load(here / "s00.key")
round_ = Round.from_bytes((here / "round.hush").read_bytes(), "round.hush")
with Book.open(here / "s00.book", keys.card) as book:
    reply = site.Reply(round_, keys, book, at=datetime.fromisoformat(sys.argv[2]))
    counts = reply.counted(Sketch.from_data(reply.plan, np.load(here / "rows.npy")))
    content = reply.answer(counts, None).content
    files.write_bytes(here / "s00.submission.hush", content)
"""


def submit(folder, patch=""):
    code = textwrap.dedent(SUBMIT).format(patch=patch)
    return subprocess.run(
        [sys.executable, "-c", code, str(folder), T0.isoformat()], capture_output=True, check=False
    )


@pytest.fixture
def folder(tmp_path):
    those = Consortium(tmp_path, 2)
    site = those.sites["s00"]
    site.keys.save(tmp_path / "s00.key")
    np.save(tmp_path / "rows.npy", site.X)
    round_ = those.open(masked=False)
    round_.save(tmp_path / "round.hush")
    those.close()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_in_the_middle(folder, moment):
    out = folder / "s00.submission.hush"
    died = submit(folder, f"setattr({MOMENTS[moment]}, die)")
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert not out.exists()
    with Book.open(folder / "s00.book") as book:
        noted = book.answers()
        spent = book.total("all rows")
    # Nothing was spent, or it is noted what to send again.
    assert (spent > 0.0) == bool(noted)
    assert bool(noted) == (list(MOMENTS).index(moment) > 2)

    again = submit(folder)
    assert again.returncode == 0, again.stderr.decode()
    with Book.open(folder / "s00.book") as book:
        (answer,) = book.answers()
        if noted:
            np.testing.assert_array_equal(answer.sent, noted[0].sent)
    first = out.read_bytes()
    assert submit(folder).returncode == 0
    assert out.read_bytes() == first


@pytest.mark.slow
def test_two_processes_at_once_send_the_same(folder):
    code = textwrap.dedent(SUBMIT).format(patch="")
    command = [sys.executable, "-c", code, str(folder), T0.isoformat()]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0], [one.stderr.read() for one in both]
    for one in both:
        one.stderr.close()
    with Book.open(folder / "s00.book") as book:
        assert len(book.answers()) == 1


def test_who_comes_second_gets_what_was_noted_first(consortium):
    """Between its look into the book and its own note, another process may have answered."""
    those = consortium(2)
    round_, site = those.open(), those.sites["s00"]
    replies = [Reply(round_, site.keys, site.book, at=T0) for _ in range(2)]
    first, second = (send(reply, site.sketch(those.plan)) for reply in replies)
    assert first == second


def test_a_cap_that_was_reached_in_between(consortium):
    those = consortium(2, cap=1.0)
    site = those.sites["s00"]
    rounds = [those.open(title=title) for title in "ab"]
    replies = [Reply(round_, site.keys, site.book, at=T0) for round_ in rounds]
    send(replies[0], site.sketch(those.plan))
    with pytest.raises(PrivacyError, match="cap"):
        send(replies[1], site.sketch(those.plan))
    assert len(site.book.answers()) == 1


def test_a_book_of_another_version(consortium):
    path = consortium(2).sites["s00"].book.path
    with sqlite3.connect(path) as db:
        db.execute("pragma user_version = 9")
    db.close()
    with pytest.raises(FileError, match="not a book of this version"):
        Book.open(path)


def test_budgets_of_two_sets_of_rows(consortium):
    those = consortium(2)
    site = those.sites["s00"]
    for i, data_set in enumerate(["a", "b", "a"]):
        site.submit(those.open(title=str(i), epsilon=0.5), data_set=data_set)
    assert site.book.data_sets() == ["a", "b"]
    assert site.book.total("b") == pytest.approx(0.5, rel=1e-4)
    # Two rounds at .5 compose in zCDP, to less than their sum.
    assert 0.6 < site.book.total("a") < 0.8


def test_plans_are_as_they_were(consortium):
    those = consortium(2)
    plan = Plan.draw(SCHEMA, n_tables=3, random_state=1)
    round_ = those.open(plan=plan)
    site = those.sites["s00"]
    site.submit(round_)
    answer = site.book.answer(round_.round_id)
    np.testing.assert_array_equal(answer.counts, Sketch.from_data(plan, site.X).counts)
    assert answer.made == T0
