"""Values that stand for a missing one: exactly those that a person names, however written."""

import re
from decimal import Decimal as Exact
from functools import cache, lru_cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, as_numbers, filled, is_text, null, texts_column
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.numbers import DECIMALS, SPACES, Decimal

#: Digits with a leading zero are a code, not a number: 007 is not 7.
_CODE = re.compile(r"[^\d.,]*0\d")
_SEPARATORS, _SIGNS = f"[.,{SPACES}]", r"[+\-\x{2212}() \x{a0}]*"


@cache
def named(missing: tuple[str, ...], decimal: Decimal) -> tuple[float, ...]:
    """Return the numbers that texts name where this is the decimal sign.

    A text that is a number with the other sign only, such as ``99.9`` in a column with decimal
    commas, names that number.
    """
    texts = [text.strip() for text in missing if not _CODE.match(text.strip())]
    if not texts:
        return ()
    found = _values(texts_column(texts), decimal)
    return tuple(found[np.isfinite(found)].tolist())


def without(column: Any, missing: tuple[str, ...], decimal: Decimal | None) -> Any:
    """Return a column in which what ``missing`` names is null.

    A text is named if it is the same, or a bare number of the same value under the column's
    ``decimal`` sign. Where that sign is unknown, the number is named only if each sign with which
    the text is a number says so: 999,00 is 999, and 999.000 may be more.
    """
    if not missing:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if is_text(kind):
        column = column if kind == pa.string() else pc.cast(column, pa.string())
        trimmed = pc.utf8_trim_whitespace(column)
        texts = [text.strip() for text in missing]
        texts += _writings(trimmed, missing, decimal)
        gone = pc.is_in(trimmed, value_set=texts_column(texts))
        return pc.if_else(gone, null(column.type), column)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        seconds = dates.seconds(texts_column(missing), "ymd")
        values, some = as_numbers(column, ""), seconds[np.isfinite(seconds)]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        some = np.array(named(missing, decimal or "."))
        values = filled(pc.cast(column, pa.float64(), safe=False), np.nan)
        if pa.types.is_float32(kind):
            some = some.astype(np.float32).astype(np.float64)
    else:
        return column
    found = np.isin(values, some)
    return pc.if_else(as_column(found), null(kind), column) if found.any() else column


def without_numbers(
    X: NDArray[Any], missing: tuple[str, ...], decimal: Decimal | None
) -> NDArray[Any]:
    """Return a matrix in which what ``missing`` names is NaN."""
    some = np.array(named(missing, decimal or "."))
    if not len(some) or X.dtype.kind not in "fiu":
        return X
    gone = np.isin(X, some.astype(X.dtype) if X.dtype.kind == "f" else some)
    if not gone.any():
        return X
    X = X.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    X[gone] = np.nan
    return X


def _values(texts: pa.Array, decimal: Decimal) -> NDArray[np.float64]:
    """Return the numbers (n,) that bare texts say: with this sign, or else with the other."""
    first, second = (
        numbers.values(texts, sign, "") for sign in sorted(DECIMALS, key=decimal.__ne__)
    )
    return np.where(np.isnan(first), second, first)


def _writings(texts: pa.Array, missing: tuple[str, ...], decimal: Decimal | None) -> list[str]:
    """Return those of the texts that are another writing of a number that is named."""
    pattern, begin = _candidates(missing)
    if not begin:
        return []
    # Most texts are told by their first sign, in half of the time that the pattern takes.
    likely = reduce(pc.or_, (pc.starts_with(texts, sign) for sign in begin))
    if "-" in begin:  # as some programs write a negative number: 99-
        likely = pc.or_(likely, pc.ends_with(texts, "-"))
    texts = texts.filter(likely)
    found: list[str] = pc.unique(texts.filter(pc.match_substring_regex(texts, pattern))).to_pylist()
    return [text for text in found if _is_named(text, missing, decimal)]


@lru_cache(maxsize=1 << 12)  # the same few texts in each batch
def _is_named(text: str, missing: tuple[str, ...], decimal: Decimal | None) -> bool:
    """Return whether a text is a number that is named, under each sign that the column may have."""
    signs = DECIMALS if decimal is None else (decimal,)
    values = [(float(_values(texts_column([text]), sign)[0]), sign) for sign in signs]
    return not _CODE.match(text) and all(value in named(missing, sign) for value, sign in values)


@cache
def _candidates(missing: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return a pattern that writings of the named numbers match, and how they begin."""
    every = {value for sign in DECIMALS for value in named(missing, sign)}
    digits = "|".join(sorted(f"{_SEPARATORS}?".join(_digits(value)) for value in every))
    zeros = f"(?:0|{_SEPARATORS})*"
    pattern = f"^{_SIGNS}{zeros}(?:{digits}){zeros}(?:[eE][+-]?\\d+)?{_SIGNS}$"
    return pattern, tuple(sorted({sign for value in every for sign in _begins(value)}))


def _begins(value: float) -> str:
    """Return the signs of which one is the first of a number's writing."""
    if value == 0.0:
        return "0.,+-"
    if value < 0.0:
        return "-\u2212("
    return "+" + (_digits(value)[0] if value >= 1.0 else "0.,")


def _digits(value: float) -> str:
    """Return the digits of a number without zeros at either end."""
    return "".join(map(str, Exact(repr(value)).as_tuple().digits)).strip("0") or "0"
