"""Messages of the online form: signed, bound to a round and a step, the same on every transport."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hushtable import files
from hushtable.entries import entries
from hushtable.errors import RoundError
from hushtable.federation.keys import Card, Keys
from hushtable.federation.refusals import Refusal, Refused
from hushtable.federation.round import Round

Step = Literal["hello", "keys", "shares", "masked", "survivors", "unmask"]
#: Of the sum; before them, whoever has to find out where a site is says hello.
STEPS: tuple[Step, ...] = get_args(Step)[1:]
_REFUSED = "refused"
_ENTRIES = {"round_id": str, "step": str, "sender": str, "body": dict}


@dataclass(frozen=True)
class Message:
    """A request of the coordinator, or a site's answer, in one step."""

    round_id: str
    #: One of `Step`, or ``"refused"`` for an answer that says in one word why there is none.
    step: str
    #: Name of who signed.
    sender: str
    body: dict[str, Any]
    #: SHA-256 of all of it.
    digest: str
    #: The message as it travels.
    content: bytes

    @classmethod
    def make(cls, round_: Round, step: str, keys: Keys, body: dict[str, Any]) -> "Message":
        """Sign an answer."""
        return cls.read(_pack(round_.round_id, step, keys, body, {}), keys.card)

    @staticmethod
    def refuse(round_id: str, keys: Keys, word: Refusal) -> bytes:
        """Return a refusal; ``round_id`` is empty where the request names no round."""
        return _pack(round_id, _REFUSED, keys, {"word": word.value}, {})

    @classmethod
    def read(cls, content: bytes, sender: Card) -> "Message":
        """Check and read a message; raises `RoundError` if it is not from that sender."""
        read = files.unpack(content, f"message of {sender.name}")
        if read.kind != "message" or not sender.signed(read):
            raise RoundError(f"a message does not carry the signature of {sender.name!r}")
        return read.build(lambda read: cls._from_file(read, sender, content))

    @classmethod
    def _from_file(cls, read: files.Content, sender: Card, content: bytes) -> "Message":
        said: dict[str, Any] = {name: read.manifest.get(name) for name in _ENTRIES}
        entries(said, "a message", _ENTRIES)
        if said["sender"] != sender.name:
            raise RoundError(f"a message of {said['sender']!r} is signed by {sender.name!r}")
        return cls(**said, digest=read.digest, content=content)

    def check(self, round_: Round, step: str) -> "Message":
        """Return the message if it belongs to this round and step; raises `RoundError`.

        Of a site that refuses, `Refused` with its word.
        """
        if self.step == _REFUSED and self.round_id in ("", round_.round_id):
            try:
                word = Refusal(str(self.body.get("word")))
            except ValueError:  # of another version, or a word that means to say something else
                word = Refusal.GARBLED
            raise Refused(word, f"{self.sender!r} refused: {word}")
        if self.round_id != round_.round_id:
            raise RoundError(
                f"{self.sender!r} answers round {self.round_id[:12]}, not {round_.round_id[:12]}"
            )
        if self.step != step:
            raise RoundError(f"{self.sender!r} answers step {self.step!r}, not {step!r}")
        return self


def ask(round_: Round, step: Step, keys: Keys, body: dict[str, Any]) -> bytes:
    """Return the coordinator's request for a step; the round travels with each."""
    round_file = np.frombuffer(round_.content, np.uint8)
    return _pack(round_.round_id, step, keys, body, {"round": round_file})


def _pack(
    round_id: str, step: str, keys: Keys, body: dict[str, Any], arrays: files.Arrays
) -> bytes:
    said = {"round_id": round_id, "step": step, "sender": keys.card.name, "body": body}
    return files.pack("message", said, arrays, keys.sign)
