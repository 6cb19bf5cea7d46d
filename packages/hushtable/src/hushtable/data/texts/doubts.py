"""Texts that do not fit the kind of their column, in words, with the option that resolves them."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hushtable.data.columns import texts_column
from hushtable.data.texts.dates import ORDERS, Order
from hushtable.data.texts.reading import (
    SERIAL,
    ColumnReading,
    ColumnUnderstanding,
    Kind,
    Reading,
    quoted,
)
from hushtable.data.texts.seen import Exceptions, TextsSeen

#: Largest number of different exceptions that an option can list.
_LISTED = 8


@dataclass(frozen=True)
class ColumnDoubts:
    """Puts doubts about text columns into words, taking the other columns into account."""

    reading: Reading
    seen: Mapping[str, TextsSeen]
    #: Describes where a row is, by its number.
    place: Callable[[int], str]
    #: The delimiter of a CSV file; empty for other sources.
    delimiter: str = ""

    @staticmethod
    def n_lost(seen: TextsSeen, kind: str, order: Order | None = None) -> int:
        """Return how many rows have no value as a number, or as a date: in any order, if None."""
        if kind == "date":
            return min(seen.unread[one] for one in (ORDERS if order is None else (order,)))
        return seen.unread["number"]

    def none(self, name: str, seen: TextsSeen, asked: str) -> ColumnUnderstanding:
        """Return a column that holds no value of the requested kind."""
        every = Exceptions()
        for noted in seen.exceptions.values():
            every.merge(noted)
        text, where = self.first(every) if every.first else (f"{seen.low:g}", "every row")
        kept = quoted([f"{name}=category"])
        return ColumnUnderstanding(
            name, "category", 1.0, f"no {asked} in {seen.n:,} texts",
            f"none of its {seen.n:,} texts is a {asked}, for example {text[:40]!r} in {where}: "
            f"leave the column out, or keep it as text (--as {kept})",
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def with_infinities(
        self, one: ColumnUnderstanding, first: Mapping[str, int]
    ) -> ColumnUnderstanding:
        """Return a column of numbers that holds infinities; ``first`` has the first row of each."""
        places = [f"{text} in {self.place(row)}" for text, row in first.items()]
        doubt = f"{one.evidence} and {' and '.join(places)}"
        options = tuple(("--missing", text) for text in first)
        return replace(one, doubt=doubt, options=options, refused=True)

    def with_exceptions(
        self,
        name: str,
        kind: Kind,
        reading: ColumnReading,
        seen: TextsSeen,
        fits: set[str],
        evidence: str,
        sure: float = 1.0,
    ) -> ColumnUnderstanding:
        """Return a column with this reading; refused if texts do not fit an unrequested reading."""
        odd = Exceptions()
        for shape, noted in seen.exceptions.items():
            if shape not in fits:
                odd.merge(noted)
        n_lost = self.n_lost(seen, kind, reading.dates) if reading.lenient else 0
        if n_lost and kind == "date":  # those in another order fit, and have no value
            odd.merge(seen.exceptions.get("date", Exceptions()))
            odd.n = n_lost
        n_fit = seen.n - odd.n
        counted = f"{n_fit:,} {evidence}"
        if not odd.n:
            said = "" if evidence in ("numbers", "dates") and sure == 1.0 else evidence
            return ColumnUnderstanding(name, kind, sure, counted, said, reading=reading)
        confidence = n_fit / seen.n
        if reading.lenient:
            return self._as_asked(name, kind, reading, seen, odd, (counted, confidence))
        words = f"{counted} and {self.listed(odd)}"
        few = len(odd.rows) <= _LISTED and odd.n == sum(odd.rows.values())
        if few and set(seen.exceptions) - fits <= {"other"}:
            options = tuple(("--missing", text) for text in odd.rows)
        else:
            way, loss = self._way(name, reading, seen, odd)
            options, words = (way,), words + loss
        return ColumnUnderstanding(
            name, kind, confidence, counted, words, options, refused=True, reading=reading
        )

    def _as_asked(
        self,
        name: str,
        kind: Kind,
        reading: ColumnReading,
        seen: TextsSeen,
        odd: Exceptions,
        counted: tuple[str, float],
    ) -> ColumnUnderstanding:
        """Return a column that is read as requested, and report which values that loses."""
        lost = self.n_lost(seen, kind, reading.dates)
        words, doubt = counted[0], ""
        if odd.n > lost:
            words += (
                f"; as requested, {odd.n - lost:,} more with a limit, a flag or a different "
                "separator"
            )
        if lost:
            become = "value becomes" if lost == 1 else "values become"
            which = self.listed(self._lost(odd, reading, lost))
            doubt = f"as requested, {lost:,} {become} missing: {which}"
        return ColumnUnderstanding(name, kind, counted[1], words, doubt, reading=reading)

    @staticmethod
    def _lost(odd: Exceptions, reading: ColumnReading, n: int) -> Exceptions:
        """Return those of some texts, in ``n`` rows, that have no value of the requested kind."""
        texts = list(odd.rows)
        values = replace(reading, lenient=True).values(texts_column(texts))
        lost = Exceptions()
        for text, value in zip(texts, values, strict=True):
            if value != value:
                lost.add(text, odd.rows[text], odd.first[text])
        lost.n = max(n, lost.n)
        return lost

    def _way(
        self, name: str, reading: ColumnReading, seen: TextsSeen, odd: Exceptions
    ) -> tuple[tuple[str, str], str]:
        """Return the option for texts that no option names, and words on the values it loses."""
        drop = ("--drop", name)
        if reading.kind in ("time", "angle"):  # as a number, a time of day would be missing
            return drop, ""
        kind = "date" if reading.kind == "date" else "number"
        asked = f"{name}={kind}"
        lost = self.n_lost(seen, kind, reading.dates)
        serial = self._serial_words(odd, asked) if kind == "date" else ""
        if not lost:
            return ("--as", asked), serial
        of = f"{lost:,} of {seen.n:,} values"
        loss = f"; --as {quoted([asked])} would lose {of}, which become missing"
        if lost < odd.n:  # otherwise they were listed just before
            loss += f": {self.listed(self._lost(odd, reading, lost))}"
        return (drop if 2 * lost > seen.n else ("--as", asked)), loss + serial

    @staticmethod
    def _serial_words(odd: Exceptions, asked: str) -> str:
        """Explain what whole numbers among dates become if dates are requested."""
        text = next((text for text in odd.rows if re.match(SERIAL, text)), None)
        if text is None:
            return ""
        [seconds] = ColumnReading("date", lenient=True).values(texts_column([text]))
        day = np.datetime64(int(seconds), "s").astype("datetime64[D]")
        return (
            f"; --as {quoted([asked])} reads numbers as days as Excel counts them: {text} is {day}"
        )

    def first(self, noted: Exceptions) -> tuple[str, str]:
        """Return the first of some texts, and where it is."""
        text = min(noted.first, key=lambda text: noted.first[text])
        return text, self.place(noted.first[text])

    def listed(self, odd: Exceptions) -> str:
        """Return the most frequent exceptions in words, and where the first of each is."""
        often = Counter(odd.rows).most_common(3)
        words = ", ".join(
            f"{text[:40]!r} in {self.place(odd.first[text])}"
            + (f" and {rows - 1:,} more" if rows > 1 else "")
            for text, rows in often
        )
        rest = odd.n - sum(rows for _, rows in often)
        return words + (f", and {rest:,} rows with other texts" if rest else "")


def with_codes(one: ColumnUnderstanding, codes: Mapping[str, int]) -> ColumnUnderstanding:
    """Return a column with the question whether some values are codes for missing ones."""
    listed = " and ".join(f"{text} ({rows:,} rows)" for text, rows in codes.items())
    lie, code = ("is", "is it a code") if len(codes) == 1 else ("are", "are they codes")
    kept = quoted([f"{one.name}={one.kind}"])
    doubt = f"{listed} {lie} far from all other values: {code} for a missing value?"
    doubt += f" If not, add --as {kept}"
    options = tuple(("--missing", text) for text in codes)
    return replace(one, confidence=0.8, doubt=doubt, options=options, asked=True)
