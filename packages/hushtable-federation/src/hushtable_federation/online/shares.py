"""Step ``shares``: each site checks the round, counts its rows, and deals shares of its secrets.

All that can fail for the sake of the rows fails here, before anybody spends. From then on a site
answers from its book alone.

The secrets of a site are the key of its own mask, and that of its mask with each other site: in
the order of the roster, its own at its own place.
"""

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.privacy.mechanisms import library
from hushtable_federation.masks import agree, seal
from hushtable_federation.masks.dealing import Dealing
from hushtable_federation.online.messages import Message
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import Round

#: Signed within the answer, so that it can be handed on without the rows for others.
_PUBLIC = "dealing"
_ARRAYS = ("secrets", "readers", "proof", "rows")


def answer(site: SiteState, _: Message | None) -> tuple[bytes, Kept]:
    """Check the round on every side, count the rows; deal shares of all keys of masks."""
    reply = site.reply()
    if not site.round.terms.masked:
        raise Refused(Refusal.ROUND, "steps are for masked rounds: ask for one")
    if reply.earlier is not None:
        raise Refused(
            Refusal.ANSWERED, "the round was answered before, by file: ask for a new round"
        )
    reply.check_known()
    library()  # without it there will be no noise, and no answer
    sketch = site.count(reply.plan)
    counts = reply.counted(sketch, outside_too=site.said.outside_too)
    seen = site.recognise()
    if seen is not None:
        site.book.check_people(reply.data_set, seen, site.said.new_people)
    site.keep_rows(counts, seen, sketch.persons)
    own_mask = secrets.token_bytes(32)
    pairs = agree.roster_keys(site.round, site.keys, agree.ONLINE)
    dealing, rows = Dealing.deal(
        about(site.round, site.me),
        [pairs.get(name, own_mask) for name in site.round.names],
        site.round.terms.least,
        len(site.round.names),
    )
    sealed = [
        seal.sealed(seal.row_key(site.round, site.keys, name), site.me, name, row)
        for name, row in zip(site.round.names, rows, strict=True)
    ]
    content, digest = _packed(site, dealing, sealed)
    return content, {"own_mask": own_mask.hex(), "digest": digest}


def _packed(site: SiteState, dealing: Dealing, sealed: list[bytes]) -> tuple[bytes, str]:
    """Return the answer, and the digest of its public part."""
    digests = [hashlib.sha256(row).digest() for row in sealed]
    arrays = {name: getattr(dealing, name) for name in _ARRAYS[:-1]}
    arrays["rows"] = _table(digests)
    public = Message.make(site.round, _PUBLIC, site.keys, {}, arrays)
    whole = {_PUBLIC: _table([public.content])[0], "sealed": _table(sealed)}
    return site.sign("shares", {}, whole), public.digest


def _table(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def about(round_: Round, dealer: str) -> bytes:
    """Return what binds a site's dealing to the round and to the site."""
    return f"{round_.round_id} {dealer}".encode()


# --- what was dealt, as others have it ------------------------------------------------------------


@dataclass(frozen=True)
class Dealt:
    """The public part of what a site dealt: checked, but for the proof, which is for readers.

    ``message`` is as the site signed it; ``rows`` are the digests of the sealed rows, of shape
    (n_sites, 32).
    """

    message: Message
    dealing: Dealing
    rows: NDArray[np.uint8]

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "Dealt":
        """Check what a site signed; raises `RoundError`."""
        message = Message.read(content, round_.card(site)).check(round_, _PUBLIC)
        n = len(round_.names)
        shapes = {"secrets": (n, 32), "readers": (n, 32), "rows": (n, 32)}
        shapes["proof"] = (round_.terms.least, 33)
        found = message.arrays
        if {name: found[name].shape for name in found} != shapes:
            raise RoundError(f"{site!r} did not deal its shares to all")
        dealing = Dealing(about(round_, site), *(found[name] for name in _ARRAYS[:-1]))
        if found["rows"].dtype != np.uint8:
            raise RoundError(f"{site!r} did not deal its shares to all")
        return cls(message, dealing, found["rows"])

    def is_row(self, place: int, sealed: bytes) -> bool:
        """Whether this is the sealed row for the reader at a place."""
        return hashlib.sha256(sealed).digest() == bytes(self.rows[place - 1])


def read(round_: Round, message: Message) -> tuple[Dealt, dict[str, bytes]]:
    """Return what a site dealt, and the sealed row of each reader; raises `RoundError`."""
    arrays, sender = message.arrays, message.sender
    if set(arrays) != {_PUBLIC, "sealed"} or any(a.dtype != np.uint8 for a in arrays.values()):
        raise RoundError(f"{sender!r} did not deal its shares to all")
    dealt = Dealt.read(round_, sender, arrays[_PUBLIC].tobytes())
    width = dealt.dealing.row_bytes + seal.SEAL_BYTES
    if arrays["sealed"].shape != (len(round_.names), width):
        raise RoundError(f"{sender!r} did not deal its shares to all")
    rows = {name: arrays["sealed"][i].tobytes() for i, name in enumerate(round_.names)}
    if not all(dealt.is_row(seal.place(round_, name), row) for name, row in rows.items()):
        raise RoundError(f"{sender!r} dealt other rows of shares than it signed")
    return dealt, rows
