"""``hushtable round``: what the tutorial does not show, and what is refused."""

import json

import pytest

from cli_helpers import SCHEMA, allow_no_masks, do, say, trust, write_rows
from hushtable import files, load
from hushtable_federation.book import chain
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys

TERMS = ("--epsilon", 1)
ALL = ("lead", "north", "south")


@pytest.fixture
def here(tmp_path, capsys):
    """Two sites and a coordinator, a plan, rows; nothing opened yet."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", tmp_path / "schema.toml", "--tables", 5, "--seed", 1,
       "-o", tmp_path / "plan.hush")  # fmt: skip
    for seed, name in enumerate(("north", "south")):
        do("round", "keygen", name, "--cap", 3, "--persons", "1", "--folder", tmp_path)
        write_rows(tmp_path / f"{name}.csv", 200, seed)
    do("round", "keygen", "lead", "--folder", tmp_path)
    capsys.readouterr()
    return tmp_path


def open_round(here, *options, plan="plan.hush", name="round.hush"):
    do("round", "open", here / plan, here / "north.card", here / "south.card",
       "--key", here / "lead.key", *TERMS, *options, "-o", here / name)  # fmt: skip
    return here / name


def submit(here, name, round_="round.hush", *options):
    out = here / f"{name}.{round_}"
    do("round", "submit", here / round_, here / f"{name}.csv", "--key", here / f"{name}.key",
       "--yes", *trust(here, *ALL), *options, "-o", out)  # fmt: skip
    return out


def test_json_of_every_command(here, run):
    keygen = run("round", "keygen", "east", "--cap", 1, "--folder", here, "--json").json
    assert set(keygen["files"]) == {"key", "card", "book", "policy", "site"}
    opened = run("round", "open", here / "plan.hush", here / "north.card", here / "south.card",
                 "--key", here / "lead.key", *TERMS, "-o", here / "r.hush",
                 "--json").json  # fmt: skip
    assert opened["sites"] == ["north", "south"]
    assert opened["terms"]["k_min"] == 1
    sent = []
    for name in ("north", "south"):
        sent.append(here / f"{name}.s.hush")
        facts = run("round", "submit", here / "r.hush", here / f"{name}.csv", "--key",
                    here / f"{name}.key", "--yes", *trust(here, *ALL),
                    "-o", sent[-1], "--json").json  # fmt: skip
        assert facts["again"] is False
        assert facts["epsilon_so_far"] == pytest.approx(1.0, rel=1e-4)
    status = run("round", "status", here / "r.hush", sent[0], "--json").json
    assert status["accepted"] == ["north"]
    assert status["missing"] == ["south"]
    collected = run("round", "collect", here / "r.hush", *sent, "-o", here / "c.hush", "--json")
    assert collected.json["accepted"] == ["north", "south"]
    model = run("round", "model", here / "c.hush", "--book", here / "south.book",
                "-o", here / "m.hush", "--json").json  # fmt: skip
    assert model["local"] is True
    book = run("round", "book", here / "south.book", "--json").json
    assert book["spent"] == {"all rows": pytest.approx(1.0, rel=1e-4)}
    assert [one["round_id"] for one in book["rounds"]] == [opened["round_id"]]
    for file, kind in (
        (here / "r.hush", "round"),
        (sent[0], "submission"),
        (here / "m.hush", "local"),
    ):
        assert run("inspect", file, "--json").json["kind"] == kind
        assert run("inspect", file).code == 0


def test_a_round_without_masks_goes_on_without_a_late_site(here, run):
    open_round(here, "--no-masks", "--least", 1)
    refused = run("round", "submit", here / "round.hush", here / "north.csv", "--key",
                  here / "north.key", "--yes", "-o", here / "x.hush")  # fmt: skip
    assert "without masks, and the policy wants masks" in refused.err
    allow_no_masks(here, "north")
    sent = submit(here, "north")
    facts = run("round", "collect", here / "round.hush", sent, "-o", here / "c.hush")
    assert facts.code == 0
    assert "A partial result, of 1 sites." in facts.out
    assert load(here / "c.hush").ledger.pool is None


def test_hidden_hash_functions(here, run):
    do("round", "secret", "-o", here / "shared.secret")
    assert (here / "shared.secret").stat().st_mode & 0o777 == 0o600
    drawn = (
        "plan",
        "draw",
        here / "schema.toml",
        "--tables",
        5,
        "--secret",
        here / "shared.secret",
    )
    for name in ("north", "south"):
        do(*drawn, "-o", here / f"{name}.plan.hush")
    assert (here / "north.plan.hush").read_bytes() == (here / "south.plan.hush").read_bytes()
    do("plan", "hide", here / "north.plan.hush", "-o", here / "layout.hush")
    open_round(here, plan="layout.hush")
    assert "hash functions hidden" in run("round", "status", here / "round.hush").out
    hidden = run("round", "submit", here / "round.hush", here / "north.csv", "--key",
                 here / "north.key", "--yes", "-o", here / "x.hush")  # fmt: skip
    assert hidden.code == 2
    assert "name the plan that the sites share" in hidden.err
    plan = ("--plan", here / "north.plan.hush")
    for name in ("north", "south"):
        say(here, name, plan=f"{name}.plan.hush")
    sent = [submit(here, name, "round.hush") for name in ("north", "south")]
    do("round", "collect", here / "round.hush", *sent, "-o", here / "sealed.hush")
    assert files.read(here / "sealed.hush").kind == "sealed"
    assert run("inspect", here / "sealed.hush").code == 0
    assert run("inspect", here / "layout.hush").code == 0
    do("round", "model", here / "sealed.hush", *plan, "-o", here / "model.hush")
    do("score", here / "north.csv", "--model", here / "model.hush", "-o", here / "s.csv")
    do("round", "model", here / "sealed.hush", *plan, "--book", here / "north.book",
       "-o", here / "local.hush")  # fmt: skip
    assert load(here / "local.hush").noise_sd < load(here / "model.hush").noise_sd


def test_few_rows_take_one_step(here, run):
    open_round(here, "--expected-rows", 100, plan="schema.toml")
    assert run("round", "status", here / "round.hush", "--json").json["plan_id"]
    assert "hushtable" in run("round", "status", here / "round.hush").out


def test_the_marginals_are_kept_if_wanted(here, run):
    open_round(here, "--expected-rows", 20_000, plan="schema.toml", name="first.hush")
    sent = [submit(here, name, "first.hush") for name in ("north", "south")]
    second = run("round", "next", here / "first.hush", *sent, "--key", here / "lead.key",
                 "--result", here / "marginals.hush", "-o", here / "second.hush")  # fmt: skip
    assert second.code == 0, second.err
    marginals = load(here / "marginals.hush")
    assert marginals.plan.detector == "marginals"
    assert marginals.seal.coordinator["name"] == "lead"


def test_a_result_is_signed_if_the_coordinator_gives_its_keys(here, run):
    open_round(here)
    sent = [submit(here, name) for name in ("north", "south")]
    collect = ("round", "collect", here / "round.hush", *sent, "-o", here / "c.hush")
    plain = run(*collect)
    assert "The result is not signed: anybody may have made or changed it." in plain.out
    assert run(*collect, "--json").json["signed_by"] is None
    signed = run(*collect, "--key", here / "lead.key")
    assert "The result is signed by lead (" in signed.out
    facts = run(*collect, "--key", here / "lead.key", "--json").json
    assert facts["signed_by"]["name"] == "lead"
    assert facts["digest"] == files.read(here / "c.hush").digest
    verified = run("round", "verify", here / "c.hush", "--round", here / "round.hush", "--book",
                   here / "south.book", "--json").json  # fmt: skip
    assert verified["digest"] == facts["digest"]
    assert verified["own_answer"]


def test_the_same_round_again(here, run):
    open_round(here)
    out = submit(here, "north")
    first = out.read_bytes()
    again = run("round", "submit", here / "round.hush", here / "north.csv", "--key",
                here / "north.key", "--yes", "-o", out)  # fmt: skip
    assert "the same answer, noise and all" in again.out
    assert out.read_bytes() == first


def test_an_answer_that_is_sent_again_without_rows(here, run, refused):
    opened = open_round(here)
    key, out = ("--key", here / "north.key"), here / "again.hush"
    refused("round", "resend", opened, *key, "-o", out,
            says=["'north' never answered round", "hushtable round submit"])  # fmt: skip
    first = submit(here, "north").read_bytes()
    (here / "north.csv").unlink()
    again = run("round", "resend", opened, *key, "-o", out, "--json")
    assert again.json["site"] == "north"
    assert out.read_bytes() == first
    assert "nothing more was spent" in run("round", "resend", opened, *key, "-o", out).out
    refused("round", "resend", opened, "--key", here / "south.key", "--book", here / "north.book",
            "-o", out, says="keys and book belong together")  # fmt: skip


def test_the_history_and_the_head_of_a_book(here, run, refused):
    book = here / "north.book"
    head = run("round", "book", book, "--json").json["head"]
    open_round(here)
    submit(here, "north")
    shown = run("round", "book", book, "--history", "--expect", head.upper())
    assert "that of entry 1; " in shown.out
    for words in ("cap: epsilon 3", "lead as coordinator", "south as site", "about all rows"):
        assert words in shown.out
    found = run("round", "book", book, "--expect", head, "--json").json
    assert found["expected"] == {"entry": 1, "entries_since": found["entries"] - 1}
    assert found["roles"] == {"site": ["north", "south"], "coordinator": ["lead"]}
    refused("round", "book", book, "--expect", "0" * 64, says="does not hold the head 000000")
    refused("round", "book", book, "--expect", "abc", code=2, says="64 hexadecimal digits")
    refused("round", "book", book, "--expect", head, "--cap", 3, code=2, says="leave out --cap")


def test_the_same_rows_under_another_name(here, run):
    open_round(here)
    submit(here, "north")
    second = open_round(here, "--title", "again", name="again.hush")
    line = ("round", "submit", second, here / "north.csv", "--site",
            say(here, "north", data_set="2027"), "--yes", "-o", here / "x.hush")  # fmt: skip
    again = run(*line)
    assert again.code == 1
    assert "seem to be those of 'all rows'" in again.err
    assert not (here / "x.hush").exists()
    assert run(*line, "--new-people").code == 0
    assert "2027: said to be of new people, though like those of all rows" in run(
        "round", "book", here / "north.book", "--history"
    ).out  # fmt: skip


def test_a_cap_that_is_raised(here, run):
    open_round(here, "--rows-per-person", 1)
    assert run("round", "book", here / "north.book", "--cap", 0.5).code == 0
    low = run("round", "submit", here / "round.hush", here / "north.csv", "--key",
              here / "north.key", "--yes", "-o", here / "x.hush")  # fmt: skip
    assert low.code == 1
    assert "cap of 'north' is 0.5" in low.err
    do("round", "book", here / "north.book", "--cap", 1.5, "--delta", 1e-6)
    submit(here, "north")


def test_a_question_that_is_answered_no(here, run, monkeypatch):
    open_round(here)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _no)
    answer = run("round", "submit", here / "round.hush", here / "north.csv", "--key",
                 here / "north.key", *trust(here, *ALL), "-o", here / "x.hush")  # fmt: skip
    assert answer.code == 130
    assert "nothing was written" in answer.err
    assert "What will leave north" in answer.out
    assert not (here / "x.hush").exists()
    with Book.open(here / "north.book") as book:
        assert book.answers() == []


def _no(*_, abort, **__):
    import typer

    assert abort
    raise typer.Abort


def test_strangers_are_trusted_by_a_person_only(here, run, monkeypatch):
    """--yes sends without a question, and trusts nobody; a person is asked for both."""
    open_round(here)
    line = ("round", "submit", here / "round.hush", here / "north.csv", "--key",
            here / "north.key", "-o", here / "x.hush")  # fmt: skip
    for words in (["--yes"], ["--yes", *trust(here, "south")]):
        refused = run(*line, *words)
        assert refused.code == 1
        assert "the coordinator 'lead' is not known here" in refused.err
    refused = run(*line, "--yes", *trust(here, "lead"), "--json")
    assert refused.code == 0  # of two sites, one was trusted before, and the coordinator now
    (here / "x.hush").unlink()
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text) or True)
    mine = [str(word).replace("north", "south") for word in line]
    answer = run(*mine)
    assert answer.code == 0
    assert "Not known here: lead, north" in answer.out
    assert [text.strip() for text in asked] == [
        "Are all of these fingerprints right?", "Send this?"
    ]  # fmt: skip


# --- refused ----------------------------------------------------------------------------------


def test_wrong_files_and_options(here, refused):
    opened = open_round(here)
    cards = (here / "north.card", here / "south.card")
    key, out = ("--key", here / "lead.key"), ("-o", here / "x.hush")
    refused("round", "open", here / "plan.hush", here / "north.key", here / "south.card", *key,
            *TERMS, *out, code=2, says="north.key is secret and must not travel")  # fmt: skip
    refused("round", "open", here / "schema.toml", *cards, *key, *TERMS, *out, code=2,
            says="is a schema: give --expected-rows")  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, *key, *TERMS, "--expected-rows", 9, *out,
            code=2, says="goes with a schema")  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, "--key", here / "none.key", *TERMS, *out,
            says=["none.key: there is no file with keys here", "make new keys"])  # fmt: skip
    refused("round", "open", here / "plan.hush", *cards, *key, "--epsilon", 99, *out,
            says="at most 20")  # fmt: skip
    refused("round", "submit", here / "plan.hush", here / "north.csv", "--key",
            here / "north.key", "--yes", *out, says="holds a plan")  # fmt: skip
    refused("round", "submit", opened, here / "north.csv", "--key", here / "north.key", *out,
            code=2, says="give --yes")  # fmt: skip
    refused("round", "submit", opened, here / "north.csv", "--key", here / "lead.key", "--yes",
            *out, says="lead.book: there is no file with a book here")  # fmt: skip
    refused("round", "submit", opened, here / "north.csv", "--site",
            say(here, "north", book="south.book"), "--yes", *out,
            says="keys and book belong together")  # fmt: skip
    refused("round", "keygen", "north", "--folder", here, code=2, says="never overwritten")
    refused("round", "keygen", "a/b", "--folder", here, says="needs 1 to 64 letters")
    refused("round", "collect", opened, here / "none.hush", *out, says="no such file")
    refused("round", "collect", opened, here / "north.csv", *out,
            says=["no result", "'north', 'south' are missing",
                  "north.csv: not a .hush file"])  # fmt: skip
    refused("round", "model", opened, *out, code=2, says="can be scored with as it is")
    refused("round", "model", opened, "--plan", here / "plan.hush", *out, says="holds a round")
    refused("round", "next", opened, here / "north.csv", *key, *out,
            says="round next goes on from marginals")  # fmt: skip
    refused("round", "secret", "-o", here / "north.key", code=2, says="never overwritten")
    refused("round", "book", here / "north.key", says="no book of this version")
    refused("round", "book", here / "north.book", "--delta", 1e-5, code=2, says="goes with --cap")
    refused("plan", "draw", here / "schema.toml", "--secret", here / "north.csv", *out,
            says="holds no secret")  # fmt: skip
    refused("plan", "draw", here / "schema.toml", "--secret", here / "north.csv", "--seed", 1, *out,
            code=2, says="exclude each other")  # fmt: skip
    refused("plan", "hide", opened, *out, says="holds a round")
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
    sent = [submit(here, name) for name in ("north", "south")]
    do("round", "collect", here / "round.hush", *sent, "-o", here / "c.hush")
    do("round", "keygen", "east", "--cap", 1, "--folder", here)
    refused("round", "model", here / "c.hush", "--book", here / "east.book", "-o", here / "x.hush",
            says="'east' has no part in this result")  # fmt: skip


def test_open_key_files(here, refused):
    opened = open_round(here)
    (here / "north.key").chmod(0o644)
    refused("round", "submit", opened, here / "north.csv", "--key", here / "north.key", "--yes",
            "-o", here / "x.hush",
            says=["others may read this file (mode 644)", "chmod 600"])  # fmt: skip


def test_cards_that_changed_and_are_trusted(here, run):
    open_round(here)
    submit(here, "north")
    for kind in ("key", "card", "book", "policy.toml"):
        (here / f"south.{kind}").unlink()
    do("round", "keygen", "south", "--cap", 1, "--persons", "1", "--folder", here)
    open_round(here, "--title", "again", name="again.hush")
    arguments = ["round", "submit", here / "again.hush", here / "north.csv", "--key",
                 here / "north.key", "--yes", "-o", here / "x.hush"]  # fmt: skip
    changed = run(*arguments)
    assert changed.code == 1
    assert "keys of 'south' in this round are not those that this site knows" in changed.err
    assert run(*arguments, "--trust", here / "south.card").code == 0


def test_what_is_refused_is_named_and_the_rest_goes_on(here, run):
    open_round(here, "--no-masks")
    allow_no_masks(here, "north", "south")
    sent = [submit(here, name) for name in ("north", "south")]
    broken = here / "broken.hush"
    broken.write_bytes(sent[0].read_bytes()[:500])
    done = run("round", "collect", here / "round.hush", *sent, sent[0], broken,
               "-o", here / "c.hush", "--json")  # fmt: skip
    assert done.code == 0
    assert [one["file"] for one in done.json["refused"]] == [str(broken)]
    assert done.json["repeated"] == [{"file": str(sent[0]), "site": "north"}]
    shown = run("round", "status", here / "round.hush", *sent, sent[0], broken).out
    assert "Refused:" in shown
    assert "repeats the submission of north" in shown
    assert json.loads(json.dumps(done.json)) == done.json


def test_a_keygen_leaves_alone_what_another_is_about_to_use(here, run, refused, monkeypatch):
    """Between book and keys, a call at the same time took the book for one that was left."""
    monkeypatch.setattr(chain, "_PATIENCE", 0.05)
    save = Keys.save

    def saved(keys, path):
        monkeypatch.setattr(Keys, "save", save)
        refused("round", "keygen", "east", "--cap", 1, "--folder", here, says="another process")
        save(keys, path)

    monkeypatch.setattr(Keys, "save", saved)
    do("round", "keygen", "east", "--cap", 1, "--folder", here)
    Book.open(here / "east.book", Keys.load(here / "east.key").card).close()


def test_a_forecast_in_words_for_machines_and_as_a_picture(here, run, refused):
    book, plan = here / "north.book", here / "laid.hush"
    do("plan", "draw", here / "schema.toml", "--epsilon", 1, "--expected-rows", 5000, "--seed", 1,
       "-o", plan)  # fmt: skip
    refused("round", "book", book, "--forecast", says="no round was answered about 'all rows'")
    before = run("round", "book", book, plan, "--forecast", "--json").json["forecast"]["rounds"]
    assert [one["kind"] for one in before] == ["round", "people", "rows"]
    round_ = open_round(here)
    ahead = run("round", "book", book, round_, "--forecast", "--json").json["forecast"]
    submit(here, "north")
    facts = run("round", "book", book, "--json").json
    assert facts["spent"]["all rows"] == ahead["rounds"][0]["epsilon"]
    assert "forecast" not in facts
    shown = run("round", "book", book, "--forecast", "--plot", here / "budget.png", "--history")
    assert "Forecast for all rows: epsilon 1 of 3 is spent." in shown.out
    assert "the round again, or next month    yes" in shown.out
    assert "no: the rounds before had other terms" in shown.out
    assert f"Wrote {here / 'budget.png'}" in shown.out
    assert (here / "budget.png").read_bytes().startswith(b"\x89PNG")
    after = run("round", "book", book, round_, "--forecast", "--json").json
    assert after["head"] == facts["head"]
    again = after["forecast"]["rounds"][0]
    assert again["kind"] == "again"
    assert again["of_cap"] == again["epsilon"] / 3
    assert (again["allowed"], again["why_not"], again["how_many"]) == (True, "", 6)
    other = run("round", "book", book, round_, "--forecast", "--data-set", "others", "--json").json
    assert other["forecast"]["rounds"][0]["epsilon"] == ahead["rounds"][0]["epsilon"]


def test_forecasts_that_are_refused(here, run, refused):
    book = here / "north.book"
    refused("round", "book", book, "--forecast", "--data-set", "x", says="answered about 'x'")
    refused("round", "book", book, here / "gone.hush", "--forecast", says="No such file")
    refused("round", "book", book, here / "plan.hush", "--forecast", code=2, says="for no budget")
    refused("round", "book", book, here / "north.csv", "--forecast", says="not a .hush file")
    do("plan", "hide", here / "plan.hush", "-o", here / "hidden.hush")
    refused("round", "book", book, here / "hidden.hush", "--forecast", says="hidden.hush")
    for options in ((here / "plan.hush",), ("--data-set", "x"), ("--plot", here / "x.png")):
        refused("round", "book", book, *options, code=2, says="go with --forecast")
    for name in ("x.txt", "x"):
        plot = ("--forecast", "--plot", here / name)
        refused("round", "book", book, *plot, code=2, says="ends in .pdf, .png, .svg")
    assert not (here / "x.txt").exists()


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
