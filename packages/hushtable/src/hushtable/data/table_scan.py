"""Two passes over a table: before it is decided how its columns are read, and after that.

`TableScan` collects the facts by which `hushtable.data.understanding` decides. `RowScan` then
processes the values as they are read: each becomes 64 bits, and sums of these over a row identify
equal rows; labels are counted while there are few of them, and the values of a sample of rows are
kept. The only negative number, or the only zero, of a column is often an error that no score finds.
`hushtable.data.quality` decides what a person should see.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import (
    InfiniteError,
    as_column,
    as_numbers,
    as_texts,
    decoded,
    filled,
    infinite,
    is_text,
)
from hushtable.data.persons import among
from hushtable.data.readers import Batch
from hushtable.data.schema import number_words
from hushtable.data.texts.column_facts import ColumnFacts
from hushtable.data.texts.doubt import ColumnUnderstanding
from hushtable.data.texts.missing import named_numbers
from hushtable.data.texts.numbers import mask
from hushtable.data.texts.reading import Reading, form_of, plain_texts, without_blanks
from hushtable.language import _, numerals

# --- before it is decided -------------------------------------------------------------------------


def facts_of(name: str, reading: Reading) -> ColumnFacts:
    """Return the facts about a column before its first row."""
    absent = named_numbers(reading.codes(name), ".")
    return ColumnFacts(name, absent, reading.kinds.get(name) == "number")


class TableScan:
    """Facts about a table from some of its batches."""

    def __init__(self, names: list[str], reading: Reading) -> None:
        self.names, self.reading = names, reading
        #: Number of rows, and of those in the first batch.
        self.n_rows = self.n_first = 0
        #: Ranges of the values that are not texts.
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        #: Facts by number of the column; none for a matrix.
        self.columns: dict[int, ColumnFacts] = {}

    def add(self, batch: Batch, start: int) -> Batch:
        """Process a batch; return it with numbers in place of texts that can mean nothing else.

        Texts that repeat are then dictionary-encoded. If some texts are codes for missing values,
        texts stay, because their reading may depend on the column's decimal separator.
        """
        self.n_rows += len(batch)
        self.n_first = self.n_first if start else len(batch)
        named = {"category", "label"} & {*self.reading.kinds.values()}
        if isinstance(batch, np.ndarray) and named:
            columns = [as_column(np.ascontiguousarray(column)) for column in batch.T]
            batch = pa.RecordBatch.from_arrays(columns, self.names)
        if isinstance(batch, np.ndarray):
            self._add_ranges(self.reading.without_numbers(batch, self.names), start, slice(None))
            return batch
        made = list(batch.columns)
        for j, column in enumerate(batch.columns):
            name = self.names[j]
            column, declared = _as_declared(self.reading.without_missing(column, name))
            if self.reading.kinds.get(name) in ("category", "label"):
                declared = True
                column = column if is_text(column.type) else as_texts(column, name)
            facts = self.facts(j)
            if not is_text(column.type):
                numbers, here = as_numbers(column, name, start), slice(j, j + 1)
                try:
                    self._add_ranges(numbers[:, np.newaxis], start, here)
                except InfiniteError:
                    facts.add_infinities(numbers, start)
                    numbers = np.where(np.isinf(numbers), np.nan, numbers)
                    self._add_ranges(numbers[:, np.newaxis], start, here)
                facts.add_values(numbers, form_of(column.type), start)
                continue
            facts.declared |= declared
            made_of_texts = facts.add(column, start)
            if made_of_texts is not None and not self.reading.missing:
                made[j] = made_of_texts
                facts.parsed |= not is_text(made_of_texts.type)
        return pa.RecordBatch.from_arrays(made, batch.schema.names)

    def facts(self, j: int) -> ColumnFacts:
        """Return the facts about a column."""
        if j not in self.columns:
            self.columns[j] = facts_of(self.names[j], self.reading)
        return self.columns[j]

    def _add_ranges(self, X: np.ndarray, start: int, columns: slice) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "TableScan") -> None:
        """Add what another thread found."""
        self.n_rows += other.n_rows
        self.n_first = max(self.n_first, other.n_first)
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        for j, facts in other.columns.items():
            self.facts(j).merge(facts)

    def mixed(self, j: int) -> bool:
        """Return whether a column holds text in some files and numbers in others."""
        return bool(self.facts(j).n and self.low[j] <= self.high[j])


def _as_declared(column: pa.Array) -> tuple[pa.Array, bool]:
    """Return a column, whole numbers of a dictionary as texts; and whether it has such numbers.

    Frames call a dictionary a category: its type says that numbers are labels.
    """
    if not pa.types.is_dictionary(column.type):
        return column, False
    values = column.dictionary
    if is_text(column.type):
        return column, bool(pc.all(pc.match_substring_regex(values, r"^[+-]?\d+$")).as_py())
    whole = pa.types.is_integer(values.type)
    if pa.types.is_floating(values.type):  # a frame turns whole numbers with gaps into floats
        whole = not pc.any(pc.not_equal(values, pc.round(values))).as_py()
    return (as_texts(column, ""), True) if whole else (column, False)


# --- lone numbers ---------------------------------------------------------------------------------

#: Writes a number, with so many digits.
Write: TypeAlias = Callable[[float, int | None], str]
#: Least number of values of a column.
_LEAST_VALUES = 30
#: First values of a batch that show whether all are whole numbers.
_GLANCE = 64
#: Among whole numbers, a zero is as ordinary as the ones if these are fewer than this.
_MANY_ONES = 20


@dataclass(frozen=True)
class LoneNumber:
    """The only negative number, or the only zero, of a column."""

    column: str
    value: float
    #: Number of its row, from 0, and the file if there are several.
    row: int
    file: str = ""
    #: Writes the number as its column is written: see `Feature.written`.
    write: Write = field(default=number_words, repr=False, compare=False)

    @property
    def words(self) -> str:
        """Where it is, as a sentence."""
        row = numerals(f"{self.row:,}")
        facts = {"name": self.column, "value": self.write(self.value, None), "row": row}
        if self.value:
            words = _("%(name)s has one negative value, %(value)s, in row %(row)s", **facts)
        else:
            words = _("%(name)s has one zero, in row %(row)s", **facts)
        return f"{words} ({self.file})." if self.file else f"{words}."

    @property
    def remark(self) -> str:
        """The number as a remark on its row."""
        if self.value:
            return _(
                "%(name)s %(value)s: the only negative value",
                name=self.column,
                value=self.write(self.value, None),
            )
        return _("%(name)s 0: the only zero", name=self.column)


class LoneNumbers:
    """Looks for them in the batches of a column."""

    def __init__(self, column: str, write: Write | None = None) -> None:
        self.column, self._write = column, write or number_words
        self._n_values = self._n_negative = self._n_zeros = self._n_ones = 0
        self._whole = True
        self._candidates: list[LoneNumber] = []

    def add(self, values: NDArray[np.float64], start: int, file: str = "") -> None:
        """Process a batch (n,), whose first row has the number ``start`` in its file."""
        self._n_values += len(values) - int(np.isnan(values).sum())
        self._n_ones += int((values == 1.0).sum())
        glance = values[:_GLANCE]
        self._whole &= bool((np.isnan(glance) | (glance == np.round(glance))).all())
        if self._n_negative > 1 or not (at := np.flatnonzero(values <= 0.0)).size:
            return
        low = values[at]
        self._n_negative += int((low < 0.0).sum())
        self._n_zeros += int((low == 0.0).sum())
        for chosen in (low < 0.0, low == 0.0):
            for i in at[chosen][:1].tolist():
                self._candidates.append(
                    LoneNumber(self.column, float(values[i]), start + i, file, self._write)
                )

    def found(self) -> list[LoneNumber]:
        """Return the only negative number, and the only zero unless several are negative."""
        if self._n_values < _LEAST_VALUES or self._n_negative > 1:
            return []
        counts_from_zero = self._whole and 0 < self._n_ones < _MANY_ONES
        zero = self._n_zeros == 1 and not counts_from_zero
        lone = [number for number in self._candidates if number.value or zero]
        return sorted(lone, key=lambda number: (number.file, number.row))


# --- after that: rows and columns -----------------------------------------------------------------

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

#: Largest number of different values of a column to count, and of letters in its labels.
MAX_DIFFERENT, _MAX_LETTERS = 1_000, 1 << 20
#: Number of rows to note as examples, and of example values of a column.
EXAMPLE_ROWS, _VALUES = 5, 3
#: Number of rows in the sample (up to twice as many); and of values in total.
_SAMPLE, _SAMPLE_VALUES = 16_384, 1 << 22
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
#: Fingerprint of every missing value.
MISSING_BITS = np.uint64(0x2545_F491_4F6C_DD1D)


class RowScan:
    """The columns of a table, and a fingerprint of each row."""

    def __init__(self, columns: Sequence[ColumnUnderstanding], n_rows: int) -> None:
        self.columns = [ColumnScan(understood, j) for j, understood in enumerate(columns)]
        self.n = 0
        #: One of this many rows is in the sample: if the last bits of a hash of its number are
        #: zero, which follows no pattern of the rows. And the numbers of these rows.
        self.stride = 1
        self.sampled = np.empty(0, np.int64)
        most = 2 * max(512, min(_SAMPLE, _SAMPLE_VALUES // (2 * max(1, len(columns)))))
        while n_rows // self.stride >= most:
            self.stride *= 2
        #: Fingerprints over all columns, and over all except identifiers; these are None if there
        #: are only, or no, identifiers.
        self.whole: list[Words] = []
        n_ids = sum(column.is_id for column in self.columns)
        self.but_ids: list[Words] | None = [] if 0 < n_ids < len(columns) else None

    def add(self, batch: Batch, reading: Reading) -> None:
        """Process a batch."""
        start, n = self.n, len(batch)
        places = _mixed(np.arange(start + 1, start + n + 1, dtype=np.uint64))
        sampled = np.flatnonzero(places % np.uint64(self.stride) == 0)
        self.sampled = np.append(self.sampled, sampled + start)
        # Of columns, and of identifiers.
        other, ids = sums = np.zeros((2, n), np.uint64)
        for j, column in enumerate(self.columns):
            if isinstance(batch, np.ndarray):
                values = as_column(np.ascontiguousarray(batch[:, j]))
            else:
                values = batch.column(j)
            sums[int(column.is_id)] += column.add(values, reading, start, sampled) * column.weight
        self.whole.append(other + ids)
        if self.but_ids is not None:
            self.but_ids.append(other.copy())
        self.n += n


class ColumnScan:
    """A column, processed batch by batch."""

    def __init__(self, understood: ColumnUnderstanding, j: int) -> None:
        self.name, self.understood = understood.name, understood
        self.is_id = understood.kind == "id"
        self.is_date, self.is_text = understood.kind == "date", False
        self.n_missing = 0
        self.examples: list[str] = []
        #: Rows with each label, and the label of a fingerprint, while there are few of them.
        self.labels: dict[str, int] | None = {}
        self.named: dict[int, str] = {int(MISSING_BITS): ""}
        self._letters = 0
        self.weight = _mixed(np.array([j + 1], np.uint64))[0] | np.uint64(1)
        #: Fingerprints of all rows of an identifier.
        self.ids: list[Words] = []
        #: In the sample: numbers, and fingerprints.
        self.sample: list[Floats] = []
        self.words: list[Words] = []
        self.low, self.high = np.inf, -np.inf
        how = understood.reading
        self.lone = LoneNumbers(self.name, None if how is None else how.written)

    def add(
        self, values: pa.Array, reading: Reading, start: int, sampled: NDArray[np.int64]
    ) -> Words:
        """Process a batch; return 64 bits for each value."""
        read = self.understood.reading
        values = reading.without_missing(values, self.name, read.decimal if read else None)
        values = decoded(values)
        if is_text(values.type) and read and not (read.is_category or self.understood.refused):
            values = as_column(read.values(plain_texts(values)))
        if is_text(values.type):
            self.is_text = True
            values = without_blanks(values)
            words, missing = _text_words(values), mask(pc.is_null(values))
        else:
            if pa.types.is_integer(values.type):  # identifiers of any length pass
                numbers = filled(pc.cast(values, pa.float64(), safe=False), np.nan)
            else:
                numbers = as_numbers(values, self.name, start).astype(np.float64, copy=False)
            words, missing = _number_words(values, numbers), np.isnan(numbers)
            self.sample.append(numbers[sampled])
            known = numbers if np.isfinite(numbers).all() else numbers[np.isfinite(numbers)]
            self.low = min(self.low, float(known.min(initial=np.inf)))
            self.high = max(self.high, float(known.max(initial=-np.inf)))
            if not self.is_date:
                self.lone.add(numbers, start)
        words = _mixed(words)
        words[missing] = MISSING_BITS
        self.words.append(words[sampled])
        self.n_missing += int(missing.sum())
        if self.labels is not None:
            self._count(values)
        if self.is_id:
            self.ids.append(words)
        return words

    def _count(self, values: pa.Array) -> None:
        assert self.labels is not None
        if pa.types.is_null(values.type):
            return
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        counts = pc.value_counts(values.drop_null())
        different = counts.field("values")
        few = len(different) <= MAX_DIFFERENT
        counted = different if few else different.slice(0, _VALUES + 1)
        if form_of(counted.type) != "number":
            counted = as_column(as_numbers(counted, self.name))
        texts = as_texts(counted, self.name).to_pylist()
        fresh = [text for text in texts if text is not None and text not in self.labels]
        self.examples += fresh[: _VALUES - len(self.examples)]
        self._letters += sum(map(len, fresh))
        if not few or len(self.labels) + len(fresh) > MAX_DIFFERENT or self._letters > _MAX_LETTERS:
            self.labels = None
            return
        for text, n in zip(texts, counts.field("counts").to_pylist(), strict=True):
            if text is not None:
                self.labels[text] = self.labels.get(text, 0) + n
        if self.is_text:
            self.named |= dict(zip(_mixed(_text_words(different)).tolist(), texts, strict=True))

    def text(self, label: str) -> str:
        """Return a counted value as its column is written."""
        how = self.understood.reading
        return label if self.is_text or how is None else how.written(float(label), 15)

    @property
    def varies(self) -> bool:
        """Return whether it holds at least two different values."""
        return self.labels is None or len(self.labels) > 1


# --- 64 bits of a value ---------------------------------------------------------------------------


def _mixed(words: Words) -> Words:
    """Mix the bits of words without collisions (the last step of SplitMix64)."""
    words = words ^ (words >> np.uint64(30))
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words


def _number_words(values: pa.Array, numbers: Floats) -> Words:
    """Return the bits of numbers; zero has one sign, and different whole numbers stay different."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return _text_words(pc.cast(values, pa.string()))
    bits: Words = (numbers + 0.0).view(np.uint64)
    if pa.types.is_floating(kind) or pa.types.is_null(kind) or kind.bit_width < 64:
        return bits
    whole = filled(values.view(pa.int64()), 0).view(np.uint64)
    return np.where(np.abs(numbers) < 2**53, bits, whole) if pa.types.is_integer(kind) else whole


def _text_words(texts: pa.Array) -> Words:
    """Return 64 bits for each of texts (n,), which are the same in this process alone."""
    encoded = texts.dictionary_encode()
    hashes = np.fromiter(map(hash, [*encoded.dictionary.to_pylist(), None]), np.int64)
    words: Words = hashes.view(np.uint64)[filled(encoded.indices, -1)]
    return words


def repeated(hashes: Words) -> NDArray[np.int64]:
    """Return the numbers of rows whose fingerprint an earlier row has, rising."""
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    rows = np.flatnonzero(among(twice, hashes))
    first = np.unique(hashes[rows], return_index=True)[1]
    return np.delete(rows, first)
