"""Rows in memory: NumPy, SciPy, pandas, polars, Arrow objects, lists of dicts."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.columns import integer_too_large
from hushtable.data.labels import fold
from hushtable.data.readers.reader import (
    FILE_ROWS,
    Batch,
    Reader,
    Source,
    as_name,
    column_names,
    library_of,
    slices,
    split,
)
from hushtable.errors import DataError, DataTypeError
from hushtable.threads import FEW_ROWS


def is_arrow(data: object) -> bool:
    """Whether this is a pyarrow RecordBatch, RecordBatchReader, Table or Dataset."""
    if isinstance(data, pa.RecordBatch | pa.RecordBatchReader):
        return True
    return library_of(data) == "pyarrow" and hasattr(data, "to_batches")


def arrow(data: Any) -> Reader:
    """Read a pyarrow object without a copy; a RecordBatchReader once."""
    if isinstance(data, pa.RecordBatchReader):
        return stream(data.schema, lambda: data, one_shot=True)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        names = column_names(data.schema)
        return Reader.of(names, len(names), Source(lambda: split(data.to_batches()), len(data)))
    # The defaults read far ahead, and take 20 times the memory of these settings.
    sparing = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    return stream(data.schema, lambda: data.to_batches(batch_size=FILE_ROWS, **sparing))


def c_stream(data: object) -> Reader:
    """Read anything with ``__arrow_c_stream__``, once."""
    try:
        return arrow(pa.RecordBatchReader.from_stream(data))
    except pa.ArrowInvalid:  # such as a ChunkedArray
        raise DataError(
            f"Expected 2D array, got a {type(data).__name__} that is not a table: name its column, "
            "as in pa.table({'name': column})"
        ) from None


def stream(
    schema: pa.Schema, read: Callable[[], Iterable[pa.RecordBatch]], *, one_shot: bool = False
) -> Reader:
    """Read record batches from ``read``, which is called once per pass."""
    names = column_names(schema)

    def batches() -> Iterator[Batch]:
        try:
            yield from split(read())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataError(f"the data: {error}") from None

    return replace(Reader.of(names, len(names), Source(batches)), one_shot=one_shot)


def is_records(data: object) -> bool:
    """Whether this is a list or tuple that begins with a dict."""
    return isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], Mapping)


def records(data: Sequence[Mapping[str, object]]) -> Reader:
    """Read a list of dicts; a key that a dict lacks is a missing value."""
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise DataTypeError(
                f"row {row} is a {type(record).__name__}, but the rows before are dicts: needs a "
                "list of dicts, or a matrix"
            )
    # Not Table.from_pylist, which uses only the keys of the first row.
    names = list(dict.fromkeys(key for record in data for key in record))
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise DataTypeError(f"key {other[0]!r} is not text: use text as column names")
    if not names:
        raise DataError("the dicts have no keys: a minimum of 1 is required")
    return arrow(
        pa.table({name: of_one_type([r.get(name) for r in data], repr(name)) for name in names})
    )


def with_absent_keys(data: Any, names: Iterable[str]) -> Any:
    """Return a list of dicts with each of the names: a key that no dict has is a missing value.

    Other data stay as they are, and so do dicts with none of the names.
    """
    if not is_records(data) or not all(isinstance(record, Mapping) for record in data):
        return data
    known = {fold(str(key)) for record in data for key in record}
    absent = [name for name in names if fold(name) not in known]
    return [{**dict.fromkeys(absent), **row} for row in data] if known & {*names} else data


def of_one_type(values: list[object], column: str) -> pa.Array:
    """Return values as an Arrow column; ``column`` names it in messages.

    Raises `DataTypeError` if they are of several types, and `DataError` for a whole number that
    is too large, or a text with half a character.
    """
    try:
        return pa.array(values, from_pandas=True)
    except UnicodeEncodeError as error:
        rows = [i for i, value in enumerate(values) if isinstance(value, str)]
        row = next((f" in row {i}" for i in rows if values[i] == error.object), "")
        raise half_a_character(column, error, row) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        if all(value is None or isinstance(value, int | float) for value in values):
            for value in values:
                if isinstance(value, int) and abs(value) > 2**53:
                    bits = value.bit_length()
                    number = value if bits <= 128 else f"of {bits:,} bits"
                    raise integer_too_large(f"column {column}", number) from None
        raise DataTypeError(
            f"column {column} mixes types: argument must be a string or a real number in the "
            f"whole column ({error})"
        ) from None


def half_a_character(column: str, error: UnicodeEncodeError, row: str = "") -> DataError:
    """Explain that a text of a column holds an unpaired surrogate."""
    return DataError(
        f"column {column} holds {error.object!r:.80}{row}: half a character (an unpaired "
        "surrogate), which cannot be stored; correct the text, or leave it empty"
    )


def matrix(data: Any) -> Reader:
    """Read a NumPy array, or anything that NumPy can convert; masked values are missing."""
    # NumPy would take these as one value.
    if isinstance(data, Mapping):
        raise DataTypeError("a dict of columns: make a frame of it, such as pandas.DataFrame(data)")
    if isinstance(data, Iterator):
        raise DataTypeError(f"a {type(data).__name__} can be read only once: give list(...) of it")
    try:
        if isinstance(data, list | tuple) and any(isinstance(r, np.ma.MaskedArray) for r in data):
            data = np.ma.stack(data)  # for a list of rows, asarray would lose the masks
        X = np.asanyarray(data) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    except ValueError as error:
        raise DataError(f"cannot read {type(data).__name__} as rows and columns: {error}") from None
    if X.dtype.names is not None:
        return _structured(X)
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported: got complex numbers, needs real ones")
    if X.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {X.ndim}D array of shape {X.shape} instead. Reshape your "
            "data with .reshape(-1, 1) if it has a single feature or .reshape(1, -1) if it has "
            "a single row"
        )
    n, d = X.shape

    def blocks(X: np.ndarray) -> Iterator[np.ndarray]:
        return (X[rows] for rows in slices(n, d))

    if d == 0:
        raise DataError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if isinstance(X, np.ma.MaskedArray):
        return Reader.of(None, d, Source(lambda: map(_unmasked, blocks(X)), n))
    if X.dtype.kind in "fiub":
        plain = X.dtype in (np.float64, np.float32)
        source = Source(lambda: blocks(X) if plain else map(_floats, blocks(X)), n)
        return Reader.of(None, d, source, numeric=True)
    return Reader.of(None, d, Source(lambda: map(_objects, blocks(X)), n))


def _floats(block: np.ndarray) -> Batch:
    """Return integers and small floats as float64, which is exact; refuse larger integers."""
    wide = block.dtype.kind in "iu" and block.dtype.itemsize == 8 and block.size
    # Two comparisons, since abs(-2**63) overflows.
    if wide and (block.max() > 2**53 or block.min() < -(2**53)):
        row, column = np.nonzero((block > 2**53) | (block < -(2**53)))
        raise integer_too_large(f"column {column[0]}", block[row[0], column[0]])
    return block.astype(np.float64)


def _unmasked(block: Any) -> Batch:
    if block.dtype.kind not in "fiub":
        objects = np.array(block.data, object)
        objects[np.ma.getmaskarray(block)] = None
        return _objects(objects)
    numbers = block.filled(0)
    if block.dtype not in (np.float64, np.float32):
        numbers = _floats(numbers)
    numbers[np.ma.getmaskarray(block)] = np.nan
    return numbers


def _structured(rows: np.ndarray) -> Reader:
    if rows.ndim != 1 or any(rows.dtype[name].shape for name in rows.dtype.names or ()):
        raise DataError(
            f"Expected one record per row, got a structured array of shape {rows.shape} and type "
            f"{rows.dtype}: needs shape (n,), and one value in each field"
        )
    fields = {}
    for name in rows.dtype.names or ():
        values = rows[name]
        if values.dtype.kind == "c":
            raise DataError(f"Complex data not supported: field {name!r} needs real numbers")
        fields[name] = of_one_type(values.tolist(), repr(name))  # None where it is masked
    return arrow(pa.table(fields))


def _objects(block: np.ndarray) -> Batch:
    columns = [of_one_type(block[:, j].tolist(), str(j)) for j in range(block.shape[1])]
    return pa.RecordBatch.from_arrays(columns, [str(j) for j in range(len(columns))])


#: As many features as a schema takes.
_MAX_FEATURES = 65_535


def sparse(data: Any) -> Reader:
    """Read a sparse matrix or array; values that it does not store are 0.0."""
    if data.ndim == 2 and data.shape[1] > _MAX_FEATURES:
        raise DataError(
            f"the sparse matrix has {data.shape[1]:,} columns: needs {_MAX_FEATURES:,} at most; "
            "choose columns, or reduce them first (for example by sklearn's TruncatedSVD)"
        )
    rows = data.tocsr() if data.ndim == 2 else data
    # The checks of dense data, on no rows; of other dimensions, they refuse all.
    none = matrix((rows[:0] if data.ndim == 2 else rows).toarray())
    n, d = rows.shape

    def batches() -> Iterator[Batch]:
        for here in slices(n, d):
            yield from matrix(rows[here].toarray()).read()

    return replace(none, sources=(Source(batches, n),))


#: Types that NumPy also has. (Polars has integers of 128 bits.)
_OF_NUMPY = frozenset(
    f"{kind}{bits}" for kind in ("Float", "Int", "UInt") for bits in (8, 16, 32, 64)
)


def is_polars(data: object) -> bool:
    """Whether this is a frame, eager or lazy."""
    return library_of(data) == "polars" and (hasattr(data, "collect") or hasattr(data, "to_arrow"))


def polars_frame(data: Any) -> Reader:
    """Read a frame, as often as needed; a lazy one batch by batch."""
    if not hasattr(type(data), "columns"):
        raise DataError("Expected 2D array, got 1D array instead: a Series. Use series.to_frame()")
    if hasattr(data, "collect_batches"):
        schema = data.head(0).collect().to_arrow().schema
        return stream(
            schema,
            lambda: (b for part in data.collect_batches() for b in part.to_arrow().to_batches()),
        )
    if hasattr(data, "collect"):
        data = data.collect()  # before polars 1.34, a lazy frame could not yield batches
    names, kinds = tuple(data.columns), set(data.dtypes)

    def batches() -> Iterator[Batch]:
        try:
            table = data.to_arrow()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            wide = [
                name for name, kind in zip(names, data.dtypes, strict=True) if "128" in str(kind)
            ]
            raise DataTypeError(
                f"columns {wide or [*names]} have a type that Arrow cannot hold: cast them to "
                "Int64, Float64 or String"
            ) from None
        return split(table.to_batches())

    source = Source(batches, len(data))
    only: Any = kinds.pop() if len(kinds) == 1 else None
    # NumPy has no missing integers.
    if str(only) in _OF_NUMPY and (only.is_float() or not any(data.null_count().row(0))):
        source = replace(source, matrix=data.to_numpy if len(data) <= FEW_ROWS else None)
    return Reader.of(names, len(names), source)


def is_pandas(data: object) -> bool:
    """Whether this is a frame, or a series."""
    return library_of(data) == "pandas" and hasattr(data, "iloc")


def pandas_frame(data: Any) -> Reader:
    """Read a pandas frame, made Arrow one batch at a time."""
    if data.ndim != 2:
        raise DataError(
            "Expected 2D array, got 1D array instead: a Series. Reshape your data: a frame of one "
            "column is series.to_frame()"
        )
    n, d = data.shape
    if d == 0:
        raise DataError(f"0 feature(s) (shape={data.shape}) while a minimum of 1 is required.")
    names, kinds = data.columns.tolist(), list(data.dtypes)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but the "
            f"column names are of several types: {sorted({type(name).__name__ for name in names})}"
        )

    # Arrow does not accept sparse columns.
    dense = {
        name: kind.subtype
        for name, kind in zip(names, kinds, strict=True)
        if not isinstance(kind, np.dtype) and str(kind).startswith("Sparse[")
    }

    def batches() -> Iterator[Batch]:
        for here in slices(n, d):
            part = data.iloc[here]
            if dense:
                part = part.astype(dense)
            columns = [_as_array(column) for _name, column in part.items()]
            yield pa.RecordBatch.from_arrays(columns, [*map(str, names)])

    source, different = Source(batches, n), {id(kind): kind for kind in kinds}
    plain = all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in different.values())
    if n <= FEW_ROWS and data.columns.is_unique and plain:
        source = replace(source, matrix=data.to_numpy)
    return Reader.of(names if all(texts) else None, d, source)


def _as_array(column: Any) -> pa.Array:
    """Return a column of a pandas frame; texts of concatenated frames come in chunks."""
    try:
        values = pa.array(column, from_pandas=True)
    except UnicodeEncodeError as error:
        raise half_a_character(repr(column.name), error) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        kinds = sorted({type(value).__name__ for value in column.tolist() if value is not None})
        raise DataTypeError(
            f"column {column.name!r} holds values of {', '.join(kinds[:4])} (dtype "
            f"{column.dtype}): needs numbers of at most 64 bits, texts, dates, or true and false: "
            "convert it"
        ) from None
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


#: Pandas types that hold Python objects.
_OBJECTS = frozenset({"object", "str", "string"})


def each_by_itself(data: Any) -> Any:
    """Return rows in which a value of a different type does not change other values.

    In frames and dicts, values that are not numbers become texts; other sources have one type.
    """
    if is_records(data):
        return [
            {str(k): _alone(v) for k, v in row.items()} if isinstance(row, Mapping) else {}
            for row in data
        ]
    if is_pandas(data) and data.ndim == 2:
        objects = [i for i, kind in enumerate(data.dtypes) if str(kind) in _OBJECTS]
        if objects:
            data = data.copy(deep=False)
            for i in objects:
                data.isetitem(i, data.iloc[:, i].map(_alone).astype(object))
    return data


def _alone(value: object) -> str | None:
    """Return a value as text; None if it is missing, or holds several."""
    if value is None or isinstance(value, dict | list | tuple | set):
        return None
    pandas = sys.modules.get("pandas")
    if (pandas is not None and pandas.isna(value) is True) or value != value:
        return None
    # Half a character (an unpaired surrogate) becomes the replacement character.
    text = as_name(value).encode("utf-16", "surrogatepass")
    return text.decode("utf-16", "replace")
