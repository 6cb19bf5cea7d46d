"""Views of objects in a notebook: a sentence first, then figures, as self-contained HTML.

Must not import anything; views of the package's own objects are in
`hushtable.describe.views`. Tested in
``tests/test_notebook.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

#: Number of rows to display, and of letters in a sentence and in a cell.
MOST_ROWS, MOST_LETTERS, MOST_IN_A_CELL = 20, 2_000, 120

# No colours of its own and no background: readable on dark pages and on light ones.
_CELL = "text-align:left;padding:.1em 1em .1em 0;overflow-wrap:anywhere"


class View(NamedTuple):
    """The parts of a view: kind, sentences, figures by name, a table, and pictures as SVG."""

    kind: str
    sentences: Sequence[str]
    figures: Mapping[str, str] = MappingProxyType({})
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[str] = ()


class Displayed:
    """An object that a notebook displays as a `View`.

    The top package sets how views are made, because they refer to objects of all packages.
    """

    __slots__ = ()
    _view: ClassVar[Callable[[Any], View]]

    def _repr_html_(self) -> str:
        return html(self._view())


def html(view: View) -> str:
    """Return a view as HTML: no script, no style sheet, no requests, every text escaped.

    Pictures are inserted unchanged: their texts must be escaped already.
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
    """Escape a text, which may come from anyone's file, and truncate it if it is long."""
    from html import escape  # it loads a large table of names, which nothing else here needs

    cut = text if len(text) <= most else f"{text[:most]} ..."
    # Other characters control terminals, or change the direction of writing.
    return escape("".join(one if one.isprintable() else "\ufffd" for one in cut))
