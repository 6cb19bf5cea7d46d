"""Single texts, whatever stands beside them: understood once for all rows of a column."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, filled
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import SERIAL, plain_texts, without_blanks
from hushtable.data.texts.shapes import FIRST
from hushtable.data.texts.signs import ascii_signs

#: Digits with a leading zero, or more of them than a number holds.
_CODE = r"^[+-]?(?:0\d+|\d{16,})$"
#: What stands beside a number; not the e of its exponent.
_BESIDE = r"[^\d.,+\-\s()eE']|[eE](?:[^\d+\-]|$)|\s[eE]"
FLAGS = frozenset(("H", "HH", "L", "LL", "N", "A"))
#: Texts that are remembered. A batch of more than `FIRST` different ones is understood as a whole.
_MOST = 8 * FIRST

#: What is known of a text: its ``shape``, see `hushtable.data.texts.seen.TextsSeen`, but for eight
#: digits, that are ``compact`` dates if most rows are; the ``unit`` of a number with something
#: ``beside`` it; whether a person who asks for numbers ``lost`` it. Of what is no number, in which
#: ``orders`` it is a date, if in that of ``iso`` 8601, and the ``first`` two numbers of a date with
#: the year last.
FACTS = np.dtype([
    ("shape", "O"), ("unit", "O"), ("number", "?"), ("comma", "?"), ("beside", "?"),
    ("compact", "?"), ("serial", "?"), ("lost", "?"), ("iso", "?"),
    ("orders", "?", (len(dates.ORDERS),)), ("first", "i8", (2,)),
])  # fmt: skip
Facts = NDArray[np.void]


def taken(texts: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Return some texts, by their places."""
    return texts.take(as_column(places.astype(np.int64)))


def different_texts(column: Any) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.int64]]:
    """Return the different texts (k,), folded, in the order in which they come first.

    With the rows (k,) that hold each, and the first of them. Null and blank ones are left out.
    """
    coded = pa.types.is_dictionary(column.type)
    encoded = (column.indices if coded else plain_texts(column)).dictionary_encode()
    codes, texts = filled(encoded.indices, -1), encoded.dictionary
    if coded:
        texts = plain_texts(column.dictionary).take(texts)
    # Codes rise where they come first.
    first = np.searchsorted(np.maximum.accumulate(codes), np.arange(len(texts)))
    rows = np.bincount(codes[codes >= 0] if encoded.null_count else codes, minlength=len(texts))
    folded = without_blanks(texts)
    if folded is texts and not coded:
        return texts, rows, first
    again = folded.dictionary_encode()
    merged = filled(again.indices, -1)
    some = np.flatnonzero(merged >= 0)
    rows = np.bincount(merged[some], rows[some], len(again.dictionary)).astype(np.int64)
    return again.dictionary, rows, first[some][np.unique(merged[some], return_index=True)[1]]


