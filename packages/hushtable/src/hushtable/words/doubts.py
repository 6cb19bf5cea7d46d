"""Sentences on columns in doubt, and on what was found in a table.

One table each leads from the kind of a doubt, and of a finding, to its words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hushtable.language import N_, _, ngettext, numeral, numerals
from hushtable.words.options import typed_options


class Example(NamedTuple):
    """A text of a column: where it is first, and in how many rows; 0 if they are not counted."""

    text: str
    place: str = ""
    rows: int = 0


class Loss(NamedTuple):
    """Values that become missing if a column is read as an option says."""

    option: tuple[str, str]
    lost: int
    n: int
    examples: tuple[Example, ...] = ()


#: Number of letters of a text, of labels in a group, and of groups to print.
_LETTERS, _SPELLINGS, _GROUPS = 40, 4, 3
#: Facts about a doubt, by the names in its text.
Facts = Mapping[str, Any]


def n_rows(n: int) -> str:
    """Return a number of rows in words."""
    return ngettext("%(n)s row", "%(n)s rows", n)


def joined(words: Iterable[str], last: str = " and ") -> str:
    """Return words as a list, with a word before the last."""
    *others, end = words
    return f"{', '.join(others)}{_(last)}{end}" if others else end


def at(example: Example) -> str:
    """Return a text in quotation marks, and where it is."""
    if not example.place:
        return repr(example.text[:_LETTERS])
    return _("%(text)s in %(where)s", text=repr(example.text[:_LETTERS]), where=example.place)


def listed(examples: Sequence[Example], n: int) -> str:
    """Return texts, where the first of each is, and how many of ``n`` rows hold others."""
    words = ", ".join(
        at(example)
        + (_(" and %(n)s more", n=numeral(example.rows - 1)) if example.rows > 1 else "")
        for example in examples
    )
    rest = n - sum(example.rows for example in examples)
    return words + (_(", and %(n)s rows with other texts", n=numeral(rest)) if rest else "")


def counted_labels(group: Sequence[tuple[str, int]]) -> str:
    """Return the first few labels in words, each with its number of rows."""
    first, *others = group[:_SPELLINGS]
    words = [f"{first[0][:_LETTERS]!r} ({n_rows(first[1])})"]
    words += [f"{text[:_LETTERS]!r} ({numeral(rows)})" for text, rows in others]
    if len(group) > _SPELLINGS:
        words.append(_("%(n)s more", n=numeral(len(group) - _SPELLINGS)))
    return joined(words)


# --- doubts ---------------------------------------------------------------------------------------

#: Values are those of `hushtable.data.texts.doubt.Doubt`: its ``column``, ``example`` (text),
#: ``place`` (where) and facts. An option is in the form in which a person types it.
_SENTENCES = {
    "reading": "%(evidence)s",
    "unclear": N_("%(n)s of %(all)s texts are numbers"),
    "codes_kept": N_("codes (leading zeros, places such as 3E5, or more digits than a number "
        "can hold): kept as text"),
    "empty": N_("all its values are missing"),
    "no_hours": N_("it has no hours, only days: the hour is not a feature"),
    "total": N_("%(text)s in %(where)s: does this row sum up others?"),
    "infinite": N_("%(evidence)s and %(examples)s"),
    "dotted": N_("none has more than 59 hundredths: if they are times of day, write them as 9:05; "
        "%(number)s reads them as numbers"),
    "two_clocks": N_("some times have three parts, such as %(long)s, so those of two, such as "
        "%(short)s, may be hours and minutes, or minutes and seconds: write them all with "
        "hours, minutes and seconds, or leave the column out"),
    "brackets": N_("%(examples)s: brackets mean a minus in accounts, and a remark elsewhere: "
        "write a minus, or omit the brackets; %(minus)s reads them as negative, and %(kept)s "
        "keeps the texts"),
    "dashes": N_("%(text)s in %(n)s of %(all)s rows: if it means zero, as in accounts, write 0; "
        "if it means that the value is missing, add %(code)s"),
    "other_sign": N_("%(text)s in %(where)s: the other columns have another decimal sign, so "
        "this may be a list of codes; %(kept)s keeps the texts, and %(number)s reads numbers"),
    "foreign": N_("%(what)s are not read, such as %(examples)s from %(where)s on: %(way)s, or "
        "leave the column out; %(kept)s keeps the texts"),
    "either_decimal": N_("%(text)s in %(where)s may be above one thousand, or slightly above "
        "one (%(likely)s or %(other)s)"),
    "units": N_("the numbers have different units, %(units)s: convert them to one unit; leave "
        "the column out, or %(number)s reads the numbers as they are, and any other text as "
        "missing"),
    "either_order": N_("%(text)s in %(where)s may begin with the day or the month (%(dmy)s or "
        "%(mdy)s)"),
    "two_orders": N_("some begin with the day, others with the month, such as %(text)s in "
        "%(where)s: write them all in one order, or leave the column out"),
    "two_centuries": N_("the two-digit years, as in %(text)s in %(where)s, span a whole "
        "century, so each may belong to the last century or to this one: write years with four "
        "digits, or leave the column out"),
    "two_languages": N_("the month names, as in %(text)s in %(where)s, mean different months in "
        "%(languages)s: write months as numbers, or leave the column out"),
    "no_day_count": N_("%(value)s is not a day as Excel counts them (20000 is 1954-10-03, 59999 "
        "is 2064-04-07): correct it, or leave the column out"),
    "no_number": N_("none of its %(n)s texts is a number, for example %(sample)s: leave the "
        "column out, or keep it as text (%(kept)s)"),
    "no_date": N_("none of its %(n)s texts is a date, for example %(sample)s: leave the column "
        "out, or keep it as text (%(kept)s)"),
    "like_numbers": N_("texts that look like numbers or dates in an unknown format, such as "
        "%(text)s in %(where)s: write them in a different format, or keep them as texts"),
    "likert": N_("numbers and words for them, such as %(examples)s: write all as numbers, or "
        "all as words; %(kept)s keeps the texts, and %(number)s reads the numbers, and the "
        "words as missing"),
    "texts": "%(evidence)s",
    "identifiers": "%(evidence)s",
}  # fmt: skip


def doubt_words(kind: str, facts: Facts) -> str:
    """Return a doubt as a sentence; ``facts`` are the values of its kind."""
    lines = facts.get("lines", ())
    if kind in _COMPOSED:
        words = _COMPOSED[kind](facts)
    else:
        names = facts.keys() - {"lines", "loss"}
        words = _(_SENTENCES[kind], **{name: _fact(name, facts[name]) for name in names})
    words += _loss(facts)
    if (total := facts.get("summing")) is not None:
        sentence = _SENTENCES["total"]
        words += "; " + _(sentence, text=repr(total.text), where=total.place)
    if lines:
        words += _("; the rows from there on: %(lines)s", lines=", ".join(map(repr, lines)))
    return words


def _fact(name: str, value: Any) -> str:
    """Return a value of a sentence in words."""
    if isinstance(value, Example):
        return at(value)
    if name in ("units", "examples"):
        return joined(map(at, value)) if name == "units" else ", ".join(map(at, value))
    if name == "languages":
        return joined(value, N_(" or "))
    if isinstance(value, tuple):
        return typed_options([value])
    if isinstance(value, int):
        return numeral(value)
    return repr(value[:_LETTERS]) if name == "text" else _(str(value))


def _exceptions(facts: Facts) -> str:
    """Return words on texts that do not fit the others of their column."""
    counted = {"counted": facts["evidence"], "others": listed(facts["examples"], facts["n"])}
    words = _("%(counted)s and %(others)s", **counted)
    if facts.get("thousands"):
        words += _(
            "; %(sign)s is the decimal sign of the others, and separates thousands in "
            "%(text)s: write all numbers in one way, or leave the column out",
            sign=repr(facts["sign"]), text=repr(facts["thousands"]),
        )  # fmt: skip
    if "serial" in facts:
        words += _(
            "; %(asked)s reads numbers as days as Excel counts them: %(text)s is %(day)s",
            asked=typed_options([facts["asked"]]), text=facts["serial"], day=facts["day"],
        )  # fmt: skip
    if "names" in facts:
        words += _(
            "; each column of numbers holds a word in %(where)s: are these the names?",
            where=facts["names"],
        )
    if "below" in facts:
        words += _("; each column of numbers holds a word in %(where)s: are these units?",
                   where=facts["below"])  # fmt: skip
    if facts.get("total"):
        words += _("; delete rows that sum up others")
    return words


def _loss(facts: Facts) -> str:
    """Return words on the values that the proposed option loses, if it loses any."""
    if (loss := facts.get("loss")) is None:
        return ""
    words = _(
        "; %(asked)s would lose %(n)s of %(all)s values, which become missing",
        asked=typed_options([loss.option]), n=numeral(loss.lost), all=numeral(loss.n),
    )  # fmt: skip
    return f"{words}: {listed(loss.examples, loss.lost)}" if loss.examples else words


def _lost(facts: Facts) -> str:
    return ngettext(
        "as requested, %(n)s value becomes missing: %(which)s",
        "as requested, %(n)s values become missing: %(which)s",
        facts["n"], which=listed(facts["examples"], facts["n"]),
    )  # fmt: skip


def _words(facts: Facts) -> str:
    texts = joined([f"{text!r} ({n_rows(rows)})" for text, rows in facts["rows"]])
    return ngettext(
        "%(listed)s: does it mean that the value is missing? If not, add %(kept)s",
        "%(listed)s: do they mean that the value is missing? If not, add %(kept)s",
        len(facts["rows"]), listed=texts, kept=typed_options([facts["kept"]]),
    )  # fmt: skip


def _codes(facts: Facts) -> str:
    texts = joined(
        [f"{text} ({n_rows(rows)})" if rows else numerals(text) for text, rows in facts["rows"]]
    )
    doubt = ngettext(
        "%(listed)s is far from all other values: is it a code for a missing value?",
        "%(listed)s are far from all other values: are they codes for a missing value?",
        len(facts["rows"]), listed=texts,
    )  # fmt: skip
    return doubt + _(" If not, add %(kept)s", kept=typed_options([facts["kept"]]))


def _labels(facts: Facts) -> str:
    words = [
        _("%(labels)s differ only by %(what)s", labels=counted_labels(group), what=_(what))
        for what, group in facts["groups"][:_GROUPS]
    ]
    if (more := len(facts["groups"]) - _GROUPS) > 0:
        words.append(
            ngettext("so do labels of %(n)s more group", "so do labels of %(n)s more groups", more)
        )
    return _(
        "%(labels)s: are they the same label? If not, add %(apart)s",
        labels="; ".join(words), apart=typed_options([facts["apart"]]),
    )  # fmt: skip


_COMPOSED: Mapping[str, Callable[[Facts], str]] = {
    "exceptions": _exceptions,
    "lost": _lost,
    "words": _words,
    "codes": _codes,
    "labels": _labels,
}


def questions(columns: Iterable[Any]) -> list[str]:
    """Return a line for each doubt; columns with the same doubt share a line."""
    lines: dict[str, list[str]] = {}
    for column in columns:
        lines.setdefault(column.question, []).append(column.name)
    return [f"{joined(names)}: {words}" for words, names in lines.items()]


# --- evidence -------------------------------------------------------------------------------------

_EVIDENCE = {
    "empty": N_("no value in any row"),
    "truth": N_("true and false, as 1 and 0"),
    "answers": N_("yes and no in %(n)s spellings"),
    "clock": N_("times of day or durations"),
    "day_counts": N_("days as Excel counts them"),
    "in_doubt": N_("%(n)s texts in doubt"),
    "dmy": N_("dates, day first"),
    "mdy": N_("dates, month first"),
    "ymd": N_("dates"),
    "constant": N_("one text"),
    "texts": N_("%(n)s different texts"),
    "crowded": N_("more than %(n)s different texts"),
    "labels": N_("%(n)s labels in %(all)s spellings"),
    "entity": N_("identifies the entity of a reading"),
    "one_per_row": N_("%(n)s different texts in %(rows)s rows: identifiers, names or free text"),
    "long_codes": N_("%(n)s different texts, most of them long codes with digits: identifiers"),
    "long_texts": N_("%(n)s different texts, of %(words)s words and %(letters)s letters on "
        "average: names or free text"),
    "different": N_("%(n)s whole numbers, no two equal"),
    "first_different": N_("whole numbers, no two of the first %(n)s equal"),
    "row_numbers": N_("%(found)s: identifiers or row numbers"),
    "id_name": N_("%(found)s, and the column name suggests an identifier"),
    "number": N_("holds numbers"),
    "date": N_("holds dates"),
    "time": N_("holds times"),
    "boolean": N_("holds true and false"),
}  # fmt: skip


def evidence_words(kind: str, **facts: object) -> str:
    """Return the evidence for the kind of a column in words."""
    return _(
        _EVIDENCE[kind],
        **{
            name: numeral(value) if isinstance(value, int) else str(value)
            for name, value in facts.items()
        },
    )


#: How numbers are written, where this is unusual.
_WRITING = {
    "comma": N_(" with a decimal comma"),
    "comma_thousands": N_(" with commas as thousands separators"),
    "point_thousands": N_(" with points as thousands separators"),
    "three_digits": N_(" with a decimal point, and three digits after each"),
}


def numbers_words(writing: str, unit: str) -> str:
    """Return words for numbers, how they are written, and their unit."""
    words = _("numbers") + (_(_WRITING[writing]) if writing else "")
    return words + (_(", in %(unit)s", unit=unit) if unit else "")


def dates_words(order: str, first_year: int | None) -> str:
    """Return words for dates; ``first_year`` is that of the first year with two digits."""
    words = evidence_words(order)
    return words + (
        "" if first_year is None else _(", two-digit years from %(year)s on", year=first_year)
    )


def with_more(evidence: str, n: int, n_more: int) -> str:
    """Return evidence for ``n`` values, and for more that were read as requested."""
    words = f"{numeral(n)} {evidence}"
    if n_more:
        words += _(
            "; as requested, %(n)s more with a limit, a flag or a different separator",
            n=numeral(n_more),
        )
    return words


# --- findings -------------------------------------------------------------------------------------

#: Number of rows below which nothing counts as usual.
_FEW_ROWS = 20
_FINDINGS = {
    "constant": N_("%(name)s: every row holds %(text)s."),
    "constant_values": N_("%(name)s: each of %(n)s rows with a value holds %(text)s."),
    "copies": N_("%(names)s are copies: each tells what the others hold."),
    "label": N_("%(name)s looks like a label of outliers: leave it out of the model (%(drop)s)."),
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a text in quotation marks, with escapes for invisible characters."""
    text = text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + '"'


