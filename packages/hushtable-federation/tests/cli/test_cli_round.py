"""``hushtable round``: what the tutorial does not show, and what is refused."""

import re

import pytest

from cli_helpers import allow_no_masks, answer, do, hold, make_parties, post, say, trust, visit
from hushtable import load
from hushtable_federation.book.book import Book

TERMS = ("--epsilon", 1)
ALL = ("lead", "north", "south")


@pytest.fixture
def here(tmp_path, capsys):
    """Two sites and a coordinator, a plan, rows; nothing opened yet."""
    make_parties(tmp_path, "north", "south")
    capsys.readouterr()
    return tmp_path


def open_round(here, *options, plan="plan.hush", name="round.hush"):
    do("round", "open", here / plan, here / "north.card", here / "south.card",
       "--key", here / "lead.key", *TERMS, *options, "-o", here / name)  # fmt: skip
    return here / name


def test_json_of_every_command(here, run):
    keygen = run("round", "keygen", "east", "--cap", 1, "--folder", here, "--json").json
    assert set(keygen["files"]) == {"key", "card", "book", "policy", "site"}
    opened = run("round", "open", here / "plan.hush", here / "north.card", here / "south.card",
                 "--key", here / "lead.key", *TERMS, "-o", here / "r.hush",
                 "--json").json  # fmt: skip
    assert opened["sites"] == ["north", "south"]
    assert opened["terms"]["k_min"] == 1
    sent = run(*answer(here, "north", "r.hush", *trust(here, *ALL)), "--json").json
    (visited,) = sent["rounds"]
    assert visited["counted"]["epsilon_so_far"] == pytest.approx(1.0, rel=1e-4)
    assert visited["counted"]["tally"]["age"]["missing"] == 4
    assert [name.split(".")[1] for name in sent["new_files"]] == [
        "keys", "head", "shares", "masked",
    ]  # fmt: skip
    result = hold(here, "r.hush", "north", "south")
    model = run("round", "model", result, "--book", here / "south.book",
                "-o", here / "m.hush", "--json").json  # fmt: skip
    assert model["local"] is True
    page = here / "m.html"
    report = run("report", here / "m.hush", here / "north.csv", "-o", page, "--json").json
    assert report["sections"] == ["scores", "features", "privacy"]
    assert any("must not leave" in reason for reason in report["reasons_to_stay"])
    assert "a local model mixes exact counts with noisy ones" in page.read_text()
    book = run("round", "book", here / "south.book", "--json").json
    assert book["spent"] == {"all rows": pytest.approx(1.0, rel=1e-4)}
    assert [one["round_id"] for one in book["rounds"]] == [opened["round_id"]]
    masked = here / "r.box" / sent["new_files"][-1]
    for file, kind in (
        (here / "r.hush", "round"),
        (masked, "submission"),
        (here / "m.hush", "local"),
    ):
        assert run("inspect", file, "--json").json["kind"] == kind
        assert run("inspect", file).code == 0


def test_a_round_without_masks_goes_on_without_a_late_site(here, run):
    open_round(here, "--no-masks", "--least", 1)
    line = answer(here, "north", "round.hush", *trust(here, *ALL))
    refused = run(*line)
    assert "without masks, and the policy requires masks" in refused.err
    allow_no_masks(here, "north")
    do(*line)
    do("round", "amend", here / "round.box", "--key", here / "lead.key", "--drop", "south")
    assert "the result of 1 sites" in run(*visit(here, here / "round.box", "lead")).out
    (result,) = (here / "round.box").glob("*.result.*")
    assert load(result).ledger.pool is None
    (sent,) = (here / "round.box").glob("*.submission.*")
    facts = run("round", "verify", result, sent, "--book", here / "north.book", "--json").json
    assert facts["recomputed"]
    assert facts["own_answer"]


def test_a_refusal_of_rows_without_a_column_states_what_the_site_can_do(here, run):
    open_round(here)
    lines = (here / "north.csv").read_text().splitlines()
    (here / "north.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    command = answer(here, "north", "round.hush", *trust(here, *ALL))
    refused = run(*command)
    said = refused.err
    assert refused.code == 1
    assert "has no column ['ward']" in said
    assert "ask the coordinator for a plan without it" in said
    assert "(hushtable round open)" in said
    assert "add an empty column named 'ward' to a copy of the rows" in said
    assert f"hushtable round sync FOLDER COPY --site {here / 'north.toml'}" in said
    assert "all its values are then counted as missing" in said
    rows = here / "north.csv"
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([f"{lines[0]},ward", *(f"{line}," for line in lines[1:])]) + "\n")
    assert "No row has a value in ward" in run(*command).out


