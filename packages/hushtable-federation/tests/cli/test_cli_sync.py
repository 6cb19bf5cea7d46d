"""``hushtable round sync`` and ``amend``: a month by command, and folders in the wild."""

import contextlib
import errno
import os
import shutil
import signal
from datetime import datetime, timedelta

import pytest

from cli_helpers import do, make_parties, trust
from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.folder.round_folder import Amendment, rounds
from hushtable_federation.keys import Keys
from hushtable_federation.online.secure_sum import path_of
from hushtable_federation.protocol.messages import Message
from hushtable_federation.round import Round

SITES = "north", "south", "west"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three sites and a coordinator that know each other; a folder with one round."""
    here = tmp_path_factory.mktemp("made")
    make_parties(here, *SITES)
    open_round(here, "round.hush", "May")
    (here / "box").mkdir()
    shutil.copy(here / "round.hush", here / "May.hush")
    return here


@pytest.fixture
def here(made, tmp_path, capsys):
    """Return the same, in a folder of its own."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o600)
    do("round", "sync", folder / "box", "--key", folder / "lead.key", "--post",
       folder / "round.hush", "-o", folder)  # fmt: skip
    capsys.readouterr()
    return folder


def open_round(here, name, title, *options):
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead.key", "--epsilon", 1, "--least", 2, "--title", title, *options, "-o",
       here / name)  # fmt: skip


def sync(here, name, *options):
    """Return the arguments of a visit."""
    if name == "lead":
        return "round", "sync", here / "box", "--key", here / "lead.key", "-o", here, *options
    return (
        "round", "sync", here / "box", here / f"{name}.csv", "--key", here / f"{name}.key", "--yes",
        *trust(here, "lead", *SITES), "-o", here / name, *options,
    )  # fmt: skip


@pytest.fixture
def visit(run, here):
    """Have a party visit; return what it says of its only round."""

    def visit(name, *options):
        (here / name).mkdir(exist_ok=True)
        done = run(*sync(here, name, *options), "--json")
        assert "rounds" in done.json, done.err
        (found,) = done.json["rounds"]
        stuck = found["state"] in ("failed", "refused", "over")
        code = 1 if stuck else 3 if found["needs_person"] else 0
        assert done.code == code, done.out + done.err
        return found

    return visit


def asked(here):
    return Round.from_bytes((here / "round.hush").read_bytes(), "round")


def put(here, step, sender, content):
    path = here / "box" / name_of(asked(here).round_id, step, sender, content)
    path.write_bytes(content)
    return path


def finish(visit, *names):
    for _ in range(4):
        for name in names or SITES:
            visit(name)
        last = visit("lead")
        if last["state"] == "done":
            return last
    raise AssertionError(last)


def counted(visit, *names):
    """Have sites visit until their counts are there."""
    for _ in range(2):
        for name in names or SITES:
            found = visit(name)
    return found


def answers(here, name):
    with Book.open(here / f"{name}.book") as book:
        return book.answers()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "free some space there, then run the command again"),
        (errno.EROFS, "ask the administrator of the folder"),
        (errno.EACCES, "ask the administrator of the folder"),
    ],
)
def test_a_folder_that_cannot_be_written_to(visit, here, run, monkeypatch, number, says):
    write = files.write_bytes

    def fails(path, content, **options):
        if path.parent == here / "box":  # not where the coordinator keeps its journal
            raise OSError(number, os.strerror(number))
        return write(path, content, **options)

    counted(visit)
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_bytes", fails)
        done = run(*sync(here, "lead"))
    assert done.code == 1
    assert says in done.err
    assert "Traceback" not in done.err
    finish(visit)


def test_a_folder_that_is_not_there(here, run):
    done = run("round", "sync", here / "nowhere", "--key", here / "lead.key")
    assert done.code == 1
    assert "create or mount the folder" in done.err


def test_two_rounds_in_a_folder_and_one_of_them_is_stopped(here, run):
    open_round(here, "june.hush", "June")
    do(*sync(here, "lead", "--post", here / "june.hush"))
    lead, may = Keys.load(here / "lead.key"), asked(here)
    for drop in (("north",), ("south",)):
        put(here, "amend", "lead", Amendment(1, may.deadline, drop).message(may, lead))
    for _ in range(4):
        for name in SITES:
            (here / name).mkdir(exist_ok=True)
            run(*sync(here, name))
        done = run(*sync(here, "lead"), "--json")
        found = done.json["rounds"]
    assert done.code == 1
    states = {one["title"]: one["state"] for one in found}
    assert states == {"May": "failed", "June": "done"}
    (words,) = [one["words"] for one in found if one["title"] == "May"]
    assert "contradict each other" in words[0]


