"""Texts that do not fit the kind of their column, in words, with the option that resolves them."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushtable.data.columns import texts_column
from hushtable.data.readers.totals import is_total_word
from hushtable.data.sentinels import WORDS
from hushtable.data.texts.dates import ORDERS, Order
from hushtable.data.texts.foreign import FOREIGN_SHAPES, foreign_form
from hushtable.data.texts.numbers import Decimal, written
from hushtable.data.texts.reading import (
    SERIAL,
    ColumnReading,
    ColumnUnderstanding,
    Kind,
    Reading,
    quoted,
)
from hushtable.data.texts.seen import FEW, Exceptions, TextsSeen
from hushtable.language import N_, _, ngettext, numerals

#: Largest number of different exceptions that an option can list, and of spellings of a label.
_LISTED, _SPELLINGS = 8, 4
#: Number of rows from which a text in only one of them is unusual.
_FEW_ROWS = 5
#: What Excel's counts of days are called.
DAY_COUNTS = N_("days as Excel counts them")
#: Texts that mean zero in accounts, and a missing value elsewhere.
DASHES = ("-", "\u2013", "\u2014")
#: Evidence that needs no check.
_USUAL = ("numbers", "dates", DAY_COUNTS)
#: Largest share of the values that may be lost as numbers for that to be proposed.
_FEW_LOST = 0.1
DOTTED = N_("times of day, with a point between hours and minutes")
MAYBE_DOTTED = N_("none has more than 59 hundredths: if they are times of day, write them as 9:05")
#: Likelihood from which numbers such as 9.05 are times of day.
SURE_CLOCK = 0.9
#: Number of rows, of different hundredths, and width of the range from which numbers with at most
#: 59 hundredths may be times of day; and from which that is no coincidence.
_MANY_CLOCKS, _MINUTES, _HOURS = 50, (4, 12), (1.0, 3.0)
_CLOCK_NAME = re.compile(
    r"(^|[^a-z])(time|clock|uhr|(uhr)?zeit|heure|hora|ora|orario|tijd|tid|klo|kello(naika)?|aika|"
    r"godz(ina)?|čas|idő|saat|ώρα|время)($|[^a-z])",
    re.IGNORECASE,
)


def clock_likelihood(name: str, seen: TextsSeen) -> float | None:
    """Return how likely the numbers of a column are times such as 9.05; None if they are not."""
    if not seen.n_dotted == seen.n == seen.n_plain > _MANY_CLOCKS:
        return None
    maybe, surely = (
        len(seen.minutes) >= minutes and seen.high - seen.low >= hours
        for minutes, hours in zip(_MINUTES, _HOURS, strict=True)
    )
    if not maybe:
        return None
    return SURE_CLOCK if surely or seen.zero_hours or _CLOCK_NAME.search(name) else 0.5


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
        text, where = self.first(every) if every.first else (f"{seen.low:.10g}", "")
        example = _("%(text)s in %(where)s", text=repr(text[:40]), where=where)
        example = example if where else repr(text)
        kept = quoted([f"{name}=category"])
        n = numerals(f"{seen.n:,}")
        found = _("no date in %(n)s texts", n=n)
        none = _("none of its %(n)s texts is a date", n=n)
        if asked == "number":
            found = _("no number in %(n)s texts", n=n)
            none = _("none of its %(n)s texts is a number", n=n)
        return ColumnUnderstanding(
            name, "category", 1.0, found,
            _("%(none)s, for example %(example)s: leave the column out, or keep it as text (--as "
              "%(kept)s)", none=none, example=example, kept=kept),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def two_scales(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        """Return a column with times of two and of three parts, whose scales may differ."""
        short, long = (
            _("%(text)s in %(where)s", text=repr(text), where=self.place(row))
            for text, row in (seen.clocks[n] for n in sorted(seen.clocks))
        )
        return ColumnUnderstanding(
            name, "number", 0.5, _("times of two and of three parts"),
            _("some times have three parts, such as %(long)s, so those of two, such as %(short)s, "
              "may be hours and minutes, or minutes and seconds: write them all with hours, "
              "minutes and seconds, or leave the column out", long=long, short=short),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def in_brackets(self, name: str, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column with brackets around whole numbers, if nothing shows what they mean."""
        bracketed = [*seen.brackets.rows]
        negative = seen.low < 0 or any(text.startswith(("-", "\u2212")) for text in seen.texts)
        whole = all(re.fullmatch(r"\(\d+\)", text) for text in bracketed)
        if not bracketed or negative or not whole:
            return None
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers, some in brackets"),
            _("%(texts)s: brackets mean a minus in accounts, and a remark elsewhere: write a "
              "minus, or omit the brackets; --as %(minus)s reads them as negative, and --as "
              "%(kept)s keeps the texts", texts=self.listed(seen.brackets),
              minus=quoted([f"{name}=number"]), kept=quoted([f"{name}=category"])),
            refused=True,
        )  # fmt: skip

    def zero_or_missing(self, name: str, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column with dashes, which may mean zero as in accounts; None without many."""
        dash = max(DASHES, key=seen.texts.__getitem__)
        rows = seen.texts[dash]
        others = seen.exceptions.get("other", Exceptions())
        if 10 * rows <= seen.n or others.n != rows or 2 * (seen.n - rows) > seen.n:
            return None
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers and dashes"),
            _("%(dash)s in %(n)s of %(all)s rows: if it means zero, as in accounts, write 0; if it "
              "means that the value is missing, add --missing %(code)s",
              dash=repr(dash), n=numerals(f"{rows:,}"), all=numerals(f"{seen.n:,}"),
              code=quoted([f"{name}:{dash}"])),
            refused=True,
        )  # fmt: skip

    def other_sign(self, name: str, seen: TextsSeen, decimal: Decimal) -> ColumnUnderstanding:
        """Return a column with another decimal separator than the other columns."""
        text, where = self.first(seen.exceptions["comma" if decimal == "," else "point"])
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers with another decimal sign than the other columns"),
            _("%(text)s in %(where)s: the other columns have another decimal sign, so this may be "
              "a list of codes; --as %(kept)s keeps the texts, and --as %(number)s reads numbers",
              text=repr(text[:40]), where=where, kept=quoted([f"{name}=category"]),
              number=quoted([f"{name}=number"])),
            refused=True,
        )  # fmt: skip

    def foreign(self, name: str, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column of values in a form that is not read; None for others."""
        every = Exceptions()
        for shape in FOREIGN_SHAPES:
            every.merge(seen.exceptions.get(shape, Exceptions()))
        form = foreign_form(every.rows)
        one_unit = len(seen.units) == 1 and seen.units.total() == seen.n
        if form is None or one_unit or 2 * every.n < seen.n:
            return None
        first = sorted(filter(form.fits, every.rows), key=every.first.__getitem__)[:3]
        listed = ", ".join(repr(text[:40]) for text in first)
        doubt = _(
            "%(what)s are not read, such as %(listed)s from %(where)s on: %(way)s, or leave the "
            "column out; --as %(kept)s keeps the texts",
            what=_(form.name), listed=listed, where=self.place(every.first[first[0]]),
            way=_(form.way), kept=quoted([f"{name}=category"]),
        )  # fmt: skip
        few = len(seen.texts) <= FEW  # as categories, nothing is lost
        way = ("--as", f"{name}=category") if few else ("--drop", name)
        return ColumnUnderstanding(name, "category", 0.5, _(form.name), doubt, (way,), refused=True)

    def noting_total(self, one: ColumnUnderstanding, seen: TextsSeen) -> ColumnUnderstanding:
        """Return a column that notes a row with a word for a total, unless that was checked."""
        others = seen.exceptions.get("other")
        # For text files, the last lines were checked.
        if one.doubt or self.delimiter or others is None or seen.n < _FEW_ROWS:
            return one
        for text, rows in others.rows.items():
            if rows == 1 and is_total_word(text):
                doubt = _(
                    "%(text)s in %(where)s: does this row sum up others?",
                    text=repr(text), where=self.place(others.first[text]),
                )  # fmt: skip
                return replace(one, doubt=doubt)
        return one

    def with_infinities(
        self, one: ColumnUnderstanding, first: Mapping[str, int]
    ) -> ColumnUnderstanding:
        """Return a column of numbers that holds infinities; ``first`` has the first row of each."""
        places = [
            _("%(text)s in %(where)s", text=text, where=self.place(row))
            for text, row in first.items()
        ]
        doubt = _(" and ").join([one.evidence, *places])
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
        counted = f"{numerals(f'{n_fit:,}')} {evidence}"
        if not odd.n:
            said = "" if evidence in map(_, _USUAL) and sure == 1.0 else evidence
            return ColumnUnderstanding(name, kind, sure, counted, said, reading=reading)
        confidence = n_fit / seen.n
        if reading.lenient:
            return self._as_asked(name, kind, reading, seen, odd, (counted, confidence))
        words = _("%(counted)s and %(others)s", counted=counted, others=self.listed(odd))
        few = len(odd.rows) <= _LISTED and odd.n == sum(odd.rows.values())
        named = few and set(seen.exceptions) - fits <= {"other"}
        options, more = self._ways(name, reading, seen, odd, named=named)
        words += more
        if any(map(is_total_word, odd.rows)):  # no option leaves out rows in the table
            words += _("; delete rows that sum up others")
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

    def _ways(
        self, name: str, reading: ColumnReading, seen: TextsSeen, odd: Exceptions, *, named: bool
    ) -> tuple[tuple[tuple[str, str], ...], str]:
        """Return the options for texts that do not fit, and words on what they change.

        ``named``: an option can list these texts.
        """
        if reading.kind == "number" and (odd_sign := self._two_meanings(reading, odd)):
            return (), _(
                "; %(sign)s is the decimal sign of the others, and separates thousands in "
                "%(text)s: write all numbers in one way, or leave the column out",
                sign=repr(reading.decimal), text=repr(odd_sign),
            )  # fmt: skip
        if named and reading.kind == "number" and self._are_bands(seen, odd):
            kept = f"{name}=category"
            return (("--as", kept),), _("; --as %(kept)s keeps them", kept=quoted([kept]))
        if named:
            texts = [text for text in odd.rows if not is_total_word(text)]
            return tuple(("--missing", text) for text in texts), ""
        way, loss = self._way(name, reading, seen, odd)
        return (way,), loss

    @staticmethod
    def _two_meanings(reading: ColumnReading, odd: Exceptions) -> str:
        """Return a text in which the decimal separator of the others separates thousands."""
        other: Decimal = "," if reading.decimal == "." else "."
        texts = [text for text in odd.rows if text.count(reading.decimal) > 1]
        fits = written(texts_column(texts), other) if texts else np.zeros(0, np.bool_)
        return next((text for text, one in zip(texts, fits, strict=True) if one), "")

    @staticmethod
    def _are_bands(seen: TextsSeen, odd: Exceptions) -> bool:
        """Return whether texts such as 22-23 or 65+ among numbers are values, not errors."""
        return odd.n > _FEW_LOST * seen.n and all(re.search(r"\d", text) for text in odd.rows)

    def _way(
        self, name: str, reading: ColumnReading, seen: TextsSeen, odd: Exceptions
    ) -> tuple[tuple[str, str], str]:
        """Return the option for texts that no option names, and words on the values it loses."""
        drop = ("--drop", name)
        if reading.kind == "time":  # as a number, a time of day would be missing
            return drop, ""
        kind = "date" if reading.kind == "date" else "number"
        asked = f"{name}={kind}"
        lost = max(self.n_lost(seen, kind, reading.dates), self._lost(odd, reading, 0).n)
        serial = self._serial_words(odd, asked) if kind == "date" else ""
        if not lost:
            return ("--as", asked), serial
        loss = _(
            "; --as %(asked)s would lose %(n)s of %(all)s values, which become missing",
            asked=quoted([asked]), n=numerals(f"{lost:,}"), all=numerals(f"{seen.n:,}"),
        )  # fmt: skip
        if lost < odd.n:  # otherwise they were listed just before
            loss += f": {self.listed(self._lost(odd, reading, lost))}"
        if kind == "number" and lost > _FEW_LOST * seen.n and len(seen.texts) <= FEW:
            return ("--as", f"{name}=category"), loss
        most = _FEW_LOST if kind == "number" else 0.5
        return (drop if lost > most * seen.n else ("--as", asked)), loss + serial

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

    def either_order(self, name: str, example: tuple[str, str]) -> ColumnUnderstanding:
        """Return dates that may begin with the day or the month."""
        text, where = example
        return ColumnUnderstanding(
            name, "date", 0.5, _("dates with no day above 12"),
            _("%(text)s in %(where)s may begin with the day or the month (--dates dmy or --dates "
              "mdy)", text=repr(text), where=where),
            (("--dates", "dmy"),), refused=True,
        )  # fmt: skip

    def two_orders(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        """Return dates, some beginning with the day and others with the month."""
        text, where = self.first(seen.exceptions["date"])
        return ColumnUnderstanding(
            name, "date", 0.5, _("dates in two orders"),
            _("some begin with the day, others with the month, such as %(text)s in %(where)s: "
              "write them all in one order, or leave the column out",
              text=repr(text), where=where),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def two_centuries(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        """Return dates with two-digit years of a whole century."""
        text, where = self.first(seen.exceptions["date"])
        return ColumnUnderstanding(
            name, "date", 0.5, _("dates with two-digit years"),
            _("the two-digit years, as in %(text)s in %(where)s, span a whole century, so each "
              "may belong to the last century or to this one: write years with four digits, or "
              "leave the column out", text=repr(text), where=where),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def two_languages(
        self, name: str, seen: TextsSeen, languages: Mapping[tuple[int, ...], str]
    ) -> ColumnUnderstanding:
        """Return dates whose months' names mean different months in several languages."""
        text, where = self.first(seen.exceptions["date"])
        named = _(" or ").join(languages.values())
        return ColumnUnderstanding(
            name, "date", 0.5, _("dates with month names in one of several languages"),
            _("the month names, as in %(text)s in %(where)s, mean different months in %(named)s: "
              "write months as numbers, or leave the column out",
              text=repr(text), where=where, named=named),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    @staticmethod
    def with_words(one: ColumnUnderstanding, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column in doubt if some categories may mean a missing value; otherwise None.

        Files of text and workbooks are read without these.
        """
        found = {text: rows for text, rows in sorted(seen.texts.items()) if text in WORDS}
        if not found:
            return None
        listed = _(" and ").join(
            f"{text!r} ({ngettext('%(n)s row', '%(n)s rows', rows)})"
            for text, rows in found.items()
        )
        doubt = ngettext(
            "%(listed)s: does it mean that the value is missing? If not, add --as %(kept)s",
            "%(listed)s: do they mean that the value is missing? If not, add --as %(kept)s",
            len(found), listed=listed, kept=quoted([f"{one.name}=category"]),
        )  # fmt: skip
        options = tuple(("--missing", text) for text in found)
        return replace(one, confidence=0.8, doubt=doubt, options=options, asked=True)

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


def with_codes(one: ColumnUnderstanding, codes: Mapping[str, int]) -> ColumnUnderstanding:
    """Return a column with the question whether some values are codes for missing ones."""
    listed = _(" and ").join(
        f"{text} ({ngettext('%(n)s row', '%(n)s rows', rows)})" for text, rows in codes.items()
    )
    doubt = ngettext(
        "%(listed)s is far from all other values: is it a code for a missing value?",
        "%(listed)s are far from all other values: are they codes for a missing value?",
        len(codes), listed=listed,
    )  # fmt: skip
    doubt += _(" If not, add --as %(kept)s", kept=quoted([f"{one.name}={one.kind}"]))
    options = tuple(("--missing", text) for text in codes)
    return replace(one, confidence=0.8, doubt=doubt, options=options, asked=True)
