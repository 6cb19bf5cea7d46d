"""The state of a watch: the work that is done, held by one process at a time.

The state is a SQLite file, so that a run is noted as a whole or not at all, whatever ends it. It
holds names, sizes, times and digests of files, and digests of ids, but no values of rows. Under a
model of readings of entities, it also holds their history: names of entities, and sums over their
readings.
"""

import contextlib
import glob
import hashlib
import itertools
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers import Batch, Reader, paths, taken
from hushtable.errors import DataError, FileError, UsageError, explain

_TABLES = (
    "create table place (watched text, runs integer, bytes integer)",
    "create table files (name text primary key, size integer, changed integer, digest blob)",
    "create table ids (digest blob primary key) without rowid",
    "create table history (readings blob)",
)
_VERSION = 2


class WatchPlace:
    """Completed work of earlier runs, and a log of the runs, in a folder.

    Attributes
    ----------
    run : int
        Number of this run, from 1.
    log : Path
        A line of JSON for each completed run.
    """

    def __init__(self, folder: Path, watched: str) -> None:
        self.folder, self._watched = folder, watched
        self.log, self._path = folder / "watch.jsonl", folder / "watch.db"
        self.run = 1
        #: Length of the log that completed runs wrote; None until it is known.
        self._bytes: int | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Keep other processes out; keep the notes of the body only if it succeeds."""
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
        """Make the tables on their own, or the log of a killed first run would be kept."""
        ((version,),) = self._do("pragma user_version")
        if version == 0:
            for statement in _TABLES:
                self._do(statement)
            self._do(f"pragma user_version = {_VERSION}")
            # If someone removed the state, the numbers of runs, and so of lists, continue.
            runs = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
            self._do("insert into place values (?, ?, ?)", [self._watched, runs, self._size()])
        elif version != _VERSION:
            raise FileError(
                f"{self._path} was written by a different version of hushtable: use that version, "
                "or remove the file to score everything again"
            )

    def _begin(self) -> None:
        ((watched, runs, length),) = self._do("select watched, runs, bytes from place")
        if watched != self._watched:
            raise UsageError(
                f"{self.folder} is already used to watch {watched}: give a different folder"
            )
        self.run, self._bytes = runs + 1, length
        self._cut()  # left behind by a killed run

    def _size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _cut(self) -> None:
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

    # --- earlier readings of entities ---------------------------------------------------------

    def history(self) -> bytes | None:
        """Return the history that the last run left."""
        found = self._do("select readings from history")
        return found[0][0] if found else None

    def note_history(self, readings: bytes) -> None:
        """Keep this history in place of the last run's."""
        self._do("delete from history")
        self._do("insert into history values (?)", [readings])

    def _do(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _said(self.folder):
            return self._db.execute(statement, values).fetchall()


@contextlib.contextmanager
def _said(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_BUSY:
            raise FileError(
                f"{folder}: another hushtable watch is running there: wait until it has ended"
            ) from None
        if kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
                    sqlite3.SQLITE_CANTOPEN):  # fmt: skip
            raise FileError(
                f"{folder / 'watch.db'} is not writable: free some space, or use a folder that is "
                "not read-only"
            ) from None
        raise FileError(
            f"{folder / 'watch.db'} is not the state of a watch, or is damaged: remove it to score "
            "everything again"
        ) from None


def digest_of(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


@dataclass
class NewFile:
    """A file to be scored."""

    path: Path
    seen: os.stat_result
    digest: bytes = b""

    def changed(self) -> bool:
        """Whether someone has written to it since it was seen."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return True
        return (now.st_size, now.st_mtime_ns) != (self.seen.st_size, self.seen.st_mtime_ns)

    def note(self, place: WatchPlace) -> None:
        """Note it as done."""
        place.note_file(os.path.abspath(self.path), self.seen, self.digest)


@dataclass
class Files:
    """Files that a folder or pattern names: those to score, and the others with reasons."""

    source: str
    settle: float
    #: (file, reason) of files left for the next run, and of files whose bytes were scored before.
    left: list[tuple[str, str]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The source, independent of the folder in which a command is called."""
        return os.path.abspath(self.source)

    def check(self, folder: Path) -> None:
        """Refuse sources that cannot be watched, and an output folder among the sources."""
        if self.source == "-" or "://" in self.source:
            raise UsageError(
                "watch reads a folder or pattern of files on this machine, or a database with "
                "--read query=...: copy other sources here first"
            )
        top, where = Path(self.source), folder.resolve()
        if not top.exists():
            # The folders of a pattern up to the first star must exist; files may come later.
            fixed = itertools.takewhile(lambda part: not glob.has_magic(part), top.parent.parts)
            if not glob.has_magic(self.source) or not Path(*fixed).is_dir():
                raise DataError(f"{self.source}: no such file or folder: check the path")
        inside = {path.resolve().parent for path in self._paths()}
        if where in inside or (top.is_dir() and where.is_relative_to(top.resolve())):
            raise UsageError(f"-o {folder} is where rows are read from: give a different folder")

    def _paths(self) -> list[Path]:
        """Return all files; a folder or a pattern may name none yet."""
        try:
            return paths(self.source)
        except DataError:
            return []

    def waiting(self, place: WatchPlace) -> Iterator[NewFile]:
        """Yield the files that are new or have changed, and rest."""
        for path in self._paths():
            try:
                new = NewFile(path, path.stat())
            except FileNotFoundError:
                continue  # removed while the others were scored
            if place.is_done(os.path.abspath(path), new.seen):
                continue
            age = abs(time.time() - new.seen.st_mtime)
            if age < self.settle:
                self.left.append((str(path), f"written to {age:.0f} seconds ago"))
                continue
            yield new

    def is_same(self, new: NewFile, place: WatchPlace) -> bool:
        """Return whether a file holds the same bytes as a scored file; note it if so."""
        try:
            new.digest = digest_of(new.path)
        except OSError as error:
            raise DataError(f"cannot read {new.path}: {explain(error)}") from None
        twin = place.twin(new.digest)
        if twin is None or new.changed():
            return False
        if twin != os.path.abspath(new.path):
            self.same.append((str(new.path), twin))
        new.note(place)
        return True

    def leave(self, new: NewFile) -> None:
        """Leave a file that is being written to for the next run."""
        self.left.append((str(new.path), "it changed while it was being read"))


class NewRows:
    """Rows of a query with ids that the last run did not see."""

    def __init__(self, reader: Reader, id_: str, known: set[bytes]) -> None:
        self._source, self._id, self._known = reader, id_, known
        #: Digests of all ids that the query returns.
        self.ids: set[bytes] = set()

    @property
    def reader(self) -> Reader:
        """Return a reader of the new rows."""

        def place(row: int) -> str:
            return f"row {row} of the new ones"

        return self._source.of_batches(self._read, None, place)

    def _read(self) -> Iterator[Batch]:
        for batch in self._source.read():
            assert isinstance(batch, pa.RecordBatch)
            marks = [
                self._mark(one) for one in batch.column(self._id).cast(pa.string()).to_pylist()
            ]
            self.ids.update(marks)
            new = np.flatnonzero([mark not in self._known for mark in marks])
            if len(new):
                yield taken(batch, new)

    def _mark(self, text: str | None) -> bytes:
        if text is None:
            raise DataError(
                f"{self._source.source}: a row has no {self._id!r}: --id identifies rows; exclude "
                "rows without it in the query"
            )
        return hashlib.sha256(text.encode()).digest()[:16]
