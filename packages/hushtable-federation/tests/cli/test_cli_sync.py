"""``hushtable round sync`` and ``amend``: a month by command, and folders in the wild."""

import contextlib
import shutil
import signal
from datetime import datetime, timedelta

import pytest

from cli_helpers import do, make_parties, trust
from hushtable.counts.sketch import Sketch
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import rounds
from hushtable_federation.keys import Keys

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


def test_a_folder_that_is_not_there(here, run):
    done = run("round", "sync", here / "nowhere", "--key", here / "lead.key")
    assert done.code == 1
    assert "create or mount the folder" in done.err


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


@pytest.mark.parametrize("name", ["lead", "north"])
def test_a_folder_for_results_that_cannot_be_one(here, run, name):
    """It is noticed before anything is sent or spent, not when the result is there."""
    before = sorted(path.name for path in (here / "box").iterdir())
    done = run(*sync(here, name), "-o", here / "plan.hush")
    assert done.code == 1
    assert "plan.hush: this cannot be the folder for the result" in done.err
    assert sorted(path.name for path in (here / "box").iterdir()) == before


def test_no_round_in_the_folder(here, run):
    (here / "empty").mkdir()
    done = run("round", "sync", here / "empty", "--key", here / "lead.key")
    assert done.code == 2
    assert "holds no round for 'lead'" in done.err
    assert rounds(Store.open(here / "empty")) == []


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
