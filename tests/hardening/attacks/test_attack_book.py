"""Attacks on the book: P_person.py (a data set under another name, a cap moved up and back)."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from hushtable import Sketch
from hushtable.cli import main
from hushtable.data.readers import as_reader
from hushtable.errors import PrivacyError
from hushtable.privacy import mechanisms
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.protocol.messages import Message, ask, passed_on
from hushtable_federation.reply import Reply
from round_helpers import SCHEMA, T0, UNATTENDED, Consortium, send


@pytest.fixture
def those(tmp_path):
    made = Consortium(tmp_path, 2, rows=300, cap=1.0)
    yield made
    made.close()


def answered(those, title, X, data_set, new_people=False):
    """Answer a round with these rows."""
    site = those.sites["s00"]
    round_ = those.open(title=title)
    reply = Reply(round_, site.keys, site.book, data_set=data_set, at=T0)
    digester = site.book.digester(reply.plan.schema)
    sketch = Sketch.from_data(reply.plan, digester.watch(as_reader(X)))
    return send(reply, sketch, rows=digester.digests(), new_people=new_people)


def test_p_person_the_same_rows_under_another_name(those):
    """P_person.py: --data-set other gave the same rows a second budget, without a trace."""
    X = those.sites["s00"].X
    answered(those, "a", X, "2026")
    book = those.sites["s00"].book
    head = book.head
    more = np.concatenate([X, np.random.default_rng(9).normal(size=(600, 3))])
    parts = {"all": X, "in another order": X[::-1], "a third": X[:100], "with others": more}
    for name, rows in parts.items():
        with pytest.raises(PrivacyError, match=r"seem to be those of '2026'.*--new-people"):
            answered(those, name, rows, name)
    assert (book.head, book.data_sets()) == (head, ["2026"])
    others = np.random.default_rng(8).normal(size=(300, 3))
    answered(those, "b", others, "2027")
    assert book.data_sets() == ["2026", "2027"]


class Setup:
    """One of several set-ups of a site by mistake about the same people, as in two lines of cron.

    Each has a connection of its own to the one book, as another process has.
    """

    def __init__(self, those, name, X):
        site = those.sites["s00"]
        self.name, self._X, self._lead, self._keys = name, X, those.lead, site.keys
        self._path, self._seen, self._sites = site.book.path, None, those.sites
        self.round = those.open(epsilon=1.0)

    def ask(self, step):
        """Return the word of a refusal; "" of an answer."""
        with Book.open(self._path, self._keys.card) as book:
            site = OnlineSite(
                self._keys, book, lambda round_: self._count(book, round_.plan), policy=UNATTENDED,
                data_set=self.name, recognise=lambda: self._seen.digests(),
            )  # fmt: skip
            parts = ({},)
            if step == "shares":
                parts = passed_on({n: one.key(self.round) for n, one in self._sites.items()})
            answer = site.answer(ask(self.round, step, self._lead, *parts))
            if book.step(self.round.round_id, step) is not None:
                return ""
        return Message.read(answer, self._keys.card).body["word"]

    def _count(self, book, plan):
        self._seen = book.digester(SCHEMA)
        return Sketch.from_data(plan, self._seen.watch(as_reader(self._X)))


@pytest.fixture
def setups(those, monkeypatch):
    """Return what makes set-ups of a site, by name and the rows that each counts."""
    monkeypatch.setattr(clock, "read", lambda: T0)
    X = those.sites["s00"].X
    return lambda rows: [Setup(those, name, X[some]) for name, some in rows.items()]


SAME = {"2026": slice(None), "all patients": slice(None)}


@pytest.mark.parametrize(
    "rows",
    [
        SAME,
        {"2026": slice(None), "in another order": slice(None, None, -1)},
        {"2026": slice(0, 240), "overlapping": slice(60, 300)},
        {"2026": slice(None), "a third": slice(0, 100)},
        {"2026": slice(0, 200), "2027": slice(100, 300), "both": slice(None)},
    ],
)
def test_the_same_rows_are_counted_under_one_name_whatever_the_order_of_steps(those, setups, rows):
    """two_names_interleaved.py: shares of both rounds first, and the cap was paid twice."""
    sites = setups(rows)
    for step in ("keys", "shares"):
        assert [one.ask(step) for one in sites] == [""] * len(sites)
    words = [one.ask("masked") for one in sites]
    assert words == ["", *["unavailable"] * (len(sites) - 1)]
    book = those.sites["s00"].book
    assert book.data_sets() == [sites[0].name]
    assert book.total(sites[0].name) == pytest.approx(1.0, rel=1e-3)
    assert [one.ask("masked") for one in sites] == words  # anyone who asks again gets the same


def test_the_same_rows_are_counted_under_one_name_by_two_at_once(those, setups, monkeypatch):
    """Both have looked at the rows, and have their noise, before either of them is noted."""
    sites, together, draw = setups(SAME), Barrier(2, timeout=30), mechanisms.add_noise

    def drawn(*arguments, **options):
        found = draw(*arguments, **options)
        together.wait()
        return found

    for step in ("keys", "shares"):
        assert [one.ask(step) for one in sites] == ["", ""]
    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", drawn)
    with ThreadPoolExecutor(2) as pool:
        words = list(pool.map(lambda one: one.ask("masked"), sites))
    assert sorted(words) == ["", "unavailable"]
    assert len(those.sites["s00"].book.answers()) == 1


def test_p_person_new_people_are_noted(those):
    """Who says that the same rows are of new people says so in the book."""
    X = those.sites["s00"].X
    answered(those, "a", X, "2026")
    answered(those, "b", X, "2027", new_people=True)
    said = [e.content for e in those.sites["s00"].book.history() if e.kind == "rows"]
    assert [(one["data_set"], one["new_people"], one["like"]) for one in said] == [
        ("2026", False, None), ("2027", True, "2026")
    ]  # fmt: skip


def test_p_person_a_cap_moved_up_and_back(those, capsys):
    """P_person.py: --cap 9, answer, --cap 1: the book showed nothing of it."""
    site = those.sites["s00"]
    path = site.book.path
    site.submit(those.open())
    for cap in ("9", "1"):
        assert main(["round", "book", path, "--cap", cap]) == 0
    capsys.readouterr()
    assert main(["round", "book", path, "--history", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in found["history"] if one["kind"] == "cap"] == [
        "cap: epsilon 9, delta 1e-06", "cap: epsilon 1, delta 1e-06"
    ]  # fmt: skip
    assert found["cap"]["epsilon"] == 1.0


def test_a_cut_end_shows_against_a_head_that_was_kept(those, capsys):
    """No. 15: a book whose last entries are gone answers again; the head kept apart tells."""
    site = those.sites["s00"]
    path = Path(site.book.path)
    early = path.read_bytes()
    site.submit(those.open())
    assert main(["round", "book", str(path), "--json"]) == 0
    head = json.loads(capsys.readouterr().out)["head"]
    assert main(["round", "book", str(path), "--expect", head]) == 0
    assert "0 entries follow" in capsys.readouterr().out
    path.write_bytes(early)
    assert main(["round", "book", str(path), "--expect", head]) == 1
    assert "does not hold the head" in capsys.readouterr().err


def test_an_oracle_of_rows_in_whether_a_round_is_answered_again(those):
    """A_oracle.py: a repeated round was refused where the rows had changed, which told of them."""
    site, round_ = those.sites["s00"], those.open()
    first = site.submit(round_)
    site.X = site.X[:-1]
    assert site.submit(round_) == first
    with Book.open(site.book.path) as book:
        assert len(book.answers()) == 1
