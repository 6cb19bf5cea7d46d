"""Hidden hash functions: a secret that the sites share, sealed, and plans drawn from it."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rfc8785

from hushtable import files
from hushtable.arguments import entries, translate_errors
from hushtable.counts.base import Counts
from hushtable.data.schema import Schema
from hushtable.errors import FileError, PlanError, RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable_federation.keys import Card, Keys, check_private, crypto
from hushtable_federation.masks import agreed_key
from hushtable_federation.policy import Role
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import check_roster


def draw_hidden(
    secret: bytes, schema: Schema, *, marginals: Counts | None = None, **parameters: Any
) -> Plan:
    """Draw the plan that everyone with the secret draws; its files are only for the sites.

    Takes the arguments of `Plan.draw`, except the seed.
    """
    after = marginals.release_id if marginals is not None else ""
    source = generator(secret, schema, after)
    plan = Plan.draw(schema, marginals=marginals, random_state=source, **parameters)
    return replace(plan, hidden=True)


def generator(secret: bytes, schema: Schema, *purpose: str) -> np.random.Generator:
    """Return the generator of hash functions that a secret determines.

    The secret has 32 or more bytes that no one can guess: without it, the plan's id reveals nothing
    about the plan. The purpose separates this draw from others; an example is the id of a release
    that refines the plan.
    """
    check_secret(secret)
    c = crypto()
    info = rfc8785.dumps(["hushtable", "plan", schema.to_dict(), *purpose])
    seed = c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(secret)
    return np.random.default_rng(int.from_bytes(seed))


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """Read a file written by ``hushtable round secret``.

    Raise `FileError` if it holds none, and `PrivacyError` if others may read it.
    """
    try:
        secret = bytes.fromhex(Path(path).read_text().strip())
    except (ValueError, UnicodeDecodeError):
        raise FileError(
            f"{path}: this is not a secret: give a file of hushtable round secret"
        ) from None
    check_private(path, "make a new secret (hushtable round secret) and draw the plans again")
    return secret


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read the plan that the sites share in a round with hidden hash functions.

    Raise `FileError` if it holds no plan, and `PrivacyError` if others may read it. Histograms of a
    first round follow from the schema alone, and others may read them unless the file states
    otherwise.
    """
    file = files.read(path)
    if file.kind == "layout":
        raise FileError(f"{path}: holds {file.held}: give the plan, which the sites share")
    plan = file.build(Plan.from_file)
    if plan.hidden or not plan.purpose.refines:
        check_private(path, "draw another plan from a new secret (hushtable round secret)")
    return replace(plan, hidden=True)


#: The least number of bytes of a secret, too many to guess.
LEAST = 32

#: Fingerprints by name of the parties that a site knows in each role; `Policy.pins` returns them.
Known = Mapping[Role, Mapping[str, str]]

#: A key seals only one copy, so a constant nonce is safe.
_NONCE = bytes(12)
_HEX = frozenset("0123456789abcdef")


def seal_secret(secret: bytes, keys: Keys, cards: Sequence[Card]) -> bytes:
    """Return the file that passes a secret from one site to the others, and that it can open, too.

    The secret has 32 or more bytes that no one can guess; the cards are those of the other sites,
    never of the coordinator. Raise `UsageError` or `RoundError` if the secret is too short, there
    is no other site, or two cards share a name or keys.
    """
    check_secret(secret)
    readers = tuple(sorted({keys.card, *cards}, key=lambda card: card.name))
    if len(readers) < 2:
        raise UsageError("a secret is sealed for other sites: give their cards (--site)")
    check_roster(readers, keys.card)
    drawn = crypto().X25519PrivateKey.generate()
    key = drawn.public_key().public_bytes_raw().hex()
    about = _context(keys.card, key, readers)
    copies = [
        _cipher(drawn, card.masking, about, card).encrypt(_NONCE, secret, None).hex()
        for card in readers
    ]
    record = {
        "sender": keys.card.to_dict(),
        "key": key,
        "readers": [card.to_dict() for card in readers],
        "copies": copies,
    }
    return files.pack("secret", {"secret": record}, {}, keys.sign)


def check_secret(secret: bytes) -> bytes:
    """Return a secret if it is long enough; raise `UsageError` otherwise."""
    if len(secret) < LEAST:
        raise UsageError(
            f"the secret has {len(secret)} bytes: needs at least {LEAST} that no one can guess "
            "(hushtable round secret)"
        )
    return secret


