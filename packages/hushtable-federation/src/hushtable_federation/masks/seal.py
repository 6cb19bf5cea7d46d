"""Rows of shares that one site seals for another: ChaCha20-Poly1305 under a key of the two."""

import secrets

import rfc8785

from hushtable.errors import RoundError
from hushtable_federation.keys import Keys, crypto
from hushtable_federation.masks.agree import agreed_key
from hushtable_federation.round import Round

_NONCE = 12
#: By how much a sealed row is longer than the row.
SEAL_BYTES = _NONCE + 16


def place(round_: Round, name: str) -> int:
    """Return the place of a site's shares: from 1, in the order of the roster."""
    return round_.names.index(name) + 1


def row_key(round_: Round, keys: Keys, other: str) -> bytes:
    """Return the key by which a site and another, or itself, seal rows in a round."""
    pair = sorted((keys.card.name, other))
    return agreed_key(keys.masking, round_.card(other).masking, "shares", round_.round_id, *pair)


def sealed(key: bytes, sender: str, reader: str, row: bytes) -> bytes:
    """Seal a row for its reader; see `opened`."""
    nonce = secrets.token_bytes(_NONCE)
    cipher = crypto().ChaCha20Poly1305(key)
    return nonce + bytes(cipher.encrypt(nonce, row, _between(sender, reader)))


def opened(key: bytes, sender: str, reader: str, content: bytes) -> bytes:
    """Open a row that one site sealed for another.

    Raises `RoundError` if it was changed, or sealed by another key or for another.
    """
    cipher = crypto().ChaCha20Poly1305(key)
    try:
        return bytes(cipher.decrypt(content[:_NONCE], content[_NONCE:], _between(sender, reader)))
    except (crypto().InvalidTag, ValueError):  # ValueError: too short for a nonce
        raise RoundError(f"the shares of {sender!r} for {reader!r} do not open") from None


def _between(sender: str, reader: str) -> bytes:
    return rfc8785.dumps([sender, reader])
