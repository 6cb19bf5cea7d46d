"""Totals, footers and further tables below or among the rows of a table: a person is asked.

Words and empty fields show them; no sums are computed. Lines at the end can be left out, and a
person who says that none is to be left out is not asked.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hushtable.errors import DataError
from hushtable.language import _, ngettext
from hushtable.words.refusals import refusal, refused

#: Words for the sum of the rows above, in small letters, as a whole cell.
_TOTALS = frozenset((
    *("total", "totals", "grand total", "subtotal", "subtotals", "sub total", "sum", "sums"),
    *("summe", "summen", "gesamt", "gesamtsumme", "gesamtergebnis", "insgesamt", "zwischensumme"),
    *("total general", "total général", "sous total", "totaux", "somme", "totale", "totali"),
    *("subtotale", "suma", "suma total", "soma", "total geral", "razem", "ogółem", "totaal"),
    *("toplam", "genel toplam", "ara toplam", "итого", "всего", "общий итог", "сумма"),
    *("合計", "小計", "総計", "總計", "合计", "总计", "小计", "합계", "총계", "소계"),
))  # fmt: skip
_MOST_WORDS = 2
#: Numbers, dates and times of any country, roughly: names of columns do not match.
_NUMBER = re.compile(
    r"""\s*(?:[<>≤≥~+(-]\s*)*(?:[$€£¥]|[A-Z]{3}\s)?\s*-?
    (?:\d[\d.,'\s\u00a0\u202f]*(?:[eE][+-]?\d+)?\s*(?:[%€$£)-]|[A-Z]{3})?
    |[.,]\d+|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\.?(?:[T\s,]+\d{1,2}[:.]\d\d.*)?
    |\d{1,2}:\d\d(?::\d\d.*)?)\s*""",
    re.VERBOSE,
)
#: Number of rows at the end that may be summaries; of first rows to compare them with; of rows from
#: which a field that all of them fill shows something.
MOST_BELOW, _FEW_FIRST, _ENOUGH = 8, 100, 10
#: Least number of rows above totals and notes.
_LEAST_ROWS = 3
#: Number of rows that a message lists.
MOST_LISTED = 20


def is_number(field: str) -> bool:
    """Return whether a field looks like a number, a date or a time of any country."""
    return _NUMBER.fullmatch(field) is not None


def shape(field: str) -> str:
    """Return a field with the same letter for all letters, and the same digit for all digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", field))


def is_total_word(text: str) -> bool:
    """Return whether a cell is a word for a total."""
    return text.casefold().strip(" :*").replace("-", " ") in _TOTALS


def begins_with_total(text: str) -> bool:
    """Return whether a text is a word for a total, or begins with one, as in ``Total (n=40)``."""
    words = re.findall(r"[^\W\d_]+|[\d_]", text.casefold())
    return any(" ".join(words[:n]) in _TOTALS for n in range(1, _MOST_WORDS + 1))


def _label(fields: Sequence[str]) -> str:
    return next((field for field in fields if field.strip()), "")


@dataclass(frozen=True)
class FirstRows:
    """The texts of the first rows of a table, as a measure for further ones."""

    rows: Sequence[Sequence[str]]
    #: Columns whose values are numbers, dates or times; and those that are never empty.
    numeric: frozenset[int]
    always: Sequence[int]

    @classmethod
    def of(cls, rows: Sequence[Sequence[str]], width: int) -> "FirstRows":
        """Measure rows of as many fields as there are columns, but not the last, nor totals."""
        rows = rows[: max(len(rows) // 2, len(rows) - MOST_BELOW)]
        whole = [row for row in rows if all(row) or not begins_with_total(_label(row))]
        rows = [row for row in whole if any(row)][:_FEW_FIRST]
        numeric = set()
        for j in range(width):
            values = [row[j] for row in rows if row[j].strip()]
            if values and sum(map(is_number, values)) >= 0.8 * len(values):
                numeric.add(j)
        every = range(width) if len(rows) > 2 else ()
        always = [j for j in every if all(row[j].strip() for row in rows)]
        return cls(rows, frozenset(numeric), always)

    def gaps(self, fields: Sequence[str]) -> int:
        """Return how many columns a row leaves empty that the first rows fill."""
        return sum(not fields[j].strip() for j in self.always)

    def is_names(self, fields: Sequence[str]) -> bool:
        """Return whether a row looks like names: texts above numbers, without any number."""
        filled = [j for j, field in enumerate(fields) if field.strip()]
        words = not any(is_number(fields[j]) for j in filled)
        return len(filled) > 1 and words and any(j in self.numeric for j in filled)

    def is_total(self, fields: Sequence[str]) -> bool:
        """Return whether the first text of a row is a word for a total, and no category."""
        label = _label(fields)
        return begins_with_total(label) and not any(label in row for row in self.rows)

    def is_bare(self, fields: Sequence[str]) -> bool:
        """Return whether a row leaves most of those fields empty that all the first rows fill."""
        gaps = self.gaps(fields)
        most = gaps > 1 and (2 * gaps >= len(self.always) or not fields[self.always[0]].strip())
        return most and len(self.rows) >= _ENOUGH

    def begins_like(self, fields: Sequence[str]) -> bool:
        """Return whether a row begins as the first rows do: it may be one that was cut off."""
        mine = shape(fields[0].strip())
        return any(shape(row[0].strip()).startswith(mine) for row in self.rows)

    def n_below(self, last: Sequence[Sequence[str]], n_rows: int) -> int:
        """Return how many of the ``last`` of all rows are totals or notes below the table."""
        n = 0
        for k, fields in enumerate(reversed(last), 1):
            if any(fields) and (self.is_total(fields) or self.is_bare(fields)):
                n = k
            elif not self.gaps(fields):
                break
        return max(0, min(n, n_rows - _LEAST_ROWS))


class BelowError(DataError):
    """Lines at the end are not rows: with the number of them to leave out, or 0 if that fails."""

    def __init__(self, words: str, n: int = 0) -> None:
        super().__init__(words)
        self.n = n


def below_error(words: str, n: int, read: Callable[[int], object]) -> BelowError:
    """Return an error that proposes to leave out the last ``n`` lines, if ``read`` then succeeds.

    Then there may be further ones above that are not rows either.
    """
    try:
        read(n)
    except BelowError as error:
        n = error.n
    except DataError:
        n = 0
    return BelowError(f"{words}\nAdd: --read skip_footer={n}" if n else words, n)


def repeated_words(numbers: Sequence[int]) -> str:
    """Return words on lines that repeat the names."""
    listed = ", ".join(map(str, numbers[:MOST_LISTED]))
    return ngettext(
        "line %(lines)s repeats the names, and is left out",
        "lines %(lines)s repeat the names, and are left out",
        len(numbers),
        lines=listed + (", ..." if len(numbers) > MOST_LISTED else ""),
    )


def left_out_words(n: int, begins: str) -> str:
    """Return words on the skipped last lines, and how they begin."""
    begins = begins[:40].rstrip()
    words = ngettext(
        "of its lines, the last is left out", "of its lines, the last %(n)s are left out", n
    )
    return words + (_(", from %(text)s on", text=repr(begins)) if begins else "")


def below_words(
    source: str, line: str, first: int, last: int, begins: str, what: str = "notes"
) -> str:
    """Return words on the last rows of a table; ``line`` is what a row is called."""
    return refusal(
        "below" if first < last else "below_last", source=source, word=line, number=first,
        last=last, what=refusal(what), text=begins[:40].rstrip(),
    )  # fmt: skip


def totals_error(source: str, line: str, numbers: Sequence[int], n: int, begins: str) -> DataError:
    """Return an error about ``n`` rows among the others that are totals of them."""
    more = refusal("more", n=n - MOST_LISTED) if n > MOST_LISTED else ""
    listed = ", ".join(map(str, numbers[:MOST_LISTED]))
    return refused(
        "totals" if n > 1 else "total", source=source, word=line, numbers=listed, more=more,
        text=begins[:40],
    )  # fmt: skip
