"""A picture of two columns at once: where the rows are, and where one of them is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from hushtable.charts.drawing import (
    ABOVE,
    ASIDE,
    GROUND,
    ROWS,
    SIZE,
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

    counts: NDArray[Any]  # (a, b): rows in each cell
    x_edges: NDArray[Any]  # (a + 1,), rising; for categories, 0 to a
    y_edges: NDArray[Any]  # (b + 1,)
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
        """Places of the edges, from 0 to 1."""
        even = np.linspace(0.0, 1.0, self.n_cells + 1)
        # Halves, because the span of all numbers would overflow.
        span = self.edges[-1] / 2.0 - self.edges[0] / 2.0
        if self.names is not None or not span:
            return even
        true = (self.edges / 2.0 - self.edges[0] / 2.0) / span
        return np.asarray(_RANKED * even + (1.0 - _RANKED) * true)

    @property
    def odd(self) -> int:
        """The row's own category."""
        return int(min(max(self.at, 0.0), self.n_cells - 1.0))

    @property
    def place(self) -> float:
        """Place of the row, from 0 to 1."""
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
        """Height of the picture."""
        return self.under + 5.0 + (self.slanted or 16.0 if self.x.names else 0.0)

    def across(self, place: float | NDArray[np.float64]) -> Any:
        """Return how far a place of the x axis is from the left."""
        return self.left + (self.right - self.left) * place

    def down(self, place: float | NDArray[np.float64]) -> Any:
        """Return how far a place of the y axis is from the top; the first category is on top."""
        tall = self.bottom - self.top
        return self.top + tall * place if self.y.names else self.bottom - tall * place

    def parts(self, counts: NDArray[np.float64]) -> Iterator[str]:
        """Draw everything, from the background to the front."""
        left, top, right, bottom = map(number, (self.left, self.top, self.right, self.bottom))
        yield filled(f"M{left} {top}H{right}V{bottom}H{left}z", GROUND)
        yield f'<g fill="{ROWS}">{"".join(self._cells(counts))}</g>'
        yield axis(f"M{left} {top}V{bottom}H{right}")
        yield from self._row()
        yield text(self.y.label, 0.0, 13.0, flagged=True, ending=True)
        yield from self._left_names(self.y.names) if self.y.names else self._left_ends()
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

    def _left_ends(self) -> Iterator[str]:
        room = self.left - 6.0 - (_TIP if self.x.beyond < 0 else 0.0)
        for end, y in zip(self.y.ends, (self.bottom, self.top + 9.0), strict=True):
            yield text(end, room, y, anchor="end", room=room)

    def _left_names(self, names: Sequence[str]) -> Iterator[str]:
        room = self.left - 6.0 - (_TIP if self.x.beyond < 0 else 0.0)
        tall = (self.bottom - self.top) / self.y.n_cells
        for k in self.y.written(tall, 14.0):
            y = self.top + (k + 0.5) * tall + 4.0
            yield text(names[k], room, y, anchor="end", room=room, flagged=k == self.y.odd)

    def _lower_ends(self) -> Iterator[str]:
        """Write the row's value at its foot, and the ends that still fit."""
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
