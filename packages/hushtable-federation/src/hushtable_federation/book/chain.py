"""The log under a book, an SQLite file whose entries form a hash chain; what they amount to."""

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import rfc8785

from hushtable.arguments import is_digest
from hushtable.errors import FileError, UsageError
from hushtable.privacy.budget import Spent, check_delta, check_epsilon
from hushtable_federation.credentials import read_passphrase
from hushtable_federation.keys import Card, passphrase_of, refuse_open

#: Seconds that a process waits for another one that writes.
_PATIENCE = 30.0
NO_ANSWERS_WITHOUT = (
    "Without its book a site must not answer rounds again under the same keys: make new ones "
    "(hushtable round keygen)"
)
_NO_WRITING = (
    "it, or a file beside it, cannot be written: free some space, or use a folder that is not "
    "read-only"
)
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_READONLY: _NO_WRITING,
    sqlite3.SQLITE_CANTOPEN: _NO_WRITING,
    sqlite3.SQLITE_BUSY: f"another process has locked it for {_PATIENCE:g} seconds: wait for that",
    sqlite3.SQLITE_IOERR: "the disk failed: free some space, or check the disk",
}


class Database:
    """An open SQLite file, whose errors are `FileError`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=_PATIENCE)
        except sqlite3.Error as error:
            raise self._refused(error) from None
        self._file = self._there()

    def _there(self) -> tuple[int, int] | None:
        # None without one, as for one in memory.
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def content(self) -> bytes:
        """Return the bytes of the file, or those that the file would have."""
        return bytes(self._db.serialize())

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; return the rows found."""
        try:
            return list(self._db.execute(statement, values))
        except sqlite3.Error as error:
            raise self._refused(error) from None
        except UnicodeDecodeError:  # SQLite may report this for a damaged table
            raise damaged(self.path) from None
        except MemoryError:  # because of the size that a damaged page states, or really
            raise FileError(
                f"{self.path}: needs more memory than available: free some; if that does not help, "
                "the book is damaged: restore it from a backup"
            ) from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Run the body as one transaction, and in one process at a time."""
        self.run("begin immediate")
        try:
            if self._there() != self._file:
                raise FileError(
                    f"{self.path}: this file was replaced a moment ago, for example by a restored "
                    "backup, so nothing was recorded or sent: run the command again"
                )
            yield
            self.run("commit")
        except BaseException:
            # A full disk may have caused a rollback already.
            if self.in_transaction:
                self.run("rollback")
            raise

    @property
    def in_transaction(self) -> bool:
        """Return whether `writing` is active here."""
        return bool(self._db.in_transaction)

    def _refused(self, error: Exception) -> FileError:
        # The low byte is the kind of error; the rest is the specific error.
        advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        return damaged(self.path) if advice is None else FileError(f"{self.path}: {advice}")


def damaged(path: str) -> FileError:
    """Return an error that explains that a book cannot be read, and what to do."""
    return FileError(
        f"{path}: this is not a book of this version, or it is damaged: restore it from a backup. "
        f"{NO_ANSWERS_WITHOUT}"
    )


TABLES = (
    "create table entries (n integer primary key, kind text not null, content text not null, "
    "link text not null)",
    "create table blobs (digest text primary key, content blob not null)",
)


@dataclass(frozen=True)
class Entry:
    """One entry of the log, at position ``n``, counted from 1.

    ``content["blobs"]`` has the SHA-256 of each attachment, by name; ``link`` is the SHA-256 over
    the previous link, the kind and the content.
    """

    n: int
    kind: str
    content: dict[str, Any]
    link: str


class Chain:
    """The log of a database that has `TABLES`; ``entries`` are those read and checked so far."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.entries: list[Entry] = []

    @property
    def head(self) -> str:
        """Return the last link, which depends on all entries read; empty without entries."""
        return self.entries[-1].link if self.entries else ""

    def read(self) -> list[Entry]:
        """Check the entries that are new since the last call, with attachments, and return them.

        Raise `FileError`, which names the entry, if it or an attachment was changed.
        """
        known = len(self.entries)
        # Read before the entries, because another process adds attachments before their entry.
        beside = set() if known else {row[0] for row in self._db.run("select digest from blobs")}
        rows = self._db.run(
            "select n, kind, content, link from entries where n >= ? or ? = 0 order by n",
            (known, known),
        )
        if known and (not rows or rows.pop(0)[3] != self.head):
            raise self._changed(known)
        entries: list[Entry] = []
        for row in rows:
            previous = entries[-1].link if entries else self.head
            entry = self._checked(row, known + len(entries) + 1, previous)
            for digest in _named(entry):
                self.blob(entry, digest)
                beside.discard(digest)
            entries.append(entry)
        if beside or not (known or entries):
            raise self._changed(known + len(entries) + 1)
        self.entries += entries
        return entries

    def append(self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes]) -> Entry:
        """Write one more entry, inside a transaction in which `read` was called; return it.

        ``blobs`` are its attachments, by name; empty ones are left out.
        """
        n, previous = len(self.entries) + 1, self.head
        digests = {name: hashlib.sha256(blob).hexdigest() for name, blob in blobs.items() if blob}
        for name, digest in digests.items():
            self._db.run("insert or ignore into blobs values (?, ?)", (digest, blobs[name]))
        text = rfc8785.dumps(content | ({"blobs": digests} if digests else {})).decode()
        link = _link(previous, kind, text)
        self._db.run("insert into entries values (?, ?, ?, ?)", (n, kind, text, link))
        # The new entry does not have to be read again.
        self.entries.append(Entry(n, kind, json.loads(text), link))
        return self.entries[-1]

    def blob(self, entry: Entry, digest: str) -> bytes:
        """Return an attachment; raise `FileError` if it is not what was written."""
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
            f"{self._db.path}: this book was changed by another program, at entry {n}, which is "
            "not what was recorded. Do not answer with it; restore it from a backup. "
            f"{NO_ANSWERS_WITHOUT}"
        )


