"""Lines: numbers over months, rounds, or rows that were judged, each with its name above them.

They contain numbers and texts, and no models.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup
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
from hushtable.language import numerals, percents

__all__ = ["ChartLine", "LineChart"]

_HEIGHT = 132.0
#: Differences of larger numbers overflow.
_LARGEST = 1e300
#: Largest number of ticks of an axis.
_MOST_TICKS = 5
#: Room above the chart for the names of lines, and next to each name for a piece of its line.
_TOP, _KEY = 24.0, 36.0
_FLOOR = _TOP + _HEIGHT
#: Largest part of the width for the numbers at the side, and their distance from the chart.
_NUMBERS, _BESIDE = 0.3, 6.0
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
        """The places and the numbers; larger numbers than can be drawn are at the edge."""
        y = np.clip(np.asarray(self.y, np.float64), -_LARGEST, _LARGEST)
        x = np.arange(float(len(y))) if self.x is None else np.asarray(self.x, np.float64)
        return x, y


@dataclass(frozen=True, eq=False)
class LineChart:
    """One to four lines over the same numbers or labels; the first is the subject of the chart.

    With ``labels``, the places of lines are whole numbers that count the labels from 0; a line that
    skips a label is interrupted there. The axis of numbers begins at 0 unless all of them are far
    from it.
    Each line has at least one number, all are finite, and its places are sorted.
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

    @property
    def svg(self) -> Markup:
        """The picture."""
        return picture(
            _FLOOR + (36.0 if self.across else 20.0), self.words, self._parts(), self.width
        )

    # --- layout -----------------------------------------------------------------------------------

    def _range(self, axis: int) -> tuple[float, float]:
        """Return the lowest and the highest place (axis 0) or number (axis 1) of all lines."""
        low = min(float(line.points[axis].min()) for line in self.lines)
        return low, max(float(line.points[axis].max()) for line in self.lines)

    @cached_property
    def _ticks(self) -> tuple[list[float], list[str]]:
        low, high = self._range(1)
        if 0.0 < low <= high - low or low == high > 0.0 or (self.from_zero and low > 0.0):
            low = 0.0
        if _is_level(low, high):
            low, high = min(low, 0.0), max(high, 0.0)
            high = 1.0 if _is_level(low, high) else high
        return _round_numbers(low, high, share=self.share, outer=True)

    @cached_property
    def _left(self) -> float:
        longest = max(map(text_width, self._ticks[1]))
        return min(longest, _NUMBERS * self.width) + _BESIDE

    @property
    def _right(self) -> float:
        return self.width - _BESIDE

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
        low, *_between, high = self._ticks[0]
        return _FLOOR - _HEIGHT * (np.asarray(numbers, np.float64) - low) / (high - low)

    # --- drawing ----------------------------------------------------------------------------------

    def _parts(self) -> Iterator[str]:
        if self.up:
            yield text(self.up, (0.0, 10.0), room=self.width)
        room = self._left - _BESIDE
        for value, words in zip(*self._ticks, strict=True):
            y = float(self._y(value))
            if y < _FLOOR - 0.5:
                path = f"M{number(self._left)} {number(y)}H{number(self._right)}"
                yield f'<path d="{path}" fill="none" stroke="{WHOLE}" stroke-opacity=".7"/>'
            yield text(words, (room, y + 4.0), anchor="end", room=room)
        yield axis(f"M{number(self._left)} {number(_FLOOR)}H{number(self._right)}")
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
                values, texts = _round_numbers(low, high, share=False, outer=False)
        places = self._x(values).tolist()
        widest = max(text_width(words) for words in texts) + 8.0
        apart = places[1] - places[0] if len(places) > 1 else self.width
        least = math.ceil(min(widest, self.width / 4.0) / apart)
        # Every label, every second one, ...; or parts of years.
        step = next((k for k in (1, 2, 3, 4, 6) if k >= least), 12 * math.ceil(least / 12))
        for place, words in list(zip(places, texts, strict=True))[::step]:
            yield axis(f"M{number(place)} {number(_FLOOR)}v4")
            near = step * apart / 2.0 - 3.0  # the next one cannot begin before this
            room = min(2.0 * near, place + near, self.width - place + near)
            half = min(text_width(words), room) / 2.0
            x = min(max(place, half), self.width - half)
            yield text(words, (x, _FLOOR + 16.0), anchor="middle", room=room)
        if self.across:
            room = self._right - self._left
            yield text(self.across, (self._right, _FLOOR + 32.0), anchor="end", room=room)

    def _drawn(
        self, line: ChartLine, colour: str, width: float, dashes: str, opacity: str
    ) -> Iterator[str]:
        places, numbers = line.points
        style = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield (
            f'<path d="{self._path(*line.points)}" fill="none"'
            f' stroke="{colour}" stroke-width="{number(width)}" stroke-linejoin="round"'
            f' stroke-linecap="round" stroke-opacity="{opacity}"{style}/>'
        )
        yield _dot(float(self._x(places[-1])), float(self._y(numbers[-1])), 2.6, colour)
        for k in line.marked:
            yield _dot(float(self._x(places[k])), float(self._y(numbers[k])), 4.0, FLAG)

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
        """Write the names of the lines above the chart, at the right, the first one first."""
        right, most = self.width, (self.width - text_width(self.up)) / len(self.lines) - _KEY
        for line, (colour, width, dashes, _opacity) in reversed(
            [*zip(self.lines, _LOOKS, strict=False)]
        ):
            name = cut(line.name, most)
            yield text(name, (right - text_width(name), 10.0))
            right -= text_width(name) + _KEY
            path = f"M{number(right + _KEY - 24.0)} 6h18"
            style = f' stroke-dasharray="{dashes}"' if dashes else ""
            yield f'<path d="{path}" stroke="{colour}" stroke-width="{number(width)}"{style}/>'


