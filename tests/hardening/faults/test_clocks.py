"""Clocks that are wrong: a refusal that names the clock, and never a second answer."""

from faults import Run
from world import COMMANDS

from hushtable_federation.book.book import Book

DAY = 86_400


def refused(run: Run, *words: str) -> None:
    assert run.code == 1, run.said
    assert all(word in run.said for word in words), run.said


def submit(world, **how):
    return world.run(*COMMANDS["round submit"].line(world.root), **how)


def noted(world):
    with Book.open(world.root / "north.book") as book:
        return [answer.sent.tolist() for answer in book.answers()]


def test_a_site_whose_clock_is_wrong(world):
    out = world.root / "north.sent"
    refused(submit(world, clock=40 * DAY), "the round ended on", "this machine's clock says")
    refused(submit(world, clock=-DAY), "in the future of this machine's clock", "correct the clock")
    assert not out.exists()
    assert noted(world) == []  # and nothing is spent
    assert submit(world, clock=-600).code == 0  # a quarter of an hour is forgiven
    assert out.exists()
    assert len(noted(world)) == 1


def test_a_clock_that_jumps_between_two_calls(world):
    assert submit(world).code == 0
    first, answers = (world.root / "north.sent").read_bytes(), noted(world)
    for clock in (DAY, 5 * DAY, -600, 0):
        (world.root / "north.sent").unlink()
        assert submit(world, clock=clock).code == 0
        # The same bytes: when it was made is what the book says, not the clock.
        assert (world.root / "north.sent").read_bytes() == first
    (world.root / "north.sent").unlink()
    for clock in (40 * DAY, -40 * DAY):
        refused(submit(world, clock=clock), "clock")
    assert not (world.root / "north.sent").exists()
    assert noted(world) == answers


def test_a_coordinator_whose_clock_is_wrong(world):
    collect = COMMANDS["round collect"].line(world.root)
    run = world.run(*collect, clock=-DAY)
    refused(run, "which is in the future", "one of the two clocks is wrong")
    assert not (world.root / "result.hush").exists()
    # Results of a round that is over can still be collected.
    assert world.run(*collect, clock=400 * DAY).code == 0


def test_a_round_opened_by_a_wrong_clock(world):
    line = COMMANDS["round open"].line(world.root)
    submit_it = [part.replace("first.round", "new.round") for part in
                 COMMANDS["round submit"].line(world.root)]  # fmt: skip
    assert world.run(*line, clock=3 * DAY).code == 0
    refused(world.run(*submit_it), "the round was opened on", "in the future")
    assert world.run(*line, clock=-40 * DAY).code == 0
    refused(world.run(*submit_it), "the round ended on", "ask the coordinator for a new round")
    assert noted(world) == []
