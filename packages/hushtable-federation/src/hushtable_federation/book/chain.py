"""The log under a book: an SQLite file whose entries are a chain."""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from hushtable.errors import FileError
from hushtable_federation import at_rest

#: Seconds that one process waits for another that writes.
_PATIENCE = 30.0
NO_ANSWERS_WITHOUT = (
    "Without its book a site must not answer rounds again under the same keys: make new ones "
    "(hushtable round keygen)"
)
_NO_WRITING = (
    "it cannot be written to, nor a file be made beside it: free some space, or use a folder that "
    "is not read-only"
)
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_READONLY: _NO_WRITING,
    sqlite3.SQLITE_CANTOPEN: _NO_WRITING,
    sqlite3.SQLITE_BUSY: f"another process has held it for {_PATIENCE:g} seconds: wait for it",
    sqlite3.SQLITE_IOERR: "the disk failed: free some space, or look after the disk",
}


class Database:
    """An open SQLite file, whose errors are `FileError`; with a secret, one that is encrypted."""

    def __init__(self, path: str | os.PathLike[str], secret: str = "") -> None:
        self.path, self._is_encrypted = os.fspath(path), bool(secret)
        library = at_rest.library() if secret else sqlite3
        self._errors: tuple[type[Exception], ...] = (sqlite3.Error, library.Error)
        try:
            self._db = library.connect(self.path, isolation_level=None, timeout=_PATIENCE)
            if secret:
                self._db.execute("pragma cipher_log_level = none")
                self._db.execute(f"pragma key = {at_rest.quoted(secret)}")
        except self._errors as error:
            raise self._refused(error) from None
        self._file = self._there()

    def _there(self) -> tuple[int, int] | None:
        """Return which file lies at the path; None if there is none, as of one in memory."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def content(self) -> bytes:
        """Return the bytes of the file, or of what would be the file."""
        content: bytes = self._db.serialize()
        return content

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; return the rows that it finds."""
        try:
            found: list[tuple[Any, ...]] = self._db.execute(statement, values).fetchall()
            return found
        except self._errors as error:
            raise self._refused(error) from None
        except UnicodeDecodeError:  # of what SQLite says of a damaged table
            raise damaged(self.path) from None
        except MemoryError:  # for a size that a damaged page states, or truly
            raise FileError(
                f"{self.path}: needs more memory than there is: free some; if that changes "
                "nothing, the book is a damaged one: restore it from a backup"
            ) from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All or nothing, and one process at a time."""
        self.run("begin immediate")
        try:
            if self._there() != self._file:
                raise FileError(
                    f"{self.path}: another file lies here than a moment ago, as of a backup that "
                    "was restored: nothing was noted or sent. Give the command again"
                )
            yield
            self.run("commit")
        except BaseException:
            # A full disk may have rolled back by itself.
            if self.in_transaction:
                self.run("rollback")
            raise

    @property
    def in_transaction(self) -> bool:
        """Whether `writing` is under way here."""
        return bool(self._db.in_transaction)

    def _refused(self, error: Exception) -> FileError:
        # The low byte is the kind of error; the rest is which one of the kind.
        advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if advice is None and self._is_encrypted:
            return FileError(
                f"{self.path}: the passphrase of the keys beside it does not open this book, or it "
                f"is damaged: restore it from a backup. {NO_ANSWERS_WITHOUT}"
            )
        return damaged(self.path) if advice is None else FileError(f"{self.path}: {advice}")


def damaged(path: str) -> FileError:
    """Explain that a book cannot be read, and what not to do about it."""
    return FileError(
        f"{path}: holds no book of this version, or a damaged one: restore it from a "
        f"backup. {NO_ANSWERS_WITHOUT}"
    )


TABLES = (
    "create table entries (n integer primary key, kind text not null, content text not null, "
    "link text not null)",
    "create table blobs (digest text primary key, content blob not null)",
)


@dataclass(frozen=True)
class Entry:
    """One entry of the log, at its place ``n`` from 1.

    ``content["blobs"]`` has the SHA-256 of what lies beside it, by name; ``link`` is the SHA-256
    over the link before, the kind and the content.
    """

    n: int
    kind: str
    content: dict[str, Any]
    link: str


class Chain:
    """The log of a database that has `TABLES`; ``entries`` were read and checked so far."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.entries: list[Entry] = []

    @property
    def head(self) -> str:
        """The last link, which stands for all that was read; empty without entries."""
        return self.entries[-1].link if self.entries else ""

    def read(self) -> list[Entry]:
        """Return the entries that are new since the last call, with all that they name checked.

        Raises `FileError`, which names the entry, if that or what it names was changed.
        """
        known = len(self.entries)
        # Before the entries: what another process adds in the meantime is named by its entry.
        beside = set() if known else {row[0] for row in self._db.run("select digest from blobs")}
        rows = self._db.run(
            "select n, kind, content, link from entries where n >= ? or ? = 0 order by n",
            (known, known),
        )
        if known and (not rows or rows.pop(0)[3] != self.head):
            raise self._changed(known)
        found: list[Entry] = []
        for row in rows:
            previous = found[-1].link if found else self.head
            entry = self._checked(row, known + len(found) + 1, previous)
            for digest in _named(entry):
                self.blob(entry, digest)
                beside.discard(digest)
            found.append(entry)
        if beside or not (known or found):
            raise self._changed(known + len(found) + 1)
        self.entries += found
        return found

    def append(self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes]) -> Entry:
        """Write one more entry, inside a transaction in which `read` was called; return it.

        ``blobs`` lie beside it, by name; what is empty is left out.
        """
        n, previous = len(self.entries) + 1, self.head
        digests = {name: hashlib.sha256(blob).hexdigest() for name, blob in blobs.items() if blob}
        for name, digest in digests.items():
            self._db.run("insert or ignore into blobs values (?, ?)", (digest, blobs[name]))
        text = rfc8785.dumps(content | ({"blobs": digests} if digests else {})).decode()
        link = _link(previous, kind, text)
        self._db.run("insert into entries values (?, ?, ?, ?)", (n, kind, text, link))
        # What was written just now need not be read again.
        self.entries.append(Entry(n, kind, json.loads(text), link))
        return self.entries[-1]

    def blob(self, entry: Entry, digest: str) -> bytes:
        """Return what an entry names; raises `FileError` if it is not what was written."""
        rows = self._db.run("select content from blobs where digest = ?", (digest,))
        content = rows[0][0] if rows else None
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != digest:
            raise self._changed(entry.n)
        return content

    def _checked(self, row: tuple[Any, ...], n: int, previous: str) -> Entry:
        number, kind, text, link = row
        texts = all(isinstance(value, str) and "\0" not in value for value in (kind, text))
        if number != n or not texts or link != _link(previous, kind, text):
            raise self._changed(n)
        try:
            entry = Entry(n, kind, json.loads(text), link)
            _named(entry)
        except (AttributeError, TypeError, ValueError, RecursionError):
            raise self._changed(n) from None
        return entry

    def _changed(self, n: int) -> FileError:
        return FileError(
            f"{self._db.path}: this book was changed from outside, at entry {n}: what stands there "
            f"is not what was noted. Answer nothing with it, and restore it from a backup. "
            f"{NO_ANSWERS_WITHOUT}"
        )


def _link(previous: str, kind: str, content: str) -> str:
    # The first text makes no other hash of ours a link. None of the others holds a zero byte:
    # JSON writes it as an escape.
    text = "\0".join(("hushtable book", previous, kind, content))
    return hashlib.sha256(text.encode()).hexdigest()


def _named(entry: Entry) -> list[str]:
    """Return the digests of what lies beside an entry."""
    digests = list(entry.content.get("blobs", {}).values())
    if not all(isinstance(digest, str) for digest in digests):
        raise TypeError
    return digests
