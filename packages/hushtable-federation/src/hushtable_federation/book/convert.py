"""Decrypt books that ``hushtable round protect`` of 1.0.0rc1 encrypted by SQLCipher."""

import contextlib
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, UsageError
from hushtable_federation.book.chain import NO_ANSWERS_WITHOUT
from hushtable_federation.credentials import read_passphrase
from hushtable_federation.keys import passphrase_of, refuse_open

#: The first bytes of an SQLite file that is not encrypted, and the bytes of a page of one that is.
_PLAIN, _PAGE = b"SQLite format 3\0", 4096
#: Seconds that it waits for another process that writes.
_PATIENCE = 30.0


def check_plain(path: Path) -> None:
    """Raise `FileError` if a book looks encrypted."""
    if _looks_encrypted(path):
        raise FileError(
            f"{path}: this book is encrypted, or damaged. If hushtable round protect encrypted it, "
            f"run hushtable round book {path} --convert once, which keeps all its entries; "
            f"otherwise, restore it from a backup. {NO_ANSWERS_WITHOUT}"
        )


def _looks_encrypted(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            begins = file.read(len(_PLAIN))
    except FileNotFoundError:
        return False
    return begins not in (b"", _PLAIN) and path.stat().st_size % _PAGE == 0


def convert(path: Path, key: Path | None = None) -> None:
    """Decrypt a book in place, with the passphrase that its keys name.

    A process that has the old file open can no longer write to it.

    Parameters
    ----------
    path : Path
        The book.
    key : Path, optional
        The keys; by default, those beside it.

    Raises
    ------
    UsageError
        If the book is not encrypted, its keys name no passphrase, or sqlcipher3 is not installed.
    FileError
        If the passphrase is missing or wrong, another process writes to the book, or the disk is
        full; the book is unchanged.
    """
    refuse_open(path, "a book")
    if not _looks_encrypted(path):
        raise UsageError(f"{path}: this book is not encrypted: leave out --convert")
    key = path.with_suffix(".key") if key is None else key
    refuse_open(key, "keys")
    reference = passphrase_of(key)
    if not reference:
        raise UsageError(
            f"{key} names no passphrase: give the keys that were encrypted with this book (--key)"
        )
    secret = read_passphrase(reference, key.absolute().parent)
    try:
        from sqlcipher3 import dbapi2 as sqlcipher
    except ImportError:
        raise UsageError(
            "--convert needs a package that this environment lacks: pip install sqlcipher3"
        ) from None
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(_opened(sqlcipher, path, secret)) as held:
            held.execute("begin immediate")  # no one can write to it until the new file replaces it
            (version,) = held.execute("pragma user_version").fetchone()
            with contextlib.closing(_opened(sqlcipher, path, secret)) as db:
                db.execute(f"attach database {_quoted(str(new))} as plain key ''")
                db.execute("select sqlcipher_export('plain')")
                db.execute(f"pragma plain.user_version = {version}")
            with new.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(new, path)
    except (sqlcipher.Error, sqlite3.Error, OSError) as error:
        raise FileError(
            f"{path}: cannot be decrypted with the passphrase that {reference} names ({error}): "
            "check the passphrase, stop other programs that use the book, free some space, and run "
            "the command again; the book is unchanged"
        ) from None
    finally:
        new.unlink(missing_ok=True)


def _opened(sqlcipher: Any, path: Path, secret: str) -> Any:
    db = sqlcipher.connect(str(path), isolation_level=None, timeout=_PATIENCE)
    db.execute("pragma cipher_log_level = none")
    db.execute(f"pragma key = {_quoted(secret)}")
    return db


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
