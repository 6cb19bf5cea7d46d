"""Attacks by a member of a round: it writes signed files with its own keys, and removes its own.

A member stopped rounds without being named by a key that is no key (every honest site refused), by
another key after others had sent their counts, and by files that it took back after the list was
decided (the round waited for ever). The tests know commands and files alone.
"""

from datetime import timedelta

import numpy as np
import pytest

from folder_helpers import Clock
from hushtable import load
from hushtable_federation.folder.mailbox import name_of
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.protocol.messages import Message
from place_helpers import Places
from round_helpers import DEADLINE, T0, draw

BAD = "mallory"
#: Points that give everyone the same key, or none: of order 1, 1, and 8.
NO_KEYS = {
    "zero": 32 * "00",
    "one": "01" + 31 * "00",
    "order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
}
HALF = T0 + (DEADLINE - T0) / 2 + timedelta(minutes=1)
LATE = DEADLINE + timedelta(hours=1)
MONTH = DEADLINE + timedelta(days=30)
#: When no site has the data of the round's steps any more.
END = DEADLINE + timedelta(days=61)


class Members:
    """Sites that answer by themselves, one of them dishonest, in a folder of rounds."""

    def __init__(self, folder, run, clock, n, least):
        names = [BAD, *(f"s{i}" for i in range(1, n))]
        self.places, self.run, self.clock = Places(folder, tuple(sorted(names))), run, clock
        self.folder, self.box = folder, folder / "box"
        self.honest = [name for name in self.places.names if name != BAD]
        self.box.mkdir()
        clock.at = T0
        self.round = self.places.open(least, deadline=DEADLINE)
        self.lead("--post", folder / "round.hush")

    # --- honest -------------------------------------------------------------------------------

    def site(self, name):
        """Run the command of a site; return its exit code, and what it reports of the round."""
        file = self.places.file(name)
        return self._sync("--site", file, "-o", self._results(name), "--unattended")

    def lead(self, *more):
        return self._sync("--key", self.folder / "lead.key", "-o", self._results("lead"), *more)

    def _results(self, name):
        path = self.folder / f"of {name}"
        path.mkdir(exist_ok=True)
        return path

    def _sync(self, *options):
        done = self.run("round", "sync", self.box, *options, "--json")
        assert "rounds" in done.json, done.err
        (found,) = done.json["rounds"]
        assert found["exit_code"] == done.code
        return found

    def goes_on(self, *times, without=()):
        """Let all honest parties visit at these times until none writes; return the last visits."""
        for at in times:
            self.clock.at, posted = at, True
            while posted:
                visits = {n: self.site(n) for n in self.honest if n not in without}
                visits["lead"] = self.lead()
                posted = any(visit["posted"] for visit in visits.values())
        return visits

    # --- dishonest ----------------------------------------------------------------------------

    @property
    def keys(self):
        return Keys.load(self.folder / f"{BAD}.key")

    def draw(self, **public):
        """Write keys for the round that the member signs, by default some that are keys."""
        _, content = draw(self.round, self.keys, **public)
        (self.box / name_of(self.round.round_id, "keys", BAD, content)).write_bytes(content)

    def take_back(self, *steps):
        """Remove the member's own files of these steps."""
        files = [path for path in self.box.iterdir() if path.name.split(".")[2] == BAD]
        mine = [path for path in files if path.name.split(".")[1] in steps]
        assert mine
        for path in mine:
            path.unlink()

    # --- what has to hold, whatever the member does -------------------------------------------

    def check(self, visits):
        """Check that nobody honest is blamed, waits for ever, or has answered twice."""
        for name, visit in visits.items():
            assert visit["state"] in ("done", "failed", "over", "left-out"), (name, visit)
            assert visit["exit_code"] == (0 if visit["state"] == "done" else 1), (name, visit)
            assert not set(visit["found_out"]) - {BAD}, (name, visit)
            assert not set(visit["waits_for"]) - {BAD, "lead"}, (name, visit)
        status = self.run("round", "status", self.box, "--json").json
        assert "twice" not in {s for n, s in states(status).items() if n != BAD}
        for name in self.honest:
            with self.places.book(name) as book:
                assert len(book.answers()) <= 1
                assert book.total("all rows") <= 1.0

    def check_result(self, visits, names):
        """Check that there is the exact result of these sites, for all honest parties."""
        self.check(visits)
        assert {visit["state"] for visit in visits.values()} == {"done"}
        (path,) = self._results("lead").glob("*.result.hush")
        parts = []
        for name in names:
            with self.places.book(name) as book:
                parts.append(book.answer(self.round.round_id).sent)
        np.testing.assert_array_equal(load(path).counts, sum(parts))


