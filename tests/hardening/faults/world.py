"""A consortium as files, and every command that writes one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults import Server

from hushtable import Sketch, load
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Card, Keys

__all__ = ["COMMANDS", "Command", "make_world", "snapshot"]

SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120

[[feature]]
name = "ward"
kind = "categorical"
categories = ["north", "south"]
"""
#: What a command that was killed may leave beside its output; see docs/reference/file-format.md.
LITTER = re.compile(r"\.[^/]+\.([0-9a-f]{8}\.part(-journal)?|lock)|[^/]+\.book-journal")


#: The cards of all, as if their fingerprints had been compared.
TRUST = "--trust @lead.card --trust @north.card --trust @south.card"


@dataclass(frozen=True)
class Command:
    """A command that writes, and what is right about what it wrote.

    Attributes
    ----------
    arguments : str
        Of ``hushtable``, with ``@`` before what is in the folder.
    outputs : tuple of str
        What it writes; patterns of paths.
    right : callable
        Takes the folder, after the command came to its end; asserts.
    exact : bool
        Whether it writes the same bytes each time.
    """

    arguments: str
    outputs: tuple[str, ...]
    right: Callable[[Path], object]
    exact: bool = True

    def line(self, folder: Path) -> list[str]:
        """Return the arguments, for a folder."""
        return self.arguments.replace("@", f"{folder}/").split()


def _keys_belong_together(folder: Path) -> None:
    keys = Keys.load(folder / "west.key")
    assert Card.load(folder / "west.card") == keys.card
    with Book.open(folder / "west.book", keys.card) as book:
        assert (book.epsilon, book.answers()) == (2.0, [])


def _noted_before_sent(folder: Path) -> None:
    with Book.open(folder / "north.book") as book:
        assert [answer.title for answer in book.answers()] == ["first"]
        assert 0.1 < book.total("all rows") < 3.0


COMMANDS = {
    "fit": Command(
        "fit @rows.csv --seed 1 --tables 5 -o @model.hush",
        ("model.hush",),
        lambda folder: load(folder / "model.hush").score_samples(folder / "rows.csv"),
    ),
    "score to Parquet": Command(
        "score @rows.csv --model @sketch.hush -o @scores.parquet",
        ("scores.parquet",),
        lambda folder: None,
    ),
    "score to CSV": Command(
        "score @rows.csv --model @sketch.hush -o @scores.csv",
        ("scores.csv",),
        lambda folder: None,
    ),
    "score to a folder": Command(
        "score @lake --model @sketch.hush -o @scores",
        ("scores/1.scores.parquet", "scores/2.scores.parquet"),
        lambda folder: None,
    ),
    "sketch": Command(
        "sketch @rows.csv --plan @plan.hush -o @new.sketch.hush",
        ("new.sketch.hush",),
        lambda folder: load(folder / "new.sketch.hush"),
    ),
    "release": Command(
        "release @sketch.hush --epsilon 1 -o @new.hush",
        ("new.hush",),
        lambda folder: load(folder / "new.hush"),
        exact=False,
    ),
    "merge": Command(
        "merge @sketch.hush @other.sketch.hush -o @all.hush",
        ("all.hush",),
        lambda folder: _adds_up(folder),
    ),
    "round keygen": Command(
        "round keygen west --cap 2 --persons 1 --folder @",
        ("west.key", "west.card", "west.book", "west.policy.toml", "west.toml"),
        _keys_belong_together,
        exact=False,
    ),
    "round open": Command(
        "round open @plan.hush @north.card @south.card --key @lead.key --epsilon 1 -o @new.round",
        ("new.round",),
        lambda folder: None,
        exact=False,
    ),
    "round sync": Command(
        f"round sync @first.box @rows.csv --key @north.key --yes {TRUST} -o @",
        ("first.box/*.north.*", "north.book"),
        _noted_before_sent,
        exact=False,
    ),
    "round next": Command(
        "round next @marginals.round @marginals.hush --key @lead.key --seed 1 -o @second.round",
        ("second.round",),
        lambda folder: None,
        exact=False,
    ),
}


def _adds_up(folder: Path) -> None:
    one, other = (Sketch.from_data(load(folder / "plan.hush"), folder / name)
                  for name in ("rows.csv", "other.csv"))  # fmt: skip
    assert load(folder / "all.hush") == one + other


def make_world(server: Server) -> dict[str, bytes]:
    """Return the files that the commands begin with."""
    here = server.root
    here.mkdir()
    (here / "lake").mkdir()
    (here / "schema.toml").write_text(SCHEMA)
    for i, name in enumerate(("rows.csv", "other.csv", "lake/1.csv", "lake/2.csv")):
        ages = np.random.default_rng(i).integers(0, 100, 60)
        lines = [f"{age},{('north', 'south')[age % 2]}" for age in ages]
        (here / name).write_text("\n".join(["age,ward", *lines]) + "\n")
    for name in ("first", "second", "third", "marginals"):
        (here / f"{name}.box").mkdir()
    books: dict[str, bytes] = {}
    rounds = "--epsilon 1 --days 30"
    cards = "@north.card @south.card --key @lead.key"
    for line in (
        "plan draw @schema.toml --tables 3 --seed 1 -o @plan.hush",
        "sketch @rows.csv --plan @plan.hush -o @sketch.hush",
        "sketch @other.csv --plan @plan.hush -o @other.sketch.hush",
        "round keygen lead --folder @",
        "round keygen north --cap 3 --persons 1 --folder @",
        "round keygen south --cap 3 --persons 1 --folder @",
        f"round open @plan.hush {cards} {rounds} --title first -o @first.round",
        f"round open @plan.hush {cards} {rounds} --title second -o @second.open",
        f"round open @plan.hush {cards} {rounds} --title third -o @third.round",
        f"round open @schema.toml {cards} {rounds} --expected-rows 50000 -o @marginals.round",
        f"{lead('second')} --post @second.open",
        *(f"{lead(name)} --post @{name}.round" for name in ("first", "third", "marginals")),
        *(sites(name)[1] for name in ("first", "third")),  # south's key is there: north comes last
        *(line for name in ("second", "marginals") for line in (
            *sites(name), *sites(name), lead(name), *sites(name))),
        lead("marginals"),
    ):  # fmt: skip
        if "sync @second.box @rows.csv" in line and not books:
            books = {name: (here / name).read_bytes() for name in ("north.book", "south.book")}
        done = server.run(*line.replace("@", f"{here}/").split())
        assert done.code == 0, (line, done.said)
    for name, content in books.items():  # the sites have answered nothing yet
        (here / name).write_bytes(content)
    (marginals,) = (here / "marginals.box").glob("*.result.lead.*")
    (here / "marginals.hush").write_bytes(marginals.read_bytes())
    return snapshot(here)


def lead(name: str) -> str:
    """Return the command by which the coordinator visits a round."""
    return f"round sync @{name}.box --key @lead.key -o @"


def sites(name: str) -> list[str]:
    """Return the commands by which the sites visit a round."""
    rows = {"north": "rows.csv", "south": "other.csv"}
    return [
        f"round sync @{name}.box @{data} --key @{site}.key --yes {TRUST} -o @"
        for site, data in rows.items()
    ]


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return every file under a folder with its bytes."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
