"""Values and ranges of features in words: numbers with their unit, dates as dates."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Rational, Real
from typing import Any

from hushtable.data.schema import Feature

#: The unit of a feature that holds points in time, as seconds since 1970-01-01 UTC.
DATE = "date"
#: What is said in place of a value that is missing.
MISSING = "missing"

_EPOCH = datetime(1970, 1, 1)


def value_words(feature: Feature, value: Any) -> str:
    """Return one value of a feature in words: a number with its unit, a date, or a category.

    ``value`` is a number, text, date or time as Python has it; None or NaN stands for missing.
    """
    if value is None or value != value:
        return MISSING
    if isinstance(value, date):
        return _date_words(value)
    if feature.kind == "categorical" or not isinstance(value, Real | Decimal):
        return str(value)
    if feature.unit == DATE:
        return _point_in_time(float(value))
    number = str(value) if isinstance(value, Rational | Decimal) else number_words(float(value))
    return f"{number} {feature.unit}" if feature.unit else number


def range_words(feature: Feature, most: int = 3) -> str:
    """Return the range of a feature in words, or how many categories it has, and the first few."""
    if feature.kind == "numeric":
        if feature.unit == DATE:
            return f"{_point_in_time(feature.low)} to {_point_in_time(feature.high)}"
        unit = f" {feature.unit}" if feature.unit else ""
        return f"{feature.low:.10g} to {feature.high:.10g}{unit}"
    n = len(feature.categories)
    if not n:
        return "no categories"
    more = f" and {n - most:,} more" if n > most else ""
    return f"{n:,} categories: {', '.join(feature.categories[:most])}{more}"


def number_words(x: float, digits: int = 6) -> str:
    """Return a number with so many digits that count, without an exponent where one can do."""
    if not math.isfinite(x) or (x != 0.0 and not 1e-4 <= abs(x) < 1e15):
        return f"{x:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x)))) if x else 0
    text = f"{x:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _point_in_time(seconds: float) -> str:
    """Return seconds since 1970 as a date, with the time of day unless it is midnight."""
    try:
        return _date_words(_EPOCH + timedelta(seconds=round(seconds)))
    except (OverflowError, ValueError):
        # No calendar goes there: what is in the data is shown as it is.
        return f"{seconds:.10g} s since 1970" if math.isfinite(seconds) else str(seconds)


def _date_words(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    midnight = not (value.hour or value.minute or value.second)
    if midnight:
        return value.date().isoformat()
    return value.isoformat(" ", "seconds" if value.second else "minutes")
