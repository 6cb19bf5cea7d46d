"""Progress of long work as a bar on stderr, and a notice when kernels are compiled.

Commands have bars on a terminal. Calls from Python have them if someone waits at a prompt or in a
notebook (there, with ipywidgets); the environment variable ``HUSHTABLE_PROGRESS=0`` turns all of
this off, and ``=1``, set before Python starts, also turns it on in scripts. Imports `errors` only;
tested in ``tests/test_progress.py``.
"""

import contextlib
import functools
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

from hushtable.errors import DataError, explain

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: Seconds of work from Python before its bar appears, and of compiling before the notice does.
SILENT, COMPILING = 2.0, 1.0
#: The colour of rows in the report; a terminal of fewer colours shows its nearest.
BLUE = "#1f6fb2"
#: Whether no bar appears because a machine reads the output.
for_machines = False

_FORCED = os.environ.get("HUSHTABLE_PROGRESS") == "1"
_OF_SYS, _FLAGS = vars(sys), sys.flags


class Bar:
    """A bar with the progress of passes over rows, or of other steps; threads may add to it."""

    def __init__(self, label: str, unit: str = "rows", silent: float = 0.0) -> None:
        self._label, self._unit = label, unit
        self._due = time.monotonic() + silent
        self._lock = threading.Lock()
        self._drawing: Any = None
        self._total: int | None = None
        self._size: int | None = None
        #: Number of passes that began, and of rows or steps that the last of them did so far.
        self.passes = self.done = 0

    def begin_pass(self, total: int | None = None, size: int | None = None) -> None:
        """Begin another pass over so many rows, None if unknown; ``size`` is in bytes."""
        with self._lock:
            # After the first pass over a CSV file, its length is known.
            self._total, self._size, self.done = total or self.done or None, size, 0
            self.passes += 1
            if self._drawing is not None:
                self._drawing.reset(0, total=size or self._total, description=self._description)

    def add(self, n: int, n_bytes: int = 0) -> None:
        """Add rows or steps that were done; ``n_bytes`` were read in the whole pass so far."""
        with self._lock:
            self.done += n
            if self._drawing is None and time.monotonic() >= self._due:
                self._drawing = _drawing()
                if self._drawing is not None:
                    total = self._size or self._total
                    self._drawing.add_task(self._description, total=total, done="")
                    _drawn.append(self._drawing)
            if self._drawing is None:
                return
            of = "" if self._total is None else f" of {self._total:,}"
            words = f"{self.done:,}{of} {self._unit}"
            if self._size:
                words = f"{self.done:,} {self._unit}, {n_bytes / 1e6:,.1f} of "
                words += f"{self._size / 1e6:,.1f} MB"
            completed = n_bytes if self._size else self.done
            self._drawing.update(0, completed=completed, done=words)

    @property
    def _description(self) -> str:
        return self._label if self.passes < 2 else f"{self._label} (pass {self.passes})"

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawing is not None:
            self._drawing.stop()
            _drawn.remove(self._drawing)


#: The bars on the screen.
_drawn: list[Any] = []


