"""Count rows as they are read, and show the count on a terminal."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from hushtable.cli.result import for_machines
from hushtable.data.readers import Batch, Reader
from hushtable.errors import DataError, explain
from hushtable.progress import compile_notice

T = TypeVar("T")

#: The colour of rows in the report; a terminal of fewer colours shows its nearest.
BLUE = "#1f6fb2"


class Watch:
    """Counts the rows that a reader reads, and shows the count; ``reader`` reads the same rows.

    ``rows`` are the rows of the last pass, ``passes`` the number of passes begun. The final number
    of passes is not known, because results of the first may be kept for the others.
    """

    def __init__(self, reader: Reader, bar: Any = None) -> None:
        self.rows = self.passes = 0
        self._source = reader
        self._total = reader.n_rows
        self._unread = 0
        self._bar = bar
        self._task: Any = None
        self._lock = threading.Lock()
        parts = [replace(part, read=partial(self._read, part)) for part in reader.parts]
        self.reader = reader.with_parts(parts)

    def _read(self, part: Reader) -> Iterator[Batch]:
        with self._lock:
            if self._unread == 0:
                self._begin_pass()
            self._unread -= 1
        batches = part.read()
        while (batch := self._next(batches, part.source)) is not None:
            yield batch
            with self._lock:
                self._note(len(batch))

    def _begin_pass(self) -> None:
        self._unread = len(self._source.parts)
        self.passes += 1
        # After the first pass over a CSV file, its length is known.
        total, self.rows = self._total or self.rows or None, 0
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            label = "Reading" if self.passes == 1 else f"Reading again (pass {self.passes})"
            size = self._source.n_bytes
            self._task = self._bar.add_task(label, total=size or total, rows=0, bytes=size)

    def _note(self, rows: int) -> None:
        self.rows += rows
        if self._bar is not None:
            done = self._source.bytes_read() if self._source.n_bytes else self.rows
            self._bar.update(self._task, completed=done, rows=self.rows)

    def _next(self, batches: Iterator[Batch], source: str) -> "Batch | None":
        try:
            return next(batches, None)
        except OSError as error:
            # This must not be mistaken for a failure to write the result.
            raise DataError(f"cannot read {source}: {explain(error)}") from error


def _wanted(quiet: bool) -> bool:
    """Return whether to show a bar: on a terminal, unless a machine reads the output."""
    return not (quiet or for_machines()) and sys.stderr.isatty()


@contextlib.contextmanager
def watched(reader: Reader, *, quiet: bool = False) -> Iterator[Watch]:
    """Watch a reader while the body reads it.

    With ``quiet``, show no bar, not even on a terminal.
    """
    with contextlib.ExitStack() as stack:
        bar = None
        if _wanted(quiet):
            bar = stack.enter_context(_bar(_rows_and_bytes))
            stack.enter_context(compile_notice(bar.console.print))
        yield Watch(reader, bar)


@contextlib.contextmanager
def cells_bar(total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show how many cells have noise already; yield a function that adds to them, or None."""
    if not _wanted(quiet):
        yield None
        return
    with _bar(lambda task: f"{int(task.completed):,} of {task.total:,} cells") as bar:
        task = bar.add_task("Adding noise", total=total)
        yield lambda cells: bar.advance(task, cells)


def _rows_and_bytes(task: Any) -> str:
    """Report the progress of a pass in rows and, for files, in bytes, whose total is known."""
    rows = task.fields["rows"]
    if not task.fields["bytes"]:
        of = "" if task.total is None else f" of {task.total:,}"
        return f"{rows:,}{of} rows"
    return f"{rows:,} rows, {task.completed / 1e6:,.1f} of {task.total / 1e6:,.1f} MB"


def _bar(done: Callable[[Any], str]) -> Any:
    from rich.console import Console  # only on a terminal
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Done(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(done(task))

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(complete_style=BLUE, finished_style=BLUE, pulse_style=BLUE),
        Done(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )


def bar_of_steps(steps: Iterable[T], total: int, label: str, quiet: bool) -> Iterator[T]:
    """Yield the steps of a benchmark, with progress on a terminal."""
    if not _wanted(quiet):
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(steps, description=label, total=total, console=console, transient=True)
