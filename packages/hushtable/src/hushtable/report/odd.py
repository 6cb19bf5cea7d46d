"""A value of one row in the distribution of its column, as a small chart."""

from dataclasses import dataclass

import numpy as np

from hushtable.data.values import value_words
from hushtable.scores.distributions import CELLS, Distribution
from hushtable.scores.reasons import Reason

#: Bars of a number's chart, a divisor of the cells; and of a category's at most.
_BARS, _CATEGORIES = 34, 12
#: Size of the chart, and the least height of a bar that stands for a row.
WIDTH, HEIGHT, _LEAST = 340.0, 60.0, 1.5


@dataclass(frozen=True)
class ValueChart:
    """The bars of a column's values, and the place of one row's value among them."""

    bars: list[int]  # rows in each part of the range, or of each category
    odd: int  # the bar that the value lies in
    at: float  # its place from left (0) to right (1)
    ends: tuple[str, str]  # what stands under the chart at its left and right
    caption: str
    words: str  # for those who do not see the chart

    @classmethod
    def of(cls, reason: Reason, among: Distribution, said: str) -> "ValueChart | None":
        """Return the chart of a value; None if it is missing, or no other row has one.

        ``said`` is the value beside what is usual, in words.
        """
        cell, value = among.cell(reason.value), reason.value
        if cell is None or not among.n_rows:
            return None
        feature = among.feature
        if among.numeric:
            assert isinstance(value, float)
            bars = among.cells.reshape(_BARS, -1).sum(axis=1).tolist()
            odd, at = cell // (CELLS // _BARS), min(max(among.place(value), 0.0), 1.0)
            ends = (value_words(feature, feature.low), value_words(feature, feature.high))
        else:
            order = [j for j in np.argsort(-among.cells, kind="stable").tolist() if j != cell]
            # From the most frequent; the value's own stands among the first, or at the end.
            shown = order[: _CATEGORIES - 1]
            odd = sum(bool(among.cells[j] >= among.cells[cell]) for j in shown)
            shown.insert(odd, cell)
            shown = [j for j in shown if among.cells[j] or j == cell]
            bars, odd = among.cells[shown].tolist(), shown.index(cell)
            at = (odd + 0.5) / len(bars)
            ends = ("most frequent", "rarest" if len(bars) < _CATEGORIES else "rarer")
        words = f"{said}. Distribution over {among.n_rows:,} rows, from {ends[0]} to {ends[1]}."
        return cls(bars, odd, at, ends, feature.name, words)

    @property
    def rows_path(self) -> str:
        """The bars of the other values, as SVG has it."""
        return "".join(self._bar(k) for k in range(len(self.bars)) if k != self.odd)

    @property
    def odd_path(self) -> str:
        """The bar of the value, and a line where it lies."""
        x = min(max(self.at * WIDTH, 1.0), WIDTH - 1.0)
        return f"{self._bar(self.odd)}M{x - 1:.1f} 0h2v{HEIGHT:g}h-2z"

    def _bar(self, k: int) -> str:
        if not self.bars[k]:
            return ""
        width = WIDTH / len(self.bars)
        height = max(_LEAST, HEIGHT * self.bars[k] / max(self.bars))
        across = width - 1.0
        return f"M{k * width:.1f} {HEIGHT:g}v-{height:.1f}h{across:.1f}v{height:.1f}z"