def test_few_rows_take_one_step(here, run):
    open_round(here, "--expected-rows", 100, plan="schema.toml")
    assert "hushtable" in run("round", "show", here / "round.hush").out


def test_the_round_after_marginals_follows_from_their_signed_result(here, run, refused):
    open_round(here, "--expected-rows", 20_000, plan="schema.toml", name="first.hush")
    result = hold(here, "first.hush", "north", "south")
    follow = ("round", "next", here / "first.hush")
    key, out = ("--key", here / "lead.key"), ("-o", here / "second.hush")
    second = run(*follow, result, *key, *out, "--json").json
    assert second["terms"]["epsilon"] == 1.0
    marginals = load(result)
    assert marginals.plan.detector == "marginals"
    assert marginals.seal.coordinator.name == "lead"
    refused(*follow, *key, *out, code=2, says="give its result, too")
    refused(*follow, here / "plan.hush", *key, *out, says="holds a plan")
    other = ("--expected-rows", 20_000, "--title", "another")
    open_round(here, *other, plan="schema.toml", name="other.hush")
    refused("round", "next", here / "other.hush", result, *key, *out, says="another round")


def test_the_history_and_the_head_of_a_book(here, run, refused):
    book = here / "north.book"
    head = run("round", "book", book, "--json").json["head"]
    open_round(here)
    do(*answer(here, "north", "round.hush", *trust(here, *ALL)))
    shown = run("round", "book", book, "--history", "--expect", head.upper())
    assert "the link of entry 1; " in shown.out
    for words in ("cap: epsilon 3", "lead as coordinator", "south as site", "about all rows",
                  "that its owner gave"):  # fmt: skip
        assert words in shown.out
    found = run("round", "book", book, "--expect", head, "--json").json
    assert found["expected"] == {"entry": 1, "entries_since": found["entries"] - 1}
    assert found["roles"] == {"site": ["north", "south"], "coordinator": ["lead"]}
    refused("round", "book", book, "--expect", "0" * 64, says="does not hold the head 000000")
    refused("round", "book", book, "--expect", "abc", code=2, says="64 hexadecimal digits")
    refused("round", "book", book, "--expect", head, "--cap", 3, code=2, says="leave out --cap")


def test_the_same_rows_under_another_name(here, run):
    open_round(here)
    do(*answer(here, "north", "round.hush", *trust(here, *ALL)))
    open_round(here, "--title", "again", name="again.hush")
    say(here, "north", data_set="2027")
    line = answer(here, "north", "again.hush")
    again = run(*line)
    assert again.code == 1
    assert "seem to be those of 'all rows'" in again.err
    assert not list((here / "again.box").glob("*.masked.*"))
    assert run(*line, "--new-people").code == 0
    assert "2027: about new people, similar to those of all rows" in run(
        "round", "book", here / "north.book", "--history"
    ).out  # fmt: skip


def test_a_question_that_is_answered_no(here, run, monkeypatch):
    open_round(here)
    line = [word for word in answer(here, "north") if word != "--yes"]
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _no)
    said = run(*line, *trust(here, *ALL))
    assert said.code == 130
    assert "nothing was written" in said.err
    assert "north will send these counts, and nothing else" in said.out
    assert not list((here / "round.box").glob("*.masked.*"))
    with Book.open(here / "north.book") as book:
        assert book.answers() == []


def _no(*_, abort, **__):
    import typer

    assert abort
    raise typer.Abort


def test_strangers_are_trusted_by_a_person_only(here, run, monkeypatch):
    """--yes sends without a question, and trusts no one; a person is asked for both."""
    open_round(here)
    line = visit(here, post(here, "round.hush"), "north", rows="north.csv")
    for words in ([], trust(here, "south")):
        refused = run(*line, *words)
        assert refused.code == 1
        assert "the coordinator 'lead' is not known here" in refused.err
    refused = run(*line, *trust(here, "lead"), "--json")
    assert refused.code == 0  # of two sites, one was trusted before, and the coordinator now
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text) or True)
    line = visit(here, post(here, "round.hush"), "south", rows="south.csv")
    said = run(*(word for word in line if word != "--yes"))
    assert said.code == 0
    assert "Not known here: lead, north" in said.out
    assert [text.strip() for text in asked] == [
        "Have all read the same?", "Send this?"
    ]  # fmt: skip


# --- refused ----------------------------------------------------------------------------------


