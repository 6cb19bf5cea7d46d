"""The data quality of a table: what a person should see of its columns and rows before a fit.

One pass over the rows. Each value becomes 64 bits; sums of these over a row, and over a column,
tell equal rows and equal columns. Labels are counted while they are few, and numbers are kept for
some of the rows. Nothing is changed, and nothing decided: a finding is a sentence for a person.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, as_numbers, as_texts, filled, is_text, texts_column
from hushtable.data.persons import among
from hushtable.data.readers import Reader, no_rows
from hushtable.data.texts import numbers
from hushtable.data.texts.reading import (
    ColumnUnderstanding,
    Reading,
    plain_texts,
    without_blanks,
    without_named,
)
from hushtable.data.texts.seen import FEW, NINES, taken

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

#: Different values of a column that are counted at most, and the letters of its labels.
MAX_DIFFERENT, _MAX_LETTERS = 1_000, 1 << 20
#: Rows that a finding gives as examples, values that a column does, and letters of each.
_ROWS, _VALUES, _LETTERS = 5, 3, 80
#: Groups of labels that are reported of a column, and labels of a group.
_GROUPS = 5
#: Rows in the sample of numbers: from so many to twice as many; and values in all.
_SAMPLE, _SAMPLE_VALUES = 16_384, 1 << 22
#: Bytes beyond which a text is hashed by itself.
_LONG = 128
#: Rows below which equal columns are taken for chance.
_FEW_ROWS = 10
#: Cells that stand for a total, in small letters.
_TOTALS = texts_column(
    (
        *("total", "totals", "grand total", "subtotal", "sub-total", "sum", "sums", "summe"),
        *("summen", "gesamt", "gesamtsumme", "gesamtergebnis", "insgesamt", "zwischensumme"),
        *("total general", "total général", "totaal", "totale", "totali", "totaux", "somme"),
        *("suma", "suma total", "summa", "razem", "łącznie", "celkem", "összesen", "yhteensä"),
        *("i alt", "toplam", "genel toplam", "σύνολο", "итого", "всего", "المجموع", 'סה"כ'),
        *("合計", "小計", "總計", "合计", "总计", "小计", "합계", "총계"),
    )
)
#: Small letters that look like Latin ones, or whose capitals do. The Greek mu is none of them:
#: micrograms are no milligrams.
_LOOK_ALIKE = str.maketrans("авекмнорстхуіѕјαβεζηικορτυχ", "abekmhopctxyisjabezhikoptyx")
#: Days that programs write for a missing one, in seconds since 1970.
_DAYS = ("1899-12-30", "1899-12-31", "1900-01-01", "1970-01-01", "2099-12-31", "9999-12-31")
_DEFAULT_DAYS = np.array(_DAYS, "datetime64[s]").astype(np.int64).astype(np.float64)
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_MISSING = np.uint64(0x2545_F491_4F6C_DD1D)
_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)


@dataclass(frozen=True)
class QualityFinding:
    """A finding about columns or rows.

    Attributes
    ----------
    kind : {"constant", "labels", "sentinel", "duplicates", "copies", "total", "missing"}
        Of the finding.
    columns : tuple of str
        Names of the columns it concerns; empty for whole rows.
    words : str
        A sentence, with values and counts.
    rows : int
        How many rows it concerns.
    examples : tuple of int
        Numbers of the first of these rows, from 0, at most 5; empty where all rows are concerned.
    """

    kind: Literal["constant", "labels", "sentinel", "duplicates", "copies", "total", "missing"]
    columns: tuple[str, ...]
    words: str
    rows: int
    examples: tuple[int, ...] = ()


@dataclass(frozen=True)
class ColumnQuality:
    """A column at a glance.

    Attributes
    ----------
    name : str
        Of the column.
    n_missing : int
        Rows in which it is null, empty or blank, or holds what stands for a missing value.
    examples : tuple of str
        The first different values, at most 3, as they are written; long ones are cut.
    n_different : int or None
        Different values; None if they are more than 1,000, or too long to be counted.
    """

    name: str
    n_missing: int
    examples: tuple[str, ...]
    n_different: int | None


@dataclass(frozen=True)
class TableQuality:
    """The data quality of a table.

    Attributes
    ----------
    n_rows : int
        Of the table.
    columns : tuple of ColumnQuality
        One for each column, in order.
    findings : tuple of QualityFinding
        First about columns, then about rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import read, table_quality
    >>> table = pa.table({"ward": ["a", "b", None], "unit": ["ml", "ml", "ml"]})
    >>> quality = table_quality(read(table))
    >>> quality.columns[0]
    ColumnQuality(name='ward', n_missing=1, examples=('a', 'b'), n_different=2)
    >>> [one.words for one in quality.findings]
    ['unit: every row holds "ml".']
    """

    n_rows: int
    columns: tuple[ColumnQuality, ...]
    findings: tuple[QualityFinding, ...]


def table_quality(reader: Reader, understood: Sequence[ColumnUnderstanding] = ()) -> TableQuality:
    """Look through a table once, and report its data quality.

    Parameters
    ----------
    reader : Reader
        Rows, as `read` returns them.
    understood : sequence of ColumnUnderstanding, optional
        The columns as `understand` returns them: says which columns are identifiers, how texts
        become numbers, and which values may stand for a missing one.

    Returns
    -------
    TableQuality

    Raises
    ------
    DataError
        If there is no row, or rows cannot be read.

    Notes
    -----
    Equal rows are found by a fingerprint of 64 bits for each row, held in memory. The chance that
    two different ones of n rows have the same one is about n^2 / 2^65: 3 in 10^8 for 10^6 rows. It
    is no protection from somebody who looks for rows that collide. Texts are compared as they are
    written: ``1.0`` and ``1`` differ in a CSV file.

    Values that stand apart and columns that are a multiple of each other are looked for in a
    sample of evenly spaced rows; it is the whole table up to 32,768 rows and 128 columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import read, table_quality
    >>> rows = read(pa.table({"ward": ["ICU", "icu ", "ICU", "b"], "pulse": [60, 71, 60, 80]}))
    >>> for one in table_quality(rows).findings:
    ...     print(one.kind, one.rows, one.examples, one.words)
    labels 1 (1,) ward: "ICU" (2 rows) and "icu " (1 row) may be the same label.
    duplicates 1 (2,) 1 row is equal to an earlier row in all columns.
    """
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    known = {one.name: one for one in understood}
    reading = reader.reading or Reading()
    rows = _RowsSeen([_ColumnSeen(name, j, known.get(name)) for j, name in enumerate(names)])
    for batch in reader.read():
        if len(batch):
            rows.add(batch, reading)
    if rows.n == 0:
        raise no_rows(reader)
    findings = [
        *(one for column in rows.columns for one in column.findings(rows)),
        *_copies(rows),
        *_duplicates(rows, reading.entity),
        *_totals(rows),
    ]
    columns = tuple(column.quality() for column in rows.columns)
    return TableQuality(rows.n, columns, tuple(findings))


# --- one pass -------------------------------------------------------------------------------------


class _RowsSeen:
    """The columns of a table, and a fingerprint of each row."""

    def __init__(self, columns: "list[_ColumnSeen]") -> None:
        self.columns = columns
        self.n = 0
        #: Every so many rows, one is in the sample.
        self.stride = 1
        self._most = 2 * max(512, min(_SAMPLE, _SAMPLE_VALUES // (2 * max(1, len(columns)))))
        #: Of all columns.
        self.whole: list[Words] = []
        #: Of all columns but identifiers; None if there are none, or nothing else.
        self.but_ids: list[Words] | None = None
        n_ids = sum(column.is_id for column in columns)
        if 0 < n_ids < len(columns):
            self.but_ids = []

    def add(self, batch: Any, reading: Reading) -> None:
        """Look at a batch."""
        start, n = self.n, len(batch)
        while (start + n) // self.stride >= self._most:
            self.stride *= 2
            for column in self.columns:
                column.thin()
        sampled = np.arange(-start % self.stride, n, self.stride)
        places = _mixed(np.arange(start, start + n, dtype=np.uint64)) | np.uint64(1)
        other, ids = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        for j, column in enumerate(self.columns):
            if isinstance(batch, np.ndarray):
                values = as_column(np.ascontiguousarray(batch[:, j]))
            else:
                values = batch.column(j)
            words = column.add(reading.without_missing(values), start, sampled)
            column.print = (column.print + int(np.dot(words, places))) % 2**64
            weighted = words * column.weight
            if column.is_id:
                ids += weighted
            else:
                other += weighted
        self.whole.append(other + ids)
        if self.but_ids is not None:
            self.but_ids.append(other)
        self.n += n


@dataclass
class _LabelSeen:
    """A label: in how many rows, and the first of them."""

    n: int = 0
    rows: list[int] = field(default_factory=list)


class _ColumnSeen:
    """What one pass finds in a column, batch by batch."""

    def __init__(self, name: str, j: int, understood: ColumnUnderstanding | None) -> None:
        self.name, self.understood = name, understood
        self.is_id = understood is not None and understood.kind == "id"
        self.form = understood.reading.kind if understood and understood.reading else None
        #: Whether all texts were numbers so far; or are read as numbers, dates or the like.
        self.numeric = not self.is_id and (
            understood is None or self.form not in (None, "category")
        )
        self.is_date = self.form in ("date", "time")
        self.is_text = False
        self.n_missing = 0
        self.examples: list[str] = []
        #: While they are few.
        self.labels: dict[str, _LabelSeen] | None = {}
        self._letters = 0
        self.weight = _mixed(np.array([j + 1], np.uint64))[0] | np.uint64(1)
        #: Of all values with their places, to tell equal columns.
        self.print = 0
        #: Of an identifier, each row's.
        self.ids: list[Words] = []
        self.sample: list[Floats] = []
        #: Of the numbers above the last row.
        self.n_values, self.sum, self.largest, self.last = 0, 0.0, 0.0, np.nan
        self.totals = _LabelSeen()
        #: Rows with values of which somebody should say whether they stand for a missing one.
        self.doubtful = _LabelSeen()
        options = understood.options if understood else ()
        self._named = tuple(text for flag, text in options if flag == "--missing")

    def add(self, values: Any, start: int, sampled: NDArray[np.int64]) -> Words:
        """Look at values without what stands for missing; return 64 bits for each."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if is_text(values.type):
            self.is_text = True
            values = plain_texts(values)
            words, blank = _text_words(values)
            if blank.any():
                values = _without_blank(values, blank)
            found = self._numbers_of_texts(values, sampled)
            missing = numbers.mask(pc.is_null(values))
            if found is None or np.count_nonzero(np.isnan(found)) > missing.sum():
                _note(self.totals, _is_total(values), start)
        else:
            self.is_date |= pa.types.is_temporal(values.type)
            found = _as_floats(values, self.name, start)
            words, missing = _number_words(values, found), np.isnan(found)
            self._add_numbers(found, sampled)
        words = _mixed(words)
        words[missing] = _MISSING
        self.n_missing += int(missing.sum())
        if self._named:
            gone = without_named(values, self._named, self._decimal)
            _note(self.doubtful, numbers.mask(pc.is_null(gone)) & ~missing, start)
        if self.labels is not None:
            self._count(values, start)
        if self.is_id:
            self.ids.append(words)
        return words

    @property
    def _decimal(self) -> numbers.Decimal | None:
        read = self.understood and self.understood.reading
        return read.decimal if read else None

    def _numbers_of_texts(self, texts: Any, sampled: NDArray[np.int64]) -> Floats | None:
        """Return the numbers that texts say, if they do; days are read in the sample alone."""
        read = self.understood.reading if self.understood else None
        if not self.numeric:
            return None
        if self.is_date and read is not None:
            self.sample.append(read.values(taken(texts, sampled)))
            return None
        found = numbers.plain(texts) if read is None else read.values(texts)
        if found is None:
            self.numeric, self.sample = False, []
            return None
        self._add_numbers(found, sampled)
        return found

    def _add_numbers(self, values: Floats, sampled: NDArray[np.int64]) -> None:
        self.sample.append(values[sampled])
        if self.is_date:
            return
        above = np.append(self.last, values[:-1])
        above = above[np.isfinite(above)]
        with np.errstate(over="ignore", invalid="ignore"):
            self.n_values += len(above)
            self.sum += float(above.sum())
        self.largest = max(self.largest, float(np.abs(above).max(initial=0.0)))
        self.last = float(values[-1])

    def thin(self) -> None:
        """Drop every second row of the sample."""
        if self.sample:
            self.sample = [np.concatenate(self.sample)[::2]]

    def _count(self, values: Any, start: int) -> None:
        """Count the labels of a batch, unless they are too many."""
        assert self.labels is not None
        if pa.types.is_null(values.type):
            return
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        encoded = values.dictionary_encode()
        different, few = encoded.dictionary, len(encoded.dictionary) <= MAX_DIFFERENT
        some = different if few else different.slice(0, _VALUES + 1)
        if pa.types.is_duration(some.type):
            some = as_column(as_numbers(some, self.name))
        texts = as_texts(some, self.name).to_pylist()
        fresh = [text for text in texts if text is not None and text not in self.labels]
        self.examples += fresh[: _VALUES - len(self.examples)]
        self._letters += sum(map(len, fresh))
        few = few and len(self.labels) + len(fresh) <= MAX_DIFFERENT
        if not few or self._letters > _MAX_LETTERS:
            self.labels = None
            return
        codes = filled(encoded.indices, -1)
        times = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        for code, text in enumerate(texts):
            if text is not None:
                label = self.labels.setdefault(text, _LabelSeen())
                label.n += times[code]
                if len(label.rows) < _ROWS:
                    rows = np.flatnonzero(codes == code)[: _ROWS - len(label.rows)]
                    label.rows += (rows + start).tolist()

    def quality(self) -> ColumnQuality:
        """Return the column at a glance."""
        different = None if self.labels is None else len(self.labels)
        examples = tuple(_cut(text) for text in self.examples)
        return ColumnQuality(self.name, self.n_missing, examples, different)

    @property
    def varies(self) -> bool:
        """Whether it holds two different values or more."""
        return self.labels is None or len(self.labels) > 1

    def findings(self, rows: _RowsSeen) -> Iterator[QualityFinding]:
        """Yield what there is to say of the column alone."""
        n, name = rows.n, (self.name,)
        if n > 1 and not self.varies:
            n_values = n - self.n_missing
            if n_values == 0:
                yield QualityFinding("missing", name, f"{self.name}: no row has a value.", n)
            else:
                held = f"holds {_quoted(next(iter(self.labels or ())))}"
                every = "every row" if n_values == n else f"each of {n_values:,} rows with a value"
                yield QualityFinding("constant", name, f"{self.name}: {every} {held}.", n_values)
        if self.is_text and not self.numeric and not self.is_id:
            yield from _near_labels(self, n - self.n_missing)
        yield from _sentinels(self, rows)


