"""Whether a value is usual, high, low, rare or far outside everything, in words.

All limits are here, and every list, page, report and session uses them: for the same value and the
same account of what is usual, they all give the same answer.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.arguments import entries
from hushtable.data.columns import as_column, as_numbers, as_texts
from hushtable.data.readers import Batch
from hushtable.data.schema import DATE, MISSING, SINCE, Feature, number_of, number_words
from hushtable.data.texts.reading import ColumnReading, form_of
from hushtable.errors import PlanError
from hushtable.language import N_, _, numeral

#: Multiple of the distance to the end of the middle 90% from which a value is far outside
#: everything; the same in a column of few different numbers; and number of values needed.
_FAR, _FAR_OF_FEW, _LEAST_VALUES = 4.0, 8.0, 30
#: How many of all fitted values may be more than half as far on the same side.
BUT = 3
#: Each side of the median counts as at least this part of the middle 90%.
_LEAST_SIDE = 0.1

#: 5%, 50% and 95% quantiles.
Middle = tuple[float, float, float]


def spread(middle: Middle, above: bool) -> float:
    """Return the distance from the median to the end of the middle 90% on each side."""
    low, median, high = middle
    return max(high - median if above else median - low, _LEAST_SIDE * (high - low))


def far_limits(
    values: NDArray[np.float64], middle: Middle, ends: tuple[float, float] | None, few: bool
) -> tuple[float, float] | None:
    """Return the limits from which on a number is far outside everything, given rising numbers.

    They are four times as far from the median as the end of the middle 90%, or eight times if the
    column has ``few`` different numbers, and twice as far as all values except three on the same
    side. With four times for all columns, lists of labelled sets are worse. ``ends`` are these
    outermost values, if the numbers are a sample. None if there are too few, or if
    too few differ from the median.
    """
    if len(values) < _LEAST_VALUES:
        return None
    low, high = float(values[BUT]), float(values[~BUT])
    if ends is not None:
        low, high = min(low, ends[0]), max(high, ends[1])
    return limits(middle, (low, high), _FAR_OF_FEW if few else _FAR)


def limits(
    middle: Middle, ends: tuple[float, float], times: float = _FAR
) -> tuple[float, float] | None:
    """Return the limits of far values, given the middle 90% and the ends of all but a few.

    If the middle 90% are one number, only the ends show how far values usually are; there is no
    limit if these are the same number, too.
    """
    median = middle[1]
    low, high = 2.0 * (median - ends[0]), 2.0 * (ends[1] - median)
    if middle[0] < middle[2]:
        low = max(times * spread(middle, False), low)
        high = max(times * spread(middle, True), high)
    else:
        low = high = max(low, high)
    distances = median - low, median + high
    return distances if low > 0.0 and all(map(math.isfinite, distances)) else None


#: The quantiles stored for a numeric feature. Model files have had these since protocol 1,
#: and all words follow them: a number below the first is low, one above the last is high.
QUANTILES = (0.05, 0.5, 0.95)
#: A category is called rare if fewer of the rows have it than are beyond both ends of the middle
#: 90%. If there are many categories, each with few rows, it is rare if it has less than half as
#: many rows as the most frequent one.
RARE = 0.1
#: Meanings of the columns "usual" and "direction" of a list, for its reader.
USUAL_MEANS = N_("The middle %(middle)s%% of %(rows)s, or the most frequent values among them.")
DIRECTION_MEANS = N_(
    "high or low: beyond the middle %(middle)s%%. rare: a value that fewer than %(rare)s%% of the "
    "rows have, or not the one that the context predicts. missing: no value. beyond: outside the "
    "model's range or categories. with: usual by itself, rare together with that value. Empty: "
    "usual by itself, unusual together with other columns."
)
#: What they are in percent.
MEANT = {"middle": f"{100.0 * (QUANTILES[2] - QUANTILES[0]):.0f}", "rare": f"{100.0 * RARE:.0f}"}
#: Directions of values, as `_` finds them in the catalogue.
DIRECTIONS = N_("high"), N_("low"), N_("rare"), N_("missing"), N_("beyond")
#: The direction of a value outside the model's range or categories.
BEYOND = "beyond"
#: Number of a feature's categories whose shares are stored: the most frequent.
MOST_CATEGORIES = 20
#: Largest number of different numbers whose shares are stored: yes and no, grades, counts.
FEW_NUMBERS = 10
#: Number of values that usually show whether there are more.
_GLANCE = 64
#: Share of the rows from which on a value, or a missing one, is never a reason.
MAJORITY, _OFTEN_MISSING = 0.5, 0.05
#: Digits of what is usual, and of a percentage.
_USUAL_DIGITS, _PERCENT_DIGITS = 4, 2
#: Number of categories that are named as the usual ones.
_NAMED = 3
#: Standard deviations within which a value is usual enough to be unusual only with another.
_USUAL = 1.96
#: 95% of a normal column are below this many standard deviations.
_NORMAL = 1.645
#: Share assumed for a value that no sampled row has.
_LEAST_SHARE = 1.0 / 8_192.0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class UsualValues:
    """The usual values of a feature among the counted rows."""

    #: The share of rows without a value.
    missing: float
    #: 5%, 50% and 95% quantiles of a numeric feature's values; None if all are missing.
    middle: tuple[float, float, float] | None = None
    #: The share of rows that have each of the most frequent categories; or each number, written by
    #: `repr`, of a numeric feature with at most ten.
    shares: dict[str, float] = field(default_factory=dict)
    #: Numbers up to the first or from the second on are far outside everything; None if unknown.
    far: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        feature: Feature,
        j: int,
        batches: Sequence[Batch],
        times: NDArray[np.int64],
        ends: tuple[float, float] | None = None,
    ) -> "UsualValues":
        """Read them off column j of some batches, whose rows represent ``times`` rows.

        ``ends`` are the lowest and the highest number of all rows but three on each side, if the
        batches are a sample of them.
        """
        n_rows = int(times.sum())
        if feature.kind == "numeric":
            parts = [numbers_of(feature, batch, j) for batch in batches]
            values = np.repeat(np.concatenate(parts), times)
            values = values[~np.isnan(values)]
            missing = 1.0 - len(values) / n_rows
            if not len(values):
                return cls(missing)
            low, middle, high = np.quantile(values, QUANTILES, method="inverted_cdf").tolist()
            shares: dict[str, float] = {}
            many = len(np.unique(values[:_GLANCE])) > FEW_NUMBERS
            if not many and feature.unit not in (DATE, SINCE):
                numbers, rows = np.unique(values + 0.0, return_counts=True)  # no -0.0
                if len(numbers) <= FEW_NUMBERS:
                    each = zip(numbers.tolist(), rows.tolist(), strict=True)
                    shares = {repr(x): n / n_rows for x, n in each}
            far = far_limits(np.sort(values), (low, middle, high), ends, bool(shares))
            return cls(missing, (low, middle, high), shares, far)
        texts = [text for batch in batches for text in texts_of(feature, batch, j).to_pylist()]
        counts: dict[str | None, int] = {}
        for text, rows in zip(texts, times.tolist(), strict=True):
            counts[text] = counts.get(text, 0) + rows
        missing = counts.pop(None, 0) / n_rows
        # A text that the schema does not list may belong to a single row: files hold none.
        listed = [(text, counts[text]) for text in feature.categories if text in counts]
        most = sorted(listed, key=lambda item: (-item[1], item[0]))[:MOST_CATEGORIES]
        return cls(missing, None, {text: rows / n_rows for text, rows in most})

    @classmethod
    def of_cells(
        cls,
        feature: Feature,
        cells: NDArray[Any],
        ends: Callable[[int, int], tuple[float, float]],
        few: float,
    ) -> "UsualValues | None":
        """Read them off counts of rows; None if there are no rows with a value.

        ``cells`` are equal parts of a range, for which ``ends`` returns the outer edges of two of
        them; or they are categories, in order. So few rows at an end count as none: those that may
        be more than half as far as a value far outside everything, and those that noise hides.
        """
        n_rows = float(cells.sum())
        if not n_rows > 0.0:
            return None
        if feature.kind == "numeric":
            below, last = np.cumsum(cells), len(cells) - 1
            first, half, end = np.searchsorted(below / n_rows, QUANTILES).tolist()
            low, high = ends(first, min(end, last))
            middle = low, 0.5 * sum(ends(half, half)), high
            outer = ends(int((below <= few).sum()), int((below < n_rows - few).sum()))
            return cls(0.0, middle, {}, limits(middle, outer) if n_rows > 2.0 * few else None)
        shares = cells / n_rows
        most = np.argsort(-shares[: len(feature.categories)], kind="stable")[:MOST_CATEGORIES]
        listed = {feature.categories[j]: float(shares[j]) for j in most.tolist() if shares[j]}
        return cls(0.0, None, listed)

    def to_dict(self) -> dict[str, object]:
        """Return the entry that a file contains."""
        middle = {} if self.middle is None else {"middle": list(self.middle)}
        shares = {"shares": self.shares} if self.shares else {}
        far = {} if self.far is None else {"far": list(self.far)}
        return {"missing": self.missing, **middle, **shares, **far}

    @classmethod
    def from_dict(cls, content: object, feature: Feature) -> "UsualValues":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        what = f"what is usual of {feature.name!r}"
        optional = {"middle": list, "shares": dict, "far": list}
        stated = entries(content, what, {"missing": float}, optional)
        middle, shares, far = stated.get("middle"), stated.get("shares", {}), stated.get("far")
        numbers = [stated["missing"], *shares.values()]
        shared = all(type(x) in (int, float) and 0.0 <= x <= 1.0 for x in numbers)
        rising = _rising(middle, 3) and _rising(far, 2)
        if not shared or not rising or len(shares) > MOST_CATEGORIES:
            raise PlanError(f"{what}: needs shares, three rising quantiles, and two limits")
        numeric = feature.kind == "numeric"
        known = _are_few(shares) if numeric else shares.keys() <= {*feature.categories}
        if (middle is not None or far is not None) > numeric or not known:
            raise PlanError(f"{what}: does not fit a feature of this kind with these categories")
        quantiles = (
            None if middle is None else (float(middle[0]), float(middle[1]), float(middle[2]))
        )
        limits = None if far is None else (float(far[0]), float(far[1]))
        return cls(float(stated["missing"]), quantiles, shares, limits)

    @property
    def typical(self) -> float | str | None:
        """The median of numbers, or the most frequent value; None if no row has a value."""
        if self.middle is not None and not self.shares:
            return self.middle[1]
        most = max(self.shares, key=lambda category: self.shares[category], default=None)
        return most if self.middle is None or most is None else float(most)

    def is_far(self, value: float | str | None) -> bool:
        """Whether a value is a number far outside everything."""
        if self.far is None or not isinstance(value, float):
            return False
        return not self.far[0] < value < self.far[1]

    def share(self, feature: Feature, value: float | str) -> float:
        """Return the share of rows that have a category, or a number of few.

        The most frequent categories are stored; any other gets the share of the least frequent of
        these, since no more rows have it.
        """
        key = value if isinstance(value, str) else repr(value + 0.0)
        more = len(feature.categories) > len(self.shares) == MOST_CATEGORIES
        return self.shares.get(key, min(self.shares.values()) if more else 0.0)

    def distance(self, feature: Feature, value: float | str | None) -> float:
        """Return how far a value is from what is usual, in robust standard deviations.

        For a category or a missing value, the deviations of an indicator column of that value. For
        one of few numbers, half of those, unless it is further from the mean.
        """
        if value is None:
            return _of_share(self.missing)
        if isinstance(value, str):
            known = value in feature.categories
            return _of_share(self.share(feature, value) if known else 0.0)
        if self.middle is None:
            return 0.0
        if self.shares:
            numbers, shares = [*map(float, self.shares)], [*self.shares.values()]
            mean = float(np.average(numbers, weights=shares))
            deviation = math.sqrt(np.average((np.array(numbers) - mean) ** 2, weights=shares))
            from_mean = abs(value - mean) / deviation if deviation else 0.0
            return max(0.5 * _of_share(self.share(feature, value)), from_mean)
        low, middle, high = self.middle
        if low == high:
            return 0.0 if value == middle else _of_share(2.0 * QUANTILES[0])
        return _NORMAL * abs(value - middle) / spread(self.middle, value > middle)


def _rising(numbers: Any, n: int) -> bool:
    return numbers is None or (
        len(numbers) == n
        and all(type(x) in (int, float) and math.isfinite(x) for x in numbers)
        and sorted(numbers) == numbers
    )


def _of_share(share: float) -> float:
    """Return how many standard deviations a 1 is from the mean, given the share of ones."""
    share = max(share, _LEAST_SHARE)
    return math.sqrt(max(0.0, 1.0 - share) / share)


def _are_few(shares: dict[str, float]) -> bool:
    def is_number(text: str) -> bool:
        with contextlib.suppress(ValueError):
            return math.isfinite(float(text)) and repr(float(text)) == text
        return False

    return len(shares) <= FEW_NUMBERS and all(map(is_number, shares))


@dataclass(frozen=True)
class ValuePhrase:
    """A value in words."""

    #: A number, text, date, time or truth value; None if missing.
    value: Any
    #: The value in written form; empty if missing.
    text: str
    #: What most of the counted rows have, or the plan's range if that is unknown.
    usual: str
    #: "high", "low", "rare", "missing", "beyond" the plan, or empty.
    direction: str
    #: All of it, in a sentence without a full stop.
    words: str
    #: Whether it is known what is usual.
    compared: bool = False
    #: The share of rows with this category, number of few, or no value; None if unknown.
    share: float | None = None
    #: How far it is from what is usual, in robust standard deviations; 0 if that is unknown.
    distance: float = 0.0

    @property
    def stands_out(self) -> bool:
        """Whether the value on its own may be a reason: it is high, low, rare, or of a few rows.

        This includes any value for which usual values are unknown.
        """
        odd = bool(self.direction) or self.share is not None or not self.compared
        return odd and not self.shared

    @property
    def alone(self) -> bool:
        """Whether the value is known to be usual on its own."""
        usual = self.shared or self.distance < _USUAL
        return self.compared and self.direction in ("", "high", "low") and usual

    def named(self, feature: Feature) -> str:
        """Return the value with the name of its feature, and the unit."""
        if self.value is None or isinstance(self.value, str):
            return f"{feature.name} {self.text or _(MISSING)}"
        return with_name(feature, self.text)

    @property
    def common(self) -> bool:
        """Whether so many rows have this value, or lack one, that it is never a reason."""
        if self.direction == "missing":
            return (self.share or 0.0) >= _OFTEN_MISSING
        return (self.share or 0.0) > MAJORITY

    @property
    def shared(self) -> bool:
        """Whether so many rows have this value that it is a reason only with a partner's."""
        return self.common or (self.share is not None and self.share >= RARE)


