"""Numbers as people write them: decimal comma, thousands, currencies, units, brackets, limits."""

import re
from functools import cache
from typing import Literal, TypeAlias
from unicodedata import category

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, null, scalar, texts_column
from hushtable.data.texts.shapes import ascii_signs
from hushtable.data.texts.words import words

Decimal: TypeAlias = Literal[".", ","]
DECIMALS: tuple[Decimal, Decimal] = (".", ",")

#: Separators between groups of three digits, besides a point or comma.
SPACES = " \u00a0\u2009\u202f'\u2019"
#: Currencies before or after a number, besides their codes and symbols such as $ and €.
_CURRENCIES = tuple(
    "US$ A$ C$ R$ NT$ HK$ kr. kr Fr. Rs. Rs S/ Bs. zł Kč Ft TL \\".split()  # noqa: SIM905
)
#: Units that may come before a number; those made of letters are followed by a blank.
_FIRST_UNITS = "[%‰]|(?:kg|mg|µg|km|cm|mm|ml|cl|°C|°F) "
#: A whole number and a letter without a blank: "3A" is a ward, "3 A" and "3.2A" are currents.
#: And a time of day, or a date, that would otherwise be a number with a unit.
_NO_NUMBER = (
    r"^[+-]?\d+[A-Za-z]$|^\d{1,2} ?[hH] ?\d\d$|^\d{1,2}(?:[.:]\d\d)? ?[Uu]hr$|^\d{2,4} ?[年년]"
)
#: Flags that laboratories put after a number, which remains a number. A single minus is a sign.
_FLAG = r" *(?:HH?|LL?|N|A|\*{1,3}|\+{1,3}|-{2,3}|!)"


def _body(decimal: Decimal) -> str:
    point, group = (r"\.", ",") if decimal == "." else (",", r"\.")
    first = r"[1-9]\d{0,2}"  # 0.999 is not one thousand
    # As in India; Excel's format for it does not part the first three digits.
    lakh = rf"[1-9]\d{{0,2}}(?:{group}\d{{2}})+{group}\d{{3}}"
    grouped = rf"{first}(?:{group}\d{{3}})+|{first}(?:[{SPACES}]\d{{3}})+|{lakh}|\d+"
    return rf"(?:(?:{grouped})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"


#: Three capitals before a number: a currency, or else a code such as NHS 123.
_CODED = r"^[-+( ]*(?P<code>[A-Z]{3}) ?[-+]?[\d.,]"
#: Letters and symbols of all scripts, except blanks, digits, points and characters of numbers.
_UNIT = "[A-Za-z%\u00a1-\U0010ffff][A-Za-z0-9%/^*.\\-\u00a1-\U0010ffff]{0,14}"


@cache
def _pattern(decimal: Decimal) -> str:
    """Return the pattern of a number for Arrow and for Python, which knows no class of symbols."""
    symbols = "".join(sign for sign in map(chr, range(0x20000)) if category(sign) == "Sc")
    named = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
    currency = rf"{named}|[{symbols}]"
    before = rf"[A-Z]{{3}}|{currency}|{_FIRST_UNITS}"
    after = rf"{currency}|{_UNIT}"
    return (
        rf"^(?P<open>\()? *(?P<sign>[-+])? *(?P<before>{before})? *(?P<inner>[-+])? *"
        rf"(?P<body>{_body(decimal)}) *(?P<after>{after})? *(?P<close>\))?(?P<trailing>-)?$"
    )


#: One group of three digits after one separator: 1,234 is above one thousand, or slightly above
#: one.
EITHER = r"^\D*[1-9]\d{0,2}[.,]\d{3}\D*$"
_COMPARED = r"^[<>≤≥]=?\s*"
#: A limit, such as <0.5.
LIMIT = rf"{_COMPARED}.+$"


def plain(texts: pa.Array) -> NDArray[np.float64] | None:
    """Return numbers as computers write them, NaN where null; None if any text is not a number."""
    try:
        values = _array(pc.cast(texts, pa.float64()))
    except pa.ArrowInvalid:
        return None
    return None if np.isinf(values).any() else values


def _array(numbers: pa.Array) -> NDArray[np.float64]:
    if numbers.null_count:
        numbers = pc.coalesce(numbers, scalar(float("nan")))
    return np.asarray(np.from_dlpack(numbers), np.float64)


