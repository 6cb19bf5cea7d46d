"""Rows of a public schema that are read while nobody is here to be asked."""

import threading
from collections.abc import Callable, Sequence


class Unasked:
    """The columns that rows need to have, and what of the rows could not be read.

    Whether a site answers is seen by others, so that no value may decide it: what a person would
    be asked about counts as missing, or is left out, row by row, whatever the other rows are. This
    is noted here, for the site's own log and screen.

    Parameters
    ----------
    names : sequence of str
        Of the columns. Where the names stand in a file, and between which delimiter, is known by
        these, and by no row. Empty if the first line holds the names, whatever they are.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._lock = threading.Lock()
        self._found: dict[str, tuple[int, str]] = {}

    def is_header(self, fields: Sequence[str]) -> bool:
        """Whether a line with these fields holds the names of the columns."""
        return bool(fields) and set(self.names) <= {field.strip() for field in fields}

    def note(self, what: str, times: int, place: Callable[[], str]) -> None:
        """Note that something was found so many times, the first time in a place."""
        with self._lock:
            before, first = self._found.get(what, (0, ""))
            self._found[what] = before + times, first or place()

    @property
    def words(self) -> tuple[str, ...]:
        """Sentences about what could not be read."""
        with self._lock:
            found = sorted(self._found.items())
        return tuple(f"{what}: {times:,}, the first in {first}." for what, (times, first) in found)
