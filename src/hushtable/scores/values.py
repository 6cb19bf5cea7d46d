"""A value of a feature in words: as people write it, beside what is usual."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.columns import as_numbers, as_texts
from hushtable.data.readers import Batch
from hushtable.data.schema import Feature
from hushtable.data.values import DATE, number_words, value_words
from hushtable.scores.usual import UsualValues

#: A category that fewer of the counted rows have is called rare; among many, each of which has few,
#: one that has less than half as many as the most frequent.
RARE = 0.1
#: Digits of a value, of what is usual, and of a percentage.
_DIGITS, _USUAL_DIGITS, _PERCENT_DIGITS = 6, 4, 2
#: Categories that are named as the usual ones.
_NAMED = 3


@dataclass(frozen=True)
class Told:
    """A value in words."""

    #: A number, text, date, time or truth value; None if missing.
    value: Any
    #: The value as people write it; empty if missing.
    text: str
    #: What most of the counted rows have, or the plan's range where that is not known.
    usual: str
    #: "high", "low", "rare", "missing", "beyond" the plan, or nothing of these.
    direction: str
    #: All of it, in a sentence without its full stop.
    words: str


def cell(rows: Batch, j: int, i: int) -> pa.Array:
    """Return column j of row i, as an array of one."""
    return pa.array(rows[i : i + 1, j]) if isinstance(rows, np.ndarray) else rows[j].slice(i, 1)


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{number_words(100.0 * share, _PERCENT_DIGITS)}%"


def shown(x: float, feature: Feature, kind: pa.DataType, digits: int = _DIGITS) -> str:
    """Return a number of a feature as people write it: dates as dates.

    ``kind`` is the type of the column that it is from.
    """
    types = pa.types
    if _dated(feature, kind):
        return value_words(replace(feature, unit=DATE), x)
    if types.is_time(kind) or types.is_duration(kind):
        return str(timedelta(seconds=round(x)))
    if types.is_boolean(kind):
        return "true" if x else "false"
    return number_words(x, digits)


def _dated(feature: Feature, kind: pa.DataType) -> bool:
    return feature.unit == DATE or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def told(feature: Feature, column: pa.Array, usual: UsualValues | None) -> Told:
    """Put the one value of a column in words.

    Parameters
    ----------
    feature : Feature
        What the column is.
    column : pyarrow.Array of length 1
        The value.
    usual : UsualValues, optional
        What is known of the feature's values among the counted rows.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if feature.kind == "numeric":
        x = float(as_numbers(column, feature.name)[0])
        found = None if math.isnan(x) else _number_told(x, feature, kind, usual)
        common = _usual_range(feature, kind, usual)
    else:
        text = as_texts(column, feature.name)[0].as_py()
        found = None if text is None else _category_told(text, feature, usual)
        common = _usual_categories(usual)
    if found is not None:
        return found
    often = f", as in {percent(usual.missing)} of rows" if usual and usual.missing else ""
    return Told(None, "", common, "missing", f"{feature.name} is missing{often}")


def _number_told(x: float, feature: Feature, kind: pa.DataType, usual: UsualValues | None) -> Told:
    text, common = shown(x, feature, kind), _usual_range(feature, kind, usual)
    what = f"{feature.name} {text}{_unit(feature)}"
    ends = _between(feature.low, feature.high, feature, kind)
    if not feature.low <= x <= feature.high:
        known = f", usually {common}" if usual and usual.middle else ""
        words, direction = f"{what}{known}: beyond the range of {ends}", "beyond"
    elif usual is None or usual.middle is None:
        words, direction = f"{what}, in a range of {ends}", ""
    elif usual.middle[0] <= x <= usual.middle[2]:
        words, direction = f"{what}, within the usual {common}", ""
    else:
        direction = "high" if x > usual.middle[2] else "low"
        words = f"{what}, usually {common}: {direction}"
    value: Any = x
    if _dated(feature, kind):
        try:
            value = datetime.fromtimestamp(x, UTC).replace(tzinfo=None)
        except (OverflowError, ValueError, OSError):
            value = x
    elif text in ("true", "false"):
        value = bool(x)
    elif pa.types.is_time(kind) or pa.types.is_duration(kind):
        value = text
    return Told(value, text, common, direction, words)


def _unit(feature: Feature) -> str:
    return f" {feature.unit}" if feature.unit and feature.unit != DATE else ""


def _between(low: float, high: float, feature: Feature, kind: pa.DataType) -> str:
    ends = [shown(x, feature, kind, _USUAL_DIGITS) for x in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _usual_range(feature: Feature, kind: pa.DataType, usual: UsualValues | None) -> str:
    """Return the middle 90% of the counted rows' numbers, or the plan's range."""
    if usual is None or usual.middle is None:
        return f"{_between(feature.low, feature.high, feature, kind)} (range)"
    return _between(usual.middle[0], usual.middle[2], feature, kind)


def _category_told(text: str, feature: Feature, usual: UsualValues | None) -> Told:
    common, direction = _usual_categories(usual), ""
    words = f"{feature.name} {text}"
    if text not in feature.categories:
        direction, words = "beyond", f"{words}: none of the {len(feature.categories):,} known"
    elif usual is not None:
        # One that is not among the most frequent, which are kept, is rarer than those.
        share = usual.shares.get(text)
        often = "in few rows" if share is None else f"in {percent(share)} of rows"
        few = min(RARE, max(usual.shares.values(), default=0.0) / 2.0)
        direction = "rare" if share is None or share < few else ""
        words = f"{words}, {often}: rare" if direction else f"{words}, {often}"
    return Told(text, text, common, direction, words)


def _usual_categories(usual: UsualValues | None) -> str:
    most = sorted((usual.shares if usual else {}).items(), key=lambda one: -one[1])
    return ", ".join(f"{name} ({percent(share)})" for name, share in most[:_NAMED])
