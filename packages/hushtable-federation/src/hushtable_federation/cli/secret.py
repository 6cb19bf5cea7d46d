"""``hushtable round secret``, ``plan hide``: hash functions that the coordinator does not have."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hushtable import files
from hushtable.cli.options import Output, argument, option
from hushtable.cli.output import Target, shown
from hushtable.cli.result import Block, CommandResult, TextTable
from hushtable.data.schema import Schema
from hushtable.errors import UsageError
from hushtable.files import write_bytes
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import Book
from hushtable_federation.cli._common import cards
from hushtable_federation.hidden import (
    LEAST,
    Known,
    SealedSecret,
    draw_hidden,
    read_secret,
    seal_secret,
)
from hushtable_federation.keys import Card, Keys, new_private
from hushtable_federation.layout import Layout
from hushtable_federation.policy import Policy, load_policy, policy_beside

Trust: TypeAlias = Annotated[
    list[Path] | None,
    option(
        "CARD", "Card that its owner gave you, the site that sealed the secret. May be repeated."
    ),
]


@dataclass(frozen=True)
class SharedSecret:
    """A secret that was read, and, if it is sealed, who can read it."""

    secret: bytes
    sealed: SealedSecret | None = None
    strangers: tuple[Card, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return for machines who sealed it and who can read it; empty for a plain secret."""
        if self.sealed is None:
            return {}
        readers = [
            {"name": c.name, "fingerprint": c.fingerprint, "known": c not in self.strangers}
            for c in self.sealed.readers
        ]
        return {"secret": {"sealed_by": self.sealed.sender.name, "readers": readers}}

    def lines(self) -> list[str]:
        """Return the same for people."""
        if self.sealed is None:
            return []
        sentences = [
            f"The secret was sealed by {shown(self.sealed.sender.name)}. These can read it:"
        ]
        for card in self.sealed.readers:
            here = "   not known here: check who this is" if card in self.strangers else ""
            sentences.append(f"  {shown(card.name):<12} {card.fingerprint}{here}")
        return sentences


def read_shared(
    path: Path, key: Path | None, book: Path | None = None, trust: list[Path] | None = None
) -> SharedSecret:
    """Read a secret written by ``hushtable round secret``: plain, or sealed for these keys.

    The book and the policy beside the keys name the known sites; ``trust`` adds more.
    """
    content = path.read_bytes()
    if content[8:9] != b"{":  # no .hush file, whose header would begin here
        return SharedSecret(read_secret(path))
    sealed = SealedSecret.from_bytes(content, str(path))
    if key is None:
        raise UsageError(f"{path} is sealed to the cards of its readers: give your keys (--key)")
    keys = Keys.load(key)
    sealed.check_reader(keys.card)
    known = whom(key, keys, book, [Card.load(card) for card in trust or []])
    secret = sealed.open(keys, known)
    return SharedSecret(secret, sealed, tuple(sealed.strangers(keys.card, known)))


def draw(
    path: Path, key: Path | None, trust: list[Path] | None, schema: Schema, terms: dict[str, Any]
) -> tuple[Plan, list[str], dict[str, Any]]:
    """Draw a plan from a secret, for ``plan draw``; also return texts and facts about it."""
    opened = read_shared(path, key, trust=trust)
    return draw_hidden(opened.secret, schema, **terms), opened.lines(), opened.facts()


def whom(key: Path, keys: Keys, book: Path | None, trust: list[Card]) -> Known:
    """Return which cards a site knows in which role, after recording the cards to trust."""
    beside, rules = key.with_suffix(".book") if book is None else book, policy_beside(key)
    if not beside.exists() and not rules.exists():
        raise UsageError(
            f"{key}: there is no book and no policy beside these keys: give the keys of a site, "
            "because the secret is for sites only"
        )
    policy = load_policy(rules)
    with Book.open(beside, keys.card) as notes:
        known = _pins(policy, notes)
        check_sites(trust, known)
        if trust:
            notes.trust(trust)
            known = _pins(policy, notes)
    return known


def _pins(policy: Policy, notes: Book) -> Known:
    return policy.pins({"coordinator": notes.known("coordinator"), "site": notes.known("site")})


