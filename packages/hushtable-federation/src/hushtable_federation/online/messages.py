"""Messages of online rounds: signed, bound to a round and a step, the same on every transport."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import entries
from hushtable.errors import RoundError
from hushtable_federation.keys import Card, Keys
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import Round

Step = Literal["hello", "keys", "shares", "masked", "survivors", "unmask", "without", "end"]
#: Steps of the sum. Before them, a carrier that has to find the sites says hello; after them, the
#: coordinator may announce that the round has ended.
STEPS: tuple[Step, ...] = get_args(Step)[1:-1]
_REFUSED = "refused"
#: The most bytes of a header before its signature is checked: for 100 sites, it has a tenth.
_MOST_UNSIGNED = 4 << 20
#: Prefix of the names of arrays that hold messages of others.
_ENCLOSED = "of "
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
            try:
                word = Refusal(str(self.body.get("word")))
            except ValueError:  # from another version, or with a word that is not in the list
                word = Refusal.GARBLED
            raise Refused(word, f"{self.sender!r} refused: {word}")
        if self.round_id != round_.round_id:
            raise RoundError(
                f"{self.sender!r} answers round {self.round_id[:12]}, not {round_.round_id[:12]}"
            )
        if self.step != step:
            raise RoundError(f"{self.sender!r} answers step {self.step!r}, not {step!r}")
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
    return all(isinstance(one, str) for one in record) and sender.signs(*record)


def ask(
    round_: Round,
    step: Step,
    keys: Keys,
    body: dict[str, Any],
    arrays: files.Arrays | None = None,
    *,
    with_round: bool = True,
) -> bytes:
    """Return the coordinator's request for a step.

    The message contains the round, unless the node has it from elsewhere.
    """
    more = {"round": _bytes(round_.content)} if with_round else {}
    return _pack(round_.round_id, step, keys, body, {**(arrays or {}), **more})


def enclosed(contents: Mapping[str, bytes]) -> files.Arrays:
    """Return messages in the form to pass them on, with signatures, by name of the sender."""
    return {f"{_ENCLOSED}{name}": _bytes(content) for name, content in contents.items()}


def unclosed(message: Message) -> dict[str, bytes]:
    """Return the messages that a message passes on, by name."""
    return {
        name.removeprefix(_ENCLOSED): array.tobytes()
        for name, array in message.arrays.items()
        if name.startswith(_ENCLOSED)
    }


def _bytes(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)


def _pack(
    round_id: str, step: str, keys: Keys, body: dict[str, Any], arrays: files.Arrays
) -> bytes:
    record = {"round_id": round_id, "step": step, "sender": keys.card.name, "body": body}
    return files.pack("message", record, arrays, keys.sign)