def _console() -> Any:
    """Return the console to draw in; None in a notebook without the widgets that rich needs."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    lacks = console.is_jupyter and importlib.util.find_spec("ipywidgets") is None
    return None if lacks else console


def _drawing() -> Any:
    if (console := _console()) is None:
        return None
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    drawing = Progress(
        TextColumn("{task.description}"),
        BarColumn(complete_style=BLUE, finished_style=BLUE, pulse_style=BLUE),
        TextColumn("{task.fields[done]}", markup=False),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
    )
    drawing.start()
    return drawing


# --- calls from Python ----------------------------------------------------------------------------


class _Here(threading.local):
    """The bar of the call that this thread is in, and whether another may appear."""

    bar: Bar | None = None
    busy: bool = False


_here = _Here()


def with_progress(label: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Show the progress of a function's calls, but not of nested calls."""

    def shows(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            # In this order, a script that scores row by row pays a tenth of a microsecond each
            # time. Python defines sys.ps1 if there is a prompt, also in IPython and notebooks.
            if not (_FORCED or "ps1" in _OF_SYS or _FLAGS.interactive):
                return function(*args, **kwargs)
            if _here.busy or not is_watched():
                return function(*args, **kwargs)
            with Bar(label, silent=SILENT) as bar, silenced(bar):
                return function(*args, **kwargs)

        return call

    return shows


def begin_pass(n_rows: int | None) -> Bar | None:
    """Begin a pass over rows; return the bar to add them to, or None without a bar."""
    if _here.bar is not None:
        _here.bar.begin_pass(n_rows)
    return _here.bar


@contextlib.contextmanager
def silenced(bar: Bar | None = None) -> Iterator[None]:
    """Show only the given bar in the body of this thread."""
    before = _here.busy, _here.bar
    _here.busy, _here.bar = True, bar
    try:
        yield
    finally:
        _here.busy, _here.bar = before


# --- commands -------------------------------------------------------------------------------------


class Watch(Generic[R]):
    """Counts the rows that a reader reads; ``reader`` reads the same rows.

    ``rows`` are the rows of the last pass, ``passes`` the number of passes begun. The final number
    of passes is not known, because results of the first may be kept for the others.
    """

    reader: R

    def __init__(self, reader: Any, bar: Bar | None) -> None:
        self.rows = self.passes = 0
        self._source, self._bar = reader, bar
        self._unread = 0
        self._lock = threading.Lock()
        self.reader = reader.watched(self._read)

    def _read(self, part: Any, batches: Iterator[Any]) -> Iterator[Any]:
        with self._lock:
            if self._unread == 0:
                self._unread, self.rows = len(self._source.parts), 0
                self.passes += 1
                if self._bar is not None:
                    self._bar.begin_pass(self._source.n_rows, self._source.n_bytes)
            self._unread -= 1
        while True:
            try:
                batch = next(batches, None)
            except OSError as error:
                # This must not be mistaken for a failure to write the result.
                raise DataError(f"cannot read {part.source}: {explain(error)}") from error
            if batch is None:
                return
            yield batch
            with self._lock:
                self.rows += len(batch)
                if self._bar is not None:
                    size = self._source.n_bytes
                    self._bar.add(len(batch), self._source.bytes_read() if size else 0)


@contextlib.contextmanager
def watched(reader: R, *, quiet: bool = False) -> Iterator[Watch[R]]:
    """Watch a reader while the body reads it; with ``quiet``, there is never a bar."""
    with Bar("Reading") as bar:
        yield Watch(reader, bar if _on_terminal() and not quiet else None)


@contextlib.contextmanager
def bar_of(label: str, total: int, unit: str) -> Iterator[Callable[[int], None] | None]:
    """Show how many of some units are done; yield a function that adds to them, or None."""
    with Bar(label, unit) as bar:
        bar.begin_pass(total)
        yield bar.add if _on_terminal() else None


def bar_of_steps(steps: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Yield the steps of a benchmark, with progress on a terminal."""
    with bar_of(label, total, "steps") as add:
        for step in steps:
            yield step
            if add is not None:
                add(1)


def _on_terminal() -> bool:
    return not for_machines and sys.stderr.isatty()


# --- compiling ------------------------------------------------------------------------------------

KEPT = "Compiling for this machine (first use only, about five seconds) ..."
AGAIN = (
    "Compiling for this machine (about five seconds each time: no folder is writable that "
    "could store the result; set NUMBA_CACHE_DIR to one) ..."
)


def is_watched() -> bool:
    """Return whether someone is waiting at a terminal, a prompt or a notebook."""
    wish = os.environ.get("HUSHTABLE_PROGRESS")
    if sys.stderr is None or sys.stderr.closed or wish == "0":
        return False
    at_prompt = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return wish == "1" or at_prompt or sys.stderr.isatty()


class CompileNotice:
    """States once that kernels are compiled, if this takes over `COMPILING` seconds together.

    Numba compiles one kernel at a time, and within it the kernels that it inlines.
    """

    def __init__(self) -> None:
        self.text = KEPT
        self._depth = 0
        self._spent = self._began = 0.0
        self._stated = False

    def begin(self) -> None:
        """Record that compiling begins, possibly within another compilation."""
        now = time.monotonic()
        if self._depth == 0:
            self._began = now
        self._depth += 1
        if not self._stated and self._spent + now - self._began >= COMPILING and is_watched():
            self._stated = True
            say(self.text)

    def end(self) -> None:
        """Record that it ends."""
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._began


compile_notice = CompileNotice()


def say(text: str) -> None:
    """Write a line that stays on stderr, above a bar."""
    if _drawn:
        _drawn[-1].console.print(text)
        return
    with contextlib.suppress(OSError, ValueError):  # closed: no one is watching
        print(text, file=sys.stderr, flush=True)
