"""Small pictures of why a row is unusual: a value among others, or the shares of values.

They contain counts and texts, and no models.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from hushtable.charts.drawing import (
    FLAG,
    ROWS,
    SOFT,
    WHOLE,
    WIDTH,
    axis,
    counted,
    filled,
    number,
    picture,
    text,
    text_width,
)
from hushtable.errors import UsageError
from hushtable.language import _, numeral, percents

__all__ = ["SharesChart", "ValueChart"]

#: Counts of rows, exact or with noise.
Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

#: Halo of what has to stand out from the rows; none if the page's colour is unknown.
_HALO = "var(--paper,none)"
#: Height of what is above bars, and the room for half a bar and for arrows next to them.
_ABOVE, _ASIDE = 20.0, 8.0
#: Height of the letters of the row's own value.
_LARGE = 14.0
#: Heights of the highest bar, and of the lowest bar with rows.
_HIGHEST, _LEAST = 56.0, 2.5
_MOST_BARS, _WIDEST_BAR = 40, 16.0
#: Number of cells from each value to the next from which on these count as single values.
_APART = 4
_MOST_SHARES, _LINE = 6, 20.0


@dataclass(frozen=True, eq=False)
class ValueChart:
    """The rows over the range of a number, and the place of one row's value among them.

    The heights of bars are the square roots of their counts, so that the tail of a distribution
    keeps its shape next to a bar with almost all rows; a bar with rows has a minimum height.
    If only few values occur, such as whole numbers, each of them has its own bar; but up to 40
    cells are drawn unchanged.

    Raises `UsageError`, a `ValueError`, if there are no cells, the two counts differ in length, or
    a place or a count is NaN. If all counts are 0, the value is on an axis without bars.
    """

    cells: Numbers  # (n,): rows in each of n equal parts of the range
    #: Place of the value, from 0 at the low end to 1 at the high end; beyond: an arrow. None draws
    #: no value.
    at: float | None
    text: str  # the value in written form
    ends: tuple[str, str]  # the low and the high end of the range
    _: KW_ONLY
    #: Places of the usual range of the rows drawn in colour, those of ``within`` if given.
    usual: tuple[float, float] | None = None
    #: (n,): rows of the same context, in colour; all rows are a grey outline behind them.
    within: Numbers | None = None
    words: str  # a description for people who cannot see the picture

    def __post_init__(self) -> None:
        whole = counted(self.cells)
        if self.within is not None and counted(self.within).shape != whole.shape:
            raise UsageError(
                f"{len(whole)} cells of all rows and {len(self.within)} of the context: count both "
                "over the same parts of the range"
            )
        places = [self.at or 0.0, *(self.usual or ())]
        if any(map(math.isnan, places)):
            raise UsageError(f"places {places}: NaN has no place: draw no missing value")

    @property
    def svg(self) -> Markup:
        """The picture."""
        chart = self
        if self._one_end and not np.any(self.cells[1:]):
            # The bar of the single value is in the middle of an axis.
            cells = np.zeros(21)
            cells[10] = self.cells[0]
            at = 0.5 if self.at is not None and 0.0 <= self.at <= 1.0 else self.at
            usual = None if self.usual is None else (0.5, 0.5)
            within = None if self.within is None else cells * (self.within[0] > 0)
            chart = replace(self, cells=cells, at=at, usual=usual, within=within)
        low = 20.0 if self.usual is None else 27.0
        return picture(_ABOVE + _HIGHEST + low, self.words, chart._parts())

    @property
    def _one_end(self) -> bool:
        return self.ends[0] == self.ends[1]

    def _parts(self) -> Iterator[str]:
        floor = _ABOVE + _HIGHEST
        yield from self._rows(floor)
        yield axis(f"M0 {number(floor)}H{number(WIDTH)}")
        if self.at is not None:
            yield from self._own(self.at, floor)
        if self.usual is None:
            yield from self._ends(floor + 16.0)
        else:
            yield from self._below(floor, *map(_along, sorted(self.usual)))

    def _rows(self, floor: float) -> Iterator[str]:
        whole = counted(self.cells)
        if self.within is None:
            yield filled(_Bars.of(whole).path(whole, floor, gap=1.0), ROWS)
            return
        within = counted(self.within)
        bars = _Bars.of(whole + within)
        behind = bars.path(whole, floor)
        yield filled(behind, WHOLE)
        yield filled(bars.path(within, floor, gap=1.5), ROWS)
        if behind:
            # The outline of all rows is visible even where the bars of the context are higher.
            yield f'<path d="{behind}" fill="none" stroke="{SOFT}" stroke-opacity=".6"/>'

    def _below(self, floor: float, low: float, high: float) -> Iterator[str]:
        y, middle = floor + 6.0, (low + high) / 2.0
        low, high = min(low, middle - 2.0), max(high, middle + 2.0)
        yield filled(f"M{number(low)} {number(y - 2)}H{number(high)}v4H{number(low)}z", ROWS)
        name = _("usual")
        y, half = floor + 22.0, text_width(name) / 2.0
        before, after = (text_width(end) + 8.0 + half for end in self.ends)
        if before <= middle <= WIDTH - after and not self._one_end:
            yield text(name, (middle, y), anchor="middle")
        yield from self._ends(y)

    def _own(self, at: float, floor: float) -> Iterator[str]:
        x, top = _along(at), number(_ABOVE - 2.0)
        for colour, width in ((_HALO, 4), (FLAG, 2)):
            line = f"M{number(x)} {top}V{number(floor)}"
            yield f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        if not 0.0 <= at <= 1.0:
            turned = f"translate({number(x)} {number(_ABOVE + 6.0)})rotate({180 * (at < 0.0)})"
            yield f'<path d="M0-4.5 7 0 0 4.5z" fill="{FLAG}" transform="{turned}"/>'
        half = text_width(self.text, _LARGE, flagged=True) / 2.0
        place, anchor = x, "middle"
        if x - half < 0.0:
            place, anchor = 0.0, "start"
        elif x + half > WIDTH:
            place, anchor = WIDTH, "end"
        yield text(self.text, (place, 13.0), anchor=anchor, size=_LARGE, flagged=True, ending=True)

    def _ends(self, y: float) -> Iterator[str]:
        low, high = self.ends
        if self._one_end:
            yield text(low, (WIDTH / 2.0, y), anchor="middle")
            return
        room = WIDTH / 2.0 - 6.0
        yield text(low, (0.0, y), room=room)
        yield text(high, (WIDTH, y), anchor="end", room=room)


@dataclass(frozen=True)
class _Bars:
    n_cells: int
    edges: NDArray[np.float64]  # in cells
    widest: float

    @classmethod
    def of(cls, cells: NDArray[np.float64]) -> "_Bars":
        n = len(cells)
        step = _step(cells) if n > _MOST_BARS else 0.0
        if step:
            values = np.flatnonzero(cells)
            each = step * math.ceil(n / step / _MOST_BARS)
            # The values are between the edges, not on them.
            first, last = values[0] + 0.5 - step / 2.0, values[-1] + 0.5
            edges = first + each * np.arange(math.ceil((last - first) / each) + 1)
            return cls(n, edges, _WIDEST_BAR if each == step else math.inf)
        least = math.ceil(n / _MOST_BARS)
        size = next((k for k in range(least, 2 * least) if n % k == 0), least)
        return cls(n, np.append(np.arange(0.0, n, size), n), math.inf)

    def path(self, cells: NDArray[np.float64], floor: float, gap: float = 0.0) -> str:
        rows, _ = np.histogram(np.arange(self.n_cells) + 0.5, self.edges, weights=cells)
        places = _ASIDE + (WIDTH - 2.0 * _ASIDE) * self.edges / self.n_cells
        middles, widths = (places[1:] + places[:-1]) / 2.0, np.diff(places)
        halves = np.minimum(widths - gap, self.widest) / 2.0
        heights = np.maximum(_LEAST, _HIGHEST * np.sqrt(rows / (rows.max() or 1.0)))
        path, end = "", -math.inf
        for x, half, height, n in zip(middles, halves, heights, rows, strict=True):
            if not n > 0.0:
                continue
            if abs(x - half - end) > 0.05:
                path += f"V{number(floor)}z" if path else ""
                path += f"M{number(x - half)} {number(floor)}"
            end = x + half
            path += f"V{number(floor - height)}H{number(end)}"
        return path and f"{path}V{number(floor)}z"


def _step(cells: NDArray[np.float64]) -> float:
    """Return how many cells are between neighbouring values; 0 if there are values everywhere."""
    values = np.flatnonzero(cells)
    gaps = np.diff(values)
    if not len(gaps) or gaps.min() < _APART:
        return 0.0
    step = float(gaps[gaps <= gaps.min() + 1].mean())
    steps = np.rint(gaps / step).cumsum()
    step = float(values[-1] - values[0]) / float(steps[-1])
    off = np.abs(values[1:] - values[0] - step * steps)
    return step if off.max() <= 1.0 else 0.0


def _along(place: float) -> float:
    return _ASIDE + min(max(place, 0.0), 1.0) * (WIDTH - 2.0 * _ASIDE)


@dataclass(frozen=True, eq=False)
class SharesChart:
    """How many rows have each of a few values, in order, and which of these a row has, if any.

    If there are more than six values, the most frequent ones and the row's own keep their bars, and
    a last bar combines all others. Sort categories by their shares; leave numbers in their order.

    Raises `UsageError`, a `ValueError`, if there is no name, another number of shares, no name at
    ``odd``, or a share that is NaN. If all shares are 0, the names have no bars.
    """

    names: Sequence[str]
    shares: Sequence[float]  # of the rows, from 0 to 1
    odd: int | None  # index of the row's own value
    words: str  # a description for people who cannot see the picture

    def __post_init__(self) -> None:
        counted(self.shares)
        if len(self.names) != len(self.shares) or not 0 <= (self.odd or 0) < len(self.names):
            raise UsageError(
                f"{len(self.names)} names, {len(self.shares)} shares and the row's own value at "
                f"{self.odd}: needs a share for each name, and the row's own among them"
            )

    @property
    def svg(self) -> Markup:
        """The picture."""
        return picture(_LINE * len(self._bars), self.words, self._parts())

    @cached_property
    def _bars(self) -> list[tuple[str, float, str]]:
        shares = counted(self.shares).tolist()
        order = sorted(range(len(shares)), key=lambda k: (k != self.odd, -shares[k], k))
        n_kept = len(order) if len(order) <= _MOST_SHARES else _MOST_SHARES - 1
        kept, others = sorted(order[:n_kept]), order[n_kept:]
        bars = [(self.names[k], shares[k], FLAG if k == self.odd else ROWS) for k in kept]
        if others:
            bars.append(
                (
                    _("%(n)s others", n=numeral(len(others))),
                    math.fsum(shares[k] for k in others),
                    WHOLE,
                )
            )
        return bars

    def _parts(self) -> Iterator[str]:
        longest = max(text_width(name, flagged=colour == FLAG) for name, _, colour in self._bars)
        left = min(longest, 0.45 * WIDTH) + 8.0
        most = max(share for _, share, _ in self._bars)
        right = WIDTH - 6.0 - max(text_width(percent(b[1]), flagged=True) for b in self._bars)
        for k, (name, share, colour) in enumerate(self._bars):
            y, flagged = _LINE * k, colour == FLAG
            yield text(name, (left - 8.0, y + 14.5), anchor="end", room=left - 8.0, flagged=flagged)
            end = left + max(2.0, (right - left) * share / most) if share else left
            path = f"M{number(left)} {number(y + 4)}H{number(end)}v13H{number(left)}z"
            yield filled(path if share else "", colour)
            yield text(percent(share), (end + 6.0, y + 14.5), flagged=flagged)
        yield axis(f"M{number(left)} 0V{number(_LINE * len(self._bars))}")


def percent(share: float) -> str:
    """Write a share: rare ones with one digit, and less than all never as 100%."""
    if share <= 0.0:
        return percents("0")
    if share < 1e-5:
        return percents("<0.001")
    if share < 0.00095:
        return percents(f"{100.0 * share:.1g}")
    if 0.995 <= share < 1.0:
        return percents(f"{math.floor(1000.0 * share) / 10.0:.1f}")
    return percents(f"{100.0 * share:.1f}" if share < 0.0995 else f"{100.0 * share:.0f}")