def cell(rows: Batch, j: int, i: int) -> pa.Array:
    """Return column j of row i, as an array of one."""
    return pa.array(rows[i : i + 1, j]) if isinstance(rows, np.ndarray) else rows[j].slice(i, 1)


def numbers_of(feature: Feature, rows: Batch, j: int) -> Floats:
    """Return the numbers of column j of some rows (n,), NaN where missing."""
    column = rows[:, j] if isinstance(rows, np.ndarray) else as_numbers(rows[j], feature.name)
    return column.astype(np.float64)


def texts_of(feature: Feature, rows: Batch, j: int) -> pa.Array:
    """Return the texts of column j of some rows (n,)."""
    if isinstance(rows, np.ndarray):
        return as_texts(as_column(rows[:, j], ~np.isnan(rows[:, j])), feature.name)
    return as_texts(rows[j], feature.name)


def and_words(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    if len(names) == 1:
        return names[0]
    return _("%(names)s and %(last)s", names=", ".join(names[:-1]), last=names[-1])


def percent(share: float) -> str:
    """Return a share in words."""
    return _("%(n)s%%", n=number_words(100.0 * share, _PERCENT_DIGITS))


def number_text(x: float, feature: Feature, kind: pa.DataType, digits: int | None = None) -> str:
    """Return a number of a column of type ``kind`` in written form: dates as dates."""
    if feature.written is not None or form_of(kind) == "number":
        return number_of(feature, x, digits)
    return ColumnReading(form_of(kind)).written(x)


def plain_type(column: pa.Array) -> pa.DataType:
    """Return the type of a column's values."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def read_value(feature: Feature, column: pa.Array) -> float | str | None:
    """Return the one value of a column: a number, or a text; None if it is missing."""
    if feature.kind == "numeric":
        x = float(as_numbers(column, feature.name)[0])
        return None if math.isnan(x) else x
    text: str | None = as_texts(column, feature.name)[0].as_py()
    return text


def describe_cell(feature: Feature, column: pa.Array, usual: UsualValues | None) -> ValuePhrase:
    """Describe the one value of a column in words."""
    return describe_value(feature, read_value(feature, column), plain_type(column), usual)


def describe_value(
    feature: Feature, value: float | str | None, kind: pa.DataType, usual: UsualValues | None
) -> ValuePhrase:
    """Describe a value in words, with what is usual among the rows with which it is compared.

    It was read from a column of type ``kind``; None if it is missing.
    """
    distance = 0.0 if usual is None else usual.distance(feature, value)
    if isinstance(value, str):
        return replace(_category_phrase(value, feature, kind, usual), distance=distance)
    if value is not None:
        return replace(_number_phrase(value, feature, kind, usual), distance=distance)
    words = _("%(name)s is missing", name=feature.name)
    if feature.unit == SINCE:
        words = _("no earlier reading")
    if usual and usual.missing:
        share_words = percent(usual.missing)
        words = _("%(what)s, as in %(share)s of rows", what=words, share=share_words)
    common, share = _usual_words(feature, kind, usual), usual.missing if usual else None
    return ValuePhrase(None, "", common, "missing", words, usual is not None, share, distance)


def describe_within(
    feature: Feature,
    column: pa.Array,
    within: UsualValues,
    context: str,
    usual: UsualValues | None,
) -> ValuePhrase:
    """Describe the one value of a column in words, with what is usual in its row's context.

    ``context`` names it, such as ``"ward gyn"``. ``within`` is what is usual there, ``usual`` what
    is usual among all rows; the phrase's own ``usual`` and ``direction`` are those of the context.
    """
    everywhere = describe_cell(feature, column, usual)
    phrase = describe_cell(feature, column, within)
    if phrase.direction in ("high", "low"):
        words = _(
            "%(what)s: %(direction)s for %(context)s, where %(usual)s is usual",
            what=with_name(feature, phrase.text),
            direction=_(phrase.direction),
            context=context,
            usual=phrase.usual,
        )
        if everywhere.compared:
            words = _("%(what)s (anywhere %(usual)s)", what=words, usual=everywhere.usual)
        return replace(phrase, words=words)
    if phrase.direction == BEYOND:
        return everywhere
    words = _("%(what)s, for %(context)s", what=phrase.words, context=context)
    return replace(phrase, words=words)


def direction(feature: Feature, value: float | str | None, usual: UsualValues | None) -> str:
    """Return high, low, rare, missing or beyond; empty for any other value."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        if value not in feature.categories:
            return BEYOND
        if usual is None:
            return ""
        share, most = usual.share(feature, value), max(usual.shares.values(), default=0.0)
        return "rare" if not share or share < min(RARE, most / 2.0) else ""
    if not feature.low <= value <= feature.high:
        return BEYOND
    if usual is not None and usual.shares and not usual.is_far(value):
        return "rare" if usual.shares.get(repr(value + 0.0), 0.0) < RARE else ""
    if usual is None or usual.middle is None or usual.middle[0] <= value <= usual.middle[2]:
        return ""
    return "high" if value > usual.middle[2] else "low"


def _number_phrase(
    x: float, feature: Feature, kind: pa.DataType, usual: UsualValues | None
) -> ValuePhrase:
    text, common = number_text(x, feature, kind), _usual_words(feature, kind, usual)
    what = with_name(feature, text)
    ends = range_text(feature.low, feature.high, feature, kind)
    side = direction(feature, x, usual)
    said = {"what": what, "usual": common, "range": ends, "direction": _(side)}
    share = usual.shares.get(repr(x + 0.0)) if usual and usual.shares else None
    if side == BEYOND:
        known = N_("%(what)s, usually %(usual)s: beyond the range of %(range)s")
        alone = N_("%(what)s: beyond the range of %(range)s")
        words = _(known if usual and usual.middle else alone, **said)
    elif usual is None or usual.middle is None:
        words = _("%(what)s, in a range of %(range)s", **said)
    elif usual.is_far(x):
        above = N_("%(what)s, usually %(usual)s: far above")
        words = _(above if side == "high" else N_("%(what)s, usually %(usual)s: far below"), **said)
    elif usual.shares:
        few = _("in few rows")
        often = few if share is None else _("in %(share)s of rows", share=percent(share))
        words = f"{what}, {often}: {said['direction']}" if side else f"{what}, {often}"
    elif side:
        words = _("%(what)s, usually %(usual)s: %(direction)s", **said)
    else:
        words = _("%(what)s, within the usual %(usual)s", **said)
    value: Any = {"boolean": bool(x), "time": text}.get(form_of(kind), x)
    if feature.unit == DATE or form_of(kind) == "date":
        with contextlib.suppress(OverflowError):
            value = datetime(1970, 1, 1) + timedelta(seconds=x)
    return ValuePhrase(value, text, common, side, words, usual is not None, share)


def with_name(feature: Feature, text: str) -> str:
    """Return a number of a feature with the feature's name and unit."""
    if feature.unit == SINCE:
        return _("no reading for %(time)s", time=text)
    unit = f" {feature.unit}" if feature.unit and feature.unit != DATE else ""
    return f"{feature.name} {text}{unit}"


def range_text(low: float, high: float, feature: Feature, kind: pa.DataType) -> str:
    """Return two numbers of a column of type ``kind`` as a range in words."""
    low_text, high_text = (number_text(x, feature, kind, _USUAL_DIGITS) for x in (low, high))
    return (
        low_text
        if low_text == high_text
        else _("%(low)s to %(high)s", low=low_text, high=high_text)
    )


def _usual_words(feature: Feature, kind: pa.DataType, usual: UsualValues | None) -> str:
    """Return the most frequent values in words, or the range of usual numbers."""
    numeric, shares = feature.kind == "numeric", usual.shares if usual else {}
    if shares or not numeric:
        most = sorted(shares.items(), key=lambda item: -item[1])[:_NAMED]
        return ", ".join(
            f"{number_text(float(x), feature, kind) if numeric else x} ({percent(share)})"
            for x, share in most
        )
    if usual is None or usual.middle is None:
        return _("%(ends)s (range)", ends=range_text(feature.low, feature.high, feature, kind))
    return range_text(usual.middle[0], usual.middle[2], feature, kind)


def _category_phrase(
    text: str, feature: Feature, kind: pa.DataType, usual: UsualValues | None
) -> ValuePhrase:
    side, words, share = direction(feature, text, usual), f"{feature.name} {text}", None
    if side == BEYOND:
        n = numeral(len(feature.categories))
        words = _("%(what)s: none of the %(n)s known", what=words, n=n)
    elif usual is not None:
        share = usual.share(feature, text)
        few = _("in few rows")
        often = _("in %(share)s of rows", share=percent(share)) if text in usual.shares else few
        words = f"{words}, {often}: {_(side)}" if side else f"{words}, {often}"
    known, common = usual is not None, _usual_words(feature, kind, usual)
    return ValuePhrase(text, text, common, side, words, known, share)
