"""The ledger of a book: what its entries amount to."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hushtable.arguments import is_digest
from hushtable.errors import FileError
from hushtable.privacy.budget import Spent, check_delta, check_epsilon
from hushtable_federation.book.chain import Entry
from hushtable_federation.keys import Card

#: The roles that a known card may have in a round.
ROLES = ("site", "coordinator")
#: How a card was verified: by the code of a meeting (until 1.0.0rc1), because it came from its
#: owner, or by the answer to a question, after comparing fingerprints.
WAYS = ("code", "card", "asked")


@dataclass
class BookLedger:
    """The state of a book, after the entries passed to `add`."""

    #: The site of the book: name and public key.
    site: str = ""
    signing: str = ""
    #: Drawn for this book: the key of its digests of rows.
    key: bytes = b""
    #: The cap.
    epsilon: float = 0.0
    delta: float = 0.0
    #: By name: the current card, and its known roles.
    cards: dict[str, Card] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    #: By name and role: how the card was verified, and the first time of each way.
    ways: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    #: By id of the round, in the order of answers; and by data set, their costs.
    answers: dict[str, Entry] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    #: By stream and period: the first answer.
    streams: dict[str, dict[int, Entry]] = field(default_factory=dict)
    #: By data set: digests of its rows.
    rows: dict[str, list[Entry]] = field(default_factory=dict)
    #: SHA-256 of the current policy file; empty if none.
    policy: str = ""
    #: By digest of a result: when it was first verified.
    verified: dict[str, datetime] = field(default_factory=dict)

    def add(self, entry: Entry, path: str) -> None:
        """Add the next entry; ``path`` names the book in errors.

        Raise `FileError` if its kind is unknown here, and `KeyError`, `TypeError` or `ValueError`
        if it cannot be what was written.
        """
        content = entry.content
        if (entry.n == 1) != (entry.kind == "site"):
            raise ValueError("a book begins with its site")
        at = datetime.fromisoformat(content["at"])
        match entry.kind:
            case "site":
                self.site, self.signing = _text(content["name"]), _text(content["signing"])
                self.key = bytes.fromhex(content["key"])
                if len(self.key) != 32:
                    raise ValueError("the key has 32 bytes")
                self._set_cap(content)
            case "cap":
                self._set_cap(content)
            case "trust":
                self._trust(content)
            case "policy":
                self.policy = _digest(content["digest"])
            case "rows":
                _digest(content["blobs"]["rows"])
                self.rows.setdefault(_text(content["data_set"]), []).append(entry)
            case "answer":
                self._answer(entry)
            case "verified":
                _text(content["round_id"])
                self.verified.setdefault(_digest(content["digest"]), at)
            case _:
                raise FileError(
                    f"{path}: entry {entry.n} is of the kind {entry.kind[:40]!r}, which this "
                    "version of hushtable does not know: use the version that wrote it, or a newer "
                    "one (pip install --upgrade hushtable)"
                )

    def _set_cap(self, content: dict[str, Any]) -> None:
        self.epsilon = check_epsilon(content["epsilon"])
        self.delta = check_delta(content["delta"])

    def _trust(self, content: dict[str, Any]) -> None:
        card, role = Card.from_dict(content["card"]), content["role"]
        if role not in ROLES:
            raise ValueError(f"no role {role!r}")
        # Different keys under a name are a different party, regardless of the name's earlier roles.
        if self.cards.get(card.name) != card:
            self.cards[card.name], self.roles[card.name] = card, set()
            self.ways[card.name] = {}
        self.roles[card.name].add(role)
        if "how" in content:
            ways = self.ways[card.name].setdefault(role, {})
            ways.setdefault(_text(content["how"]), content["at"])

    def _answer(self, entry: Entry) -> None:
        content = entry.content
        if _text(content["round_id"]) in self.answers:
            raise ValueError("a round is answered once")
        _text(content["title"])
        for name in ("counts", "sent"):
            _digest(content["blobs"][name])
        datetime.fromisoformat(content["made"])
        spent = Spent.from_dict(content["spent"])
        self.answers[content["round_id"]] = entry
        charged = self.spent.setdefault(_text(content["data_set"]), [])
        is_paid = False
        if "stream" in content:
            period = content["period"]
            if type(period) is not int or period < 1:
                raise ValueError("no period")
            periods = self.streams.setdefault(_text(content["stream"]), {})
            # The first answer to a stream is charged for all its periods.
            is_paid = bool(periods) and spent in charged
            first = periods.setdefault(period, entry)
            if first.content["blobs"]["sent"] != content["blobs"]["sent"]:
                raise ValueError("noise is drawn once for each period")
        if not is_paid:
            charged.append(spent)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise ValueError("no digest")
    return str(value)
