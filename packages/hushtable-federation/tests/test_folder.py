"""Rounds in a folder: visits in any order, amendments, what got lost, and who lies."""

import dataclasses
import json
import shutil
from collections import Counter
from datetime import timedelta
from unittest.mock import patch

import pytest

from folder_helpers import HALF, Clock, Folder
from hushtable import files
from hushtable.errors import FileError, RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.describe import standing
from hushtable_federation.folder.mailbox import name_of
from hushtable_federation.folder.round_folder import Amendment
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import Message
from hushtable_federation.state import RoundState
from hushtable_federation.terms import PROTOCOL
from places import ROOT
from round_helpers import DEADLINE, T0, UNATTENDED

pytestmark = pytest.mark.usefixtures("quick_noise")
LATE = DEADLINE + timedelta(hours=1)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def folder(consortium, clock):
    def make(k=3, **terms):
        one = consortium(k)
        return Folder(one, one.open(**terms))

    return make


def finish(folder, *away, most=4):
    """Have all visit until the coordinator is done; return how often each site was needed."""
    needed = dict.fromkeys(folder.consortium.sites, 0)
    for _ in range(most):
        for name, visit in folder.sites(*away).items():
            needed[name] += bool(visit.posted)
        if folder.visit().state == "done":
            return needed
    raise AssertionError("no result")


# --- how it goes --------------------------------------------------------------------------------


def test_a_site_that_changes_version_in_the_middle_sends_and_spends_nothing(folder):
    here = folder(3, least=2)
    here.sites()
    files_there = here.names()
    with (
        patch("hushtable_federation.round.PROTOCOL", PROTOCOL + 1),
        pytest.raises(RoundError, match="all parties finish it with that version"),
    ):
        here.site("s00")
    assert here.names() == files_there
    assert unspent(here, "s00")
    finish(here)  # with the version that began
    assert here.check().sites == ["s00", "s01", "s02"]


def visits(here, *away):
    """Have all but those away visit until the result is there; return who was needed how often."""
    needed = Counter()
    for _ in range(8):
        for name, visit in here.sites(*away).items():
            needed[name] += bool(visit.posted)
        visit = here.visit()
        needed["lead"] += bool(visit.posted)
        if visit.state == "done":
            return needed
    raise AssertionError(visit)


def _whole(here, clock):
    return visits(here)


def _no_key(here, clock):
    here.sites("s03")
    clock.at = HALF
    return visits(here, "s03") + Counter(["s00", "s01", "s02"])


def _no_counts(here, clock):
    here.sites()
    here.sites("s00")
    clock.at = LATE
    return visits(here, "s00") + Counter(["s01", "s01", "s02", "s02", "s03"])


def _dropped(here, clock):
    here.sites("s03")
    here.posts().amend(here.lead, drop=("s03",))
    return visits(here, "s03") + Counter(["s00", "s01", "s02"])


@pytest.mark.parametrize(
    ("play", "row", "without"),
    [
        (_whole, "all sites are in the sum", ""),
        (_no_key, "a site drew no key", "s03"),
        (_no_counts, "a site dealt and sent no counts", "s00"),
        (_dropped, "round amend --drop` leaves out", "s03"),
    ],
)
def test_visits_are_as_many_as_the_docs_state(folder, clock, play, row, without):
    """The coordinator's visits include the one that posts the round."""
    here = folder(4, least=3)
    needed = play(here, clock)
    assert here.check().sites == [name for name in here.consortium.sites if name != without]
    rounds = (ROOT / "docs/explanation/rounds.md").read_text()
    (line,) = (one for one in rounds.splitlines() if one.startswith("|") and row in one)
    _, of_site, of_lead, _ = (cell.strip() for cell in line.strip("|").split("|"))
    lead = needed.pop("lead") + 1
    assert (max(needed.values()), lead) == (int(of_site), int(of_lead))


# --- amendments ---------------------------------------------------------------------------------


