"""Totals and other summaries among the rows of a table, and lines below it.

A reader passes the texts of doubtful rows; columns are read again only if these rows could be a
summary, judged by the first rows. Tested by ``tests/test_totals_of_tables.py``.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.columns import texts_column
from hushtable.errors import DataError
from hushtable.language import _, ngettext

#: Words for the sum of the rows above, in small letters, as a whole cell.
TOTAL_WORDS = (
    *("total", "totals", "grand total", "subtotal", "subtotals", "sub-total", "sum", "sums"),
    *("summe", "summen", "gesamt", "gesamtsumme", "gesamtergebnis", "insgesamt", "zwischensumme"),
    *("endsumme", "saldo", "total general", "total général", "sous-total", "totaux", "somme"),
    *("totale", "totali", "totale generale", "subtotale", "suma", "suma total", "suma końcowa"),
    *("soma", "total geral", "razem", "łącznie", "ogółem", "celkem", "součet", "mezisoučet"),
    *("totaal", "subtotaal", "eindtotaal", "summa", "totalt", "delsumma", "yhteensä", "i alt"),
    *("összesen", "végösszeg", "részösszeg", "toplam", "genel toplam", "ara toplam", "σύνολο"),
    *("γενικό σύνολο", "μερικό σύνολο", "итого", "всего", "общий итог", "сумма", "المجموع"),
    *(
        "الإجمالي",
        'סה"כ',
        "合計",
        "小計",
        "総計",
        "總計",
        "合计",
        "总计",
        "小计",
        "합계",
        "총계",
        "소계",
    ),
)
#: Words for other summaries; some are also names or categories.
_OTHER_WORDS = (
    "averages?|avg|means?|median|max|maximum|min|minimum|count|std|stdev|mittelwert|durchschnitt|"
    "anzahl|moyenne|médiane|media|mediana|promedio|média|máximo|mínimo|conteo|massimo|minimo|"
    "średnia|maksimum|liczba|průměr|počet|gemiddelde|aantal|medelvärde|medel|antal|átlag|ortalama|"
    "среднее|максимум|минимум|количество|μέσος όρος|平均|最大|最小|평균|المتوسط"
)
_N_ROWS = (
    r"\d[\d.,]* ?(?:rows?|records?|zeilen|datens[äa]tze|filas?|registros?|lignes?|righe|"
    r"linhas?|wierszy|rijen|rader|řádků|sor|sat\u0131r|строк[аи]?|записей|γραμμές|行|件|행)"
)


def _begins(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


class WordPattern:
    """A pattern of words, made when it is first needed: that takes a sixth of NumPy's import."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def match(self, text: str) -> re.Match[str] | None:
        """Match the beginning of a text; no match without a letter or an asterisk."""
        return self._made.match(text) if _LETTER.search(text) else None

    @cached_property
    def _made(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.IGNORECASE)


_LETTER = re.compile(r"[^\W\d_]|\*")
#: First words of a line that sums up the rows above it.
TOTAL = WordPattern(rf"\W*(?:{_begins(TOTAL_WORDS)}|{_N_ROWS})(?!\w)|\*+\s*$")
_OTHER = WordPattern(rf"\W*(?:{_OTHER_WORDS})(?!\w)")
#: First words of a line below a table.
_FOOTER = WordPattern(
    rf"\W*(?:{_N_ROWS}|(?:end|ende|fin|fine|fim|koniec|konec|einde|slut|slutt|son|vége|τέλος|конец|"
    r"printed|exported|generated|created|source|notes?|page|report|gedruckt|erstellt|quelle|"
    r"hinweis|seite|impreso|generado|fuente|nota|página|impresso|gerado|fonte|imprimé|généré|"
    r"stampato|generato|pagina|wydrukowano|wygenerowano|źródło|strona|afgedrukt|bron|utskriven|"
    r"vytištěno|zdroj|nyomtatva|forrás|yazd\u0131rma|kaynak|rapor|πηγή|распечатано|источник|отчет|"
    r"query|abfrage)(?!\w)|完|以上|終わり|结束|끝|نهاية)",
)
#: Numbers, dates and times of any country, roughly: names of columns do not match.
_NUMBER = re.compile(
    r"""\s*(?:[<>≤≥~+(-]\s*)*(?:[$€£¥]|[A-Z]{3}\s)?\s*-?
    (?:\d[\d.,'\s\u00a0\u202f]*(?:[eE][+-]?\d+)?\s*(?:[%€$£)-]|[A-Z]{3})?
    |[.,]\d+|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\.?(?:[T\s,]+\d{1,2}[:.]\d\d.*)?
    |\d{1,2}:\d\d(?::\d\d.*)?)\s*""",
    re.VERBOSE,
)
#: Text that is not part of a number.
_SIGNS = re.compile(r"[^\d.,eE+-]|[A-Za-z]{2,}")
#: Chance below which a row's numbers are not a coincidence; the same with empty fields.
_NO_CHANCE, _WITH_GAPS = 1e-6, 1e-3
#: Number of rows at the end that may be summaries; of first rows and columns to compare them with.
MOST_SUMMARIES, _FEW_FIRST, _FEW_COLUMNS = 8, 100, 24