def check_sites(cards: list[Card], known: Known) -> None:
    """Raise `UsageError` if the card of a coordinator is given as that of a site."""
    leads = set(known["coordinator"].values()) - set(known["site"].values())
    for card in cards:
        if card.fingerprint in leads:
            raise UsageError(
                f"{card.name!r} is known here as a coordinator, who must not learn the secret: "
                "give only the cards of sites"
            )


_Key = Annotated[
    Path | None, option("FILE", "This site's keys, which seal and sign the secret.", "--key")
]
_Sites = Annotated[
    list[Path] | None,
    option("CARD", "Card of a site that may read the secret. May be repeated.", "--site"),
]
_Book = Annotated[
    Path | None, option("FILE", "This site's book; by default, the one beside the keys.")
]


def secret(
    output: Output,
    key: _Key = None,
    site: _Sites = None,
    book: _Book = None,
) -> CommandResult:
    """Make a secret from which the sites draw hidden hash functions.

    One site makes the secret, never the coordinator. With --key and the other sites' cards, it is
    sealed for these sites, so you can send it by any route, even through the coordinator. Each site
    then draws the same plan: "hushtable plan draw schema.toml --secret FILE --key NORTH.key".
    Without --key, the secret is not encrypted: hand it to the other sites yourself.

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
        return CommandResult(facts, [f"Wrote {target}: for the sites only."])
    if output.exists():
        raise UsageError(
            f"{output} exists, and a secret is never overwritten: use it, or another name"
        )
    keys, others = Keys.load(key), cards(site or [])
    _check_readers(key, keys, book, others)
    content = seal_secret(secrets.token_bytes(LEAST), keys, others)
    with target.writing():
        write_bytes(output, content, private=False)
    return _report(SealedSecret.from_bytes(content, str(output)), target)


def _check_readers(key: Path, keys: Keys, book: Path | None, others: list[Card]) -> None:
    """Raise `UsageError` if the book knows other keys under the names of these cards."""
    known = whom(key, keys, book, [])
    check_sites(others, known)
    for card in others:
        before = known["site"].get(card.name, card.fingerprint)
        if before != card.fingerprint:
            raise UsageError(
                f"the card of {card.name!r} has the fingerprint {card.fingerprint}, and this site "
                f"knows it as {before}: ask {card.name!r} which is its own"
            )


def _report(sealed: SealedSecret, target: Target) -> CommandResult:
    readers = [{"name": card.name, "fingerprint": card.fingerprint} for card in sealed.readers]
    facts: dict[str, Any] = {
        "command": "round secret",
        "secret": str(target.path),
        "sealed_by": sealed.sender.name,
        "readers": readers,
    }

    def blocks() -> Iterator[Block]:
        rows = [[shown(one["name"]), one["fingerprint"]] for one in readers]
        yield TextTable(["can read it", "fingerprint"], rows, left=2)
        yield (
            f"\nWrote {target}: it is sealed, so you can send it by any route. At each of these "
            "sites:"
        )
        yield (
            f"  hushtable plan draw schema.toml --secret {target.path} --key SITE.key -o plan.hush"
        )

    return CommandResult(facts, blocks())


_Plan = Annotated[Path, argument("PLAN", "Plan written by hushtable plan draw.")]


def hide(plan: _Plan, output: Output) -> CommandResult:
    """Remove the hash functions from a plan, for the coordinator.

    With the layout that remains, a coordinator can open rounds and add up what the sites send, but
    cannot hash rows, and therefore cannot score them.

    Example:
      hushtable plan hide plan.hush -o layout.hush
    """
    target = Target(output, [plan])
    whole = files.read(plan).expect("plan").build(Plan.from_file)
    layout = Layout.of(replace(whole, hidden=True))
    target.save(layout)
    facts = {"command": "plan hide", "layout": str(output), "plan_id": layout.plan_id}

    def blocks() -> Iterator[Block]:
        if whole.purpose.refines and not whole.hidden:
            yield f"Wrote {target}: for the coordinator. {plan} follows from the schema: anyone"
            yield "who has the schema can make it."
            return
        yield f"Wrote {target}: for the coordinator. {plan} is for the sites only: do not let"
        yield "anyone else read it (chmod 600)."

    return CommandResult(facts, blocks())
