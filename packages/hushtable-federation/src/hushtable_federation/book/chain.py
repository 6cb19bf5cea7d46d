"""An append-only log in an SQLite file, chained by hashes: nothing in it changes unseen.

Each entry carries the SHA-256 of the one before it, so that the last one stands for all. What is
large lies beside the entries, under its SHA-256, which the entry names. Whoever can write to the
file could make a whole other chain, or cut this one's end: that shows where its last link was
kept apart.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rfc8785

from hushtable.errors import FileError
from hushtable_federation.book.database import NO_ANSWERS_WITHOUT, Database

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
