"""New rows since the last run of a watch: files that came or changed, rows with another id."""

import glob
import hashlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushtable.cli._errors import explain
from hushtable.cli._watch_place import Place, digest_of
from hushtable.data.readers import Batch, Reader, paths, taken
from hushtable.errors import DataError, UsageError


@dataclass
class NewFile:
    """A file that is to be scored."""

    path: Path
    seen: os.stat_result
    digest: bytes = b""

    def changed(self) -> bool:
        """Whether somebody has written to it since it was seen."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return True
        return (now.st_size, now.st_mtime_ns) != (self.seen.st_size, self.seen.st_mtime_ns)

    def note(self, place: Place) -> None:
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

    def waiting(self, place: Place) -> Iterator[NewFile]:
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

    def is_same(self, new: NewFile, place: Place) -> bool:
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
        """Leave a file, to which somebody writes, for the next run."""
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
                f"{self._source.source}: a row has no {self._id!r}: rows are told apart by --id; "
                "leave those without out in the query"
            )
        return hashlib.sha256(text.encode()).digest()[:16]
