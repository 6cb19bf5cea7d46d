"""Reading the secret that sites share, sealed or plain, and showing who else can read it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hushtable.cli.options import option
from hushtable.cli.output import shown
from hushtable.data.schema import Schema
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import Book
from hushtable_federation.hidden import draw_hidden, read_secret
from hushtable_federation.keys import Card, Keys
from hushtable_federation.policy import Policy
from hushtable_federation.policy_file import load_policy, policy_beside
from hushtable_federation.secret import Known, SealedSecret

Trust: TypeAlias = Annotated[
    list[Path] | None,
    option("CARD", "Card got from its owner, the site that sealed the secret. May be repeated."),
]


@dataclass(frozen=True)
class Opened:
    """A secret that was read, and, of a sealed one, who can read it."""

    secret: bytes
    sealed: SealedSecret | None = None
    strangers: tuple[Card, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return who sealed it and who can read it, for machines; nothing of a plain one."""
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
        said = [f"The secret was sealed by {shown(self.sealed.sender.name)}. These can read it:"]
        for card in self.sealed.readers:
            here = "   not known here: who is it?" if card in self.strangers else ""
            said.append(f"  {shown(card.name):<12} {card.fingerprint}{here}")
        return said


def read(
    path: Path, key: Path | None, book: Path | None = None, trust: list[Path] | None = None
) -> Opened:
    """Read a secret of ``hushtable round secret``: a plain one, or one sealed for these keys.

    The book and the policy beside the keys say who is known here; ``trust`` says it of more sites.
    """
    content = path.read_bytes()
    if content[8:9] != b"{":  # no .hush file: their header begins there
        return Opened(read_secret(path))
    sealed = SealedSecret.from_bytes(content, str(path))
    if key is None:
        raise UsageError(f"{path} is sealed to the cards of its readers: give your keys (--key)")
    keys = Keys.load(key)
    sealed.check_reader(keys.card)
    known = whom(key, keys, book, [Card.load(card) for card in trust or []])
    secret = sealed.open(keys, known)
    return Opened(secret, sealed, tuple(sealed.strangers(keys.card, known)))


def draw(
    path: Path, key: Path | None, trust: list[Path] | None, schema: Schema, terms: dict[str, Any]
) -> tuple[Plan, list[str], dict[str, Any]]:
    """Draw a plan from a secret, for ``plan draw``; also what to say of it, and for machines."""
    opened = read(path, key, trust=trust)
    return draw_hidden(opened.secret, schema, **terms), opened.lines(), opened.facts()


def whom(key: Path, keys: Keys, book: Path | None, trust: list[Card]) -> Known:
    """Return whom a site knows, and as what, once it has noted the cards that it is to trust."""
    beside, rules = key.with_suffix(".book") if book is None else book, policy_beside(key)
    if not beside.exists() and not rules.exists():
        raise UsageError(
            f"{key}: there is no book and no policy beside these keys, as a site has them: are "
            "they a coordinator's? The secret is for sites alone"
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
    """Raise `UsageError` if somebody gives the card of a coordinator for that of a site."""
    leads = set(known["coordinator"].values()) - set(known["site"].values())
    for card in cards:
        if card.fingerprint in leads:
            raise UsageError(
                f"{card.name!r} is known here as a coordinator, from whom the secret is to be "
                "kept: give the cards of sites alone"
            )
