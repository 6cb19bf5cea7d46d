"""Masked rounds over a grid in this process: losses, errors, and deaths of the coordinator."""

import contextlib
import json
import shutil
import uuid

import numpy as np
import pytest

from place_helpers import Places

pytest.importorskip("flwr", reason="Flower is not installed: make test-flower")

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from hushtable import files, load
from hushtable_federation import flower
from hushtable_federation.book.book import Book
from hushtable_federation.online import carriers

NAMES = ("east", "north", "south")


class Died(BaseException):
    """No one catches it, as no one catches a SIGKILL."""


class LocalGrid:
    """Nodes that answer when their messages are pulled for.

    ``away`` are the nodes that are offline; ``lose`` takes site and step, and says what becomes of
    the answer: "" (it comes), "lost", "error" or "raise", in which case pulling fails.
    """

    def __init__(self, nodes, lose=lambda site, step: ""):
        self.nodes, self.away, self.lose = nodes, set(), lose
        self.replies, self.asked, self.travelled = {}, [], []

    def get_node_ids(self):
        return [node for node in self.nodes if node not in self.away]

    def push_messages(self, messages):
        sent = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = uuid.uuid4().hex
            sent.append(message.metadata.message_id)
            self._deliver(message)
        return sent

    def _deliver(self, message):
        content = message.content["hushtable"]["content"]
        site, config = self.nodes[message.metadata.dst_node_id]
        step = files.unpack(content, "asked").manifest["step"]
        self.asked.append((site, step, content))
        fate = self.lose(site, step)
        reply = flower._answer(message, Context(1, 1, config, RecordDict(), {}))
        self.travelled.append(reply.content["hushtable"]["content"])
        if fate == "error":
            reply = Message(Error(3, "killed"), reply_to=message)
        if fate != "lost":
            self.replies[message.metadata.message_id] = reply
        if fate == "raise":
            raise TimeoutError("_ssl.c:989: The handshake operation timed out")

    def pull_messages(self, message_ids):
        return [self.replies.pop(sent) for sent in message_ids if sent in self.replies]


class Consortium(Places):
    def grid(self, **options):
        nodes = {node: (name, {"site": str(self.file(name))}) for node, name in enumerate(NAMES, 1)}
        return LocalGrid(nodes, **options)

    def run(self, grid, timeout=5.0):
        """Run the server app's own function; return how it went."""
        config = {"round": "round.hush", "key": "lead.key", "output": "result.hush"}
        paths = {name: str(self.folder / path) for name, path in config.items()}
        context = Context(1, 0, {}, RecordDict(), paths | {"timeout": timeout})
        flower._coordinate(grid, context)
        return json.loads((self.folder / "result.state.json").read_text())


@pytest.fixture
def consortium(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.2)
    for what in ("_task_id", "_run_id", "_node_id"):  # of this process, as Flower's runtime says
        monkeypatch.setattr(TaskIdentity, what, 1)
    return Consortium(tmp_path)


def test_a_round(consortium, monkeypatch):
    monkeypatch.setattr(carriers, "_PAUSE", 20.0)  # a site that is slow is not asked again
    round_ = consortium.open()
    grid = consortium.grid()
    state = consortium.run(grid, timeout=80.0)
    assert state["done"], state
    assert (state["lost"], state["refused"]) == ({}, {})
    assert state["nodes"] == sorted(NAMES)
    consortium.check(round_)
    steps = [(site, step) for site, step, _ in grid.asked]
    assert sorted(steps) == sorted(set(steps)), steps


@pytest.mark.parametrize("fate", ["lost", "error", "raise"])
@pytest.mark.parametrize("step", ["hello", "keys", "shares", "masked", "unmask"])
def test_an_answer_that_got_lost_is_asked_for_again(consortium, fate, step):
    """A TLS time-out at a node on a busy machine: Flower drops the answer, and says nothing."""
    round_ = consortium.open(least=3)
    fates = iter([fate])
    grid = consortium.grid(
        lose=lambda site, at: next(fates, "") if (site, at) == ("south", step) else ""
    )
    state = consortium.run(grid, timeout=120.0)
    assert state["done"], state
    consortium.check(round_)
    asked = [content for site, at, content in grid.asked if (site, at) == ("south", step)]
    assert len(asked) >= 2
    assert len(set(asked)) == 1


def test_a_node_that_comes_back_in_time_is_in(consortium):
    round_ = consortium.open(least=3)
    grid = consortium.grid()
    looks = iter(range(1000))
    grid.get_node_ids = lambda: [1, 2] if 10 < next(looks) < 60 else [1, 2, 3]
    grid.lose = lambda site, step: "error" if site == "south" and next(looks) < 60 else ""
    state = consortium.run(grid, timeout=120.0)
    assert state["done"], state
    consortium.check(round_)


