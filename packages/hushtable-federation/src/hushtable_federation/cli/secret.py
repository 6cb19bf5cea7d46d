"""``hushtable round secret``: what the sites share and the coordinator does not know."""

import secrets
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import Json, Output, option
from hushtable.cli.output import Target, finish, print_table, shown
from hushtable.errors import UsageError
from hushtable.files import write_bytes
from hushtable_federation.cli._common import cards
from hushtable_federation.cli._secrets import check_sites, whom
from hushtable_federation.keys import Card, Keys, new_private
from hushtable_federation.secret import LEAST, SealedSecret, seal_secret

_Key = Annotated[Path | None, option("FILE", "This site's keys, to seal and sign with.", "--key")]
_Sites = Annotated[
    list[Path] | None, option("CARD", "Card of a site that is to read it. Repeat it.", "--site")
]
_Book = Annotated[
    Path | None, option("FILE", "This site's book; by default the one beside the keys.")
]


def secret(
    output: Output,
    key: _Key = None,
    site: _Sites = None,
    book: _Book = None,
    as_json: Json = False,
) -> None:
    """Make a secret from which the sites draw hidden hash functions.

    One site makes it, never the coordinator. With --key and the other sites' cards, it is sealed
    for these and may go any way, through the coordinator, too. Each site then draws the same plan:
    "hushtable plan draw schema.toml --secret FILE --key NORTH.key". Without, it is plain: hand it
    to the other sites yourself.

    Example:
      hushtable round secret --key north.key --site south.card --site west.card -o shared.hush
    """
    target = Target(output, [key, book, *(site or [])])
    if key is None:
        if site or book:
            raise UsageError("--site and --book go with --key, the keys of the site that seals it")
        with target.writing(), new_private(output) as file:
            file.write(f"{secrets.token_hex(LEAST)}\n".encode())
        facts = {"command": "round secret", "secret": str(output)}
        finish(as_json, facts, lambda: print(f"Wrote {target}: for the sites only."))
        return
    if output.exists():
        raise UsageError(f"{output} exists, and is never overwritten: use it, or another name")
    keys, others = Keys.load(key), cards(site or [])
    _check_readers(key, keys, book, others)
    content = seal_secret(secrets.token_bytes(LEAST), keys, others)
    with target.writing():
        write_bytes(output, content, private=False)
    _report(SealedSecret.from_bytes(content, str(output)), target, as_json)


def _check_readers(key: Path, keys: Keys, book: Path | None, others: list[Card]) -> None:
    """Raise `UsageError` if the book knows better whose these cards are."""
    known = whom(key, keys, book, [])
    check_sites(others, known)
    for card in others:
        before = known["site"].get(card.name, card.fingerprint)
        if before != card.fingerprint:
            raise UsageError(
                f"the card of {card.name!r} has the fingerprint {card.fingerprint}, and this site "
                f"knows it as {before}: ask {card.name!r} which is its own"
            )


def _report(sealed: SealedSecret, target: Target, as_json: bool) -> None:
    readers = [{"name": card.name, "fingerprint": card.fingerprint} for card in sealed.readers]
    facts: dict[str, Any] = {
        "command": "round secret",
        "secret": str(target.path),
        "sealed_by": sealed.sender.name,
        "readers": readers,
    }

    def text() -> None:
        rows = [[shown(one["name"]), one["fingerprint"]] for one in readers]
        print_table(["can read it", "fingerprint"], rows, left=2)
        print(f"\nWrote {target}: sealed, so that it may go any way. At each of these sites:")
        print(
            f"  hushtable plan draw schema.toml --secret {target.path} --key SITE.key -o plan.hush"
        )

    finish(as_json, facts, text)