#: Number of lines that a message lists.
_MOST_LISTED = 20

#: Returns the texts of a column, by its number, in the first so many rows.
Above = Callable[[int, int], pa.Array]


def is_number(field: str) -> bool:
    """Return whether a field looks like a number, a date or a time of any country."""
    return _NUMBER.fullmatch(field) is not None


def shape(field: str) -> str:
    """Return a field with the same letter for all letters, and the same digit for all digits."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", field))


@dataclass(frozen=True)
class FirstRows:
    """The texts of the first rows of a table, and the columns that are never empty in them."""

    rows: Sequence[Sequence[str]]
    always: Sequence[int]

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The columns whose first values are numbers, dates or times."""
        some = self.rows[:_FEW_FIRST]
        found = []
        for j in range(len(some[0]) if some else 0):
            values = [row[j] for row in some if row[j].strip()]
            if values and sum(map(is_number, values)) >= 0.8 * len(values):
                found.append(j)
        return tuple(found)

    def gaps(self, fields: Sequence[str]) -> list[int]:
        """Return the columns that a row leaves empty, but no other row does."""
        return [j for j in self.always if not fields[j].strip()]

    def first_texts(self, j: int) -> list[str]:
        """Return the texts of a column in the first rows, without empty ones."""
        return [row[j] for row in self.rows if row[j].strip()]

    def is_cut_off(self, text: str) -> bool:
        """Whether a text begins as the first fields do: a line that was cut off in the first."""
        mine = shape(text.strip())
        return any(shape(row[0].strip()).startswith(mine) for row in self.rows)

    def is_names(self, fields: Sequence[str]) -> bool:
        """Return whether a row looks like names: texts above numbers, without any number."""
        filled = [j for j, field in enumerate(fields) if field.strip()]
        words = not any(is_number(fields[j]) for j in filled)
        of_numbers = any(j in self.numeric and fields[j].strip() for j in filled)
        return len(filled) > 1 and words and of_numbers

    def is_footer(self, fields: Sequence[str]) -> bool:
        """Return whether a row is a line below the table, padded with empty fields."""
        filled = [j for j, field in enumerate(fields) if field.strip()]
        if len(filled) != 1 or len(self.gaps(fields)) < 2:
            return False
        [j] = filled
        text = fields[j]
        odd = j in self.numeric and not is_number(text)
        new = text not in self.first_texts(j) and not self.is_cut_off(text)
        return has_letters(text) and (odd or is_footer_text(text) or new)


def is_footer_text(text: str) -> bool:
    """Return whether a text begins like lines below a table."""
    return _FOOTER.match(text) is not None or TOTAL.match(text) is not None


def has_letters(text: str) -> bool:
    """Return whether a text has a letter of any script."""
    return any(c.isalpha() for c in text)


# --- at the end -----------------------------------------------------------------------------------


def n_summaries(last: Sequence[Sequence[str]], table: FirstRows, n_rows: int, above: Above) -> int:
    """Return how many of the last rows sum up those above them, or are below the table.

    ``last`` are the texts of the last rows, of ``n_rows`` in all.
    """
    most = 0
    for fields in reversed(last[-MOST_SUMMARIES:]):
        empty = not any(field.strip() for field in fields)
        if not (empty or table.is_footer(fields) or _may_be_summary(fields, table, n_rows)):
            break
        most += 1
    for k in range(min(most, n_rows - 3), 0, -1):
        rows = last[-k:]
        first = partial(_first, above, n_rows - k)
        if any(field.strip() for field in rows[0]) and all(
            not any(field.strip() for field in fields)
            or table.is_footer(fields)
            or is_summary(fields, table, first)
            for fields in rows
        ):
            return k
    return 0


def _first(above: Above, n_rows: int, j: int) -> pa.Array:
    return above(j, n_rows)


