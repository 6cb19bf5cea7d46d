"""A site whose rows are a query's or a view's: who states what they depend on, and who sees it."""

import json
import re
import shutil
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from cli_helpers import do, make_parties, say
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from hushtable_federation.round import Round

SITES = "north", "south"
QUERY = "SELECT * FROM patients"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two sites that answer by themselves, and a round; the rows of north are in a database."""
    here = tmp_path_factory.mktemp("query")
    make_parties(here, *SITES)
    do("round", "open", here / "plan.hush", *(here / f"{site}.card" for site in SITES), "--key",
       here / "lead.key", "--epsilon", 1, "--least", 2, "-o", here / "round.hush")  # fmt: skip
    plan = Round.from_bytes((here / "round.hush").read_bytes(), "round").plan.plan_id
    (here / "box").mkdir()
    policy = here / "north.policy.toml"
    text = re.sub(r"(?m)^plans = .*", f'plans = ["{plan}"]', policy.read_text())
    policy.write_text(text.replace("answer = false", "answer = true"))
    do("round", "sync", here / "box", "--key", here / "lead.key", "--post", here / "round.hush")
    with Book.open(here / "north.book") as book:
        for role, name in (("site", "south"), ("site", "north"), ("coordinator", "lead")):
            book.trust([Keys.load(here / f"{name}.key").card], role, "card")
    with closing(sqlite3.connect(here / "rows.db")) as base:
        pd.read_csv(here / "north.csv").to_sql("patients", base, index=False)
        base.execute(f"CREATE VIEW seen AS {QUERY}")
    (here / "rows.sql").write_text(f"{QUERY};\n")
    return here


@pytest.fixture
def here(made, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    return folder


def of_query(here):
    return {"rows": f"sqlite:///{here}/rows.db", "query": "rows.sql"}


def of_view(here):
    return {"rows": "rows.db", "member": "seen"}


def affirm(here):
    policy = here / "north.policy.toml"
    policy.write_text(policy.read_text().replace("independent = false", "independent = true"))


@pytest.mark.parametrize("rows", [of_query, of_view])
@pytest.mark.parametrize("where", ["nowhere", "file", "policy"])
def test_an_unattended_site_states_it_in_its_file_or_its_policy(run, here, rows, where):
    stated = {"independent": True} if where == "file" else {}
    site = say(here, "north", **rows(here), **stated)
    if where == "policy":
        affirm(here)
    done = run("round", "sync", here / "box", "--site", site, "--unattended", "--json")
    if where == "nowhere":
        assert (done.json["state"], done.code) == ("refused", 1)
        log = json.loads((here / "north.log").read_text().splitlines()[-1])
        assert log["word"] == "policy"
        assert "--read independent=true" in log["why"]
    else:
        assert (done.json["state"], done.code) == ("waiting", 0)
        assert done.json["rounds"][0]["posted"] == ["keys"]


def test_a_person_is_refused_before_anything_is_sent(run, here):
    site = say(here, "north", **of_query(here))
    before = sorted((here / "box").rglob("*"))
    done = run("round", "sync", here / "box", "--site", site, "--yes")
    assert done.code == 1
    assert "depends on the records of one person only" in " ".join(done.err.split())
    assert sorted((here / "box").rglob("*")) == before
    assert run("round", "sync", here / "box", "--site", say(here, "north", independent=True),
               "--yes").code == 0  # fmt: skip


def test_a_table_needs_no_statement(run, here):
    site = say(here, "north", rows="rows.db", member="patients")
    assert run("round", "sync", here / "box", "--site", site, "--unattended").code == 0


def test_the_officer_sees_the_query_and_the_statement(run, here):
    show = ["round", "show", here / "round.hush", "--key", here / "north.key"]
    assert "query" not in run(*show).out
    say(here, "north", **of_query(here))
    found = run(*show, "--json").json["policy"]
    assert not found["allows"]
    assert found["words"][0] == f"The rows are the result of this query: {QUERY};"
    assert "nothing states" in found["words"][1]
    affirm(here)
    assert run("round", "show", "--policy", here / "north.policy.toml", "--json").json[
        "independent"
    ]
    shown = " ".join(run(*show).out.split())
    assert f"{QUERY}; This site states that each of them depends on the records of one" in shown
    assert run(*show, "--json").json["policy"]["allows"]
    (here / "rows.sql").unlink()
    assert "rows.sql: the query cannot be read" in run(*show).err


def test_the_statement_is_not_for_files(run, here):
    site = say(here, "north", rows="north.csv", independent=True)
    done = run("round", "sync", here / "box", "--site", site, "--yes")
    assert done.code == 2
    assert "cannot use --read independent=" in done.err
