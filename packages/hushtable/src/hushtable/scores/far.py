"""The limits from which on a number is far outside everything."""

import math

import numpy as np
from numpy.typing import NDArray

#: Multiple of the distance to the end of the middle 90% from which a value is far outside
#: everything, and number of values needed to know it.
_FAR, _FEW_VALUES = 4.0, 30
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
    values: NDArray[np.float64], middle: Middle, ends: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the limits from which on a number is far outside everything, given rising numbers.

    They are four times as far from the median as the end of the middle 90%, and twice as far as all
    values except three on the same side. Measured: see the docs. ``ends`` are these outermost
    values, if the numbers are a sample. None if they are few, or hardly vary.
    """
    if len(values) < _FEW_VALUES:
        return None
    low, high = float(values[BUT]), float(values[~BUT])
    if ends is not None:
        low, high = min(low, ends[0]), max(high, ends[1])
    return limits(middle, (low, high))


def limits(middle: Middle, ends: tuple[float, float]) -> tuple[float, float] | None:
    """Return the limits of far values, given the middle 90% and the ends of all but a few."""
    if not middle[0] < middle[2]:
        return None
    median = middle[1]
    low = max(_FAR * spread(middle, False), 2.0 * (median - ends[0]))
    high = max(_FAR * spread(middle, True), 2.0 * (ends[1] - median))
    found = median - low, median + high
    return found if all(map(math.isfinite, found)) else None