def _note(seen: _LabelSeen, found: NDArray[np.bool_], start: int) -> None:
    """Count the rows in which something is found."""
    rows = np.flatnonzero(found)
    seen.n += len(rows)
    seen.rows += (rows[: _ROWS - len(seen.rows)] + start).tolist()


def _cut(text: str, most: int = _LETTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _quoted(text: str) -> str:
    """Return a text in quotation marks, with what would not be visible in it written out."""
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in _cut(text, 40))
    return f'"{"".join(shown)}"'


def _n_rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


# --- 64 bits of a value ---------------------------------------------------------------------------


def _mixed(words: Words) -> Words:
    """Mix words to the last bit, different ones to different ones (SplitMix64's last step)."""
    words = words ^ (words >> np.uint64(30))
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words


def _as_floats(values: Any, name: str, start: int) -> Floats:
    """Return a column as numbers, NaN where missing; identifiers of any length pass."""
    if pa.types.is_integer(values.type):
        return filled(pc.cast(values, pa.float64(), safe=False), np.nan)
    return as_numbers(values, name, start).astype(np.float64)


def _number_words(values: Any, found: Floats) -> Words:
    """Return the bits of numbers; zero has one sign, and no two whole numbers are one."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return _text_words(pc.cast(values, pa.string()))[0]
    bits: Words = (found + 0.0).view(np.uint64)
    if pa.types.is_floating(kind) or pa.types.is_null(kind) or kind.bit_width < 64:
        return bits
    whole = filled(values.view(pa.int64()), 0).view(np.uint64)
    return np.where(np.abs(found) < 2**53, bits, whole) if pa.types.is_integer(kind) else whole


def _text_words(texts: Any) -> tuple[Words, NDArray[np.bool_]]:
    """Return 64 bits for each of texts (n,), and which may be blank."""
    _, ends, data = texts.buffers()
    at = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.zeros(at[-1] - at[0] + 8, np.uint8)
    if data is not None:
        letters[:-8] = np.frombuffer(data, np.uint8)[at[0] : at[-1]]
    windows = np.ndarray((len(letters) - 7,), "<u8", letters, strides=(1,))
    starts, lengths = at[:-1] - at[0], np.diff(at)
    heads = windows[starts] & _MASKS[np.minimum(lengths, 8)]
    first = heads & np.uint64(0xFF)
    blank = (first <= np.uint64(32)) | (first >= np.uint64(128))
    words = heads ^ (lengths.astype(np.uint64) * _ODD)
    done, left = 8, np.flatnonzero(lengths > 8)
    while len(left) and done < _LONG:
        rest = windows[starts[left] + done] & _MASKS[np.minimum(lengths[left] - done, 8)]
        words[left] = _mixed(words[left]) ^ rest
        done += 8
        left = left[lengths[left] > done]
    for i in left.tolist():
        tail = letters[starts[i] + done : starts[i] + lengths[i]]
        digest = hashlib.blake2b(tail.tobytes(), digest_size=8).digest()
        words[i] = _mixed(words[i : i + 1])[0] ^ np.uint64(int.from_bytes(digest, "little"))
    return words, blank


def _without_blank(texts: Any, likely: NDArray[np.bool_]) -> Any:
    """Return texts, null where they are empty or blank; ``likely`` are those that may be."""
    some = numbers.mask(pc.is_null(without_blanks(taken(texts, np.flatnonzero(likely)))))
    if not some.any():
        return texts
    gone = likely.copy()
    gone[likely] = some
    return pc.if_else(as_column(gone), pa.nulls(1, pa.string())[0], texts)


def _is_total(texts: Any) -> NDArray[np.bool_]:
    small = pc.utf8_lower(pc.utf8_trim(texts, " \t\u00a0:.*="))
    return numbers.mask(pc.is_in(small, value_set=_TOTALS))


# --- labels ---------------------------------------------------------------------------------------


def _plain_label(text: str) -> str:
    """Return a label without case, blanks, accents, invisible marks and look-alike letters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = unicodedata.normalize("NFD", folded)
    # The accents of Latin, Greek and Cyrillic; in other scripts, marks make other words.
    kept = (c for c in parts if not "\u0300" <= c <= "\u036f" and unicodedata.category(c) != "Cf")
    return " ".join("".join(kept).translate(_LOOK_ALIKE).split())


