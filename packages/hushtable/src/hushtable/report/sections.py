"""Pages: a page is a list of sections, and a section a list of blocks; one template sets them."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from hushtable.blocks import Block
from hushtable.scores.outliers import Outliers

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Figures:
    """Pictures side by side, each with its caption."""

    kind: ClassVar = "figures"
    figures: Sequence[tuple["Markup", str]]


@dataclass(frozen=True)
class RowList:
    """The rows with the lowest scores, with their reasons.

    Without ``values``, reasons are names of columns, and no picture is drawn.
    """

    kind: ClassVar = "rows"
    outliers: Outliers
    values: bool = True


#: A text is a paragraph.
PageBlock: TypeAlias = Block | Figures | RowList


@dataclass(frozen=True)
class Section:
    """A part of a page, by its name in the page's address and its title."""

    name: str
    title: str
    blocks: Sequence[PageBlock]
    audience: str = ""


@dataclass(frozen=True)
class Page:
    """A page: what it is, whether it may leave, and its sections."""

    _: KW_ONLY
    title: str
    made_by: str  # the command, and when
    #: The notice whether it may leave: its first sentence, and further texts.
    notice: str
    reasons: Sequence[str]
    may_leave: bool = False
    intro: str = ""
    glance: Mapping[str, str] = field(default_factory=dict)
    sections: Sequence[Section]
