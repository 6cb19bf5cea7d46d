"""Decisions on columns: the kind of each, the evidence, and the doubt if a person has to decide."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushtable.data import labels
from hushtable.data.columns import texts_column
from hushtable.data.readers.reader import MISSING_WORDS, Reader
from hushtable.data.readers.totals import begins_with_total, is_total_word
from hushtable.data.schema import MAX_CATEGORIES
from hushtable.data.texts.column_facts import FEW, ColumnFacts, Exceptions, Key
from hushtable.data.texts.dates import ORDERS, PIVOT, Order, pivot_of
from hushtable.data.texts.doubt import ColumnUnderstanding, Doubt, Kind
from hushtable.data.texts.missing import lone_code
from hushtable.data.texts.numbers import Decimal, is_lenient, match
from hushtable.data.texts.reading import SERIAL, ColumnReading, Reading
from hushtable.data.texts.shapes import FOREIGN_SHAPES, foreign_form
from hushtable.data.texts.words import are_answers, lists
from hushtable.data.texts.words import words as cldr
from hushtable.language import numerals
from hushtable.words.doubts import Example, dates_words, evidence_words, numbers_words, with_more
from hushtable.words.options import Option

#: Share of the texts that must be numbers, or dates, for the others to count as exceptions.
_MOSTLY = 0.5
#: Largest share of texts with a leading zero that counts as typing errors among numbers.
_FEW_CODES = 0.01
#: Number of equal pairs to be expected by chance from which, if there are none, numbers are
#: identifiers.
_MOST_PAIRS = 7
_NUMBERS = ("whole", "point", "comma", "1.234", "1,234")
#: Largest number of different exceptions that an option can list, and number of them to print.
LISTED, _PRINTED = 8, 3
#: Number of rows from which a text in only one of them is unusual.
_FEW_ROWS = 5
#: Texts that mean zero in accounts, and a missing value elsewhere.
_DASHES = ("-", "\u2013", "\u2014")
#: Mean number of letters of a text above which it is more than the name of a category.
_LONG = 30
#: Rows for each text, on average, from which long texts are names of categories.
_REPEATS = 20
#: A text like a patient or order number, a hash, or a date written out.
_IDENTIFIER = re.compile(r"(?=(?:\D*\d){3})\S{8,}")
#: A few digits and punctuation marks, and at most two letters: "24.08.", "79-84", "2026-04",
#: "1,23,456".
_LIKE_NUMBER = re.compile(r"(?=\D{0,3}\d)(?=\d*[.,:/'+\- ])(?:[\d.,:/'+\- ]){2,12}[A-Za-z]{0,2}$")
#: An answer on a scale: a number and a word for it, or only a word. Largest number of answers.
_ANSWER, _MOST_ANSWERS = re.compile(r"(?:\d{1,2} ?[-=:.)]+ ?)?[^\W\d_]{3}[^\d]*$"), 11
#: Number of rows from which it is no coincidence if none has more than 59 hundredths.
_MANY_CLOCKS = 50


@dataclass(frozen=True)
class TableFacts:
    """Facts about a table whose columns are decided on."""

    reading: Reading
    #: Columns with texts.
    columns: Mapping[str, ColumnFacts]
    #: The rows.
    reader: Reader

    def asked(self, column: ColumnFacts) -> str:
        """Return the kind that a person requested; empty if none."""
        return self.reading.kinds.get(column.name, "")

    def first(self, noted: Exceptions) -> Example:
        """Return the first of some texts."""
        text = min(noted.first, key=noted.first.__getitem__)
        return Example(text, self.reader.where(noted.first[text]))

    def example(self, column: ColumnFacts, rule: str, key: Key) -> Example:
        """Return the example of a rule."""
        text, row = column.first[rule, key]
        return Example(text, self.reader.where(row))

    def examples(self, odd: Exceptions) -> tuple[Example, ...]:
        """Return the most frequent texts, with the place of the first of each."""
        often = Counter(odd.rows).most_common(_PRINTED)
        return tuple(
            Example(text, self.reader.where(odd.first[text]), rows) for text, rows in often
        )


def _column(
    column: ColumnFacts, kind: Kind, evidence: str, reading: ColumnReading | None = None
) -> ColumnUnderstanding:
    return ColumnUnderstanding(column.name, kind, evidence, reading=reading)


def _refused(
    column: ColumnFacts,
    doubt: str,
    example: Example | None = None,
    options: Sequence[Option] = (),
    kind: Kind = "number",
    **facts: object,
) -> ColumnUnderstanding:
    text, place, _rows = example or Example("")
    asked = Doubt(column.name, doubt, text, place, tuple(options), refused=True, facts=facts)
    evidence = evidence_words("in_doubt", n=column.n)
    return ColumnUnderstanding(column.name, kind, evidence, asked)


def _drop(column: ColumnFacts) -> tuple[Option, ...]:
    return (("drop", column.name),)


def as_kind(column: ColumnFacts | ColumnUnderstanding, kind: str) -> Option:
    """Return the option that reads a column as a kind."""
    return "as", f"{column.name}={kind}"


def decide(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding:
    """Decide on the kind of a column of texts."""
    asked, shapes, n = table.asked(column), column.shapes, column.n
    if n == 0:
        return without_values(column.name)
    if asked in ("number", "date") and n_lost(column, asked) == n:
        every = all_exceptions(column)
        sample = table.first(every) if every.first else Example(f"{column.low:.10g}")
        kept = as_kind(column, "category")
        return _refused(
            column, f"no_{asked}", options=_drop(column), kind="category", n=n, sample=sample,
            kept=kept,
        )  # fmt: skip
    if asked == "number":
        return _number(column, table)
    if asked == "date" or (not asked and shapes["date"] >= _MOSTLY * n):
        return _date(column, table)
    declared = not asked and column.declared and shapes["whole"] == n
    if asked in ("category", "label") or declared:
        return _category(column, table, kept=True)
    if shapes["code"] > _FEW_CODES * n:
        return _category(column, table, "codes_kept")
    if shapes["truth"] == n:
        return _column(column, "number", evidence_words("truth"), ColumnReading("boolean"))
    digits = not column.n_plain or (column.low >= 0.0 and column.high <= 1.0)
    if digits and not shapes["point"] and are_answers(column.texts, column.n_plain):
        evidence = evidence_words("answers", n=len(column.texts))
        return _column(column, "category", evidence, ColumnReading("answer"))
    for form in (_time, _foreign, _scale):
        if (decision := form(column, table)) is not None:
            return decision
    n_numbers = _n_numbers(column)
    dashes = sum(column.texts[dash] for dash in _DASHES) if n_numbers else 0
    if n_numbers + shapes["flag"] + dashes >= _MOSTLY * n:
        return _number(column, table)
    partly = n_numbers > 0 and not _like_numbers(column, table)
    return _category(column, table, "unclear" if partly else "")


def _n_numbers(column: ColumnFacts) -> int:
    return sum(column.shapes[shape] for shape in _NUMBERS)


def n_lost(column: ColumnFacts, kind: str, order: Order | None = None) -> int:
    """Return how many rows have no value as a number, or as a date: in any order, if None."""
    if kind == "date":
        orders = ORDERS if order is None else (order,)
        return min(column.tally["unread", key] for key in orders)
    return column.tally["unread", "number"]


def without_values(name: str) -> ColumnUnderstanding:
    """Return a column in which all values are missing."""
    doubt = Doubt(name, "empty", options=(("drop", name),), refused=True)
    return ColumnUnderstanding(name, "empty", evidence_words("empty"), doubt)


def all_exceptions(column: ColumnFacts, shapes: Sequence[str] | None = None) -> Exceptions:
    """Return the texts of some shapes together; of all if None."""
    every = Exceptions()
    for shape in column.exceptions if shapes is None else shapes:
        every.merge(column.exceptions.get(shape, Exceptions()))
    return every


# --- numbers --------------------------------------------------------------------------------------


def _time(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding | None:
    dotted = column.tally["dotted", ""] == column.n == column.n_plain > _MANY_CLOCKS
    named = _has_word(column.name, "|".join(lists()["clock_names"]))
    if dotted and (named or column.tally["zero hour", ""]):
        number = as_kind(column, "number")
        return _refused(column, "dotted", options=_drop(column), number=number)
    if column.shapes["time"] < _MOSTLY * column.n:
        return None
    if len(parts := sorted(key for rule, key in column.first if rule == "clock")) > 1:
        short, long = (table.example(column, "clock", n) for n in parts)
        return _refused(column, "two_clocks", options=_drop(column), short=short, long=long)
    evidence = evidence_words("clock")
    return _with_exceptions(column, table, "number", ColumnReading("time"), {"time"}, evidence)


def _foreign(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding | None:
    every = all_exceptions(column, FOREIGN_SHAPES)
    form = foreign_form(every.rows)
    one_unit = len(column.keys("unit")) == 1 and column.total("unit") == column.n
    credit = bool(column.tally["flag", "H"])  # 12,50 S beside 3,00 H is debit, and not south
    if form is None or one_unit or credit or 2 * every.n < column.n:
        return None
    first = sorted(filter(form.fits, every.rows), key=every.first.__getitem__)[:_PRINTED]
    kept = as_kind(column, "category")
    few = len(column.texts) <= FEW  # as categories, nothing is lost
    return _refused(
        column, "foreign", Example("", table.reader.where(every.first[first[0]])),
        [kept] if few else _drop(column), "category",
        what=form.name, way=form.way, kept=kept, examples=tuple(map(Example, first)),
    )  # fmt: skip


def _scale(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding | None:
    """Return a column of answers on a scale, some as numbers and some as words; None for others."""
    others = column.others
    words = [text for text in others.rows if _ANSWER.match(text)]
    values = _n_numbers(column)
    few = len(column.texts) <= 2 * _MOST_ANSWERS and column.shapes["whole"] == values > 0
    scale = column.low >= 0.0 and column.high < _MOST_ANSWERS
    plain = scale if column.n_plain else all(len(t) < 3 for t in column.texts if t not in words)
    named = any(text[0].isdigit() for text in words)  # such as 1 - never
    if not few or not plain or not words or len(words) < len(others.rows):
        return None
    if not named and (len(words) < 2 or any(rows < _FEW_ROWS for rows in others.rows.values())):
        return None
    return _refused(
        column, "likert", options=[as_kind(column, "category")], kind="category",
        examples=table.examples(others), kept=as_kind(column, "category"),
        number=as_kind(column, "number"),
    )  # fmt: skip


def _number(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding:
    decimal = _decimal(column, table)
    lenient = table.asked(column) == "number"
    if decimal is None:
        shape = "1.234" if column.shapes["1.234"] else "1,234"
        signs = (",", ".") if table.reader.delimiter == ";" else (".", ",")
        likely, other = ways = [("decimal", sign) for sign in signs]
        example = table.first(column.exceptions[shape])
        return _refused(column, "either_decimal", example, ways, likely=likely, other=other)
    units = column.keys("unit")
    if not lenient:
        if len(units) > 1 or (units and (_n_bare(column) or column.shapes["flag"])):
            return _mixed_units(column, table)
        asked = None if units else _in_brackets(column, table)
        asked = asked or _zero_or_missing(column)
        if asked is not None:
            return asked
        if _is_odd_sign(decimal, column, table):
            return _refused(
                column, "other_sign", table.example(column, "sign", decimal),
                kept=as_kind(column, "category"), number=as_kind(column, "number"),
            )  # fmt: skip
    unit = units[0] if units else ""
    reading = ColumnReading("number", decimal, unit=unit, lenient=lenient)
    fits = {*_NUMBERS} - ({"comma"} if decimal == "." else {"point"})
    evidence = numbers_words(_writing(column, decimal, table), unit)
    return _with_exceptions(column, table, "number", reading, fits, evidence)


def _writing(column: ColumnFacts, decimal: Decimal, table: TableFacts) -> str:
    shapes = column.shapes
    if decimal == "," and (shapes["comma"] or shapes["1,234"]):
        return "comma"
    if shapes["1,234"] and decimal == ".":
        return "comma_thousands"
    if shapes["1.234"] and decimal == ",":
        return "point_thousands"
    unclear = shapes["1.234"] and not (shapes["point"] or table.reading.decimal)
    return "three_digits" if unclear else ""


def _n_bare(column: ColumnFacts) -> int:
    return max(0, _n_numbers(column) - column.total("unit"))


def _signs(table: TableFacts) -> Counter[Decimal]:
    """Return how many columns have each decimal separator."""
    signs: tuple[tuple[str, Decimal], ...] = (("point", "."), ("comma", ","))
    return Counter(
        sign
        for other in table.columns.values()
        for shape, sign in signs
        if other.shapes[shape] > _MOSTLY * other.n
    )


def _is_odd_sign(decimal: Decimal, column: ColumnFacts, table: TableFacts) -> bool:
    other: Decimal = "." if decimal == "," else ","
    if not column.shapes["comma" if decimal == "," else "point"] or table.reading.decimal:
        return False
    signs, usual = _signs(table), "," if table.reader.delimiter == ";" else "."
    more = (signs[other], other == usual) > (signs[decimal], decimal == usual)
    return more and signs[other] > 0


def _decimal(column: ColumnFacts, table: TableFacts) -> Decimal | None:
    """Return the decimal separator of a column; None if it may be either."""
    shapes, given = column.shapes, table.reading.decimal
    point, comma = shapes["point"], shapes["comma"]
    if given is not None and bool(point) == bool(comma):
        return given
    if point or comma:
        return "." if point >= comma else ","
    if not (shapes["1.234"] or shapes["1,234"]):
        return "."
    if shapes["1.234"] and shapes["1,234"]:
        return None
    elsewhere = _signs(table)
    if len(elsewhere) == 1:
        [sign] = elsewhere
        return sign
    usual = not elsewhere and shapes["1.234"] and table.reader.delimiter in ("", ",")
    return "." if usual else None


def _mixed_units(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding:
    rows = Counter(
        {unit: n for (rule, unit), n in column.tally.items() if rule in ("unit", "flag")}
    )
    rows[""] = _n_bare(column)
    named = [unit for unit, n in rows.most_common(_PRINTED) if n]
    return _refused(
        column, "units", options=_drop(column), number=as_kind(column, "number"),
        units=tuple(table.example(column, "unit", unit) for unit in named),
    )  # fmt: skip


def _in_brackets(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding | None:
    bracketed = [*column.brackets.rows]
    negative = column.low < 0 or any(text.startswith(("-", "\u2212")) for text in column.texts)
    whole = all(re.fullmatch(r"\(\d+\)", text) for text in bracketed)
    if not bracketed or negative or not whole:
        return None
    return _refused(
        column, "brackets", examples=table.examples(column.brackets),
        minus=as_kind(column, "number"), kept=as_kind(column, "category"),
    )  # fmt: skip


def _zero_or_missing(column: ColumnFacts) -> ColumnUnderstanding | None:
    """Return a column with dashes, which may mean zero as in accounts; None without many."""
    dash = max(_DASHES, key=column.texts.__getitem__)
    rows = column.texts[dash]
    others = column.others
    if 10 * rows <= column.n or others.n != rows or 2 * (column.n - rows) > column.n:
        return None
    code = ("missing", f"{column.name}:{dash}")
    return _refused(column, "dashes", Example(dash), n=rows, all=column.n, code=code)


# --- texts that do not fit ------------------------------------------------------------------------


def _with_exceptions(
    column: ColumnFacts,
    table: TableFacts,
    kind: Kind,
    reading: ColumnReading,
    fits: set[str],
    evidence: str,
) -> ColumnUnderstanding:
    odd = all_exceptions(column, [shape for shape in column.exceptions if shape not in fits])
    lost = n_lost(column, kind, reading.dates) if reading.lenient else 0
    if lost and kind == "date":  # those in another order fit, and have no value
        odd.merge(column.exceptions.get("date", Exceptions()))
        odd.n = lost
    counted = with_more(evidence, column.n - odd.n, 0)
    decision = _column(column, kind, counted, reading)
    if not odd.n:
        usual = evidence in (numbers_words("", ""), *map(evidence_words, ("ymd", "day_counts")))
        doubt = Doubt(column.name, "reading", facts={"evidence": evidence})
        return decision if usual else replace(decision, doubt=doubt)
    if reading.lenient:
        counted = with_more(evidence, column.n - odd.n, max(0, odd.n - lost))
        facts = {"n": lost, "examples": table.examples(_without_value(odd, reading, lost))}
        doubt = Doubt(column.name, "lost", facts=facts)
        return replace(decision, evidence=counted, doubt=doubt if lost else None)
    facts = {"evidence": counted, "n": odd.n, "examples": table.examples(odd)}
    facts["total"] = any(map(is_total_word, odd.rows))  # no option leaves out rows in the table
    named = len(odd.rows) <= LISTED and odd.n == sum(odd.rows.values())
    named = named and set(column.exceptions) - fits <= {"other"}
    # As a number, 5.3* keeps its value.
    marked = [text for text in odd.rows if not text[-1].isalnum() and is_lenient(text)]
    named = named and not (reading.kind == "number" and marked)
    options: tuple[Option, ...] = (as_kind(column, "date" if kind == "date" else "number"),)
    if named:
        options = tuple(("missing", text) for text in odd.rows if not is_total_word(text))
    elif reading.kind == "time":  # as a number, a time of day would be missing
        options = _drop(column)
    elif kind == "date":
        facts |= _serial(odd, options[0])
    if reading.kind == "number":
        other: Decimal = "," if reading.decimal == "." else "."
        several = (text for text in odd.rows if text.count(reading.decimal) > 1)
        # There, the decimal separator of the others separates thousands.
        if thousands := next((text for text in several if match(text, other)), ""):
            facts |= {"sign": reading.decimal, "thousands": thousands}
            options = ()
    first = table.first(odd)
    doubt = Doubt(
        column.name, "exceptions", first.text, first.place, options, refused=True, facts=facts
    )
    return replace(decision, doubt=doubt)


def _without_value(odd: Exceptions, reading: ColumnReading, n: int) -> Exceptions:
    texts = list(odd.rows)
    values = replace(reading, lenient=True).values(texts_column(texts))
    lost = Exceptions()
    for text, value in zip(texts, values, strict=True):
        if value != value:
            lost.add(text, odd.rows[text], odd.first[text])
    lost.n = max(n, lost.n)
    return lost


def _serial(odd: Exceptions, asked: Option) -> dict[str, Any]:
    text = next((text for text in odd.rows if re.match(SERIAL, text)), None)
    if text is None:
        return {}
    [seconds] = ColumnReading("date", lenient=True).values(texts_column([text]))
    day = np.datetime64(int(seconds), "s").astype("datetime64[D]")
    return {"serial": text, "day": str(day), "asked": asked}


# --- dates ----------------------------------------------------------------------------------------


def _date(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding:
    if "date" not in column.exceptions:  # a person requested dates, so they may be day counts
        return _days_of_excel(column, table)
    example = table.first(column.exceptions["date"])
    order = _clear_order(column) or table.reading.dates
    if order is None:
        if column.tally["only", "dmy"] and column.tally["only", "mdy"]:
            return _refused(column, "two_orders", example, _drop(column), "date")
        if not column.tally["either", ""]:
            ranks = {o: (n_lost(column, "date", o), o != "ymd") for o in ORDERS}
            order = sorted(ORDERS, key=ranks.__getitem__)[0]
        elif example.text.count(".") >= 2:
            order = "dmy"  # only the day can be first then
        else:
            dmy, mdy = ("dates", "dmy"), ("dates", "mdy")
            return _refused(column, "either_order", example, [dmy, mdy], "date", dmy=dmy, mdy=mdy)
    months = {*column.keys("month")}
    languages = cldr().languages(months)
    if len(languages) > 1:
        named = tuple(languages.values())
        return _refused(column, "two_languages", example, _drop(column), "date", languages=named)
    language = next(iter(languages.values()), "") if months else ""
    pivot = pivot_of(column.keys(order))
    if pivot is None:
        return _refused(column, "two_centuries", example, _drop(column), "date")
    lenient = table.asked(column) == "date"
    reading = ColumnReading("date", dates=order, lenient=lenient, language=language, pivot=pivot)
    evidence = dates_words(order, 1900 + pivot if pivot != PIVOT else None)
    return _with_exceptions(column, table, "date", reading, {"date"}, evidence)


def _days_of_excel(column: ColumnFacts, table: TableFacts) -> ColumnUnderstanding:
    texts = [*all_exceptions(column, _NUMBERS).rows]
    texts += [f"{end:.10g}" for end in (column.low, column.high) if column.n_plain]
    odd = next((text for text in texts if not re.match(SERIAL, text)), None)
    if odd is not None:
        return _refused(column, "no_day_count", options=_drop(column), value=odd)
    reading = ColumnReading("date", dates="ymd", lenient=True)
    evidence = evidence_words("day_counts")
    return _with_exceptions(column, table, "date", reading, {"date", *_NUMBERS}, evidence)


def _clear_order(column: ColumnFacts) -> Order | None:
    """Return the order of dates with a day above 12; None if there are none, or two orders.

    Years of two digits may come first, as in 53-02-11.
    """
    day_first, month_first = (column.tally["only", order] for order in ("dmy", "mdy"))
    if bool(day_first) == bool(month_first):
        return None
    order: Order = "dmy" if day_first else "mdy"
    return "ymd" if n_lost(column, "date", "ymd") < n_lost(column, "date", order) else order


# --- categories -----------------------------------------------------------------------------------


def _like_numbers(column: ColumnFacts, table: TableFacts) -> Example | None:
    """Return a text if most look like numbers or dates in an unknown format."""
    noted = column.others
    like = [text for text in noted.rows if _LIKE_NUMBER.match(text)]
    enough = 5 * (noted.n + _n_numbers(column)) >= 4 * column.n
    if not like or 5 * len(like) < 4 * len(noted.rows) or not enough:
        return None
    return Example(like[0], table.reader.where(noted.first[like[0]]))


def _category(
    column: ColumnFacts, table: TableFacts, why: str = "", *, kept: bool = False
) -> ColumnUnderstanding:
    reading = ColumnReading("label" if table.asked(column) == "label" else "category")
    n = len(reading.categories(column.texts))
    if column.crowded:  # how many were seen until this was known depends on batches and threads
        evidence = suspicion = evidence_words("crowded", n=MAX_CATEGORIES)
    else:
        evidence = evidence_words("texts", n=n)
        suspicion = looks(sorted(column.texts), column.n)
    decision = _column(column, "category", evidence, reading)
    odd = None if kept or why else _like_numbers(column, table)
    if odd:
        # Nearly one per row would identify single rows; next to numbers, they are quantities.
        out = suspicion or _n_numbers(column)
        way = _drop(column) if out else (as_kind(column, "category"),)
        doubt = Doubt(column.name, "like_numbers", odd.text, odd.place, way, refused=n > FEW)
        return replace(decision, doubt=doubt)
    if (suspicion and not kept) or column.crowded:
        spaced = sum(" " in text for text in column.texts)
        doubt = Doubt(
            column.name, "texts", options=_drop(column), refused=column.crowded,
            facts={"evidence": suspicion},
        )  # fmt: skip
        kind: Kind = "text" if 2 * spaced > n else "id"
        return replace(decision, kind=kind, evidence=suspicion, doubt=doubt)
    if why:
        facts = {"n": _n_numbers(column), "all": column.n}
        decision = replace(decision, doubt=Doubt(column.name, why, facts=facts))
    if n == 1:
        return replace(decision, kind="constant", evidence=evidence_words("constant"))
    if n < len(column.texts):
        decision = replace(decision, evidence=evidence_words("labels", n=n, all=len(column.texts)))
    if kept:
        return decision
    return replace(decision, doubt=_doubt_of_labels(column) or decision.doubt)


def _doubt_of_labels(column: ColumnFacts) -> Doubt | None:
    kept = as_kind(column, "category")
    # Files of text and workbooks are read without these.
    words = [(text, rows) for text, rows in sorted(column.texts.items()) if text in MISSING_WORDS]
    if words:
        options = tuple(("missing", text) for text, _ in words)
        facts: dict[str, Any] = {"rows": words, "kept": kept}
        return Doubt(column.name, "words", words[0][0], options=options, facts=facts)
    groups = [group for group in labels.near(column.texts) if labels.is_asked(group)]
    if not groups:
        return None
    counted = [
        (labels.difference(group), [(text, column.texts[text]) for text in group])
        for group in groups
    ]
    facts = {"groups": counted, "apart": kept}
    options = (as_kind(column, "label"),)
    return Doubt(column.name, "labels", groups[0][0], options=options, facts=facts)


def looks(texts: Sequence[str], n_values: int) -> str:
    """Describe what is doubtful about the different texts of a column; nothing if they are few."""
    n = len(texts)
    if n_values > FEW and 2 * n > n_values:
        return evidence_words("one_per_row", n=n, rows=n_values)
    if n <= FEW:
        return ""
    if 2 * sum(_IDENTIFIER.fullmatch(text) is not None for text in texts) > n:
        return evidence_words("long_codes", n=n)
    words = sum(len(text.split()) for text in texts) / n
    letters = sum(map(len, texts)) / n
    if _REPEATS * n > n_values and (words >= 2.0 or letters > _LONG):
        few, many = numerals(f"{words:.2g}"), numerals(f"{letters:.0f}")
        return evidence_words("long_texts", n=n, words=few, letters=many)
    return ""


# --- any column -----------------------------------------------------------------------------------


def noting_total(
    decision: ColumnUnderstanding, column: ColumnFacts, table: TableFacts
) -> ColumnUnderstanding:
    """Return a column that notes rows with a word for a total."""
    others, n_most = column.others, max(1, column.n // 10)  # if more, it is a category
    if column.n < _FEW_ROWS:
        return decision
    doubt, where = decision.doubt, table.reader.where
    if doubt is not None and doubt.kind == "texts":  # without it, no total is recognised
        totals = [text for text in others.rows if begins_with_total(text)]
        if totals and sum(others.rows[text] for text in totals) <= n_most:
            first = Example(totals[0], where(others.first[totals[0]]))
            noted = replace(doubt, facts={**doubt.facts, "summing": first})
            return replace(decision, doubt=noted)
    if doubt is not None:
        return decision
    for text, rows in others.rows.items():
        if rows <= n_most and is_total_word(text):
            total = Doubt(column.name, "total", text, where(others.first[text]))
            return replace(decision, doubt=total)
    return decision


def with_infinities(
    decision: ColumnUnderstanding, column: ColumnFacts, table: TableFacts
) -> ColumnUnderstanding:
    """Return a column of numbers that holds infinities."""
    texts = [str(text) for rule, text in column.first if rule == "infinity"]
    places = [table.example(column, "infinity", text) for text in texts]
    doubt = Doubt(
        decision.name, "infinite", texts[0], places[0].place,
        tuple(("missing", text) for text in texts), refused=True,
        facts={"evidence": decision.evidence, "examples": tuple(places)},
    )  # fmt: skip
    return replace(decision, doubt=doubt)


def names_identifier(name: str) -> bool:
    """Return whether a column's name suggests an identifier."""
    names, owners, ends = ("|".join(lists()[f"id_{part}"]) for part in ("names", "owners", "ends"))
    return _has_word(name, rf"{names}|(?:{owners})[^a-z]*(?:{ends})?")