@dataclass(frozen=True)
class SealedSecret:
    """A sealed secret that was read, with its sender and readers. Its signature was checked.

    Attributes
    ----------
    sender : Card
        The site that drew, sealed and signed it.
    readers : tuple of Card
        The sites that can open it, including the sender, sorted by name.
    key : str
        X25519 public key drawn for this file, in hexadecimal digits.
    copies : tuple of str
        The sealed secret, one copy per reader, in hexadecimal digits.
    path : str
        Path of the file, in messages.
    """

    sender: Card
    readers: tuple[Card, ...]
    key: str
    copies: tuple[str, ...]
    path: str = "the secret"

    @classmethod
    def from_bytes(cls, content: bytes, path: str = "the secret") -> "SealedSecret":
        """Check and read a file; ``path`` names it in errors.

        Raise `FileError` if it is not an intact file of a sealed secret, and `RoundError` if the
        sender named in it did not sign it.
        """
        read = files.unpack(content, path).expect("secret")
        made = read.build(cls._from_file)
        if not made.sender.signed(read):
            raise RoundError(
                f"{path}: the signature is not that of {made.sender.name!r}: the secret was forged "
                "or edited; get it again from that site"
            )
        return made

    @classmethod
    def _from_file(cls, read: files.Content) -> "SealedSecret":
        needed = {"sender": object, "key": str, "readers": list[object], "copies": list[str]}
        record = entries(read.manifest.get("secret"), "a sealed secret", needed)
        with translate_errors(PlanError, "a sealed secret"):
            sender = Card.from_dict(record["sender"])
            readers = tuple(map(Card.from_dict, record["readers"]))
            check_roster(readers, sender)
        if sender not in readers:
            raise PlanError("the sender of the secret is not one of its readers")
        texts, least = (record["key"], *record["copies"]), 2 * (LEAST + 16)
        right = len(record["key"]) == 64 and len(record["copies"]) == len(readers)
        if not right or any(set(text) - _HEX or len(text) % 2 for text in texts):
            raise PlanError("a sealed secret needs a key, and a copy for each reader")
        if min(map(len, record["copies"])) < least:
            raise PlanError("a copy of the secret is too short to hold one")
        return cls(sender, readers, record["key"], tuple(record["copies"]), str(read.path))

    def strangers(self, me: Card, known: Known) -> list[Card]:
        """Return the readers that a site does not know as sites, and has to check."""
        return [
            card
            for card in self.readers
            if card != me and known["site"].get(card.name) != card.fingerprint
        ]

    def check_reader(self, me: Card) -> None:
        """Raise `RoundError` if it was not sealed for this card."""
        if me in self.readers:
            return
        names = ", ".join(repr(card.name) for card in self.readers)
        raise RoundError(
            f"{self.path}: sealed for {names}, not for the keys of {me.name!r} ({me.fingerprint}): "
            f"if this is a site, send its card to {self.sender.name!r}, and request a new secret; "
            "a coordinator gets none"
        )

    def open(self, keys: Keys, known: Known) -> bytes:
        """Return the secret.

        Raise `RoundError` if it was not sealed for these keys, was changed, is not from a site that
        is ``known`` here, or can be read by a party that is known only as a coordinator.
        """
        me = keys.card
        self.check_reader(me)
        self._check_people(me, known)
        copy = bytes.fromhex(self.copies[self.readers.index(me)])
        about = _context(self.sender, self.key, self.readers)
        try:
            opened = _cipher(keys.masking, self.key, about, me).decrypt(_NONCE, copy, None)
        except crypto().InvalidTag:
            raise RoundError(
                f"{self.path}: the copy for {me.name!r} does not open: it was sealed for another "
                f"file, or for other keys; ask {self.sender.name!r} for a new secret"
            ) from None
        return check_secret(bytes(opened))

    def _check_people(self, me: Card, known: Known) -> None:
        strangers = self.strangers(me, known)
        leads = set(known["coordinator"].values())
        for card in strangers:
            if card.fingerprint in leads:
                did = "was sealed by" if card == self.sender else "can be read by"
                raise Refused(
                    Refusal.UNKNOWN,
                    f"{self.path}: it {did} {card.name!r}, who is known here as a coordinator, so "
                    "the hash functions would not be hidden. Have a site make a new secret, only "
                    "for the sites (hushtable round secret)",
                )
        if self.sender in strangers:
            name = self.sender.name
            before = known["site"].get(name)
            what = "is not known here" if before is None else f"is known here as {before}"
            raise Refused(
                Refusal.UNKNOWN,
                f"{self.path}: sealed by {name!r} with the keys {self.sender.fingerprint}, and "
                f"{name!r} {what}: compare the fingerprint with its people, and give its card with "
                "--trust (where the policy names sites, name it there)",
            )


def _context(sender: Card, key: str, readers: Sequence[Card]) -> str:
    """Return the digest of everything that a copy is bound to."""
    record: Any = [sender.to_dict(), key, [card.to_dict() for card in readers]]
    return hashlib.sha256(b"hushtable secret:" + rfc8785.dumps(record)).hexdigest()


def _cipher(mine: Any, theirs: str, about: str, reader: Card) -> Any:
    return crypto().ChaCha20Poly1305(agreed_key(mine, theirs, "secret", about, reader.name))