def _may_be_summary(fields: Sequence[str], table: FirstRows, n_rows: int) -> bool:
    """Return whether a row may be a summary, judged by the first rows."""
    filled = [j for j, field in enumerate(fields) if field.strip()]
    if not filled:
        return False
    label = fields[filled[0]]
    if table.gaps(fields) or TOTAL.match(label) or _OTHER.match(label):
        return True
    numeric = [j for j in table.numeric[:_FEW_COLUMNS] if is_number(fields[j])]
    sums = means = roughly = 0
    for j in numeric:
        likely = _likely(fields[j], table.first_texts(j), n_rows)
        sums, means, roughly = (
            sums + ("sum" in likely),
            means + ("mean" in likely),
            roughly + bool(likely),
        )
    return 0 < len(numeric) <= 2 * (sums + means) or (1 < len(numeric) == roughly)


def _likely(text: str, first: Sequence[str], n_rows: int = 0) -> str:
    """Return which summary of a column with these first rows a text may be; empty if none.

    A "mean" has more decimals than the column, a "rounded" one has not. The first rows must be a
    fair share of the ``n_rows`` of the table. In plain Python, because this runs for each file, and
    the patterns for texts that people write are slow.
    """
    for decimal in (".",) if _plain([text, *first]) is not None else (".", ","):
        [total], values = _roughly([text], decimal), _roughly(first, decimal)
        if np.isnan(total) or len(values) < 2 or not np.isfinite(values).all():
            continue
        if abs(total) > np.abs(values).max():
            one_sign = (values >= 0).all() or (values <= 0).all()
            least = abs(values.sum()) * max(1.0, n_rows / len(values) / 30)
            if not one_sign or abs(total) >= 0.5 * least:
                return "sum"
        elif values.min() < total < values.max() and not (values == total).any():
            decimals = _decimals(text, decimal)
            if decimals > max(_decimals(one, decimal) for one in first):
                return "mean"
            error = 3 * values.std() / np.sqrt(len(values))
            if abs(total - values.mean()) <= error + 10.0**-decimals:
                return "rounded"
    return ""


