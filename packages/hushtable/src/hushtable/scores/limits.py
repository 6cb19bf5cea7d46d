"""The limits from which on a number is far outside everything."""

import math

import numpy as np
from numpy.typing import NDArray

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
    found = median - low, median + high
    return found if low > 0.0 and all(map(math.isfinite, found)) else None
