"""The picture of a reason: its value among others, its share, or its pair of values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from hushtable.charts.values import PairChart, SharesChart, ValueChart
from hushtable.data.schema import Feature, number_of, value_words
from hushtable.language import _
from hushtable.scores.pairs import Cells
from hushtable.scores.reasons import Reason
from hushtable.scores.typical import UsualValues
from hushtable.scores.usual import Usual

#: Digits of the ends of a range.
_DIGITS = 4


class Pictures:
    """Draws reasons with what is usual; draws nothing if that is unknown."""

    def __init__(self, features: Sequence[Feature], usual: Usual | None) -> None:
        self._features, self._usual = features, usual
        self._places = {feature.name: j for j, feature in enumerate(features)}

    def of(self, reason: Reason) -> Markup:
        """Return the picture of a reason as SVG; empty if there is none."""
        if self._usual is None or reason.phrase is None:
            return Markup()
        j, usual = self._places[reason.feature], self._usual
        if reason.partner:
            return self._pair(reason, j, self._places[reason.partner])
        values = usual.within[reason.context][j] if reason.context else usual.values[j]
        if reason.value is None:
            missing = 0.0 if values is None else values.missing
            return SharesChart(
                [_("a value"), _("missing")], [1.0 - missing, missing], 1, reason.words
            ).svg
        if j in usual.bars and isinstance(reason.value, float):
            return self._value(reason, j, values)
        return _shares(reason, values, self._features[j]) if values and values.shares else Markup()

    def _value(self, reason: Reason, j: int, values: UsualValues | None) -> Markup:
        feature, usual, phrase = self._features[j], self._usual, reason.phrase
        assert usual is not None
        assert phrase is not None
        low, high = usual.bar_ends.get(j, (feature.low, feature.high))
        span = high - low or 1.0
        middle = values.middle if values is not None else None
        ends = None
        if middle is not None:
            ends = (middle[0] - low) / span, (middle[2] - low) / span
        within = usual.bars_within.get(reason.context, {}).get(j) if reason.context else None
        return ValueChart(
            usual.bars[j],
            (float(reason.value or 0.0) - low) / span,
            phrase.text,
            (number_of(feature, low, _DIGITS), number_of(feature, high, _DIGITS)),
            usual=ends,
            within=within,
            words=reason.words,
        ).svg

    def _pair(self, reason: Reason, j: int, k: int) -> Markup:
        assert self._usual is not None
        assert self._usual.pairs is not None
        cells = self._usual.pairs.cells
        x, y = _PairSide.of(self._features[k], cells[k]), _PairSide.of(self._features[j], cells[j])
        counts = self._usual.pairs.between(k, j)[np.ix_(x.order, y.order)]
        value, partner = reason.value, reason.partner_value
        return PairChart(
            counts,
            x.edges,
            y.edges,
            (x.at(partner), y.at(value)),
            (_label(self._features[k], partner), _label(self._features[j], value)),
            (x.ends, y.ends),
            x_names=x.names,
            y_names=y.names,
            words=reason.words,
        ).svg


@dataclass(frozen=True)
class _PairSide:
    """One column of a pair: its cells in the order in which they are drawn."""

    order: list[int]
    edges: NDArray[np.float64]
    ends: tuple[str, str] = ("", "")
    names: list[str] | None = None
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, feature: Feature, cells: Cells) -> "_PairSide":
        """Return numbers by their edges, few numbers in order, categories unchanged."""
        if cells.edges:
            low, high = (number_of(feature, cells.edges[k], _DIGITS) for k in (0, -1))
            return cls([*range(cells.size)], np.array(cells.edges), (low, high))
        order, names = [*range(len(cells.names))], list(cells.names)
        if feature.kind == "numeric":
            order.sort(key=lambda k: float(names[k]))
            names = [number_of(feature, float(x)) for x in names]
        shown = [*(names[k] for k in order), _("others")]
        keys = tuple(cells.names[k] for k in order)
        return cls([*order, len(order)], np.arange(len(shown) + 1.0), names=shown, keys=keys)

    def at(self, value: float | str | None) -> float:
        """Return the place of a value: a number itself, otherwise the middle of its cell."""
        if self.names is None:
            return float(value or 0.0)
        key = value if isinstance(value, str) else repr(float(value or 0.0))
        return (self.keys.index(key) if key in self.keys else len(self.keys)) + 0.5


def _shares(reason: Reason, values: UsualValues, feature: Feature) -> Markup:
    key = reason.value if isinstance(reason.value, str) else repr((reason.value or 0.0) + 0.0)
    shares = {str(key): 0.0} | values.shares
    names = shown = sorted(shares, key=lambda name: -shares[name])
    if not isinstance(reason.value, str):
        names = sorted(shares, key=float)
        shown = [number_of(feature, float(name)) for name in names]
    odd = names.index(str(key))
    return SharesChart(shown, [shares[name] for name in names], odd, reason.words).svg


def _label(feature: Feature, value: float | str | None) -> str:
    return f"{feature.name} {'' if value is None else value_words(feature, value)}"
