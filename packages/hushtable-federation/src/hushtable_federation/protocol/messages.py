"""Messages of masked rounds, and the statements in them: signed, bound to a round and a step."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import entries, is_digest
from hushtable.errors import RoundError
from hushtable_federation.keys import Card, Keys
from hushtable_federation.protocol import masks
from hushtable_federation.refusals import Refusal, Refused, raise_first
from hushtable_federation.round import Round
from hushtable_federation.terms import PROTOCOL

Step = Literal["hello", "keys", "shares", "masked", "survivors", "unmask", "end"]
#: Steps of the sum. Before them, a carrier that has to find the sites says hello; after them, the
#: coordinator may announce that the round has ended.
STEPS: tuple[Step, ...] = get_args(Step)[1:-1]
_REFUSED = "refused"
#: The most bytes of a header before its signature is checked: for 100 sites, it has a tenth.
_MOST_UNSIGNED = 4 << 20
_ENTRIES = {"round_id": str, "step": str, "sender": str, "body": dict}


@dataclass(frozen=True)
class Message:
    """A request of the coordinator, or a site's answer, in one step."""

    round_id: str
    #: One of `Step`, or ``"refused"`` for an answer that states in one word why there is none.
    step: str
    #: Name of the signer.
    sender: str
    body: dict[str, Any]
    #: SHA-256 of all of it.
    digest: str
    #: The message as it is sent.
    content: bytes
    #: Arrays of bytes, uint8, as the step needs them.
    arrays: files.Arrays = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        round_: Round,
        step: str,
        keys: Keys,
        body: dict[str, Any],
        arrays: files.Arrays | None = None,
    ) -> "Message":
        """Sign an answer."""
        return cls.read(_pack(round_.round_id, step, keys, body, arrays or {}), keys.card)

    @staticmethod
    def refuse(round_id: str, keys: Keys, word: Refusal) -> bytes:
        """Return a refusal; ``round_id`` is empty if the request names no round."""
        return _pack(round_id, _REFUSED, keys, {"word": word.value}, {})

    @classmethod
    def read(cls, content: bytes, sender: Card) -> "Message":
        """Check and read a message; raise `RoundError` if it is not from that sender."""
        read = files.unpack(content, f"message of {sender.name}")
        if read.kind != "message" or not sender.signed(read):
            raise RoundError(f"a message does not have the signature of {sender.name!r}")
        return read.build(lambda read: cls._from_file(read, sender, content))

    @classmethod
    def _from_file(cls, read: files.Content, sender: Card, content: bytes) -> "Message":
        record: dict[str, Any] = {name: read.manifest.get(name) for name in _ENTRIES}
        entries(record, "a message", _ENTRIES)
        if record["sender"] != sender.name:
            raise RoundError(f"a message of {record['sender']!r} is signed by {sender.name!r}")
        return cls(**record, digest=read.digest, content=content, arrays=read.arrays)

    def check(self, round_: Round, step: str) -> "Message":
        """Return the message if it belongs to this round and step; raise `RoundError` otherwise.

        If the site refuses, raise `Refused` with its word.
        """
        if self.step == _REFUSED and self.round_id in ("", round_.round_id):
            # Another version may have words that are not in this list.
            stated = self.body.get("word")
            word = next((refusal for refusal in Refusal if refusal == stated), Refusal.GARBLED)
            raise Refused(word, f"{self.sender!r} refused: {word}")
        faults = {
            f"{self.sender!r} answers round {self.round_id[:12]}, not {round_.round_id[:12]}": (
                self.round_id != round_.round_id
            ),
            f"{self.sender!r} answers step {self.step!r}, not {step!r}": self.step != step,
        }
        raise_first(RoundError, faults)
        return self


def is_signed(content: bytes, sender: Card) -> bool:
    """Return whether a file has the sender's signature on the digest that it claims.

    Nothing else is checked. This is fast, and avoids reading files that strangers wrote.
    """
    size = int.from_bytes(content[:8], "little")
    if size > min(len(content) - 8, _MOST_UNSIGNED):
        return False
    try:
        text = json.loads(content[8 : 8 + size])["__metadata__"]["hushtable"]
        manifest = json.loads(text)
        record = [manifest[name] for name in ("kind", "digest", "signature")]
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    return all(isinstance(field, str) for field in record) and sender.signs(*record)


