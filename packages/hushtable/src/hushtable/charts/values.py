"""Small pictures of why a row is unusual: a value among others, its share, a pair of values.

They contain counts and texts, and no models.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from hushtable.charts.drawing import (
    ABOVE,
    ASIDE,
    FLAG,
    GROUND,
    LARGE,
    ROWS,
    SIZE,
    SOFT,
    WHOLE,
    WIDTH,
    arrow,
    axis,
    beyond,
    check_places,
    counted,
    filled,
    marker,
    number,
    picture,
    range_ends,
    text,
    text_near,
    text_width,
)
from hushtable.errors import UsageError
from hushtable.language import _, numeral, percents

__all__ = ["PairChart", "SharesChart", "ValueChart"]

#: A place or places on an axis.
Place = TypeVar("Place", float, NDArray[np.float64])

#: Counts of rows, exact or with noise.
Numbers: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

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
    usual_name: str = ""  # what is written under it instead of "usual"
    #: (n,): rows of the same context, in colour; all rows are a grey outline behind them.
    within: Numbers | None = None
    words: str  # a description for people who cannot see the picture

    def __post_init__(self) -> None:
        whole = counted(self.cells, 1)
        if self.within is not None and counted(self.within, 1).shape != whole.shape:
            raise UsageError(
                f"{len(whole)} cells of all rows and {len(self.within)} of the context: count both "
                "over the same parts of the range"
            )
        check_places(*(() if self.at is None else (self.at,)), *(self.usual or ()))

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
        return picture(ABOVE + _HIGHEST + low, self.words, chart._parts())

    @property
    def _one_end(self) -> bool:
        return self.ends[0] == self.ends[1]

    def _parts(self) -> Iterator[str]:
        floor = ABOVE + _HIGHEST
        yield from self._rows(floor)
        yield axis(f"M0 {number(floor)}H{number(WIDTH)}")
        if self.at is not None:
            x = _along(self.at)
            yield marker(f"M{number(x)} {number(ABOVE - 2.0)}V{number(floor)}", 2.0)
            if side := beyond(self.at, 0.0, 1.0):
                yield arrow(x, ABOVE + 6.0, 0 if side > 0 else 180)
            yield text_near(self.text, x, 13.0, 0.0, WIDTH, LARGE)
        if self.usual is None:
            yield from range_ends(self.ends, 0.0, WIDTH, floor + 16.0)
        else:
            yield from self._below(floor, *map(_along, sorted(self.usual)))

    def _rows(self, floor: float) -> Iterator[str]:
        """Draw the bars; those of a context in front of the outline of all."""
        whole = counted(self.cells, 1)
        if self.within is None:
            yield filled(_Bars.of(whole).path(whole, floor, gap=1.0), ROWS)
            return
        within = counted(self.within, 1)
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
        name = self.usual_name or _("usual")
        y, half = floor + 22.0, text_width(name) / 2.0
        before, after = (text_width(end) + 8.0 + half for end in self.ends)
        if before <= middle <= WIDTH - after and not self._one_end:
            yield text(name, middle, y, anchor="middle")
        yield from range_ends(self.ends, 0.0, WIDTH, y)


@dataclass(frozen=True)
class _Bars:
    """The cells that each bar combines."""

    n_cells: int
    edges: NDArray[np.float64]  # in cells
    widest: float

    @classmethod
    def of(cls, cells: NDArray[np.float64]) -> "_Bars":
        """Return a bar for each occurring value if these are few; else for equal parts."""
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
        """Return the bars as a path on the floor, with gaps between them."""
        rows, _ = np.histogram(np.arange(self.n_cells) + 0.5, self.edges, weights=cells)
        places = ASIDE + (WIDTH - 2.0 * ASIDE) * self.edges / self.n_cells
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
    return ASIDE + min(max(place, 0.0), 1.0) * (WIDTH - 2.0 * ASIDE)


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
        counted(self.shares, 1)
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
        shares = counted(self.shares, 1).tolist()
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
            y, own = _LINE * k, colour == FLAG
            yield text(name, left - 8.0, y + 14.5, anchor="end", room=left - 8.0, flagged=own)
            end = left + max(2.0, (right - left) * share / most) if share else left
            path = f"M{number(left)} {number(y + 4)}H{number(end)}v13H{number(left)}z"
            yield filled(path if share else "", colour)
            yield text(percent(share), end + 6.0, y + 14.5, flagged=own)
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


#: Weight of the ranks of edges in their place on an axis; their values have the rest.
_RANKED = 0.6
#: Opacity of a cell with the fewest rows.
_FAINTEST = 0.15
#: Radius of the ring, room for the arrowhead beyond the frame, and gap between cells.
_RING, _TIP, _GAP = 6.0, 11.0, 1.0
#: Slanted names under the frame: their angle, and their greatest length.
_DEGREES, _SLANTED = 40, 80.0
_SLOPE = math.sin(math.radians(_DEGREES))


@dataclass(frozen=True, eq=False)
class PairChart:
    """The rows over two columns at once, and the place of one row among them.

    The stronger a cell's colour, the more rows it has for its size, by the square root; a cell with
    rows always has some colour. An axis of numbers mixes the ranks of the edges with their values:
    with edges at quantiles, the long tail of a column leaves room for the other cells, and is still
    far out. If numbers are paired with categories, the categories are at the left, where names have
    room.

    Raises `UsageError`, a `ValueError`, if the counts do not have as many cells as the edges or the
    names, edges fall or are not finite, or a place or a count is NaN. If all counts are 0, the row
    is in an empty frame; in a range of a single value, it is in the middle.
    """

    counts: Numbers  # (a, b): rows in each cell
    x_edges: NDArray[np.float64]  # (a + 1,), rising; for categories, 0 to a
    y_edges: NDArray[np.float64]  # (b + 1,)
    at: tuple[float, float]  # the row's values; for the k-th category, anything from k below k + 1
    labels: tuple[str, str]  # the columns, each with the row's value
    ends: tuple[tuple[str, str], tuple[str, str]]  # the low and the high end of each range
    _: KW_ONLY
    x_names: Sequence[str] | None = None  # of the categories
    y_names: Sequence[str] | None = None
    words: str  # a description for people who cannot see the picture

    def __post_init__(self) -> None:
        x, y = self._axes
        if counted(self.counts, 2).shape != (x.n_cells, y.n_cells):
            raise UsageError(
                f"counts of shape {np.shape(self.counts)} between {len(self.x_edges)} and "
                f"{len(self.y_edges)} edges: needs one edge more than cells in each direction"
            )

    @cached_property
    def _axes(self) -> "tuple[_Axis, _Axis]":
        columns = zip(
            (self.x_edges, self.y_edges),
            (self.x_names, self.y_names),
            self.at,
            self.labels,
            self.ends,
            strict=True,
        )
        x, y = (_Axis.of(*column) for column in columns)
        return x, y

    @property
    def svg(self) -> Markup:
        """The picture."""
        x, y = self._axes
        counts = counted(self.counts, 2)
        if x.names and not y.names:
            x, y, counts = y, x, counts.T
        frame = _Frame.of(x, y)
        return picture(frame.height, self.words, frame.parts(counts))


@dataclass(frozen=True, eq=False)
class _Axis:
    """A column of a pair: its cells from the low end, and the row's value."""

    edges: NDArray[np.float64]
    names: Sequence[str] | None
    at: float
    label: str
    ends: tuple[str, str]

    @classmethod
    def of(
        cls,
        edges: ArrayLike,
        names: Sequence[str] | None,
        at: float,
        label: str,
        ends: tuple[str, str],
    ) -> "_Axis":
        """Return the axis after checking its edges and the row's place."""
        check_places(at)
        checked = np.asarray(edges, np.float64)
        wrong = checked.ndim != 1 or len(checked) < 2 or not np.isfinite(checked).all()
        if wrong or (np.diff(checked) < 0.0).any():
            raise UsageError(f"edges {edges!r}: needs two or more finite numbers that do not fall")
        if names is not None and len(names) != len(checked) - 1:
            raise UsageError(
                f"{len(names)} names for {len(checked) - 1} cells: needs one name for each cell"
            )
        return cls(checked, names, float(at), label, ends)

    @property
    def n_cells(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def lines(self) -> NDArray[np.float64]:
        even = np.linspace(0.0, 1.0, self.n_cells + 1)
        # Halves, because the span of all numbers would overflow.
        span = self.edges[-1] / 2.0 - self.edges[0] / 2.0
        if self.names is not None or not span:
            return even
        true = (self.edges / 2.0 - self.edges[0] / 2.0) / span
        return np.asarray(_RANKED * even + (1.0 - _RANKED) * true)

    @property
    def odd(self) -> int:
        return int(min(max(self.at, 0.0), self.n_cells - 1.0))

    @property
    def place(self) -> float:
        if self.names is not None:
            return (self.odd + 0.5) / self.n_cells
        if self.edges[0] == self.at == self.edges[-1]:
            return 0.5
        return float(np.interp(self.at, self.edges, self.lines))

    @property
    def beyond(self) -> int:
        """Whether the row is below the axis (-1), above it (1) or on it (0)."""
        past = self.names is not None and self.at >= self.n_cells
        return 1 if past else beyond(self.at, self.edges[0], self.edges[-1])

    def written(self, size: float, least: float) -> list[int]:
        """Return the categories whose names fit, which include the row's own."""
        step, odd = math.ceil(least / size), self.odd
        return [
            k for k in range(self.n_cells) if k == odd or (k % step == 0 and abs(k - odd) >= step)
        ]


@dataclass(frozen=True, eq=False)
class _Frame:
    """Layout of the cells of a pair in its picture, between the texts around them."""

    x: _Axis
    y: _Axis
    left: float
    top: float
    right: float
    bottom: float
    under: float  # the first line of text under the frame
    slanted: float  # height of slanted names under the frame; 0 if they are horizontal

    @classmethod
    def of(cls, x: _Axis, y: _Axis) -> "_Frame":
        """Return the frame, with room for the texts of both axes and for arrows beyond it."""
        down = y.beyond if y.names else -y.beyond
        left = 10.0 + min(max(_widths(y.names or y.ends)), 0.34 * WIDTH)
        left += _TIP if x.beyond < 0 else 0.0
        right = WIDTH - ASIDE - (_TIP if x.beyond > 0 else 0.0)
        top = ABOVE + (_TIP if down < 0 else 0.0)
        bottom = top + (min(max(20.0 * y.n_cells, 90.0), 260.0) if y.names else 150.0)
        under = bottom + 16.0 + (_TIP if down > 0 else 0.0)
        longest = max(_widths(x.names)) if x.names else 0.0
        flat = longest + 4.0 <= (right - left) / x.n_cells
        slanted = 0.0 if flat else 8.0 + _SLOPE * min(longest, _SLANTED)
        return cls(x, y, left, top, right, bottom, under, slanted)

    @property
    def height(self) -> float:
        return self.under + 5.0 + (self.slanted or 16.0 if self.x.names else 0.0)

    def across(self, place: Place) -> Place:
        """Return how far a place of the x axis is from the left."""
        return self.left + (self.right - self.left) * place

    def down(self, place: Place) -> Place:
        """Return how far a place of the y axis is from the top; the first category is on top."""
        tall = self.bottom - self.top
        return self.top + tall * place if self.y.names else self.bottom - tall * place

    def parts(self, counts: NDArray[np.float64]) -> Iterator[str]:
        left, top, right, bottom = map(number, (self.left, self.top, self.right, self.bottom))
        yield filled(f"M{left} {top}H{right}V{bottom}H{left}z", GROUND)
        yield f'<g fill="{ROWS}">{"".join(self._cells(counts))}</g>'
        yield axis(f"M{left} {top}V{bottom}H{right}")
        yield from self._row()
        yield text(self.y.label, 0.0, 13.0, flagged=True, ending=True)
        yield from self._left_texts()
        yield from self._lower_names(self.x.names) if self.x.names else self._lower_ends()

    def _cells(self, counts: NDArray[np.float64]) -> Iterator[str]:
        """Draw the cells that hold rows, with narrow gaps between them."""
        xs, ys = self.across(self.x.lines), self.down(self.y.lines)
        widths, heights = np.diff(xs), np.abs(np.diff(ys))
        density = counts / np.outer(widths, heights)
        for i, j in np.argwhere(counts > 0.0).tolist():
            opacity = max(_FAINTEST, math.sqrt(density[i, j] / density.max()))
            x, y = xs[i] + _GAP / 2.0, min(ys[j], ys[j + 1]) + _GAP / 2.0
            width, height = max(widths[i] - _GAP, _GAP), max(heights[j] - _GAP, _GAP)
            yield (
                f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}"'
                f' height="{number(height)}" opacity="{opacity:.2g}"/>'
            )

    def _row(self) -> Iterator[str]:
        """Draw the row as a ring, with lines to both axes, and arrows if it is beyond them."""
        x, y, r = self.across(self.x.place), self.down(self.y.place), _RING
        # The lines end at the ring, and vanish if it reaches the axis.
        across, down = max(x - r, self.left), min(y + r, self.bottom)
        guides = f"M{number(self.left)} {number(y)}H{number(across)}"
        yield marker(f"{guides}M{number(x)} {number(down)}V{number(self.bottom)}", 1.0)
        half = f"a{r:g} {r:g} 0 0 1"
        yield marker(f"M{number(x - r)} {number(y)}{half} {2 * r:g} 0{half}-{2 * r:g} 0z", 2.5)
        if side := self.x.beyond:
            yield arrow(x + side * (r + 2.0), y, 0 if side > 0 else 180)
        if side := self.y.beyond:
            down = side if self.y.names else -side
            yield arrow(x, y + down * (r + 2.0), 90 * down)

    def _left_texts(self) -> Iterator[str]:
        room = self.left - 6.0 - (_TIP if self.x.beyond < 0 else 0.0)
        if not (names := self.y.names):
            for end, y in zip(self.y.ends, (self.bottom, self.top + 9.0), strict=True):
                yield text(end, room, y, anchor="end", room=room)
            return
        tall = (self.bottom - self.top) / self.y.n_cells
        for k in self.y.written(tall, 14.0):
            y = self.top + (k + 0.5) * tall + 4.0
            yield text(names[k], room, y, anchor="end", room=room, flagged=k == self.y.odd)

    def _lower_ends(self) -> Iterator[str]:
        # The end that is farther away always has room.
        left, right, (low, high) = 0.0, WIDTH, self.x.ends
        if self.x.place > 0.5:
            left = self.left + min(text_width(low), (self.right - self.left) / 2.0) + 8.0
        else:
            right = self.right - min(text_width(high), (self.right - self.left) / 2.0) - 8.0
        foot = self.across(self.x.place)
        half = min(text_width(self.x.label, flagged=True), right - left) / 2.0
        middle = min(max(foot, left + half), right - half)
        yield text_near(self.x.label, foot, self.under, left, right, SIZE)
        taken = (middle - half, middle + half)
        yield from range_ends(self.x.ends, self.left, self.right, self.under, taken)

    def _lower_names(self, names: Sequence[str]) -> Iterator[str]:
        """Write the categories, slanted if they are long, and the row's value under them."""
        size = (self.right - self.left) / self.x.n_cells
        for k in self.x.written(size, 20.0 if self.slanted else 1.0):
            x, y, own = self.left + (k + 0.5) * size, self.under, k == self.x.odd
            if self.slanted:
                room = min(_SLANTED, (x + 4.0) / math.cos(math.radians(_DEGREES)))
                turned = f"rotate(-{_DEGREES} {number(x + 4.0)} {number(y - 4.0)})"
                name = text(names[k], x + 4.0, y - 4.0, anchor="end", room=room, flagged=own)
                yield f'<g transform="{turned}">{name}</g>'
            else:
                yield text(names[k], x, y, anchor="middle", flagged=own)
        foot = self.across(self.x.place)
        yield text_near(self.x.label, foot, self.height - 4.0, 0.0, WIDTH, SIZE)


def _widths(names: Sequence[str]) -> list[float]:
    """Return the width of names if any of them may be the row's own."""
    return [text_width(name, flagged=True) for name in names]
