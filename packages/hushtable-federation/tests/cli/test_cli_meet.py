"""``hushtable round meet``: from keys to a round in which no one is asked about fingerprints."""

import shutil

import pytest

from cli_helpers import SCHEMA, answer, do, write_rows
from hushtable_federation.book.book import Book

ALL = ("lead", "north", "south")


@pytest.fixture
def here(tmp_path, capsys):
    """Two sites and a coordinator, with a folder that they share."""
    (tmp_path / "shared").mkdir()
    for name in ("north", "south"):
        do("round", "keygen", name, "--cap", 3, "--persons", "1", "--folder", tmp_path)
    do("round", "keygen", "lead", "--folder", tmp_path)
    (tmp_path / "names.txt").write_text("lead\n\n north \nsouth\n")
    capsys.readouterr()
    return tmp_path


@pytest.fixture
def meet(run, here):
    """Call at one party, for machines."""

    def meet(name, *options):
        return run("round", "meet", here / "shared", "--key", here / f"{name}.key", *options,
                   "--json").json  # fmt: skip

    return meet


@pytest.fixture
def code(meet, here):
    """Lead all to the code."""
    for name in ALL:
        meet(name, "--coordinator", "lead", "--expect", here / "names.txt")
    meet("lead")
    (code,) = {meet(name)["code"] for name in (*ALL[1:], "lead")}
    return code


def test_json_of_each_step(meet, here):
    first = meet("north", "--coordinator", "lead", "--expect", "lead,north, south")
    assert (first["step"], first["waiting"]) == ("hello", ["lead", "south"])
    assert first["code"] is None
    for name in ("lead", "south"):
        second = meet(name, "--coordinator", "lead", "--expect", here / "names.txt")
    assert (second["step"], second["waiting"]) == ("reveal", ["lead", "north"])
    assert set(second["cards"]) == set(ALL)
    meet("lead")
    third = meet("north", "--code", "")
    assert third["kind"] == "RoundError"
    third = meet("north")
    assert (third["step"], third["waiting"], third["confirmed"]) == ("code", [], [])
    code = third["code"]
    spaced = f"{code[:3]} {code[3:6]} {code[6:]}"
    done = meet("north", "--code", spaced)
    assert (done["step"], done["confirmed"]) == ("confirmed", ["lead", "south"])
    assert done["verified"] is None
    assert meet("north") == done


def test_what_people_read(run, here, code):
    call = ("round", "meet", here / "shared", "--key", here / "north.key")
    said = run(*call).out
    assert f"The code: {code[:3]} {code[3:6]} {code[6:]}" in said
    assert "No card is trusted yet." in said
    assert "--code CODE" in said
    said = run(*call, "--code", code, "--absent", "south").out
    assert "Not verified yet: south." in said
    said = run(*call, "--code", code).out
    assert f"Verified by the code {code[:3]} {code[3:6]} {code[6:]}: lead, south." in said
    shutil.copytree(here / "shared", here / "a folder")
    said = run("round", "meet", here / "a folder", "--key", here / "south.key").out
    assert f"hushtable round meet '{here}/a folder' --key" in said
    (here / "new").mkdir()
    said = run("round", "meet", here / "new", "--key", here / "north.key", "--again",
               "--expect", here / "names.txt", "--coordinator", "lead").out  # fmt: skip
    assert "Waiting for lead and south. Run this command again later." in said
    assert "1 of 3" in said


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked(run, here, code, monkeypatch, answer):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text) or answer)
    call = ("round", "meet", here / "shared", "--key", here / "north.key")
    said = run(*call).out
    assert len(asked) == 1
    assert "same code" in asked[0]
    assert said.count("The code:") == 1
    with Book.open(here / "north.book") as book:
        assert set(book.known()) == ({"lead", "south"} if answer else set())
    assert ("Verified by the code" in said) == answer
    run(*call)
    assert len(asked) == (1 if answer else 2)


def test_a_round_of_those_who_met(run, here, meet, code):
    """No fingerprint and no card is asked for any more."""
    for name in ALL:
        meet(name, "--code", code)
    (here / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", here / "schema.toml", "--tables", 3, "--seed", 1, "-o", here / "p.hush")
    call = ("round", "open", here / "p.hush", here / "lead.verified", "--key", here / "lead.key")
    opened = run(*call, "--epsilon", 1, "-o", here / "r.hush", "--json").json
    assert opened["sites"] == ["north", "south"]
    write_rows(here / "north.csv", 100)
    sent = run(*answer(here, "north", "r.hush"))
    assert sent.code == 0, sent.err
    history = run("round", "book", here / "north.book", "--history").out
    assert "by the code read in a call" in history
    facts = run("round", "book", here / "north.book", "--json").json
    assert set(facts["verified"]["coordinator"]["lead"]) == {"code"}
    assert set(facts["verified"]["site"]) == {"south"}


def test_waiting_until_all_are_there(run, here, meet, monkeypatch):
    for name in ("lead", "south", "north"):
        meet(name, "--coordinator", "lead", "--expect", here / "names.txt")
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        meet(("lead", "south")[len(pauses) - 1])

    monkeypatch.setattr("time.sleep", pause)
    assert len(meet("north", "--wait", 5)["code"]) == 9
    assert len(pauses) == 2


def test_what_is_refused(here, refused, code):
    north = ("round", "meet", here / "shared", "--key", here / "north.key")
    refused(*north, "--code", "1" * 9, says="Trust none of them")
    refused(*north, "--code", code, "--absent", "east", code=2, says="'east'")
    refused(*north, "--absent", "south", code=2, says="--absent goes with --code")
    refused(*north, "--expect", "north,south", "--coordinator", "south", code=2, says="are fixed")
    refused(*north, "--expect", here / "north.book", code=2)
    refused("round", "meet", here / "nowhere", *north[3:], says="No such file or directory")


def test_a_site_without_its_book_posts_nothing(here, refused):
    (here / "north.book").rename(here / "kept")
    call = ("round", "meet", here / "shared", "--key", here / "north.key")
    refused(*call, "--expect", here / "names.txt", "--coordinator", "lead", says="a book")
    assert list((here / "shared").iterdir()) == []
    refused(*call, code=2, says="give --expect")