def _plain(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Return numbers as computers write them; None if any text is not a number."""
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return None


def _roughly(texts: Sequence[str], decimal: str) -> NDArray[np.float64]:
    """Return the numbers in texts with this decimal separator, whatever surrounds them."""
    if decimal == "." and (plain := _plain(texts)) is not None:
        return plain
    other = "." if decimal == "," else ","
    found = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        with contextlib.suppress(ValueError):
            found[i] = float(_SIGNS.sub("", text.replace(other, "")).replace(decimal, "."))
    return found


def is_summary(fields: Sequence[str], table: FirstRows, above: Callable[[int], pa.Array]) -> bool:
    """Return whether a row sums up the rows above it; ``above`` returns a column of these."""
    filled = [j for j, field in enumerate(fields) if field.strip()]
    if not filled:
        return False
    label, gaps = fields[filled[0]], table.gaps(fields)
    again = label in table.first_texts(filled[0])  # then it is a category or a name
    named = TOTAL.match(label) is not None and not again
    other = _OTHER.match(label) is not None and not again
    if gaps and named:
        return True
    numeric = [j for j in filled if j in table.numeric and is_number(fields[j])][:_FEW_COLUMNS]
    found = {
        j: dict(_statistics(fields[j], above(j)))
        for j in numeric
        if other or _likely(fields[j], table.first_texts(j))
    }
    if other and (gaps or len(numeric) > 1) and numeric and all(found.values()):
        return True
    chance, hits = 1.0, 0
    for one in found.values():
        chances = [one[name] for name in ("sum", "mean") if name in one]
        chance, hits = chance * min(chances, default=1.0), hits + bool(chances)
    if gaps or named:
        return chance <= _WITH_GAPS
    return 2 * hits >= len(numeric) and chance <= _NO_CHANCE


def _readings(text: str, column: pa.Array) -> Iterator[tuple[float, NDArray[np.float64], int, int]]:
    """Yield the number, the column's numbers, and the decimals of the text and of the column.

    For each possible decimal separator.
    """
    from hushtable.data.texts import numbers  # it needs the readers

    one = texts_column([text])
    plain = None if numbers.plain(one) is None else numbers.plain(column)
    for decimal in numbers.DECIMALS if plain is None else numbers.DECIMALS[:1]:
        values = numbers.values(column, decimal) if plain is None else plain
        [total] = numbers.values(one, decimal)
        values = values[~np.isnan(values)]
        if len(values) < 2 or len(values) < len(column) - column.null_count or np.isnan(total):
            continue
        decimals = _decimals(text, decimal)
        some = column.slice(0, _FEW_FIRST).drop_null().to_pylist()
        most = max((_decimals(other, decimal) for other in some), default=0)
        yield float(total), values, decimals, most


def _decimals(text: str, decimal: str) -> int:
    """Return the number of digits after the decimal separator of a number."""
    behind = text.rpartition(decimal)[2] if decimal in text else ""
    return len(behind) - len(behind.lstrip("0123456789"))


def _statistics(text: str, above: pa.Array) -> Iterator[tuple[str, float]]:
    """Yield which summary of a column a text is, and the chance that another row has that value."""
    for total, values, decimals, most in _readings(text, above):
        half, spread = 0.501 * 10.0**-decimals, float(np.ptp(values))
        # Rounded values may add up to slightly more or less than the originals.
        rounded = np.sqrt(len(values)) * 10.0**-most if most else 0.0
        near = abs(total - values.sum()) <= half + rounded + 2e-15 * abs(total)
        if abs(total) > np.abs(values).max() and near:
            yield "sum", 10.0 ** -min(6, int(np.count_nonzero(values)))
        if spread == 0.0:
            continue
        if abs(total - values.mean()) <= half and not (values == total).any():
            yield "mean", min(1.0, 2 * half / spread) * (1e-3 if decimals > most else 1.0)
        if total in (values.min(), values.max(), len(values)):
            yield "bound or count", 1.0
        for other in (np.median(values), values.std(), values.std(ddof=1)):
            if abs(total - other) <= half:
                yield "median or deviation", 1.0


# --- in the middle --------------------------------------------------------------------------------


def subtotals(
    rows: Sequence[tuple[int, Sequence[str]]], table: FirstRows, above: Callable[[int], pa.Array]
) -> list[int]:
    """Return the numbers of the rows that sum up those since the last such row, or all above.

    ``rows`` are numbers and texts of rows with empty fields that others do not leave empty.
    """
    from hushtable.data.texts import numbers  # it needs the readers

    likely = [(row, fields) for row, fields in rows if starts_with_total(fields)]
    at = np.array([row for row, _ in likely], np.int64)
    columns = {j for _, fields in likely for j in table.numeric if is_number(fields[j])}
    found = np.zeros(len(at), bool)
    for j in sorted(columns)[:_FEW_COLUMNS]:
        texts = above(j)
        for decimal in numbers.DECIMALS:
            values = np.nan_to_num(numbers.values(texts, decimal))
            own, values[at] = values[at], 0.0
            so_far = np.cumsum(values)[at]
            since = np.diff(so_far, prepend=0.0)
            found |= (own != 0.0) & (np.isclose(own, since) | np.isclose(own, so_far))
    return [int(row) for row in at[found]]


def starts_with_summary(fields: Sequence[str]) -> bool:
    """Return whether the first text of a row is a word for a total or another summary."""
    label = next((field for field in fields if field.strip()), "")
    return (TOTAL.match(label) or _OTHER.match(label)) is not None


def is_total_word(text: str) -> bool:
    """Return whether a cell is a word for a total."""
    return text.casefold().strip(" :*") in TOTAL_WORDS


def starts_with_total(fields: Sequence[str]) -> bool:
    """Return whether the first text of a row is a word for a total."""
    label = next((field for field in fields if field.strip()), "")
    return TOTAL.match(label) is not None


# --- words ----------------------------------------------------------------------------------------


def left_out_words(n: int, begins: str) -> str:
    """Return words on the skipped last lines, and how they begin, if that is known."""
    begins = begins[:40].rstrip()
    words = ngettext(
        "of its lines, the last is left out", "of its lines, the last %(n)s are left out", n
    )
    return words + (_(", from %(text)s on", text=repr(begins)) if begins else "")


def skipping(n: int) -> str:
    """Return the line that states the option that skips the last lines."""
    return f"\nAdd: --read skip_footer={n}"


def total_refused(where: str, begins: str, n: int, *, several: bool) -> DataError:
    """Return the error for last rows that look like totals."""
    looks = (
        "look like totals, not like rows: the first"
        if several
        else ("looks like a total, not like a row: it")
    )
    them = "them" if several else "it"
    return DataError(
        f"{where}, the last, {looks} begins {begins!r}. Delete {them}, or export without totals"
        f"{skipping(n)}"
    )


def subtotals_refused(source: str, kind: str, lines: Sequence[int], begins: str) -> DataError:
    """Return the error for rows in the middle that sum up others."""
    more = f" and {len(lines) - _MOST_LISTED:,} more" if len(lines) > _MOST_LISTED else ""
    listed = ", ".join(map(str, lines[:_MOST_LISTED]))
    where = f"{kind} {listed}{more} add" if len(lines) > 1 else f"{kind[:-1]} {listed} adds"
    these = f"these {kind}" if len(lines) > 1 else f"this {kind[:-1]}"
    return DataError(
        f"{source}: {where} up rows above: the first begins {begins[:40]!r}. Delete {these}, or "
        "export without subtotals"
    )
