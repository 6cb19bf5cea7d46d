"""``hushtable round`` about periods: opened, answered, collected, opened again."""

import pytest

from cli_helpers import SCHEMA, allow_no_masks, do, trust, write_rows
from hushtable import Increment, decoded, load

TERMS = ("--epsilon", 1, "--expected-rows", 4000)
ALL = ("lead", "north", "south")


@pytest.fixture
def here(tmp_path, capsys):
    """Two sites, a coordinator, and a plan for three periods."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    for seed, name in enumerate(("north", "south")):
        do("round", "keygen", name, "--cap", 1, "--persons", "1", "--folder", tmp_path)
        for period in (1, 2):
            write_rows(tmp_path / f"{name}.{period}.csv", 200, 10 * period + seed)
    do("round", "keygen", "lead", "--folder", tmp_path)
    capsys.readouterr()
    return tmp_path


def open_stream(here, *options, name="1.hush"):
    do("round", "open", here / "schema.toml", here / "north.card", here / "south.card",
       "--key", here / "lead.key", *TERMS, "--times", 3, "--every", "month",
       "--starts", "2027-03-01", *options, "-o", here / name)  # fmt: skip
    return here / name


def submit(here, name, round_, rows, *options):
    out = here / f"{name}.sent.{round_.name}"
    do("round", "submit", round_, here / rows, "--key", here / f"{name}.key", "--yes",
       *trust(here, *ALL), *options, "-o", out)  # fmt: skip
    return out


def check_rows(total, rows):
    noise = total.noise_sd * total.n_cells**0.5 / total.n_tables
    assert abs(total.n_rows - rows) < 6 * noise


def test_a_stream_from_a_schema_to_a_model(here, run):
    opened = run("round", "open", here / "schema.toml", here / "north.card", here / "south.card",
                 "--key", here / "lead.key", *TERMS, "--times", 3, "--every", "month",
                 "--starts", "2027-03-01", "-o", here / "1.hush", "--json").json  # fmt: skip
    assert (opened["period"], opened["periods"], opened["called"]) == (1, 3, "March 2027")
    results = []
    for period in (1, 2):
        round_ = here / f"{period}.hush"
        if period == 2:
            said = run("round", "next", here / "1.hush", "--key", here / "lead.key", "-o", round_)
            assert (
                "Period 2 of 3 (April 2027); until May 2027, a total of 1 for one row." in said.out
            )
        sent = [submit(here, name, round_, f"{name}.{period}.csv") for name in ALL[1:]]
        status = run("round", "status", round_, *sent)
        assert f"Period       {period} of 3" in status.out
        results.append(here / f"result{period}.hush")
        said = run("round", "collect", round_, *sent, "--key", here / "lead.key",
                   "-o", results[-1])  # fmt: skip
        assert "hushtable decode" in said.out
        said = run("round", "verify", results[-1], *sent, "--book", here / "north.book")
        assert f"about period {period}, which lead opened" in " ".join(said.out.split())
    increments = [load(path) for path in results]
    assert all(isinstance(one, Increment) for one in increments)
    check_rows(decoded(increments), 800)
    book = run("round", "book", here / "north.book", "--history")
    assert "periods 1 to 2" in book.out
    facts = run("round", "book", here / "north.book", "--json").json
    assert facts["spent"]["all rows"] <= 1.0
    assert [one["period"] for one in facts["rounds"]] == [1, 2]
    shown = run("round", "show", here / "2.hush", "--key", here / "north.key")
    assert "Nothing more: all periods were paid for with the answer to period 1" in " ".join(
        shown.out.split()
    )
    sent = run("round", "resend", here / "2.hush", "--key", here / "north.key",
               "-o", here / "again.hush")  # fmt: skip
    assert "about period 2" in sent.out
    assert (here / "again.hush").read_bytes() == (here / "north.sent.2.hush").read_bytes()


def test_a_period_again_and_a_site_that_joins(here, run, refused):
    first = open_stream(here)
    submit(here, "north", first, "north.1.csv")
    run("round", "next", first, "--key", here / "lead.key", "--again", "-o", here / "1b.hush")
    said = run("round", "submit", here / "1b.hush", here / "north.2.csv", "--key",
               here / "north.key", "--yes", "-o", here / "n.hush")  # fmt: skip
    assert "Period 1 was answered before: this is the same answer" in said.out
    do("round", "keygen", "east", "--cap", 1, "--persons", "1", "--folder", here)
    joined = run("round", "next", here / "1b.hush", "--key", here / "lead.key",
                 "--site", here / "east.card", "-o", here / "2.hush", "--json").json  # fmt: skip
    assert joined["sites"] == ["east", "north", "south"]
    assert joined["period"] == 2
    refused("round", "next", first, "--key", here / "lead.key", "--again", "--site",
            here / "east.card", "-o", here / "x.hush",
            says="of the same sites", code=2)  # fmt: skip


def test_a_file_without_rows(here, run):
    header, *_ = (here / "north.1.csv").read_text().splitlines()
    (here / "none.csv").write_text(header + "\n")
    first = open_stream(here)
    sent = [submit(here, "north", first, "none.csv"), submit(here, "south", first, "south.1.csv")]
    run("round", "collect", first, *sent, "-o", here / "r.hush")
    check_rows(decoded([load(here / "r.hush")]), 200)


def test_wrong_options(here, refused):
    first = open_stream(here)
    sent = [submit(here, name, first, f"{name}.1.csv") for name in ALL[1:]]
    key = ("--key", here / "lead.key")
    cards = (here / "north.card", here / "south.card")
    refused("round", "next", first, *sent, *key, "-o", here / "x.hush",
            says="the next one needs no submissions", code=2)  # fmt: skip
    do("plan", "draw", here / "schema.toml", "--tables", 5, "-o", here / "plain.hush")
    plain = ("round", "open", here / "plain.hush", *cards, *key, "--epsilon", 1)
    refused(*plain, "--times", 3, "-o", here / "x.hush", says="has no horizon", code=2)
    refused(*plain, "--every", "month", "-o", here / "x.hush", says="no horizon", code=2)
    schema = ("round", "open", here / "schema.toml", *cards, *key)
    refused(*schema, *TERMS, "--times", 3, "--every", "month", "--starts", "May",
            "-o", here / "x.hush", says="needs a day as 2027-03-01", code=2)  # fmt: skip
    refused(
        *schema, "--epsilon", 1, "--times", 3, "-o", here / "x.hush", says="in all periods", code=2
    )
    refused(*schema, *TERMS, "--times", 3, "--starts", "2027-03-01", "-o", here / "x.hush",
            says="goes with every", code=2)  # fmt: skip
    do("plan", "marginals", here / "schema.toml", "-o", here / "m.plan.hush")
    do("round", "open", here / "m.plan.hush", *cards, *key, "--epsilon", 1, "-o", here / "m.hush")
    refused("round", "next", here / "m.hush", *key, "--again", "-o", here / "x.hush",
            says="--again and --site are for periods", code=2)  # fmt: skip
    result = here / "result.hush"
    do("round", "collect", first, *sent, "-o", result)
    refused("round", "model", result, "--book", here / "north.book", "-o", here / "x.hush",
            says="hushtable decode", code=2)  # fmt: skip
    assert not (here / "x.hush").exists()


def test_without_masks_a_partial_result_says_what_it_is_worth(here, run):
    first = open_stream(here, "--no-masks", "--least", 1)
    allow_no_masks(here, "north")
    sent = submit(here, "north", first, "north.1.csv")
    said = run("round", "collect", first, sent, "-o", here / "r.hush")
    assert "If a site that is missing answered periods before" in said.out
