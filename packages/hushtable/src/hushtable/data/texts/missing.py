"""Codes for missing values, as a person names them: texts, and the numbers that these are."""

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
    found = _values(texts_column(texts), decimal)
    return tuple(found[np.isfinite(found)].tolist())


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
        values, some = as_numbers(column, ""), seconds[np.isfinite(seconds)]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        some = np.array(_named(missing, decimal))
        values = filled(pc.cast(column, pa.float64(), safe=False), np.nan)
        if pa.types.is_float32(kind):
            some = some.astype(np.float32).astype(np.float64)
    else:
        return column
    found = np.isin(values, some)
    return pc.if_else(as_column(found), null(kind), column) if found.any() else column


def without_numbers(X: np.ndarray, missing: tuple[str, ...], decimal: Decimal | None) -> np.ndarray:
    """Return a matrix in which the values that ``missing`` names are NaN."""
    some = np.array(_named(missing, decimal))
    if not len(some) or X.dtype.kind not in "fiu":
        return X
    gone = np.isin(X, some.astype(X.dtype) if X.dtype.kind == "f" else some)
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
    likely = pc.match_substring_regex(texts, "|".join(r"\D*".join(some) for some in digits))
    places = np.flatnonzero(numbers.mask(likely))
    if len(places):
        some = texts.take(as_column(places)).dictionary_encode()
        fits = ~numbers.mask(pc.match_substring_regex(some.dictionary, _CODE.pattern))
        for sign in DECIMALS if decimal is None else (decimal,):
            fits &= np.isin(_values(some.dictionary, sign), named_numbers(missing, sign))
        named[places] = fits[np.from_dlpack(some.indices)]
    return named
