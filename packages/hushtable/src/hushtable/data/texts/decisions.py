"""Decisions on columns: the kind of each, the evidence, and the options that resolve a doubt."""

import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hushtable.data import labels
from hushtable.data.columns import texts_column
from hushtable.data.schema import MAX_CATEGORIES
from hushtable.data.sentinels import lone_code
from hushtable.data.texts.answers import are_answers
from hushtable.data.texts.dates import PIVOT, Order, pivot_of
from hushtable.data.texts.doubts import (
    DASHES,
    DAY_COUNTS,
    DOTTED,
    MAYBE_DOTTED,
    SURE_CLOCK,
    ColumnDoubts,
    clock_likelihood,
    counted_labels,
    different,
    numbers_words,
)
from hushtable.data.texts.numbers import Decimal
from hushtable.data.texts.reading import (
    SERIAL,
    ColumnReading,
    ColumnUnderstanding,
    Kind,
    quoted,
)
from hushtable.data.texts.seen import FEW, TextsSeen, looks
from hushtable.data.texts.words import words as cldr
from hushtable.language import _, ngettext, numerals

#: Share of the texts that must be numbers, or dates, for the others to count as exceptions.
_MOSTLY = 0.5
#: Largest share of texts with a leading zero that counts as typing errors among numbers.
_FEW_CODES = 0.01
#: Number of equal pairs to be expected by chance from which, if there are none, numbers are
#: identifiers.
_MOST_PAIRS = 7
_NUMBERS = ("whole", "point", "comma", "1.234", "1,234")
#: Number of groups of labels that may be the same to list.
_GROUPS = 3
#: A few digits and punctuation marks, and at most two letters: "24.08.", "79-84", "2026-04",
#: "1,23,456".
_LIKE_NUMBER = re.compile(r"(?=\D{0,3}\d)(?=\d*[.,:/'+\- ])(?:[\d.,:/'+\- ]){2,12}[A-Za-z]{0,2}$")
_ID_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uid|uuid|guid|mrn|pid|rowid|index|key|barcode|"
    r"(patient|case|order|sample|account|customer|invoice|record|fall|auftrags|kunden|konto|beleg|"
    r"personal|versicherten|probe|dossier|numero|num)[^a-z]*(nr|no|number|nummer|num|id)?)($|[^a-z])",
    re.IGNORECASE,
)


