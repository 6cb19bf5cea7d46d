"""Results of commands, and their one renderer: text for people, JSON for machines.

A command returns a `CommandResult`: facts, which are the object of ``--json``, and blocks, which
state the same in words. A block is a line, a `Paragraph`, `LabelledValues` or a `TextTable`: data,
so that a page can hold them, too.
"""

import contextlib
import io
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hushtable import progress
from hushtable.cli.errors import escaped, plain_stream
from hushtable.data.options import notes

#: Largest number of lines of a list; JSON has them all.
MOST_LINES = 40


@dataclass(frozen=True)
class Paragraph:
    """Sentences, each folded to lines that fit a terminal and a printout."""

    sentences: Iterable[str]
    indent: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentences", tuple(self.sentences))

    def write(self) -> None:
        """Print it."""
        for sentence in self.sentences:
            folded = textwrap.fill(
                sentence, 88, initial_indent=self.indent, subsequent_indent=self.indent
            )
            print(folded)


@dataclass(frozen=True)
class LabelledValues:
    """A line for each value that is not empty, after its label."""

    values: Mapping[str, str]
    indent: str = ""

    def write(self) -> None:
        """Print them."""
        for label, value in self.values.items():
            if value:
                print(f"{self.indent}{label:<17}{value}")


@dataclass(frozen=True)
class TextTable:
    """A table; the first ``left`` columns hold text, the others numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def write(self) -> None:
        """Print it."""
        from rich import box  # most results have no table
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for j, header in enumerate(self.headers):
            justify: Any = "left" if j < self.left else "right"
            table.add_column(Text(escaped(header)), justify=justify, overflow="fold")
        for row in self.rows[:MOST_LINES]:
            table.add_row(*(Text(escaped(cell)) for cell in row))
        # Rich styles the table with control characters of the terminal, and so needs the stream
        # itself. A pipe has no width of its own; 80 columns would fold lines that a file can hold.
        width = None if sys.stdout.isatty() else 120
        Console(file=plain_stream(), width=width, highlight=False).print(table)
        if len(self.rows) > MOST_LINES:
            print(f"... and {len(self.rows) - MOST_LINES:,} more (--json lists all)")


#: A text is one or several lines, which are printed as they are.
Block: TypeAlias = str | Paragraph | LabelledValues | TextTable


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

    facts: dict[str, Any]
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
        if isinstance(block, str):
            print(block)
        else:
            block.write()


def as_text(blocks: Iterable[Block]) -> str:
    """Return blocks as they are printed into a file."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        show(*blocks)
    return out.getvalue()