def test_a_node_that_stays_away_is_out(consortium):
    round_ = consortium.open(least=2)
    grid = consortium.grid(lose=lambda s, at: "lost" if (s, at) == ("south", "shares") else "")
    state = consortium.run(grid, timeout=3.0)
    assert state["done"], state
    assert state["lost"] == {"south": "shares: silent"}
    assert state["reached"]["north"] == "unmask"
    consortium.check(round_, ["east", "north"])


def test_what_a_site_refuses_is_a_word(consortium):
    """The reason stays at the site: a wrong column, a policy, a missing book; the sum goes on."""
    rows, policy = (consortium.folder / f"south.{what}" for what in ("csv", "policy.toml"))
    book = consortium.folder / "south.book"
    broken = {
        "unavailable": lambda: rows.write_text(rows.read_text().replace("a,", "Ann,", 1)),
        "policy": lambda: policy.write_text(policy.read_text().replace("= true", "= false")),
        "silent": lambda: book.rename(f"{book}.away"),
    }
    for word, spoil in broken.items():
        spoil()
        consortium.open(least=2, title=word)
        grid = consortium.grid()
        state = consortium.run(grid, timeout=3.0)
        assert state["done"], state
        assert state["lost"] == {"south": f"keys: {word}"}
        assert grid.travelled
        assert not any(b"Ann" in content for content in grid.travelled)
        assert state["refused"] == ({"south": "policy"} if word == "policy" else {})
        assert "Ann" not in json.dumps(state)
    logged = (consortium.folder / "south.log").read_text()
    assert "needed, ['a', 'b']" in logged
    assert "does not allow unattended answers" in logged


def test_too_few_are_enough_when_run_again(consortium):
    round_ = consortium.open(least=3)
    grid = consortium.grid(lose=lambda s, at: "lost" if (s, at) == ("south", "masked") else "")
    state = consortium.run(grid, timeout=3.0)
    assert not state["done"]
    assert "2 sites are left in step 'masked', and 3 are needed" in state["error"]
    assert not (consortium.folder / "result.hush").exists()
    again = consortium.grid()
    assert consortium.run(again)["done"]
    consortium.check(round_)
    assert {site for site, step, _ in again.asked if step == "masked"} == {"south"}


@pytest.mark.parametrize("lost", [None, "masked", "unmask"])
def test_the_coordinator_killed_at_every_write(consortium, monkeypatch, lost):
    """Each process dies after its first write: that is before the next one, too."""
    write, seen = files.replacing, set()
    round_, deaths, requests = consortium.open(least=2), 0, {}

    @contextlib.contextmanager
    def replacing(path, **options):
        with write(path, **options) as temporary:
            yield temporary
            temporary.seek(0)
            written = path, temporary.read() if path.suffix == ".json" else b""
        if written not in seen:
            seen.add(written)
            raise Died

    monkeypatch.setattr(files, "replacing", replacing)
    while not (consortium.folder / "result.state.json").exists():
        lose = lambda site, at: "lost" if (site, at) == ("south", lost) else ""  # noqa: E731
        grid = consortium.grid(lose=lose)
        try:
            consortium.run(grid, timeout=0.5)
        except Died:
            deaths += 1
        for site, step, content in grid.asked:
            requests.setdefault((site, step), set()).add(content)
    # The answers, whose keys, the list (and who signed it), the result, and how it went.
    assert deaths == {None: 12 + 2 + 2, "masked": 12 + 3 + 2, "unmask": 11 + 2 + 2}[lost]
    monkeypatch.setattr(files, "replacing", write)
    shutil.copy(consortium.folder / "result.hush", consortium.folder / "first.hush")
    assert consortium.run(consortium.grid())["done"]
    result, first = (load(consortium.folder / f"{name}.hush") for name in ("result", "first"))
    np.testing.assert_array_equal(result.counts, first.counts)
    about_list = {at: sent for at, sent in requests.items() if at[1] != "hello"}
    assert all(len(sent) == 1 for sent in about_list.values())
    parts = []
    for name in NAMES:
        with Book.open(consortium.folder / f"{name}.book") as book:
            assert len(book.answers()) == 1  # also of whose masked answer was lost on its way
            parts.append(book.answer(round_.round_id).sent)
    if lost == "masked":
        parts.pop()
    np.testing.assert_array_equal(result.counts, sum(parts))
