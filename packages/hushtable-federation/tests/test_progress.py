"""Where a round in a folder stands: by signatures, through all its phases; and rehearsals of it."""

import json
from datetime import timedelta

import pytest

from hushtable.errors import UsageError
from hushtable_federation import clock, describe
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.progress import Progress
from hushtable_federation.folder.round_folder import RoundFolder, post_round
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from hushtable_federation.rehearsal import Play, Scenario
from hushtable_federation.todo import todos

PHASES = ["counting", "closing", "unmasking", "done"]


def progress(play):
    """Look as anyone who comes by does: with nothing but the folder."""
    store = Store.open(play.folder / "round")
    return Progress.of(RoundFolder(play.round, store))


@pytest.fixture
def play(tmp_path):
    """A round of five in its folder, which no one has answered."""
    play = Play(tmp_path, Scenario(5, tables=5, seed=1))
    post_round(Store.open(tmp_path / "round"), play.round)
    yield play
    play.close()


def add(play, step, sender, content):
    RoundFolder(play.round, Store.open(play.folder / "round")).add(step, sender, content)


# --- phases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cast", [{}, {"away": 1, "late": 1}])
def test_a_round_goes_through_its_phases_and_everybody_knows_what_to_do(tmp_path, cast):
    seen = []
    play = Play(
        tmp_path, Scenario(5, tables=5, seed=4, **cast), lambda _: seen.append(progress(play))
    )
    play.run()
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
    last = seen[-1]
    assert last.those("summed") == play.result.sites
    assert len(last.those("out")) == 5 - len(play.result.sites)


def test_who_is_awaited_and_then_too_late(play, monkeypatch):
    found = progress(play)
    assert found.phase == "counting"
    assert found.waits_for == play.round.names
    assert "0 of 5 sites have counted" in describe.standing(found)
    later = play.round.deadline + clock.CLOCKS + timedelta(seconds=1)
    monkeypatch.setattr(clock, "read", lambda: later)
    found = progress(play)
    assert (found.phase, found.over, found.waits_for) == ("short", True, ["lead"])
    (todo,) = (one for one in todos(found) if one.who == ["lead"])
    assert todo.command == "hushtable round amend FOLDER --key KEY --days 3"


def test_amendments_are_told_and_whoever_is_dropped_is_not_awaited(play):
    store = Store.open(play.folder / "round")
    until = play.round.deadline + timedelta(days=3)
    RoundFolder(play.round, store).amend(
        play.lead.keys, deadline=until, drop=("site02",), why="no power"
    )
    found = progress(play)
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
    found = progress(play)
    assert found.phase == "counting"
    assert found.states["site01"] == "awaited"
    assert len(found.odd) >= 3


def test_a_refusal_counts_if_its_site_signed_it_for_this_round(play):
    mine, other = play.sites[0].keys, Keys.generate("site02")
    add(play, "refused", "site01", Message.refuse(play.round.round_id, mine, Refusal.BUDGET))
    add(play, "refused", "site02", Message.refuse(play.round.round_id, other, Refusal.POLICY))
    add(play, "refused", "site03", Message.refuse("0" * 64, play.sites[2].keys, Refusal.TIME))
    found = progress(play)
    assert found.refused == {"site01": Refusal.BUDGET}
    assert found.those("refused") == ["site01"]
    assert describe.site_words(found, "site01") == "refused: its budget is not sufficient"
    assert found.states["site02"] == found.states["site03"] == "awaited"
    assert found.facts()["refusals"] == {"site01": "budget"}


def counted(play):
    """Have all sites visit until their counts are there."""
    for _ in range(2):
        for site in play.sites:
            play.visit(site)


def test_who_refused_and_then_answered_is_in(play):
    site = play.sites[0]
    refused = Message.refuse(play.round.round_id, site.keys, Refusal.UNAVAILABLE)
    add(play, "refused", "site01", refused)
    play.visit(site)
    found = progress(play)
    assert found.states["site01"] == "refused"  # its key is there, and its counts are not
    counted(play)
    found = progress(play)
    assert found.states["site01"] == "in"
    assert found.refused == {}


def test_two_different_answers_of_a_site_do_not_count(play):
    site = play.sites[0]
    counted(play)
    posts = RoundFolder(play.round, Store.open(play.folder / "round"))
    ((_, content),) = posts.of("shares", "site01")
    said = Message.read(content, site.keys.card)
    body = said.body | {"again": True}
    again = Message.make(play.round, "shares", site.keys, body, said.arrays).content
    add(play, "shares", "site01", again)
    found = progress(play)
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


# --- rehearsals -----------------------------------------------------------------------------------


def test_a_rehearsal_with_all_that_goes_wrong_ends_in_the_true_sum(tmp_path):
    events, before = [], clock.read
    cast = Scenario(9, away=2, late=1, liars=1, killed=2, tables=5, seed=2)
    play = Play(tmp_path, cast, events.append)
    play.run()
    assert clock.read is before
    assert play.exact
    liars = [one.name for one in play.sites if one.fate == "lies"]
    assert sorted(play.found_out) == liars
    late = {one.name for one in play.sites if one.fate == "late"}
    assert late.isdisjoint(play.result.sites)
    assert sum(event.what == "killed" for event in events) == 2
    assert all(one.visits <= 4 for one in play.sites if one.fate != "killed")
    measured, promised = play.noise
    assert measured == pytest.approx(promised, rel=0.5)


def test_with_all_present_a_site_visits_three_times(tmp_path):
    play = Play(tmp_path, Scenario(3, tables=5, seed=3))
    play.run()
    assert play.exact
    assert len(play.result.sites) == 3
    assert {one.visits for one in play.sites} <= {2, 3}


def test_a_result_that_is_another_is_told(tmp_path):
    play = Play(tmp_path, Scenario(3, tables=5, seed=3))
    play.run()
    one = next(one for one in play.sites if one.name in play.result.sites)
    one.counts = one.counts + 1
    assert not play.exact


def test_the_same_seed_plays_the_same(tmp_path):
    told = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        play = Play(tmp_path / str(i), Scenario(3, killed=1, tables=5, seed=9), told.append)
        play.run()
    said = [(event.day, event.name, event.what, event.visit.posted) for event in told]
    assert said[: len(said) // 2] == said[len(said) // 2 :]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"away": 3}, "2 are left, and 3 are needed"), ({"killed": 6}, "6 killed: needs at most 5")],
)
def test_a_rehearsal_that_cannot_end_is_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        Scenario(5, **wrong)