def _near_labels(column: _ColumnSeen, n_values: int) -> Iterator[QualityFinding]:
    """Yield groups of labels that may be the same, the largest first."""
    labels = column.labels or {}
    if len(labels) > FEW and 2 * len(labels) > n_values:
        return
    groups: dict[str, list[str]] = {}
    for text in labels:
        groups.setdefault(_plain_label(text), []).append(text)
    near = [sorted(g, key=lambda text: -labels[text].n) for g in groups.values() if len(g) > 1]
    near.sort(key=lambda group: -sum(labels[text].n for text in group))
    for group in near[:_GROUPS]:
        shown = [
            f"{_quoted(text)} ({_n_rows(labels[text].n)}{_script(text, group)})"
            for text in group[:_GROUPS]
        ]
        more = f", {len(group) - _GROUPS:,} more" if len(group) > _GROUPS else ""
        words = f"{', '.join(shown[:-1])}{more} and {shown[-1]} may be the same label."
        others = [labels[text] for text in group[1:]]
        examples = sorted(row for label in others for row in label.rows)[:_ROWS]
        rows = sum(label.n for label in others)
        yield QualityFinding(
            "labels", (column.name,), f"{column.name}: {words}", rows, tuple(examples)
        )


def _script(text: str, group: Sequence[str]) -> str:
    """Name the scripts of letters that look like Latin ones, if labels differ in these."""
    scripts = [{unicodedata.name(c, "").split(" ")[0] for c in one if c.isalpha()} for one in group]
    mine = scripts[group.index(text)] & {"CYRILLIC", "GREEK"}
    if not mine or all(mine <= other for other in scripts):
        return ""
    return f", with {' and '.join(sorted(mine)).title().replace('And', 'and')} letters"


