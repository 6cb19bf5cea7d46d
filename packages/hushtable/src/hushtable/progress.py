"""Progress of long calls from Python: a line on stderr, and a notice when kernels are compiled.

Appears if someone waits at a prompt or in a notebook; the environment variable
``HUSHTABLE_PROGRESS=0`` turns it off, and ``=1``, set before Python starts, also turns it on in
scripts. Commands have bars of their own. May import `kernels` and the packages below it; tested in
``tests/test_notebook.py``.
"""

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from hushtable.kernels import notice

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds of work before the line appears, and between two updates.
SILENT, EVERY = 2.0, 0.2

_FORCED = os.environ.get("HUSHTABLE_PROGRESS") == "1"
_OF_SYS, _FLAGS = vars(sys), sys.flags


class ProgressLine:
    """One line on stderr with the progress of a call; threads add the rows that they read."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._next = self._began + SILENT
        self._passes = self._rows = self._width = 0
        self._total: int | None = None
        self._lock = threading.Lock()

    def begin_pass(self, n_rows: int | None) -> None:
        """Begin another pass over this many rows; None if unknown."""
        # After the first pass over a CSV file, its length is known.
        self._total, self._rows = n_rows or self._rows or None, 0
        self._passes += 1

    def add(self, rows: int) -> None:
        """Add rows that were read, and update the line if it is time."""
        with self._lock:
            self._rows += rows
            now = time.monotonic()
            if now >= self._next:
                self._next = now + EVERY
                of = "" if self._total is None else f" of {self._total:,}"
                seconds = f"{now - self._began:.0f} s"
                self._write(
                    f"{self._label}: pass {self._passes}, {self._rows:,}{of} rows, {seconds}"
                )

    def say(self, text: str) -> None:
        """Write a line that stays."""
        with self._lock:
            self._write("")
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Remove the line."""
        with self._lock:
            self._write("")

    def _write(self, text: str) -> None:
        if text or self._width:
            back = "" if text else "\r"
            with contextlib.suppress(OSError, ValueError):  # closed: no one is watching
                sys.stderr.write(f"\r{text:<{self._width}}{back}")
                sys.stderr.flush()
            self._width = len(text)


class _Here(threading.local):
    """The line of the call that this thread is in, and whether another may appear."""

    line: ProgressLine | None = None
    busy: bool = False


_here = _Here()


def shown(label: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Show the progress of a function's calls, but not of nested calls."""

    def shows(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if not _wanted() or _here.busy:
                return function(*args, **kwargs)
            line = ProgressLine(label)
            with contextlib.ExitStack() as stack:
                stack.enter_context(silenced(line))
                stack.callback(line.end)
                stack.enter_context(compile_notice(line.say))
                return function(*args, **kwargs)

        return call

    return shows


def begin_pass(n_rows: int | None) -> ProgressLine | None:
    """Begin a pass over rows; return the line to add them to, or None without a line."""
    if _here.line is not None:
        _here.line.begin_pass(n_rows)
    return _here.line


@contextlib.contextmanager
def silenced(line: ProgressLine | None = None) -> Iterator[None]:
    """Show only the given line in the body of this thread."""
    before = _here.busy, _here.line
    _here.busy, _here.line = True, line
    try:
        yield
    finally:
        _here.busy, _here.line = before


def _wanted() -> bool:
    # In this order, a script that scores row by row pays a tenth of a microsecond each time.
    # Python defines sys.ps1 if there is a prompt, also in IPython and notebooks.
    if not (_FORCED or "ps1" in _OF_SYS or _FLAGS.interactive):
        return False
    return sys.stderr is not None and os.environ.get("HUSHTABLE_PROGRESS") != "0"


@contextlib.contextmanager
def compile_notice(say: Callable[[str], None]) -> Iterator[None]:
    """In the body, let ``say`` write the notice that kernels are compiled, as above a bar."""
    before, notice.say = notice.say, say
    try:
        yield
    finally:
        notice.say = before