def test_wrong_files_and_options(here, refused):
    opened = open_round(here)
    cards = (here / "north.card", here / "south.card")
    key, out = ("--key", here / "lead.key"), ("-o", here / "x.hush")
    refused("round", "open", here / "plan.hush", here / "north.key", here / "south.card", *key,
            *TERMS, *out, code=2, says="north.key is secret and must not be sent")  # fmt: skip
    refused("round", "open", here / "schema.toml", *cards, *key, *TERMS, *out, code=2,
            says="is a schema: give --expected-rows")  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, *key, *TERMS, "--expected-rows", 9, *out,
            code=2, says="goes with a schema")  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, "--key", here / "none.key", *TERMS, *out,
            says=["none.key: there is no file with keys here", "make new keys"])  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, *key, "--epsilon", 99, *out,
            says="at most 20")  # fmt: skip
    refused("round", "sync", here, *key, "--post", here / "plan.hush", says="holds a plan")
    line = answer(here, "north")
    refused(*(word for word in line if word != "--yes"), code=2, says="give --yes")
    say(here, "north", book="south.book")
    refused(*line, says="use the keys and the book that belong together")
    refused("round", "keygen", "north", "--folder", here, code=2, says="never overwritten")
    refused("round", "keygen", "a/b", "--folder", here, says="needs 1 to 64 letters")
    refused("round", "model", opened, *out, code=2, says="is already a model to score with")
    refused("round", "model", opened, "--book", here / "north.book", *out, says="holds a round")
    refused("round", "next", opened, here / "north.csv", *key, *out,
            says="round next continues marginals")  # fmt: skip
    refused("round", "book", here / "north.key", says="not a book of this version")
    refused("round", "book", here / "north.book", "--delta", 1e-5, code=2, says="give --cap, too")
    refused("merge", opened, here / "plan.hush", *out, says="holds a round")
    refused(
        "score",
        here / "north.csv",
        "--model",
        opened,
        "-o",
        here / "x.csv",
        says="holds a round: give a model",
    )


def test_a_book_of_a_site_without_part(here, run, refused):
    open_round(here)
    result = hold(here, "round.hush", "north", "south")
    do("round", "keygen", "east", "--cap", 1, "--folder", here)
    refused("round", "model", result, "--book", here / "east.book", "-o", here / "x.hush",
            says="'east' has no part in this result")  # fmt: skip


def test_further_rounds_are_listed_until_the_cap(here, run, refused):
    """Round after round, until the book refuses: as many as were listed, at these totals."""
    round_, book = open_round(here), here / "north.book"
    listed = run("round", "show", round_, "--key", here / "north.key", "--json").json["further"]
    shown = run("round", "show", round_, "--key", here / "north.key").out
    assert "further rounds like this   epsilon of all rounds" in shown
    assert re.search(r"\n0 +1\n1 +1\.4", shown)
    assert listed == sorted(set(listed))
    assert len(listed) == 7
    do(*answer(here, "north", "round.hush", *trust(here, *ALL)))
    assert run("round", "book", book, "--json").json["spent"]["all rows"] == listed[0]
    again = run("round", "show", round_, "--key", here / "north.key", "--json").json["further"]
    assert again[:6] == pytest.approx(listed[:6])
    do("round", "book", book, "--cap", listed[2] + 0.001)
    capped = run("round", "show", round_, "--key", here / "north.key", "--json").json["further"]
    assert capped == pytest.approx(listed[:3])


def test_what_was_dropped_states_what_to_do_instead(here, refused):
    book = here / "north.book"
    for option in (["--forecast"], ["--data-set", "x"], ["--plot", "x.png"]):
        refused("round", "book", book, *option, code=2, says="was removed: hushtable round show")
    refused("round", "rehearse", "--sites", 5, code=2, says="was removed: run hushtable demo")
    refused("round", "policy", here / "north.policy.toml", code=2, says="round show --policy")
    refused("round", "meet", here, code=2, says="was removed: send cards to the coordinator")
    refused("round", "open", here / "plan.hush", here / "lead.verified", "--key", here / "lead.key",
            *TERMS, "-o", here / "x.hush", code=2, says="give the card (.card)")  # fmt: skip
    refused("round", "show", code=2, says="give the file of a round, or a policy alone")


def test_a_card_s_fingerprint_can_be_printed_again(here, run):
    made = run("round", "keygen", "again", "--folder", here, "--json").json
    found = run("inspect", here / "again.card", "--json").json
    assert (found["kind"], found["name"]) == ("card", "again")
    assert found["fingerprint"] == made["fingerprint"]
    assert made["fingerprint"] in run("inspect", here / "again.card").out
    (here / "bad.card").write_text("{}")
    done = run("inspect", here / "bad.card")
    assert (done.code, done.out) == (1, "")
    assert "holds no card" in done.err