# --- values that stand apart ----------------------------------------------------------------------


def _sentinels(column: _ColumnSeen, rows: _RowsSeen) -> Iterator[QualityFinding]:
    """Yield values that may stand for a missing one."""
    name, seen = (column.name,), column.doubtful
    if seen.n and column.understood is not None:
        doubt = column.understood.doubt
        end = "" if doubt.endswith(("?", ".")) else "."
        words = f"{column.name}: {doubt}{end} This concerns {_n_rows(seen.n)}."
        yield QualityFinding("sentinel", name, words, seen.n, tuple(seen.rows))
        return
    if not column.sample or not (column.numeric or not column.is_text) or column.is_id:
        return
    values = np.concatenate(column.sample)
    for value in _apart(values, _DEFAULT_DAYS if column.is_date else NINES):
        at = np.flatnonzero(values == value)
        n = len(at) * rows.stride
        about = "about " if rows.stride > 1 else ""
        text = f"{value:.10g}"
        if column.is_date:
            text = str(np.datetime64(int(value), "s")).removesuffix("T00:00:00")
        words = (
            f"{column.name}: {text} stands in {about}{_n_rows(n)}, far from all other values: it "
            "may stand for a missing one."
        )
        examples = tuple((at[:_ROWS] * rows.stride).tolist())
        yield QualityFinding("sentinel", name, words, n, examples)


