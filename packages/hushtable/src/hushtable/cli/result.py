"""Results of commands, their one renderer (text for people, JSON for machines), and their files.

A command returns a `CommandResult`: facts, which are the object of ``--json``, and blocks, which
state the same in words: see `hushtable.blocks`.
"""

import contextlib
import glob
import io
import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hushtable import progress
from hushtable.blocks import Block, Heading, Items, LabelledValues, Paragraph, TextTable
from hushtable.cli.errors import escaped, plain_stream, written
from hushtable.data.options import first_names, notes
from hushtable.data.schema import Schema
from hushtable.errors import FileError, UsageError, explain, without_secrets
from hushtable.files import remove_leftovers

__all__ = [
    "MOST_LINES",
    "Block",
    "CommandResult",
    "Facts",
    "LabelledValues",
    "Paragraph",
    "TextTable",
    "as_text",
    "for_machines",
    "machine_output",
    "show",
    "writing",
]

#: What ``--json`` prints, by its keys.
Facts: TypeAlias = dict[str, Any]
#: Largest number of lines of a list; JSON has them all.
MOST_LINES = 40


@dataclass(frozen=True)
class CommandResult:
    """Outcome of a command, for machines and for people.

    Attributes
    ----------
    facts : dict
        For machines: what ``--json`` prints.
    blocks : tuple of Block
        For people.
    code : int
        Exit code.
    """

    facts: Mapping[str, object]
    blocks: Iterable[Block] = ()
    code: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))

    def write(self) -> int:
        """Print it, and notes on stderr; return the exit code."""
        with writing():
            if for_machines():
                print(json.dumps(self.facts, allow_nan=False))
            else:
                show(*self.blocks)
        return self.code


def for_machines() -> bool:
    """Return whether the running command was given ``--json``: nothing but JSON is printed."""
    return progress.for_machines


@contextlib.contextmanager
def machine_output(asked: bool) -> Iterator[None]:
    """Let the body write for machines, if ``--json`` was given."""
    before, progress.for_machines = progress.for_machines, asked
    try:
        yield
    finally:
        progress.for_machines = before


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Print notes; an error in the body, which prints the outcome, names standard output."""
    for words in dict.fromkeys(notes):  # rows that are read twice have the same notes
        print(f"hushtable: {escaped(words, kept='')}", file=sys.stderr)
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def show(*blocks: Block) -> None:
    """Print blocks at once."""
    for block in blocks:
        match block:
            case str():
                print(block)
            case Heading():
                print(f"\n{block.text}\n")
            case Paragraph():
                for sentence in block.sentences:
                    print(_folded(sentence, block.indent, block.indent))
            case Items():
                for text in block.texts:
                    print(_folded(text, "- ", "  "))
            case LabelledValues():
                for label, value in block.values.items():
                    if value:
                        print(f"{block.indent}{label:<17}{escaped(value, kept='')}")
            case TextTable():
                _print_table(block)


def _folded(text: str, first: str, others: str) -> str:
    return textwrap.fill(text, 88, initial_indent=first, subsequent_indent=others)


def _print_table(block: TextTable) -> None:
    from rich import box  # most results have no table
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for j, header in enumerate(block.headers):
        justify: Any = "left" if j < block.left else "right"
        table.add_column(Text(escaped(header, kept="")), justify=justify, overflow="fold")
    for row in block.rows[:MOST_LINES]:
        table.add_row(*(Text(escaped(cell, kept="")) for cell in row))
    # Rich styles the table with control characters of the terminal, and so needs the stream
    # itself. A pipe has no width of its own; 80 columns would fold lines that a file can hold.
    width = None if sys.stdout.isatty() else 120
    Console(file=plain_stream(), width=width, highlight=False).print(table)
    if len(block.rows) > MOST_LINES:
        print(f"... and {len(block.rows) - MOST_LINES:,} more (--json lists all)")


def as_text(blocks: Iterable[Block]) -> str:
    """Return blocks as they are printed into a file."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        show(*blocks)
    return out.getvalue()