def test_too_many_dropped_is_refused(folder):
    here = folder(4, least=3)
    with pytest.raises(RoundError, match="2 sites would be left, and 3 are needed"):
        here.posts().amend(here.lead, drop=("s02", "s03"))
    assert here.posts().amendment.number == 0


def test_nobody_spends_where_too_many_are_dropped(folder):
    """By an amendment that another program signed."""
    here = folder(4, least=3)
    made = Amendment(1, DEADLINE, ("s02", "s03"))
    here.posts().add("amend", "lead", made.message(here.round, here.lead))
    visit = here.visit()
    assert visit.state == "failed"
    assert visit.words[1:] == ["Open another round, and inform the sites."]
    for name in here.consortium.sites:
        assert here.site(name).state == ("left-out" if name in made.dropped else "failed")
        assert unspent(here, name)
    assert not here.names("masked")


def unspent(here, name):
    book = here.consortium.sites[name].book
    return book.answer(here.round.round_id) is None and book.total("all rows") == 0.0


def decided(folder, clock):
    """Return a folder whose list is signed, without ``s03``."""
    here = folder(4, least=3)
    here.counted("s03")
    clock.at = LATE
    here.visit()
    return here


@pytest.mark.parametrize("why", ["clock", "amendment"])
def test_nobody_spends_once_the_list_is_decided(folder, clock, why):
    """As with a clock that is behind, or an amendment that came too late."""
    here = decided(folder, clock)
    if why == "clock":
        clock.at = T0
    else:
        late = Amendment(1, LATE + timedelta(days=3)).message(here.round, here.lead)
        here.posts().add("amend", "lead", late)
    visit = here.site("s03")
    assert visit.state == "left-out"
    assert "s03: not in the sum." in visit.words
    assert unspent(here, "s03")
    assert not here.names(sender="s03")


def test_contradicting_amendments_stop_the_round(folder):
    here = folder(4, least=3)
    here.sites()
    before = here.posts()
    here.posts().amend(here.lead, deadline=LATE)
    before.amend(here.lead, drop=("s00",))
    for visit in (here.visit(), here.site("s01")):
        assert visit.state == "failed"
        assert "'lead' signed two amendments" in visit.words[0]
    with pytest.raises(RoundError, match="contradict each other"):
        here.posts().amend(here.lead, deadline=LATE)
    progress = RoundState.of(here.posts())
    assert progress.phase == "failed"
    assert "contradict each other" in standing(progress)
    assert [one.deed for one in progress.tasks] == ["reopen", "nothing"]


def test_amendments_of_others_do_not_count(folder, consortium):
    here = folder(3)
    other = consortium(3).open(keys=here.lead, cards=here.consortium.cards, title="other")
    for content in (
        Amendment(1, LATE, ("s00",)).message(here.round, Keys.generate("lead")),
        Amendment(1, LATE, ("s00",)).message(other, here.lead),
        Amendment(0, LATE).message(here.round, here.lead),
        Message.make(here.round, "amend", here.lead, {"number": 1}).content,
        b"nothing of ours",
    ):
        posts = here.posts()
        posts.add("amend", "lead", content)
        posts = here.posts()
        assert posts.amendment.number == 0
        assert not posts.stopped
    assert len(posts.odd) == 5
    finish(here)
    here.check()


# --- what gets lost -----------------------------------------------------------------------------


def test_what_is_lost_after_the_list_is_waited_for(folder):
    """By a coordinator that has lost the answers that it kept, too."""
    here = folder(3, least=2)
    here.counted()
    here.visit()
    shutil.rmtree(here.journal.with_suffix(""))
    for path in here.names("masked", "s00"):
        path.unlink()
    visit = here.visit()
    assert (visit.state, visit.waits_for) == ("waiting", ["s00"])
    assert "are missing from the folder" in visit.words[0]
    finish(here)
    here.check()


