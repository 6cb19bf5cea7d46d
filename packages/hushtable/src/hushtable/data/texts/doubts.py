"""Texts that do not fit the kind of their column, in words, with the option that resolves them."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushtable.data.columns import texts_column
from hushtable.data.texts.dates import ORDERS, Order
from hushtable.data.texts.numbers import Decimal
from hushtable.data.texts.reading import (
    SERIAL,
    ColumnReading,
    ColumnUnderstanding,
    Kind,
    Reading,
    quoted,
)
from hushtable.data.texts.seen import Exceptions, TextsSeen
from hushtable.language import _, ngettext, numerals

#: Largest number of different exceptions that an option can list, and of spellings of a label.
_LISTED, _SPELLINGS = 8, 4


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
        text, where = self.first(every) if every.first else (f"{seen.low:g}", _("every row"))
        kept = quoted([f"{name}=category"])
        n = numerals(f"{seen.n:,}")
        found = _("no date in %(n)s texts", n=n)
        none = _("none of its %(n)s texts is a date", n=n)
        if asked == "number":
            found = _("no number in %(n)s texts", n=n)
            none = _("none of its %(n)s texts is a number", n=n)
        return ColumnUnderstanding(
            name, "category", 1.0, found,
            _("%(none)s, for example %(text)s in %(where)s: leave the column out, or keep it as "
              "text (--as %(kept)s)", none=none, text=repr(text[:40]), where=where, kept=kept),
            (("--drop", name),), refused=True,
        )  # fmt: skip

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
        counted = f"{numerals(f'{n_fit:,}')} {evidence}"
        if not odd.n:
            said = "" if evidence in (_("numbers"), _("dates")) and sure == 1.0 else evidence
            return ColumnUnderstanding(name, kind, sure, counted, said, reading=reading)
        confidence = n_fit / seen.n
        if reading.lenient:
            return self._as_asked(name, kind, reading, seen, odd, (counted, confidence))
        words = _("%(counted)s and %(others)s", counted=counted, others=self.listed(odd))
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
            words += _(
                "; as requested, %(n)s more with a limit, a flag or a different separator",
                n=numerals(f"{odd.n - lost:,}"),
            )
        if lost:
            doubt = ngettext(
                "as requested, %(n)s value becomes missing: %(which)s",
                "as requested, %(n)s values become missing: %(which)s",
                lost, which=self.listed(self._lost(odd, reading, lost)),
            )  # fmt: skip
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
        loss = _(
            "; --as %(asked)s would lose %(n)s of %(all)s values, which become missing",
            asked=quoted([asked]), n=numerals(f"{lost:,}"), all=numerals(f"{seen.n:,}"),
        )  # fmt: skip
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
        return _(
            "; --as %(asked)s reads numbers as days as Excel counts them: %(text)s is %(day)s",
            asked=quoted([asked]), text=text, day=day,
        )  # fmt: skip

    def first(self, noted: Exceptions) -> tuple[str, str]:
        """Return the first of some texts, and where it is."""
        text = min(noted.first, key=lambda text: noted.first[text])
        return text, self.place(noted.first[text])

    def listed(self, odd: Exceptions) -> str:
        """Return the most frequent exceptions in words, and where the first of each is."""
        often = Counter(odd.rows).most_common(3)
        words = ", ".join(
            _("%(text)s in %(where)s", text=repr(text[:40]), where=self.place(odd.first[text]))
            + (_(" and %(n)s more", n=numerals(f"{rows - 1:,}")) if rows > 1 else "")
            for text, rows in often
        )
        rest = odd.n - sum(rows for _, rows in often)
        others = _(", and %(n)s rows with other texts", n=numerals(f"{rest:,}"))
        return words + (others if rest else "")


def counted_labels(group: Sequence[str], rows: Mapping[str, int]) -> str:
    """Return the first few labels in words, each with its number of rows."""
    first, *others = group[:_SPELLINGS]
    words = [f"{first[:40]!r} ({ngettext('%(n)s row', '%(n)s rows', rows[first])})"]
    words += [f"{text[:40]!r} ({numerals(f'{rows[text]:,}')})" for text in others]
    if len(group) > _SPELLINGS:
        words.append(_("%(n)s more", n=numerals(f"{len(group) - _SPELLINGS:,}")))
    return f"{', '.join(words[:-1])}{_(' and ')}{words[-1]}"


def different(n: int) -> str:
    """Return words for a number of different texts."""
    return _("%(n)s different texts", n=numerals(f"{n:,}"))


def numbers_words(seen: TextsSeen, decimal: Decimal, sure: float) -> str:
    """Return words for numbers, and for their separators where these are not certain."""
    words = _("numbers")
    if decimal == "," and (seen.shapes["comma"] or seen.shapes["1,234"]):
        words += _(" with a decimal comma")
    elif seen.shapes["1,234"] and decimal == ".":
        words += _(" with commas as thousands separators")
    elif seen.shapes["1.234"] and decimal == ",":
        words += _(" with points as thousands separators")
    elif sure < 1.0 and seen.shapes["1.234"]:
        words += _(" with a decimal point, and three digits after each")
    return words
