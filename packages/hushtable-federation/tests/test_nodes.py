"""A network of nodes, of any carrier: losses, failures, refusals, and another process after."""

import json
from pathlib import Path

import pytest

from hushtable import files
from hushtable.errors import FileError, RoundError
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.online import carriers
from place_helpers import Places

NAMES = ("east", "north", "south")


class Network:
    """Nodes that answer at once; ``fate`` of site and step says what becomes of the answer.

    "" (it comes), "lost", "failed", or an exception to raise.
    """

    def __init__(self, places, fate=lambda site, step: ""):
        self.places, self.fate = places, fate
        self.away, self.came, self.asked, self.said = set(), [], [], []

    def nodes(self):
        return {f"node of {name}" for name in self.places.names} - self.away

    def push(self, node, request):
        site, step = node.removeprefix("node of "), files.unpack(request, "").manifest["step"]
        self.asked.append((site, step, request))
        answer = self.places.answer(site, request)
        self.said.append(answer)
        fate = self.fate(site, step)
        if isinstance(fate, BaseException):
            raise fate
        if fate != "lost":
            self.came.append((str(len(self.asked)), b"" if fate == "failed" else answer))
        return str(len(self.asked))

    def pull(self, sent):
        came, self.came = self.came, []
        return came

    def run(self, timeout=60.0):
        here = self.places.folder
        lead = Coordinator.open(here / "lead.key")
        state = lead.run(self, here / "round.hush", here / "result.hush", timeout=timeout)
        assert json.loads((here / "result.state.json").read_text()) == state
        return state


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(carriers, "_LOOK", 0.01)
    monkeypatch.setattr(carriers, "_PAUSE", 0.1)
    return Places(tmp_path)


@pytest.mark.parametrize("fate", ["lost", "failed", TimeoutError("handshake")])
def test_an_answer_lost_in_each_step_is_asked_for_again(places, fate):
    round_ = places.open(least=3)
    left = {"hello", "keys", "shares", "masked", "unmask"}

    def once(site, step):
        if site != "south" or step not in left:
            return ""
        left.remove(step)
        return fate

    network = Network(places, once)
    state = network.run()
    assert state["done"], state
    assert not left
    assert (state["lost"], state["refused"], state["nodes"]) == ({}, {}, list(NAMES))
    places.check(round_)
    requests = {}
    for site, step, content in network.asked:
        requests.setdefault((site, step), []).append(content)
    assert all(len(requests["south", step]) >= 2 for step in ("hello", "keys", "shares", "unmask"))
    assert all(len(set(sent)) == 1 for sent in requests.values())  # always in the same words


def test_a_refusal_is_a_word_and_the_others_go_on(places):
    policy, rows = places.folder / "south.policy.toml", places.folder / "north.csv"
    policy.write_text(policy.read_text().replace("answer = true", "answer = false"))
    _, _, below = rows.read_text().partition("\n")  # a table without the plan's columns is none
    rows.write_text("Ann Lee,refused\n" + below)
    places.open(least=2)
    network = Network(places)
    state = network.run()
    assert not state["done"]
    assert "1 site" in state["error"]
    assert state["lost"] == {"north": "keys: unavailable", "south": "keys: policy"}
    assert state["refused"] == {"south": "policy"}
    assert not any(b"Ann Lee" in said for said in network.said)
    assert "required column names, ['a', 'b']" in (places.folder / "north.log").read_text()


def test_a_row_that_cannot_be_read_stops_nobody_and_stays_at_home(places):
    """Its values are missing, the site's own log says so, and nothing of it travels."""
    rows = places.folder / "north.csv"
    rows.write_text(rows.read_text() + "Ann Lee,refused\n")
    places.open(least=3)
    network = Network(places)
    assert network.run()["done"]
    assert not any(b"Ann Lee" in said for said in network.said)
    log = (places.folder / "north.log").read_text()
    for name in "ab":
        assert f"values of column '{name}' that are not numbers, read as missing: 1" in log
    assert "Ann" not in log
    assert not (places.folder / "south.log").exists()


def test_another_process_goes_on_where_this_one_was_stopped(places):
    round_ = places.open(least=3)
    stopped = RoundError("the job was stopped")
    first = Network(places, lambda site, step: stopped if step == "unmask" else "")
    state = first.run()
    assert (state["done"], state["error"]) == (False, "the job was stopped")
    again = Network(places)
    assert again.run()["done"]
    places.check(round_)
    assert {step for _, step, _ in again.asked} == {"hello", "unmask", "end"}


def test_a_site_without_keys_book_or_policy_names_them(places):
    for name in ("key", "book", "policy.toml"):
        path = places.folder / f"south.{name}"
        path.rename(f"{path}.away")
        with pytest.raises(FileError, match=r"south\."):
            places.answer("south", b"")
        Path(f"{path}.away").rename(path)


VISITS = 40


@pytest.mark.parametrize(("least_stated", "counted"), [(1, 1), (VISITS + 1, VISITS)])
def test_a_column_of_persons_is_counted_by_over_any_carrier(places, least_stated, counted):
    """A patient with many visits is counted as often as the round states, and no more."""
    rows = places.folder / "east.csv"
    once = rows.read_text().splitlines()
    named = [f"{line},{'patient' if i == 0 else f'p{i}'}" for i, line in enumerate(once)]
    rows.write_text("\n".join(named + ["1.5,-1.0,many"] * VISITS) + "\n")
    policy = places.folder / "east.policy.toml"
    policy.write_text(policy.read_text().replace("persons = 1", 'persons = "column"'))
    round_ = places.open(least=3, rows_per_person=least_stated)
    with places.file("east").open("a") as file:
        file.write('person = "patient"\n')
    state = Network(places).run()
    assert state["done"], state
    with places.book("east") as book:
        counts = book.answer(round_.round_id).counts
    n_tables = round_.plan.family.n_histograms
    assert counts.sum() == n_tables * (len(once) - 1 + counted)


def test_a_carrier_without_the_column_is_refused_where_the_policy_wants_it(places):
    policy = places.folder / "east.policy.toml"
    policy.write_text(policy.read_text().replace("persons = 1", 'persons = "column"'))
    places.open(least=3)
    state = Network(places).run()
    assert not state["done"]
    assert state["lost"] == {"east": "keys: policy"}
