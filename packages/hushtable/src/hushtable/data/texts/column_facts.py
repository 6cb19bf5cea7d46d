"""Facts about texts, and about a column from one pass over its rows: how it is read follows.

Facts about a single text are found once for all rows that hold it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, filled, nan_as_null, texts_column
from hushtable.data.schema import MAX_CATEGORIES
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.missing import CODES, DAYS, code_text, codes_in
from hushtable.data.texts.reading import SERIAL, SERIALS, Form, plain_texts, without_blanks
from hushtable.data.texts.shapes import ascii_signs, shapes_of

# --- single texts ---------------------------------------------------------------------------------

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
    # Codes are in the order of appearance.
    first = np.searchsorted(np.maximum.accumulate(codes), np.arange(n))
    rows = np.bincount(codes[codes >= 0] if encoded.null_count else codes, minlength=len(texts))
    folded = without_blanks(texts)
    if folded is not texts or coded:
        again = folded.dictionary_encode()
        merged, texts = filled(again.indices, -1), again.dictionary
        filled_in = np.flatnonzero(merged >= 0)
        rows = np.bincount(merged[filled_in], rows[filled_in], len(texts)).astype(np.int64)
        first = first[filled_in][np.unique(merged[filled_in], return_index=True)[1]]
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
        return _ShapeFacts("limit" if re.match(numbers.LIMIT, shape) else "other")
    point, comma = (numbers.match(shape, decimal) for decimal in numbers.DECIMALS)
    if matched := point or comma:
        kind = "whole"
        if point and comma and re.match(numbers.EITHER, shape):
            kind = "1,234" if "," in shape else "1.234"
        elif not (point and comma):
            kind = "point" if point else "comma"
        unit = numbers.unit(matched)
        if _CODE.fullmatch(shape):
            kind = "code"
        elif unit in FLAGS:
            kind = "flag"
        return _ShapeFacts(kind, True, _BESIDE.search(shape) is not None, unit, lost=False)
    limit = "limit" if re.match(numbers.LIMIT, shape) else "other"
    kind = "code" if _CODE.fullmatch(shape) else limit
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
    #: The orders (k, 3) in which a text is a date, and whether day and month may be exchanged.
    orders: NDArray[np.bool_]
    either: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: pa.Array) -> "TextFacts":
        """Return the facts about texts without null."""
        signs = ascii_signs(texts)
        shapes, codes = shapes_of(signs)
        table = [_of_shape(shape) for shape in shapes]

        def fact(name: str, dtype: type) -> np.ndarray:
            return np.array([getattr(shape_facts, name) for shape_facts in table], dtype)[codes]

        facts = cls(
            kind=fact("kind", object),
            number=fact("number", bool),
            beside=fact("beside", bool),
            unit=fact("unit", object),
            lost=fact("lost", bool),
            parts=fact("parts", int),
            compact=numbers.mask(pc.match_substring_regex(signs, dates.COMPACT)),
            serial=numbers.mask(pc.match_substring_regex(signs, SERIAL)),
            orders=np.zeros((len(texts), len(dates.ORDERS)), np.bool_),
            either=np.zeros(len(texts), np.bool_),
        )
        numbered = [re.search(r"\d", shape_facts.unit) is not None for shape_facts in table]
        for i in np.flatnonzero(np.array(numbered, bool)[codes]):
            # Such as m2, which is m9 in the shape.
            decimal: numbers.Decimal = "," if facts.kind[i] == "comma" else "."
            parts = numbers.match(signs[i].as_py(), decimal)
            facts.unit[i] = numbers.unit(parts) if parts else ""
        rest = np.flatnonzero(~facts.number)
        truth = pc.is_in(
            pc.utf8_lower(taken(signs, rest)), value_set=texts_column(["true", "false"])
        )
        facts.kind[rest[numbers.mask(truth)]] = "truth"
        with_digit = numbers.mask(pc.match_substring_regex(taken(signs, rest), r"\d"))
        for part in np.split(rest[with_digit], [_ENOUGH]):
            if not len(part) or not facts._add_points(part, taken(signs, part)):
                break
        return facts

    def _add_points(self, places: NDArray[np.int64], texts: pa.Array) -> bool:
        """Note dates and times among the texts at some places; return whether there are any."""
        self.kind[places[~np.isnan(dates.of_day(texts))]] = "time"
        seconds = {order: dates.seconds(texts, order) for order in dates.ORDERS}
        orders = {order: ~np.isnan(points) for order, points in seconds.items()}
        self.orders[places] = np.stack(list(orders.values()), axis=1)
        # Without a year in front, and without a month's name.
        numeric = (seconds["dmy"] != seconds["mdy"]) | ~orders["ymd"]
        self.either[places] = orders["dmy"] & orders["mdy"] & numeric
        self.kind[places[self.orders[places].any(axis=1)]] = "date"
        return bool(np.isin(self.kind[places], np.array(["time", "date"], object)).any())


def are_other(texts: pa.Array) -> bool:
    """Return whether some texts, from all parts of a batch, are neither numbers nor the like."""
    places = np.arange(0, len(texts), max(1, len(texts) // _ENOUGH))
    return bool((TextFacts.of(taken(texts, places)).kind == "other").all())


# --- columns --------------------------------------------------------------------------------------

#: Number of rows, or of different texts, up to which a column counts as categories, whatever it
#: looks like.
FEW = 20
#: Number of different exceptions of one column to remember.
_MOST_OTHERS = 50
#: Number of texts of a batch that are checked for points that may separate thousands.
_FEW = 1_000
#: Share of the rows of a batch from which eight digits count as calendar days.
_MOSTLY = 0.5
#: A place such as row 3, column E: the well of a plate, or a bed.
_WELL = re.compile(r"\d{1,3}E\d{1,2}$")
#: An exponent from which no float holds most numbers.
_LARGE = re.compile(r"[eE]\+?0*(?:30[89]|3[1-9]\d|[4-9]\d\d|[1-9]\d{3,})$")
#: The decimal sign of numbers with only one possible one, by their shape.
_SIGNS = {"point": ".", "comma": ","}
_LEADING_ZERO, _ZEROS = r"^[+-]?0\d+$", ("0", "+0", "-0")


#: What a rule notes: a unit, a sign, a word, a number.
Key: TypeAlias = str | int


@dataclass
class Exceptions:
    """Texts that are not numbers (or not dates): number of rows, and first row, of each."""

    rows: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    n: int = 0

    def add(self, text: str, rows: int, first: int) -> None:
        """Note that so many rows hold a text."""
        self.n += rows
        if text in self.rows or len(self.rows) < _MOST_OTHERS:
            self.rows[text] = self.rows.get(text, 0) + rows
            self.first[text] = min(first, self.first.get(text, first))

    def merge(self, other: "Exceptions", most: int | None = None) -> None:
        """Add others of the same column; keep the first texts, whichever thread saw them."""
        self.n += other.n
        rows, first = Counter(self.rows) + Counter(other.rows), other.first | self.first
        for text in self.first.keys() & other.first.keys():
            first[text] = min(self.first[text], other.first[text])
        kept = sorted(first, key=first.__getitem__)[:most]
        self.rows = {text: rows[text] for text in kept}
        self.first = {text: first[text] for text in kept}


class PlainNumbers(NamedTuple):
    """Numbers of a batch as computers write them, (n,), NaN where missing."""

    values: NDArray[np.float64]
    #: How many are not missing; the least and the largest; whether all are whole.
    n: int
    low: float
    high: float
    whole: bool

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "PlainNumbers":
        """Return what is known of numbers."""
        whole = not any(
            np.count_nonzero(part != np.rint(part)) > np.count_nonzero(np.isnan(part))
            for part in (values[:_FEW], values)
        )
        n = len(values) - int(np.count_nonzero(np.isnan(values)))
        low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        return cls(values=values, n=n, low=low, high=high, whole=whole)


@dataclass
class ColumnFacts:
    """Facts about a column, batch by batch; the facts of threads add up.

    ``shapes`` counts rows of text: "plain" for numbers as computers write them; "point" and "comma"
    for numbers with only one possible decimal separator, "1.234" and "1,234" for those that may
    have either; "whole" for neither; "code" for digits with a leading zero; "date", "time",
    "truth", "limit", "other". ``tally`` counts rows, and ``first`` has an example with its row, by
    rule and key:

    - unit, flag: a currency or unit next to a number, or the flag of a laboratory
    - sign: a number with one possible decimal separator, which is only in ``first``
    - unread: no value as a "number" (a limit or a flag is allowed), or as a date of an order
    - only: a date in this order, and none if day and month are exchanged
    - either: a date with its day and month exchanged as well
    - month, and the order of a date: a word for a month, and a year of two digits
    - clock: the number of parts of a bare time such as 10:35
    - form: the form of a plain number, with 9 for each digit, which is only in ``first``
    - dotted, zero hour: a number that may be a time of day, such as 9.05 or 09.05
    """

    name: str = ""
    #: Numbers that are codes for missing values in a column with decimal points.
    absent: tuple[float, ...] = ()
    #: Whether a person requested numbers.
    as_number: bool = False
    #: Whether a person, or its type, says that it holds categories.
    declared: bool = False
    #: What it holds if not texts.
    form: Form = "number"
    #: Whether it has rows of texts, and whether numbers are kept in their place.
    has_texts: bool = False
    parsed: bool = False
    #: Rows with a text, and without one.
    n: int = 0
    n_missing: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    tally: Counter[tuple[str, Key]] = field(default_factory=Counter)
    first: dict[tuple[str, Key], tuple[str, int]] = field(default_factory=dict)
    #: By shape, the exceptions to it.
    exceptions: dict[str, Exceptions] = field(default_factory=dict)
    #: Whole numbers in brackets.
    brackets: Exceptions = field(default_factory=lambda: Exceptions())
    #: Rows with each text, up to a few more than a plan takes, without plain numbers.
    texts: Counter[str] = field(default_factory=Counter)
    #: Plain numbers: how many rows, and their range.
    n_plain: int = 0
    low: float = np.inf
    high: float = -np.inf
    #: Of the first numbers: how many are whole and all different; their range without those that
    #: may be codes for missing values; rows of those that stand apart, and that programs write for
    #: a missing value.
    n_different: int = 0
    inner: tuple[float, float] = (np.inf, -np.inf)
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def others(self) -> Exceptions:
        """Texts that are no numbers, dates or the like."""
        return self.exceptions.get("other", Exceptions())

    @property
    def crowded(self) -> bool:
        """Whether there are more different texts than a plan takes."""
        return len(self.texts) > MAX_CATEGORIES

    def keys(self, rule: str) -> list[Any]:
        """Return the keys of a rule in ``tally``, the most frequent first."""
        return [key for (of, key), _n in self.tally.most_common() if of == rule]

    def total(self, rule: str) -> int:
        """Return the number of rows of a rule in ``tally``."""
        return sum(n for (of, _key), n in self.tally.items() if of == rule)

    def add(self, column: pa.Array, start: int) -> pa.Array | None:
        """Look at a batch of texts; ``start`` is the number of its first row.

        Return them as numbers if all are as computers write them, and nothing else; otherwise as
        texts, dictionary-encoded if they repeat; None if all are missing.
        """
        self.has_texts = True
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()
        n = len(column) - column.null_count
        self.n += n
        self.n_missing += column.null_count
        if n == 0:
            return None
        # Arrow builds an error message for each text that is not a number: try a few first.
        few = plain_texts(column.slice(0, FEW))
        likely = not self.declared and (self.n_plain or numbers.plain(few) is not None)
        texts = plain_texts(column) if likely else column
        values = numbers.plain(texts) if likely else None
        if values is not None and self.tally["dotted", ""] == self.n - n:  # all so far
            for rule, form in (("dotted", dates.DOTTED), ("zero hour", dates.ZERO_HOUR)):
                self.tally[rule, ""] += pc.sum(pc.match_substring_regex(texts, form)).as_py() or 0
        plain = None if values is None else PlainNumbers.of(values)
        if plain is not None and (plain.n == 0 or self._is_plain(texts, plain)):
            # The word nan means missing.
            self.n, self.n_missing = self.n - n + plain.n, self.n_missing + n - plain.n
            if plain.n == 0:
                return None
            self._add_plain(plain, start)
            if np.isinf([plain.low, plain.high]).any():  # such as 1E400, which no float holds
                far = np.isinf(plain.values) & ~np.isin(plain.values, self.absent)
                for row in np.flatnonzero(far)[:1].tolist():
                    text = str(texts[row])
                    self._note_example(("infinity", text), text, start + row)
            if start == 0:
                # The decimals that all have are those of a whole number, if there is one.
                for i in (*range(len(few)), int((plain.values % 1.0 == 0.0).argmax())):
                    form = re.sub(r"\d", "9", str(texts[i]))
                    self._note_example(("form", form), str(texts[i]), i)
            return nan_as_null(plain.values)
        different = different_texts(texts)
        empty = n - int(different.rows.sum())
        self.n, self.n_missing = self.n - empty, self.n_missing + empty
        if len(different.texts):
            self._add_different(different, start)
        return different.column

    def add_values(self, values: NDArray[np.floating], form: Form, start: int) -> None:
        """Look at a batch of numbers, or of times in seconds, that are not texts."""
        self.form = self.form if form == "number" else form
        if start == 0:
            self._note_first(values, DAYS if form == "date" else CODES, form)

    def add_infinities(self, values: NDArray[np.floating], start: int) -> None:
        """Note the first row of each infinity."""
        for text in ("inf", "-inf"):
            if len(rows := np.flatnonzero(values == float(text))):
                self._note_example(("infinity", text), text, start + int(rows[0]))

    def _note_first(
        self, values: NDArray[np.floating], usual: NDArray[np.float64], form: Form
    ) -> None:
        inner = values[np.isfinite(values) & ~np.isin(values, CODES)]
        self.inner = float(inner.min(initial=np.inf)), float(inner.max(initial=-np.inf))
        self.n_different = n_different(values)
        if form in ("number", "date"):
            self.codes = {
                code_text(code, form): rows for code, rows in codes_in(values, usual).items()
            }

    def _note_example(self, key: tuple[str, Key], text: str, row: int) -> None:
        if key not in self.first or row < self.first[key][1]:
            self.first[key] = text, row

    def _add_plain(self, plain: PlainNumbers, start: int) -> None:
        whole = plain.whole
        if self.absent and (gone := np.isin(plain.values, self.absent)).any():
            # Written in a way that could also mean thousands, such as 999.000.
            plain, n_gone = PlainNumbers.of(np.where(gone, np.nan, plain.values)), int(gone.sum())
            self.n, self.n_missing = self.n - n_gone, self.n_missing + n_gone
        self.shapes["whole" if whole else "point"] += plain.n
        if plain.n == 0:
            return
        self.low, self.high = min(self.low, plain.low), max(self.high, plain.high)
        self.n_plain += plain.n
        if not whole and start < self.first.get(("sign", "."), ("", np.inf))[1]:
            row = int(np.flatnonzero(plain.values % 1.0 > 0.0)[0])
            self._note_example(("sign", "."), f"{plain.values[row]:.10g}", start + row)
        first_day, last_day = SERIALS
        days = np.count_nonzero((plain.values >= first_day) & (plain.values < last_day))
        no_days = plain.n - int(days)
        self.tally.update({("unread", order): no_days for order in dates.ORDERS})
        if start == 0:
            self._note_first(plain.values, CODES, "number")

    def _is_plain(self, texts: pa.Array, plain: PlainNumbers) -> bool:
        """Return whether numbers mean nothing else: no thousands, dates, places or codes."""
        if not self.shapes["point"]:
            first = texts.slice(0, _FEW).drop_null()
            pointed = first.filter(pc.match_substring(first, "."))
            either = pc.all(pc.match_substring_regex(pointed, numbers.EITHER)).as_py() is not False
            if either and pc.any(pc.match_substring(texts, ".")).as_py():
                return False
        if 19000101 <= plain.low <= plain.high <= 20991231 and (
            pc.all(pc.match_substring_regex(texts, dates.COMPACT)).as_py()
        ):
            return False
        if texts[0].is_valid and _WELL.match(texts[0].as_py()):
            return not all(text is None or _WELL.match(text) for text in texts.to_pylist())
        if not plain.whole:
            return True
        zeros = any(pc.any(pc.starts_with(texts, zero)).as_py() for zero in _ZEROS)
        coded = zeros and pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py()
        return not (coded or max(-plain.low, plain.high) >= 2**53)

    def _add_different(self, distinct: DistinctTexts, start: int) -> None:
        texts, rows, first_row, _ = distinct
        if self.crowded and self._are_further(distinct):
            return
        listed = texts.to_pylist()
        if not self.crowded:
            counted = listed[: MAX_CATEGORIES + 1]
            self.texts.update(dict(zip(counted, rows.tolist(), strict=False)))
        facts = TextFacts.of(texts)
        shapes, compact = facts.kind.copy(), facts.compact
        if rows[compact].sum() > _MOSTLY * rows.sum():
            shapes[compact] = "date"
        self.tally["unread", "number"] += int(rows[facts.lost].sum())
        no_day = facts.number & ~compact & ~facts.serial
        for order, fits in zip(dates.ORDERS, facts.orders.T, strict=True):
            self.tally["unread", order] += int(rows[no_day | (~facts.number & ~fits)].sum())
        if all(map(_WELL.match, listed)):
            shapes[:] = "code"
        self._note_dates(texts, facts, rows)
        if start == 0 and (facts.number.any() or "date" in shapes):
            self._note_codes(texts, rows, shapes)
        for i in np.flatnonzero(facts.number | (facts.parts > 0)).tolist():
            self._note_number(
                facts, shapes[i], i, listed[i], int(rows[i]), start + int(first_row[i])
            )
        for shape in np.unique(shapes).tolist():
            mine = np.flatnonzero(shapes == shape)
            self.shapes[shape] += int(rows[mine].sum())
            noted = self.exceptions.setdefault(shape, Exceptions())
            for i in mine[:_MOST_OTHERS].tolist():
                noted.add(listed[i], int(rows[i]), start + int(first_row[i]))
            noted.n += int(rows[mine[_MOST_OTHERS:]].sum())

    def _note_number(
        self, facts: TextFacts, shape: str, i: int, text: str, rows: int, row: int
    ) -> None:
        """Note the unit, decimal sign and brackets of a number, or the parts of a time."""
        unit, sign = facts.unit[i], _SIGNS.get(shape)
        if not facts.number[i]:
            if shape == "time":
                self._note_example(("clock", int(facts.parts[i])), text, row)
            return
        if _LARGE.search(text):
            self._note_example(("infinity", text), text, row)
        if text.startswith("("):
            self.brackets.add(text, rows, row)
        if unit:
            self.tally["flag" if unit in FLAGS else "unit", unit] += rows
        if unit or not facts.beside[i]:
            self._note_example(("unit", unit), text, row)
        if sign is not None:
            self._note_example(("sign", sign), text, row)

    def _are_further(self, distinct: DistinctTexts) -> bool:
        """Return whether these are further identifiers or notes, and count them.

        In a column with too many of them, and nothing else so far, this is decided by some texts
        of a batch: looking at all of a million takes longer than reading the file.
        """
        if {*self.shapes} != {"other"} or self.as_number or not are_other(distinct.texts):
            return False
        n = int(distinct.rows.sum())
        self.shapes["other"] += n
        self.exceptions["other"].n += n
        self.tally.update({("unread", kind): n for kind in ("number", *dates.ORDERS)})
        return True

    def _note_dates(self, texts: pa.Array, facts: TextFacts, rows: NDArray[np.int64]) -> None:
        a_date = facts.orders.any(axis=1)
        if not a_date.any():
            return
        written = ascii_signs(taken(texts, np.flatnonzero(a_date)))
        self.tally.update(("month", word) for word in dates.month_words(written))
        for order in dates.ORDERS:
            self.tally.update((order, year) for year in dates.short_years(written, order))
        fits = dict(zip(dates.ORDERS, facts.orders.T, strict=True))
        for order, other in (("dmy", "mdy"), ("mdy", "dmy")):
            self.tally["only", order] += int(rows[fits[order] & ~fits[other]].sum())
        self.tally["either", ""] += int(rows[facts.either].sum())

    def _note_codes(
        self, texts: pa.Array, rows: NDArray[np.int64], shapes: NDArray[np.object_]
    ) -> None:
        """Note which of the first different texts may be codes for missing values.

        Also their range, if they are whole numbers and no two are equal.
        """
        written = ascii_signs(texts)
        a_date = shapes == "date"
        if 2 * rows[a_date].sum() > rows.sum():
            by_order = [dates.seconds(written, order) for order in dates.ORDERS]
            values, usual = _first_of(by_order), DAYS
        else:
            point = rows[shapes == "comma"].sum() <= rows[shapes == "point"].sum()
            decimals = numbers.DECIMALS if point else numbers.DECIMALS[::-1]
            values, usual = _first_of([numbers.values(written, sign) for sign in decimals]), CODES
        for code in codes_in(np.repeat(values, rows), usual):
            places = np.flatnonzero(values == code)
            self.codes |= {texts[i].as_py(): int(rows[i]) for i in places.tolist()}
        if len(texts) == rows.sum() > FEW and set(shapes) == {"whole"}:
            values = numbers.values(written, ".")
            self.n_different, self.low, self.high = len(values), values.min(), values.max()

    def merge(self, other: "ColumnFacts") -> None:
        """Add the facts of another thread."""
        self.declared |= other.declared
        self.has_texts |= other.has_texts
        self.parsed |= other.parsed
        self.form = other.form if self.form == "number" else self.form
        self.n += other.n
        self.n_missing += other.n_missing
        self.n_plain += other.n_plain
        self.shapes.update(other.shapes)
        self.tally.update(other.tally)
        self.texts.update(other.texts)
        self.codes |= other.codes
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.n_different = max(self.n_different, other.n_different)
        self.inner = min(self.inner[0], other.inner[0]), max(self.inner[1], other.inner[1])
        self.brackets.merge(other.brackets, _MOST_OTHERS)
        for key, (text, row) in other.first.items():
            self._note_example(key, text, row)
        for shape, noted in other.exceptions.items():
            self.exceptions.setdefault(shape, Exceptions()).merge(noted, _MOST_OTHERS)


def n_different(values: NDArray[np.floating]) -> int:
    """Return how many whole numbers these are, if they are and no two are equal; else 0."""
    values = values[~np.isnan(values)]
    if len(values) <= FEW or not (values[:FEW] == np.rint(values[:FEW])).all():
        return 0
    every = (values == np.rint(values)).all() and len(np.unique(values)) == len(values)
    return len(values) if every else 0


def _first_of(readings: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return values (n,) of the first reading that has any."""
    values = readings[0]
    for other in readings[1:]:
        values = np.where(np.isnan(values), other, values)
    return values
