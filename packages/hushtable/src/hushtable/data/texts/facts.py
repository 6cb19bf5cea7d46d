"""Facts about single texts, each text on its own: found once for all rows of a column."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, filled, texts_column
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import SERIAL, plain_texts, without_blanks
from hushtable.data.texts.shapes import shapes_of
from hushtable.data.texts.signs import ascii_signs

#: Digits with a leading zero, or more of them than a number holds.
_CODE = re.compile(r"[+-]?(?:0\d+|\d{16,})")
#: Text next to a number; not the e of its exponent.
_BESIDE = re.compile(r"[^\d.,+\-\s()eE']|[eE](?:[^\d+\-]|$)|\s[eE]")
FLAGS = frozenset(("H", "HH", "L", "LL", "N", "A"))
#: If none of this many texts is a date or a time, the others of a batch are not checked:
#: they are identifiers or notes.
_ENOUGH = 500


def taken(texts: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Return some texts, by their positions."""
    return texts.take(as_column(places.astype(np.int64)))


class DistinctTexts(NamedTuple):
    """The different texts (k,) of a column, folded, in the order in which they come first.

    With the number of rows (k,) that hold each, and the first of them. Null and blank texts are
    left out.
    """

    texts: pa.Array
    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    #: The column, not folded; dictionary-encoded if its texts repeat.
    column: pa.Array


def different_texts(column: pa.Array) -> DistinctTexts:
    """Find the different texts of a column."""
    coded = pa.types.is_dictionary(column.type)
    if not (coded or pa.types.is_large_string(column.type)):
        column = plain_texts(column)
    encoded = (column.indices if coded else column).dictionary_encode()
    codes, texts = filled(encoded.indices, -1), encoded.dictionary
    texts = plain_texts(column.dictionary).take(texts) if coded else plain_texts(texts)
    if not coded and 2 * len(texts) <= len(column):
        places = encoded.indices
        if len(texts) <= 1 << 15:
            # One or two bytes per row suffice.
            places = places.cast(pa.int8() if len(texts) <= 1 << 7 else pa.int16(), safe=False)
        column = pa.DictionaryArray.from_arrays(places, texts)
    n = len(texts)
    for some in (codes[: 16 * n], codes):  # few different texts are all seen early
        highest = np.maximum.accumulate(some)
        if n and highest[-1] == n - 1:
            break
    first = np.searchsorted(highest, np.arange(n))  # codes are in the order of appearance
    rows = np.bincount(codes[codes >= 0] if encoded.null_count else codes, minlength=len(texts))
    folded = without_blanks(texts)
    if folded is not texts or coded:
        again = folded.dictionary_encode()
        merged, texts = filled(again.indices, -1), again.dictionary
        some = np.flatnonzero(merged >= 0)
        rows = np.bincount(merged[some], rows[some], len(texts)).astype(np.int64)
        first = first[some][np.unique(merged[some], return_index=True)[1]]
    return DistinctTexts(texts, rows, first, column)


class _ShapeFacts(NamedTuple):
    """Facts that all texts of a shape share."""

    kind: str = "other"
    number: bool = False
    #: Whether something is beside the number, and what.
    beside: bool = False
    unit: str = ""
    #: Whether it has no value even if a person requests numbers.
    lost: bool = True
    #: Number of parts of a bare time such as 10:35.
    parts: int = 0


@lru_cache(maxsize=1 << 14)
def _of_shape(shape: str) -> _ShapeFacts:
    if "9" not in shape and "0" not in shape:
        return _ShapeFacts("limit" if numbers.is_limit(shape) else "other")
    point, comma = (numbers.match(shape, decimal) for decimal in numbers.DECIMALS)
    if found := point or comma:
        kind = "whole"
        if point and comma and numbers.is_either(shape):
            kind = "1,234" if "," in shape else "1.234"
        elif not (point and comma):
            kind = "point" if point else "comma"
        unit = numbers.unit(found)
        if _CODE.fullmatch(shape):
            kind = "code"
        elif unit in FLAGS:
            kind = "flag"
        return _ShapeFacts(kind, True, _BESIDE.search(shape) is not None, unit, lost=False)
    kind = "code" if _CODE.fullmatch(shape) else "limit" if numbers.is_limit(shape) else "other"
    parts = next((n for n, clock in dates.CLOCKS.items() if clock.fullmatch(shape)), 0)
    return _ShapeFacts(kind, lost=not numbers.is_lenient(shape), parts=parts)


