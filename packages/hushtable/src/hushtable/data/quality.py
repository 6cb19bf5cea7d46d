"""The data quality of a table: what a person should know about its columns and rows before a fit.

`hushtable.data.table_seen` reads all rows once; the rules for each kind of finding are here.
Nothing is changed or decided: a finding is a sentence for a person. Tested by
``tests/test_quality.py``.
"""

import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hushtable.data.followers import followers, followers_words
from hushtable.data.labels import near
from hushtable.data.readers import Batch, Reader, no_rows
from hushtable.data.sentinels import CODES, DAYS, apart
from hushtable.data.table_seen import (
    EXAMPLE_ROWS,
    MISSING_BITS,
    ColumnSeen,
    Floats,
    RowsSeen,
    repeated,
)
from hushtable.data.table_shape import one_row_a_value, shape_words
from hushtable.data.texts.reading import ColumnUnderstanding, Reading
from hushtable.data.texts.seen import FEW
from hushtable.data.understanding import understood
from hushtable.errors import HushTableError
from hushtable.language import _, ngettext, numerals
from hushtable.progress import silenced

#: Number of letters of an example, of a text in a sentence, and of the examples in a table.
_LETTERS, _QUOTED, _IN_A_TABLE = 80, 40, 32
#: Number of groups of labels to report for a column, and of labels in a group.
_GROUPS = 5
#: Number of rows below which equal columns count as coincidence.
_FEW_ROWS = 10


@dataclass(frozen=True)
class QualityFinding:
    """A finding about columns or rows.

    Attributes
    ----------
    kind : str
        "constant", "labels", "sentinel", "lone" (the only negative number or zero), "duplicates",
        "copies", "relations", "total", "missing", "shape" (too few rows, or nothing that varies) or
        "long" (a row for each value).
    columns : tuple of str
        Names of the columns it concerns; empty for whole rows.
    words : str
        A sentence, with values and counts.
    rows : int
        How many rows it concerns.
    examples : tuple of int
        Numbers of the first of these rows, from 0, at most 5; empty where all rows are concerned.
    value : str
        The text that may be a code for a missing value, as `--missing` takes it; otherwise empty.
    """

    kind: Literal[
        "constant",
        "labels",
        "sentinel",
        "lone",
        "duplicates",
        "copies",
        "relations",
        "total",
        "missing",
        "shape",
        "long",
    ]
    columns: tuple[str, ...]
    words: str
    rows: int
    examples: tuple[int, ...] = ()
    value: str = ""