def match(text: str, decimal: Decimal) -> re.Match[str] | None:
    """Return the parts of a text that is a number with this decimal separator, or None."""
    return None if re.match(_NO_NUMBER, text, re.ASCII) else _match(text, decimal)


def _match(text: str, decimal: Decimal) -> re.Match[str] | None:
    coded = re.match(_CODED, text, re.ASCII)
    if coded and coded["code"] not in words().currencies:
        return None
    return re.match(_pattern(decimal), text, re.ASCII)


def is_lenient(text: str) -> bool:
    """Return whether a text has a value if a person requests numbers: see `values`."""
    text = re.sub(_COMPARED, "", text, flags=re.ASCII)
    text = re.sub(rf"^([-+]?{_body('.')}){_FLAG}$", r"\1", text, flags=re.ASCII)
    return bool(_match(text, ".") or ("." not in text and _match(text, ",")))


def unit(parts: re.Match[str]) -> str:
    """Return the currency or unit next to a number; empty if there is none."""
    return ((parts["before"] or "") + (parts["after"] or "")).strip()


def mask(truths: pa.BooleanArray) -> NDArray[np.bool_]:
    """Return Arrow booleans as NumPy booleans; null is false."""
    bits = np.from_dlpack(pc.coalesce(truths, scalar(False)).cast(pa.uint8()))
    return np.asarray(bits == 1, np.bool_)


def values(
    texts: pa.Array, decimal: Decimal, unit: str | None = None, *, lenient: bool = False
) -> NDArray[np.float64]:
    """Return the numbers (n,) in texts; NaN for null and for texts without a number.

    A number with a different currency or unit than ``unit`` does not count, unless ``unit`` is
    None. With ``lenient``, a limit such as <0.5 is the limit itself, and a number with a flag after
    it, such as 5.3 H, is that number.
    """
    texts = ascii_signs(pc.utf8_trim_whitespace(texts))
    if decimal == "," and not pc.any(pc.match_substring(texts, ".")).as_py():
        result = plain(pc.replace_substring(texts, ",", "."))
        if result is not None:
            return result
    if lenient:
        texts = pc.replace_substring_regex(texts, _COMPARED, "")
        flag = rf"^([-+]?{_body(decimal)}){_FLAG}$"
        texts = pc.replace_substring_regex(texts, flag, r"\1")
    else:
        lettered = pc.match_substring_regex(texts, _NO_NUMBER)
        texts = pc.if_else(lettered, null(texts.type), texts)
    coded = mask(pc.match_substring_regex(texts, _CODED))
    if coded.any():
        codes = pc.extract_regex(texts.filter(as_column(coded)), _CODED).field("code")
        coded[coded] = ~mask(pc.is_in(codes, value_set=texts_column(words().currencies)))
        texts = pc.if_else(as_column(coded), null(texts.type), texts)
    result = _parsed(texts, decimal, unit)
    if lenient:  # anyone who types a comma among points means the same
        other: Decimal = "." if decimal == "," else ","
        # A sign has one meaning in a column: the comma of 1,066,000 is none of 155,6.
        alone = pc.if_else(pc.match_substring(texts, decimal), null(texts.type), texts)
        result = np.where(np.isnan(result), _parsed(alone, other, unit), result)
    return result


def _parsed(texts: pa.Array, decimal: Decimal, unit: str | None) -> NDArray[np.float64]:
    parts = pc.extract_regex(texts, _pattern(decimal))
    group = "," if decimal == "." else r"\."
    body = pc.replace_substring_regex(parts.field("body"), rf"[{group}{SPACES}]", "")
    if decimal == ",":
        body = pc.replace_substring(body, ",", ".")
    matched = parts.is_valid()
    around = [parts.field(name) for name in ("before", "after")]
    beside = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*around, scalar("")))
    if unit is not None:
        matched = pc.and_(matched, pc.is_in(beside, value_set=texts_column(["", unit])))
    # In Arrow, the fields of a null struct hold empty texts.
    numbers = _array(pc.cast(pc.if_else(matched, body, null(pa.string())), pa.float64()))
    signs = [parts.field(name) for name in ("open", "sign", "inner", "trailing")]
    minus = pc.match_substring_regex(pc.binary_join_element_wise(*signs, scalar("")), r"[-(]")
    return np.where(mask(pc.and_(matched, minus)), -numbers, numbers)
