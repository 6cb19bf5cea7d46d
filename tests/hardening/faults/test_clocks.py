"""Clocks that are wrong: a refusal that names the clock, and never a second answer."""

from faults import Run
from world import COMMANDS, lead

from hushtable_federation.book.book import Book

DAY = 86_400


def refused(run: Run, *words: str) -> None:
    said = " ".join(run.said.split())  # lines are folded where a path's length has it
    assert run.code == 1, run.said
    assert all(word in said for word in words), run.said


def answer(world, **how):
    return world.run(*COMMANDS["round sync"].line(world.root), **how)


def sent(world):
    return list((world.root / "first.box").glob("*.masked.north.*"))


def noted(world):
    with Book.open(world.root / "north.book") as book:
        return [answer.sent.tolist() for answer in book.answers()]


def test_a_site_whose_clock_is_wrong(world):
    refused(answer(world, clock=40 * DAY), "time to answer ended on", "check the clock")
    refused(answer(world, clock=-DAY), "in the future of this machine's clock", "correct the clock")
    assert sent(world) == []
    assert noted(world) == []  # and nothing is spent
    assert answer(world, clock=-600).code == 0  # a quarter of an hour is forgiven
    assert len(sent(world)) == 1
    assert len(noted(world)) == 1


def test_a_clock_that_jumps_between_two_calls(world):
    assert answer(world).code == 0
    (path,), answers = sent(world), noted(world)
    first = path.read_bytes()
    for clock in (DAY, 5 * DAY, -600, 0, 40 * DAY, -40 * DAY):
        path.unlink()
        # North alone is in when the round's 30 days are over: the state says so.
        assert answer(world, clock=clock).code == int(clock > 30 * DAY)
        # The same bytes: when it was made is what the book says, not the clock.
        assert path.read_bytes() == first
    assert noted(world) == answers


def test_a_coordinator_whose_clock_is_wrong(world):
    visit = lead("second").replace("@", f"{world.root}/").split()
    run = world.run(*visit, clock=-DAY)
    assert all(word in run.said for word in ("which is in the future", "clocks is wrong")), run.said
    assert not list((world.root / "second.box").glob("*.result.*"))
    # The sum of a round that is over can still be made.
    assert world.run(*visit, clock=400 * DAY).code == 0
    assert len(list((world.root / "second.box").glob("*.result.*"))) == 1


def test_a_round_opened_by_a_wrong_clock(world):
    for path in (world.root / "first.box").iterdir():
        path.unlink()
    post = f"{lead('first')} --post @new.round".replace("@", f"{world.root}/").split()
    line = COMMANDS["round open"].line(world.root)
    for clock, words in (
        (3 * DAY, ("the round was opened on", "in the future")),
        (-40 * DAY, ("time to answer ended on", "ask lead for more time")),
    ):
        assert world.run(*line, clock=clock).code == 0
        world.run(*post)
        refused(answer(world), *words)
        for path in (world.root / "first.box").iterdir():
            path.unlink()
    assert noted(world) == []
