"""The picture of a reason: its value among others, or the shares of values like it."""

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from hushtable.charts.values import SharesChart, ValueChart
from hushtable.data.schema import Feature, number_of
from hushtable.language import _
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
        if self._usual is None:
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
        feature, usual = self._features[j], self._usual
        assert usual is not None
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
            reason.phrase.text,
            (number_of(feature, low, _DIGITS), number_of(feature, high, _DIGITS)),
            usual=ends,
            within=within,
            words=reason.words,
        ).svg

    def _pair(self, reason: Reason, j: int, k: int) -> Markup:
        assert self._usual is not None
        assert self._usual.pairs is not None
        assert reason.value is not None  # a missing value is in no pair
        assert reason.partner_value is not None
        pairs, feature = self._usual.pairs, self._features[j]
        cells, partner = pairs.cells[j], pairs.cells[k]
        rows = pairs.given(j, k, partner.of_value(reason.partner_value))
        order = [*range(cells.size)]
        if cells.edges:
            ends = [number_of(feature, x, _DIGITS) for x in cells.edges]
            names = [_("%(low)s to %(high)s", low=a, high=b) for a, b in pairwise(ends)]
            if len(names) > 1:  # the outer cells also hold what is beyond
                names[0] = _("below %(end)s", end=ends[1])
                names[-1] = _("at least %(end)s", end=ends[-2])
        elif feature.kind == "numeric":
            order[:-1] = sorted(order[:-1], key=lambda cell: float(cells.names[cell]))
            names = [*(number_of(feature, float(name)) for name in cells.names), _("others")]
        else:
            names = [*cells.names, _("others")]
        shares = (rows / max(float(rows.sum()), 1.0)).tolist()
        return SharesChart(
            [names[cell] for cell in order],
            [shares[cell] for cell in order],
            order.index(cells.of_value(reason.value)),
            reason.words,
        ).svg


def _shares(reason: Reason, values: UsualValues, feature: Feature) -> Markup:
    key = reason.value if isinstance(reason.value, str) else repr((reason.value or 0.0) + 0.0)
    shares = {str(key): 0.0} | values.shares
    names = labels = sorted(shares, key=lambda name: -shares[name])
    if not isinstance(reason.value, str):
        names = sorted(shares, key=float)
        labels = [number_of(feature, float(name)) for name in names]
    odd = names.index(str(key))
    return SharesChart(labels, [shares[name] for name in names], odd, reason.words).svg
