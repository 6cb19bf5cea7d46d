"""Numbers as people write them: decimal comma, thousands, currencies, units, brackets, limits."""

import re
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import null, scalar, texts_column

Decimal: TypeAlias = Literal[".", ","]
DECIMALS: tuple[Decimal, Decimal] = (".", ",")

#: Signs between groups of three digits, besides a point or comma.
SPACES = " \u00a0\u2009\u202f'\u2019"
#: Blanks that may stand between the parts of a number and its unit.
_BLANK = "[ \t\u00a0\u2009\u202f]"
_MINUS = "\\-\u2212"
_CURRENCIES = (
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HUF", "INR", "JPY", "KRW"),
    *("MXN", "NOK", "NZD", "PLN", "RUB", "SEK", "TRY", "USD", "ZAR"),
    *("US$", "A$", "C$", "R$", "kr", "Fr.", "Rs.", "Rs", "$", "€", "£", "¥", "₹", "₽", "zł"),
)
_CURRENCY = "|".join(map(re.escape, _CURRENCIES))
_UNIT = r"[%‰°]|[A-Za-zµμ°%][A-Za-z0-9µμ°%/²³·^*.\-]{0,14}"
#: A whole number and a letter without a blank: "3A" is a ward, "3 A" and "3.2A" are currents.
_LETTERED = r"^[+-]?\d+[A-Za-z]$"
#: Signs that laboratories put behind a number: it is still one.
_FLAG = rf"{_BLANK}*(?:HH?|LL?|N|A|\*{{1,3}}|\+{{1,3}}|-{{1,3}}|!)"


def _body(decimal: Decimal) -> str:
    point, group = (r"\.", ",") if decimal == "." else (",", r"\.")
    first = r"[1-9]\d{0,2}"  # 0.999 is no thousand
    grouped = rf"{first}(?:{group}\d{{3}})+|{first}(?:[{SPACES}]\d{{3}})+|\d+"
    return rf"(?:(?:{grouped})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"


def _pattern(decimal: Decimal) -> str:
    return (
        rf"^(?P<open>\()?{_BLANK}*(?P<sign>[{_MINUS}+])?{_BLANK}*(?P<before>{_CURRENCY})?{_BLANK}*"
        rf"(?P<inner>[{_MINUS}+])?{_BLANK}*(?P<body>{_body(decimal)}){_BLANK}*"
        rf"(?P<after>{_CURRENCY}|{_UNIT})?{_BLANK}*(?P<close>\))?(?P<trailing>[{_MINUS}])?$"
    )


_PATTERNS = {decimal: _pattern(decimal) for decimal in DECIMALS}
#: One group of three digits behind one sign: 1,234 is a thousand or a little more than one.
_EITHER = r"^\D*[1-9]\d{0,2}[.,]\d{3}\D*$"
_LIMIT = rf"^[<>≤≥]=?\s*[{_MINUS}+]?(?P<number>.+)$"


def plain(texts: pa.Array) -> NDArray[np.float64] | None:
    """Return numbers as computers write them, NaN where null; None if one text is not one."""
    try:
        found = _array(pc.cast(texts, pa.float64()))
    except pa.ArrowInvalid:
        return None
    return None if np.isinf(found).any() else found


def _array(numbers: Any) -> NDArray[np.float64]:
    if numbers.null_count:
        numbers = pc.coalesce(numbers, scalar(float("nan")))
    return np.asarray(np.from_dlpack(numbers), np.float64)


def written(texts: pa.Array, decimal: Decimal) -> NDArray[np.bool_]:
    """Return which texts (n,) are numbers with this decimal sign; none may be null."""
    fits = mask(pc.match_substring_regex(texts, _PATTERNS[decimal]))
    return fits & ~mask(pc.match_substring_regex(texts, _LETTERED))


def either(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts mean another number with the other decimal sign, such as 1,234."""
    return mask(pc.match_substring_regex(texts, _EITHER))


def limits(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts are limits, such as <0.5."""
    return mask(pc.match_substring_regex(texts, _LIMIT))


def mask(found: Any) -> NDArray[np.bool_]:
    """Return Arrow's true and false as NumPy's; null is false."""
    bits = np.from_dlpack(pc.coalesce(found, scalar(False)).cast(pa.uint8()))
    return np.asarray(bits == 1, np.bool_)


def units(texts: pa.Array, decimal: Decimal) -> list[str]:
    """Return the currency or unit beside each number; empty where there is none."""
    parts = pc.extract_regex(texts, _PATTERNS[decimal])
    return [(unit or "").strip() for unit in _beside(parts).to_pylist()]


def _beside(parts: Any) -> Any:
    return pc.binary_join_element_wise(parts.field("before"), parts.field("after"), "")


def values(
    texts: pa.Array, decimal: Decimal, unit: str | None = None, *, lenient: bool = False
) -> NDArray[np.float64]:
    """Return the numbers (n,) that texts say, NaN for null and for what says none.

    A number beside another currency or unit than ``unit`` is none, unless that is None. With
    ``lenient``, a limit such as <0.5 is the limit itself, and a number with a flag behind it, such
    as 5.3 H, is that number.
    """
    texts = pc.utf8_trim_whitespace(texts)
    if decimal == "," and not pc.any(pc.match_substring(texts, ".")).as_py():
        found = plain(pc.replace_substring(texts, ",", "."))
        if found is not None:
            return found
    if lenient:
        texts = pc.replace_substring_regex(texts, r"^[<>≤≥]=?\s*", "")
        flag = rf"^([{_MINUS}+]?{_body(decimal)}){_FLAG}$"
        texts = pc.replace_substring_regex(texts, flag, r"\1")
    if not lenient:
        lettered = pc.match_substring_regex(texts, _LETTERED)
        texts = pc.if_else(lettered, pa.scalar(None, texts.type), texts)
    found = _said(texts, decimal, unit)
    if lenient:  # one who types a comma among points means the same
        other: Decimal = "." if decimal == "," else ","
        found = np.where(np.isnan(found), _said(texts, other, unit), found)
    return found


def _said(texts: pa.Array, decimal: Decimal, unit: str | None) -> NDArray[np.float64]:
    parts = pc.extract_regex(texts, _PATTERNS[decimal])
    group = "," if decimal == "." else r"\."
    body = pc.replace_substring_regex(parts.field("body"), rf"[{group}{SPACES}]", "")
    if decimal == ",":
        body = pc.replace_substring(body, ",", ".")
    matched = parts.is_valid()
    if unit is not None:
        beside = pc.utf8_trim_whitespace(_beside(parts))
        matched = pc.and_(matched, pc.is_in(beside, value_set=texts_column(["", unit])))
    # Arrow's fields of a null struct hold empty texts.
    numbers = _array(pc.cast(pc.if_else(matched, body, null(pa.string())), pa.float64()))
    signs = [parts.field(name) for name in ("open", "sign", "inner", "trailing")]
    minus = pc.match_substring_regex(pc.binary_join_element_wise(*signs, ""), rf"[{_MINUS}(]")
    return np.where(mask(pc.and_(matched, minus)), -numbers, numbers)
