"""Things shown in a notebook: a sentence to go by, then figures, as HTML that needs nothing else.

May import nothing; views of the package's own things are in `hushtable.describe.views`. Tested in
``tests/test_notebook.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

#: Rows of a table that are shown, and letters of a sentence and of a cell.
MOST_ROWS, MOST_LETTERS, MOST_IN_A_CELL = 20, 2_000, 120

# No colour of its own, and no background: readable on dark pages and on light ones.
_CELL = "text-align:left;padding:.1em 1em .1em 0;overflow-wrap:anywhere"


class View(NamedTuple):
    """A thing as it is shown: kind, sentences, figures by name, a table, and pictures as SVG."""

    kind: str
    sentences: Sequence[str]
    figures: Mapping[str, str] = MappingProxyType({})
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[str] = ()


class Displayed:
    """A thing that a notebook shows as a `View`.

    The package itself sets how views are made: they speak of things of all rooms.
    """

    __slots__ = ()
    _view: ClassVar[Callable[[Any], View]]

    def _repr_html_(self) -> str:
        return html(self._view())


def html(view: View) -> str:
    """Return a view as HTML: no script, no style sheet, nothing fetched, every text escaped.

    Pictures are taken as they are: their texts have to be escaped already.
    """
    first, *others = view.sentences
    parts = [f"<p><b>{_text(view.kind)}.</b> <b>{_text(first)}</b></p>"]
    parts += [f"<p>{_text(sentence)}</p>" for sentence in others]
    if view.pictures:
        each = [f'<div style="flex:0 1 20em">{one}</div>' for one in view.pictures]
        parts.append(f'<div style="display:flex;flex-wrap:wrap;gap:1em 2em">{"".join(each)}</div>')
    parts.append(_table((), view.figures.items()))
    parts.append(_table(view.headers, view.rows[:MOST_ROWS]))
    if (more := len(view.rows) - MOST_ROWS) > 0:
        parts.append(f"<p>and {more:,} more</p>")
    return f'<div style="max-width:60em;overflow-x:auto">{"".join(parts)}</div>'


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [
        [f'<td style="{_CELL}">{_text(cell, MOST_IN_A_CELL)}</td>' for cell in row] for row in rows
    ]
    if not lines:
        return ""
    head = "".join(
        f'<th style="{_CELL}">{_text(header, MOST_IN_A_CELL)}</th>' for header in headers
    )
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _text(text: str, most: int = MOST_LETTERS) -> str:
    """Escape a text, which may come from anyone's file, and cut it if it is long."""
    from html import escape  # a thousand names of characters, which nothing else here needs

    cut = text if len(text) <= most else f"{text[:most]} ..."
    # Other characters steer terminals, or turn the direction of writing.
    return escape("".join(one if one.isprintable() else "\ufffd" for one in cut))