def ask(
    round_: Round,
    step: Step,
    keys: Keys,
    body: dict[str, Any],
    arrays: files.Arrays | None = None,
) -> bytes:
    """Return the coordinator's request for a step; the first ones contain the round."""
    first = step in ("hello", "keys")
    more = {"round": np.frombuffer(round_.content, np.uint8)} if first else {}
    return _pack(round_.round_id, step, keys, body, {**(arrays or {}), **more})


def _pack(
    round_id: str, step: str, keys: Keys, body: dict[str, Any], arrays: files.Arrays
) -> bytes:
    record = {"round_id": round_id, "step": step, "sender": keys.card.name, "body": body}
    return files.pack("message", record, arrays, keys.sign)


def table(rows: Collection[bytes], width: int) -> NDArray[np.uint8]:
    """Return texts of one length as an array of shape (n, width)."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)


def read_table(message: Message, name: str, n_rows: int, width: int) -> NDArray[np.uint8]:
    """Return what `table` made; raise `RoundError` unless it has this shape."""
    table = message.arrays.get(name)
    if table is None or table.dtype != np.uint8 or table.shape != (n_rows, width):
        raise RoundError(f"{message.sender!r} sent {name} of the wrong form")
    return table


def _names(record: Any, round_: Round, what: str) -> list[str]:
    """Return sorted names of sites; raise `RoundError` on anything else."""
    if not isinstance(record, list) or not all(isinstance(name, str) for name in record):
        raise RoundError(f"{what} names no sites")
    if not set(record) <= set(round_.names) or record != sorted(set(record)):
        raise RoundError(f"{what} names sites that are not in the round, or not in order")
    return record


def digest_of(*record: Any) -> str:
    """Return the SHA-256 of a record of this protocol, as JSON."""
    return hashlib.sha256(rfc8785.dumps(["hushtable", PROTOCOL, *record])).hexdigest()


# --- keys for the round ---------------------------------------------------------------------------


class NoKeyError(RoundError):
    """The keys that a site signed for a round include one that is no key."""


#: The kind in the signature under the keys for a round, as `Keys.sign` has it.
_KIND = "round keys"
_KEY_BYTES = 32
#: Length of the keys for a round as they are passed on: two keys and a signature.
STATEMENT_BYTES = 2 * _KEY_BYTES + masks.SIGNATURE_BYTES


class RoundKeys(NamedTuple):
    """A site's public keys for a round, to mask and to seal with, in hexadecimal digits.

    The site signs both together; others pass them on as `content`.
    """

    mask: str
    seal: str
    signature: str

    @classmethod
    def sign(cls, round_: Round, keys: Keys, mask: str, seal: str) -> "RoundKeys":
        """Sign the public halves of two new key pairs."""
        digest = digest_of("keys", round_.round_id, keys.card.name, mask, seal)
        return cls(mask, seal, keys.sign(_KIND, digest))

    @classmethod
    def of(cls, round_: Round, site: str, content: bytes) -> "RoundKeys":
        """Check keys that were passed on; raise `RoundError` if the site did not sign them.

        With some points, no site can agree on a key, so one of them would stop all others.
        """
        mask, seal = content[:_KEY_BYTES].hex(), content[_KEY_BYTES : 2 * _KEY_BYTES].hex()
        made = cls(mask, seal, content[2 * _KEY_BYTES :].hex())
        digest = digest_of("keys", round_.round_id, site, mask, seal)
        if not round_.card(site).signs(_KIND, digest, made.signature):
            raise RoundError(f"the keys of {site!r} for this round do not have its signature")
        try:
            for public in (mask, seal):
                masks.exchange(masks.draw_key(), public)
        except RoundError as error:
            raise NoKeyError(f"{site!r} sent no valid key for this round: {error}") from None
        return made

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "RoundKeys":
        """Read a site's answer to the step ``keys``; raise as `of` does."""
        return cls.of_message(round_, Message.read(content, round_.card(site)))

    @classmethod
    def of_message(cls, round_: Round, message: Message) -> "RoundKeys":
        """Return the keys in a site's answer to the step ``keys``; raise as `of` does."""
        content = read_table(message.check(round_, "keys"), "keys", 1, STATEMENT_BYTES)
        return cls.of(round_, message.sender, content.tobytes())

    @property
    def content(self) -> bytes:
        """Return the keys as others pass them on: `STATEMENT_BYTES`."""
        return bytes.fromhex(self.mask + self.seal + self.signature)

    @property
    def digest(self) -> str:
        """Return the digest of both keys."""
        return digest_of("key pair", self.mask, self.seal)


