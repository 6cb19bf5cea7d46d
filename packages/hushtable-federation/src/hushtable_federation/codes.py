"""Short codes for comparing all cards of many people in one call.

Each party commits to a random number before it has seen the numbers of the others, and reveals its
own after it has fixed the set of cards that it saw. The code is a hash of both. An attacker who
swaps a card in transit has to fix every commitment before the last honest number is known, and
therefore has one attempt at a code of nine digits: one in 10^9 for each meeting, with any computing
power that does not break SHA-256. Without commitments, an attacker could try all nine-digit codes
within seconds.

For two parties this is what ZRTP does (RFC 6189, section 4.4), and S. Vaudenay, *Secure
Communications over Insecure Channels Based on Short Authenticated Strings* (CRYPTO 2005), proves;
for groups see S. Laur and S. Pasini, *SAS-Based Group Authentication and Key Agreement Protocols*
(PKC 2008).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import rfc8785

from hushtable.arguments import entries, is_digest
from hushtable.errors import FileError, RoundError
from hushtable_federation.keys import Card, Keys, check_name, parsed_json
from hushtable_federation.round import check_roster

#: Digits of a code: about 30 bits.
DIGITS = 9
#: The most bytes of a hello or a reveal: a reveal may name 1,000 parties.
MOST = 1 << 18


def shown_code(code: str) -> str:
    """Return a code for people to read, in groups of three digits."""
    return " ".join(code[i : i + 3] for i in range(0, len(code), 3))


def _digest(*content: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(list(content))).hexdigest()


def _commitment(card: Card, nonce: str) -> str:
    # The nonce has 256 random bits, so its hash reveals nothing about it.
    return _digest("hushtable commitment", card.to_dict(), nonce)


@dataclass(frozen=True)
class Hello:
    """A party's card, with a commitment to a number that the party has drawn.

    Attributes
    ----------
    card : Card
        The party's.
    commitment : str
        SHA-256 over the card and the number, 64 hexadecimal digits.
    signature : str
        Over both, by the card's owner.
    """

    card: Card
    commitment: str
    signature: str

    def __post_init__(self) -> None:
        if not is_digest(self.commitment) or not self.card.signs(
            "hello", self.digest, self.signature
        ):
            raise RoundError(
                f"the hello of {self.card.name!r} is forged, or the file was edited: ask "
                f"{self.card.name!r} to run hushtable round meet again"
            )

    @classmethod
    def make(cls, keys: Keys, nonce: str) -> "Hello":
        """Commit to a number, given as 64 hexadecimal digits."""
        commitment = _commitment(keys.card, nonce)
        return cls(keys.card, commitment, keys.sign("hello", _hello(keys.card, commitment)))

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of card and commitment."""
        return _hello(self.card, self.commitment)

    def to_dict(self) -> dict[str, Any]:
        """Return the hello for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> "Hello":
        """Read back what `to_dict` wrote; raise `RoundError` on anything else."""
        needed = {"card": object, "commitment": str, "signature": str}
        record = entries(content, "a hello", needed, error=RoundError)
        return cls(Card.from_dict(record["card"]), record["commitment"], record["signature"])

    def to_bytes(self) -> bytes:
        """Return the file that the others read."""
        return _packed("hello", self.to_dict())

    @classmethod
    def from_bytes(cls, content: bytes, path: str | PathLike[str]) -> "Hello":
        """Read a file; raise `FileError` or `RoundError` if it holds no valid hello."""
        return cls.from_dict(parsed_json(content, path, "hello", "meet"))


def _hello(card: Card, commitment: str) -> str:
    return _digest("hushtable hello", card.to_dict(), commitment)


@dataclass(frozen=True)
class Reveal:
    """A party's number, and the cards that it saw before it revealed the number.

    Attributes
    ----------
    name : str
        Of the party.
    nonce : str
        The number, 64 hexadecimal digits.
    coordinator : str
        Name of the party that opens the rounds.
    saw : dict of str to str
        The digest of each `Hello` that it has fixed, by name.
    signature : str
        The party's signature over all of these.
    """

    name: str
    nonce: str
    coordinator: str
    saw: dict[str, str]
    signature: str

    def __post_init__(self) -> None:
        for name in (self.name, self.coordinator, *self.saw):
            check_name(name)
        if not is_digest(self.nonce) or not all(map(is_digest, self.saw.values())):
            raise RoundError(f"the reveal of {self.name!r} holds no numbers in hexadecimal digits")

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the signed content."""
        return _reveal(self.name, self.nonce, self.coordinator, self.saw)

    def to_bytes(self) -> bytes:
        """Return the file that the others read."""
        return _packed("reveal", asdict(self))

    @classmethod
    def from_bytes(cls, content: bytes, path: str | PathLike[str]) -> "Reveal":
        """Read a file; raise `FileError` or `RoundError` if it holds no reveal."""
        needed = {"name": str, "nonce": str, "coordinator": str, "saw": dict, "signature": str}
        record = parsed_json(content, path, "reveal", "meet")
        return cls(**entries(record, "a reveal", needed, error=RoundError))