def test_another_form_of_the_same_message_changes_nothing(folder, clock):
    """What is not signed, such as who wrote a file, can be changed by anyone."""
    here = folder(4, least=3)
    here.counted("s03")
    clock.at = LATE
    here.visit()
    for path in here.names("shares") + here.names("masked"):
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.dumps(json.loads(content[8 : 8 + size])).encode()
        other = len(header).to_bytes(8, "little") + header + content[8 + size :]
        _, step, sender, *_ = path.name.split(".")
        (here.box / name_of(here.round.round_id, step, sender, other)).write_bytes(other)
    here.visit()
    assert len(here.names("ask-survivors")) == 3
    finish(here, "s03")
    here.check()


# --- who lies -----------------------------------------------------------------------------------


def test_the_result_of_another_round_does_not_end_this_one(folder):
    other, here = folder(3), folder(3)
    finish(other)
    (result,) = other.names("result")
    here.posts().add("result", "lead", result.read_bytes())
    assert here.visit().state == "waiting"
    assert here.site("s00").posted == ["keys"]


def test_two_coordinators_with_one_key(folder, clock, tmp_path):
    here = folder(4, least=3)
    here.sites()
    here.sites("s00")
    clock.at = LATE
    here.visit()
    shutil.move(here.journal, tmp_path / "one.json")
    asked = here.names("ask-survivors")
    kept = [path.read_bytes() for path in asked]
    for path in asked:
        path.unlink()
    clock.at = T0
    here.site("s00")
    clock.at = LATE
    here.visit()  # asks by a list of four
    for path, content in zip(asked, kept, strict=True):
        path.write_bytes(content)
    for journal in (here.journal, tmp_path / "one.json", tmp_path / "none.json"):
        with pytest.raises(RoundError, match="two coordinators are using one key"):
            here.visit(journal=journal)
    for _ in range(2):
        words = " ".join(word for one in here.sites().values() for word in one.words)
    assert "lead signed two different lists" in words
    assert not here.names("result")


def test_a_request_for_another_site_is_refused_and_hinders_nothing(folder):
    here = folder(3, least=2)
    here.counted()
    here.visit()
    (own,) = here.names("ask-unmask", "s00")
    (others,) = here.names("ask-unmask", "s01")
    content = others.read_bytes()
    (here.box / name_of(here.round.round_id, "ask-unmask", "s00", content)).write_bytes(content)
    own.rename(here.box / "later")
    visit = here.site("s00")
    assert "Refused the request of lead in step 'unmask' (request)" in visit.words[0]
    assert "Ask s00 for the reason, in the site's log." in here.visit().words
    (here.box / "later").rename(own)
    assert here.site("s00").posted == ["unmask"]
    assert not [word for word in here.site("s00").words if "different" in word]
    finish(here)
    here.check()


def restored(here, name, tmp_path):
    """Have all sites answer; return the name's book from before."""
    site = here.consortium.sites[name]
    site.book.close()
    old = shutil.copy(site.book.path, tmp_path / "old.book")
    here.sites() if not here.round.terms.masked else here.counted()
    return old


def test_a_site_that_answers_twice_is_left_out(folder, clock, tmp_path):
    """As two computers do that see the folder late."""
    here = folder(4, least=3)
    site = here.consortium.sites["s01"]
    old, away = restored(here, "s01", tmp_path), tmp_path / "away"
    away.mkdir()
    for path in here.names(sender="s01"):
        path.rename(away / path.name)
    shutil.copy(old, site.book.path)
    here.site("s01")
    for path in away.iterdir():
        path.rename(here.box / path.name)
    progress = RoundState.of(here.posts())
    assert progress.states["s01"] == "twice"
    drop = [one for one in progress.tasks if one.deed == "drop-twice"]
    assert [(one.who, one.about) for one in drop] == [(["lead"], ("s01",))]
    visit = here.visit()
    assert visit.waits_for == ["s01"]
    assert "--drop s01" in " ".join(visit.words)
    assert "signed two different answers" in " ".join(here.posts_seen.odd.values())
    assert "does not know" in " ".join(here.site("s01").words)
    clock.at = LATE
    for _ in range(3):
        visit = here.visit()
        here.sites("s01")
    assert here.result().sites == ["s00", "s02", "s03"]
    assert visit.state == "done"
    site.book = Book.open(site.book.path)


