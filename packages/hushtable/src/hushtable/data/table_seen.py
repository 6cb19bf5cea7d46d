"""One pass over a table: the contents of its columns, and a fingerprint of each row and column.

Each value becomes 64 bits; sums of these over a row, and over a column, identify equal rows and
equal columns. Labels are counted while there are few of them, and numbers of a sample of rows are
kept. `hushtable.data.quality` decides what a person should see.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, as_numbers, as_texts, filled, is_text, texts_column
from hushtable.data.labels import fold_texts
from hushtable.data.lone import LoneNumbers
from hushtable.data.persons import among
from hushtable.data.readers.totals import TOTAL_WORDS, is_total_word
from hushtable.data.texts import numbers
from hushtable.data.texts.facts import taken
from hushtable.data.texts.reading import (
    ColumnUnderstanding,
    Reading,
    plain_texts,
    without_blanks,
    without_named,
)

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

#: Largest number of different values of a column to count, and of letters in its labels.
MAX_DIFFERENT, _MAX_LETTERS = 1_000, 1 << 20
#: Number of rows to note as examples, and of example values of a column.
EXAMPLE_ROWS, _VALUES = 5, 3
#: Number of rows in the sample of numbers (up to twice as many); and of values in total.
_SAMPLE, _SAMPLE_VALUES = 16_384, 1 << 22
#: Number of bytes after which the rest of a text is hashed separately.
_LONG = 128
#: Cells that mean a total.
_TOTALS = texts_column(TOTAL_WORDS)
_FIRST, _SECOND = np.uint64(0xBF58_476D_1CE4_E5B9), np.uint64(0x94D0_49BB_1331_11EB)
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
#: Fingerprint of every missing value.
MISSING_BITS = np.uint64(0x2545_F491_4F6C_DD1D)
_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)


#: Kinds of columns whose values are not looked at as numbers.
_NO_NUMBERS = ("id", "category", "text")


class RowsSeen:
    """The columns of a table, and a fingerprint of each row."""

    def __init__(self, columns: "list[ColumnSeen]") -> None:
        self.columns = columns
        self.n = 0
        #: One of this many rows is in the sample: if the last bits of a hash of its number are
        #: zero, which follows no pattern of the rows. And the numbers of these rows.
        self.stride = 1
        self.sampled = np.empty(0, np.int64)
        self._most = 2 * max(512, min(_SAMPLE, _SAMPLE_VALUES // (2 * max(1, len(columns)))))
        #: Of all columns.
        self.whole: list[Words] = []
        #: Fingerprints over all columns except identifiers; None if there are only, or no,
        #: identifiers.
        self.but_ids: list[Words] | None = None
        n_ids = sum(column.is_id for column in columns)
        if 0 < n_ids < len(columns):
            self.but_ids = []

    def add(self, batch: Any, parsed: Any, reading: Reading) -> None:
        """Process a batch; ``parsed`` is None, or the same with numbers in place of some texts."""
        start, n = self.n, len(batch)
        places = _mixed(np.arange(start + 1, start + n + 1, dtype=np.uint64))
        while (start + n) // self.stride >= self._most:
            self._thin()
        sampled = np.flatnonzero(places % np.uint64(self.stride) == 0)
        self.sampled = np.append(self.sampled, sampled + start)
        places |= np.uint64(1)
        totals = tuple(filter(is_total_word, reading.missing))
        other, ids = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        for j, column in enumerate(self.columns):
            if isinstance(batch, np.ndarray):
                values = as_column(np.ascontiguousarray(batch[:, j]))
            else:
                values = batch.column(j)
            if totals and is_text(values.type):  # without a word, the row still sums up others
                gone = _is_null(without_named(values, totals, None)) & ~_is_null(values)
                _note(column.totals, gone, start)
            found = None
            if parsed is not None and is_text(values.type):
                numbers_of = parsed.column(j)
                found = None if is_text(numbers_of.type) else filled(numbers_of, np.nan)
            words = column.add(reading.without_missing(values, column.name), start, sampled, found)
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

    def are_of(self, columns: Sequence[ColumnUnderstanding]) -> bool:
        """Return whether these columns, of all rows, are read as those that were seen.

        Words and confidences do not matter, because they are not collected here.
        """
        return len(columns) == len(self.columns) and all(
            mine.understood is not None and _manner(mine.understood) == _manner(one)
            for mine, one in zip(self.columns, columns, strict=True)
        )

    def replace_understood(self, columns: Sequence[ColumnUnderstanding]) -> None:
        """Take words and confidences from these columns, which `are_of` accepts."""
        for mine, one in zip(self.columns, columns, strict=True):
            mine.understood = one

    def _thin(self) -> None:
        """Keep half of the rows in the sample."""
        self.stride *= 2
        places = _mixed((self.sampled + 1).astype(np.uint64))
        kept = places % np.uint64(self.stride) == 0
        self.sampled = self.sampled[kept]
        for column in self.columns:
            column.thin(kept)


@dataclass
class LabelSeen:
    """A label: number of rows with it, and the first of them."""

    n: int = 0
    rows: list[int] = field(default_factory=list)


class ColumnSeen:
    """A column, processed batch by batch."""

    def __init__(self, name: str, j: int, understood: ColumnUnderstanding | None) -> None:
        self.name, self.understood = name, understood
        self.is_id = understood is not None and understood.kind == "id"
        self._read = understood.reading if understood else None
        #: Whether it holds numbers, dates or times, as far as it was read.
        kind = understood.kind if understood else ""
        self.numeric = kind not in _NO_NUMBERS
        self.is_date = self._read is not None and self._read.kind in ("date", "time")
        self.is_text = False
        self.n_missing = 0
        self.examples: list[str] = []
        #: Labels, while there are few of them.
        self.labels: dict[str, LabelSeen] | None = {}
        self._letters = 0
        self.weight = _mixed(np.array([j + 1], np.uint64))[0] | np.uint64(1)
        #: Fingerprint of all values with their places, to identify equal columns.
        self.print = 0
        #: For an identifier, the fingerprints of all rows.
        self.ids: list[Words] = []
        self.sample: list[Floats] = []
        #: Sum of the numbers above the last row.
        self.n_values, self.sum, self.largest, self.last = 0, 0.0, 0.0, np.nan
        self.low, self.high = np.inf, -np.inf
        self.lone = LoneNumbers(name)
        self.totals = LabelSeen()
        #: Rows with values that a person should confirm or reject as codes for missing values.
        self.doubtful = LabelSeen()
        options = understood.options if understood else ()
        self._named = tuple(text for flag, text in options if flag == "--missing")

    def add(
        self, values: Any, start: int, sampled: NDArray[np.int64], plain: Floats | None
    ) -> Words:
        """Process values, without codes for missing ones; return 64 bits for each.

        ``plain`` are the numbers in texts, if it is known that they are plain numbers.
        """
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if is_text(values.type):
            self.is_text = True
            values = fold_texts(plain_texts(values))
            words, blank = _text_words(values)
            if blank.any():
                values = _without_blank(values, blank)
            found = self._numbers_of_texts(values, sampled, start, plain)
            missing = _is_null(values)
            if found is None or np.count_nonzero(np.isnan(found)) > missing.sum():
                _note(self.totals, _is_total(values), start)
        else:
            self.is_date |= pa.types.is_temporal(values.type)
            found = _as_floats(values, self.name, start)
            words, missing = _number_words(values, found), np.isnan(found)
            self._add_numbers(found, sampled, start)
        words = _mixed(words)
        words[missing] = MISSING_BITS
        nothing = missing
        if self.is_text and found is not None and self.understood and not self.understood.refused:
            nothing = np.isnan(found)  # also for the word nan, and where a person requested numbers
        self.n_missing += int(nothing.sum())
        if self._named:
            decimal = self._read.decimal if self._read else None
            gone = without_named(values, self._named, decimal)
            _note(self.doubtful, _is_null(gone) & ~missing, start)
        if self.labels is not None:
            self._count(values, start)
        if self.is_id:
            self.ids.append(words)
        return words

    def _numbers_of_texts(
        self, texts: Any, sampled: NDArray[np.int64], start: int, plain: Floats | None
    ) -> Floats | None:
        """Return the numbers in texts, if any; days are only read in the sample."""
        read = self._read
        if not self.numeric:
            return None
        if read is not None and self.is_date:
            self.sample.append(read.values(taken(texts, sampled)))
            return None
        if read is not None and not read.is_category:
            known = plain is not None and read.takes_plain_numbers
            found: Floats | None = plain if known else read.values(texts)
        else:
            found = numbers.plain(texts) if self.understood is None else None
        if found is None:
            self.numeric, self.sample, self.n_values = False, [], 0
            self.low, self.high = np.inf, -np.inf
            self.lone = LoneNumbers(self.name)
        else:
            self._add_numbers(found, sampled, start)
        return found

    def _add_numbers(self, values: Floats, sampled: NDArray[np.int64], start: int) -> None:
        if not self.numeric:
            return
        self.sample.append(values[sampled])
        known = values[np.isfinite(values)]
        self.low = min(self.low, float(known.min(initial=np.inf)))
        self.high = max(self.high, float(known.max(initial=-np.inf)))
        if self.is_date:
            return
        self.lone.add(values, start)
        above = np.append(self.last, values[:-1])
        above = above[np.isfinite(above)]
        with np.errstate(over="ignore", invalid="ignore"):
            self.n_values += len(above)
            self.sum += float(above.sum())
        self.largest = max(self.largest, float(np.abs(above).max(initial=0.0)))
        self.last = float(values[-1])

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and highest number or point in time, if it holds any."""
        if self.low <= self.high:
            return self.low, self.high
        known = [part[np.isfinite(part)] for part in self.sample if self.is_date]
        values = np.concatenate(known) if known else np.empty(0)
        return (float(values.min()), float(values.max())) if len(values) else None

    def thin(self, kept: NDArray[np.bool_]) -> None:
        """Keep some of the rows in the sample."""
        if self.sample:
            self.sample = [np.concatenate(self.sample)[kept]]

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
        if not self.is_text:  # no caller needs the rows
            self.labels |= dict.fromkeys(fresh, LabelSeen())
            return
        codes = filled(encoded.indices, -1)
        times = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        labels = [self.labels.setdefault(text, LabelSeen()) for text in texts]
        for label, n in zip(labels, times, strict=True):
            label.n += n
        if all(len(label.rows) == EXAMPLE_ROWS for label in labels):
            return
        order = np.argsort(codes, kind="stable")
        first = len(codes) - sum(times)  # after the missing values
        for label, n in zip(labels, times, strict=True):
            rows = order[first : first + min(n, EXAMPLE_ROWS - len(label.rows))]
            label.rows += (rows + start).tolist()
            first += n

    @property
    def varies(self) -> bool:
        """Return whether it holds at least two different values."""
        return self.labels is None or len(self.labels) > 1


