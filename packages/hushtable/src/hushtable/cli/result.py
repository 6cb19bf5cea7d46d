"""Results of commands, and their one renderer: text for people, JSON for machines.

A command returns a `CommandResult`: facts, which are the object of ``--json``, and blocks, which
state the same in words: see `hushtable.blocks`.
"""

import contextlib
import io
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hushtable import progress
from hushtable.blocks import Block, Heading, Items, LabelledValues, Paragraph, TextTable
from hushtable.cli.errors import escaped, plain_stream
from hushtable.data.options import notes

__all__ = [
    "MOST_LINES",
    "Block",
    "CommandResult",
    "LabelledValues",
    "Paragraph",
    "TextTable",
    "as_text",
    "for_machines",
    "machine_output",
    "show",
    "writing",
]

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
