"""Lines: numbers over months, rounds, or rows that were judged, each with its name at its end.

They contain numbers and texts, and no models. `svg` is for pages and for notebooks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from hushtable.charts.drawing import (
    FLAG,
    ROWS,
    SOFT,
    WHOLE,
    WIDTH,
    axis,
    cut,
    number,
    picture,
    text,
    text_width,
)
from hushtable.errors import UsageError
from hushtable.language import numerals, percents

__all__ = ["ChartLine", "LineChart"]

_HEIGHT = 132.0
#: Largest numbers of lines, of ticks of an axis, and of points of a line per unit of its width.
_MOST_LINES, _MOST_TICKS, _POINTS = 4, 5, 2
#: Largest part of the width for the names and the numbers at the sides.
_NAMES, _NUMBERS = 0.36, 0.3
#: Distance between the baselines of two names, and from a line to the text next to it.
_BETWEEN, _BESIDE = 14.0, 6.0
#: Colour, width, dashes and opacity of each line: the first line is the subject of the chart.
_LOOKS = (
    (ROWS, 2.2, "", "1"),
    (SOFT, 1.4, "", ".85"),
    (SOFT, 1.4, "6 3", ".85"),
    (SOFT, 1.6, "1.5 3", ".85"),
)


@dataclass(frozen=True, eq=False)
class ChartLine:
    """A line of a chart: its name, its numbers, and where along the chart they are.

    Without ``x``, the numbers are at 0, 1, 2 and so on. ``marked`` are the indices of numbers that
    stand out: these have dots in the colour of unusual rows.
    """

    name: str
    y: ArrayLike
    x: ArrayLike | None = None
    marked: Sequence[int] = ()

    @cached_property
    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The places and the numbers; raises `UsageError` if they cannot be drawn."""
        y = np.asarray(self.y, np.float64)
        x = np.arange(float(len(y))) if self.x is None else np.asarray(self.x, np.float64)
        if y.ndim != 1 or x.shape != y.shape or not y.size:
            raise UsageError(
                f"line {self.name!r} has numbers of shape {y.shape} at places of shape {x.shape}: "
                "needs one number or more, and as many places"
            )
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise UsageError(f"line {self.name!r} has NaN or infinite numbers: leave those out")
        if (np.diff(x) < 0.0).any():
            raise UsageError(f"line {self.name!r} goes backwards: sort its places")
        if not all(0 <= k < len(y) for k in self.marked):
            raise UsageError(f"line {self.name!r} marks numbers that it does not have")
        return x, y


