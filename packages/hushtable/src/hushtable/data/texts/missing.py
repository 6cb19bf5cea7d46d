"""Codes for missing values: as a person names them, in texts, and as programs write them."""

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import (
    as_column,
    as_numbers,
    decoded,
    filled,
    is_text,
    null,
    texts_column,
)
from hushtable.data.labels import fold, fold_texts
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.numbers import DECIMALS, Decimal
from hushtable.data.texts.shapes import ascii_signs

# --- codes that a person names --------------------------------------------------------------------

#: Digits with a leading zero are a code, not a number: 007 is not 7.
_CODE = re.compile(r"^[^\d.,]*0\d")


@cache
def named_numbers(missing: tuple[str, ...], decimal: Decimal) -> tuple[float, ...]:
    """Return the numbers that texts name under this decimal separator.

    A text that is a number only with the other separator, such as ``99.9`` in a column with decimal
    commas, names that number.
    """
    texts = [text.strip() for text in missing if not _CODE.match(text.strip())]
    if not texts:
        return ()
    codes = _values(texts_column(texts), decimal)
    return tuple(codes[np.isfinite(codes)].tolist())


def _named(missing: tuple[str, ...], decimal: Decimal | None) -> list[float]:
    infinities = [float(text) for text in map(str.strip, missing) if text in ("inf", "-inf")]
    return [*named_numbers(missing, decimal or "."), *infinities]


def without_named(column: pa.Array, missing: tuple[str, ...], decimal: Decimal | None) -> pa.Array:
    """Return a column in which the values that ``missing`` names are null.

    A text is named if it is the same, or a bare number of the same value under the column's
    ``decimal`` separator. If that is unknown, the number is named only if it has the same value
    under each separator that makes the text a number: 999,00 is 999, but 999.000 may be more.
    """
    if not missing:
        return column
    column = decoded(column)
    kind = column.type
    if is_text(kind):
        column = column if kind == pa.string() else pc.cast(column, pa.string())
        trimmed = fold_texts(column)
        gone = pc.is_in(trimmed, value_set=texts_column([*map(fold, missing)]))
        if (others := _named_texts(ascii_signs(trimmed), missing, decimal)).any():
            gone = pc.or_(gone, as_column(others))
        return pc.if_else(gone, null(column.type), column)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        seconds = dates.seconds(texts_column(missing), "ymd")
        values, codes = as_numbers(column, ""), seconds[np.isfinite(seconds)]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        codes = np.array(_named(missing, decimal))
        values = filled(pc.cast(column, pa.float64(), safe=False), np.nan)
        if pa.types.is_float32(kind):
            codes = codes.astype(np.float32).astype(np.float64)
    else:
        return column
    named = np.isin(values, codes)
    return pc.if_else(as_column(named), null(kind), column) if named.any() else column


def without_numbers(X: np.ndarray, missing: tuple[str, ...], decimal: Decimal | None) -> np.ndarray:
    """Return a matrix in which the values that ``missing`` names are NaN."""
    codes = np.array(_named(missing, decimal))
    if not len(codes) or X.dtype.kind not in "fiu":
        return X
    gone = np.isin(X, codes.astype(X.dtype) if X.dtype.kind == "f" else codes)
    if not gone.any():
        return X
    X = X.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    X[gone] = np.nan
    return X


def _values(texts: pa.Array, decimal: Decimal) -> NDArray[np.float64]:
    """Return the numbers (n,) in bare texts: with this separator, or else with the other."""
    first, second = (
        numbers.values(texts, sign, "") for sign in sorted(DECIMALS, key=decimal.__ne__)
    )
    return np.where(np.isnan(first), second, first)


def _named_texts(
    texts: pa.Array, missing: tuple[str, ...], decimal: Decimal | None
) -> NDArray[np.bool_]:
    codes = {value for sign in DECIMALS for value in named_numbers(missing, sign)}
    digits = {
        re.sub(r"\D", "", np.format_float_positional(value)).strip("0") or "0" for value in codes
    }
    named = np.zeros(len(texts), np.bool_)
    if not digits:
        return named
    # Whatever the separators are, the digits are the same: only these texts are parsed, once each.
    likely = pc.match_substring_regex(texts, "|".join(r"\D*".join(part) for part in digits))
    places = np.flatnonzero(numbers.mask(likely))
    if len(places):
        part = texts.take(as_column(places)).dictionary_encode()
        fits = ~numbers.mask(pc.match_substring_regex(part.dictionary, _CODE.pattern))
        for sign in DECIMALS if decimal is None else (decimal,):
            fits &= np.isin(_values(part.dictionary, sign), named_numbers(missing, sign))
        named[places] = fits[np.from_dlpack(part.indices)]
    return named


# --- codes of programs ----------------------------------------------------------------------------

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
_CODES, _CODES_OR_ZERO = frozenset(CODES.tolist()), np.append(CODES, 0.0)


def codes_in(values: NDArray[np.floating], usual: NDArray[np.float64]) -> dict[float, int]:
    """Return the rows of each ``usual`` code, or of 0, that is far from the other numbers (n,).

    A number is far if no others are as far from one another. One in 1% of the rows or more is far
    at a tenth of the width of the middle 99% of the others, or twice that width for 0, and below 0
    if no other value is. At least half of all values must then be others, with at least ten
    different ones: otherwise they are a scale, not measurements.
    """
    values = values[np.isfinite(values)]
    known = _CODES_OR_ZERO if usual is CODES else usual
    if not len(values) or not np.isin([values.min(), values.max()], known).any():
        return {}
    different, rows = np.unique(values.astype(np.float64), return_counts=True)
    is_code, is_other = np.isin(different, known), ~np.isin(different, usual)
    others = np.repeat(different[is_other], rows[is_other])
    counted = zip(different[is_code].tolist(), rows[is_code].tolist(), strict=True)
    return {
        code + 0.0: n
        for code, n in counted
        if _is_far(code, others[others != code], n, len(values), days=usual is DAYS)
    }


def _is_far(code: float, others: NDArray[np.float64], n: int, n_all: int, *, days: bool) -> bool:
    if not len(others):
        return False
    least, most = float(others.min()), float(others.max())
    if max(least - code, code - most) > most - least > 0.0 and code and not days:
        return True
    few = n < max(2.0, 0.01 * n_all)
    if few or 2 * len(others) < n_all or len(np.unique(others)) < 10:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.quantile(others, [0.005, 0.995]).tolist()
    gap = max(low - code, code - high)
    return gap > (0.1 if code else 2.0) * (high - low) or (code < 0.0 <= least and not days)


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