@dataclass(frozen=True)
class TextFacts:
    """Facts about texts (k,).

    ``kind`` is a key of `hushtable.data.texts.column_facts.ColumnFacts.shapes`, except for eight
    digits, which are ``compact`` dates if most rows are.
    """

    kind: NDArray[np.object_]
    #: Numbers, and what is ``beside`` them, with its name.
    number: NDArray[np.bool_]
    beside: NDArray[np.bool_]
    unit: NDArray[np.object_]
    #: Texts without a value even if a person requests numbers.
    lost: NDArray[np.bool_]
    #: Number of parts of a bare time such as 10:35.
    parts: NDArray[np.int64]
    compact: NDArray[np.bool_]
    serial: NDArray[np.bool_]
    #: The orders (k, 3) in which a text is a date, and the first two numbers (k, 2) of a date with
    #: the year last.
    orders: NDArray[np.bool_]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, texts: pa.Array) -> "TextFacts":
        """Return the facts about texts without null."""
        said = ascii_signs(texts)
        shapes, codes = shapes_of(said)
        table = [_of_shape(shape) for shape in shapes]

        def fact(name: str, dtype: type) -> np.ndarray:
            return np.array([getattr(one, name) for one in table], dtype)[codes]

        facts = cls(
            kind=fact("kind", object),
            number=fact("number", bool),
            beside=fact("beside", bool),
            unit=fact("unit", object),
            lost=fact("lost", bool),
            parts=fact("parts", int),
            compact=numbers.mask(pc.match_substring_regex(said, dates.COMPACT)),
            serial=numbers.mask(pc.match_substring_regex(said, SERIAL)),
            orders=np.zeros((len(texts), len(dates.ORDERS)), np.bool_),
            first=np.zeros((len(texts), 2), np.int64),
        )
        numbered = [re.search(r"\d", one.unit) is not None for one in table]
        for i in np.flatnonzero(np.array(numbered, bool)[codes]):
            # Such as m2, which is m9 in the shape.
            decimal: numbers.Decimal = "," if facts.kind[i] == "comma" else "."
            found = numbers.match(said[i].as_py(), decimal)
            facts.unit[i] = numbers.unit(found) if found else ""
        rest = np.flatnonzero(~facts.number)
        truth = pc.is_in(
            pc.utf8_lower(taken(said, rest)), value_set=texts_column(["true", "false"])
        )
        facts.kind[rest[numbers.mask(truth)]] = "truth"
        with_digit = numbers.mask(pc.match_substring_regex(taken(said, rest), r"\d"))
        for part in np.split(rest[with_digit], [_ENOUGH]):
            if not len(part) or not facts._add_points(part, taken(said, part)):
                break
        return facts

    def _add_points(self, places: NDArray[np.int64], texts: pa.Array) -> bool:
        """Note dates and times among the texts at some places; return whether there are any."""
        if not dates.have_shapes(texts):
            return False
        self.kind[places[~np.isnan(dates.of_day(texts))]] = "time"
        orders = [~np.isnan(dates.seconds(texts, order)) for order in dates.ORDERS]
        self.orders[places] = np.stack(orders, axis=1)
        self.first[places] = np.stack(dates.day_or_month(texts), axis=1)
        self.kind[places[self.orders[places].any(axis=1)]] = "date"
        return bool(np.isin(self.kind[places], np.array(["time", "date"], object)).any())


def are_other(texts: pa.Array) -> bool:
    """Return whether some texts, from all parts of a batch, are neither numbers nor the like."""
    places = np.arange(0, len(texts), max(1, len(texts) // _ENOUGH))
    return bool((TextFacts.of(taken(texts, places)).kind == "other").all())