@dataclass(frozen=True, eq=False)
class LineChart:
    """One to four lines over the same numbers or labels; the first is the subject of the chart.

    With ``labels``, the places of lines are whole numbers that count the labels from 0; a line that
    skips a label is interrupted there. The axis of numbers begins at 0 unless all of them are far
    from it. A line of many numbers is reduced to its visible points: the first, lowest, highest
    and last point of each part.

    Raises `UsageError`, a `ValueError`, if there are no lines or more than four, a number is NaN or
    infinite, places and numbers of a line differ in length, or a place has no label.
    """

    lines: Sequence[ChartLine]
    words: str  # a description for people who cannot see the picture
    _: KW_ONLY
    #: Texts along the chart, such as months; without them, the axis has numbers.
    labels: Sequence[str] | None = None
    across: str = ""  # name of the axis along the chart
    up: str = ""  # name of the axis of the numbers
    steps: bool = False  # whether a number applies until the next one
    from_zero: bool = False  # whether the axis of numbers always begins at 0: for counts
    share: bool = False  # whether numbers are written as percentages
    width: float = WIDTH

    def __post_init__(self) -> None:
        if not 1 <= len(self.lines) <= _MOST_LINES:
            raise UsageError(f"{len(self.lines)} lines: needs 1 to {_MOST_LINES}")
        for line in self.lines:
            x, _ = line.points
            if self.labels is not None and not np.isin(x, np.arange(len(self.labels))).all():
                raise UsageError(
                    f"line {line.name!r} has a place without a label: there are "
                    f"{len(self.labels)}, counted from 0"
                )
        for low, high in (self._range(0), self._range(1)):
            if not math.isfinite(high - low):
                raise UsageError("the numbers are too far apart to be drawn: needs a smaller range")

    @property
    def svg(self) -> Markup:
        """The picture."""
        return picture(self._floor + self._below, self.words, self._parts(), self.width)

    # --- layout -----------------------------------------------------------------------------------

    def _range(self, axis: int) -> tuple[float, float]:
        """Return the lowest and the highest place (axis 0) or number (axis 1) of all lines."""
        low = min(float(line.points[axis].min()) for line in self.lines)
        return low, max(float(line.points[axis].max()) for line in self.lines)

    @property
    def _top(self) -> float:
        return 24.0 if self.up else 10.0

    @property
    def _floor(self) -> float:
        return self._top + _HEIGHT

    @property
    def _below(self) -> float:
        return 36.0 if self.across else 20.0

    @cached_property
    def _ticks(self) -> "_Ticks":
        low, high = self._range(1)
        if 0.0 < low <= high - low or low == high > 0.0 or (self.from_zero and low > 0.0):
            low = 0.0
        if _is_level(low, high):
            low, high = min(low, 0.0), max(high, 0.0)
            high = 1.0 if _is_level(low, high) else high
        return _Ticks.of(low, high, share=self.share, outer=True)

    @cached_property
    def _left(self) -> float:
        longest = max(map(text_width, self._ticks.texts))
        return min(longest, _NUMBERS * self.width) + _BESIDE

    @cached_property
    def _right(self) -> float:
        """Right end of the chart, where the names of lines begin."""
        end = self._range(0)[1]
        if self.labels is not None:
            end = len(self.labels) - 1.0
        names = [line.name for line in self.lines if line.points[0][-1] == end]
        longest = max((text_width(name, flagged=True) for name in names), default=0.0)
        return self.width - min(longest, _NAMES * self.width) - _BESIDE - 4.0

    @cached_property
    def _across(self) -> tuple[float, float]:
        """The places at the left and at the right end of the drawing."""
        low, high = self._range(0) if self.labels is None else (0.0, len(self.labels) - 1.0)
        return (low - 1.0, low + 1.0) if _is_level(low, high) else (low, high)

    def _x(self, places: ArrayLike) -> NDArray[np.float64]:
        low, high = self._across
        inset = 8.0 if self.labels is not None else 4.0
        room = self._right - self._left - 2.0 * inset
        return self._left + inset + room * (np.asarray(places, np.float64) - low) / (high - low)

    def _y(self, numbers: ArrayLike) -> NDArray[np.float64]:
        low, high = self._ticks.values[0], self._ticks.values[-1]
        return self._floor - _HEIGHT * (np.asarray(numbers, np.float64) - low) / (high - low)

    # --- drawing ----------------------------------------------------------------------------------

    def _parts(self) -> Iterator[str]:
        if self.up:
            yield text(self.up, 0.0, 10.0, room=self.width)
        room = self._left - _BESIDE
        for value, words in zip(self._ticks.values, self._ticks.texts, strict=True):
            y = float(self._y(value))
            if y < self._floor - 0.5:
                path = f"M{number(self._left)} {number(y)}H{number(self._right)}"
                yield f'<path d="{path}" fill="none" stroke="{WHOLE}" stroke-opacity=".7"/>'
            yield text(words, room, y + 4.0, anchor="end", room=room)
        yield axis(f"M{number(self._left)} {number(self._floor)}H{number(self._right)}")
        yield from self._along()
        # The subject of the chart is in front.
        for line, look in reversed([*zip(self.lines, _LOOKS, strict=False)]):
            yield from self._drawn(line, *look)
        yield from self._names()

    def _along(self) -> Iterator[str]:
        """Write the numbers or labels along the chart, as many as fit."""
        if self.labels is not None:
            values, texts = [*map(float, range(len(self.labels)))], list(self.labels)
        else:
            low, high = self._range(0)
            values, texts = [low], [_written(low)]
            if not _is_level(low, high):
                values, texts = _Ticks.of(low, high, share=False, outer=False)
        places = self._x(values).tolist()
        widest = max(text_width(words) for words in texts) + 8.0
        apart = places[1] - places[0] if len(places) > 1 else self.width
        least = math.ceil(min(widest, self.width / 4.0) / apart)
        # Every label, every second one, ...; or parts of years.
        step = next((k for k in (1, 2, 3, 4, 6) if k >= least), 12 * math.ceil(least / 12))
        for place, words in list(zip(places, texts, strict=True))[::step]:
            yield axis(f"M{number(place)} {number(self._floor)}v4")
            near = step * apart / 2.0 - 3.0  # the next one cannot begin before this
            room = min(2.0 * near, place + near, self.width - place + near)
            half = min(text_width(words), room) / 2.0
            x = min(max(place, half), self.width - half)
            yield text(words, x, self._floor + 16.0, anchor="middle", room=room)
        if self.across:
            room = self._right - self._left
            yield text(self.across, self._right, self._floor + 32.0, anchor="end", room=room)

    def _drawn(
        self, line: ChartLine, colour: str, width: float, dashes: str, opacity: str
    ) -> Iterator[str]:
        places, numbers = line.points
        style = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield (
            f'<path d="{self._path(*thinned(places, numbers, self._most))}" fill="none"'
            f' stroke="{colour}" stroke-width="{number(width)}" stroke-linejoin="round"'
            f' stroke-linecap="round" stroke-opacity="{opacity}"{style}/>'
        )
        yield _dot(float(self._x(places[-1])), float(self._y(numbers[-1])), 2.6, colour)
        for k in line.marked:
            yield _dot(float(self._x(places[k])), float(self._y(numbers[k])), 4.0, FLAG)

    @property
    def _most(self) -> int:
        """Approximate largest number of points drawn for a line."""
        return int(_POINTS * self.width)

    def _path(self, places: NDArray[np.float64], numbers: NDArray[np.float64]) -> str:
        jumps = np.zeros(len(places), bool)
        if self.labels is not None:
            jumps[1:] = np.diff(places) > 1.0
        path = ""
        for x, y, jump in zip(self._x(places), self._y(numbers), jumps, strict=True):
            if not path or jump:
                # A single point between two interruptions has a round end, so it becomes a dot.
                path += f"M{number(x)} {number(y)}h0"
            elif self.steps:
                path += f"H{number(x)}V{number(y)}"
            else:
                path += f"L{number(x)} {number(y)}"
        return path

    def _names(self) -> Iterator[str]:
        """Write the name of each line at its end, without overlaps."""
        ends = [(line.points[0][-1], line.points[1][-1]) for line in self.lines]
        x = [float(self._x(place)) for place, _ in ends]
        y = [float(self._y(value)) + 4.0 for _, value in ends]
        order = sorted(range(len(ends)), key=lambda k: y[k])
        low, high = self._top + 4.0, self._floor + 2.0
        for n, k in enumerate(order):
            y[k] = max(y[k], low + n * _BETWEEN, y[order[n - 1]] + _BETWEEN if n else low)
        for n, k in enumerate(reversed(order)):
            after = y[order[-n]] - _BETWEEN if n else high
            y[k] = min(y[k], high - n * _BETWEEN, after)
        for k, line in enumerate(self.lines):
            room = self.width - max(x[k], self._left) - _BESIDE
            yield _name(line.name, x[k] + _BESIDE, y[k], room, self.width, first=k == 0)


