"""Texts and lines of small SVG pictures: escaped, cut to their room, in the colours of the page.

In a page without the colours of ``style.css``, such as a notebook's, others take their place that
can be seen on white and on black.
"""

import math
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from hushtable.errors import UsageError

#: Units that a picture is wide: about the pixels that a card has for it on a phone.
WIDTH = 300.0
ROWS, WHOLE = "var(--rows,#3b86c8)", "var(--line,#8b96a270)"
FLAG, FLAG_TEXT = "var(--flag,#d9541e)", "var(--flag,currentColor)"
SOFT = "var(--soft,currentColor)"
#: Ground of cells without rows.
GROUND = "var(--panel,#8881)"
#: Around what has to stand out from the rows; none where the colour of the page is unknown.
_HALO = "var(--paper,none)"
#: Height of what stands above bars or cells, and the room for half a bar and for arrows beside.
ABOVE, ASIDE = 20.0, 8.0
#: Height of letters, and of the text that a picture is about.
SIZE, LARGE = 12.0, 14.0
_NARROW, _BROAD = frozenset(" !'(),-./:;I[]fijlrt|"), frozenset("#%&+<=>@MWmw—…")


def picture(height: float, words: str, parts: Iterable[str], width: float | None = None) -> Markup:
    """Return a picture of these parts; ``words`` are for those who do not see it.

    Without a ``width``, it is as wide as a card on a phone, or narrower where there is less room.
    With one, it has no style of its own, which a page may forbid: the page sees to narrow windows.
    """
    wide, style = "100%", 'style="direction:ltr;display:block;max-width:340px"'
    if width is not None:
        wide, style = f"{340.0 * width / WIDTH:.0f}", 'direction="ltr"'
    return Markup(
        f'<svg viewBox="0 0 {number(width or WIDTH)} {number(height)}" width="{wide}" role="img"'
        f' aria-label="{escape(_clean(words))}" font-size="{number(SIZE)}" fill="currentColor"'
        f" {style}>{''.join(parts)}</svg>"
    )


def number(value: float) -> str:
    """Write a length, rounded to a tenth."""
    return f"{round(value, 1) + 0.0:g}"


def filled(path: str, colour: str) -> str:
    """Return the areas that a path encloses; nothing if it has none."""
    return f'<path d="{path}" fill="{colour}"/>' if path else ""


def axis(path: str) -> str:
    """Return the line that bars stand on, or two sides of a frame."""
    return f'<path d="{path}" fill="none" stroke="{SOFT}"/>'


def marker(path: str, width: float) -> str:
    """Return a line that marks the row, and stands out from what lies behind it."""
    halo = f'<path d="{path}" fill="none" stroke="{_HALO}" stroke-width="{number(2.0 * width)}"/>'
    line = f'<path d="{path}" fill="none" stroke="{FLAG}" stroke-width="{number(width)}"/>'
    return halo + line


def arrow(x: float, y: float, degrees: int) -> str:
    """Return the tip of an arrow at a place; 0 degrees point to the right, 90 down."""
    turned = f"translate({number(x)} {number(y)})rotate({degrees})"
    return f'<path d="M0-4.5 7 0 0 4.5z" fill="{FLAG}" transform="{turned}"/>'


def text(
    words: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    room: float = WIDTH,
    size: float = SIZE,
    flagged: bool = False,
    ending: bool = False,
) -> str:
    """Return a line of text; what is cut can be read where the mouse rests on it.

    ``anchor`` is which part of it stands at ``x``: start, middle or end.
    """
    shown = cut(words, room, size, flagged=flagged, ending=ending)
    whole = "" if shown == _clean(words) else f"<title>{escape(_clean(words))}</title>"
    style = f' fill="{FLAG_TEXT}" font-weight="600"' if flagged else f' fill="{SOFT}"'
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    style += f' font-size="{number(size)}"' if size != SIZE else ""
    return f'<text x="{number(x)}" y="{number(y)}"{style}>{escape(shown)}{whole}</text>'


def text_near(words: str, x: float, y: float, left: float, right: float, size: float) -> str:
    """Return the row's own text, with its middle at ``x`` or as near as it keeps within a range."""
    half = text_width(words, size, flagged=True) / 2.0
    place, anchor = (
        (left, "start")
        if x - half < left
        else (right, "end")
        if x + half > right
        else (x, "middle")
    )
    room = right - left
    return text(words, place, y, anchor=anchor, room=room, size=size, flagged=True, ending=True)


def text_width(words: str, size: float = SIZE, *, flagged: bool = False) -> float:
    """Estimate how wide a text is in an unknown font, rather too much than too little."""
    return size * (1.12 if flagged else 1.0) * math.fsum(map(_em, _clean(words)))


def cut(
    words: str, room: float, size: float = SIZE, *, flagged: bool = False, ending: bool = False
) -> str:
    """Cut a text to its room; with ``ending``, from the middle, so that its end is kept."""
    words, room = _clean(words), room + 0.01  # the room may be a width that was calculated
    if text_width(words, size, flagged=flagged) <= room:
        return words
    for n in range(min(len(words) - 1, int(4.0 * room / size)), 0, -1):
        n_last = n // 2 if ending else 0
        shown = f"{words[: n - n_last].rstrip()}…{words[len(words) - n_last :].lstrip()}"
        if text_width(shown, size, flagged=flagged) <= room:
            return shown
    return "…"


def range_ends(
    ends: tuple[str, str],
    left: float,
    right: float,
    y: float,
    taken: tuple[float, float] = (math.inf, -math.inf),
) -> Iterator[str]:
    """Write the ends of a range, each where it keeps clear of what is taken."""
    low, high = ends
    if low == high and taken[0] > taken[1]:
        yield text(low, (left + right) / 2.0, y, anchor="middle")
        return
    room = (right - left) / 2.0 - 6.0
    if left + min(text_width(low), room) + 6.0 <= taken[0]:
        yield text(low, left, y, room=room)
    if right - min(text_width(high), room) - 6.0 >= taken[1]:
        yield text(high, right, y, anchor="end", room=room)


def beyond(value: float, low: float, high: float) -> int:
    """Return whether a value lies below a range (-1), above (1) or in it (0)."""
    return int(value > high) - int(value < low)


def check_places(*places: float) -> None:
    """Raise `UsageError` if a place is NaN."""
    if any(math.isnan(place) for place in places):
        raise UsageError(f"places {places}: NaN is nowhere; draw no chart of a missing value")


def counted(counts: ArrayLike, ndim: int) -> NDArray[np.float64]:
    """Return counts as numbers; noise that took some below 0 leaves no rows there."""
    cells = np.asarray(counts, np.float64)
    if cells.ndim != ndim or not cells.size or not np.isfinite(cells).all():
        raise UsageError(
            f"counts of shape {cells.shape}: give finite numbers in {ndim} dimension"
            f"{'s' if ndim > 1 else ''}, of one cell or more"
        )
    return np.maximum(cells, 0.0)


def _em(letter: str) -> float:
    """Estimate the width of a letter as a part of the size."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _NARROW:
        return 0.38
    return 0.95 if letter in _BROAD else 0.7 if letter.isupper() else 0.63


def _clean(words: str) -> str:
    """Replace line breaks by spaces, and what no XML may hold by a mark."""
    return "".join(
        " " if letter in "\t\n\r" else "\ufffd" if not _allowed(letter) else letter
        for letter in words
    )


def _allowed(letter: str) -> bool:
    return unicodedata.category(letter) not in ("Cc", "Cs") and letter not in "\ufffe\uffff"
