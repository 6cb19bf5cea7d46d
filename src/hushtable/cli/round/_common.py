"""What the commands of a round share: reading its files, and their options."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushtable.errors import FileError, UsageError
from hushtable.federation.collect import Collection, check_coordinator
from hushtable.federation.hidden import read_plan
from hushtable.federation.keys import Card, Keys
from hushtable.federation.round import Round, now
from hushtable.plans.plan import Plan

__all__ = [
    "BookFile",
    "Days",
    "HiddenPlan",
    "KeyFile",
    "PolicyFile",
    "RoundFile",
    "Submissions",
    "book_beside",
    "cards",
    "collected",
    "coordinators_keys",
    "days_on",
    "hidden_plan",
    "read_round",
    "roster_rows",
    "state",
]

RoundFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="ROUND", help="Round of hushtable round open.")
]
Submissions: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="SUBMISSION...", help="What the sites sent.")
]
KeyFile: TypeAlias = Annotated[
    Path, typer.Option("--key", metavar="FILE", help="Your keys, of hushtable round keygen.")
]
BookFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--book", metavar="FILE", help="This site's book; by default the one beside the keys."
    ),
]
PolicyFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="This site's policy; by default the one beside the keys."
    ),
]
HiddenPlan: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The sites' plan, where the round hides it."),
]
Days: TypeAlias = Annotated[
    float, typer.Option(metavar="N", min=0.001, max=3650, help="Days until the deadline.")
]


def read_round(path: Path) -> Round:
    """Read a round and check the coordinator's signature."""
    return Round.from_bytes(path.read_bytes(), path)


def book_beside(key: Path, book: Path | None) -> Path:
    """Return the book that goes with a key file."""
    return key.with_suffix(".book") if book is None else book


def hidden_plan(path: Path | None) -> Plan | None:
    """Read the plan that the sites of a round share, if one is given."""
    return None if path is None else read_plan(path)


def coordinators_keys(path: Path, round_: Round) -> Keys:
    """Read keys that have to be those of the round's coordinator."""
    keys = Keys.load(path)
    check_coordinator(round_, keys)
    return keys


def days_on(days: float) -> Any:
    """Return the time that many days from now."""
    return now() + timedelta(days=days)


def collected(round_: Round, submissions: list[Path]) -> Collection:
    """Read submissions into a collection, which notes what it refuses."""
    collection = Collection(round_)
    for path in submissions:
        if not path.is_file():
            raise FileError(f"{path}: no such file: check the path")
        collection.add(str(path), path)
    return collection


def state(collection: Collection) -> dict[str, Any]:
    """Return who is in and who is not, for machines."""
    return {
        "accepted": sorted(collection.accepted),
        "missing": collection.missing,
        "refused": [{"file": name, "reason": why} for name, why in collection.refused],
        "repeated": [{"file": name, "site": site} for name, site in collection.repeated],
    }


def roster_rows(round_: Round, collection: Collection | None) -> list[list[str]]:
    """Return a table row for each site: name, fingerprint, and whether its submission is in."""
    rows = []
    for card in round_.sites:
        where = [] if collection is None else [collection.standing(card.name)]
        rows.append([card.name, card.fingerprint, *where])
    return rows


def cards(paths: list[Path]) -> list[Any]:
    """Read cards; a pattern that takes in a key file is named for what it is."""
    for path in paths:
        if path.suffix in (".key", ".book"):
            raise UsageError(
                f"{path} is secret and must not travel: give the card (.card) of each site"
            )
    return [Card.load(path) for path in paths]