@dataclass(frozen=True)
class ColumnQuality:
    """A column at a glance.

    Attributes
    ----------
    name : str
        Of the column.
    n_missing : int
        Rows in which it is null, empty or blank, or holds a code for a missing value.
    examples : tuple of str
        The first different values, at most 3, folded; long ones are cut.
    n_different : int or None
        Number of different values; None if there are more than 1,000, or they are too long to
        count.
    range : tuple of float, or None
        The lowest and highest number, or point in time in seconds since 1970; None if it holds
        neither. For days and times in text, those in the sample.
    """

    name: str
    n_missing: int
    examples: tuple[str, ...]
    n_different: int | None
    range: tuple[float, float] | None = None


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
    ColumnQuality(name='ward', n_missing=1, examples=('a', 'b'), n_different=2, range=None)
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
        The columns as `understand` returns them, which states which columns are identifiers, how
        texts become numbers, and which values may be codes for missing ones.

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
    does not protect against someone who searches for rows that collide. Texts are compared as they
    are written: ``1.0`` and ``1`` differ in a CSV file.

    Isolated values and columns that are multiples of each other are found in a sample of rows,
    which is drawn in the same way each time; it is the whole table up to 32,767 rows and 128
    columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import read, table_quality
    >>> rows = read(pa.table({"ward": ["ICU", "icu ", "ICU", "b"], "pulse": [60, 71, 60, 80]}))
    >>> for one in table_quality(rows).findings:
    ...     print(one.kind, one.rows, one.examples, one.words)
    labels 1 (1,) ward: "ICU" (2 rows) and "icu" (1 row) may be the same label.
    duplicates 1 (2,) 1 row is equal to an earlier row in all columns.
    """
    rows = _rows_seen(reader, understood)
    for batch in reader.read():
        if len(batch):
            rows.add(batch, None, reader.reading or Reading())
    if rows.n == 0:
        raise no_rows(reader)
    return _judged(reader, rows, understood)


def understood_with_quality(
    reader: Reader, n_jobs: int | None = None
) -> tuple[tuple[ColumnUnderstanding, ...], Reading, TableQuality]:
    """Do the same as `understood` and `table_quality`, with one reading of a file if possible.

    The quality is collected as if all rows were like the first batch. If a column turns out to be
    read in another way, the rows are read again.
    """
    rows: RowsSeen | None = None
    failed = reader.n_rows is not None  # in memory, reading takes no time
    waiting: dict[int, tuple[Batch, Batch]] = {}
    lock = threading.Lock()

    def add(start: int, batch: Batch, parsed: Batch) -> None:
        nonlocal rows, failed
        with lock, silenced():
            if failed or not len(batch):
                return
            waiting[start] = batch, parsed
            try:
                if rows is None and start == 0:
                    first = replace(reader, read=lambda: iter([batch]))
                    rows = _rows_seen(reader, understood(first)[0])
                while rows is not None and rows.n in waiting:  # threads may overtake each other
                    rows.add(*waiting.pop(rows.n), reader.reading or Reading())
            except HushTableError:  # it is raised where the rows are understood, or read again
                failed = True

    columns, reading, _ = understood(reader, None, n_jobs, add)
    if failed or rows is None or not rows.are_of(columns):
        return columns, reading, table_quality(reader, columns)
    rows.replace_understood(columns)
    return columns, reading, _judged(reader, rows, columns)


def _rows_seen(reader: Reader, understood: Sequence[ColumnUnderstanding]) -> RowsSeen:
    """Return what `table_quality` collects, before the first row."""
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    known = {one.name: one for one in understood}
    return RowsSeen([ColumnSeen(name, j, known.get(name)) for j, name in enumerate(names)])


def _judged(
    reader: Reader, rows: RowsSeen, understood: Sequence[ColumnUnderstanding]
) -> TableQuality:
    """Return the quality of the rows that were seen."""
    reading = reader.reading or Reading()
    copies = [*_copies(rows)]
    findings = [
        *(one for column in rows.columns for one in _of_column(column, rows)),
        *copies,
        *_relations(rows, {name for one in copies for name in one.columns[1:]}),
        *_duplicates(rows, reading.entity),
        *_totals(rows),
        *_shape(reader, rows, understood),
    ]
    columns = tuple(_glance(column) for column in rows.columns)
    return TableQuality(rows.n, columns, tuple(findings))


def range_words(one: ColumnUnderstanding, seen: ColumnQuality) -> str:
    """Return the range of numbers, days or times, or examples of anything else."""
    if seen.range is None or one.kind == "id":
        text = " · ".join(seen.examples)
        return text if len(text) <= _IN_A_TABLE else f"{text[: _IN_A_TABLE - 1]}…"
    if one.kind == "date":
        ends = [_moment(value) for value in seen.range]
    else:
        ends = [f"{value:.6g}" for value in seen.range]
    return _(" to ").join(dict.fromkeys(ends))


def _moment(seconds: float) -> str:
    """Return a point in time as text, without a time of day at midnight."""
    text = str(np.datetime64(round(seconds), "s")).replace("T", " ")
    return text.removesuffix(" 00:00:00")


def _glance(column: ColumnSeen) -> ColumnQuality:
    """Return the column at a glance."""
    different = None if column.labels is None else len(column.labels)
    examples = tuple(_cut(text) for text in column.examples)
    return ColumnQuality(column.name, column.n_missing, examples, different, column.range)


def _of_column(column: ColumnSeen, rows: RowsSeen) -> Iterator[QualityFinding]:
    """Yield the findings about the column alone."""
    n, name = rows.n, (column.name,)
    if n > 1 and not column.varies:
        n_values = n - column.n_missing
        if n_values == 0:
            words = _("%(name)s: no row has a value.", name=column.name)
            yield QualityFinding("missing", name, words, n)
        else:
            held = {"name": column.name, "text": _quoted(next(iter(column.labels or ())))}
            words = _("%(name)s: every row holds %(text)s.", **held)
            if n_values < n:
                words = _(
                    "%(name)s: each of %(n)s rows with a value holds %(text)s.",
                    n=numerals(f"{n_values:,}"), **held,
                )  # fmt: skip
            yield QualityFinding("constant", name, words, n_values)
    if column.is_text and not column.numeric and not column.is_id:
        yield from _near_labels(column, n - column.n_missing)
    yield from _sentinels(column, rows)
    for one in column.lone.found():
        yield QualityFinding("lone", name, one.words, 1, (one.row,))


def _cut(text: str, most: int = _LETTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _quoted(text: str) -> str:
    """Return a text in quotation marks, with escapes for invisible characters."""
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in _cut(text, _QUOTED))
    return f'"{"".join(shown)}"'


def _n_rows(n: int) -> str:
    return ngettext("%(n)s row", "%(n)s rows", n)


# --- labels ---------------------------------------------------------------------------------------


def _near_labels(column: ColumnSeen, n_values: int) -> Iterator[QualityFinding]:
    """Yield groups of labels that may be the same, the largest first."""
    labels = column.labels or {}
    read = column.understood and column.understood.reading
    if read and read.kind in ("label", "answer"):  # they are one
        return
    if len(labels) > FEW and 2 * len(labels) > n_values:
        return
    for group in near({text: seen.n for text, seen in labels.items()})[:_GROUPS]:
        shown = [
            f"{_quoted(text)} ({_n_rows(labels[text].n)}{_script(text, group)})"
            for text in group[:_GROUPS]
        ]
        more = len(group) - _GROUPS
        if more > 0:
            shown.insert(-1, _("%(n)s more", n=numerals(f"{more:,}")))
        words = _(
            "%(name)s: %(labels)s may be the same label.",
            name=column.name, labels=f"{', '.join(shown[:-1])}{_(' and ')}{shown[-1]}",
        )  # fmt: skip
        others = [labels[text] for text in group[1:]]
        examples = sorted(row for label in others for row in label.rows)[:EXAMPLE_ROWS]
        rows = sum(label.n for label in others)
        yield QualityFinding("labels", (column.name,), words, rows, tuple(examples))


def _script(text: str, group: Sequence[str]) -> str:
    """Return the scripts of letters that look like Latin ones, if labels differ in these."""
    scripts = [{unicodedata.name(c, "").split(" ")[0] for c in one if c.isalpha()} for one in group]
    mine = scripts[group.index(text)] & {"CYRILLIC", "GREEK"}
    if not mine or all(mine <= other for other in scripts):
        return ""
    return _(
        ", with %(scripts)s letters", scripts=_(" and ").join(one.title() for one in sorted(mine))
    )


# --- values that stand apart ----------------------------------------------------------------------


def _sentinels(column: ColumnSeen, rows: RowsSeen) -> Iterator[QualityFinding]:
    """Yield values that may be codes for missing ones."""
    name, seen = (column.name,), column.doubtful
    if seen.n and column.understood is not None:
        doubt = column.understood.doubt
        end = "" if doubt.endswith(("?", ".")) else "."
        words = _(
            "%(name)s: %(doubt)s This affects %(rows)s.",
            name=column.name, doubt=f"{doubt}{end}", rows=_n_rows(seen.n),
        )  # fmt: skip
        missing = next((v for flag, v in column.understood.options if flag == "--missing"), "")
        yield QualityFinding("sentinel", name, words, seen.n, tuple(seen.rows), missing)
        return
    if not column.sample:
        return
    values = np.concatenate(column.sample)
    for value in apart(values, DAYS if column.is_date else CODES):
        at = rows.sampled[values == value]
        n = len(at) * rows.stride
        about = _("about %(rows)s", rows=_n_rows(n)) if rows.stride > 1 else _n_rows(n)
        text = f"{value:.10g}"
        if column.is_date:
            text = str(np.datetime64(int(value), "s")).removesuffix("T00:00:00")
        words = _(
            "%(name)s: %(value)s occurs in %(rows)s, far from all other values: it may be a code "
            "for a missing value.",
            name=column.name, value=text, rows=about,
        )  # fmt: skip
        examples = tuple(at[:EXAMPLE_ROWS].tolist())
        yield QualityFinding("sentinel", name, words, n, examples, text)


# --- copies ---------------------------------------------------------------------------------------


def _copies(rows: RowsSeen) -> Iterator[QualityFinding]:
    """Yield columns that are equal in all rows, and numbers that are multiples of others."""
    if rows.n < _FEW_ROWS:
        return
    groups: dict[int, list[ColumnSeen]] = {}
    for column in rows.columns:
        if column.varies:
            groups.setdefault(column.print, []).append(column)
    for group in groups.values():
        if len(group) > 1:
            names = tuple(column.name for column in group)
            listed = f"{', '.join(names[:-1])}{_(' and ')}{names[-1]}"
            words = _("%(names)s are equal in all rows.", names=listed)
            yield QualityFinding("copies", names, words, rows.n)
    others = [
        column
        for column in (group[0] for group in groups.values())
        if column.sample and not column.is_date
    ]
    samples = [np.concatenate(column.sample) for column in others]
    where = _("all rows")
    if rows.stride > 1:
        where = _("all %(n)s sampled rows", n=numerals(f"{len(samples[0]):,}"))
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
            words = _(
                "%(y)s is %(factor)s times %(x)s in %(where)s%(rounded)s.",
                y=y, factor=numerals(f"{factor:.6g}"), x=x, where=where, rounded=rounded,
            )  # fmt: skip
            yield QualityFinding("copies", (x, y), words, rows.n)


def _relations(rows: RowsSeen, copies: set[str]) -> Iterator[QualityFinding]:
    """Yield columns of numbers that follow from others, without copies."""
    columns = [one for one in rows.columns if one.sample and not (one.is_date or one.is_id)]
    columns = [one for one in columns if one.name not in copies]
    found = followers({one.name: np.concatenate(one.sample) for one in columns})
    if found:
        names = tuple(one.name for one in found)
        yield QualityFinding("relations", names, followers_words(found), rows.n)


def _correlated(samples: Sequence[Floats]) -> Iterator[tuple[int, int]]:
    """Yield for each column up to three earlier columns that it may be a multiple of."""
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
    """Return k with y = k x in all rows, and words on rounding; None if there is no such k.

    One of the two may be rounded to its decimals, if that is small compared with its spread.
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
        if (slope := _slope(x, y)) is not None:
            return slope, _(", up to rounding")
        if (slope := _slope(y, x)) is not None:
            return 1.0 / slope, _(", up to rounding")
    return None


