"""Where a round in a folder stands: by signatures, through all its phases."""

import json
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from hushtable_federation.todo import todos

from hushtable_federation import clock, describe
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Result
from rehearsal import FolderRound

PHASES = ["counting", "closing", "unmasking", "done"]


@pytest.fixture
def play(tmp_path):
    """A round of five in its folder, which no one has answered."""
    made = FolderRound(tmp_path, 5)
    yield made
    made.close()


def add(play, step, sender, content):
    play.open().add(step, sender, content)


# --- phases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", [0, 1])
def test_a_round_goes_through_its_phases_and_everybody_knows_what_to_do(play, monkeypatch, away):
    seen, visits, sites = [play.progress()], Counter(), play.round.names[away:]
    for day in range(12):
        monkeypatch.setattr(clock, "read", lambda day=day: play.round.opened + day * timedelta(1))
        for name in [*sites, "lead"]:
            visits[name] += bool(play.visit(name).posted)
            seen.append(play.progress())
    order = [PHASES.index(one.phase) for one in seen]
    assert order == sorted(order)
    assert {0, 2, 3} <= set(order)
    for one in seen:
        n_in = len(one.those("in", "asked", "helped", "summed"))
        assert str(n_in) in describe.standing(one)
        who = {name for todo in todos(one) for name in todo.who}
        assert who == {"lead", *play.round.names}
        assert set(one.waits_for) <= {"lead", *play.round.names}
        assert json.loads(json.dumps(one.facts()))["states"] == one.states
    last, result = seen[-1], Result.load(play.folder / "lead.hush")
    assert last.those("summed") == result.sites == sites
    assert last.those("out") == play.round.names[:away]
    sent = [play.books[name].answer(play.round.round_id).sent for name in sites]
    np.testing.assert_array_equal(sum(sent), result.counts.counts)
    assert {visits[name] for name in sites} <= {2, 3, 3 + away}


def test_who_is_awaited_and_then_too_late(play, monkeypatch):
    found = play.progress()
    assert found.phase == "counting"
    assert found.waits_for == play.round.names
    assert "0 of 5 sites have counted" in describe.standing(found)
    later = play.round.deadline + clock.CLOCKS + timedelta(seconds=1)
    monkeypatch.setattr(clock, "read", lambda: later)
    found = play.progress()
    assert (found.phase, found.over, found.waits_for) == ("short", True, ["lead"])
    (todo,) = (one for one in todos(found) if one.who == ["lead"])
    assert todo.command == "hushtable round amend FOLDER --key KEY --days 3"


def test_amendments_are_told_and_whoever_is_dropped_is_not_awaited(play):
    until = play.round.deadline + timedelta(days=3)
    play.open().amend(play.lead, deadline=until, drop=("site02",), why="no power")
    found = play.progress()
    assert found.states["site02"] == "dropped"
    assert "site02" not in found.waits_for
    assert found.round.deadline == until
    assert describe.amendment_words(found).endswith("without site02: no power")


# --- nothing that is not signed -------------------------------------------------------------------


def test_names_of_files_are_not_believed(play):
    add(play, "masked", "site01", b"mine, honestly")
    add(play, "shares", "site01", b"mine, too")
    add(play, "result", "lead", b"the result")
    add(play, "ask-unmask", "site01", b"tell me")
    found = play.progress()
    assert found.phase == "counting"
    assert found.states["site01"] == "awaited"
    assert len(found.odd) >= 3


def test_a_refusal_counts_if_its_site_signed_it_for_this_round(play):
    mine, other = play.keys["site01"], Keys.generate("site02")
    add(play, "refused", "site01", Message.refuse(play.round.round_id, mine, Refusal.BUDGET))
    add(play, "refused", "site02", Message.refuse(play.round.round_id, other, Refusal.POLICY))
    add(play, "refused", "site03", Message.refuse("0" * 64, play.keys["site03"], Refusal.TIME))
    found = play.progress()
    assert found.refused == {"site01": Refusal.BUDGET}
    assert found.those("refused") == ["site01"]
    assert describe.site_words(found, "site01") == "refused: its budget is not sufficient"
    assert found.states["site02"] == found.states["site03"] == "awaited"
    assert found.facts()["refusals"] == {"site01": "budget"}


def counted(play):
    """Have all sites visit until their counts are there."""
    for _ in range(2):
        for name in play.round.names:
            play.visit(name)


def test_who_refused_and_then_answered_is_in(play):
    refused = Message.refuse(play.round.round_id, play.keys["site01"], Refusal.UNAVAILABLE)
    add(play, "refused", "site01", refused)
    play.visit("site01")
    found = play.progress()
    assert found.states["site01"] == "refused"  # its key is there, and its counts are not
    counted(play)
    found = play.progress()
    assert found.states["site01"] == "in"
    assert found.refused == {}


def test_two_different_answers_of_a_site_do_not_count(play):
    counted(play)
    ((_, content),) = play.open().of("shares", "site01")
    said = Message.read(content, play.keys["site01"].card)
    body = said.body | {"again": True}
    again = Message.make(play.round, "shares", play.keys["site01"], body, said.arrays).content
    add(play, "shares", "site01", again)
    found = play.progress()
    assert found.states["site01"] == "twice"
    assert sum("two different answers" in why for why in found.odd.values()) == 2


def test_there_are_words_for_every_state_refusal_and_step():
    told = {*Refusal} - {Refusal.SILENT, Refusal.GARBLED}  # which no site signs
    assert told <= set(describe._REFUSALS)
    steps = ["keys", "shares", "masked", "survivors", "unmask", "submission", "result"]
    steps += [f"ask-{step}" for step in ("shares", "survivors", "unmask")]
    for step in steps:
        (sentence,) = describe.done_words([step])
        assert not sentence.startswith("Sent: ")
    assert describe.done_words(["keys", "shares", "masked"]) == describe.done_words(["masked"])
    assert "3 sites" in describe.done_words(["ask-unmask"] * 3)[0]
