"""Contents of a book: cap, cards, answers, data sets, all derived from its entries."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hushtable.arguments import is_digest
from hushtable.errors import FileError
from hushtable.privacy.budget import Spent, check_delta, check_epsilon
from hushtable_federation.book.chain import Entry
from hushtable_federation.keys import Card

#: What somebody whose card is known may be in a round.
ROLES = ("site", "coordinator")
#: How somebody verified a card: the code that all read in a call, the card came from its owner, or
#: the answer to a question, after fingerprints were compared.
WAYS = ("code", "card", "asked")


@dataclass
class Contents:
    """All that a book says, after the entries that `add` was given."""

    #: Whose book it is: name and public key.
    site: str = ""
    signing: str = ""
    #: Drawn for this book alone: digests of rows are made under it.
    key: bytes = b""
    #: The cap.
    epsilon: float = 0.0
    delta: float = 0.0
    #: By name: one card at a time, and as what it is known.
    cards: dict[str, Card] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    #: By name and role: how the card was verified, and when so for the first time.
    ways: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    #: By id of the round, in the order of answers; and by data set, what these cost.
    answers: dict[str, Entry] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    #: By stream of rounds and period: the first answer.
    streams: dict[str, dict[int, Entry]] = field(default_factory=dict)
    #: By data set: digests of its rows.
    rows: dict[str, list[Entry]] = field(default_factory=dict)
    #: SHA-256 of the policy file in force; empty without.
    policy: str = ""
    #: By digest of a result: when it was verified first.
    verified: dict[str, datetime] = field(default_factory=dict)

    def add(self, entry: Entry, path: str) -> None:
        """Take in the next entry; ``path`` names the book in errors.

        Raises `FileError` if it is of a kind that is not known here, and `KeyError`, `TypeError`
        or `ValueError` if it cannot be what was written.
        """
        take = _KINDS.get(entry.kind)
        if take is None:
            raise FileError(
                f"{path}: entry {entry.n} is of the kind {entry.kind[:40]!r}, which this version "
                "of hushtable does not know: use the one that wrote it, or a newer one (pip "
                "install --upgrade hushtable)"
            )
        if (entry.n == 1) != (entry.kind == "site"):
            raise ValueError("a book begins with its site")
        datetime.fromisoformat(entry.content["at"])
        take(self, entry)


def _site(said: Contents, entry: Entry) -> None:
    content = entry.content
    said.site, said.signing = _text(content["name"]), _text(content["signing"])
    said.key = bytes.fromhex(content["key"])
    if len(said.key) != 32:
        raise ValueError("the key has 32 bytes")
    _cap(said, entry)


def _cap(said: Contents, entry: Entry) -> None:
    said.epsilon = check_epsilon(entry.content["epsilon"])
    said.delta = check_delta(entry.content["delta"])


def _trust(said: Contents, entry: Entry) -> None:
    card, role = Card.from_dict(entry.content["card"]), entry.content["role"]
    if role not in ROLES:
        raise ValueError(f"no role {role!r}")
    # Other keys under a name are somebody else, whatever the name was before.
    if said.cards.get(card.name) != card:
        said.cards[card.name], said.roles[card.name] = card, set()
        said.ways[card.name] = {}
    said.roles[card.name].add(role)
    if "how" in entry.content:  # books of version 0.1 do not say
        ways = said.ways[card.name].setdefault(role, {})
        ways.setdefault(_text(entry.content["how"]), entry.content["at"])


def _policy(said: Contents, entry: Entry) -> None:
    said.policy = _digest(entry.content["digest"])


def _rows(said: Contents, entry: Entry) -> None:
    _digest(entry.content["blobs"]["rows"])
    said.rows.setdefault(_text(entry.content["data_set"]), []).append(entry)


def _answer(said: Contents, entry: Entry) -> None:
    content = entry.content
    if _text(content["round_id"]) in said.answers:
        raise ValueError("a round is answered once")
    _text(content["title"])
    for name in ("counts", "sent"):
        _digest(content["blobs"][name])
    datetime.fromisoformat(content["made"])
    spent = Spent.from_dict(content["spent"])
    said.answers[content["round_id"]] = entry
    charged = said.spent.setdefault(_text(content["data_set"]), [])
    # All periods of a stream are charged with the first answer.
    if not ("stream" in content and _of_stream(said, entry) and spent in charged):
        charged.append(spent)


def _of_stream(said: Contents, entry: Entry) -> bool:
    """Note the period that an answer is about; return whether its stream was answered before."""
    content = entry.content
    period = content["period"]
    if type(period) is not int or period < 1:
        raise ValueError("no period")
    periods = said.streams.setdefault(_text(content["stream"]), {})
    before = bool(periods)
    first = periods.setdefault(period, entry)
    if first.content["blobs"]["sent"] != content["blobs"]["sent"]:
        raise ValueError("noise is drawn once for each period")
    return before


def _verified(said: Contents, entry: Entry) -> None:
    _text(entry.content["round_id"])
    at = datetime.fromisoformat(entry.content["at"])
    said.verified.setdefault(_digest(entry.content["digest"]), at)


#: Kinds of entries, and what each does. Older versions refuse a new kind.
_KINDS: dict[str, Callable[[Contents, Entry], None]] = {
    "site": _site, "cap": _cap, "trust": _trust, "policy": _policy, "rows": _rows,
    "answer": _answer, "verified": _verified,
}  # fmt: skip


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise ValueError("no digest")
    return str(value)