class Target:
    """A file to be written: refused early if it is not writable, replaced only by a complete one.

    It must not be one of ``inputs``, the files that are read.
    """

    def __init__(self, path: Path, inputs: Iterable[str | Path | None] = ()) -> None:
        self.path = path
        _check_name(path)
        if path.is_file() and any(_takes_in(name, path) for name in inputs if name is not None):
            raise UsageError(f"{path} is both read and written: give a different -o")
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
        """Write an object that has a method ``save``."""
        with self.writing():
            what.save(self.path)

    def __str__(self) -> str:
        return f"{self.path} ({size(self.path)})"


class OutputFolder:
    """A folder to be filled with files, made with the first; refused early if not writable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_name(path)
        self._files = 0
        if path.exists() and not path.is_dir():
            raise FileError(f"cannot write to {path}: it is a file: name a folder")
        _check_folder(path if path.exists() else path.parent, f"cannot write to {path}")

    def remove_leftovers(self) -> None:
        """Remove what an earlier, killed call left behind."""
        remove_leftovers(self.path, "*.scores.parquet", below=True)

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Name a file of the folder if the body fails to write it; count it otherwise."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise FileError(
                f"cannot write {path}: {explain(error)}; {self} (the same command continues from "
                "there)"
            ) from error
        self._files += path.exists()  # nothing is written of a file without rows
        written[:] = [str(self)]

    def __str__(self) -> str:
        return f"{count(self._files, 'file')} in {self.path}"


def _check_name(path: Path) -> None:
    """Refuse to write an address, because the password in it would be the name of a file."""
    if without_secrets(str(path)) != str(path):
        raise UsageError(f"-o {path}: this is an address with a password: name a file")


def _check_folder(folder: Path, what: str) -> None:
    if not folder.is_dir():
        raise FileError(f"{what}: there is no folder {folder}: make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{what}: {folder} is read-only: use another folder")


def _takes_in(source: str | Path, path: Path) -> bool:
    if os.path.isfile(source):
        return os.path.samefile(source, path)
    if path.suffix not in (".csv", ".parquet"):
        return False
    inside: Iterable[str | Path] = glob.iglob(str(source), recursive=True)
    if os.path.isdir(source):
        inside = Path(source).rglob("*")
    return any(os.path.samefile(name, path) for name in inside if os.path.isfile(name))


def size(path: str | Path) -> str:
    """Return a file's size for people."""
    n = os.path.getsize(path)
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= bytes_:
            return f"{n / bytes_:,.1f} {unit}"
    return f"{n} bytes"


def shown(name: str) -> str:
    """Return a name that may come from someone else's file, safe to print on a terminal."""
    return escaped(name, kept="")


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence; of many, only the first few."""
    return shown(first_names(names, most))


def tally(schema: Schema, counts: Any) -> dict[str, dict[str, int]]:
    """Return missing and outside counts of the columns that have some."""
    names = schema.of_rows.names
    return {
        name: {"missing": int(missing), "outside": int(outside)}
        for name, (missing, outside) in zip(names, counts[: len(names)], strict=True)
        if missing or outside
    }


def tally_blocks(schema: Schema, counts: Any, n_rows: int) -> Iterator[Block]:
    """Report for each feature how many values were missing, or outside the plan."""
    lines = tally(schema, counts)
    if not lines:
        yield "No values are missing or outside the plan.\n"
        return
    yield ""
    rows = [(name, f"{odd['missing']:,}", f"{odd['outside']:,}") for name, odd in lines.items()]
    yield TextTable(["feature", "missing", "outside"], rows)
    yield ""
    if any(odd["outside"] for odd in lines.values()):
        yield "Outside means: numbers beyond the range, or categories that are not listed.\n"
    empty = [name for name, odd in lines.items() if odd["missing"] == n_rows]
    if empty:
        yield f"No row has a value in {listed(empty)}: does the file have the columns of the"
        yield "plan?\n"
    doubtful = [name for name, odd in lines.items() if 2 * odd["outside"] > n_rows]
    if doubtful:
        yield f"Most rows lie outside in {listed(doubtful)}: do the data have another unit"
        yield "than the plan, or other names for the categories?\n"