def digest_of_keys(digests: Mapping[str, str]) -> str:
    """Return the digest of the keys that a site masks with, from their digests by site."""
    return digest_of("all keys", dict(digests))


def passed_on(keys: Mapping[str, bytes]) -> tuple[dict[str, Any], files.Arrays]:
    """Return body and arrays of a message that passes on keys for the round."""
    each = [keys[name] for name in sorted(keys)]
    return {"names": sorted(keys)}, {"keys": table(each, STATEMENT_BYTES)}


def read_passed_on(round_: Round, message: Message) -> dict[str, bytes]:
    """Return the keys that a message passes on, by site; their signatures are not checked."""
    names = _names(message.body.get("names"), round_, f"a message of {message.sender!r}")
    rows = read_table(message, "keys", len(names), STATEMENT_BYTES)
    return {name: row.tobytes() for name, row in zip(names, rows, strict=True)}


# --- what a site dealt ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Dealt:
    """The shares that a site dealt, as the coordinator reads them.

    ``seed`` is the commitment of its seed; ``keys`` are the keys that it masks with, by site, its
    own among them, as they are passed on; ``rows`` are the sealed rows, by reader.
    """

    sender: str
    digest: str
    seed: str
    keys: dict[str, bytes]
    rows: dict[str, bytes]

    @classmethod
    def of_message(cls, round_: Round, message: Message) -> "Dealt":
        """Return what a site dealt; raise `RoundError` if it has the wrong form."""
        keys = read_passed_on(round_, message.check(round_, "shares"))
        seed = message.body.get("seed")
        if message.sender not in keys or not isinstance(seed, str) or not is_digest(seed):
            raise RoundError(f"{message.sender!r} did not deal shares as it has to")
        rows = read_table(message, "rows", len(keys), masks.SEALED_BYTES)
        each = {name: row.tobytes() for name, row in zip(sorted(keys), rows, strict=True)}
        return cls(message.sender, message.digest, seed, keys, each)

    @cached_property
    def digests(self) -> dict[str, str]:
        """Return the digests of the keys, by site."""
        return {name: digest_of_content(key) for name, key in self.keys.items()}

    def context(self, round_: Round, reader: str) -> masks.Context:
        """Return what the signature under the shares of a reader is bound to."""
        keys = digest_of_keys(self.digests)
        return masks.Context(round_.round_id, self.sender, reader, keys, self.seed)


@lru_cache(4096)  # each site passes on the keys of all sites
def digest_of_content(content: bytes) -> str:
    """Return the digest of keys as they are passed on, which `RoundKeys.digest` also is."""
    end = 2 * _KEY_BYTES
    return RoundKeys(content[:_KEY_BYTES].hex(), content[_KEY_BYTES:end].hex(), "").digest


# --- the list of sites in the sum -----------------------------------------------------------------


@dataclass(frozen=True)
class SumList:
    """Which sites are in the sum, and which others dealt shares of their mask keys.

    Attributes
    ----------
    sites : dict of str to dict
        By site in the sum: the digests of its masked counts (``masked``) and of its seed
        (``seed``).
    others : dict of str to str
        By other site: the digest of its seed. All others that drew a key dealt nothing.
    """

    sites: dict[str, dict[str, str]] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, round_: Round, record: Any) -> "SumList":
        """Read a list; raise `RoundError` on anything but what `to_dict` returned."""
        kinds = {"sites": dict, "others": dict}
        content = entries(record, "the list of sites", kinds, error=RoundError)
        made = cls(content["sites"], content["others"])
        names = {*made.sites, *made.others}
        digests = [*made.others.values()]
        for entry in made.sites.values():
            entries(entry, "a site on the list", {"masked": str, "seed": str}, error=RoundError)
            digests += entry.values()
        faults = {
            "the list of sites is malformed": not all(map(is_digest, digests)),
            "the list names sites that are not in the round, or names one twice": (
                not names <= set(round_.names) or len(names) < len(made.sites) + len(made.others)
            ),
        }
        raise_first(RoundError, faults)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the list for JSON."""
        return {"sites": self.sites, "others": self.others}

    def digest(self, round_: Round) -> str:
        """Return the digest that sites sign."""
        return digest_of("list", round_.round_id, self.to_dict())

    @property
    def dealers(self) -> dict[str, str]:
        """Return the sites whose rows come with the list, each with the digest of its seed."""
        return {name: entry["seed"] for name, entry in self.sites.items()} | self.others


#: The kind in the signature under a list, as `Keys.sign` has it.
LIST = "list of sites"