def _manner(one: ColumnUnderstanding) -> tuple[Any, ...]:
    """Return what `ColumnSeen` needs to know of a column to process its rows."""
    named = [text for flag, text in one.options if flag == "--missing"]
    numeric = one.kind not in _NO_NUMBERS
    return one.kind == "id", numeric, one.reading, numeric and one.refused, named


def _note(seen: LabelSeen, found: NDArray[np.bool_], start: int) -> None:
    """Count the rows in which something is found."""
    rows = np.flatnonzero(found)
    seen.n += len(rows)
    seen.rows += (rows[: EXAMPLE_ROWS - len(seen.rows)] + start).tolist()


# --- 64 bits of a value ---------------------------------------------------------------------------


def _mixed(words: Words) -> Words:
    """Mix the bits of words without collisions (the last step of SplitMix64)."""
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
    """Return the bits of numbers; zero has one sign, and different whole numbers stay different."""
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
    some = _is_null(without_blanks(taken(texts, np.flatnonzero(likely))))
    if not some.any():
        return texts
    gone = likely.copy()
    gone[likely] = some
    return pc.if_else(as_column(gone), pa.nulls(1, pa.string())[0], texts)


def _is_null(values: Any) -> NDArray[np.bool_]:
    if not values.null_count:
        return np.zeros(len(values), bool)
    return numbers.mask(pc.is_null(values))


def _is_total(texts: Any) -> NDArray[np.bool_]:
    small = pc.utf8_lower(pc.utf8_trim(texts, " \t\u00a0:.*="))
    return numbers.mask(pc.is_in(small, value_set=_TOTALS))


def repeated(hashes: Words) -> NDArray[np.int64]:
    """Return the numbers of rows whose fingerprint an earlier row has, rising."""
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    rows = np.flatnonzero(among(twice, hashes))
    first = np.unique(hashes[rows], return_index=True)[1]
    return np.delete(rows, first)
