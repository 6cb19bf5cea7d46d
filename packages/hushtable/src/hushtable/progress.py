"""Progress of long calls from Python: a line on stderr, and a word when kernels are compiled.

Shown where someone waits at a prompt or a notebook; the environment's ``HUSHTABLE_PROGRESS=0``
shows none, and ``=1``, set before Python starts, shows it in scripts too. Commands have bars of
their own. May import `kernels` and what lies below; tested in ``tests/test_notebook.py``.
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

#: Seconds of work before the line is shown, and between two of its states.
SILENT, EVERY = 2.0, 0.2

_FORCED = os.environ.get("HUSHTABLE_PROGRESS") == "1"
_OF_SYS, _FLAGS = vars(sys), sys.flags


class ProgressLine:
    """One line on stderr that says how far a call is; threads add the rows that they read."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._next = self._began + SILENT
        self._passes = self._rows = self._width = 0
        self._total: int | None = None
        self._lock = threading.Lock()

    def begin_pass(self, n_rows: int | None) -> None:
        """Begin another pass over so many rows; None if that is not known."""
        # After the first pass over a CSV file, its length is known.
        self._total, self._rows = n_rows or self._rows or None, 0
        self._passes += 1

    def add(self, rows: int) -> None:
        """Add rows that were read, and show it if it is time to."""
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
        """Take the line away."""
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
    """The line of the call that this thread is in, and whether another may be shown."""

    line: ProgressLine | None = None
    busy: bool = False


_here = _Here()


def shown(label: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Show the progress of a function's calls; not of those that they make in turn."""

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
    """Begin a pass over rows; return the line to add them to, or None if none is shown."""
    if _here.line is not None:
        _here.line.begin_pass(n_rows)
    return _here.line


@contextlib.contextmanager
def silenced(line: ProgressLine | None = None) -> Iterator[None]:
    """Show no line in the body of this thread but the given one."""
    before = _here.busy, _here.line
    _here.busy, _here.line = True, line
    try:
        yield
    finally:
        _here.busy, _here.line = before


def _wanted() -> bool:
    # In this order a script that scores row after row pays a tenth of a microsecond each time.
    # Python has a text for the prompt where there is one, IPython's and a notebook's included.
    if not (_FORCED or "ps1" in _OF_SYS or _FLAGS.interactive):
        return False
    return sys.stderr is not None and os.environ.get("HUSHTABLE_PROGRESS") != "0"


@contextlib.contextmanager
def compile_notice(say: Callable[[str], None]) -> Iterator[None]:
    """In the body, let ``say`` write the notice that kernels are compiled: above a bar, say."""
    before, notice.say = notice.say, say
    try:
        yield
    finally:
        notice.say = before
