"""Masked rounds over a grid in this process, with Flower's messages: ``make test-flower``."""

import json
import uuid

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: make test-flower")

import hushtable_flower
from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from hushtable import files
from hushtable_federation.online import carriers
from place_helpers import Places

NAMES = ("east", "north", "south")


class LocalGrid:
    """Nodes that answer at once; ``lose`` takes a site and a step, and states what is lost."""

    def __init__(self, nodes, lose=lambda site, step: ""):
        self.nodes, self.lose, self.replies, self.answers = nodes, lose, {}, []

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        sent = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = uuid.uuid4().hex
            sent.append(message.metadata.message_id)
            content = message.content["hushtable"]["content"]
            site, config = self.nodes[message.metadata.dst_node_id]
            reply = hushtable_flower._answer(message, Context(1, 1, config, RecordDict(), {}))
            self.answers.append(reply.content["hushtable"]["content"])
            fate = self.lose(site, files.unpack(content, "asked").manifest["step"])
            if fate == "error":
                reply = Message(Error(3, "killed"), reply_to=message)
            if fate != "lost":
                self.replies[sent[-1]] = reply
        return sent

    def pull_messages(self, message_ids):
        return [self.replies.pop(sent) for sent in message_ids if sent in self.replies]


class Consortium(Places):
    def run(self, lose=lambda site, step: "", timeout=60.0):
        """Run the server app's own function; return its report, and the answers of the sites."""
        nodes = {node: (name, {"site": str(self.file(name))}) for node, name in enumerate(NAMES, 1)}
        config = {"round": "round.hush", "key": "lead.key", "output": "result.hush"}
        paths = {name: str(self.folder / path) for name, path in config.items()}
        grid = LocalGrid(nodes, lose)
        context = Context(1, 0, {}, RecordDict(), paths | {"timeout": timeout})
        hushtable_flower._coordinate(grid, context)
        return json.loads((self.folder / "result.state.json").read_text()), grid.answers


@pytest.fixture
def consortium(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.2)
    for what in ("_task_id", "_run_id", "_node_id"):  # of this process, as Flower's runtime states
        monkeypatch.setattr(TaskIdentity, what, 1)
    return Consortium(tmp_path, NAMES)


@pytest.mark.parametrize("fate", ["", "lost", "error"])
def test_a_round_is_the_sum_also_if_an_answer_is_lost(consortium, fate):
    round_, fates = consortium.open(least=3), iter([fate])
    lose = lambda site, at: next(fates, "") if (site, at) == ("south", "shares") else ""  # noqa: E731
    state, _ = consortium.run(lose)
    assert state["done"], state
    assert (state["lost"], state["refused"]) == ({}, {})
    consortium.check(round_)


def test_what_a_site_refuses_is_a_word(consortium):
    """The reason stays at the site, and the sum goes on."""
    rows = consortium.folder / "south.csv"
    rows.write_text(rows.read_text().replace("a,", "Ann,", 1))
    round_ = consortium.open(least=2)
    state, answers = consortium.run(timeout=3.0)
    assert state["done"], state
    assert state["lost"] == {"south": "keys: unavailable"}
    assert not any(b"Ann" in content for content in answers)
    consortium.check(round_, ["east", "north"])


def test_a_supernode_with_other_options_answers_nothing(consortium):
    consortium.open()
    context = Context(1, 1, {"site": "x.toml", "key": "y"}, RecordDict(), {})
    request = hushtable_flower._content(b"request")
    message = Message(request, dst_node_id=1, message_type="query.step")
    reply = hushtable_flower._answer(message, context)
    assert reply.content["hushtable"]["content"] == b""
