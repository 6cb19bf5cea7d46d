"""Keys and books encrypted on disk, by a passphrase that a reference names and no file contains.

Keys are encrypted by ChaCha20-Poly1305 (RFC 8439) under a key that scrypt (RFC 7914) stretches from
the passphrase; books are SQLite files that SQLCipher encrypts page by page, including journals. The
key file names where the passphrase is by a reference, and never contains it.
"""

import contextlib
import json
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.errors import FileError, MissingExtraError
from hushtable_federation.credentials import read_secret, resolved

#: Cost of scrypt: 128 MB and about half a second, as OWASP advises.
_COST = {"n": 2**17, "r": 8, "p": 1}
_SALT, _NONCE = 16, 12
#: The least number of characters of a passphrase.
_SHORTEST = 12
#: The first bytes of an SQLite file that is not encrypted.
_PLAIN = b"SQLite format 3\0"


def passphrase(reference: str, folder: Path) -> str:
    """Return the passphrase that a reference names; paths are relative to a folder.

    Raises
    ------
    FileError
        If there is none, or it has fewer than 12 characters or a zero byte.
    """
    found = read_secret(resolved(reference, folder), "passphrase")
    if "\0" in found:  # SQLCipher ends there
        raise FileError(
            f"passphrase: {reference} has a zero byte: needs a passphrase of text, such as five "
            "random words"
        )
    if len(found) < _SHORTEST:
        raise FileError(
            f"passphrase: {reference} has {len(found)} characters: needs {_SHORTEST} or more, such "
            "as five random words"
        )
    return found


# --- keys -----------------------------------------------------------------------------------------


def sealed(content: dict[str, str], name: str, reference: str, folder: Path) -> dict[str, str]:
    """Return the encrypted keys for a key file; raise as `passphrase` does."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    cipher = _cipher(passphrase(reference, folder), salt)
    hidden = cipher.encrypt(nonce, json.dumps(content).encode(), name.encode())
    return {"passphrase": reference, "salt": salt.hex(), "sealed": (nonce + hidden).hex()}


def opened(record: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the keys that `sealed` encrypted.

    Raises
    ------
    FileError
        If the passphrase is missing or does not open the keys; as `passphrase` raises.
    """
    from cryptography.exceptions import InvalidTag

    try:
        reference, name = record["passphrase"], record["name"].encode()
        reference.partition(":")  # is a text
        salt, hidden = bytes.fromhex(record["salt"]), bytes.fromhex(record["sealed"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FileError(f"{path}: the keys are damaged: restore them from a backup") from None
    cipher = _cipher(passphrase(reference, path.parent), salt)
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


# --- books ----------------------------------------------------------------------------------------


def is_encrypted(path: str | os.PathLike[str]) -> bool:
    """Return whether a book's file is encrypted; False if it is empty or missing."""
    try:
        with open(path, "rb") as file:
            begins = file.read(len(_PLAIN))
    except FileNotFoundError:
        return False
    return bool(begins) and begins != _PLAIN


def library() -> Any:
    """Return the module that opens encrypted books, with the interface of `sqlite3`."""
    try:
        from sqlcipher3 import dbapi2
    except ImportError:
        raise MissingExtraError("an encrypted book", "sqlcipher3", "sealed") from None
    return dbapi2


def quoted(secret: str) -> str:
    """Return a passphrase quoted for an SQL statement."""
    return "'" + secret.replace("'", "''") + "'"


def encrypt_book(path: Path, secret: str) -> None:
    """Encrypt a book in place; a process that has the old file open can no longer write to it.

    Raises
    ------
    FileError
        If another process writes to the book, or the disk is full; the book is unchanged.
    """
    sqlcipher = library()
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as held:
            held.execute("begin immediate")  # no one can write to it until the new file replaces it
            (version,) = held.execute("pragma user_version").fetchone()
            with contextlib.closing(sqlcipher.connect(str(new), isolation_level=None)) as db:
                db.execute(f"pragma key = {quoted(secret)}")
                db.execute(f"attach database {quoted(str(path))} as plain key ''")
                db.execute("select sqlcipher_export('main', 'plain')")
                db.execute(f"pragma user_version = {version}")
            files.write_bytes(path, new.read_bytes())
    except (sqlcipher.Error, sqlite3.Error, OSError) as error:
        raise FileError(
            f"{path}: cannot be encrypted ({error}): stop other programs that use the book, free "
            "some space, and run the command again; the book is unchanged"
        ) from None
    finally:
        new.unlink(missing_ok=True)