def finding_words(kind: str, *, columns: list[str], rows: int, **facts: Any) -> str:
    """Return a finding as a sentence."""
    if kind == "equal_rows":
        return ngettext(
            "%(n)s row is equal to an earlier row in all columns.",
            "%(n)s rows are equal to an earlier row in all columns.",
            rows,
        )
    if kind == "equal_but":
        return ngettext(
            "%(n)s row is equal to an earlier row in all columns but %(names)s.",
            "%(n)s rows are equal to an earlier row in all columns but %(names)s.",
            rows, names=joined(columns),
        )  # fmt: skip
    if kind == "equal_ids":
        return ngettext(
            "%(name)s: %(n)s row has the identifier of an earlier row.",
            "%(name)s: %(n)s rows have the identifier of an earlier row.",
            rows, name=columns[0],
        )  # fmt: skip
    if kind == "totals":
        label = quoted(facts["label"]) if facts["label"] else _("a missing value")
        return ngettext(
            "%(name)s: the row of %(label)s is the total of the others in %(names)s.",
            "%(name)s: rows of %(label)s are totals of the others in %(names)s.",
            rows, name=columns[0], label=label, names=joined(facts["names"]),
        )  # fmt: skip
    return _(
        _FINDINGS[kind],
        name=columns[0] if columns else "",
        names=joined(columns),
        n=numeral(rows),
        text=quoted(facts.get("text", "")),
        drop=typed_options([facts["drop"]] if "drop" in facts else []),
    )


def ended(words: str) -> str:
    """Return a sentence with its full stop."""
    return words if words.endswith(("?", ".")) else f"{words}."


def shape_words(n_rows: int, columns: Sequence[Any]) -> list[str]:
    """Return sentences on a table that shows too little of what is usual."""
    words = []
    if n_rows < _FEW_ROWS:
        words.append(
            ngettext(
                "%(n)s row is too few to determine what is unusual",
                "%(n)s rows are too few to determine what is unusual",
                n_rows,
            )
        )
    elif n_rows < len(columns):
        words.append(
            _(
                "%(n)s rows are few for %(columns)s columns: what is unusual in so many may be "
                "chance",
                n=numeral(n_rows),
                columns=numeral(len(columns)),
            )
        )
    if columns and n_rows > 1 and all(column.kind in ("constant", "empty") for column in columns):
        words.append(_("no column varies, so no row can be unusual"))
    return words
