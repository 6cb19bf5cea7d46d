"""Keys that two sites agree on, and nobody else has: X25519, then HKDF-SHA256."""

from typing import Any

import rfc8785

from hushtable.errors import RoundError
from hushtable_federation.keys import Keys, crypto
from hushtable_federation.round import Round

#: Purpose of the keys of masks in a round that goes on without lost sites.
ONLINE = "online masks"


def agreed_key(mine: Any, theirs: str, *purpose: str) -> bytes:
    """Return the 32 bytes that the holders of a private and a public key agree on.

    The purpose is the same at both; a key for another one, another round or another pair has
    nothing in common with it. Raises `RoundError` if the other's key is none.
    """
    c = crypto()
    try:
        shared = mine.exchange(c.X25519PublicKey.from_public_bytes(bytes.fromhex(theirs)))
    except ValueError:  # no point of the curve, or one that gives everybody the same key
        raise RoundError(
            f"public key {theirs[:16]!r}...: no masks can be agreed on by it"
        ) from None
    info = rfc8785.dumps(["hushtable", *purpose])
    return bytes(c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(shared))


def roster_keys(round_: Round, keys: Keys, purpose: str = "masks") -> dict[str, bytes]:
    """Return what a site agrees on with each other one in a round, by name.

    A key is bound to the round, and so to plan, terms and roster, and to a purpose: ``"masks"`` of
    a round by file, where the site's book sees to it that each is used for one vector only, and
    `ONLINE` where single ones may have to be given away.
    """
    me = keys.card.name
    return {
        card.name: agreed_key(
            keys.masking, card.masking, purpose, round_.round_id, *sorted((me, card.name))
        )
        for card in round_.sites
        if card.name != me
    }
