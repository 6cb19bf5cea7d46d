"""A temporary copy of rows that can be fetched once only, or from afar."""

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hushtable.data.readers._reader import Batch, Reader
from hushtable.errors import DataError

Read = Callable[[], Iterator[Batch]]


@dataclass(frozen=True, eq=False)
class Copy:
    """A file that its owner alone may read, removed with the last that refers to it."""

    #: Of what it is a copy, for messages.
    source: str
    path: Path

    @classmethod
    def of(cls, source: str, ending: str) -> "Copy":
        """Return an empty file whose name has this ending."""
        number, path = tempfile.mkstemp(prefix="hushtable-", suffix=ending)
        os.close(number)
        copy = cls(source, Path(path))
        weakref.finalize(copy, copy.path.unlink, missing_ok=True)  # at the end at the latest
        return copy

    def reader(self, open_: Callable[[Path], Reader]) -> Reader:
        """Open the copy; messages name what it is a copy of."""
        with self._named():
            rows = open_(self.path)
        project = rows.project
        return replace(
            rows,
            read=self._reading(rows.read),
            source=self.source,
            files=(),
            project=project and (lambda columns: self._reading(project(columns))),
        )

    def _reading(self, read: Read) -> Read:
        def batches() -> Iterator[Batch]:
            with self._named():
                yield from read()

        return batches

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise type(error)(str(error).replace(str(self.path), self.source)) from None
        except OSError as error:  # which would name the copy, or the URL with its secrets
            raise DataError(f"{self.source}: its copy cannot be read: {error.strerror}") from None
