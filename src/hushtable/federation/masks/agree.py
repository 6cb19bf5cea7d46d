"""Keys that two sites agree on, and nobody else has: X25519, then HKDF-SHA256."""

from typing import Any

import rfc8785

from hushtable.errors import RoundError
from hushtable.federation.keys import Keys, crypto
from hushtable.federation.round import Round


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


def roster_keys(round_: Round, keys: Keys) -> dict[str, bytes]:
    """Return what a site agrees on with each other one in a round by file, by name.

    A key is bound to the round, and so to plan, terms and roster; the site's book sees to it
    that each is used for one vector only.
    """
    me = keys.card.name
    return {
        card.name: agreed_key(
            keys.masking, card.masking, "masks", round_.round_id, *sorted((me, card.name))
        )
        for card in round_.sites
        if card.name != me
    }


def mask_key(round_: Round, mine: Any, theirs: str, me: str, other: str) -> bytes:
    """Return the key of the masks between two sites, from keys drawn for this round."""
    return agreed_key(mine, theirs, "online masks", round_.round_id, *sorted((me, other)))


def private_key(secret: bytes) -> Any:
    """Return a private key from its 32 bytes, as a book keeps it or shares give it back."""
    return crypto().X25519PrivateKey.from_private_bytes(secret)


def public_key(mine: Any) -> str:
    """Return the public half of a key, in hexadecimal digits."""
    return str(mine.public_key().public_bytes_raw().hex())