def _reveal(name: str, nonce: str, coordinator: str, saw: dict[str, str]) -> str:
    return _digest("hushtable reveal", name, nonce, coordinator, saw)


@dataclass(frozen=True)
class Seen:
    """Everything that a party saw, fixed before it reveals its number.

    Attributes
    ----------
    hellos : tuple of Hello
        The hellos of all parties, sorted by name.
    coordinator : str
        Name of the party that opens the rounds.
    """

    hellos: tuple[Hello, ...]
    coordinator: str

    def __post_init__(self) -> None:
        cards = self.cards
        if self.coordinator not in cards:
            raise RoundError(
                f"the coordinator {self.coordinator!r} is not among {', '.join(cards)}"
            )
        check_roster([hello.card for hello in self.hellos], cards[self.coordinator])

    @property
    def cards(self) -> dict[str, Card]:
        """Return all cards, by name."""
        return {hello.card.name: hello.card for hello in self.hellos}

    @property
    def saw(self) -> dict[str, str]:
        """Return the digest of each hello, by name."""
        return {hello.card.name: hello.digest for hello in self.hellos}

    def reveal(self, keys: Keys, nonce: str) -> Reveal:
        """Reveal the number behind these keys' hello, only for this set.

        Raise `RoundError` if the set has a different hello under this name: revealing the number
        then would give it to an attacker who swapped the card.
        """
        name, saw = keys.card.name, self.saw
        if saw.get(name) != Hello.make(keys, nonce).digest:
            raise RoundError(f"the cards do not contain {name!r}'s own card: nothing was revealed")
        signature = keys.sign("reveal", _reveal(name, nonce, self.coordinator, saw))
        return Reveal(name, nonce, self.coordinator, saw, signature)

    def signed(self, reveal: Reveal) -> bool:
        """Return whether a reveal is signed by the party that it names."""
        card = self.cards.get(reveal.name)
        return card is not None and card.signs("reveal", reveal.digest, reveal.signature)

    def check(self, reveal: Reveal) -> None:
        """Raise `RoundError` unless a party saw the same cards and revealed its commitment."""
        name = reveal.name
        if not self.signed(reveal):
            raise RoundError(
                f"the reveal of {name!r} is forged, or from another meeting: ask {name!r} to run "
                "hushtable round meet again"
            )
        if reveal.coordinator != self.coordinator:
            raise RoundError(
                f"{name!r} names {reveal.coordinator!r} as the coordinator, but here it is "
                f"{self.coordinator!r}: agree on one, and begin again with --again in a new folder"
            )
        differs = {*reveal.saw.items()} ^ {*self.saw.items()}
        if differs:
            names = ", ".join(sorted({repr(one) for one, _ in differs})[:5])
            raise RoundError(
                f"{name!r} has seen a different card or commitment of {names} than you: someone "
                "may have swapped one. Trust no card yet: compare these fingerprints with "
                f"{name!r} on the phone, and begin again with --again in a new folder"
            )
        hello = next(hello for hello in self.hellos if hello.card.name == name)
        if _commitment(hello.card, reveal.nonce) != hello.commitment:
            raise RoundError(
                f"{name!r} revealed a number that differs from its commitment: trust no card, ask "
                f"{name!r} on the phone, and begin again with --again in a new folder"
            )

    def code(self, reveals: Mapping[str, Reveal]) -> str:
        """Return the code: nine decimal digits, the same for all parties that saw the same cards.

        Takes all reveals, by name; raises `RoundError` if one is missing, or fails `check`.
        """
        missing = sorted({*self.saw} - {*reveals})
        if missing:
            raise RoundError(
                f"the reveals of {', '.join(missing)} are missing: the code needs all of them"
            )
        for name in self.saw:
            self.check(reveals[name])
        nonces = {name: reveals[name].nonce for name in self.saw}
        number = int(_digest("hushtable code", self.coordinator, self.saw, nonces), 16)
        return f"{number % 10**DIGITS:0{DIGITS}d}"


def _packed(kind: str, content: dict[str, Any]) -> bytes:
    return json.dumps({"hushtable": kind, **content}, indent=2).encode()


def read_hellos(contents: Mapping[str, bytes], name: str) -> Hello:
    """Return the only hello of a party, from the files under its name.

    Raise `FileError` if none of them can be read, because it may still be arriving, and
    `RoundError` if two of them differ, or one is from someone else.
    """
    found: dict[str, Hello] = {}
    failure: Exception = FileError(f"the hello of {name!r} is incomplete")
    for path, content in contents.items():
        try:
            hello = Hello.from_bytes(content, path)
        except (FileError, RoundError) as error:
            failure = error
            continue
        if hello.card.name != name:
            raise RoundError(
                f"{path}: holds the card of {hello.card.name!r} under another name: someone moved "
                "it; have it removed, and run the command again"
            )
        found[hello.digest] = hello
    if len(found) > 1:
        raise RoundError(
            f"the folder holds {len(found)} different hellos of {name!r}: one is from another "
            f"meeting, or someone else's. Ask {name!r}, and begin again with --again in a new "
            "folder"
        )
    if not found:
        raise FileError(str(failure))
    return next(iter(found.values()))
