"""The words in which a site refuses: a closed list, and the only part of a reason that is sent.

A reason in free words could contain a row, a path or a number of rows. So only one of the words
below is sent; the details are written to a log beside the site's book. The list has a version,
`VERSION`, and is explained in ``docs/explanation/threats.md``.
"""

import contextlib
import errno
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from hushtable.errors import HushTableError, RoundError

_LOG = logging.getLogger(__name__)

#: Increased when a word is added, removed, or changes its meaning.
VERSION = 1


class Refusal(StrEnum):
    """One word that states why there is no answer.

    All except `UNAVAILABLE` depend only on the request, the clock, the site's policy and its book,
    never on its rows. `UNAVAILABLE` is the one word for everything that can fail at a site: rows
    that cannot be read, a full disk, a missing library.
    """

    #: The request is malformed, or not signed by the round's coordinator.
    REQUEST = "request"
    #: The round is not for this site: other keys, another plan, or another kind.
    ROUND = "round"
    #: By the site's clock, the round is not open.
    TIME = "time"
    #: The site's policy does not allow it.
    POLICY = "policy"
    #: The coordinator, or too many of the sites, are not known to this one.
    UNKNOWN = "unknown"
    #: The site's budget is not sufficient.
    BUDGET = "budget"
    #: The site has already answered a different request.
    ANSWERED = "answered"
    #: An earlier step is missing.
    ORDER = "order"
    #: The list names sites that did not take part so far, or too few sites.
    SITES = "sites"
    #: The request presents something invalid as sent by another site.
    SHARES = "shares"
    #: The site cannot answer, for a reason of its own.
    UNAVAILABLE = "unavailable"
    #: Recorded by the coordinator: no answer arrived.
    SILENT = "silent"
    #: Recorded by the coordinator: what arrived is not an answer of this site to this step.
    GARBLED = "garbled"


class Refused(RoundError):
    """A refusal: the word that is sent, and the message that stays here."""

    def __init__(self, word: Refusal, message: str) -> None:
        super().__init__(message)
        self.word = word


@contextlib.contextmanager
def refusing(word: Refusal) -> Iterator[None]:
    """Attach this word to any refusal in the body that has none."""
    try:
        yield
    except HushTableError as error:
        error.word = error.word or word
        raise


def raise_first(error: Callable[[str], Exception], faults: Mapping[str, object]) -> None:
    """Raise an error about the first fault that holds; each has its message as its key."""
    for words, holds in faults.items():
        if holds:
            raise error(words)


class SiteLog:
    """The log of a site's own messages: JSON lines in a file beside its book, for its owner only.

    Reasons can contain a row or a path, and whether there is a line may depend on the rows.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, time: str, round_id: str, step: str, word: str, message: str) -> None:
        """Add a line; round, step and message may contain anything, including line breaks.

        If it cannot be written, it goes to the program's own log: the party that asked gets the
        word anyway, and learns nothing about this.
        """
        record = {"time": time, "round": round_id[:12], "step": step, "word": word, "why": message}
        line = json.dumps(record)
        try:
            _append(self.path, line)
        except OSError as error:
            _LOG.error("%s cannot be written (%s): %s", self.path, error.strerror, line)


def _append(path: Path, line: str) -> None:
    # The line is written completely or not at all.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    number = os.open(path, flags, 0o600)
    try:
        if os.name == "posix":  # an existing file may be open to others
            os.fchmod(number, 0o600)
        content, before = (line + "\n").encode("ascii"), os.fstat(number).st_size
        if os.write(number, content) < len(content):  # a full disk stores a part
            os.ftruncate(number, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(number)