class KnownTexts:
    """Facts of texts, remembered from batch to batch, up to a few thousand.

    Dates add names of months to ``months``, and years of two digits to ``years``.
    """

    def __init__(
        self, months: set[str], years: dict[dates.Order, set[int]], *, as_number: bool
    ) -> None:
        self._months, self._years, self._as_number = months, years, as_number
        self._places: dict[str, int] = {}
        self._facts: Facts = np.empty(0, FACTS)

    def of(self, texts: pa.Array, listed: list[str]) -> Facts:
        """Return the facts (k,) of different texts of a batch; ``listed`` has them as Python's."""
        if len(listed) > FIRST:
            return self._understood(texts, whole=True)
        new = [i for i, text in enumerate(listed) if text not in self._places]
        if len(self._places) + len(new) > _MOST:
            self._places, self._facts, new = {}, self._facts[:0], list(range(len(listed)))
        if new:
            some = texts if len(new) == len(listed) else taken(texts, np.array(new))
            self._facts = np.concatenate([self._facts, self._understood(some, whole=False)])
            for i in new:
                self._places[listed[i]] = len(self._places)
        facts = self._facts[[self._places[text] for text in listed]]
        rest = ~facts["number"]
        # Dates that are all as in ISO 8601 are read by that, to the last way of writing it.
        if rest.any() and facts["iso"][rest].all():
            facts["orders"][rest], facts["shape"][rest] = True, "date"
        return facts

    def _understood(self, texts: pa.Array, *, whole: bool) -> Facts:
        """Return the facts (n,) of texts; what a ``whole`` batch does not ask for is left out."""
        facts = np.zeros(len(texts), FACTS)
        said = ascii_signs(texts)
        with_digit = numbers.mask(pc.match_substring_regex(said, r"\d"))
        point, comma = (_written(said, decimal, with_digit) for decimal in numbers.DECIMALS)
        either = numbers.either(said) & point & comma
        with_comma = numbers.mask(pc.match_substring(said, ","))
        shapes = np.full(len(texts), "other", object)
        shapes[point & ~comma], shapes[comma & ~point] = "point", "comma"
        shapes[point & comma] = "whole"
        shapes[either & ~with_comma], shapes[either & with_comma] = "1.234", "1,234"
        facts["number"], facts["comma"] = point | comma, shapes == "comma"
        facts["beside"] = numbers.mask(pc.match_substring_regex(said, _BESIDE))
        facts["unit"] = _units(said, facts)
        shapes[[unit in FLAGS for unit in facts["unit"]]] = "flag"
        shapes[numbers.mask(pc.match_substring_regex(said, _CODE))] = "code"
        facts["compact"] = numbers.mask(pc.match_substring_regex(said, dates.COMPACT))
        facts["serial"] = numbers.mask(pc.match_substring_regex(said, SERIAL))
        rest = np.flatnonzero(~facts["number"])
        if len(rest):
            others = taken(said, rest)
            shapes[rest], facts["orders"][rest], facts["first"][rest] = self._others(others, whole)
            # Most columns without a number are no numbers at all: nobody asks what they would lose.
            asked = self._as_number or not whole or len(rest) < len(texts)
            facts["lost"][rest] = True
            facts["iso"][rest] = False if whole else dates.as_iso(others)
            some = rest[with_digit[rest]]
            if asked and len(some):
                values = numbers.values(taken(said, some), ".", lenient=True)
                facts["lost"][some] = np.isnan(values)
        facts["shape"] = shapes
        return facts

    def _others(
        self, texts: pa.Array, whole: bool
    ) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.int64]]:
        """Return the shapes, the orders and the first two numbers of texts that are no numbers."""
        shapes = np.full(len(texts), "other", object)
        shapes[numbers.limits(texts)] = "limit"
        shapes[~np.isnan(numbers.angles(texts))] = "angle"
        shapes[~np.isnan(dates.of_day(texts))] = "time"
        if whole and dates.are_iso(texts):
            orders = np.ones((len(texts), len(dates.ORDERS)), np.bool_)
        else:
            found = (dates.seconds_by_shape(texts, order) for order in dates.ORDERS)
            orders = np.stack([~np.isnan(values) for values in found], axis=1)
        a_date = orders.any(axis=1)
        shapes[a_date] = "date"
        if a_date.any():
            some = taken(texts, np.flatnonzero(a_date))
            self._months |= dates.month_words(some)
            for order, years in self._years.items():
                years |= dates.short_years(some, order)
        small = pc.utf8_lower(texts)
        shapes[numbers.mask(pc.or_(pc.equal(small, "true"), pc.equal(small, "false")))] = "truth"
        return shapes, orders, np.stack(dates.day_or_month(texts), axis=1)


def _written(
    said: pa.Array, decimal: numbers.Decimal, with_digit: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which texts (n,) are numbers with this decimal sign: none without a digit.

    Arrow builds a pattern for each call, and that of numbers is large.
    """
    found = np.zeros(len(said), np.bool_)
    some = np.flatnonzero(with_digit)
    if len(some):
        found[some] = numbers.written(taken(said, some), decimal)
    return found


def _units(said: pa.Array, facts: Facts) -> NDArray[Any]:
    """Return the units (n,) beside numbers, "" for none."""
    units = np.full(len(said), "", object)
    beside = facts["beside"] & facts["number"]
    for decimal in numbers.DECIMALS:
        mine = np.flatnonzero(beside & (facts["comma"] == (decimal == ",")))
        if len(mine):
            units[mine] = numbers.units(taken(said, mine), decimal)
    return units
