"""``hushtable round amend``: more time, or without a site, for a round in a folder."""

from pathlib import Path
from typing import Annotated, Any

from hushtable import files
from hushtable.cli.options import Json, option
from hushtable.cli.output import finish, shown
from hushtable.errors import RoundError, UsageError
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.sync import Folder
from hushtable_federation.clock import now, shown_time, stamp
from hushtable_federation.folder.posts import DECIDED, Posts, rounds
from hushtable_federation.folder.store import Store
from hushtable_federation.keys import Keys
from hushtable_federation.online.journal import path_of, read_decided
from hushtable_federation.round import Round

_Key = Annotated[Path, option("FILE", "The coordinator's keys.", "--key")]
_Days = Annotated[float | None, option("N", "Days from now until the deadline.", min=0, max=3650)]
_Drop = Annotated[
    list[str] | None, option("SITE", "Go on without this site: late, away, or with lost keys.")
]
_Why = Annotated[str, option("TEXT", "The reason, which the sites see.")]
_Which = Annotated[str | None, option("ID", "Which round, by the first digits of its id.")]


def amend(
    folder: Folder,
    key: _Key,
    days: _Days = None,
    drop: _Drop = None,
    why: _Why = "",
    which: _Which = None,
    as_json: Json = False,
) -> None:
    """Extend a round in a folder, or go on without a site.

    The sites see what you signed. Until it is decided who is in the sum: from then on, nobody can
    be dropped, and what is missing is made up for by the others. A site whose card is revoked is
    dropped, and gets a new card in the next round.

    Example:
      hushtable round amend /mnt/round --key lead.key --days 3 --drop north --why "server down"
    """
    if days is None and not drop:
        raise UsageError("nothing to amend: give --days, --drop, or both")
    keys = Keys.load(key)
    store = Store.open(folder, keys.card.name)
    asked = _asked(store, keys, which)
    deadline, journal = None if days is None else common.days_on(days), path_of(key, asked)
    with files.locked(journal):  # two amendments of one number would stop the round
        posts = Posts(asked, store)
        if any(True for _ in posts.results()):
            raise RoundError(f"round {asked.round_id[:12]} is over: its result is in {store.where}")
        if journal.exists() and read_decided(journal, asked).sites:
            raise RoundError(DECIDED)
        made = posts.amend(keys, deadline=deadline, drop=tuple(drop or ()), why=why)
    facts: dict[str, Any] = {
        "command": "round amend",
        "round_id": asked.round_id,
        "number": made.number,
        "deadline": stamp(made.deadline),
        "dropped": list(made.dropped),
        "why": made.why,
    }

    def text() -> None:
        over = " (over)" if now() > made.deadline else ""
        print(f"Round {asked.round_id[:12]}, amendment {made.number}:")
        print(f"  until {shown_time(made.deadline)}{over}")
        if made.dropped:
            print(f"  without {', '.join(map(shown, made.dropped))}")
        print(f"It lies in {store.where}. Go on with: hushtable round sync")

    finish(as_json, facts, text)


def _asked(store: Store, keys: Keys, which: str | None) -> Round:
    found = [one for one in rounds(store) if one.round_id.startswith((which or "").lower())]
    mine = [one for one in found if one.coordinator == keys.card]
    if len(mine) != 1:
        what = "no round" if not mine else f"{len(mine)} rounds"
        raise UsageError(
            f"{store.where} holds {what} of {keys.card.name!r} to amend: "
            + ("check the folder and the keys" if not mine else "say which one (--which ID)")
        )
    return mine[0]
