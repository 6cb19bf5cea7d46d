"""Keys encrypted on disk, by a passphrase that a reference names and no file contains.

They are encrypted by ChaCha20-Poly1305 (RFC 8439) under a key that scrypt (RFC 7914) stretches from
the passphrase. The key file names where the passphrase is by a reference, and never contains it.
"""

import json
import secrets
from pathlib import Path
from typing import Any

from hushtable.errors import FileError
from hushtable_federation.credentials import read_secret, resolved

#: Cost of scrypt: 128 MB and about half a second, as OWASP advises.
_COST = {"n": 2**17, "r": 8, "p": 1}
_SALT, _NONCE = 16, 12
#: The least number of characters of a passphrase.
_SHORTEST = 12


def read_passphrase(reference: str, folder: Path) -> str:
    """Return the passphrase that a reference names; paths are relative to a folder.

    Raises
    ------
    FileError
        If there is none, or it has fewer than 12 characters.
    """
    found = read_secret(resolved(reference, folder), "passphrase")
    if len(found) < _SHORTEST:
        raise FileError(
            f"passphrase: {reference} has {len(found)} characters: needs {_SHORTEST} or more, such "
            "as five random words"
        )
    return found


def sealed(content: dict[str, str], name: str, reference: str, folder: Path) -> dict[str, str]:
    """Return the encrypted keys for a key file; raise as `read_passphrase` does."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    cipher = _cipher(read_passphrase(reference, folder), salt)
    hidden = cipher.encrypt(nonce, json.dumps(content).encode(), name.encode())
    return {"passphrase": reference, "salt": salt.hex(), "sealed": (nonce + hidden).hex()}


def opened(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the keys that `sealed` encrypted.

    Raises
    ------
    FileError
        If the passphrase is missing or does not open the keys; as `read_passphrase` raises.
    """
    from cryptography.exceptions import InvalidTag

    try:
        reference, name = record["passphrase"], record["name"].encode()
        reference.partition(":")  # is a text
        salt, hidden = bytes.fromhex(record["salt"]), bytes.fromhex(record["sealed"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FileError(f"{path}: the keys are damaged: restore them from a backup") from None
    cipher = _cipher(read_passphrase(reference, path.parent), salt)
    try:
        content = json.loads(cipher.decrypt(hidden[:_NONCE], hidden[_NONCE:], name))
    except (InvalidTag, ValueError):
        raise FileError(
            f"{path}: the passphrase that {reference} names does not open these keys, or they are "
            "damaged: put the right passphrase there, or restore the keys from a backup"
        ) from None
    return dict(content)


def _cipher(secret: str, salt: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, **_COST).derive(secret.encode()))
