"""Shares that one site seals for another, and what binds a site to its own mask."""

import hashlib
from typing import Any

import rfc8785

from hushtable.errors import RoundError
from hushtable.federation.keys import crypto
from hushtable.federation.masks.agree import agreed_key
from hushtable.federation.round import Round


def commitment(round_: Round, site: str, own_mask: bytes) -> str:
    """Hash a site's own mask: binds the site to it, and reveals nothing of it."""
    text = rfc8785.dumps(["hushtable mask", round_.round_id, site, own_mask.hex()])
    return hashlib.sha256(text).hexdigest()


def place(round_: Round, name: str) -> int:
    """Return the place of a site's shares: from 1, in the order of the roster."""
    return round_.names.index(name) + 1


def sealed_share(
    round_: Round, mine: Any, theirs: str, sender: str, reader: str, share: bytes
) -> bytes:
    """Seal a share that one site deals to another; see `opened_share`."""
    cipher, nonce = _cipher(round_, mine, theirs, sender, reader)
    return bytes(cipher.encrypt(nonce, share, None))


def opened_share(
    round_: Round, mine: Any, theirs: str, sender: str, reader: str, sealed: bytes
) -> bytes:
    """Open the share that one site sealed for another.

    Raises `RoundError` if it was changed, or sealed by somebody else or for another.
    """
    cipher, nonce = _cipher(round_, mine, theirs, sender, reader)
    try:
        return bytes(cipher.decrypt(nonce, sealed, None))
    except crypto().InvalidTag:
        raise RoundError(f"the share of {sender!r} was changed on its way") from None


def _cipher(round_: Round, mine: Any, theirs: str, sender: str, reader: str) -> tuple[Any, bytes]:
    """Return the cipher of a pair, and a number used once: each of the two seals once by it."""
    purpose = ("shares", round_.round_id, *sorted((sender, reader)))
    return pair_cipher(mine, theirs, *purpose), place(round_, sender).to_bytes(12)


def pair_cipher(mine: Any, theirs: str, *purpose: str) -> Any:
    """Return the cipher (ChaCha20-Poly1305) that the holders of two keys share for a purpose."""
    return crypto().ChaCha20Poly1305(agreed_key(mine, theirs, *purpose))
