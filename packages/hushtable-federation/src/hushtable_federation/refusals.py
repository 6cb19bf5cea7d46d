"""The words in which a site refuses: a closed list, and nothing else of a reason travels.

A reason in free words can hold a row, a path or a number of rows. What travels is one of the
words below; what went wrong is written to a log beside the site's book. The list has a version,
`VERSION`, and is explained in ``docs/threats.md``.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from hushtable.errors import HushTableError, RoundError

_LOG = logging.getLogger(__name__)

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
    """Where a site's own words go: a file beside its book, readable by its owner alone."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, time: str, round_id: str, step: str, word: str, message: str) -> None:
        """Add a line; round, step and message may hold anything, line breaks included.

        Where the file cannot be written, the line goes to the program's own log: anyone who asked
        gets the word all the same, and nothing of this.
        """
        plain = (ascii(str(field))[1:-1] for field in (round_id[:12], step, word, message))
        line = "\t".join((time, *plain))
        try:
            number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(number, "a", encoding="ascii") as file:
                if os.name == "posix":  # a file that was there before may be open to others
                    os.fchmod(number, 0o600)
                file.write(line + "\n")
        except OSError as error:
            _LOG.error("%s cannot be written (%s): %s", self.path, error.strerror, line)
