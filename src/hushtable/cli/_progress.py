"""Rows as they are read: counted, and shown on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from hushtable.cli._errors import explain
from hushtable.errors import DataError

if TYPE_CHECKING:
    from hushtable.readers import Batch, Reader

__all__ = ["Watch", "bar_of_steps", "cells_bar", "compile_notice", "watched"]

T = TypeVar("T")


class Watch:
    """A reader that counts what it reads.

    Attributes
    ----------
    reader : Reader
        The same rows, watched.
    rows : int
        Rows of the last complete pass.
    passes : int
        Passes begun.
    """

    def __init__(self, reader: "Reader", passes: int, bar: Any = None) -> None:
        self.rows = 0
        self.passes = 0
        self._source = reader
        self._total = reader.n_rows
        self._expected = passes
        self._bar = bar
        self.reader = replace(reader, read=self._read)

    def _read(self) -> Iterator["Batch"]:
        self.passes += 1
        seen = 0
        task = None
        if self._bar is not None:
            for earlier in self._bar.task_ids:
                self._bar.remove_task(earlier)
            label = "Reading" if self._expected == 1 else f"Pass {self.passes} of {self._expected}"
            task = self._bar.add_task(label, total=self._total)
        batches = self._source.read()
        while (batch := self._next(batches)) is not None:
            yield batch
            seen += len(batch)
            if task is not None:
                self._bar.advance(task, len(batch))
        # The first pass over a CSV file tells the next how long it will be.
        self.rows = self._total = seen

    def _next(self, batches: Iterator["Batch"]) -> "Batch | None":
        try:
            return next(batches, None)
        except OSError as error:
            # Not to be taken for a failure to write what is made of the rows.
            raise DataError(f"cannot read {self._source.source}: {explain(error)}") from error


@contextlib.contextmanager
def watched(reader: "Reader", *, passes: int = 1, quiet: bool = False) -> Iterator[Watch]:
    """Watch a reader while the body reads it; also say so if kernels have to be compiled.

    Parameters
    ----------
    reader : Reader
        The rows.
    passes : int
        How often they will be read.
    quiet : bool
        Show no bar, not even on a terminal.
    """
    with contextlib.ExitStack() as stack:
        bar = None
        if not quiet and sys.stderr.isatty():
            bar = stack.enter_context(_bar())
        stack.enter_context(compile_notice(bar.console.print if bar is not None else None))
        yield Watch(reader, passes, bar)


@contextlib.contextmanager
def cells_bar(total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show how many cells have their noise; give a function that is told of more, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with _bar("cells") as bar:
        task = bar.add_task("Adding noise", total=total)
        yield lambda cells: bar.advance(task, cells)


def _bar(unit: str = "rows") -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Done(ProgressColumn):
        def render(self, task: Any) -> Text:
            done = f"{int(task.completed):,}"
            of = "" if task.total is None else f" of {task.total:,}"
            return Text(f"{done}{of} {unit}")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(complete_style="green", pulse_style="green"),
        Done(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )


@contextlib.contextmanager
def compile_notice(say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Print one line to stderr when the first kernel is compiled in the body; none if all load."""
    from numba.core import event

    class FirstCompile(event.Listener):
        said = False

        def on_start(self, _: Any) -> None:
            if not self.said:
                self.said = True
                line = "Compiling for this machine (first use only, about ten seconds) ..."
                if say is not None:
                    say(line)
                else:
                    print(line, file=sys.stderr, flush=True)

        def on_end(self, _: Any) -> None:
            pass

    with event.install_listener("numba:compile", FirstCompile()):
        yield


def bar_of_steps(steps: Iterable[T], total: int, label: str, quiet: bool) -> Iterator[T]:
    """Yield the steps of a benchmark, with progress on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(steps, description=label, total=total, console=console, transient=True)
