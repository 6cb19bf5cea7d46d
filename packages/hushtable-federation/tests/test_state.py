"""How a round in a folder stands: by signatures, through all its phases; and its renderers."""

import json
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from hushtable_federation import clock, describe
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Result
from hushtable_federation.state import RoundState
from rehearsal import FolderRound

PHASES = ["counting", "closing", "unmasking", "done"]

NAMES = [f"site{i:02d}" for i in range(1, 6)]


@pytest.fixture
def play(tmp_path):
    """A round of five in its folder, which no one has answered."""
    made = FolderRound(tmp_path, 5)
    yield made
    made.close()


@pytest.fixture
def at(monkeypatch):
    """Set the clock."""
    return lambda time: monkeypatch.setattr(clock, "read", lambda: time)


def add(play, step, sender, content):
    play.open().add(step, sender, content)


def refuse(play, name, keys=None, round_id=None, word=Refusal.BUDGET):
    content = Message.refuse(round_id or play.round.round_id, keys or play.keys[name], word)
    add(play, "refused", name, content)


def visit(play, *names):
    for name in names:
        play.visit(name)


def again(play, name):
    """Sign another answer, as a second book does."""
    ((_, content),) = play.open().of("shares", name)
    first = Message.read(content, play.keys[name].card)
    body = first.body | {"again": True}
    add(play, "shares", name, Message.make(play.round, "shares", play.keys[name], body,
                                           first.arrays).content)  # fmt: skip


def forge(play):
    """Write files that no party signed."""
    for step in ("masked", "shares", "ask-unmask"):
        add(play, step, "site01", b"mine, honestly")
    add(play, "result", "lead", b"the result")


def contradict(play):
    before = play.open()
    play.open().amend(play.lead, drop=("site01",))
    before.amend(play.lead, drop=("site02",))


def settled(play):
    """All draw a key, and the first four send their counts."""
    visit(play, *NAMES, *NAMES[:4])