def _link(previous: str, kind: str, content: str) -> str:
    # The first text separates links from our other hashes. None of the other parts contains a zero
    # byte, which JSON escapes.
    text = "\0".join(("hushtable book", previous, kind, content))
    return hashlib.sha256(text.encode()).hexdigest()


def _named(entry: Entry) -> list[str]:
    digests = list(entry.content.get("blobs", {}).values())
    if not all(isinstance(digest, str) for digest in digests):
        raise TypeError
    return digests


# --- what the entries amount to -------------------------------------------------------------------

#: The roles that a known card may have in a round.
ROLES = ("site", "coordinator")
#: How a card was verified: by the code of a meeting (until 1.0.0rc1), because it came from its
#: owner, or by the answer to a question, after comparing fingerprints.
WAYS = ("code", "card", "asked")


@dataclass
class BookLedger:
    """The state of a book, after the entries passed to `add`."""

    #: The site of the book: name and public key.
    site: str = ""
    signing: str = ""
    #: Drawn for this book: the key of its digests of rows.
    key: bytes = b""
    #: The cap.
    epsilon: float = 0.0
    delta: float = 0.0
    #: By name: the current card, and its known roles.
    cards: dict[str, Card] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    #: By id of the round, in the order of answers; and by data set, their costs.
    answers: dict[str, Entry] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    #: By stream and period: the first answer.
    streams: dict[str, dict[int, Entry]] = field(default_factory=dict)
    #: By data set: digests of its rows.
    rows: dict[str, list[Entry]] = field(default_factory=dict)
    #: SHA-256 of the current policy file; empty if none.
    policy: str = ""
    #: By digest of a result: when it was first verified.
    verified: dict[str, datetime] = field(default_factory=dict)

    def add(self, entry: Entry, path: str) -> None:
        """Add the next entry; ``path`` names the book in errors.

        Raise `FileError` if its kind is unknown here, and `KeyError`, `TypeError` or `ValueError`
        if it cannot be what was written.
        """
        content = entry.content
        if (entry.n == 1) != (entry.kind == "site"):
            raise ValueError("a book begins with its site")
        at = datetime.fromisoformat(content["at"])
        match entry.kind:
            case "site":
                self.site, self.signing = _text(content["name"]), _text(content["signing"])
                self.key = bytes.fromhex(content["key"])
                if len(self.key) != 32:
                    raise ValueError("the key has 32 bytes")
                self._set_cap(content)
            case "cap":
                self._set_cap(content)
            case "trust":
                self._trust(content)
            case "policy":
                self.policy = _digest(content["digest"])
            case "rows":
                _digest(content["blobs"]["rows"])
                self.rows.setdefault(_text(content["data_set"]), []).append(entry)
            case "answer":
                self._answer(entry)
            case "verified":
                _text(content["round_id"])
                self.verified.setdefault(_digest(content["digest"]), at)
            case _:
                raise FileError(
                    f"{path}: entry {entry.n} is of the kind {entry.kind[:40]!r}, which this "
                    "version of hushtable does not know: use the version that wrote it, or a newer "
                    "one (pip install --upgrade hushtable)"
                )

    def _set_cap(self, content: dict[str, Any]) -> None:
        self.epsilon = check_epsilon(content["epsilon"])
        self.delta = check_delta(content["delta"])

    def _trust(self, content: dict[str, Any]) -> None:
        card, role = Card.from_dict(content["card"]), content["role"]
        if role not in ROLES:
            raise ValueError(f"no role {role!r}")
        # Different keys under a name are a different party, regardless of the name's earlier roles.
        if self.cards.get(card.name) != card:
            self.cards[card.name], self.roles[card.name] = card, set()
        self.roles[card.name].add(role)
        _text(content.get("how", ""))

    def _answer(self, entry: Entry) -> None:
        content = entry.content
        if _text(content["round_id"]) in self.answers:
            raise ValueError("a round is answered once")
        _text(content["title"])
        for name in ("counts", "sent"):
            _digest(content["blobs"][name])
        datetime.fromisoformat(content["made"])
        spent = Spent.from_dict(content["spent"])
        self.answers[content["round_id"]] = entry
        charged = self.spent.setdefault(_text(content["data_set"]), [])
        is_paid = False
        if "stream" in content:
            period = content["period"]
            if type(period) is not int or period < 1:
                raise ValueError("no period")
            periods = self.streams.setdefault(_text(content["stream"]), {})
            # The first answer to a stream is charged for all its periods.
            is_paid = bool(periods) and spent in charged
            first = periods.setdefault(period, entry)
            if first.content["blobs"]["sent"] != content["blobs"]["sent"]:
                raise ValueError("noise is drawn once for each period")
        if not is_paid:
            charged.append(spent)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise ValueError("no digest")
    return str(value)


# --- books of earlier versions --------------------------------------------------------------------

#: The first bytes of an SQLite file that is not encrypted, and the bytes of a page of one that is.
_PLAIN, _PAGE = b"SQLite format 3\0", 4096


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

    Version 1.0.0rc1 encrypted it by SQLCipher. A process that has the old file open can no longer
    write to it.

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