def _slope(x: Floats, y: Floats) -> float | None:
    """Return k with y = k x rounded to the decimals of y, the middle of all that fit; or None."""
    half = 1.001 * _half_unit(y)
    zero = x == 0.0
    if half > 0.01 * y.std() or (np.abs(y[zero]) > half).any():
        return None
    ends = np.sort([(y[~zero] - half) / x[~zero], (y[~zero] + half) / x[~zero]], axis=0)
    low, high = ends[0].max(), ends[1].min()
    return float(low + high) / 2 if low <= high else None


def _half_unit(values: Floats) -> float:
    """Return half of the last decimal of numbers; 0 if they are not rounded."""
    for decimals in range(7):
        if (np.abs(values - np.round(values, decimals)) <= 1e-9 * np.abs(values)).all():
            return float(0.5 * 10.0**-decimals)
    return 0.0


# --- rows -----------------------------------------------------------------------------------------


def _duplicates(rows: RowsSeen, entity: str) -> Iterator[QualityFinding]:
    """Yield rows that are equal to earlier ones, with or without their identifiers."""
    equal = repeated(np.concatenate(rows.whole))
    if len(equal):
        words = ngettext(
            "%(n)s row is equal to an earlier row in all columns.",
            "%(n)s rows are equal to an earlier row in all columns.",
            len(equal),
        )
        yield _of_rows("duplicates", (), words, equal)
    ids = [column for column in rows.columns if column.is_id]
    if rows.but_ids is not None:
        names = tuple(column.name for column in ids)
        alike = np.setdiff1d(repeated(np.concatenate(rows.but_ids)), equal)
        # If there are more, the other columns just hold few values.
        if 0 < len(alike) <= max(1, rows.n // 10):
            words = ngettext(
                "%(n)s row is equal to an earlier row in all columns but %(names)s.",
                "%(n)s rows are equal to an earlier row in all columns but %(names)s.",
                len(alike), names=_(" and ").join(names),
            )  # fmt: skip
            yield _of_rows("duplicates", names, words, alike)
    for column in ids:
        words_of = np.concatenate(column.ids)
        there = np.flatnonzero(words_of != MISSING_BITS)
        again = there[repeated(words_of[there])]
        # If there are more, they belong to persons with several rows, or are names.
        if column.name != entity and 0 < len(again) <= max(1, rows.n // 20):
            words = ngettext(
                "%(name)s: %(n)s row has the identifier of an earlier row.",
                "%(name)s: %(n)s rows have the identifier of an earlier row.",
                len(again), name=column.name,
            )  # fmt: skip
            yield _of_rows("duplicates", (column.name,), words, again)


def _of_rows(
    kind: Literal["duplicates", "total"],
    columns: tuple[str, ...],
    words: str,
    rows: Iterable[int],
) -> QualityFinding:
    every = [int(row) for row in rows]
    return QualityFinding(kind, columns, words, len(every), tuple(every[:EXAMPLE_ROWS]))


def _shape(
    reader: Reader, rows: RowsSeen, understood: Sequence[ColumnUnderstanding]
) -> Iterator[QualityFinding]:
    """Yield findings if rows are too few, if nothing varies, or if each row holds one value."""
    for words in shape_words(rows.n, understood) if understood else ():
        yield QualityFinding("shape", (), f"{words[0].upper()}{words[1:]}.", rows.n)
    for what, value, words in one_row_a_value(reader, rows):
        yield QualityFinding("long", (what, value), f"{words}.", rows.n)


def _totals(rows: RowsSeen) -> Iterator[QualityFinding]:
    """Yield rows that sum up others, as a word for a total or their numbers show."""
    for column in rows.columns:
        seen = column.totals
        if 0 < seen.n <= max(1, rows.n // 10) and rows.n > 1:  # if there are more, it is a category
            words = ngettext(
                "%(name)s: %(n)s row with a word for a total, so it may sum up other rows.",
                "%(name)s: %(n)s rows with a word for a total, so it may sum up other rows.",
                seen.n, name=column.name,
            )  # fmt: skip
            yield QualityFinding("total", (column.name,), words, seen.n, tuple(seen.rows))
    summed = [column for column in rows.columns if column.n_values and not column.is_id]
    adds_up = [column.name for column in summed if _adds_up(column)]
    if rows.n > 3 and (len(adds_up) > 1 or (len(summed) == len(adds_up) == 1 and rows.n > 5)):
        words = _(
            "The last row holds the sums of all rows above it in %(names)s.",
            names=_(" and ").join(adds_up),
        )
        yield QualityFinding("total", tuple(adds_up), words, 1, (rows.n - 1,))


def _adds_up(column: ColumnSeen) -> bool:
    """Return whether the last number is the sum of all others, and larger than each of them."""
    if column.n_values < 2 or not abs(column.last) > column.largest:
        return False
    return bool(np.isclose(column.last, column.sum, rtol=1e-5, atol=0.0))