def test_a_round_of_somebody_else_hinders_no_other(here, run):
    """A stranger's round with our cards: refused, because no one knows its coordinator."""
    do("round", "keygen", "other", "--folder", here)
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "other.key", "--epsilon", 1, "--title", "other", "-o", here / "o.hush")  # fmt: skip
    do("round", "sync", here / "box", "--key", here / "other.key", "--post", here / "o.hush")
    for times in range(2):
        for name in SITES:
            (here / name).mkdir(exist_ok=True)
            found = run(*sync(here, name), "--json").json["rounds"]
            states = {one["title"]: one["state"] for one in found}
            assert states == {"May": "waiting", "other": "failed"}
            assert len(answers(here, name)) == (times or name == SITES[-1])


def test_messages_of_the_wrong_party_step_round_and_size(visit, here, run):
    for name in (*SITES[::-1], "south"):
        visit(name)
    (own,) = (here / "box").glob("*.masked.south.*")
    content = own.read_bytes()
    put(here, "masked", "west", content)  # of another party
    put(here, "shares", "west", content)  # of another step
    open_round(here, "june.hush", "June")
    other = Round.from_bytes((here / "june.hush").read_bytes(), "june")
    west = Keys.load(here / "west.key")
    put(here, "shares", "west", Message.make(other, "shares", west, {}).content)
    put(here, "shares", "west", Message.make(asked(here), "unmask", west, {}).content)
    waits = visit("lead")
    assert waits["waits_for"] == ["west"]
    assert len(waits["set_aside"]) == 4
    shown = run(*sync(here, "lead"))
    assert shown.code == 0
    assert shown.out.count("Ignored: ") == 4
    assert finish(visit)["state"] == "done"


def test_extended_and_dropped_by_command(visit, here, run, monkeypatch):
    for name in ("north", "south"):
        visit(name)
    later = datetime.now().astimezone() + timedelta(days=60)
    do("round", "amend", here / "box", "--key", here / "lead.key", "--drop", "west", "--why", "ill")
    assert visit("west")["state"] == "left-out"
    do("round", "amend", here / "box", "--key", here / "lead.key", "--days", 90)
    assert visit("lead")["posted"] == ["ask-shares"] * 2
    counted(visit, "north", "south")
    monkeypatch.setattr(clock, "read", lambda: later)
    done = finish(visit, "north", "south")
    assert done["amendments"] == 2
    assert "Without west" in done["words"][-1]
    ended = run("round", "amend", here / "box", "--key", here / "lead.key", "--days", 3)
    assert ended.code == 1
    assert "is over" in ended.err


# --- unattended: when it goes on, and who has to act ---------------------------------------------


def code_of(run, here, name, *options):
    """Return the exit code of a call, and what it says."""
    (here / name).mkdir(exist_ok=True)
    done = run(*sync(here, name, *options))
    assert done.code in (0, 3), done.err
    return done.code, " ".join(done.out.split())


def code_of_status(run, here, name=None):
    key = () if name is None else ("--key", here / f"{name}.key")
    done = run("round", "status", here / "box", *key)
    return done.code, " ".join(done.out.split())


def test_a_refusal_calls_a_person_at_the_site_and_at_the_coordinator(here, run):
    policy = here / "north.policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = ", "epsilon = 0.01 #", 1))
    (here / "north").mkdir()
    options = [one for one in sync(here, "north") if one != "--yes"]
    assert run(*options, "--unattended").code == 1
    assert code_of(run, here, "lead")[0] == 3
    for name, code in ((None, 3), ("lead", 3), ("north", 3), ("south", 3)):
        assert code_of_status(run, here, name)[0] == code, name
    for name in ("south", "west"):
        assert code_of(run, here, name)[0] == 0
        assert code_of_status(run, here, name)[0] == 0


def test_codes_of_several_rounds_are_the_most_urgent(here, run):
    """One that waits, one in which rows are asked for; and one that cannot go on."""
    (here / "north").mkdir()
    for name in ("june", "july"):
        open_round(here, f"{name}.hush", name)
        do(*sync(here, "lead", "--post", here / f"{name}.hush"))
    with_rows = sync(here, "north", "--which", asked(here).round_id)
    without = [one for one in sync(here, "north") if one != here / "north.csv"]
    assert run(*with_rows).code == 0
    assert run(*without).code == 3
    july = Round.from_bytes((here / "july.hush").read_bytes(), "july")
    lead = Keys.load(here / "lead.key")
    for drop in (("south",), ("west",)):  # two that contradict each other
        content = Amendment(1, july.deadline, drop).message(july, lead)
        (here / "box" / name_of(july.round_id, "amend", "lead", content)).write_bytes(content)
    assert run(*without).code == 1


def test_a_flood_does_not_fill_the_screen(here, run):
    for i in range(60):
        put(here, "masked", "west", b"%d" % i)
    done = run(*sync(here, "lead"))
    assert done.out.count("Ignored: ") == 6
    assert "Ignored: 55 more (--json lists them)." in done.out
    status = run("round", "status", here / "box")
    assert status.out.count("Ignored: ") == 6


