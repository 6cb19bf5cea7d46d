"""The tutorial is true: its commands run, in four folders that stand for four computers."""

import csv
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from hushtable import load
from hushtable.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
WHO = ("north", "south", "west", "lead")


def blocks(page):
    """Yield (language, text) of the code on a page."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Follow the tutorial; return the folder of the four."""
    here = tmp_path_factory.mktemp("tutorial")
    for name in WHO:
        (here / name).mkdir()
    before = Path.cwd()
    said = []
    try:
        for language, text in blocks(PAGE.read_text()):
            os.chdir(here)
            if language == "python":
                exec(compile(text, str(PAGE), "exec"), {})
            elif language == "toml":
                where, _, content = text.partition("\n")
                Path(where.removeprefix("# ")).write_text(content)
            else:
                said += follow(here, text)
    finally:
        os.chdir(before)
    return here, said


def follow(here, text):
    """Run the commands of a block, each in the folder of whose computer it is."""
    for line in text.splitlines():
        if line.startswith("# "):
            os.chdir(here / line.removeprefix("# "))
            continue
        program, *arguments = shlex.split(line)
        if program == "cp":
            *sources, target = arguments
            for source in sources:
                shutil.copy(source, target)
        else:
            assert program == "hushtable", line
            assert main(arguments) == 0, line
        yield line


def test_the_five_who_are_not_well_are_found(folders):
    here, said = folders
    assert sum("round submit" in line for line in said) == 6
    for name in ("scores.csv", "local-scores.csv"):
        with (here / "north" / name).open() as file:
            rows = sorted(csv.DictReader(file), key=lambda row: float(row["score"]))
        assert {row["row"] for row in rows[:5]} == {"0", "1", "2", "3", "4"}, name


def test_the_result_is_private_and_the_books_know(folders):
    here, _ = folders
    result = load(here / "lead" / "result.hush")
    assert 0.999 < result.ledger.epsilon <= 1.0
    assert result.n_rows == pytest.approx(9000, rel=0.05)
    assert result.ledger.pool.least == 3
    local = load(here / "north" / "local.hush")
    assert local.noise_sd < result.noise_sd
    from hushtable.federation.book import Book

    for name in ("north", "south", "west"):
        with Book.open(here / name / f"{name}.book") as book:
            assert book.total("all rows") == pytest.approx(1.0, rel=1e-3)


def test_nothing_secret_was_sent(folders):
    here, _ = folders
    sent = {path.name for path in (here / "lead").iterdir()}
    assert not [name for name in sent if name.endswith((".book", ".csv", "local.hush"))]
    assert {name for name in sent if name.endswith(".key")} == {"lead.key"}
