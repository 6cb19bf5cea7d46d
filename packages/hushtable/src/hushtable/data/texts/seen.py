"""Findings of one pass over the texts of a column, used to decide what kind they are."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.schema import MAX_CATEGORIES
from hushtable.data.sentinels import CODES, DAYS, codes_in, lone_code, without_codes
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.facts import (
    FLAGS,
    DistinctTexts,
    Facts,
    KnownTexts,
    are_other,
    different_texts,
    learn,
    taken,
)
from hushtable.data.texts.reading import SERIALS, plain_texts
from hushtable.data.texts.signs import ascii_signs
from hushtable.language import _, numerals

#: Number of rows, or of different texts, up to which a column counts as categories, whatever it
#: looks like.
FEW = 20
#: Mean number of letters of a text above which it is more than the name of a category.
_LONG = 30
#: A text like a patient or order number, a hash, or a date written out.
_IDENTIFIER = re.compile(r"(?=(?:\D*\d){3})\S{8,}")


def looks(texts: Sequence[str], n_values: int) -> str:
    """Describe what is doubtful about the different texts of a column; nothing if they are few."""
    n = len(texts)
    many = numerals(f"{n:,}")
    if n_values > FEW and 2 * n > n_values:
        return _(
            "%(n)s different texts in %(rows)s rows: identifiers, names or free text",
            n=many, rows=numerals(f"{n_values:,}"),
        )  # fmt: skip
    if n <= FEW:
        return ""
    if 2 * sum(_IDENTIFIER.fullmatch(text) is not None for text in texts) > n:
        return _("%(n)s different texts, most of them long codes with digits: identifiers", n=many)
    words = sum(len(text.split()) for text in texts) / n
    letters = sum(map(len, texts)) / n
    if words >= 2.0 or letters > _LONG:
        return _(
            "%(n)s different texts, of %(words)s words and %(letters)s letters on average: names "
            "or free text",
            n=many, words=numerals(f"{words:.2g}"), letters=numerals(f"{letters:.0f}"),
        )  # fmt: skip
    return ""


#: Number of different exceptions of one column to remember.
_MOST_OTHERS = 50
#: Number of texts of a batch that are checked for points that may separate thousands.
_FEW = 1_000
#: Share of the rows of a batch from which eight digits count as calendar days.
_MOSTLY = 0.5
#: A place such as row 3, column E: the well of a plate, or a bed.
_WELL = re.compile(r"\d{1,3}E\d{1,2}$")
_LEADING_ZERO = r"^[+-]?0\d+$"


@dataclass
class Exceptions:
    """Texts that are not numbers (or not dates): number of rows, and first row, of each."""

    rows: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    n: int = 0
    most: int = _MOST_OTHERS

    def add(self, text: str, rows: int, first: int) -> None:
        """Note that so many rows hold a text."""
        self.n += rows
        if text in self.rows or len(self.rows) < self.most:
            self.rows[text] = self.rows.get(text, 0) + rows
            self.first[text] = min(first, self.first.get(text, first))

    def merge(self, other: "Exceptions") -> None:
        """Add other exceptions of the same column."""
        extra = other.n - sum(other.rows.values())
        for text, rows in other.rows.items():
            self.add(text, rows, other.first[text])
        self.n += extra

    def join(self, other: "Exceptions") -> None:
        """Add the exceptions of another thread: the first are kept, whichever thread saw them."""
        every = Exceptions(dict(self.rows), dict(self.first), self.n, most=2 * _MOST_OTHERS)
        every.merge(other)
        kept = sorted(every.first, key=every.first.__getitem__)[:_MOST_OTHERS]
        self.rows, self.first = (
            {text: of[text] for text in kept} for of in (every.rows, every.first)
        )
        self.n = every.n


@dataclass(frozen=True)
class PlainNumbers:
    """Numbers of a batch as computers write them, (n,), NaN where missing; none is infinite."""

    values: NDArray[np.float64]

    @cached_property
    def n(self) -> int:
        """Number of values that are not missing."""
        return len(self.values) - int(np.count_nonzero(np.isnan(self.values)))

    @cached_property
    def low(self) -> float:
        """The least."""
        return float(np.fmin.reduce(self.values))

    @cached_property
    def high(self) -> float:
        """The largest."""
        return float(np.fmax.reduce(self.values))

    @property
    def size(self) -> float:
        """The largest without its sign."""
        return max(-self.low, self.high)

    @cached_property
    def whole(self) -> bool:
        """Whether all are whole."""
        return not any(
            np.count_nonzero(some != np.rint(some)) > np.count_nonzero(np.isnan(some))
            for some in (self.values[:_FEW], self.values)
        )

    def n_between(self, low: float, high: float) -> int:
        """Return how many are at least ``low`` and below ``high``."""
        if self.low >= high or self.high < low:
            return 0
        return int(np.count_nonzero((self.values >= low) & (self.values < high)))


@dataclass
class TextsSeen:
    """Findings in the texts of a column, batch by batch; findings of threads add up.

    ``shapes`` counts rows: "plain" for numbers as computers write them; "point" and "comma" for
    numbers with only one possible decimal separator, "1.234" and "1,234" for those that may have
    either; "whole" for neither; "code" for digits with a leading zero; "date", "time", "truth",
    "limit", "other".
    """

    #: Numbers that are codes for missing values in a column with decimal points.
    absent: tuple[float, ...] = ()
    #: Whether a person requested numbers.
    as_number: bool = False
    #: Whether a person, or its type, says that it holds categories.
    declared: bool = False
    n: int = 0
    n_missing: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    #: Rows with each currency or unit next to a number, and with each flag of a laboratory.
    units: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    #: The largest number without a unit, where others are percentages; infinity if not known.
    bare_high: float = -np.inf
    #: Names of months, and years of two digits, in dates.
    months: set[str] = field(default_factory=set)
    years: dict[dates.Order, set[int]] = field(
        default_factory=lambda: {order: set() for order in dates.ORDERS}
    )
    #: Rows with a number that may be a time of day, such as 9.05.
    n_dotted: int = 0
    #: Their different minutes, and whether an hour begins with a zero, such as 09.05.
    minutes: set[int] = field(default_factory=set)
    zero_hours: bool = False
    #: By number of parts, a bare time such as 10:35, and the number of its row.
    clocks: dict[int, tuple[str, int]] = field(default_factory=dict)
    #: By unit, a number with it and the number of its row; by "" one without.
    unit_examples: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: Dates whose first, and whose second, number cannot be a month.
    no_month: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))
    #: Dates in which either number can be a month.
    n_either: int = 0
    #: Rows that have no value as a "number" (a limit or a flag is allowed), or as a date of each
    #: order: these are lost if a person requests that kind.
    unread: Counter[str] = field(default_factory=Counter)
    #: By shape, the exceptions to it.
    exceptions: dict[str, Exceptions] = field(default_factory=dict)
    #: Rows with each text, up to a few more than a plan takes, without plain numbers.
    texts: Counter[str] = field(default_factory=Counter)
    #: Plain numbers: how many rows, their range, and how many of the first are whole
    #: and all different.
    n_plain: int = 0
    low: float = np.inf
    high: float = -np.inf
    n_different: int = 0
    #: Range of the first numbers without those that may be codes for missing values.
    inner: tuple[float, float] = (np.inf, -np.inf)
    #: Whole numbers in brackets.
    brackets: Exceptions = field(default_factory=lambda: Exceptions())
    #: Rows of the first texts that stand apart from the others, and that programs write for a
    #: missing value.
    codes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: Of the last batch, if its texts are not plain numbers.
        self.different: DistinctTexts | None = None
        self._known = KnownTexts(self.months, self.years, as_number=self.as_number)

    @property
    def crowded(self) -> bool:
        """Whether there are more different texts than a plan takes."""
        return len(self.texts) > MAX_CATEGORIES

    def add(self, column: Any, start: int) -> NDArray[np.float64] | None:
        """Look at a batch of texts; ``start`` is the number of its first row.

        Return their values (n,) if all are numbers as computers write them, and nothing else.
        """
        values = self.look(column, start)
        add_different([self], start)
        return values

    def look(self, column: Any, start: int) -> NDArray[np.float64] | None:
        """Do the same as `add`; if there are other texts, note them for `add_different`."""
        self.different = None
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
        if values is not None and self.n_dotted == self.n - n:  # all so far
            self._note_dotted(texts, values)
        found = None if values is None else PlainNumbers(values)
        if found is not None and found.n == 0:  # the word nan, which means missing
            self.n, self.n_missing = self.n - n, self.n_missing + n
        elif found is not None and self._is_plain(texts, found):
            self.n, self.n_missing = self.n - n + found.n, self.n_missing + n - found.n
            self._add_plain(found, found.n, start)
            return values
        else:
            self.different = different_texts(texts)
            empty = n - int(self.different.rows.sum())
            self.n, self.n_missing = self.n - empty, self.n_missing + empty
        return None

    def _note_dotted(self, texts: pa.Array, values: NDArray[np.float64]) -> None:
        """Count the numbers that may be times of day, and note their minutes."""
        dotted = pc.match_substring_regex(texts, dates.DOTTED)
        n = pc.sum(dotted).as_py() or 0
        self.n_dotted += n
        if n == len(texts) - texts.null_count:
            hundredths = np.rint(100 * values[np.isfinite(values)]).astype(np.int64)
            self.minutes |= set(np.unique(hundredths % 100).tolist())
            self.zero_hours |= bool(
                pc.any(pc.match_substring_regex(texts, dates.ZERO_HOUR)).as_py()
            )

    def _add_plain(self, found: PlainNumbers, n: int, start: int) -> None:
        """Look at n numbers as computers write them."""
        whole = found.whole
        if self.absent and (gone := np.isin(found.values, self.absent)).any():
            # Written in a way that could also mean thousands, such as 999.000.
            found, n_gone = PlainNumbers(np.where(gone, np.nan, found.values)), int(gone.sum())
            n, self.n, self.n_missing = n - n_gone, self.n - n_gone, self.n_missing + n_gone
        self.shapes["whole" if whole else "point"] += n
        if n == 0:
            return
        self.low, self.high = min(self.low, found.low), max(self.high, found.high)
        self.n_plain += n
        self.bare_high = max(self.bare_high, found.size)
        self.unread.update(dict.fromkeys(dates.ORDERS, n - found.n_between(*SERIALS)))
        if start == 0:
            values = found.values
            self.n_different = n_different(values)
            self.inner = without_codes(values)
            self.codes = {f"{code:.10g}": rows for code, rows in codes_in(values, CODES).items()}

    def _is_plain(self, texts: pa.Array, found: PlainNumbers) -> bool:
        """Whether numbers as computers write them can mean nothing else."""
        if not self.shapes["point"] and _point_may_part_thousands(texts):
            return False
        if _are_compact_dates(texts, found):
            return False
        if texts[0].is_valid and _WELL.match(texts[0].as_py()):
            return not all(text is None or _WELL.match(text) for text in texts.to_pylist())
        return not found.whole or not (_has_leading_zeros(texts, found) or found.size >= 2**53)

    def _add_different(self, found: DistinctTexts, start: int) -> None:
        """Look at the different texts of a batch, each with the number of its rows."""
        trimmed, rows, first_row, _, listed = found
        if not self.crowded:
            some = listed[: MAX_CATEGORIES + 1]
            self.texts.update(dict(zip(some, rows.tolist(), strict=False)))
        elif self._are_further(found):
            return
        facts = self._known.of(trimmed, listed)
        shapes = self._shapes(facts, rows)
        if all(map(_WELL.match, listed)):
            shapes[:] = "code"
        for i in [i for i, text in enumerate(listed) if text.startswith("(")]:
            if facts["number"][i]:
                self.brackets.add(listed[i], int(rows[i]), start + int(first_row[i]))
        examples = self._add_units(facts, rows, trimmed)
        if start == 0 and (facts["number"].any() or "date" in shapes):
            self._note_codes(trimmed, rows, shapes)

        def first(i: int) -> tuple[str, int]:
            return listed[i], start + int(first_row[i])

        for unit in examples.keys() - self.unit_examples.keys():
            self.unit_examples[unit] = first(examples[unit])
        for parts in np.unique(facts["parts"][facts["parts"] > 0]).tolist():
            self.clocks.setdefault(parts, first(int(np.flatnonzero(facts["parts"] == parts)[0])))
        for shape in np.unique(shapes).tolist():
            mine = shapes == shape
            self.shapes[shape] += int(rows[mine].sum())
            noted = self.exceptions.setdefault(shape, Exceptions())
            for i in np.flatnonzero(mine)[:_MOST_OTHERS].tolist():
                text, row = first(i)
                noted.add(text, int(rows[i]), row)
            noted.n += int(rows[np.flatnonzero(mine)[_MOST_OTHERS:]].sum())

    def _are_further(self, found: DistinctTexts) -> bool:
        """Return whether these are further identifiers or notes, and count them.

        In a column with too many of them, and nothing else so far, this is decided by some texts
        of a batch: looking at all of a million takes longer than reading the file.
        """
        if {*self.shapes} != {"other"} or self.as_number or not are_other(found.texts):
            return False
        n = int(found.rows.sum())
        self.shapes["other"] += n
        self.exceptions["other"].n += n
        self.unread.update(dict.fromkeys(("number", *dates.ORDERS), n))
        return True

    def _note_codes(self, texts: pa.Array, rows: NDArray[np.int64], shapes: NDArray[Any]) -> None:
        """Note which of the first different texts may be codes for missing values.

        Also their range, if they are whole numbers and no two are equal.
        """
        said = ascii_signs(texts)
        a_date = shapes == "date"
        if 2 * rows[a_date].sum() > rows.sum():
            by_order = [dates.seconds(said, order) for order in dates.ORDERS]
            values, usual = _first_of(by_order), DAYS
        else:
            point = rows[shapes == "comma"].sum() <= rows[shapes == "point"].sum()
            decimals = numbers.DECIMALS if point else numbers.DECIMALS[::-1]
            values, usual = _first_of([numbers.values(said, sign) for sign in decimals]), CODES
        found: Iterable[float] = codes_in(np.repeat(values, rows), usual)
        if not found and usual is CODES and np.isfinite(values).any():
            lone = lone_code(np.nanmin(values), np.nanmax(values), without_codes(values))
            found = () if lone is None else (lone,)
        for code in found:
            places = np.flatnonzero(values == code)
            self.codes |= {texts[i].as_py(): int(rows[i]) for i in places.tolist()}
        if len(texts) == rows.sum() > FEW and set(shapes) == {"whole"}:
            values = numbers.values(said, ".")
            self.n_different, self.low, self.high = len(values), values.min(), values.max()

    def _shapes(self, facts: Facts, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the shape (k,) of each text; count texts that are neither numbers nor dates."""
        shapes, compact, a_number = facts["shape"].copy(), facts["compact"], facts["number"]
        if rows[compact].sum() > _MOSTLY * rows.sum():
            shapes[compact] = "date"
        no_dates = int(rows[a_number & ~compact & ~facts["serial"]].sum())
        self.unread.update(dict.fromkeys(dates.ORDERS, no_dates))
        if a_number.all():
            return shapes
        asked = self.as_number or a_number.any()
        self.unread["number"] += int(rows[facts["lost"] if asked else ~a_number].sum())
        for order, fits in zip(dates.ORDERS, facts["orders"].T, strict=True):
            self.unread[order] += int(rows[~a_number & ~fits].sum())
        a_date = facts["orders"].any(axis=1)
        first, second = facts["first"].T
        for k, one in enumerate((first, second)):
            self.no_month[k] += int(rows[a_date & (one > 12)].sum())
        self.n_either += int(rows[a_date & (first > 0) & (first <= 12) & (second <= 12)].sum())
        return shapes

    def _add_units(self, facts: Facts, rows: NDArray[np.int64], texts: pa.Array) -> dict[str, int]:
        """Count the units next to numbers, and return a place of each; "" for none.

        A number with a laboratory's flag is an exception.
        """
        beside, a_number = facts["beside"], facts["number"]
        examples: dict[str, int] = {}
        bare = np.flatnonzero(a_number & ~beside)
        if len(bare):
            examples[""] = int(bare[0])
        with_unit = np.flatnonzero(beside & a_number)
        # First those with a decimal point.
        for i in with_unit[np.argsort(facts["comma"][with_unit], kind="stable")].tolist():
            unit = facts["unit"][i]
            if unit in FLAGS:
                self.flags[unit] += int(rows[i])
            elif unit:
                self.units[unit] += int(rows[i])
                examples.setdefault(unit, i)
        if len(bare):
            some = ascii_signs(taken(texts, bare)) if "%" in examples else None
            high = np.inf if some is None else _largest(some)
            self.bare_high = max(self.bare_high, high)
        return examples

    def merge(self, other: "TextsSeen") -> None:
        """Add the findings of another thread."""
        self.declared |= other.declared
        self.n += other.n
        self.n_missing += other.n_missing
        self.shapes += other.shapes
        self.units += other.units
        self.flags += other.flags
        self.bare_high = max(self.bare_high, other.bare_high)
        self.months |= other.months
        for order, years in other.years.items():
            self.years[order] |= years
        self.n_dotted += other.n_dotted
        self.minutes |= other.minutes
        self.zero_hours |= other.zero_hours
        self.codes |= other.codes
        _merge_first(self.unit_examples, other.unit_examples)
        _merge_first(self.clocks, other.clocks)
        self.no_month = self.no_month + other.no_month
        self.n_either += other.n_either
        self.unread.update(other.unread)
        self.brackets.join(other.brackets)
        for shape, noted in other.exceptions.items():
            self.exceptions.setdefault(shape, Exceptions()).join(noted)
        self.texts.update(other.texts)
        self.n_plain += other.n_plain
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.n_different = max(self.n_different, other.n_different)
        self.inner = min(self.inner[0], other.inner[0]), max(self.inner[1], other.inner[1])