def test_a_party_writes_into_its_subfolder(here, run, visit):
    for name in ("lead", *SITES[1:]):
        (here / "box" / name).mkdir()
    (here / "box" / "north").symlink_to(here / "north")
    finish(visit)
    lies = {name: {path.name.split(".")[1] for path in (here / "box" / name).glob("*.hush")}
            for name in ("lead", "south")}  # fmt: skip
    assert lies == {
        "lead": {"ask-unmask", "result"},
        "south": {"head", "keys", "masked", "shares", "unmask"},
    }
    assert list((here / "box").glob("*.masked.north.*"))
    assert not list((here / "north").glob("*.masked.*"))
    open_round(here, "june.hush", "June")
    do(*sync(here, "lead", "--post", here / "june.hush"))
    june = Round.from_bytes((here / "june.hush").read_bytes(), "june")
    do("round", "amend", here / "box", "--key", here / "lead.key", "--days", 3, "--which",
       june.round_id)  # fmt: skip
    assert list((here / "box" / "lead").glob("*.amend.lead.*"))


def test_of_two_amendments_at_a_time_one_is_refused(here, run):
    """Two of one number would stop the round."""
    journal = path_of(here / "lead.key", asked(here))
    with files.locked(journal):
        done = run("round", "amend", here / "box", "--key", here / "lead.key", "--days", 3)
    assert done.code == 1
    assert "another process is working" in done.err
    assert not list((here / "box").glob("*.amend.*"))


@pytest.mark.parametrize(
    ("lost", "change"), [(False, ("--drop", "west")), (True, ("--drop", "west")),
                         (False, ("--days", 3))],
)  # fmt: skip
def test_nothing_is_amended_once_it_is_decided(visit, here, run, lost, change):
    """Also where the decision is written down, and its requests are not in the folder yet."""
    counted(visit)
    visit("lead")
    for path in (here / "box").glob("*.ask-*") if lost else ():
        path.unlink()
    done = run("round", "amend", here / "box", "--key", here / "lead.key", *change)
    assert done.code == 1
    assert "already decided which sites are in the sum" in done.err
    assert finish(visit)["state"] == "done"


def test_ctrl_c_that_compiled_code_drops(here, run, monkeypatch):
    count = Sketch.from_data

    def counted(*args, **options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return count(*args, **options)

    monkeypatch.setattr(Sketch, "from_data", counted)
    # A shell starts background jobs with SIGINT ignored, and Python keeps to that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = run(*sync(here, "north"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.code == 130
    assert "nothing was written" in done.err
    assert answers(here, "north") == []
    assert not list((here / "box").glob("*.north.*"))


def test_new_keys_under_an_old_name(here, run, tmp_path):
    do("round", "keygen", "north", "--cap", 3, "--persons", "1", "--folder", tmp_path)
    for command in ("sync", "status"):
        done = run("round", command, here / "box", "--key", tmp_path / "north.key")
        assert done.code == 2
        assert "names 'north' with other keys" in done.err
        assert Keys.load(here / "north.key").card.fingerprint in done.err


def test_one_line_of_cards_serves_all_sites(here, run):
    """The site's own card among them, as in the README."""
    cards = trust(here, "lead", *SITES)
    for name in SITES:
        done = run("round", "sync", here / "box", here / f"{name}.csv", "--key",
                   here / f"{name}.key", "--yes", *cards)  # fmt: skip
        assert done.code == 0, done.err
        with Book.open(here / f"{name}.book") as book:
            assert set(SITES) <= set(book.known("site"))
            assert list(book.known("coordinator")) == ["lead"]


@pytest.mark.parametrize("name", ["lead", "north"])
def test_a_folder_for_results_that_cannot_be_one(here, run, name):
    """It is noticed before anything is sent or spent, not when the result is there."""
    before = sorted(path.name for path in (here / "box").iterdir())
    done = run(*sync(here, name), "-o", here / "plan.hush")
    assert done.code == 1
    assert "plan.hush: this cannot be the folder for the result" in done.err
    assert sorted(path.name for path in (here / "box").iterdir()) == before


def test_a_folder_for_results_that_is_not_there_yet(here, run):
    for name in SITES * 2:
        assert run(*sync(here, name)).code == 0
    for name in ("lead", *SITES, "lead"):
        done = run(*sync(here, name), "-o", here / "results" / "of May")
    assert done.code == 0
    assert len(list((here / "results" / "of May").glob("*.result.hush"))) == 1


def test_no_round_in_the_folder(here, run):
    (here / "empty").mkdir()
    done = run("round", "sync", here / "empty", "--key", here / "lead.key")
    assert done.code == 2
    assert "holds no round for 'lead'" in done.err
    assert rounds(Store.open(here / "empty")) == []