def _apart(values: Floats, usual: Floats) -> list[float]:
    """Return values in 1% of the rows or more that are far from the middle 99% of the others.

    Far is twice the width of that middle, and a tenth of it for ``usual`` values, which programs
    write for a missing one. Up to three such values at an end count together. At least half of
    all values have to be beyond them, ten different ones among these: else they are a scale, and
    no measurements.
    """
    values = np.sort(values[np.isfinite(values)])
    found: list[float] = []
    for sign in (1.0, -1.0):
        ordered = values if sign > 0 else -values[::-1]
        different, counts = np.unique(ordered, return_counts=True)
        heavy = different[counts >= max(2.0, 0.01 * len(ordered))][:3]
        for k in range(len(heavy), 0, -1):
            rest = ordered[np.searchsorted(ordered, heavy[k - 1], "right") :]
            if 2 * len(rest) < len(ordered) or len(np.unique(rest)) < 10:
                continue
            low, high = np.quantile(rest, [0.005, 0.995])
            known = np.isin(sign * heavy[:k], usual).all()
            if low - heavy[k - 1] > (0.1 if known else 2.0) * (high - low):
                found += (sign * heavy[:k] + 0.0).tolist()
                break
    return found


# --- copies ---------------------------------------------------------------------------------------


def _copies(rows: _RowsSeen) -> Iterator[QualityFinding]:
    """Yield columns that are equal in all rows, and numbers that are multiples of others."""
    if rows.n < _FEW_ROWS:
        return
    groups: dict[int, list[_ColumnSeen]] = {}
    for column in rows.columns:
        if column.varies:
            groups.setdefault(column.print, []).append(column)
    for group in groups.values():
        if len(group) > 1:
            names = tuple(column.name for column in group)
            words = f"{', '.join(names[:-1])} and {names[-1]} are equal in all rows."
            yield QualityFinding("copies", names, words, rows.n)
    others = [
        column
        for column in (group[0] for group in groups.values())
        if column.sample and not column.is_date and (column.numeric or not column.is_text)
    ]
    samples = [np.concatenate(column.sample) for column in others]
    where = "all rows" if rows.stride == 1 else f"all of {len(samples[0]):,} rows looked at"
    for i, j in _correlated(samples):
        found = _factor(samples[i], samples[j])
        if found is not None:
            k, rounded = found
            x, y = (
                (others[i].name, others[j].name)
                if abs(k) >= 1
                else (others[j].name, others[i].name)
            )
            factor = k if abs(k) >= 1 else 1 / k
            words = f"{y} is {factor:.6g} times {x} in {where}{rounded}."
            yield QualityFinding("copies", (x, y), words, rows.n)