def _name(words: str, x: float, y: float, room: float, width: float, *, first: bool) -> str:
    """Return the name of a line, which stands out from lines behind it."""
    anchor, most = "start", _NAMES * width
    if room < min(text_width(words, flagged=True), most):
        x, y, anchor, room = width, y - 10.0, "end", most
    shown = cut(words, room, flagged=True)
    whole = "" if shown == words else f"<title>{escape(cut(words, math.inf))}</title>"
    look = f'fill="{ROWS}" font-weight="600"' if first else f'fill="{SOFT}"'
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" {look}'
        f' stroke="var(--paper,none)" stroke-width="3" paint-order="stroke"'
        f' stroke-linejoin="round">{escape(shown)}{whole}</text>'
    )


def _dot(x: float, y: float, radius: float, colour: str) -> str:
    halo = ' stroke="var(--paper,none)" stroke-width="1.5"' if colour == FLAG else ""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius:g}" fill="{colour}"{halo}/>'


class _Ticks(NamedTuple):
    """Round numbers of an axis, and their format."""

    values: list[float]
    texts: list[str]

    @classmethod
    def of(cls, low: float, high: float, *, share: bool, outer: bool) -> "_Ticks":
        """Return round numbers that enclose a range or, without ``outer``, are inside it."""
        # Round numbers inside a range may leave out its ends.
        least = (high - low) / (_MOST_TICKS - 1 if outer else _MOST_TICKS + 1)
        power = 10.0 ** math.floor(math.log10(least))
        rounded = (k * power for k in (1.0, 2.0, 5.0, 10.0, 20.0))
        step = next(one for one in rounded if one >= least * (1 - 1e-9))
        first, last = low / step, high / step
        within = 1e-9 * max(1.0, abs(first), abs(last))
        if outer:
            begin, end = math.floor(first + within), math.ceil(last - within)
        else:
            begin, end = math.ceil(first - within), math.floor(last + within)
        values = [step * k + 0.0 for k in range(begin, max(begin, end) + 1)]
        return cls(values, [_written(value, step, share=share) for value in values])


def _is_level(low: float, high: float) -> bool:
    """Return whether the distance between two ends would be invisible."""
    return high - low <= max(1e-12 * max(abs(low), abs(high)), 1e-300)


def _written(value: float, step: float = 0.0, *, share: bool = False) -> str:
    """Write a number of an axis with the digits that distinguish it from the next one."""
    if share:
        value, step = 100.0 * value, 100.0 * step
    size = max(abs(value), step)
    if size and not 1e-4 <= (step or size) <= size < 1e9:
        return _with(f"{value:.4g}", share=share)
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 6
    written = f"{value:,.{digits}f}"
    if not step and "." in written:
        written = written.rstrip("0").rstrip(".")
    return _with(written, share=share)


def _with(written: str, *, share: bool) -> str:
    return percents(written) if share else numerals(written)


def thinned(
    places: NDArray[np.float64], numbers: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the visible points of a line: the ends and extremes of each part."""
    n = len(places)
    if n <= most:
        return places, numbers
    low, high = places[0], places[-1]
    n_parts = max(1, most // 4)
    part = np.minimum((places - low) / ((high - low) or 1.0) * n_parts, n_parts - 1).astype(int)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    ends = np.append(starts[1:], n)
    order = np.lexsort((numbers, part))  # in each part, the lowest is first and the highest last
    kept = np.unique(np.concatenate([starts, ends - 1, order[starts], order[ends - 1]]))
    return places[kept], numbers[kept]
