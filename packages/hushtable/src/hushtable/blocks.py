"""Blocks of results and pages: data, printed as text by commands, and set as HTML by `report`.

Imports nothing; tested in ``tests/cli/`` and ``tests/report/``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Paragraph:
    """Sentences, each folded to lines that fit a terminal and a printout; a paragraph of a page.

    ``look`` is for pages: ``strong``, ``soft``, or ``signed`` for sentences that are signed.
    """

    kind: ClassVar = "paragraph"
    sentences: Iterable[str]
    indent: str = ""
    look: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentences", tuple(self.sentences))


@dataclass(frozen=True)
class Heading:
    """The heading of the blocks after it."""

    kind: ClassVar = "heading"
    text: str


@dataclass(frozen=True)
class Items:
    """A list with an item for each text."""

    kind: ClassVar = "items"
    texts: Sequence[str]


@dataclass(frozen=True)
class LabelledValues:
    """A line for each value that is not empty, after its label."""

    kind: ClassVar = "facts"
    values: Mapping[str, str]
    indent: str = ""


@dataclass(frozen=True)
class TextTable:
    """A table; the first ``left`` columns hold text, the others numbers."""

    kind: ClassVar = "table"
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    label: str = ""


#: A text is one or several lines, which are printed as they are.
Block: TypeAlias = str | Paragraph | Heading | Items | LabelledValues | TextTable
