"""``hushtable round sync`` where no one looks: states and exit codes, by command."""

import json
import re
import shutil
from datetime import timedelta

import pytest

from cli_helpers import do, make_parties, say, trust
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import rounds
from hushtable_federation.keys import Keys
from hushtable_federation.round import Round

SITES = "north", "south", "west"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three sites that answer by themselves, a coordinator, and a folder with one round."""
    here = tmp_path_factory.mktemp("unattended")
    make_parties(here, *SITES)
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead.key", "--epsilon", 1, "--least", 2, "--title", "May", "-o",
       here / "May.hush")  # fmt: skip
    plan = Round.from_bytes((here / "May.hush").read_bytes(), "May").plan.plan_id
    (here / "box").mkdir()
    for name in ("lead", *SITES):
        entries = {"folder": "box"}
        if name != "lead":
            entries |= {"rows": f"{name}.csv", "results": name}
            (here / name).mkdir()
            policy = here / f"{name}.policy.toml"
            text = policy.read_text()
            text = re.sub(r"(?m)^plans = .*", f'plans = ["{plan}"]', text)
            policy.write_text(text.replace("answer = false", "answer = true"))
        say(here, name, **entries)
    do("round", "sync", "--site", here / "lead.toml", "--post", here / "May.hush")
    for name in SITES:  # a person there has compared the fingerprints
        with Book.open(here / f"{name}.book") as book:
            cards = [Keys.load(here / f"{other}.key").card for other in (*SITES, "lead")]
            book.trust([one for one in cards if one.name != "lead"], "site", "card")
            book.trust([one for one in cards if one.name == "lead"], "coordinator", "card")
    return here


@pytest.fixture
def here(made, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    return folder


@pytest.fixture
def visit(run, here):
    """Have a party visit; return its state, which a scheduler reads, and its exit code."""

    def visit(name, *options):
        done = run("round", "sync", "--site", here / f"{name}.toml", "--unattended", "--json",
                   *options)  # fmt: skip
        visit.last = done.json
        if "rounds" not in done.json:
            return "failed", done.code
        assert done.json["exit_code"] == done.code
        assert done.json["state"] == done.json["rounds"][0]["state"]
        return done.json["state"], done.code

    return visit


def words(visit):
    return " ".join(visit.last["rounds"][0]["words"])


def asked(here):
    (found,) = rounds(Store.open(here / "box"))
    return found


@pytest.fixture
def at(monkeypatch):
    """Set the clock of all parties."""

    def at(moment):
        monkeypatch.setattr(clock, "read", lambda: moment)

    return at


# --- each state -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ["n/k,7,north", "7,inf,nobody", "7,7,north,8"])
def test_nothing_that_others_read_distinguishes_neighbours(visit, made, here, row, tmp_path):
    """States, exit codes, names and sizes in the folder: with a row, without.

    Another visit sends the counts, masked with the sites that have answered.
    """

    def seen(folder):
        told = [visit(name) for name in (*SITES, "north")]
        box = (folder / "box").rglob("*.hush")
        sizes = sorted((one.name.split(".")[1:3], one.stat().st_size) for one in box)
        return told, sizes

    before = seen(here)
    assert ["masked", "north"] in [name for name, _ in before[1]]
    shutil.rmtree(here)
    shutil.copytree(made, here)
    with open(here / "north.csv", "a") as rows:
        rows.write(f"{row}\n")
    assert seen(here) == before


def test_a_column_that_is_missing_throughout_is_a_note_in_the_site_s_own_log(visit, here):
    lines = (here / "north.csv").read_text().splitlines()
    empty = [line.rpartition(",")[0] + "," for line in lines[1:]]
    (here / "north.csv").write_text("\n".join([lines[0], *empty]) + "\n")
    assert visit("north") == ("waiting", 0)
    notes = [json.loads(line) for line in (here / "north.log").read_text().splitlines()]
    assert [(one["word"], one["why"]) for one in notes] == [
        ("empty", "no row has a value in ward")
    ]  # fmt: skip


def test_a_person_has_to_act(visit, here, at):
    say(here, "north", data_set="all rows")
    text = (here / "north.toml").read_text()
    (here / "north.toml").write_text(text.replace('rows = "north.csv"', "", 1))
    assert visit("north") == ("act", 3)
    (here / "north.toml").write_text(text)
    policy = here / "south.policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = ", "epsilon = 0.01 #", 1))
    assert visit("south") == ("refused", 1)
    assert visit("lead") == ("act", 3)
    assert "south: refused: its policy does not allow it" in words(visit)


def test_between_the_deadline_and_the_allowance_for_clocks(visit, here, at, run):
    """Too few are in, and too late for more: the coordinator can extend the round."""
    for name in ("west", "south", "north"):  # the last one sends its counts at once
        visit(name)
    at(asked(here).deadline + timedelta(minutes=5))
    assert visit("lead") == ("act", 3)
    assert "extend this one (hushtable round amend --days 3)" in words(visit)
    assert visit("north") == ("waiting", 0)
    done = run("round", "sync", "--site", here / "north.toml", "--unattended")
    goes_on = clock.shown_time(clock.goes_on(asked(here).deadline))
    assert done.out.splitlines()[-1].startswith("State: waiting; exit code 0; deadline ")
    assert done.out.splitlines()[-1].endswith(f"continues at {goes_on}.")
    assert visit("south") == ("over", 1)


def test_rows_that_cannot_be_read_are_in_the_site_s_own_log_alone(visit, here):
    secret = "SECRETWARD"
    rows = here / "north.csv"
    rows.write_text(rows.read_text().replace("age,income,ward", f"age,{secret},ward", 1))
    assert visit("north") == ("failed", 1)
    assert not any(secret.encode() in one.read_bytes() for one in (here / "box").rglob("*.hush"))
    own = here / "north.log"
    assert "income" in own.read_text()
    assert own.stat().st_mode & 0o077 == 0


# --- clocks, folders, disks, permissions ---------------------------------------------------------


def test_keys_that_others_may_read(visit, here):
    for name in ("north", "lead"):
        (here / f"{name}.key").chmod(0o644)
        assert visit(name) == ("failed", 1)
        (here / f"{name}.key").chmod(0o600)
        assert visit(name) == ("waiting", 0)


# --- the folder of the file ----------------------------------------------------------------------


def test_no_folder_anywhere(here, run):
    text = (here / "north.toml").read_text()
    (here / "north.toml").write_text(text.replace('folder = "box"', "", 1))
    for command in ("sync", "status"):
        done = run("round", command, "--site", here / "north.toml")
        assert done.code == 2
        assert "no folder of rounds was given" in done.err
        assert "north.toml" in done.err
    assert run("round", "status").code == 2


def test_the_front_page(run):
    first, more = run("round", "--help").out.split("More:")
    listed = [line.split()[0] for line in first.split("Commands:")[1].strip().splitlines()]
    assert listed == ["keygen", "open", "sync", "status", "show", "book"]
    assert "amend" in more


def test_trust_is_still_asked_for(here, run):
    """An attended visit needs a person, or the cards."""
    done = run("round", "sync", "--site", here / "north.toml", "--yes", *trust(here, *SITES))
    assert done.code == 0, done.err


def finish(visit, *names):
    for _ in range(6):
        states = [visit(name)[0] for name in (*names, "lead")]
        if set(states) == {"done"}:
            return
    raise AssertionError(states)


def test_dropped_before_and_after_it_answered(visit, here):
    visit("west")
    do("round", "amend", "--key", here / "lead.key", "--drop", "west", "--why", "ill")
    assert visit("west") == ("left-out", 3)
    finish(visit, "north", "south")
    assert visit("west") == ("left-out", 3)
    assert visit("west") == ("left-out", 0)
