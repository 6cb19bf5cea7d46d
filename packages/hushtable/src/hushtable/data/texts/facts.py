"""Facts about single texts, each text on its own: found once for all rows of a column."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, filled, texts_column
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import SERIAL, plain_texts, without_blanks
from hushtable.data.texts.signs import ascii_signs

#: Digits with a leading zero, or more of them than a number holds.
_CODE = r"^[+-]?(?:0\d+|\d{16,})$"
#: Text next to a number; not the e of its exponent.
_BESIDE = r"[^\d.,+\-\s()eE']|[eE](?:[^\d+\-]|$)|\s[eE]"
FLAGS = frozenset(("H", "HH", "L", "LL", "N", "A"))
#: Number of different texts from which on a batch is read as a whole.
FIRST = 500
#: Number of texts to remember.
_MOST = 8 * FIRST
#: If none of this many texts is a date or a time, the others of a batch are not checked:
#: they are identifiers or notes.
_ENOUGH = 500

#: Facts of a text: its ``shape``, see `hushtable.data.texts.column_facts.ColumnFacts`, except for
#: eight digits, which are ``compact`` dates if most rows are; the ``unit`` of a number with
#: something ``beside`` it; whether it is ``lost`` if a person requests numbers. For other texts, in
#: which ``orders`` it is a date, the ``first`` two numbers of a date with the year last, and the
#: number of ``parts`` of a bare time such as 10:35.
FACTS = np.dtype([
    ("shape", "O"), ("unit", "O"), ("number", "?"), ("comma", "?"), ("beside", "?"),
    ("compact", "?"), ("serial", "?"), ("lost", "?"),
    ("orders", "?", (len(dates.ORDERS),)), ("first", "i8", (2,)), ("parts", "i1"),
])  # fmt: skip
Facts = NDArray[np.void]


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
    column: Any
    listed: list[str]


def different_texts(column: Any) -> DistinctTexts:
    """Find the different texts of a column."""
    coded = pa.types.is_dictionary(column.type)
    if not (coded or pa.types.is_large_string(column.type)):
        column = plain_texts(column)
    encoded = (column.indices if coded else column).dictionary_encode()
    codes, texts = filled(encoded.indices, -1), encoded.dictionary
    texts = plain_texts(column.dictionary).take(texts) if coded else plain_texts(texts)
    if not coded and 2 * len(texts) <= len(column):
        column = _in_few_bytes(encoded.indices, texts)
    first = _first_rows(codes, len(texts))
    rows = np.bincount(codes[codes >= 0] if encoded.null_count else codes, minlength=len(texts))
    folded = without_blanks(texts)
    if folded is not texts or coded:
        again = folded.dictionary_encode()
        merged, texts = filled(again.indices, -1), again.dictionary
        some = np.flatnonzero(merged >= 0)
        rows = np.bincount(merged[some], rows[some], len(texts)).astype(np.int64)
        first = first[some][np.unique(merged[some], return_index=True)[1]]
    return DistinctTexts(texts, rows, first, column, texts.to_pylist())


def _first_rows(codes: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return the first row (n,) of each code; codes are in the order of first appearance."""
    for some in (codes[: 16 * n], codes):  # few different texts are all seen early
        highest = np.maximum.accumulate(some)
        if n and highest[-1] == n - 1:
            break
    return np.searchsorted(highest, np.arange(n))


def _in_few_bytes(places: pa.Array, texts: pa.Array) -> pa.Array:
    """Return texts by their positions, in one or two bytes per row where these suffice."""
    if len(texts) <= 1 << 15:
        places = places.cast(pa.int8() if len(texts) <= 1 << 7 else pa.int16(), safe=False)
    return pa.DictionaryArray.from_arrays(places, texts)


class KnownTexts:
    """Facts of up to a few thousand texts, remembered from batch to batch."""

    def __init__(self, *, as_number: bool) -> None:
        self._as_number = as_number
        self._places: dict[str, int] = {}
        self._facts: Facts = np.empty(0, FACTS)

    def of(self, texts: pa.Array, listed: list[str]) -> Facts:
        """Return the facts (k,) of different texts of a batch; ``listed`` holds them as Python's.

        Facts of up to `FIRST` texts have been learned before: see `learn`.
        """
        if len(listed) > FIRST:
            return _understood(texts, whole=True, as_number=self._as_number)
        return self._facts[[self._places[text] for text in listed]]

    def new(self, listed: list[str]) -> list[int]:
        """Return the positions of the texts that are not known; may forget all others."""
        new = [i for i, text in enumerate(listed) if text not in self._places]
        if len(self._places) + len(new) > _MOST:
            self._places, self._facts, new = {}, self._facts[:0], list(range(len(listed)))
        return new

    def add(self, texts: pa.Array, facts: Facts) -> None:
        """Remember the facts of texts that are new."""
        self._facts = np.concatenate([self._facts, facts])
        for text in texts.to_pylist():
            self._places[text] = len(self._places)


