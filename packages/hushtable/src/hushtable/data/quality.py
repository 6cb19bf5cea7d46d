"""The data quality of a table: what a person should know about its columns and rows before a fit.

`hushtable.data.understanding` finds what is in doubt in a column; `hushtable.data.table_scan` then
reads all rows once more, as they are understood, and the rules for the table are here. Nothing is
changed or decided: a finding is a sentence for a person. A hint for a fit is also here: which
columns of numbers follow from others. Tested by ``tests/test_quality.py``.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushtable.data.options import first_names
from hushtable.data.passes import MOST_BYTES
from hushtable.data.readers import Reader
from hushtable.data.residuals import RIDGE
from hushtable.data.schema import number_words
from hushtable.data.table_scan import EXAMPLE_ROWS, MISSING_BITS, ColumnScan, RowScan, repeated
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.reading import Reading
from hushtable.data.texts.words import lists
from hushtable.data.understanding import understood
from hushtable.language import _, numerals
from hushtable.words.doubts import finding_words, shape_words

#: Number of letters of an example, and of the examples in a table.
_LETTERS, _IN_A_TABLE = 80, 32
#: Number of most frequent values, and of bars of a histogram.
_FREQUENT, _BARS = 3, 16
#: Number of rows below which equal columns, and columns with the same groups, are coincidence.
_FEW_ROWS, _FEW_IN_GROUPS = 10, 30
Floats = NDArray[np.float64]
FindingKind: TypeAlias = Literal[
    "constant", "lone", "duplicates", "copies", "relations", "total", "shape", "label"
]
#: Fewest and most labels of a column in which one may be a total, and how many totals of totals;
#: least sum that is no coincidence if it is exact.
_LABELS, _LEVELS, _EXACT = (3, 200), (1.0, 2.0, 3.0), 1e4


@dataclass(frozen=True)
class QualityFinding:
    """A finding about columns or rows.

    Attributes
    ----------
    kind : str
        "constant", "lone" (the only negative number or zero), "duplicates", "copies", "relations"
        (columns that follow from others), "total", "shape" (too few rows, or nothing that varies)
        or "label" (a column that says which rows are outliers).
    columns : tuple of str
        Names of the columns it concerns; empty for whole rows.
    words : str
        A sentence, with values and counts.
    rows : int
        How many rows it concerns.
    examples : tuple of int
        Numbers of the first of these rows, from 0, at most 5; empty where all rows are concerned.
    """

    kind: FindingKind
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
        Rows in which it is null, empty or blank, or holds a code for a missing value.
    examples : tuple of str
        The first different values, at most 3, folded; long ones are cut.
    n_different : int or None
        Number of different values; None if there are more than 1,000, or they are too long to
        count.
    range : tuple of float, or None
        The lowest and highest number, or point in time in seconds since 1970; None if it holds
        neither.
    frequent : tuple of (str, int)
        The most frequent values with their rows, at most 3; empty if no value occurs twice, or
        they are not counted.
    bars : tuple of int
        Rows of a sample in 16 equal parts of its usual range; values beyond are in the first and
        the last part. Empty for fewer than three different numbers or dates.
    """

    name: str
    n_missing: int
    examples: tuple[str, ...]
    n_different: int | None
    range: tuple[float, float] | None = None
    frequent: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    bars: tuple[int, ...] = field(default=(), repr=False)


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
    >>> quality.findings[0].words
    'unit: every row holds "ml".'
    """

    n_rows: int
    columns: tuple[ColumnQuality, ...]
    findings: tuple[QualityFinding, ...]


def table_quality(reader: Reader) -> TableQuality:
    """Look through a table once, and report its data quality.

    Parameters
    ----------
    reader : Reader
        Rows, as `read` returns them.

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
    does not protect against someone who searches for rows that collide. Values are compared as they
    are read: ``1.0`` and ``1`` are the same number.

    Columns with the same groups of rows, and rows that are totals, are found in a sample of rows,
    which is drawn in the same way each time; it is the whole table up to 32,767 rows and 128
    columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import read, table_quality
    >>> rows = read(pa.table({"ward": ["ICU", "icu ", "ICU", "b"], "pulse": [60, 71, 60, 80]}))
    >>> for one in table_quality(rows).findings[:1]:
    ...     print(one.kind, one.rows, one.examples)
    duplicates 1 (2,)
    """
    return understood_with_quality(reader)[2]


def understood_with_quality(
    reader: Reader, n_jobs: int | None = None
) -> tuple[tuple[ColumnUnderstanding, ...], Reading, TableQuality]:
    """Return the columns, how they are read, and the quality of the table.

    Rows that fit into memory are read from their file once.
    """
    reader = reader.repeatable()
    columns, reading, scan, kept, _bytes = understood(reader, None, n_jobs, MOST_BYTES)
    rows = RowScan(columns, scan.n_rows)
    for batch in kept.read():
        if len(batch):
            rows.add(batch, reading)
    copies = [*_copies(rows)]
    copied = {name for finding in copies for name in finding.columns[1:]}
    findings = [
        *(finding for column in rows.columns for finding in _of_column(column, rows)),
        *copies,
        *_relations(rows, copied),
        *_duplicates(rows, reading.entity),
        *_totals(rows),
    ]
    for words in shape_words(rows.n, columns):
        sentence = f"{words[0].upper()}{words[1:]}."
        findings.append(QualityFinding("shape", (), sentence, rows.n))
    quality = TableQuality(rows.n, tuple(map(_glance, rows.columns)), tuple(findings))
    return columns, reading, quality


def range_words(column: ColumnUnderstanding, quality: ColumnQuality) -> str:
    """Return the range of numbers, days or times, or examples of anything else."""
    if quality.range is None or column.kind == "id":
        text = " · ".join(quality.examples)
        return text if len(text) <= _IN_A_TABLE else f"{text[: _IN_A_TABLE - 1]}…"
    ends = map(column.reading.written if column.reading else number_words, quality.range)
    return _(" to ").join(dict.fromkeys(ends))


def _glance(column: ColumnScan) -> ColumnQuality:
    different = None if column.labels is None else len(column.labels)
    texts = map(column.text, column.examples)
    examples = tuple(t if len(t) <= _LETTERS else f"{t[: _LETTERS - 1]}…" for t in texts)
    ends = (column.low, column.high) if column.low <= column.high else None
    counts = Counter(column.labels).most_common(_FREQUENT)
    frequent = tuple((column.text(label), n) for label, n in counts if n > 1)
    return ColumnQuality(
        column.name, column.n_missing, examples, different, ends, frequent, _bars(column)
    )


def _bars(column: ColumnScan) -> tuple[int, ...]:
    values = np.concatenate(column.sample) if column.sample else np.empty(0)
    # Beyond this limit, three times a difference would overflow.
    values = np.clip(values[np.isfinite(values)], -1e300, 1e300)
    if len(np.unique(values)) < 3:
        return ()
    low, first, third, high = np.quantile(values, (0.01, 0.25, 0.75, 0.99))
    wide = 3.0 * (third - first)
    if wide > 0.0:
        low, high = max(low, first - wide), min(high, third + wide)
    ends = (low, high) if low < high else (values.min(), values.max())
    return tuple(np.histogram(np.clip(values, *ends), _BARS, ends)[0].tolist())


def _finding(
    kind: FindingKind,
    columns: Sequence[str],
    words: str,
    rows: int,
    examples: Sequence[int] = (),
    **facts: object,
) -> QualityFinding:
    """Return a finding with the sentence ``words`` about these facts."""
    sentence = finding_words(words, columns=list(columns), rows=rows, **facts)
    return QualityFinding(kind, tuple(columns), sentence, rows, tuple(examples[:EXAMPLE_ROWS]))


def _of_column(column: ColumnScan, rows: RowScan) -> Iterator[QualityFinding]:
    name, n_values = (column.name,), rows.n - column.n_missing
    if rows.n > 1 and n_values and not column.varies:
        words = "constant" if n_values == rows.n else "constant_values"
        text = column.text(next(iter(column.labels or ())))
        yield _finding("constant", name, words, n_values, text=text)
    word = re.sub(r"[_ ]", "", column.name.casefold().removeprefix("is"))
    if word in lists()["label_names"] and len(column.labels or ()) == 2:
        yield _finding("label", name, "label", rows.n, drop=("drop", column.name))
    for number in column.lone.found():
        yield QualityFinding("lone", name, number.words, 1, (number.row,))


# --- columns --------------------------------------------------------------------------------------


def _copies(rows: RowScan) -> Iterator[QualityFinding]:
    if rows.n < _FEW_ROWS:
        return
    alike: dict[bytes, list[str]] = {}
    for column in rows.columns:
        if not column.varies:
            continue
        values = np.concatenate(column.words)
        _, first, groups = np.unique(values, return_index=True, return_inverse=True)
        key = values.tobytes()
        if 2 * len(first) <= len(values) >= _FEW_IN_GROUPS:
            # The group of each row, numbered by its first row: the values may have other names.
            rank = np.empty(len(first), np.int64)
            rank[np.argsort(first)] = np.arange(len(first))
            key = rank[groups].tobytes()
        alike.setdefault(key, []).append(column.name)
    for names in alike.values():
        if len(names) > 1:
            yield _finding("copies", names, "copies", rows.n)


def _relations(rows: RowScan, copied: set[str]) -> Iterator[QualityFinding]:
    samples = {
        column.name: np.concatenate(column.sample)
        for column in rows.columns
        if column.sample and not (column.is_date or column.is_id) and column.name not in copied
    }
    if follow := followers(samples):
        names = tuple(follower.name for follower in follow)
        yield QualityFinding("relations", names, followers_words(follow), rows.n)


# --- rows -----------------------------------------------------------------------------------------


def _duplicates(rows: RowScan, entity: str) -> Iterator[QualityFinding]:
    equal = repeated(np.concatenate(rows.whole))
    if len(equal):
        yield _finding("duplicates", (), "equal_rows", len(equal), equal.tolist())
    ids = [column for column in rows.columns if column.is_id]
    if rows.but_ids is not None:
        alike = np.setdiff1d(repeated(np.concatenate(rows.but_ids)), equal)
        # If there are more, the other columns just hold few values.
        if 0 < len(alike) <= max(1, rows.n // 10):
            names = [column.name for column in ids]
            yield _finding("duplicates", names, "equal_but", len(alike), alike.tolist())
    for column in ids:
        words = np.concatenate(column.ids)
        filled = np.flatnonzero(words != MISSING_BITS)
        again = filled[repeated(words[filled])]
        # If there are more, they belong to persons with several rows, or are names.
        if column.name != entity and 0 < len(again) <= max(1, rows.n // 20):
            yield _finding("duplicates", (column.name,), "equal_ids", len(again), again.tolist())


def _totals(rows: RowScan) -> Iterator[QualityFinding]:
    if rows.stride > 1 or rows.n < 2 * _LABELS[0]:
        return
    different = {np.concatenate(c.words).tobytes(): c for c in reversed(rows.columns)}
    numbers = [
        c
        for c in reversed(different.values())
        if c.sample and not (c.is_id or c.is_date) and c.low >= 0.0 and _are_measured(c)
    ]
    for column in rows.columns:
        if not column.is_text or column.labels is None:
            continue
        labels, codes = np.unique(np.concatenate(column.words), return_inverse=True)
        if not _LABELS[0] <= len(labels) <= _LABELS[1]:
            continue
        sums = [
            np.bincount(codes, np.nan_to_num(np.concatenate(n.sample))).astype(np.float64)
            for n in numbers
        ]
        likely = Counter(int(np.argmax(added)) for added in sums if _has_total(added, 1e-5))
        for k, _n in likely.most_common(1):
            adding = {
                c.name: added
                for c, added in zip(numbers, sums, strict=True)
                if int(np.argmax(added)) == k and _has_total(added, 1e-5)
            }
            least = _EXACT if len(numbers) > 1 else 0.0
            exact = any(_has_total(added, 1e-9) and added[k] >= least for added in adding.values())
            if len(adding) > 1 or exact:
                at = np.flatnonzero(codes == k)
                yield _finding(
                    "total", (column.name,), "totals", len(at), rows.sampled[at].tolist(),
                    label=column.named.get(int(labels[k]), ""), names=list(adding),
                )  # fmt: skip
                return


def _are_measured(column: ColumnScan) -> bool:
    words = np.concatenate(column.words)
    n = len(np.unique(words))
    return n > _FEW_ROWS or n == len(words)


def _has_total(sums: NDArray[np.float64], rtol: float) -> bool:
    """Return whether the largest of the sums of labels is that of all others, or of all levels."""
    largest = sums.max()
    ratio = (sums.sum() - largest) / largest if largest > 0.0 else 0.0
    return any(abs(ratio - levels) <= rtol * levels for levels in _LEVELS)


# --- columns of numbers that follow from others, which rows may break -----------------------------

#: Share of a column's variance that the others explain if it follows from them.
FOLLOWS = 0.9
#: Values that a follower needs besides one for each column; most rows and columns to look at;
#: different values that a column of measurements exceeds.
_LEAST_FREE, _MOST_ROWS, _MOST_COLUMNS, _DIFFERENT = 20, 10_000, 100, 10
#: How often missing values are predicted: if more often, predictions confirm themselves. With half
#: of the values missing, followers are named in 95 of 100 tables, and in none of 100 independent.
_FILLS = 2


class Follower(NamedTuple):
    """A column of numbers that follows from others: their strongest, and the adjusted R²."""

    name: str
    others: tuple[str, ...]
    r2: float


def followers(columns: Mapping[str, Floats]) -> list[Follower]:
    """Return the columns that linearly follow from the others, the best predicted first.

    The ends of each column (1%, and at least one value) are clipped, so that no single row decides.
    A missing value is replaced by its prediction from the others. Columns of few different values,
    such as yes and no, are left out: each of the parts of a code follows from the others.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n,)
        Numbers of a sample of rows, in random or any order; NaN where missing.
    """
    chosen: dict[str, Floats] = {}
    for name, values in columns.items():
        step = -(-len(values) // _MOST_ROWS)
        sample = values[:: max(1, step)]
        if len(np.unique(sample[np.isfinite(sample)])) > _DIFFERENT:
            chosen[name] = sample
        if len(chosen) == _MOST_COLUMNS:
            break
    k = len(chosen)
    if k < 2:
        return []
    names, X = list(chosen), np.column_stack(list(chosen.values()))
    missing = ~np.isfinite(X)
    X[missing] = np.nan
    rows = len(X) - missing.sum(axis=0)
    least = np.maximum(1, rows // 100)  # rows at each end
    X = np.clip(X, *np.sort(X, axis=0)[[least, rows - 1 - least], range(k)])
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.nanstd(X, axis=0)
    usable = np.isfinite(spread) & (spread > 0.0)
    if not usable.all():
        return followers({name: chosen[name] for name, ok in zip(names, usable, strict=True) if ok})
    Z = np.where(missing, 0.0, (X - np.nanmean(X, axis=0)) / spread)
    for _fill in range(_FILLS if missing.any() else 0):
        _variance, inverse = _inverse(Z)
        for j in np.flatnonzero(missing.any(axis=0)).tolist():
            gap = missing[:, j]
            Z[gap, j] -= Z[gap] @ inverse[:, j] / inverse[j, j]
    variance, inverse = _inverse(Z)
    partial = np.abs(inverse) / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    np.fill_diagonal(partial, -1.0)
    free = rows - k
    left = (rows - 1) / np.maximum(free, 1) / (np.diag(inverse) * variance)
    left[free < _LEAST_FREE] = 1.0
    result = []
    for j in np.argsort(left, kind="stable").tolist():
        if 1.0 - left[j] < FOLLOWS:
            break
        strongest = np.argsort(-partial[:, j])[: min(2, k - 1)].tolist()
        result.append(Follower(names[j], tuple(names[i] for i in strongest), float(1.0 - left[j])))
    return result


def _inverse(Z: Floats) -> tuple[Floats, Floats]:
    """Return the variances (k,) and the inverse covariances (k, k) of standard scores (n, k)."""
    covariance = Z.T @ Z / len(Z)
    variance = np.diag(covariance)
    return variance, np.asarray(np.linalg.inv(covariance + RIDGE * np.diag(variance)), np.float64)


def followers_words(follow: Sequence[Follower]) -> str:
    """Describe in words which columns follow from others, and the option; empty if none does."""
    if not follow:
        return ""
    first = follow[0]
    words = _(
        "%(name)s follows from the other columns, most of all from %(others)s (R² %(r2)s)",
        name=first.name,
        others=_(" and ").join(first.others),
        r2=numerals(f"{first.r2:.2f}"),
    )
    if len(follow) > 1:
        words += _("; so do %(names)s", names=first_names([f.name for f in follow[1:]], 5))
    return words + _(": relations=True (--relations) compares them.")
