"""``hushtable round secret`` and ``round next`` with hidden hash functions, by the commands."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cli_helpers import SCHEMA, do, hold, say, visit, write_rows
from hushtable import files, load
from hushtable_federation.book.book import Book
from hushtable_federation.hidden import seal_secret
from hushtable_federation.keys import Card, Keys
from hushtable_federation.result import open_result

SITES = ("north", "south", "west")
ALL = ("lead", *SITES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Three sites that ran a campaign up to the signed marginals, and a sealed secret."""
    here = tmp_path_factory.mktemp("campaign")
    (here / "schema.toml").write_text(SCHEMA)
    for seed, name in enumerate(SITES):
        do("round", "keygen", name, "--cap", 3, "--persons", "1", "--folder", here)
        write_rows(here / f"{name}.csv", 200, seed)
    do("round", "keygen", "lead", "--folder", here)
    do(*secret(here), "-o", here / "shared.hush")
    do("plan", "marginals", here / "schema.toml", "--epsilon", 1, "--expected-rows", 20_000,
       "-o", here / "m.plan.hush")  # fmt: skip
    do("plan", "hide", here / "m.plan.hush", "-o", here / "m.layout.hush")
    do("round", "open", here / "m.layout.hush", *(here / f"{name}.card" for name in SITES),
       "--key", here / "lead.key", "--epsilon", 1, "-o", here / "first.hush")  # fmt: skip
    collect(here, "first.hush", "m.plan.hush", "m.hush")
    return here


@pytest.fixture
def here(made, tmp_path, capsys):
    """A copy of it, for each test to go on with."""
    capsys.readouterr()
    return shutil.copytree(made, tmp_path / "here")


def secret(here, *others):
    cards = [word for name in others or SITES[1:] for word in ("--site", here / f"{name}.card")]
    return ("round", "secret", "--key", here / "north.key", *cards)


def collect(here, round_, plan, output):
    """Play a round; return what the sites sent."""
    for name in SITES:
        say(here, name, plan=plan)
    hold(here, round_, *SITES).rename(here / output)
    return sorted((here / f"{Path(round_).stem}.box").glob("*.masked.*"))


def drawn(here, name, *options, key=None):
    """The command by which a site draws the tables."""
    return ("round", "next", here / "first.hush", here / "m.hush", "--secret", here / "shared.hush",
            "--plan", here / "m.plan.hush", "--key", here / f"{key or name}.key", *options,
            "-o", here / f"{name}.plan.hush")  # fmt: skip


def opened(here, layout="layout.hush", *options):
    """The command by which the coordinator opens the round about them."""
    return ("round", "next", here / "first.hush", here / "m.hush", "--layout", here / layout,
            "--key", here / "lead.key", *options, "-o", here / "second.hush")  # fmt: skip


def test_a_hidden_campaign_by_commands(here, run):
    ids = set()
    for name in SITES:
        layout = here / f"{name}.layout.hush"
        facts = run(*drawn(here, name, "--layout", layout), "--json").json
        assert facts["hidden"]
        assert [one["name"] for one in facts["secret"]["readers"]] == list(SITES)
        assert all(one["known"] for one in facts["secret"]["readers"])
        ids.add((facts["plan_id"], (here / f"{name}.plan.hush").read_bytes(), layout.read_bytes()))
        assert (here / f"{name}.plan.hush").stat().st_mode & 0o777 == 0o600
    assert len(ids) == 1
    second = run(*opened(here, "south.layout.hush"), "--json").json
    assert second["plan_id"] == facts["plan_id"]
    assert second["terms"]["epsilon"] == 1.0
    sent = collect(here, "second.hush", "west.plan.hush", "result.hush")
    for name in SITES:
        checked = run("round", "verify", here / "result.hush", *sent, "--book",
                      here / f"{name}.book", "--json").json  # fmt: skip
        assert checked["own_answer"]
        assert not checked["recomputed"]  # masks come off in steps alone
        with Book.open(here / f"{name}.book") as book:
            assert book.total("all rows") == pytest.approx(1.0, rel=1e-3)
    plan = ("--plan", here / "north.plan.hush")
    do("round", "model", here / "result.hush", *plan, "-o", here / "model.hush")
    do("round", "model", here / "result.hush", *plan, "--book", here / "north.book",
       "-o", here / "local.hush")  # fmt: skip
    assert load(here / "local.hush").noise_sd < load(here / "model.hush").noise_sd
    assert [one.what for one in load(here / "model.hush").ledger.behind_plan] == ["marginals"]
    do("score", here / "north.csv", "--model", here / "local.hush", "-o", here / "scores.csv")


