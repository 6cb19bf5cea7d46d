"""Replace characters of all scripts by ASCII with the same meaning: digits, blanks, minus."""

import unicodedata
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.columns import null, texts_column

#: Characters that mean a minus, an apostrophe, a double quotation mark, or a separator of numbers.
_OTHERS = {
    "-": "\u2010\u2011\u2012\u2013\u2212\ufe63", "'": "\u02bc\u2019\u2032", '"': "\u2033\u201d",
    ".": "\u066b\u3002", ",": "\u066c\u060c\u3001", "%": "\u066a",
    "x": "\u00d7", "*": "\u00b7\u22c5",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
#: A power of ten at the end of a number, as it is typeset: 1.2×10³, 1.2 * 10^3.
_POWER = r"(\d) ?[x*] ?10(?:\^([+-]?\d+)|([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))$"
#: Between texts that are put together.
_BETWEEN = "\x1e"
#: After this character, there are no more digits, blanks or format marks that people type.
_LAST = 0x20000


@cache
def _table() -> dict[int, str | None]:
    """Return the replacement of each character beyond ASCII."""
    table: dict[int, str | None] = {}
    for number in range(128, _LAST):
        sign = chr(number)
        kind = unicodedata.category(sign)
        if kind == "Nd":
            table[number] = str(unicodedata.decimal(sign))
        elif kind == "Zs":
            table[number] = " "
        elif kind == "Cf":  # byte order marks, directions, joiners
            table[number] = None
        elif 0xFF01 <= number <= 0xFF5E:
            table[number] = chr(number - 0xFEE0)
        elif unicodedata.east_asian_width(sign) == "F" and kind == "Sc":
            table[number] = unicodedata.normalize("NFKC", sign)
    for sign, others in _OTHERS.items():
        table |= dict.fromkeys(map(ord, others), sign)
    return table


def ascii_signs(texts: pa.Array) -> pa.Array:
    """Return texts (n,) with ASCII characters in place of others with the same meaning.

    Letters, currencies and units stay. Powers of ten become an exponent: 1.2e3.
    """
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        powers = pc.any(pc.match_substring(texts, "10^")).as_py()
        return _with_exponents(texts) if powers else texts
    values = texts.to_pylist()
    together = _BETWEEN.join("" if value is None else value for value in values)
    changed = together.translate(_table()).split(_BETWEEN)
    if len(changed) != len(values):  # one of them holds the separating character
        changed = [(value or "").translate(_table()) for value in values]
    column = texts_column(changed)
    return pc.if_else(texts.is_valid(), _with_exponents(column), null(pa.string()))


def _with_exponents(texts: pa.Array) -> pa.Array:
    """Return texts with ``e3`` in place of ``x10^3`` and ``x10³``."""
    fits = pc.match_substring_regex(texts, _POWER)
    if not pc.any(fits).as_py():
        return texts
    written = pc.replace_substring_regex(texts, _POWER, r"\1e\2\3")
    raised = [(text or "").translate(_SUPERSCRIPTS) for text in written.to_pylist()]
    return pc.if_else(fits, texts_column(raised), texts)
