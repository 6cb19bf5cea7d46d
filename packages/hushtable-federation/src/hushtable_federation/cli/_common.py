"""Options and files of the commands of a round."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hushtable.cli.options import argument, option
from hushtable.errors import FileError, UsageError
from hushtable_federation.clock import now
from hushtable_federation.keys import Card
from hushtable_federation.policy import Persons
from hushtable_federation.refusals import raise_first
from hushtable_federation.round import Round
from hushtable_federation.settings import SiteSettings

FolderArgument: TypeAlias = Annotated[
    str,
    argument(
        "[FOLDER]",
        "Folder of the round: a directory or a URL; by default, the one that the --site file "
        "names.",
    ),
]
RoundFile: TypeAlias = Annotated[Path, argument("ROUND", "Round written by hushtable round open.")]
KeyFile: TypeAlias = Annotated[
    Path, option("FILE", "Your keys, written by hushtable round keygen.", "--key")
]
BookFile: TypeAlias = Annotated[
    Path | None, option("FILE", "This site's book; by default, the one beside the keys.", "--book")
]
PolicyFile: TypeAlias = Annotated[
    Path | None,
    option("FILE", "This site's policy; by default, the one beside the keys.", "--policy"),
]
PersonsOption: TypeAlias = Annotated[
    str,
    option(
        "column|N",
        "With --cap, for the policy: how you know that no person has more rows than a round "
        "states. Give 'column' if each answer names a column of persons, or N if you affirm that "
        "no one has more than N rows.",
        "--persons",
    ),
]
Which: TypeAlias = Annotated[
    str, option("ID", "Only this round, given by the first digits of its id.", "--which")
]
Days: TypeAlias = Annotated[
    float, option("N", "Number of days until the deadline.", min=0.001, max=3650)
]


def check_folder(folder: str, settings: SiteSettings | None) -> None:
    """Raise `UsageError` unless the command or the party's file names a folder."""
    if not folder and (settings is None or not settings.address.folder):
        where = "NAME.toml" if settings is None or settings.path is None else str(settings.path)
        raise UsageError(
            f"no folder of rounds was given: give FOLDER, or name it in {where} (folder = ...)"
        )


def stated_persons(text: str) -> Persons:
    """Return what `PersonsOption` states; raise `UsageError` if it is neither form."""
    if text == "column":
        return "column"
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise UsageError(
        f"--persons {text}: needs 'column', or the most rows that any person has (--persons 1)"
    )


def read_round(path: Path) -> Round:
    """Read a round and check the coordinator's signature."""
    return Round.from_bytes(path.read_bytes(), path)


def given(**settings: Any) -> dict[str, Any]:
    """Return the settings that the options give."""
    return {name: value for name, value in settings.items() if value is not None}


def days_on(days: float) -> datetime:
    """Return the time in that many days."""
    return now() + timedelta(days=days)


def present(paths: list[Path] | None) -> list[Path]:
    """Return the files; raise `FileError` if one does not exist."""
    for path in paths or []:
        if not path.is_file():
            raise FileError(f"{path}: no such file: check the path")
    return paths or []


def period_facts(round_: Round) -> dict[str, Any]:
    """Return which period a round is about, for machines; empty for a round without periods."""
    horizon, place = round_.plan.horizon, round_.place
    if horizon is None or place is None:
        return {}
    called = None if place.every is None else place.called(place.period)
    of = {"period": place.period, "periods": horizon.periods, "called": called}
    return of | {"stream": round_.stream}


def cards(paths: list[Path]) -> list[Card]:
    """Read cards; refuse secret files."""
    for path in paths:
        faults = {
            f"{path} is secret and must not be sent: give the card (.card) of each site": (
                path.suffix in (".key", ".book")
            ),
            f"{path} was written by hushtable round meet, which was removed: give the card (.card) "
            "of each site": path.suffix == ".verified",
        }
        raise_first(UsageError, faults)
    return [Card.load(path) for path in paths]
