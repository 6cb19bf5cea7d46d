"""``hushtable round`` about periods: opened, answered, added up, opened again."""

import pytest

from cli_helpers import SCHEMA, do, hold, visit, write_rows
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
        results.append(hold(here, round_.name, *ALL[1:], rows=f"{{}}.{period}.csv"))
        said = run(*visit(here, here / f"{period}.box", "lead"))
        assert "hushtable decode" in said.out
        status = run("round", "status", here / f"{period}.box")
        assert f"Period       {period} of 3" in status.out
        said = run("round", "verify", results[-1], "--book", here / "north.book")
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
    assert "No further cost: the answer to period 1 paid for all periods" in " ".join(
        shown.out.split()
    )


def test_a_file_without_rows(here, run):
    header, *_ = (here / "north.1.csv").read_text().splitlines()
    (here / "north.3.csv").write_text(header + "\n")
    (here / "south.3.csv").write_bytes((here / "south.1.csv").read_bytes())
    open_stream(here)
    result = hold(here, "1.hush", "north", "south", rows="{}.3.csv")
    check_rows(decoded([load(result)]), 200)


def test_wrong_options(here, refused):
    first = open_stream(here)
    result = hold(here, first.name, *ALL[1:], rows="{}.1.csv")
    key = ("--key", here / "lead.key")
    cards = (here / "north.card", here / "south.card")
    refused("round", "next", first, result, *key, "-o", here / "x.hush",
            says="leave out the result and --seed", code=2)  # fmt: skip
    do("plan", "draw", here / "schema.toml", "--tables", 5, "-o", here / "plain.hush")
    plain = ("round", "open", here / "plain.hush", *cards, *key, "--epsilon", 1)
    refused(*plain, "--times", 3, "-o", here / "x.hush", says="has no horizon", code=2)
    refused(*plain, "--every", "month", "-o", here / "x.hush", says="no horizon", code=2)
    schema = ("round", "open", here / "schema.toml", *cards, *key)
    refused(*schema, *TERMS, "--times", 3, "--every", "month", "--starts", "May",
            "-o", here / "x.hush", says="needs a day such as 2027-03-01", code=2)  # fmt: skip
    refused(
        *schema, "--epsilon", 1, "--times", 3, "-o", here / "x.hush", says="in all periods", code=2
    )
    refused(*schema, *TERMS, "--times", 3, "--starts", "2027-03-01", "-o", here / "x.hush",
            says="needs every", code=2)  # fmt: skip
    do("plan", "marginals", here / "schema.toml", "-o", here / "m.plan.hush")
    do("round", "open", here / "m.plan.hush", *cards, *key, "--epsilon", 1, "-o", here / "m.hush")
    refused("round", "next", here / "m.hush", *key, "--again", "-o", here / "x.hush",
            says="--again and --site, which are for periods", code=2)  # fmt: skip
    refused("round", "model", result, "--book", here / "north.book", "-o", here / "x.hush",
            says="hushtable decode", code=2)  # fmt: skip
    assert not (here / "x.hush").exists()