def states(status):
    """Return the states of sites in what `round status` reports of one round."""
    (found,) = status["rounds"]
    return found["states"]


@pytest.fixture
def members(tmp_path, run, monkeypatch):
    clock = Clock(monkeypatch)
    return lambda n=3, least=2: Members(tmp_path, run, clock, n, least)


# --- a key that is no key -------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["mask", "seal"])
@pytest.mark.parametrize("public", NO_KEYS.values(), ids=NO_KEYS)
def test_a_key_that_is_no_key_names_its_member(members, public, half):
    here = members()
    here.draw(**{half: public})
    for name in here.honest:
        assert here.site(name)["state"] == "waiting"
    visit = here.lead()
    assert list(visit["found_out"]) == [BAD]
    assert visit["exit_code"] == 3  # a person may drop the member, and need not wait
    here.check_result(here.goes_on(HALF), here.honest)


def test_a_key_that_is_no_key_where_all_are_needed(members):
    """Nobody spends anything, and the round fails with the member's name."""
    here = members(3, 3)
    here.draw(seal=NO_KEYS["zero"])
    visits = here.goes_on(T0, HALF, LATE)
    here.check(visits)
    assert list(visits["lead"]["found_out"]) == visits["lead"]["waits_for"] == [BAD]
    for name in here.honest:
        with here.places.book(name) as book:
            assert book.answers() == []


# --- another key ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "least", "early"), [(3, 2, 1), (3, 2, 2), (5, 3, 2), (5, 3, 4)])
def test_another_key_after_others_have_sent_names_its_member(members, n, least, early):
    """The coordinator has seen nothing yet; some have masked with the first key."""
    here = members(n, least)
    for name in here.honest:
        here.site(name)
    here.draw()
    for name in here.honest[:early]:
        assert "masked" in here.site(name)["posted"]
    here.take_back("keys")
    here.draw()
    for name in here.honest[early:]:
        here.site(name)
    here.lead()
    here.goes_on(T0)
    assert list(here.lead()["found_out"]) == [BAD]
    here.check_result(here.goes_on(HALF, LATE), here.honest)


def test_another_key_where_all_are_needed(members):
    """There is no result, everybody has sent, and the member is named as the reason."""
    here = members(3, 3)
    here.draw()
    for name in (*here.honest, *here.honest):
        here.site(name)
    here.take_back("keys")
    here.draw()
    visits = here.goes_on(T0, HALF, LATE)
    here.check(visits)
    assert visits["lead"]["state"] in ("over", "failed")
    assert list(visits["lead"]["found_out"]) == visits["lead"]["waits_for"] == [BAD]


@pytest.mark.parametrize("again", ["another key", "no key"])
def test_another_key_after_the_coordinator_has_seen_the_first(members, again):
    """Sites that have not sent yet do so, with the keys that the coordinator distributes."""
    here = members(4, 3)
    here.draw()
    for name in here.honest:
        here.site(name)
    here.site(here.honest[0])
    here.lead()
    here.take_back("keys")
    here.draw(**({} if again == "another key" else {"mask": NO_KEYS["zero"]}))
    here.goes_on(T0)
    assert list(here.lead()["found_out"]) == [BAD]
    here.check_result(here.goes_on(HALF, LATE), here.honest)


# --- files taken back -----------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["keys", "masked", "shares"])
@pytest.mark.parametrize(("n", "least"), [(3, 2), (3, 3)])
def test_files_taken_back_after_the_list_is_decided_change_nothing(members, n, least, step):
    here = members(n, least)
    for _ in range(2):
        for name in here.places.names:
            here.site(name)
    here.lead()
    if least == n:  # its shares are needed, too
        here.site(BAD)
    here.take_back(step)
    here.check_result(here.goes_on(T0), here.places.names)