def test_what_the_commands_say_to_do_next(here, run):
    collected = run(*visit(here, here / "first.box", "lead")).out
    assert "--secret FILE --key SITE.key" in collected
    alone = run(*drawn(here, "north")).out
    assert f"hushtable plan hide {here / 'north.plan.hush'}" in alone
    drew = run(*drawn(here, "north", "--layout", here / "layout.hush")).out
    assert f"--layout {here / 'layout.hush'}" in drew
    assert "The secret was sealed by north. These can read it:" in drew
    assert "--plan PLAN" in run(*opened(here)).out
    shown = run("inspect", here / "shared.hush").out
    assert "Sealed by        north" in shown
    fingerprint = Card.load(here / "west.card").fingerprint
    assert f"west ({fingerprint})" in shown


def test_the_sealed_secret_draws_plans(here, run, refused):
    draw = ("plan", "draw", here / "schema.toml", "--tables", 5, "--secret", here / "shared.hush")
    for name in SITES:
        do(*draw, "--key", here / f"{name}.key", "-o", here / f"{name}.hush")
    assert (here / "north.hush").read_bytes() == (here / "west.hush").read_bytes()
    refused(*draw, "-o", here / "x.hush", code=2, says="give your keys (--key)")
    refused(*draw, "--key", here / "lead.key", "--seed", 1, "-o", here / "x.hush", code=2,
            says="exclude each other")  # fmt: skip
    refused(*draw[:5], "--key", here / "north.key", "-o", here / "x.hush", code=2,
            says="--key and --trust open --secret")  # fmt: skip
    refused(*draw, "--key", here / "lead.key", "-o", here / "x.hush",
            says="a coordinator gets none")  # fmt: skip
    assert not (here / "x.hush").exists()


def test_a_secret_before_any_round_needs_trust(here, run, refused):
    """The book knows no one yet: a person vouches for the sender's card."""
    do("round", "keygen", "east", "--cap", 1, "--folder", here)
    do(*secret(here, "east"), "-o", here / "new.hush")
    draw = ("plan", "draw", here / "schema.toml", "--tables", 5, "--secret", here / "new.hush",
            "--key", here / "east.key", "-o", here / "east.hush")  # fmt: skip
    refused(*draw, says=["'north' is not known here", "--trust"])
    facts = run(*draw, "--trust", here / "north.card", "--json").json
    assert [one["known"] for one in facts["secret"]["readers"]] == [True, True]
    do(*secret(here, "east", "west"), "-o", here / "newer.hush")
    draw = [here / "newer.hush" if word == here / "new.hush" else word for word in draw]
    strange = run(*draw)
    assert strange.code == 0
    west = next(line for line in strange.out.splitlines() if line.startswith("  west"))
    assert "not known here: check who this is" in west


def test_the_coordinator_gets_no_secret(here, refused):
    refused(*secret(here, "south", "lead"), "-o", here / "x.hush", code=2,
            says="known here as a coordinator")  # fmt: skip
    lead = Keys.load(here / "lead.key")
    made = seal_secret(b"s" * 32, lead, [Card.load(here / f"{name}.card") for name in SITES])
    (here / "lead.hush").write_bytes(made)
    draw = ("plan", "draw", here / "schema.toml", "--secret", here / "lead.hush", "--key",
            here / "north.key", "-o", here / "x.hush")  # fmt: skip
    refused(*draw, says=["was sealed by 'lead'", "would not be hidden"])
    refused(*draw, "--trust", here / "lead.card", code=2, says="known here as a coordinator")
    refused(*drawn(here, "x", key="lead"), says="is not a site of this round")