# By name: the day, what happened, the phase, the states of some sites, who is awaited, and the
# tasks of the coordinator and of the first and the last site.
SCENARIOS = {
    "new": (0, lambda play: None, "counting", {"site01": "awaited"}, NAMES,
            "remind", "answer", "answer"),
    "some keys": (0, lambda play: visit(play, *NAMES[:4]), "counting", {"site01": "ready"},
                  NAMES[4:], "remind", "wait", "answer"),
    "half time": (4, lambda play: visit(play, *NAMES[:4]), "counting", {"site01": "ready"},
                  [*NAMES[4:], "lead"], "settle remind", "wait", "answer"),
    "all keys": (0, lambda play: visit(play, *NAMES[:4]) or visit(play, NAMES[4]), "counting",
                 {"site01": "ready", "site05": "in"}, NAMES[:4], "remind", "send", "wait"),
    "refused": (0, lambda play: refuse(play, "site01"), "counting", {"site01": "refused"}, NAMES,
                "ask-reason remind", "resolve", "answer"),
    "dropped": (0, lambda play: play.open().amend(play.lead, drop=("site05",)), "counting",
                {"site05": "dropped"}, NAMES[:4], "remind", "answer", "left-out"),
    "twice": (0, lambda play: settled(play) or again(play, "site01"), "counting",
              {"site01": "twice"}, ["site01"], "remind drop-twice", "find-book", "wait"),
    "forged": (0, forge, "counting", {"site01": "awaited"}, NAMES, "remind", "answer", "answer"),
    "late, enough": (7.001, lambda play: visit(play, *NAMES, *NAMES[:3]), "counting",
                     {"site01": "in"}, ["site04"], "drop", "wait", "wait"),
    "late, too few": (7.001, lambda play: None, "counting", {"site01": "awaited"}, NAMES,
                      "extend", "ask-time", "ask-time"),
    "too few": (8, lambda play: None, "short", {"site01": "awaited"}, ["lead"],
                "extend", "ask-time", "ask-time"),
    "closing": (0, lambda play: visit(play, *NAMES, *NAMES), "closing", {"site01": "in"}, ["lead"],
                "continue", "wait", "wait"),
    "overdue": (30, lambda play: visit(play, *NAMES, *NAMES), "closing", {"site01": "in"},
                ["lead"], "continue", "ask-lead", "ask-lead"),
    "unmasking": (0, lambda play: visit(play, *NAMES, *NAMES, "lead", "site01"), "unmasking",
                  {"site01": "helped", "site05": "asked"}, NAMES[1:], "remind-again", "wait",
                  "help"),
    "helped": (0, lambda play: visit(play, *NAMES, *NAMES, "lead", *NAMES[:3]), "unmasking",
               {"site01": "helped"}, [*NAMES[3:], "lead"], "continue", "wait", "help"),
    "forgotten": (90, lambda play: visit(play, *NAMES, *NAMES, "lead"), "failed",
                  {"site01": "asked"}, ["lead"], "reopen", "nothing", "nothing"),
    "contradicting": (0, contradict, "failed", {}, ["lead"], "reopen", "nothing", "nothing"),
    "done": (0, lambda play: visit(play, *NAMES, *NAMES, "lead", *NAMES, "lead"), "done",
             {"site01": "summed"}, [], "fetch", "fetch", "fetch"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_state_follows_from_files_and_the_time(play, at, name):
    day, happens, phase, states, waits_for, *deeds = SCENARIOS[name]
    happens(play)
    at(play.round.opened + timedelta(days=day))
    found = play.state()
    assert found.phase == phase
    assert found.states.items() >= states.items()
    assert found.waits_for == waits_for
    for party, expected in zip(("lead", "site01", "site05"), deeds, strict=True):
        tasks = [task for task in found.tasks if party in task.who]
        assert [task.deed for task in tasks] == expected.split()
        assert found.needs_person(party) == any(task.needs_person for task in tasks)
        # A visitor reads less, and comes to the same, except for forged files of others.
        seen = RoundState.of(play.open(), party, found.those("twice"))
        assert seen.phase == phase
        assert seen.states == found.states or (name == "forged" and party != "site01")
    # Each renderer has words for it.
    assert json.loads(json.dumps(found.facts()))["states"] == found.states
    words = [describe.standing(found), *(describe.site_words(found, site) for site in NAMES)]
    for task in found.tasks:
        facts = describe.task_facts(found, task, "FOLDER", "KEY")
        words.append(facts["words"])
        assert facts["command"].startswith(("hushtable round ", "")[not facts["command"]])
    for party in ("lead", *NAMES):
        words += describe.party_words(found, party)
    assert all(words)
    assert "%(" not in " ".join(words)


def test_amendments_are_stated(play):
    until = play.round.deadline + timedelta(days=3)
    play.open().amend(play.lead, deadline=until, drop=("site02",), why="no power")
    found = play.state()
    assert found.round.deadline == until
    assert describe.amendment_words(found).endswith("without site02: no power")
    assert describe.site_words(found, "site02") == "left out by the coordinator: no power"


def test_a_refusal_counts_if_its_site_signed_it_for_this_round(play):
    refuse(play, "site01")
    refuse(play, "site02", keys=Keys.generate("site02"))
    refuse(play, "site03", round_id="0" * 64)
    found = play.state()
    assert found.refused == {"site01": Refusal.BUDGET}
    assert describe.site_words(found, "site01") == "refused: its budget is not sufficient"
    assert found.facts()["refusals"] == {"site01": "budget"}
    assert len(found.odd) == 2
    visit(play, *NAMES, *NAMES)  # the site answers after all
    found = play.state()
    assert found.states["site01"] == "in"
    assert found.refused == {}


def test_a_party_of_both_roles_states_once_how_the_round_stands(play):
    site, lead = play.visit("site01"), play.visit("lead")
    ((words,), (later,)) = site.words, lead.words
    assert words == later  # nothing was changed in between
    assert lead.after(site).words == [words]
    assert lead.posted == ["keys"]


def test_commands_name_folder_key_and_sites(play, at):
    at(play.round.deadline + timedelta(minutes=1))
    (extend,) = (task for task in play.state().tasks if task.deed == "extend")
    command = describe.task_command(extend, "/mnt/round", "lead.key")
    assert command == "hushtable round amend /mnt/round --key lead.key --days 3"
    drop = extend._replace(deed="drop", about=("a b", "c"))
    assert describe.task_command(drop, "F", "K").endswith("--drop 'a b' --drop c")
    answer = extend._replace(deed="answer")
    assert describe.task_command(answer, "F", "K") == "hushtable round sync F DATA --key K"


def test_there_are_words_for_every_state_refusal_and_step():
    signed = {*Refusal} - {Refusal.SILENT, Refusal.GARBLED}  # which no site signs
    assert signed <= set(describe._REFUSALS)
    steps = ["keys", "shares", "masked", "survivors", "unmask", "submission", "result"]
    steps += [f"ask-{step}" for step in ("shares", "survivors", "unmask")]
    for step in steps:
        (sentence,) = describe.done_words([step])
        assert not sentence.startswith("Sent: ")
    assert describe.done_words(["keys", "shares", "masked"]) == describe.done_words(["masked"])
    assert "3 sites" in describe.done_words(["ask-unmask"] * 3)[0]


@pytest.mark.parametrize("away", [0, 1])
def test_a_round_goes_through_its_phases_and_everybody_has_a_task(play, at, away):
    seen, visits, sites = [play.state()], Counter(), NAMES[away:]
    for day in range(12):
        at(play.round.opened + timedelta(days=day))
        for name in [*sites, "lead"]:
            visits[name] += bool(play.visit(name).posted)
            seen.append(play.state())
    order = [PHASES.index(one.phase) for one in seen]
    assert order == sorted(order)
    assert {0, 2, 3} <= set(order)
    for one in seen:
        assert {name for task in one.tasks for name in task.who} == {"lead", *NAMES}
    last, result = seen[-1], Result.load(play.folder / "lead.hush")
    assert last.those("summed") == result.sites == sites
    assert last.those("out") == NAMES[:away]
    sent = [play.books[name].answer(play.round.round_id).sent for name in sites]
    np.testing.assert_array_equal(sum(sent), result.counts.counts)
    assert {visits[name] for name in sites} <= {2, 3, 3 + away}
