"""Characters and shapes of texts: ASCII for all scripts, digits as 9, and forms that are not read.

Texts of one shape have their parts in the same places. A shape is parsed once, in Python; NumPy
then reads the numbers of all its texts.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, null, scalar, text_bytes, texts_column
from hushtable.language import N_

# --- characters -----------------------------------------------------------------------------------

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


# --- shapes ---------------------------------------------------------------------------------------

#: Places of a number in a text, in characters.
Span = tuple[int, int]
#: Longer texts are notes, not values.
LONGEST = 60
_ZERO, _NINE = b"09"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Shaped:
    """Texts (n,) of one shape."""

    shape: str
    #: UTF-8, and where each text begins in it.
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, span: Span) -> NDArray[np.float64]:
        """Return the numbers (n,) at one place: digits, with a point or comma between two."""
        start = len(self.shape[: span[0]].encode())  # other characters are the same in all texts
        total, places = np.zeros(len(self), np.int64), 0
        for k, sign in enumerate(self.shape[slice(*span)]):
            if sign == "9":
                total = 10 * total + self.data[self.starts + (start + k)] - _ZERO
                places += places > 0
            else:
                places = 1
        return total / 10.0 ** max(0, places - 1)


def by_shape(
    texts: pa.Array, understood: Callable[[str], _T | None]
) -> Iterator[tuple[_T, NDArray[np.int64], Shaped]]:
    """Yield the parsed shapes of texts (n,), with the rows and texts of each.

    ``understood`` takes a shape in small letters and ASCII; None means nothing. Null has no shape.
    """
    texts = ascii_signs(pc.utf8_trim_whitespace(texts))
    fits = pc.and_(
        pc.match_substring_regex(texts, r"\d"),
        pc.less_equal(pc.utf8_length(texts), scalar(LONGEST)),
    )
    places = np.asarray(np.from_dlpack(pc.indices_nonzero(fits)), np.int64)
    if not len(places):
        return
    texts = pc.utf8_lower(texts if len(places) == len(texts) else texts.take(as_column(places)))
    ends, data = text_bytes(texts)
    shapes, codes = _encoded(ends, np.where(_is_digit(data), np.uint8(_NINE), data))
    order = np.argsort(codes, kind="stable")
    limits = np.searchsorted(codes[order], np.arange(len(shapes) + 1))
    for k, shape in enumerate(shapes):
        parsed = understood(shape)
        if parsed is not None:
            mine = order[limits[k] : limits[k + 1]]
            yield parsed, places[mine], Shaped(shape, data, ends[mine].astype(np.int64))


def shapes_of(texts: pa.Array) -> tuple[list[str], NDArray[np.int32]]:
    """Return the different shapes (k,) of texts (n,), and the number (n,) of each text's shape.

    Here, letters keep their case, and a zero that begins a number stays a zero.
    """
    ends, data = text_bytes(texts)
    digit = _is_digit(data)
    after_digit = np.append(False, digit[:-1])
    after_digit[ends[ends < len(data)]] = False
    zero = (data == _ZERO) & ~after_digit
    return _encoded(ends, np.where(digit & ~zero, np.uint8(_NINE), data))


def _is_digit(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (data >= _ZERO) & (data <= _NINE)


def _encoded(
    ends: NDArray[np.int32], masked: NDArray[np.uint8]
) -> tuple[list[str], NDArray[np.int32]]:
    buffers = pa.py_buffer(ends), pa.py_buffer(masked)
    coded = pa.StringArray.from_buffers(len(ends) - 1, *buffers).dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(np.from_dlpack(coded.indices), np.int32)


# --- forms that are not read, such as quarters ----------------------------------------------------

#: Shapes of texts to check, as `hushtable.data.texts.column_facts.ColumnFacts` calls them.
FOREIGN_SHAPES = ("other", "date", "flag", "whole", "point", "comma", "1.234", "1,234")
#: Parts of a duration such as 2h 15min, and of one in words such as 2 hours 15 minutes.
_SHORT = r"\d+(?:[.,]\d+)?\s*(?:[hmsdjw]|hr?s?|std|mins?|se[ck]s?)\.?"
_WORDY = r"\d+(?:[.,]\d+)?\s[^\W\d_]+[.,]?"


class ForeignForm(NamedTuple):
    """A form of values that is not read."""

    name: str
    pattern: str
    #: What to do with the values.
    way: str

    def fits(self, text: str) -> bool:
        """Return whether a text has this form."""
        return re.search(self.pattern, text.strip()) is not None


_FORMS = (
    ForeignForm(
        N_("quarters"),
        r"(?i)^(?:\d{4}[-/ ]?Q[1-4]|Q[1-4][-/ ]?\d{4})$",
        N_("write the first day of each, such as 2026-04-01"),
    ),
    ForeignForm(
        N_("weeks of a year"),
        r"(?i)^\d{4}-?W\d{2}(?:-?\d)?$",
        N_("write the first day of each, such as 2026-05-18"),
    ),
    ForeignForm(
        N_("years of an era"),
        r"^(?:(?:令和|平成|昭和|大正|明治|民國|民国)\s*(?:\d|元)|[RHS]\d{1,2}[./-]\d{1,2}[./-]\d)",
        N_("write four-digit years, such as 1978-02-11"),
    ),
    ForeignForm(
        N_("durations with words for units"),
        r"^-?P(?=\d|T\d)(?:\d+[YMWD])*(?:T(?:\d+(?:[.,]\d+)?[HMS])+)?$"
        rf"|^-?{_SHORT}[\s,]*{_SHORT}|^-?{_WORDY}\s(?:[^\W\d_]+\s)?{_WORDY}",
        N_("convert them to numbers of one unit, or to 2:15:00"),
    ),
    ForeignForm(
        N_("angles"),
        r"\d\s*[°º]\s*(?:\d|[NSEWO]$)|^\d+(?:[.,]\d+)? ?[NSEWO]$",
        N_("convert them to degrees, south and west below 0"),
    ),
    ForeignForm(
        N_("numbers with an uncertainty"),
        r"\d\s*(?:±|\+/-|\+-)\s*\d",
        N_("write the uncertainty in a column of its own"),
    ),
    ForeignForm(
        N_("words for powers of ten"),
        r"\d\s?(?:[kKMBG]|MM|[mb]n|Tsd|Mio|Mrd|m[ln][nd]|mil|t[yi]s|тыс|мл[нр]д?|lakh|lac|crore|"
        r"[万萬만億亿억])\.?(?:\s?(?:[A-Z]{3}|[^\w\s]))?$",
        N_("write the numbers in full, such as 1200000"),
    ),
)


def foreign_form(texts: Mapping[str, int]) -> ForeignForm | None:
    """Return the form of most texts, given the number of rows with each; None if it is read."""
    for form in _FORMS:
        rows = sum(n for text, n in texts.items() if form.fits(text))
        if rows and 2 * rows >= sum(texts.values()):
            return form
    return None