def test_secrets_that_are_not_made(here, refused):
    assert files.read(here / "shared.hush").kind == "secret"
    refused(*secret(here), "-o", here / "shared.hush", code=2, says="never overwritten")
    refused("round", "secret", "--key", here / "north.key", "-o", here / "x.hush", code=2,
            says="give their cards (--site)")  # fmt: skip
    refused("round", "secret", "--site", here / "south.card", "-o", here / "x.hush", code=2,
            says="go with --key")  # fmt: skip
    other = Keys.generate("south").card
    other.save(here / "other.card")
    refused("round", "secret", "--key", here / "north.key", "--site", here / "other.card",
            "-o", here / "x.hush", code=2,
            says=["this site knows it as", other.fingerprint])  # fmt: skip
    refused("round", "secret", "--key", here / "lead.key", "--site", here / "south.card",
            "-o", here / "x.hush", code=2, says="give the keys of a site")  # fmt: skip
    assert not (here / "x.hush").exists()


def test_what_cannot_follow_marginals_that_are_hidden(here, refused):
    north, first = ("--key", here / "north.key"), ("round", "next", here / "first.hush")
    lead, x = ("--key", here / "lead.key"), ("-o", here / "x.hush")
    sent = sorted((here / "first.box").glob("*.masked.*"))
    refused(*first, here / "m.hush", *lead, *x, code=2, says="first.hush hides its plan")
    shared = ("--secret", here / "shared.hush")
    refused(*first, here / "m.hush", *shared, *north, *x, code=2, says="(--plan)")
    given = (*shared, "--plan", here / "m.plan.hush", *north, *x)
    refused(*first, *given, code=2, says="give its result")
    refused(*first, sent[0], *given, says="holds a submission")
    refused(*first, here / "m.hush", *given, "--seed", 1, code=2, says="leave out")
    refused(*first, here / "m.hush", *given, "--layout", here / "x.hush", code=2, says="same file")
    replace(open_result(here / "m.hush"), seal=None).save(here / "unsigned.hush")
    refused(*first, here / "unsigned.hush", *given, says="is not signed")
    do("plan", "draw", here / "schema.toml", "--epsilon", 1, "--expected-rows", 20_000,
       *shared, *north, "-o", here / "fresh.plan.hush")  # fmt: skip
    do("plan", "hide", here / "fresh.plan.hush", "-o", here / "fresh.hush")
    refused(*opened(here, "fresh.hush"), says="was not drawn from this result")
    refused(*opened(here, "fresh.plan.hush"), says="give a layout of hushtable plan hide")
    refused(*opened(here, "fresh.hush", "--book", here / "north.book"), code=2, says="go with --s")
    assert not (here / "x.hush").exists()


def test_open_marginals_may_be_followed_by_hidden_tables(here, run):
    """The marginals have no hash functions: a coordinator that knows the schema may open them."""
    do("round", "open", here / "schema.toml", *(here / f"{name}.card" for name in SITES),
       "--expected-rows", 20_000, "--key", here / "lead.key", "--epsilon", 1,
       "-o", here / "open.hush")  # fmt: skip
    follow = ("round", "next", here / "open.hush", hold(here, "open.hush", *SITES, known=True))
    do(*follow, "--secret", here / "shared.hush", "--key", here / "south.key",
       "--layout", here / "layout.hush", "-o", here / "south.plan.hush")  # fmt: skip
    do(*follow, "--layout", here / "layout.hush", "--key", here / "lead.key",
       "-o", here / "second.hush")  # fmt: skip
    shown = run("round", "show", here / "second.hush", "--plan", here / "south.plan.hush",
                "--key", here / "south.key").out  # fmt: skip
    assert "hash functions hidden from the coordinator" in shown
