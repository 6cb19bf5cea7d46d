"""Rows under a schema, as the 16-bit codes that the kernels read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import (
    InfiniteError,
    as_numbers,
    as_texts,
    filled,
    infinite,
    texts_column,
)
from hushtable.data.passes import KeptBatches, Numbered, numbered
from hushtable.data.readers import Batch, Reader
from hushtable.data.schema import Feature, Schema
from hushtable.threads import FEW_TO_COUNT, for_each, n_threads

#: Largest distance of a value from its range, in ranges, so that sums over the features stay
#: finite.
FARTHEST = 1e300
#: Columns at least and at most that `kernels.encode_wide` encodes faster. Measured: see the docs.
_WIDE = (48, 256)
#: The most of float32.
_WIDE_SINGLE = 4096
#: From rows of numbers (n, d), the low ends, high ends and scales of the features (d,), and arrays
#: to fill, to the first (row, column) of an infinity, or (-1, -1): such as `kernels.encode`.
NumbersLoop: TypeAlias = Callable[..., tuple[int, int]]


@dataclass(frozen=True)
class Outside:
    """Values of a batch that lie outside their feature's range or categories, feature by feature.

    ``rows`` (k,) and ``features`` (k,) are int64. ``beyond`` (k,) is how far a number lies beyond
    the nearer end of its range, in ranges; of a range of one point, in multiples of that point,
    or of 1 where it is 0. A category that is not listed has 0.
    """

    rows: NDArray[np.int64]
    features: NDArray[np.int64]
    beyond: NDArray[np.float64]

    @classmethod
    def of(cls, parts: list["Outside"]) -> "Outside":
        """Put those of several features together."""
        if not parts:
            return NOTHING_OUTSIDE
        rows = np.concatenate([part.rows for part in parts])
        features = np.concatenate([part.features for part in parts])
        return cls(rows, features, np.concatenate([part.beyond for part in parts]))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[np.int64], n_rows: int) -> "Outside":
        """Return those of some rows, all different, of a batch of ``n_rows``."""
        if not len(self):
            return self
        places = np.full(n_rows, -1)
        places[rows] = np.arange(len(rows))
        new_rows = places[self.rows]
        kept = new_rows >= 0
        return Outside(new_rows[kept], self.features[kept], self.beyond[kept])

    def totals(self, n_rows: int) -> NDArray[np.float64]:
        """Return, for each of ``n_rows`` rows, the sum of ``beyond`` over its features."""
        return np.asarray(np.bincount(self.rows, self.beyond, n_rows), np.float64)


NOTHING_OUTSIDE = Outside(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True)
class Codes:
    """A batch of rows, encoded."""

    #: (d, n) as `hushtable.kernels` defines them; (2 d, n) only if values are missing.
    codes: NDArray[np.uint16]
    #: (d, 2): rows whose value is missing, and those whose value is outside range or categories.
    tally: NDArray[np.int64]
    outside: Outside = NOTHING_OUTSIDE

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        outside = self.outside
        return (
            self.codes.nbytes
            + outside.rows.nbytes
            + outside.features.nbytes
            + outside.beyond.nbytes
        )

    @property
    def some_missing(self) -> bool:
        """Whether values are missing."""
        return len(self.codes) > len(self.tally)

    def take(self, rows: NDArray[np.int64]) -> "Codes":
        """Return some rows, by their numbers; the tally stays that of the batch."""
        outside = self.outside.take(rows, len(self))
        codes = np.empty((len(self.codes), len(rows)), np.uint16)
        kernels.take_rows(self.codes, rows, codes)
        return Codes(codes, self.tally, outside)


def _is_wide(X: np.ndarray) -> bool:
    """Whether `kernels.encode_wide` is the faster loop for rows (n, d). Measured: see the docs.

    Rows whose length is a multiple of 2 kB lie on few sets of the caches: a column of such rows,
    read by itself, evicts what the next one needs. Embeddings have 512, 768 or 1,024 columns.
    """
    n_columns = X.shape[1]
    most = _WIDE_SINGLE if X.dtype == np.float32 else _WIDE[1]
    return n_columns >= _WIDE[0] and (n_columns <= most or X.strides[0] % 2048 == 0)


class Encoder:
    """Turns batches into codes under one schema.

    Of numeric features, ``low`` and ``high`` (d,) float64 are the ranges, ``scale`` how many levels
    a difference of 1 is, and ``unit`` what distances beyond a range are divided by.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        features = schema.features
        self.low = np.array([f.low for f in features])
        self.high = np.array([f.high for f in features])
        self._relations = schema.relations
        if self._relations is not None:
            related = list(self._relations.columns)
            self.low[related], self.high[related] = self._relations.low, self._relations.high
        span = self.high - self.low
        with np.errstate(divide="ignore", over="ignore"):
            scale = kernels.LEVELS / span
        # A range too narrow to be divided by is one point, as is an empty one.
        self.scale = np.where(np.isfinite(scale), scale, 0.0)
        point = np.where(self.low == 0.0, 1.0, np.abs(self.low))
        self.unit = np.where(self.scale > 0.0, span, point)

    @cached_property
    def _categories(self) -> dict[str, pa.Array]:
        return {
            f.name: texts_column(f.categories)
            for f in self.schema.features
            if f.kind == "categorical"
        }

    def encode(self, batch: Batch, start: int = 0) -> Codes:
        """Encode a batch, whose first columns are the features in order.

        ``start`` is the number of its first row, for messages. Codes stay as they are.
        """
        if isinstance(batch, Codes):
            return batch
        n, d = len(batch), len(self.schema)
        coded, tally = np.empty((d, n), np.uint16), np.zeros((d, 2), np.int64)
        columns = self._coded(self._related(batch, start), coded, tally, start)
        some = tally[:, 1].nonzero()[0]
        if isinstance(columns, np.ndarray):
            outside = self._outside_of_numbers(columns.T, coded, some, tally[some, 1])
        else:
            outside = Outside.of([self._outside(j, columns[j], coded[j]) for j in some.tolist()])
        if np.count_nonzero(tally[:, 0]):  # any() takes longer than a row's codes
            both = np.empty((2 * d, n), np.uint16)
            both[:d] = coded
            np.subtract(coded, np.uint16(1), out=both[d:])  # 0, missing, becomes MISSING_HIGH
            both[d:] += coded != kernels.MISSING_LOW
            coded = both
        return Codes(coded, tally, outside)

    def _coded(
        self, batch: Batch, coded: NDArray[np.uint16], tally: NDArray[np.int64], start: int
    ) -> Any:
        if isinstance(batch, np.ndarray) and not self._categories:
            encode = kernels.encode_wide if _is_wide(batch) else kernels.encode
            self._scan(batch, slice(None), start, encode, coded, tally)
            return batch.T
        d = len(self.schema)
        columns = list(batch.T if isinstance(batch, np.ndarray) else batch.columns[:d])
        for j, (feature, column) in enumerate(zip(self.schema.features, columns, strict=True)):
            if feature.kind == "numeric":
                if not isinstance(column, np.ndarray):
                    column = columns[j] = as_numbers(column, feature.name, start)
                one = slice(j, j + 1)
                X = column[:, np.newaxis]
                self._scan(X, one, start, kernels.encode, coded[one], tally[one])
            else:
                coded[j] = self._categorical(feature, column, tally[j])
        return columns

    def _outside(self, j: int, column: pa.Array, codes: NDArray[np.uint16]) -> Outside:
        feature = self.schema.features[j]
        if feature.kind == "numeric":
            values = column.astype(np.float64)
            rows = np.flatnonzero((values < self.low[j]) | (values > self.high[j]))
            beyond = self._past(values[rows], j)
        else:
            rows = np.flatnonzero(codes == len(feature.categories) + 1)
            beyond = np.zeros(len(rows))
        return Outside(rows, np.full(len(rows), j), beyond)

    def _outside_of_numbers(
        self,
        X: np.ndarray,
        codes: NDArray[np.uint16],
        some: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> Outside:
        """Find the numbers of rows (n, d) that lie outside the ranges of some features (k,).

        ``times`` (k,) is how many each feature has.
        """
        if not len(some):
            return NOTHING_OUTSIDE
        features = np.repeat(some, times)
        rows = np.zeros(len(features), np.int64)
        kernels.find_outside(X, self.low, self.high, codes, some, rows)
        return Outside(rows, features, self._past(X[rows, features].astype(np.float64), features))

    def scan(self, batch: Batch, start: int, loop: NumbersLoop, *results: np.ndarray) -> bool:
        """Run a loop over a batch if all its columns are numbers, otherwise return False.

        Raises `DataError` for the infinity that it returns.
        """
        numbers = isinstance(batch, np.ndarray) and not self._categories
        if numbers:
            self._scan(self._related(batch, start), slice(None), start, loop, *results)
        return numbers

    def _related(self, batch: Batch, start: int) -> Batch:
        if self._relations is None:
            return batch
        return self._relations.applied(batch, self.schema.names, start)

    def _scan(
        self, X: np.ndarray, features: slice, start: int, loop: NumbersLoop, *results: np.ndarray
    ) -> None:
        ranges = self.low[features], self.high[features], self.scale[features]
        row, column = loop(X, *ranges, *results)
        if row >= 0:
            raise infinite(self.schema.names[features][column], start + row)

    def _past(self, values: NDArray[np.float64], j: Any) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            past = np.maximum(self.low[j] - values, values - self.high[j])
            return np.asarray(np.minimum(past / self.unit[j], FARTHEST), np.float64)

    def _categorical(
        self, feature: Feature, column: pa.Array, tally: NDArray[np.int64]
    ) -> NDArray[np.uint16]:
        if isinstance(column, np.ndarray):
            column = pa.array(column, from_pandas=True)
        codes = self._codes(feature, column)
        tally += (
            (codes == kernels.MISSING_LOW).sum(),
            (codes == len(feature.categories) + 1).sum(),
        )
        return codes

    def _codes(self, feature: Feature, column: pa.Array) -> NDArray[np.uint16]:
        if pa.types.is_dictionary(column.type):
            of_values = self._codes(feature, column.dictionary)
            with_missing = np.append(of_values, np.uint16(kernels.MISSING_LOW))  # at -1
            places = column.indices
            if places.null_count:  # polars counts without a sign
                places = places.cast(pa.int64())
            return np.take(with_missing, filled(places, -1), mode="wrap")
        texts = as_texts(column, feature.name)
        index = pc.index_in(texts, self._categories[feature.name], skip_nulls=True)
        codes = (filled(index, len(feature.categories)) + 1).astype(np.uint16)
        if texts.null_count:
            codes[np.from_dlpack(texts.is_null().cast(pa.uint8())) == 1] = kernels.MISSING_LOW
        return codes


@contextmanager
def naming_places(reader: Reader) -> Iterator[None]:
    """Name the file, and the place in it, in errors about an infinity in a reader's rows."""
    try:
        yield
    except InfiniteError as error:
        raise infinite(error.feature, error.row, reader.where(error.row)) from None


def encoded_rows(
    reader: Reader, schema: Schema, n_rows: int, n_bytes: int, n_jobs: int | None
) -> Reader:
    """Return ``n_rows`` rows as their codes, if these take at most ``n_bytes`` of memory.

    Otherwise, return the reader.
    """
    if 2 * n_rows * len(schema) > n_bytes:
        return reader
    encoder, kept = Encoder(schema), KeptBatches(n_bytes)

    def encode(item: Numbered) -> None:
        start, batch, _ = item
        kept.add(start, encoder.encode(batch, start))

    with naming_places(reader):
        for_each(encode, numbered(reader), n_threads(n_jobs, n_rows, few=FEW_TO_COUNT))
    return kept.rows(reader, n_rows) or reader
