"""The book's SQLite file: statements and transactions, and what fails in them said in words."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from hushtable.errors import FileError

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
    """An open SQLite file, whose errors are `FileError`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=_PATIENCE)
        except sqlite3.Error as error:
            raise self._refused(error) from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def content(self) -> bytes:
        """Return the bytes of the file, or of what would be the file."""
        return self._db.serialize()

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; return the rows that it finds."""
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
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
        return self._db.in_transaction

    def _refused(self, error: sqlite3.Error) -> FileError:
        # The low byte is the kind of error; the rest is which one of the kind.
        advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        return damaged(self.path) if advice is None else FileError(f"{self.path}: {advice}")


def damaged(path: str) -> FileError:
    """Explain that a book cannot be read, and what not to do about it."""
    return FileError(
        f"{path}: holds no book of this version, or a damaged one: restore it from a "
        f"backup. {NO_ANSWERS_WITHOUT}"
    )
