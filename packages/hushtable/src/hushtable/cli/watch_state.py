"""The place of a watch: what is done already, held by one process at a time.

A SQLite file, so that a run is noted as a whole or not at all, whatever ends it. It holds names,
sizes, times and digests of files, and digests of ids: no value of a row. Under a model of readings
of entities, it holds their history, too: names of entities, and sums over their readings.
"""

import contextlib
import glob
import hashlib
import itertools
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
            # Where someone removed the place, the numbers of runs, and so of lists, go on.
            runs = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
            self._do("insert into place values (?, ?, ?)", [self._watched, runs, self._size()])
        elif version != _VERSION:
            raise FileError(
                f"{self._path} was written by another version of hushtable: use that one, or "
                "remove the file, and everything is scored again"
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


@dataclass
class NewFile:
    """A file that is to be scored."""

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
    """Files that a folder or pattern names: those to be scored, and those that are not, and why."""

    source: str
    settle: float
    #: (file, why) of those that wait for the next run, and of those that hold what is done.
    left: list[tuple[str, str]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The source, wherever a command is called."""
        return os.path.abspath(self.source)

    def check(self, folder: Path) -> None:
        """Refuse what cannot be watched, and a folder to write to among the files that are read."""
        if self.source == "-" or "://" in self.source:
            raise UsageError(
                "watch looks at a folder or pattern of files on this machine, or at a database "
                "with --query: copy others here first"
            )
        top, where = Path(self.source), folder.resolve()
        if not top.exists():
            # The folders of a pattern up to the first star; files may come later.
            fixed = itertools.takewhile(lambda part: not glob.has_magic(part), top.parent.parts)
            if not glob.has_magic(self.source) or not Path(*fixed).is_dir():
                raise DataError(f"{self.source}: no such file or folder: check the path")
        inside = {path.resolve().parent for path in self._paths()}
        if where in inside or (top.is_dir() and where.is_relative_to(top.resolve())):
            raise UsageError(f"-o {folder} lies where rows are read from: give another folder")

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
                continue  # it went while the others were scored
            if place.is_done(os.path.abspath(path), new.seen):
                continue
            age = abs(time.time() - new.seen.st_mtime)
            if age < self.settle:
                self.left.append((str(path), f"written to {age:.0f} seconds ago"))
                continue
            yield new

    def is_same(self, new: NewFile, place: WatchPlace) -> bool:
        """Whether a file holds the bytes of one that is done; it is noted, then."""
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
        """Leave a file, to which someone writes, for the next run."""
        self.left.append((str(new.path), "it changed while it was read"))


class NewRows:
    """Rows of a query whose ids the last run did not see."""

    def __init__(self, reader: Reader, id_: str, known: set[bytes]) -> None:
        self._source, self._id, self._known = reader, id_, known
        #: Digests of all ids that the query returns.
        self.ids: set[bytes] = set()

    @property
    def reader(self) -> Reader:
        """Return a reader of the new rows."""

        def place(row: int) -> str:
            return f"row {row} of the new ones"

        return replace(self._source, n_rows=None, read=self._read, project=None, place=place)

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
                f"{self._source.source}: a row has no {self._id!r}: --id distinguishes rows; "
                "leave those without out in the query"
            )
        return hashlib.sha256(text.encode()).digest()[:16]