def _dot(x: float, y: float, radius: float, colour: str) -> str:
    halo = ' stroke="var(--paper,none)" stroke-width="1.5"' if colour == FLAG else ""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius:g}" fill="{colour}"{halo}/>'


def _round_numbers(
    low: float, high: float, *, share: bool, outer: bool
) -> tuple[list[float], list[str]]:
    """Return round numbers of an axis and how these are written.

    They enclose a range or, without ``outer``, are inside it.
    """
    # Round numbers inside a range may leave out its ends.
    least = (high - low) / (_MOST_TICKS - 1 if outer else _MOST_TICKS + 1)
    power = 10.0 ** math.floor(math.log10(least))
    rounded = (k * power for k in (1.0, 2.0, 5.0, 10.0, 20.0))
    step = next(size for size in rounded if size >= least * (1 - 1e-9))
    first, last = low / step, high / step
    within = 1e-9 * max(1.0, abs(first), abs(last))
    if outer:
        begin, end = math.floor(first + within), math.ceil(last - within)
    else:
        begin, end = math.ceil(first - within), math.floor(last + within)
    values = [step * k + 0.0 for k in range(begin, max(begin, end) + 1)]
    return values, [_written(value, step, share=share) for value in values]


def _is_level(low: float, high: float) -> bool:
    """Return whether the distance between two ends would be invisible."""
    return high - low <= max(1e-12 * max(abs(low), abs(high)), 1e-300)


def _written(value: float, step: float = 0.0, *, share: bool = False) -> str:
    """Write a number of an axis with the digits that distinguish it from the next one."""
    if share:
        value, step = 100.0 * value, 100.0 * step
    size, write = max(abs(value), step), percents if share else numerals
    if size and not 1e-4 <= (step or size) <= size < 1e9:
        return write(f"{value:.4g}")
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 6
    written = f"{value:,.{digits}f}"
    if not step and "." in written:
        written = written.rstrip("0").rstrip(".")
    return write(written)
