"""``hushtable round sync`` killed by SIGKILL before any one change of the disk: the same sum."""

import os

import pytest
from faults import KILLED, put
from world import COMMANDS, TRUST, snapshot

from hushtable_federation.book.book import Book
from hushtable_federation.result import Result

#: Whose visits there are, until the result is verified: south comes last, and sends its counts at
#: its first one.
VISITS = "north", "south", "north", "lead", "north", "south", "lead", "north", "south"


def line(here, name):
    if name == "lead":
        return f"round sync {here}/box --key {here}/lead.key -o {here} --json".split()
    rows = f"{here}/{'rows' if name == 'north' else 'other'}.csv"
    about = f"--key {here}/{name}.key --yes -o {here} --json"
    return f"round sync {here}/box {rows} {about} {TRUST.replace('@', f'{here}/')}".split()


@pytest.fixture
def round_in(world):
    """Return the server, and its folder with a new round in a box of its own."""
    here = world.root
    for path in here.glob("*.result.hush"):  # of other rounds
        path.unlink()
    (here / "box").mkdir()
    post = "round", "sync", here / "box", "--key", here / "lead.key", "--post", here / "new.round"
    for command in (COMMANDS["round open"].line(here), (*post, "-o", here)):
        done = world.run(*command)
        assert done.code == 0, done.said
    return world, here


def go_on(server, here, visits):
    """Have them visit until the coordinator is done; return what it said last."""
    for name in visits:
        done = server.run(*line(here, name))
        assert done.code == 0, done.said
    return done


def check(server, here, at):
    (path,) = here.glob("*.result.hush")
    result, sent = Result.load(path), []
    for name in ("north", "south"):
        with Book.open(here / f"{name}.book") as book:
            (given,) = book.answers()
            assert book.verified(result.seal.digest), at
            assert len(book.spent("all rows")) == 1, at
            sent.append(given.sent)
    assert (result.counts.counts == sum(sent)).all(), at
    assert result.sites == ["north", "south"], at


def sweep(served, here, step):
    """Kill each of the visits at every ``step``-th change; return how often one died."""
    deaths = 0
    for i, name in enumerate(VISITS[:7]):
        before = snapshot(here)
        whole = served.run(*line(here, name))
        assert whole.code == 0, whole.said
        after = snapshot(here)
        for kill_at in range(1, len(whole.changes) + 1, step):
            put(before, here)
            died = served.run(*line(here, name), kill_at=kill_at)
            if died.code != KILLED:  # what is written depends on what was drawn
                continue
            deaths += 1
            at = f"visit {i} of {name}, killed before change {kill_at}: {died.changes[-1]}"
            go_on(served, here, VISITS[i:])
            check(served, here, at)
        put(after, here)
    return deaths


#: Of so many changes one; HUSHTABLE_KILLS=1 takes them all, in half an hour.
EACH = int(os.environ.get("HUSHTABLE_KILLS", "23"))


@pytest.mark.slow
def test_killed_at_many_changes(round_in):
    served, here = round_in
    deaths = sweep(served, here, EACH)
    print(f"killed at {deaths} changes of {len(VISITS[:7])} visits, the same sum each time")
    assert deaths > 50 / EACH
