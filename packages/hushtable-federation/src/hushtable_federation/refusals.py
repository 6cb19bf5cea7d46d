"""The words in which a site refuses: a closed list, and nothing else of a reason travels.

A reason in free words can hold a row, a path or a number of rows. What travels is one of the
words below; what went wrong is written to a log beside the site's book. The list has a version,
`VERSION`, and is explained in ``docs/explanation/threats.md``.
"""

import contextlib
import errno
import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, HushTableError, RoundError, explain

_LOG = logging.getLogger(__name__)
#: Where the system's log listens.
SYSLOG = "/var/run/syslog" if sys.platform == "darwin" else "/dev/log"

#: Raised when a word is added, goes, or changes its meaning.
VERSION = 1


class Refusal(StrEnum):
    """One word for why there is no answer.

    All but `UNAVAILABLE` depend on the request, the clock, the site's policy and its book alone,
    never on its rows. `UNAVAILABLE` is the one word for all that can fail at a site: rows that
    cannot be read, a full disk, a missing library.
    """

    REQUEST = "request"
    """The request is not of its form, or not signed by the round's coordinator."""
    ROUND = "round"
    """The round is not for this site: other keys, another plan, of another kind."""
    TIME = "time"
    """By the site's clock, the round is not open."""
    POLICY = "policy"
    """The site's policy does not allow it."""
    UNKNOWN = "unknown"
    """The coordinator, or too many of the sites, are not known to this one."""
    BUDGET = "budget"
    """The site's budget does not suffice."""
    ANSWERED = "answered"
    """It was answered before, to another request."""
    ORDER = "order"
    """A step comes first that was not asked."""
    SITES = "sites"
    """The list of sites is not one of those who took part so far, or they are too few."""
    SHARES = "shares"
    """What another site is said to have sent does not check out."""
    UNAVAILABLE = "unavailable"
    """The site cannot answer, for a reason of its own."""
    SILENT = "silent"
    """Noted by the coordinator: no answer came."""
    GARBLED = "garbled"
    """Noted by the coordinator: what came is no answer of this site to this step."""


class Refused(RoundError):
    """A refusal: the word that travels, and the words that stay."""

    def __init__(self, word: Refusal, message: str) -> None:
        super().__init__(message)
        self.word = word


@contextlib.contextmanager
def refusing(word: Refusal) -> Iterator[None]:
    """Give what is refused in the body this word, unless it has one."""
    try:
        yield
    except HushTableError as error:
        error.word = error.word or word
        raise


class SiteLog:
    """Where a site's own words go: lines of JSON in a file beside its book, for its owner alone.

    Reasons can hold a row or a path. What the site's file names besides (``log``) gets the same
    lines without them, and those of `visit`.

    Parameters
    ----------
    path : path-like
        The file beside the book.
    shared : str
        ``"syslog"`` or a path; empty for none.
    """

    def __init__(self, path: str | os.PathLike[str], shared: str = "") -> None:
        self.path, self._shared = Path(path), shared

    def write(self, time: str, round_id: str, step: str, word: str, message: str) -> None:
        """Add a line; round, step and message may hold anything, line breaks included.

        Where it cannot be written, it goes to the program's own log: anyone who asked gets the
        word all the same, and nothing of this.
        """
        record = {"time": time, "round": round_id[:12], "step": step, "word": word}
        line = json.dumps(record | {"why": message})
        try:
            _append(self.path, line, private=True)
        except OSError as error:
            _LOG.error("%s cannot be written (%s): %s", self.path, error.strerror, line)
        try:
            self.visit(record)
        except FileError as error:
            _LOG.error("%s", error)

    def visit(self, record: Mapping[str, Any]) -> None:
        """Add a line to what the site's file names; raises `FileError` if it cannot be written."""
        if not self._shared:
            return
        try:
            if self._shared == "syslog":
                _to_system(json.dumps(record))
            else:
                _append(Path(self._shared), json.dumps(record))
        except OSError as error:
            raise FileError(
                f"log: {self._shared} cannot be written: {explain(error)} (this visit is not in it)"
            ) from None


def _append(path: Path, line: str, *, private: bool = False) -> None:
    """Add a line to a file, whole or not at all."""
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600 if private else 0o640)
    try:
        if private and os.name == "posix":  # a file that was there before may be open to others
            os.fchmod(number, 0o600)
        content, before = (line + "\n").encode("ascii"), os.fstat(number).st_size
        if os.write(number, content) < len(content):  # a full disk takes a part
            os.ftruncate(number, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(number)


def _to_system(line: str) -> None:
    """Send a line to the system's log."""

    class Raising(logging.handlers.SysLogHandler):
        def handleError(self, record: logging.LogRecord) -> None:
            raise

    handler = Raising(SYSLOG)
    try:
        handler.ident = "hushtable: "
        handler.emit(logging.LogRecord("hushtable", logging.INFO, "", 0, line, None, None))
    finally:
        handler.close()
