"""The consortium's tutorial is true, in four folders that stand for four computers."""

import contextlib
import csv
import sys
from unittest import mock

import pytest

from docs_pages import THREE, do, no_terminal, the_call
from docs_reader import ROOT, Reader
from hushtable import load
from hushtable_federation.book.book import Book


def further_visits():
    """Make the visits of the second round that are the same as in the first."""
    server = "../server/second"
    with contextlib.chdir(".."):
        for name in THREE[1:]:
            visit(name, f"{server} patients.csv --site {name}.toml")
        for _ in range(2):
            for name in THREE:
                visit(name, f"{server} --site {name}.toml")
            visit("lead", f"{server} --key lead.key")


def visit(name, arguments):
    with contextlib.chdir(name):
        do(f"round sync {arguments} --yes")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Follow the tutorial."""
    here = tmp_path_factory.mktemp("tutorial")
    for name in (*THREE, "lead", "server"):
        (here / name).mkdir()
    first = "hushtable round sync ../server/first"
    calls = {f"{first} patients.csv --site {name}.toml": the_call for name in THREE}
    calls |= {f"{first} --site {name}.toml": no_terminal for name in THREE}
    before = calls | {"hushtable round sync ../server/second --site north.toml": further_visits}
    with mock.patch.object(sys, "stdin"):  # the call sets it
        return Reader(ROOT / "docs/tutorials/several-hospitals.md", here, before).follow()


def test_the_five_who_are_not_well_are_found(reader):
    assert sum("patients.csv --site" in line for line in reader.did) == 4
    for name in ("scores.csv", "local-scores.csv"):
        with (reader.here / "north" / name).open() as file:
            rows = sorted(csv.DictReader(file), key=lambda row: float(row["score"]))
        assert {row["row"] for row in rows[:5]} == {"0", "1", "2", "3", "4"}, name


def test_the_result_is_private_and_the_books_know(reader):
    result = load(next((reader.here / "north").glob("*.result.hush")))
    assert 0.999 < result.ledger.epsilon <= 1.0
    assert result.n_rows == pytest.approx(9000, rel=0.05)
    assert result.ledger.pool.least == 3
    local = load(reader.here / "north" / "local.hush")
    assert local.noise_sd < result.noise_sd
    for name in ("north", "south", "west"):
        with Book.open(reader.here / name / f"{name}.book") as book:
            assert book.total("all rows") == pytest.approx(1.0, rel=1e-3)


def test_nothing_secret_was_sent(reader):
    sent = {path.name for path in (reader.here / "lead").iterdir()}
    assert not [name for name in sent if name.endswith((".book", ".csv", "local.hush"))]
    assert {name for name in sent if name.endswith(".key")} == {"lead.key"}
