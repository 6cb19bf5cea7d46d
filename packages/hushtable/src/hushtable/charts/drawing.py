"""Texts and lines of small SVG pictures: escaped, truncated to fit, in the colours of the page.

On a page without the colours of ``style.css``, other colours are used that
are visible on white and on black.
"""

import math
import unicodedata
from collections.abc import Iterable

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import UsageError

#: Width of a picture in units, which are about the pixels of a card on a phone.
WIDTH = 300.0
ROWS, WHOLE = "var(--rows,#3b86c8)", "var(--line,#8b96a270)"
FLAG, FLAG_TEXT = "var(--flag,#d9541e)", "var(--flag,currentColor)"
SOFT = "var(--soft,currentColor)"
#: Height of letters.
SIZE = 12.0
_NARROW, _BROAD = frozenset(" !'(),-./:;I[]fijlrt|"), frozenset("#%&+<=>@MWmw—…")


def picture(height: float, words: str, parts: Iterable[str], width: float = WIDTH) -> Markup:
    """Return a picture made of these parts; ``words`` describe it to people who cannot see it."""
    return Markup(
        # No style attribute: pages whose policy forbids styles show pictures too.
        f'<svg viewBox="0 0 {number(width)} {number(height)}"'
        f' width="{340.0 * width / WIDTH:.0f}" role="img"'
        f' aria-label="{escape(_clean(words))}" font-size="{number(SIZE)}" fill="currentColor"'
        ' direction="ltr">'
        f"{''.join(parts)}</svg>"
    )


def number(value: float) -> str:
    """Write a length, rounded to a tenth."""
    return f"{round(value, 1) + 0.0:g}"


def filled(path: str, colour: str) -> str:
    """Return the areas that a path encloses; empty if it has none."""
    return f'<path d="{path}" fill="{colour}"/>' if path else ""


def axis(path: str) -> str:
    """Return the base line of bars, or two sides of a frame."""
    return f'<path d="{path}" fill="none" stroke="{SOFT}"/>'


def text(
    words: str,
    at: tuple[float, float],
    *,
    anchor: str = "start",
    room: float = WIDTH,
    size: float = SIZE,
    flagged: bool = False,
    ending: bool = False,
) -> str:
    """Return a line of text; truncated text appears in full under the mouse.

    ``at`` are x and y of its ``anchor``: start, middle or end.
    """
    (x, y), fitting = at, cut(words, room, size, flagged=flagged, ending=ending)
    whole = "" if fitting == _clean(words) else f"<title>{escape(_clean(words))}</title>"
    style = f' fill="{FLAG_TEXT}" font-weight="600"' if flagged else f' fill="{SOFT}"'
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    style += f' font-size="{number(size)}"' if size != SIZE else ""
    return f'<text x="{number(x)}" y="{number(y)}"{style}>{escape(fitting)}{whole}</text>'


def text_width(words: str, size: float = SIZE, *, flagged: bool = False) -> float:
    """Estimate the width of a text in an unknown font, rather too large than too small."""
    return size * (1.12 if flagged else 1.0) * math.fsum(map(_em, _clean(words)))


def cut(
    words: str, room: float, size: float = SIZE, *, flagged: bool = False, ending: bool = False
) -> str:
    """Truncate a text to fit; with ``ending``, in the middle, so that its end is kept."""
    words, room = _clean(words), room + 0.01  # the room may be a calculated width
    if text_width(words, size, flagged=flagged) <= room:
        return words
    for n in range(min(len(words) - 1, int(4.0 * room / size)), 0, -1):
        n_last = n // 2 if ending else 0
        shorter = f"{words[: n - n_last].rstrip()}…{words[len(words) - n_last :].lstrip()}"
        if text_width(shorter, size, flagged=flagged) <= room:
            return shorter
    return "…"


def counted(counts: ArrayLike) -> NDArray[np.float64]:
    """Return counts as numbers; noise that took some below 0 becomes 0."""
    cells = np.asarray(counts, np.float64)
    if cells.ndim != 1 or not cells.size or not np.isfinite(cells).all():
        raise UsageError(
            f"counts of shape {cells.shape}: needs finite numbers in one dimension, of one cell or "
            "more"
        )
    return np.maximum(cells, 0.0)


def _em(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _NARROW:
        return 0.38
    return 0.95 if letter in _BROAD else 0.7 if letter.isupper() else 0.63


def _clean(words: str) -> str:
    clean = words.translate(dict.fromkeys(b"\t\n\r", " "))
    return "".join(
        "\ufffd" if x in "\ufffe\uffff" or unicodedata.category(x) in ("Cc", "Cs") else x
        for x in clean
    )
