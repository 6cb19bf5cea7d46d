"""Codes and words for missing values, as programs write them."""

import numpy as np
from numpy.typing import NDArray

#: Numbers that programs and codebooks use for a missing value.
CODES = np.array(sorted({
    *(
        sign * float(digit * length)
        for digit in "789"
        for length in range(2, 8)
        for sign in (1, -1)
    ),
    -9.0, -8.0, -7.0, -99.9,
}))  # fmt: skip
#: Days that programs use for a missing day or an open end, in seconds since 1970.
DAYS = (
    np.array([
        "0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1970-01-01",
        "2099-12-31", "2999-12-31", "9999-01-01", "9999-12-31",
    ], "datetime64[s]").astype(np.int64).astype(np.float64)
)  # fmt: skip
#: Texts that mean a missing value in CSV files, as Arrow reads them.
WORDS = frozenset(("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"))
_CODES, _CODES_OR_ZERO = frozenset(CODES.tolist()), np.append(CODES, 0.0)
#: Number of codes to search for at one end.
_MOST = 3


def codes_in(values: NDArray[np.floating], usual: NDArray[np.float64]) -> dict[float, int]:
    """Return the rows of each ``usual`` code, or of 0, that is isolated among numbers (n,)."""
    if usual is CODES:
        usual = _CODES_OR_ZERO
    ends = values[np.isfinite(values)]
    if not len(ends) or not np.isin([ends.min(), ends.max()], usual).any():
        return {}
    found = {}
    while more := [code for code in apart(values, usual) if code in usual]:
        for code in more:
            found[code] = int((values == code).sum())
        values = values[~np.isin(values, more)]
    return dict(sorted(found.items()))


def apart(values: NDArray[np.floating], usual: NDArray[np.float64]) -> list[float]:
    """Return the lowest and highest values, if far from the middle 99% of the others.

    Each is in 1% of the rows or more, and a ``usual`` one, which programs use for missing values,
    or 0. Far means a tenth of the width of that middle, or twice for 0; values below 0 are far if
    no other value is. Up to three such values at an end count together. At least half of all values
    must be beyond them, with at least ten different ones: otherwise they are a scale, not
    measurements.
    """
    values = np.sort(values[np.isfinite(values)])
    found: list[float] = []
    for sign in (1.0, -1.0):
        ordered = values if sign > 0 else -values[::-1]
        different, counts = np.unique(ordered, return_counts=True)
        different, counts = different[:_MOST], counts[:_MOST]
        light = np.flatnonzero(counts < max(2.0, 0.01 * len(ordered)))
        heavy = different[: light[0]] if len(light) else different
        for k in range(len(heavy), 0, -1):
            rest = ordered[np.searchsorted(ordered, heavy[k - 1], "right") :]
            if 2 * len(rest) < len(ordered) or len(np.unique(rest)) < 10:
                continue
            zero, days = k == 1 and heavy[0] == 0.0, usual is DAYS
            known = not zero and np.isin(sign * heavy[:k], usual).all()
            if not known and (days or not zero):
                continue
            negative = known and not days and sign > 0 and heavy[k - 1] < 0.0 <= rest[0]
            with np.errstate(over="ignore", invalid="ignore"):
                low, high = np.quantile(rest, [0.005, 0.995])
                is_far = low - heavy[k - 1] > (0.1 if known else 2.0) * (high - low)
            if negative or is_far:
                found += (sign * heavy[:k] + 0.0).tolist()
                break
    return found


def without_codes(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the range of numbers without those that may be codes for missing values."""
    inner = values[np.isfinite(values) & ~np.isin(values, CODES)]
    return float(inner.min(initial=np.inf)), float(inner.max(initial=-np.inf))


def lone_code(low: float, high: float, inner: tuple[float, float]) -> float | None:
    """Return the end of a range that may be a code for a missing value, far from the others."""
    low, high = float(low), float(high)  # whose differences overflow without a warning
    spread = inner[1] - inner[0]
    for end, gap in ((low, inner[0] - low), (high, high - inner[1])):
        if end in _CODES and gap > max(spread, 0.0) > 0.0:
            return end
    return None


def code_text(code: float, form: str) -> str:
    """Return a value as an option names it: a number with all digits, a day in ISO 8601."""
    return str(np.datetime64(int(code), "s"))[:10] if form == "date" else f"{code:.10g}"