def _has_word(name: str, words: str) -> bool:
    return re.search(rf"(?i)(^|[^a-z])(?:{words})($|[^a-z])", name) is not None


def judged(
    decision: ColumnUnderstanding,
    column: ColumnFacts,
    ends: tuple[float, float],
    *,
    asks: bool,
    more: bool,
) -> ColumnUnderstanding:
    """Return a column of numbers, noting if it is constant, identifies rows, or holds a code.

    ``more``: there are more numbers than the first, which were compared.
    """
    if ends[0] == ends[1]:
        return replace(decision, kind="constant")
    if decision.kind != "number" or not asks:
        return decision
    if why := _numeric_identifier(column, ends, first=more):
        options = (("drop", decision.name),)
        doubt = Doubt(decision.name, "identifiers", options=options, facts={"evidence": why})
        return replace(decision, kind="id", doubt=doubt)
    if (odd := lone_code(*ends, column.inner)) is not None:
        return with_codes(decision, {f"{odd:.10g}": 0})  # all digits, because the option names it
    return decision


def _numeric_identifier(column: ColumnFacts, ends: tuple[float, float], *, first: bool) -> str:
    """Explain why whole numbers, all different, look like identifiers; empty if they do not.

    Among n random numbers out of R, the expected number of equal pairs is n^2 / 2R (the birthday
    paradox): if many are expected and there are none, this is no coincidence.
    """
    n = column.n_different
    if not n:
        return ""
    whole = evidence_words("first_different" if first else "different", n=n)
    if n**2 > 2 * _MOST_PAIRS * (ends[1] - ends[0] + 1):
        return evidence_words("row_numbers", found=whole)
    return evidence_words("id_name", found=whole) if names_identifier(column.name) else ""


def with_codes(decision: ColumnUnderstanding, codes: Mapping[str, int]) -> ColumnUnderstanding:
    """Return a column with the question whether some values are codes for missing ones."""
    options = tuple(("missing", text) for text in codes)
    facts = {"rows": [*codes.items()], "kept": as_kind(decision, decision.kind)}
    doubt = Doubt(decision.name, "codes", next(iter(codes)), options=options, facts=facts)
    return replace(decision, doubt=doubt)