def _correlated(samples: Sequence[Floats]) -> Iterator[tuple[int, int]]:
    """Yield for each column those before it, three at most, that it may be a multiple of."""
    if len(samples) < 2:
        return
    some = np.unique(np.linspace(0, len(samples[0]) - 1, 256).astype(np.int64))
    X = np.stack([sample[some] for sample in samples])
    X[~np.isfinite(X)] = np.nan
    known = ~np.isnan(X)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        means = np.where(known, X, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        X = np.where(known, X - means[:, np.newaxis], 0.0)
        X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    X[~np.isfinite(X)] = 0.0
    for start in range(0, len(X), 256):
        block = np.abs(X[start : start + 256] @ X[: start + 256].T) > 0.9999
        for j, row in enumerate(block, start):
            for i in np.flatnonzero(row[:j])[:3].tolist():
                yield i, j


def _factor(x: Floats, y: Floats) -> tuple[float, str] | None:
    """Return k with y = k x in all rows, and words on rounding; None if there is none.

    One of both may be rounded to its decimals, if that is little beside its spread.
    """
    known = np.isfinite(x)
    if (known != np.isfinite(y)).any() or np.count_nonzero(known) < _FEW_ROWS:
        return None
    x, y = x[known], y[known]
    with np.errstate(all="ignore"):
        k = float(x @ y / (x @ x))
        if not np.isfinite(k) or k == 0.0:
            return None
        if (np.abs(y - k * x) <= 1e-9 * np.abs(y)).all():
            return k, ""
        for one, other in ((y, k * x), (x, y / k)):
            half = _half_unit(one)
            if half <= 0.01 * one.std() and (np.abs(one - other) <= 1.001 * half).all():
                return k, ", up to rounding"
    return None


def _half_unit(values: Floats) -> float:
    """Return half of the last decimal of numbers; 0 if they are not rounded."""
    for decimals in range(7):
        if (np.abs(values - np.round(values, decimals)) <= 1e-9 * np.abs(values)).all():
            return float(0.5 * 10.0**-decimals)
    return 0.0


# --- rows -----------------------------------------------------------------------------------------


def _repeated(hashes: Words) -> NDArray[np.int64]:
    """Return the numbers of rows whose fingerprint an earlier row has, rising."""
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    rows = np.flatnonzero(among(twice, hashes))
    first = np.unique(hashes[rows], return_index=True)[1]
    return np.delete(rows, first)


def _duplicates(rows: _RowsSeen, entity: str) -> Iterator[QualityFinding]:
    """Yield rows that are equal to earlier ones, with or without their identifiers."""
    equal = _repeated(np.concatenate(rows.whole))
    if len(equal):
        are = "rows are" if len(equal) > 1 else "row is"
        words = f"{len(equal):,} {are} equal to an earlier row in all columns."
        yield _of_rows("duplicates", (), words, equal)
    ids = [column for column in rows.columns if column.is_id]
    if rows.but_ids is not None:
        names = tuple(column.name for column in ids)
        alike = np.setdiff1d(_repeated(np.concatenate(rows.but_ids)), equal)
        # More, and the other columns just hold few values.
        if 0 < len(alike) <= max(1, rows.n // 10):
            are = "rows are" if len(alike) > 1 else "row is"
            words = (
                f"{len(alike):,} {are} equal to an earlier row in all columns but "
                f"{' and '.join(names)}."
            )
            yield _of_rows("duplicates", names, words, alike)
    for column in ids:
        words_of = np.concatenate(column.ids)
        there = np.flatnonzero(words_of != _MISSING)
        again = there[_repeated(words_of[there])]
        # More, and they are of persons with several rows, or names.
        if column.name != entity and 0 < len(again) <= max(1, rows.n // 20):
            have = "rows have" if len(again) > 1 else "row has"
            words = f"{column.name}: {len(again):,} {have} the identifier of an earlier row."
            yield _of_rows("duplicates", (column.name,), words, again)


def _of_rows(
    kind: Literal["duplicates", "total"],
    columns: tuple[str, ...],
    words: str,
    rows: Iterable[int],
) -> QualityFinding:
    every = [int(row) for row in rows]
    return QualityFinding(kind, columns, words, len(every), tuple(every[:_ROWS]))


def _totals(rows: _RowsSeen) -> Iterator[QualityFinding]:
    """Yield rows that add up others: by a cell that says so, or by their numbers."""
    for column in rows.columns:
        seen = column.totals
        if 0 < seen.n <= max(1, rows.n // 10) and rows.n > 1:  # more, and it is a category
            words = (
                f"{column.name}: {_n_rows(seen.n)} with the word for a total: it may add up others."
            )
            yield QualityFinding("total", (column.name,), words, seen.n, tuple(seen.rows))
    summed = [column for column in rows.columns if column.n_values and not column.is_id]
    adds_up = [column.name for column in summed if _adds_up(column)]
    if rows.n > 3 and (len(adds_up) > 1 or (len(summed) == len(adds_up) == 1 and rows.n > 5)):
        words = f"The last row has the sums of all rows above in {' and '.join(adds_up)}."
        yield QualityFinding("total", tuple(adds_up), words, 1, (rows.n - 1,))


def _adds_up(column: _ColumnSeen) -> bool:
    """Return whether the last number is the sum of all others, and beyond each of them."""
    if column.n_values < 2 or not abs(column.last) > column.largest:
        return False
    return bool(np.isclose(column.last, column.sum, rtol=1e-5, atol=0.0))