def _merge_first(mine: dict[Any, tuple[str, int]], other: dict[Any, tuple[str, int]]) -> None:
    """Add texts with their rows; of two, the one in the earlier row stays."""
    for key, (text, row) in other.items():
        if key not in mine or row < mine[key][1]:
            mine[key] = text, row


def add_different(columns: Iterable[TextsSeen], start: int) -> None:
    """Look at the different texts of columns in a batch."""
    found = [(one, one.different) for one in columns if one.different and one.different.listed]
    learn((one._known, different.texts, different.listed) for one, different in found)
    for one, different in found:
        one._add_different(different, start)
        one.different = None


def n_different(values: NDArray[Any]) -> int:
    """Return how many whole numbers these are, if they are and no two are equal; else 0."""
    values = values[~np.isnan(values)]
    if len(values) <= FEW or not (values[:FEW] == np.rint(values[:FEW])).all():
        return 0
    every = (values == np.rint(values)).all() and len(np.unique(values)) == len(values)
    return len(values) if every else 0


def _largest(texts: pa.Array) -> float:
    """Return the largest absolute value of the numbers in texts."""
    return float(
        np.abs(_first_of([numbers.values(texts, sign) for sign in numbers.DECIMALS])).max()
    )


def _first_of(readings: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return values (n,) of the first reading that has any."""
    values = readings[0]
    for other in readings[1:]:
        values = np.where(np.isnan(values), other, values)
    return values


def _point_may_part_thousands(texts: pa.Array) -> bool:
    """Whether there are points, and none of the first texts shows that they are decimal points."""
    some = texts.slice(0, _FEW).drop_null()
    with_point = some.filter(pc.match_substring(some, "."))
    if len(with_point) and not numbers.either(with_point).all():
        return False
    return bool(pc.any(pc.match_substring(texts, ".")).as_py())


def _are_compact_dates(texts: pa.Array, found: PlainNumbers) -> bool:
    """Whether all numbers are calendar days, such as 20260515."""
    if not 19000101 <= found.low <= found.high <= 20991231:
        return False
    return bool(pc.all(pc.match_substring_regex(texts, dates.COMPACT)).as_py())


def _has_leading_zeros(texts: pa.Array, found: PlainNumbers) -> bool:
    """Whether whole numbers are written longer than necessary: 00123, +1, 1e5, 1.0."""
    values = found.values
    size = np.abs(values[np.isfinite(values)])
    needed = len(size) + int((values < 0).sum())
    power = 10.0
    while power <= size.max(initial=0.0):
        needed += int((size >= power).sum())
        power *= 10.0
    written = pc.sum(pc.binary_length(texts)).as_py() or 0
    if written == needed:
        return False
    return bool(pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py())