def learn(columns: Iterable[tuple[KnownTexts, pa.Array, list[str]]]) -> None:
    """Learn the new texts among the different texts of several columns, up to `FIRST` of each.

    Several columns are handled together, because Arrow builds its patterns for each call, which
    takes longer than hundreds of texts.
    """
    waiting: list[tuple[KnownTexts, pa.Array]] = []

    def understand() -> None:
        together = pa.concat_arrays([texts for _, texts in waiting])
        facts, start = _understood(together, whole=False, as_number=True), 0
        for known, texts in waiting:
            known.add(texts, facts[start : start + len(texts)])
            start += len(texts)
        waiting.clear()

    for known, texts, listed in columns:
        new = known.new(listed) if len(listed) <= FIRST else []
        if not new:
            continue
        if sum(len(some) for _, some in waiting) + len(new) > FIRST and waiting:
            understand()
        some = texts if len(new) == len(listed) else taken(texts, np.array(new))
        waiting.append((known, some))
    if waiting:
        understand()


def are_other(texts: pa.Array) -> bool:
    """Return whether some texts, from all parts of a batch, are neither numbers nor the like."""
    places = np.arange(0, len(texts), max(1, len(texts) // FIRST))
    facts = _understood(taken(texts, places), whole=True, as_number=False)
    return bool((facts["shape"] == "other").all())


def _understood(texts: pa.Array, *, whole: bool, as_number: bool) -> Facts:
    """Return the facts (n,) of texts, without those that a ``whole`` batch does not need."""
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
        shapes[rest[numbers.limits(others)]] = "limit"
        truth = pc.is_in(pc.utf8_lower(others), value_set=texts_column(["true", "false"]))
        shapes[rest[numbers.mask(truth)]] = "truth"
        some = rest[with_digit[rest]]
        for part in np.split(some, [_ENOUGH]):
            if not len(part) or not _add_points(facts, shapes, part, taken(said, part)):
                break
        facts["parts"][rest] = _parts(others, shapes[rest] == "time")
        # Most columns without a number hold no numbers at all, so no one needs to know what they
        # would lose.
        asked = as_number or not whole or len(rest) < len(texts)
        facts["lost"][rest] = True
        if asked and len(some):
            values = numbers.values(taken(said, some), ".", lenient=True)
            facts["lost"][some] = np.isnan(values)
    facts["shape"] = shapes
    return facts


def _add_points(
    facts: Facts, shapes: NDArray[Any], places: NDArray[np.int64], texts: pa.Array
) -> bool:
    """Note dates and times among the texts at some places; return whether there are any."""
    found = np.full(len(texts), "", object)
    found[~np.isnan(dates.of_day(texts))] = "time"
    orders = np.stack([~np.isnan(dates.seconds(texts, order)) for order in dates.ORDERS], axis=1)
    found[orders.any(axis=1)] = "date"
    facts["orders"][places] = orders
    facts["first"][places] = np.stack(dates.day_or_month(texts), axis=1)
    there = found != ""
    shapes[places[there]] = found[there]
    return bool(there.any())


def _parts(texts: pa.Array, a_time: NDArray[np.bool_]) -> NDArray[np.int8]:
    found = np.zeros(len(texts), np.int8)
    for n, pattern in dates.CLOCKS.items() if a_time.any() else ():
        found[numbers.mask(pc.match_substring_regex(texts, pattern)) & a_time] = n
    return found


def _written(
    said: pa.Array, decimal: numbers.Decimal, with_digit: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which texts (n,) are numbers with this decimal separator; each needs a digit.

    Arrow builds a pattern for each call, and the pattern of numbers is large.
    """
    found = np.zeros(len(said), np.bool_)
    some = np.flatnonzero(with_digit)
    if len(some):
        found[some] = numbers.written(taken(said, some), decimal)
    return found


def _units(said: pa.Array, facts: Facts) -> NDArray[Any]:
    units = np.full(len(said), "", object)
    beside = facts["beside"] & facts["number"]
    for decimal in numbers.DECIMALS:
        mine = np.flatnonzero(beside & (facts["comma"] == (decimal == ",")))
        if len(mine):
            units[mine] = numbers.units(taken(said, mine), decimal)
    return units