def test_a_row_that_does_not_open_ends_the_round_and_names_both(folder, monkeypatch):
    """Nobody alone: the dealer or the reader may be wrong, or the coordinator between them."""
    here, seal, dealt = folder(5, least=3), masks.seal_row, []

    def spoiled(key, row):
        dealt.append(row)
        return seal(bytes(32) if len(dealt) == 6 else key, row)  # s01's row for s00

    monkeypatch.setattr(masks, "seal_row", spoiled)
    here.counted()
    for _ in range(3):
        visit = here.visit()
        here.sites()
    assert visit.state == "failed"
    assert visit.found_out == {}
    (pair,) = [words for words in visit.words if "says that the shares of" in words]
    assert "open the round again without them" in pair
    assert not here.names("result")
    # Those who gave a share gave it of seeds alone; the site that complains gave none.
    complained = [p for p in here.names("unmask") if b"complaints" in p.read_bytes()]
    assert len(complained) == 1


def test_many_files_of_one_name_are_all_looked_at_and_set_aside(folder):
    here = folder(3)
    posts = here.posts()
    claims = json.dumps({"kind": "message", "digest": "", "signature": ""})
    text = json.dumps({"__metadata__": {"hushtable": claims}}).encode()
    for one in (*(bytes([i]) for i in range(38)), bytes(8), len(text).to_bytes(8, "little") + text):
        posts.add("masked", "s00", one)
    here.visit()
    posts = here.posts()
    assert list(posts.of("masked", "s00")) == []
    assert sum("the signature of 's00'" in why for why in posts.odd.values()) == 40


def test_two_visits_at_once(folder):
    here = folder(3)
    with files.locked(here.journal), pytest.raises(FileError, match="another process"):
        here.visit()


def test_three_visits_where_all_are_there(folder):
    """The last one that comes finds the keys of all others, and needs two."""
    here = folder(4, least=3)
    assert finish(here) == {"s00": 3, "s01": 3, "s02": 3, "s03": 2}
    assert here.check().sites == list(here.consortium.sites)
    for name, visit in here.sites().items():
        assert visit.state == "done", visit.words
        assert here.output(name).read_bytes() == here.output("lead").read_bytes()
        book = here.consortium.sites[name].book
        assert book.verified(here.result().seal.digest)
        assert book.total("all rows") == pytest.approx(1.0, rel=1e-3)  # charged once
    assert here.visit().state == "done"
    assert len(here.names("masked")) == len(here.names("shares")) == 4


@pytest.mark.parametrize("gone", ["s03", None])
def test_the_journal_is_lost_at_any_time(folder, clock, gone):
    here = folder(4, least=3)
    away = [gone] if gone else []
    here.counted(*away)
    clock.at = LATE
    for _ in range(4):
        here.journal.unlink(missing_ok=True)
        state = here.visit().state
        here.sites(*away)
    assert state == "done"
    here.check()
    assert len(here.names("ask-survivors")) == (3 if gone else 0)


def test_a_coordinator_that_is_a_site(consortium, clock):
    one = consortium(4)
    one.lead = one.sites["s00"].keys
    for site in one.sites.values():
        site.book.trust([one.lead.card], "coordinator")
    here = Folder(one, one.open(keys=one.lead, least=3))
    policy = dataclasses.replace(UNATTENDED, coordinator_may_be_site=True)
    for _ in range(3):
        for name in one.sites:
            here.site(name, policy=policy)
        state = here.visit().state
    assert state == "done"
    assert here.check().sites == list(one.sites)
    assert here.site("s00", policy=policy).state == "done"