class Decider(ColumnDoubts):
    """Decides on the kinds of text columns, taking the other columns into account."""

    def decide(self, name: str) -> ColumnUnderstanding:
        """Decide on the kind of a text column."""
        seen, asked = self.seen[name], self.reading.kinds.get(name)
        if seen.n == 0:
            return ColumnUnderstanding(
                name, "empty", 1.0, _("no value in any row"), _("all its values are missing"),
                (("--drop", name),), refused=True,
            )  # fmt: skip
        n_numbers = sum(seen.shapes[shape] for shape in _NUMBERS)
        if asked in ("number", "date") and self.n_lost(seen, asked) == seen.n:
            return self.none(name, seen, asked)
        if asked == "number":
            return self._number(name, seen)
        if asked == "date" or (asked is None and seen.shapes["date"] >= _MOSTLY * seen.n):
            return self._date(name, seen)
        declared = asked is None and seen.declared and seen.shapes["whole"] == seen.n
        if asked in ("category", "label") or declared:
            return self._category(name, seen, kept=True)
        if seen.shapes["code"] > _FEW_CODES * seen.n:
            why = _(
                "codes (leading zeros, places such as 3E5, or more digits than a number can hold): "
                "kept as text"
            )
            return self._category(name, seen, why)
        if seen.shapes["truth"] == seen.n:
            evidence = _("true and false, as 1 and 0")
            return ColumnUnderstanding(
                name, "number", 1.0, evidence, reading=ColumnReading("boolean")
            )
        if self._are_answers(seen):
            evidence = _("yes and no in %(n)s spellings", n=numerals(f"{len(seen.texts):,}"))
            return ColumnUnderstanding(
                name, "category", 1.0, evidence, reading=ColumnReading("answer")
            )
        form = self._time(name, seen) or self._debit_and_credit(name, seen)
        if (form := form or self.foreign(name, seen)) is not None:
            return form
        dashes = sum(seen.texts[dash] for dash in DASHES) if n_numbers else 0
        if n_numbers + seen.shapes["flag"] + dashes >= _MOSTLY * seen.n:
            return self._number(name, seen)
        partly = n_numbers > 0 and not self._like_numbers(seen)
        n, every = numerals(f"{n_numbers:,}"), numerals(f"{seen.n:,}")
        doubt = _("%(n)s of %(all)s texts are numbers", n=n, all=every) if partly else ""
        return self._category(name, seen, doubt)

    @staticmethod
    def _are_answers(seen: TextsSeen) -> bool:
        """Return whether all texts mean yes or no; the numbers 1 and 0 may be among them."""
        digits = not seen.n_plain or (seen.low >= 0.0 and seen.high <= 1.0)
        return digits and not seen.shapes["point"] and are_answers(seen.texts, seen.n_plain)

    # --- numbers ------------------------------------------------------------------------------

    def _time(self, name: str, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column of times of day; None if it holds none."""
        if (clock := clock_likelihood(name, seen)) is not None:
            if clock >= SURE_CLOCK:
                reading, words = ColumnReading("time", dotted=True), _(DOTTED)
                return ColumnUnderstanding(name, "number", clock, words, words, reading=reading)
            return replace(self._number(name, seen), confidence=0.8, doubt=_(MAYBE_DOTTED))
        if seen.shapes["time"] >= _MOSTLY * seen.n:
            if len(seen.clocks) > 1:
                return self.two_scales(name, seen)
            reading, words = ColumnReading("time"), _("times of day or durations")
            return self.with_exceptions(name, "number", reading, seen, {"time"}, words)
        return None

    def _number(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        decimal, sure = self._decimal(seen)
        lenient = self.reading.kinds.get(name) == "number"
        if decimal is None:
            return self._either_decimal(name, seen)
        mixed = len(seen.units) > 1 or self._n_bare(seen) > 0 < len(seen.units)
        if mixed and not lenient:
            return self._mixed_units(name, seen)
        unit = next(iter(seen.units), "")
        if not unit and not lenient and (asked := self.in_brackets(name, seen)) is not None:
            return asked
        if not lenient and (asked := self.zero_or_missing(name, seen)) is not None:
            return asked
        if not lenient and self._is_odd_sign(decimal, seen):
            return self.other_sign(name, seen, decimal)
        reading = ColumnReading("number", decimal, unit=unit, lenient=lenient)
        fits = {*_NUMBERS} - ({"comma"} if decimal == "." else {"point"})
        evidence = numbers_words(seen, decimal, sure)
        evidence += _(", in %(unit)s", unit=unit) if unit else ""
        return self.with_exceptions(name, "number", reading, seen, fits, evidence, sure)

    @staticmethod
    def _n_bare(seen: TextsSeen) -> int:
        """Return how many rows hold a number without a unit."""
        return max(0, sum(seen.shapes[shape] for shape in _NUMBERS) - seen.units.total())

    def _signs(self) -> Counter[Decimal]:
        """Return how many columns have each decimal separator."""
        signs: tuple[tuple[str, Decimal], ...] = (("point", "."), ("comma", ","))
        return Counter(
            sign
            for other in self.seen.values()
            for shape, sign in signs
            if other.shapes[shape] > _MOSTLY * other.n
        )

    def _is_odd_sign(self, decimal: Decimal, seen: TextsSeen) -> bool:
        """Return whether most of the other columns have another decimal separator."""
        signs = self._signs()
        other: Decimal = "." if decimal == "," else ","
        if not seen.shapes["comma" if decimal == "," else "point"] or self.reading.decimal:
            return False
        usual = "," if self.delimiter == ";" else "."
        more = (signs[other], other == usual) > (signs[decimal], decimal == usual)
        return more and signs[other] > 0

    def _decimal(self, seen: TextsSeen) -> tuple[Decimal | None, float]:
        """Return the decimal separator of a column, None if it may be either, and a confidence."""
        point, comma = seen.shapes["point"], seen.shapes["comma"]
        if point and comma and self.reading.decimal is not None:
            return self.reading.decimal, 1.0
        if point or comma:
            return ("." if point >= comma else ","), max(point, comma) / (point + comma)
        if self.reading.decimal is not None:
            return self.reading.decimal, 1.0
        if not (seen.shapes["1.234"] or seen.shapes["1,234"]):
            return ".", 1.0
        if seen.shapes["1.234"] and seen.shapes["1,234"]:
            return None, 0.0
        elsewhere = set(self._signs())
        if len(elsewhere) == 1:
            return ("." if "." in elsewhere else ","), 0.8
        if not elsewhere and seen.shapes["1.234"] and self.delimiter in ("", ","):
            return ".", 0.9
        return None, 0.0

    def _either_decimal(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        shape = "1.234" if seen.shapes["1.234"] else "1,234"
        text, where = self.first(seen.exceptions[shape])
        likely = "," if self.delimiter == ";" else "."
        other = "." if likely == "," else ","
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers with three digits after each separator"),
            _("%(text)s in %(where)s may be above one thousand, or slightly above one (--decimal "
              "%(likely)s or --decimal %(other)s)",
              text=repr(text), where=where, likely=likely, other=other),
            (("--decimal", likely),), refused=True,
        )  # fmt: skip

    def _debit_and_credit(self, name: str, seen: TextsSeen) -> ColumnUnderstanding | None:
        """Return a column in which debit and credit (Soll and Haben) follow the numbers."""
        if not ({"DR", "CR"} <= seen.units.keys() or ("S" in seen.units and seen.flags["H"])):
            return None
        unit = "S" if "S" in seen.units else "DR"
        text, row = seen.unit_examples[unit]
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers with debit and credit"),
            _("debit and credit follow the numbers, such as %(text)s in %(where)s: write them as "
              "plus and minus signs before the numbers, or leave the column out",
              text=repr(text), where=self.place(row)),
            (("--drop", name),), refused=True,
        )  # fmt: skip

    def _mixed_units(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        often = seen.units + Counter({"": self._n_bare(seen)})
        named = [unit for unit, _ in often.most_common(3) if unit in seen.unit_examples]
        found = [
            (seen.unit_examples[unit][0], self.place(seen.unit_examples[unit][1])) for unit in named
        ]
        words = _(" and ").join(
            _("%(text)s in %(where)s", text=repr(text), where=where) for text, where in found
        )
        one = len(seen.units) == 1 and ("%" in named or not self._are_two_scales(seen))
        asked = f"{name}=number"
        option = f"--as {quoted([asked])}"
        what = _("does the sign make no difference?") if one else _("leave the column out, or")
        does = _("%(option)s reads the numbers as they are", option=option)
        if one and "%" in named:  # as it is, a fraction would be a hundredth of the percentage
            one = False
            what = _(
                "numbers without %(sign)s may be fractions, 0.2 for 20%(sign)s: leave the column "
                "out, or",
                sign="%",
            )
        return ColumnUnderstanding(
            name, "number", 0.5, _("numbers with different units"),
            _("the numbers have different units, %(units)s: convert them to one unit; %(what)s",
              units=words, what=f"{what} {does}"),
            (("--as", asked) if one else ("--drop", name),), refused=True,
        )  # fmt: skip

    @staticmethod
    def _are_two_scales(seen: TextsSeen) -> bool:
        """Return whether numbers with a unit are ten times larger or smaller than those without."""
        texts = [text for shape in _NUMBERS if shape in seen.exceptions
                 for text in seen.exceptions[shape].rows]  # fmt: skip
        values = ColumnReading("number", lenient=True).values(texts_column(texts))
        beside = np.array([any(unit in text for unit in seen.units) for text in texts], np.bool_)
        bare = np.append(values[~beside], [seen.low, seen.high] if seen.n_plain else [])
        sizes = [np.median(np.abs(some[some == some])) for some in (values[beside], bare)]
        return bool(max(sizes) >= 10 * min(sizes))

    # --- dates --------------------------------------------------------------------------------

    def _date(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        if "date" not in seen.exceptions:  # a person requested dates, so they may be day counts
            return self._day_counts(name, seen)
        order, sure = self._clear_order(seen), 1.0
        if order is None:
            order = self.reading.dates
        if order is None:
            example = self.first(seen.exceptions["date"])
            if seen.no_month.all():
                return self.two_orders(name, seen)
            if not seen.n_either:
                order = "ymd"
            elif example[0].count(".") >= 2:
                order, sure = "dmy", 0.9  # only the day can be first then
            else:
                found = {
                    self._clear_order(other)
                    for other in self.seen.values()
                    if _separator(other) == _separator(seen)
                } - {None}
                if len(found) != 1:
                    return self.either_order(name, example)
                order, sure = found.pop(), 0.8
        assert order is not None
        languages = cldr().languages(seen.months)
        if len(languages) > 1:
            return self.two_languages(name, seen, languages)
        language = next(iter(languages.values()), "") if seen.months else ""
        pivot = pivot_of(seen.years[order])
        if pivot is None:
            return self.two_centuries(name, seen)
        named = {"dmy": _("dates, day first"), "mdy": _("dates, month first"), "ymd": _("dates")}
        evidence = named[order]
        lenient = self.reading.kinds.get(name) == "date"
        if pivot != PIVOT:
            evidence += _(", two-digit years from %(year)s on", year=1900 + pivot)
        reading = ColumnReading(
            "date", dates=order, lenient=lenient, language=language, pivot=pivot
        )
        return self.with_exceptions(name, "date", reading, seen, {"date"}, evidence, sure)

    def _day_counts(self, name: str, seen: TextsSeen) -> ColumnUnderstanding:
        """Return a column of days as Excel counts them; refused if a number is not such a day."""
        others = [seen.exceptions[shape] for shape in _NUMBERS if shape in seen.exceptions]
        found = [text for noted in others for text in noted.rows]
        found += [f"{end:.10g}" for end in (seen.low, seen.high) if seen.n_plain]
        odd = next((text for text in found if not re.match(SERIAL, text)), None)
        if odd is not None:
            return ColumnUnderstanding(
                name, "number", 0.5, f"numbers that are not all {DAY_COUNTS}",
                f"{odd} is not a day as Excel counts them (20000 is 1954-10-03, 59999 is "
                "2064-04-07): correct it, or leave the column out", (("--drop", name),),
                refused=True,
            )  # fmt: skip
        reading = ColumnReading("date", dates="ymd", lenient=True)
        return self.with_exceptions(name, "date", reading, seen, {"date", *_NUMBERS}, DAY_COUNTS)

    @staticmethod
    def _clear_order(seen: TextsSeen) -> Order | None:
        """Return the order of dates with a day above 12; None if there are none, or two orders.

        Years of two digits may come first, as in 53-02-11.
        """
        first, second = seen.no_month.tolist()
        if bool(first) == bool(second):
            return None
        order: Order = "dmy" if first else "mdy"
        return "ymd" if seen.unread["ymd"] < seen.unread[order] else order

    # --- categories ---------------------------------------------------------------------------

    def _like_numbers(self, seen: TextsSeen) -> str:
        """Report which texts look like numbers or dates in an unknown format; nothing if few do."""
        noted = seen.exceptions.get("other")
        some = [] if noted is None else list(noted.rows)
        like = [text for text in some if _LIKE_NUMBER.match(text)]
        numbers = sum(seen.shapes[shape] for shape in _NUMBERS)
        if noted is None or 5 * len(like) < 4 * len(some) or 5 * (noted.n + numbers) < 4 * seen.n:
            return ""
        where = self.place(noted.first[like[0]])
        return _(
            "texts that look like numbers or dates in an unknown format, such as %(text)s in "
            "%(where)s: write them in a different format, or keep them as texts",
            text=repr(like[0][:40]), where=where,
        )  # fmt: skip

    def _category(
        self, name: str, seen: TextsSeen, why: str = "", *, kept: bool = False
    ) -> ColumnUnderstanding:
        """Return a column of categories; ``kept`` if a person, or its type, says that it is one."""
        asked = self.reading.kinds.get(name)
        reading = ColumnReading("label" if asked == "label" else "category")
        n = len(reading.categories(seen.texts))
        if seen.crowded:  # how many were seen until this was known depends on batches and threads
            most = numerals(f"{MAX_CATEGORIES:,}")
            held = found = _("more than %(n)s different texts", n=most)
        else:
            held, found = different(n), looks(sorted(seen.texts), seen.n)
        odd = "" if kept or why else self._like_numbers(seen)
        if odd:
            # Nearly one per row would identify single rows; next to numbers, they are quantities.
            beside = any(seen.shapes[shape] for shape in _NUMBERS)
            way = ("--drop", name) if found or beside else ("--as", f"{name}=category")
            return ColumnUnderstanding(
                name, "category", 0.5, held, odd, (way,), refused=n > FEW,
                reading=reading,
            )  # fmt: skip
        if (found and not kept) or seen.crowded:
            spaced = sum(" " in text for text in seen.texts)
            kind: Kind = "text" if 2 * spaced > n else "id"
            return ColumnUnderstanding(
                name, kind, 0.9, found, found, (("--drop", name),), refused=seen.crowded,
                reading=reading, asked=True,
            )  # fmt: skip
        sure = 0.9 if why else 1.0
        if n == 1:
            return ColumnUnderstanding(name, "constant", sure, _("one text"), why, reading=reading)
        evidence = different(n)
        if n < len(seen.texts):
            every = numerals(f"{len(seen.texts):,}")
            evidence = _("%(n)s labels in %(all)s spellings", n=numerals(f"{n:,}"), all=every)
        one = ColumnUnderstanding(name, "category", sure, evidence, why, reading=reading)
        return one if kept else self.with_words(one, seen) or self._with_near_labels(one, seen)

    @staticmethod
    def _with_near_labels(one: ColumnUnderstanding, seen: TextsSeen) -> ColumnUnderstanding:
        """Return a column of categories; in doubt if some may be spellings of one."""
        groups = [group for group in labels.near(seen.texts) if labels.is_asked(group)]
        if not groups:
            return one
        words = [_("%(labels)s differ only by %(what)s",
                   labels=counted_labels(group, seen.texts), what=labels.difference(group))
                 for group in groups[:_GROUPS]]  # fmt: skip
        if len(groups) > _GROUPS:
            more = len(groups) - _GROUPS
            words.append(
                ngettext(
                    "so do labels of %(n)s more group", "so do labels of %(n)s more groups", more
                )
            )
        apart = quoted([f"{one.name}=category"])
        doubt = _(
            "%(labels)s: are they the same label? If not, add --as %(apart)s",
            labels="; ".join(words), apart=apart,
        )  # fmt: skip
        options = (("--as", f"{one.name}=label"),)
        return replace(one, confidence=0.8, doubt=doubt, options=options, asked=True)


def _separator(seen: TextsSeen) -> str:
    """Return the separator between the parts of a column's dates; empty if it has none."""
    text = next(iter(seen.exceptions["date"].rows), "") if "date" in seen.exceptions else ""
    return next((sign for sign in text if not sign.isalnum()), "")


def names_identifier(name: str) -> bool:
    """Return whether a column's name suggests an identifier."""
    return _ID_NAME.search(name) is not None


def numeric_identifier(
    name: str, low: float, high: float, n_different: int, *, first: bool = False
) -> str:
    """Explain why whole numbers, all different, look like identifiers; empty if they do not.

    Among n random numbers out of R, the expected number of equal pairs is n^2 / 2R (the birthday
    paradox): if many are expected and there are none, this is no coincidence.
    """
    if not n_different:
        return ""
    many = numerals(f"{n_different:,}")
    found = _("%(n)s whole numbers, no two equal", n=many)
    if first:  # of the column; the others were not compared
        found = _("whole numbers, no two of the first %(n)s equal", n=many)
    if n_different**2 > 2 * _MOST_PAIRS * (high - low + 1):
        return _("%(found)s: identifiers or row numbers", found=found)
    if names_identifier(name):
        return _("%(found)s, and the column name suggests an identifier", found=found)
    return ""


class NumbersSeen(NamedTuple):
    """Numbers of a column: their range, and how many of the first are whole and all different."""

    low: float
    high: float
    n_different: int
    #: Range of the first numbers without codes for a missing value.
    inner: tuple[float, float]
    #: Whether there are more than the first.
    more: bool

    def judged(self, one: ColumnUnderstanding, *, asks: bool) -> ColumnUnderstanding:
        """Return a column, noting if its numbers are constant, identifiers, or hold a code."""
        if self.low == self.high:
            return replace(one, kind="constant")
        if one.kind != "number":
            return one
        ends = self.low, self.high
        why = numeric_identifier(one.name, *ends, self.n_different, first=self.more)
        if why and asks:
            drop = (("--drop", one.name),)
            return replace(one, kind="id", confidence=0.8, doubt=why, options=drop, asked=True)
        if (odd := lone_code(self.low, self.high, self.inner)) is not None:
            text = f"{odd:.10g}"  # all digits, because the option names the number
            doubt = _(
                "%(value)s is far from all other values: is it a code for a missing value?",
                value=numerals(text),
            )
            options = (("--missing", text),)
            return replace(one, confidence=0.8, doubt=doubt, options=options, asked=asks)
        return one
