"""The place of a watch: what is done already, held by one process at a time.

A SQLite file, so that a run is noted as a whole or not at all, whatever ends it. It holds names,
sizes, times and digests of files, and digests of ids: no value of a row.
"""

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, UsageError

_TABLES = (
    "create table place (watched text, runs integer, bytes integer)",
    "create table files (name text primary key, size integer, changed integer, digest blob)",
    "create table ids (digest blob primary key) without rowid",
)
_VERSION = 1


class Place:
    """Done work of earlier runs, and a log of the runs, in a folder.

    Attributes
    ----------
    run : int
        Number of this run, from 1.
    log : Path
        A line of JSON for each run that was completed.
    """

    def __init__(self, folder: Path, watched: str) -> None:
        self.folder, self._watched = folder, watched
        self.log, self._path = folder / "watch.jsonl", folder / "watch.db"
        self.run = 1
        #: Length of the log that completed runs wrote; None until that is known.
        self._bytes: int | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Keep other processes out; what the body notes stays if it succeeds, else nothing does."""
        with _said(self.folder):
            # Only its owner may read it.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=0.0)
        with contextlib.closing(self._db):
            self._do("begin immediate")
            self._make()
            self._do("commit")
            self._do("begin immediate")
            try:
                self._begin()
                yield
                self._do("commit")
            except BaseException:
                self._cut()
                raise

    def _make(self) -> None:
        """Make the tables: by itself, or the log of a first run that is killed would be kept."""
        ((version,),) = self._do("pragma user_version")
        if version == 0:
            for statement in _TABLES:
                self._do(statement)
            self._do(f"pragma user_version = {_VERSION}")
            # Where somebody removed the place, the numbers of runs, and so of lists, go on.
            runs = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
            self._do("insert into place values (?, ?, ?)", [self._watched, runs, self._size()])
        elif version != _VERSION:
            raise FileError(
                f"{self._path} is of a later version: upgrade with pip install -U hushtable"
            )

    def _begin(self) -> None:
        ((watched, runs, length),) = self._do("select watched, runs, bytes from place")
        if watched != self._watched:
            raise UsageError(f"{self.folder} is where {watched} is watched: give another folder")
        self.run, self._bytes = runs + 1, length
        self._cut()  # what a run left that was killed

    def _size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _cut(self) -> None:
        """Take off the log what was not completed."""
        if self._bytes is not None and self._size() > self._bytes:
            os.truncate(self.log, self._bytes)

    def note_run(self, line: str) -> None:
        """Add this run's line to the log."""
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        self._do("update place set runs = ?, bytes = ?", [self.run, self._size()])

    # --- files ------------------------------------------------------------------------------

    def is_done(self, name: str, seen: os.stat_result) -> bool:
        """Whether a file is done, and has not been touched since."""
        known = self._do("select size, changed from files where name = ?", [name])
        return known == [(seen.st_size, seen.st_mtime_ns)]

    def twin(self, digest: bytes) -> str | None:
        """Return the name of a file that is done and holds the same bytes."""
        names = self._do("select name from files where digest = ? order by name", [digest])
        return names[0][0] if names else None

    def note_file(self, name: str, seen: os.stat_result, digest: bytes) -> None:
        """Note that a file is done."""
        values = [name, seen.st_size, seen.st_mtime_ns, digest]
        self._do("insert or replace into files values (?, ?, ?, ?)", values)

    # --- rows of a query --------------------------------------------------------------------

    def ids(self) -> set[bytes]:
        """Return the digests of the ids that the last run saw."""
        return {digest for (digest,) in self._do("select digest from ids")}

    def note_ids(self, digests: Iterable[bytes]) -> None:
        """Keep these digests in place of the last run's."""
        self._do("delete from ids")
        with _said(self.folder):
            self._db.executemany("insert into ids values (?)", ([one] for one in digests))

    def _do(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _said(self.folder):
            return self._db.execute(statement, values).fetchall()


@contextlib.contextmanager
def _said(folder: Path) -> Iterator[None]:
    """Say in words what SQLite refuses."""
    try:
        yield
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_BUSY:
            raise FileError(
                f"{folder}: another hushtable watch runs there: wait until it has ended"
            ) from None
        if kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
                    sqlite3.SQLITE_CANTOPEN):  # fmt: skip
            raise FileError(
                f"{folder / 'watch.db'} cannot be written to: free some space, or use a folder "
                "that is not read-only"
            ) from None
        raise FileError(
            f"{folder / 'watch.db'} is not the place of a watch, or a damaged one: remove it, and "
            "everything is scored again"
        ) from None


def digest_of(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