@pytest.mark.parametrize("step", ["masked", "shares"])
def test_files_taken_back_before_anybody_has_read_them_were_never_sent(members, step):
    here = members(4, 3)
    for _ in range(2):
        for name in here.places.names:
            here.site(name)
    here.take_back(step)
    visit = here.lead()
    assert visit["waits_for"] == [BAD]
    here.check_result(here.goes_on(HALF, LATE), here.honest)


def test_signatures_taken_back_after_they_were_used(members):
    """One site is away, so the others sign the list; the member's signature was one of three."""
    here = members(5, 3)
    *rest, last = here.honest
    for name in (BAD, *rest):
        here.site(name)
    here.clock.at = HALF
    here.lead()
    for name in (BAD, *rest):
        here.site(name)
    here.clock.at = LATE
    here.lead()
    for name in (BAD, *rest[:2]):
        here.site(name)
    here.lead()
    here.take_back("survivors")
    visits = here.goes_on(LATE, without=[last])
    here.check_result(visits, [BAD, *rest])


@pytest.mark.parametrize("step", ["masked", "shares"])
def test_files_taken_back_from_a_coordinator_that_lost_its_own(members, step):
    """On another computer, without what it kept: the round fails, and names the member."""
    here = members(3, 2)
    for _ in range(2):
        for name in here.places.names:
            here.site(name)
    here.lead()
    for path in sorted((here.folder / "lead.rounds").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    here.take_back(step)
    visits = here.goes_on(T0, LATE)
    assert visits["lead"]["state"] == "failed"
    assert visits["lead"]["waits_for"] == [BAD]
    here.check(here.goes_on(END))


# --- silence --------------------------------------------------------------------------------------


def test_a_member_that_falls_silent_after_the_list_is_decided(members):
    """All are needed: somebody is alerted within a month, and the round fails in the end."""
    here = members(3, 3)
    for _ in range(2):
        for name in here.places.names:
            here.site(name)
    visits = here.goes_on(T0)
    assert visits["lead"]["waits_for"] == [BAD]
    visits = here.goes_on(LATE, MONTH)
    assert {visit["exit_code"] for visit in visits.values()} == {3}
    assert visits["lead"]["waits_for"] == [BAD]
    visits = here.goes_on(END)
    here.check(visits)
    assert visits["lead"]["state"] == "failed"
    assert visits["lead"]["waits_for"] == [BAD]


# --- over a carrier -------------------------------------------------------------------------------


class Carried:
    """The same sites, without a folder; the member's answers are changed on their way."""

    def __init__(self, members, change):
        self.here, self.change = members, change
        sites = {name: self._answer(name) for name in members.places.names}
        self.sum = SecureSum(members.round, Keys.load(members.folder / "lead.key"), Memory(sites))

    def _answer(self, name):
        def answer(request):
            content = self.here.places.answer(name, request)
            step = Message.read(request, self.here.round.coordinator).step
            return self.change(step, content) if name == BAD else content

        return answer


@pytest.mark.parametrize("public", NO_KEYS.values(), ids=NO_KEYS)
def test_a_key_that_is_no_key_over_a_carrier(members, public):
    here = members(5, 3)

    def change(step, content):
        if step != "keys":
            return content
        return draw(here.round, here.keys, mask=public)[1]

    carried = Carried(here, change)
    result = carried.sum.run()
    assert list(carried.sum.found_out) == list(carried.sum.lost) == [BAD]
    result.save(here.folder / "result.hush")
    with here.places.book(BAD) as book:
        assert book.answers() == []
    here.places.check(here.round, here.honest)


@pytest.mark.parametrize("silent", ["keys", "shares", "masked", "unmask"])
def test_silence_over_a_carrier(members, silent):
    here = members(5, 3)
    carried = Carried(here, lambda step, content: None if step == silent else content)
    carried.sum.run()
    assert carried.sum.lost == {BAD: f"{silent}: silent"}
    assert carried.sum.found_out == {}
