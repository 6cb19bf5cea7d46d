"""Printing results, and writing files safely."""

import contextlib
import glob
import json
import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hushtable.cli.errors import escaped, explain, notes, plain_stream, written
from hushtable.data.schema import Schema
from hushtable.errors import FileError, UsageError
from hushtable.files import remove_leftovers

#: Lines of a list at most; JSON has them all.
MOST_LINES = 40


class Target:
    """A file to be written: refused early if it cannot be, replaced only by a complete one.

    It must be none of ``inputs``, the files that are read.
    """

    def __init__(self, path: Path, inputs: Iterable[str | Path | None] = ()) -> None:
        self.path = path
        if path.is_file() and any(_takes_in(name, path) for name in inputs if name is not None):
            raise UsageError(f"{path} is both read and written: give another -o")
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file"
            raise FileError(f"cannot write {path}: it is {what}: name a file")
        _check_folder(path.parent, f"cannot write {path}")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Name the file if the body fails to write it; note it as written otherwise."""
        try:
            yield
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {explain(error)} (nothing was written)"
            ) from error
        written.append(str(self.path))
        remove_leftovers(self.path.parent, glob.escape(self.path.name))

    def save(self, what: Any) -> None:
        """Write what has a method ``save``."""
        with self.writing():
            what.save(self.path)

    def __str__(self) -> str:
        return f"{self.path} ({size(self.path)})"


class OutputFolder:
    """A folder to be filled with files, made with the first; refused early if it cannot be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = 0
        self._lock = threading.Lock()
        if path.exists() and not path.is_dir():
            raise FileError(f"cannot write to {path}: it is a file: name a folder")
        _check_folder(path if path.exists() else path.parent, f"cannot write to {path}")

    def remove_leftovers(self) -> None:
        """Remove what an earlier call left that was killed."""
        remove_leftovers(self.path, "*.scores.parquet", below=True)

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Name a file of the folder if the body fails to write it; count it otherwise."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise FileError(
                f"cannot write {path}: {explain(error)}; {self} (the same command goes on from "
                "there)"
            ) from error
        with self._lock:
            self._files += 1
            written[:] = [str(self)]

    def __str__(self) -> str:
        files = "1 file" if self._files == 1 else f"{self._files:,} files"
        return f"{files} in {self.path}"


def _check_folder(folder: Path, what: str) -> None:
    """Refuse a folder in which no file can be made."""
    if not folder.is_dir():
        raise FileError(f"{what}: there is no folder {folder}: make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{what}: {folder} is read-only: use another folder")


def _takes_in(source: str | Path, path: Path) -> bool:
    """Whether a file is among those that a path, folder or pattern of rows names."""
    if os.path.isfile(source):
        return os.path.samefile(source, path)
    if path.suffix not in (".csv", ".parquet"):
        return False
    found: Iterable[Any] = glob.iglob(str(source), recursive=True)
    if os.path.isdir(source):
        found = Path(source).rglob("*")
    return any(os.path.samefile(name, path) for name in found if os.path.isfile(name))


def size(path: str | Path) -> str:
    """Return a file's size for people."""
    n = os.path.getsize(path)
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= bytes_:
            return f"{n / bytes_:,.1f} {unit}"
    return f"{n} bytes"


def finish(as_json: bool, facts: dict[str, Any], text: Callable[[], None]) -> None:
    """Print the outcome, for machines or for people, and notes to stderr."""
    for words in notes:
        print(f"hushtable: {shown(words)}", file=sys.stderr)
    try:
        if as_json:
            print(json.dumps(facts, allow_nan=False))
        else:
            text()
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def shown(name: str) -> str:
    """Return a name that may come from somebody else's file, safe to print on a terminal."""
    return escaped(name, kept="")


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence, the first few of many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def print_sentences(sentences: Iterable[str], indent: str = "") -> None:
    """Print sentences, each folded to lines that a terminal and a printout hold."""
    for sentence in sentences:
        print(textwrap.fill(sentence, 88, initial_indent=indent, subsequent_indent=indent))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print a table; the first ``left`` columns hold text, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for j, header in enumerate(headers):
        table.add_column(
            Text(escaped(header)), justify="left" if j < left else "right", overflow="fold"
        )
    for row in rows[:MOST_LINES]:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    # Rich styles the table by characters that a terminal obeys, and so needs the stream itself.
    # A pipe has no width of its own; 80 columns would fold what a file can hold.
    width = None if sys.stdout.isatty() else 120
    Console(file=plain_stream(), width=width, highlight=False).print(table)
    if len(rows) > MOST_LINES:
        print(f"... and {len(rows) - MOST_LINES:,} more (--json lists all)")


def tally(schema: Schema, counts: Any) -> dict[str, dict[str, int]]:
    """Return missing and outside counts of the features that have some."""
    return {
        name: {"missing": int(missing), "outside": int(outside)}
        for name, (missing, outside) in zip(schema.names, counts, strict=True)
        if missing or outside
    }


def print_tally(schema: Schema, counts: Any, n_rows: int) -> None:
    """Print how many values were missing, or outside the plan, feature by feature."""
    found = [(n, one["missing"], one["outside"]) for n, one in tally(schema, counts).items()]
    if not found:
        print("No value is missing or outside the plan.\n")
        return
    print()
    rows = [(shown(name), f"{missing:,}", f"{outside:,}") for name, missing, outside in found]
    print_table(["feature", "missing", "outside"], rows)
    print()
    if any(outside for _, _, outside in found):
        print("Outside: numbers beyond the range, categories not listed.\n")
    doubtful = [name for name, _, outside in found if 2 * outside > n_rows]
    if doubtful:
        print(f"Most rows lie outside in {listed(doubtful)}: does the data have another unit")
        print("than the plan, or other names for the categories?\n")
