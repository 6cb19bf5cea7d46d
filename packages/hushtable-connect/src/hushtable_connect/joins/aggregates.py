"""Features of each key of a table: hushtable's readers read it, and DuckDB aggregates it."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, as_numbers, as_texts, texts_column
from hushtable.data.persons import ids_of
from hushtable.data.readers import Batch, Coupling, Reader, near_names
from hushtable.data.texts.reading import (
    ColumnReading,
    ColumnUnderstanding,
    Reading,
    joined_options,
    without_blanks,
)
from hushtable.data.typed import typed
from hushtable.data.understanding import understood
from hushtable.errors import DataError, MissingExtraError, UsageError
from hushtable_connect.joins.request import COUNTS, JoinFeature, JoinRequest

#: Aggregates that take texts and dates as well as numbers.
_OF_ALL = ("count", "distinct", "share", "first", "last")
#: Aggregates that do not take dates.
_OF_NUMBERS = ("sum", "std")
_SQL = {
    "count": "count({0})", "distinct": "count(DISTINCT {0})", "mean": "avg({0})",
    "median": "median({0})", "sum": "sum({0})", "min": "min({0})", "max": "max({0})",
    "std": "stddev_samp({0})", "first": "min({0})", "last": "max({0})",
}  # fmt: skip


@dataclass(frozen=True)
class KeyedFeatures:
    """Features of a table's rows, by their key.

    Attributes
    ----------
    source : str
        The table, for messages.
    keys : StringArray of shape (n_keys,)
        All different, in the order of their first rows.
    n_rows : ndarray of shape (n_keys,)
        Number of rows with each key.
    columns : dict of str to Array of shape (n_keys,)
        Features by name.
    counts : frozenset of str
        Features that are 0 if a key has no row.
    reading : Reading
        How the table's texts became values, and which features the user declared as categories.
    found : tuple of str
        Messages on the table for the user.
    coupled : tuple of Coupling
        What makes the features depend on other rows than those with their key.
    """

    source: str
    keys: pa.StringArray
    n_rows: NDArray[np.int64]
    columns: Mapping[str, pa.Array]
    counts: frozenset[str]
    reading: Reading
    found: tuple[str, ...]
    coupled: tuple[Coupling, ...] = ()


def keyed_features(table: Reader, request: JoinRequest, said: Reading) -> KeyedFeatures:
    """Aggregate the rows of a table by their key.

    Parameters
    ----------
    table : Reader
        The table, with unconverted columns.
    request : JoinRequest
        The requested features.
    said : Reading
        How texts become values, with the names of columns by `JoinRequest.named`: the user's
        options and the readings that a model kept.

    Raises
    ------
    DataError
        If a column is missing, its type is in doubt, or it has no values of the kind that a feature
        needs.
    MissingExtraError
        If DuckDB is not installed.
    """
    _check_columns(table, request)
    table = table.repeatable()
    names = {name: request.named(name) for name in request.columns}
    rows = _renamed(table, {**names, request.key_there: request.key_there})
    columns = _understood(rows, list(names.values()), said)
    read = {name: one.reading for name, one in columns.items() if one.reading is not None}
    reading = Reading(said.missing, said.decimal, said.dates, columns=read)
    kept = {
        name: _TableColumn(f"c{j}", columns[new]) for j, (name, new) in enumerate(names.items())
    }
    for one in request.features:
        _check_feature(one, kept, table.source)
    values: list[Any] = []
    sql = [_expression(one, kept, values, table.source) for one in request.features]
    as_values = typed(replace(rows, keep=(request.key_there,)), None, reading)
    found = _run(sql, values, lambda: _batches(as_values, list(kept.values())), list(kept.values()))
    made = _features(found, request, kept, table.source, replace(reading, kinds=said.kinds))
    return replace(made, found=(*table.found, *made.found), coupled=table.coupled)


def _check_columns(table: Reader, request: JoinRequest) -> None:
    there = list(table.names or ())
    lacking = [name for name in (request.key_there, *request.columns) if name not in there]
    if not lacking:
        return
    near = [get_close_matches(name, there, 1) for name in lacking]
    words = "".join(f"; {one[0]!r} is near" for one in near if one) or near_names(lacking, there)
    raise DataError(
        f"{table.source} has no column {lacking} (--join): its columns are {there}{words}"
    )


def _renamed(table: Reader, names: Mapping[str, str]) -> Reader:
    """Return a reader of only the named columns, under other names."""
    old, new = list(names), list(names.values())

    def renamed(part: Reader) -> Reader:
        def read() -> Iterator[Batch]:
            return (pa.RecordBatch.from_arrays(arrow_columns(b), new) for b in part.read())

        return replace(part, names=tuple(new), read=read, project=None, numeric=False)

    chosen = table.select(old)
    return chosen.with_parts([renamed(part) for part in chosen.parts])


def arrow_columns(batch: Batch) -> list[pa.Array]:
    """Return the columns of a batch as Arrow's."""
    if isinstance(batch, np.ndarray):
        return [as_column(np.ascontiguousarray(column)) for column in batch.T]
    return list(batch.columns)


# --- what the columns are -------------------------------------------------------------------------


@dataclass(frozen=True)
class _TableColumn:
    """A column of the table: its name in SQL, and what it holds."""

    sql: str
    seen: ColumnUnderstanding

    @property
    def is_text(self) -> bool:
        """Whether its values are texts."""
        return self.seen.reading is not None and self.seen.reading.kind == "category"

    @property
    def is_date(self) -> bool:
        """Whether its values are points in time."""
        return self.seen.reading is not None and self.seen.reading.kind == "date"

    @property
    def what(self) -> str:
        """Its values, in a word."""
        return "texts" if self.is_text else "dates" if self.is_date else "numbers"

    def of(self, column: pa.Array) -> pa.Array:
        """Return values in the form that DuckDB gets."""
        if self.is_text:
            texts = as_texts(column, self.seen.name)
            return without_blanks(texts)
        values = as_numbers(column, self.seen.name).astype(np.float64)
        return as_column(values, ~np.isnan(values))


def _understood(
    rows: Reader, names: Sequence[str], said: Reading
) -> dict[str, ColumnUnderstanding]:
    """Return what the columns hold; raise `DataError` if the type of one is in doubt."""
    if not names:
        return {}
    kinds = {name: kind for name, kind in said.kinds.items() if name in names}
    if gone := [name for name, kind in kinds.items() if kind == "id"]:
        raise UsageError(
            f"--as {gone[0]}=id: --join needs this column: leave the feature out instead"
        )
    reading = Reading(said.missing, said.decimal, said.dates, kinds)
    columns, _, _ = understood(replace(rows.select(names), reading=reading))
    known = {name: said.columns[name] for name in names if name in said.columns}
    # Free text and identifiers count like others; if a column has no values, features are missing.
    doubtful = [one for one in columns if one.refused and one.kind not in ("empty", "id", "text")]
    if unread := [one for one in doubtful if one.name not in known]:
        raise _in_doubt(unread, said, rows.source)
    return {one.name: replace(one, reading=known.get(one.name, one.reading)) for one in columns}


def _in_doubt(columns: Sequence[ColumnUnderstanding], said: Reading, source: str) -> DataError:
    lines = "\n".join(f"  {one.name}: {one.doubt}" for one in columns)
    options = [option for one in columns for option in one.options if option[0] != "--drop"]
    what = "a column is" if len(columns) == 1 else f"{len(columns):,} columns are"
    do = "correct the values, leave its features out of --join, or say how to read them"
    add = f"\nAdd: {joined_options(options, said)}" if options else ""
    return DataError(f"{source}: {what} in doubt; {do}.\n{lines}{add}")


def _check_feature(one: JoinFeature, columns: Mapping[str, _TableColumn], source: str) -> None:
    """Raise `DataError` if a feature cannot be made of its column."""
    if not one.column:
        return
    column = columns[one.column]
    is_wrong = (column.is_text and one.how not in _OF_ALL) or (
        column.is_date and one.how in _OF_NUMBERS
    )
    if is_wrong:
        raise DataError(
            f"{source}: column {one.column!r} holds {column.what} ({column.seen.evidence}), and "
            f"{one.how} needs {'numbers' if one.how in _OF_NUMBERS else 'numbers or dates'}: for "
            f"{column.what} use count, distinct, first, last, or share (--join)"
        )
    if one.by and columns[one.by].is_text:
        raise DataError(
            f"{source}: column {one.by!r} holds texts ({columns[one.by].seen.evidence}): by needs "
            f"dates or numbers, to find the {one.how} row of a key (--join)"
        )
    if one.how in ("first", "last") and not one.by and column.what != "dates":
        if column.seen.kind == "empty":
            return
        dates = [name for name, other in columns.items() if other.is_date]
        raise DataError(
            f"{source}: column {one.column!r} holds {column.what}, so which row is the {one.how} "
            f"is not known: write {one.how} of {one.column} by {(dates or ['DATE'])[0]} (--join)"
        )


# --- DuckDB ---------------------------------------------------------------------------------------


def _expression(
    one: JoinFeature, columns: Mapping[str, _TableColumn], values: list[Any], source: str
) -> str:
    """Return a feature in SQL; the values of its parameters are added to ``values``."""
    if not one.column:
        return "count(*)"
    column = columns[one.column]
    if one.value is not None:
        values.append(_value(one, column, source))
        return f"avg(CAST({column.sql} = ? AS INTEGER))"
    if one.by:
        # Among rows with the same date, the first (or last) one of the table counts.
        by, end = columns[one.by].sql, "min" if one.how == "first" else "max"
        there = f"{column.sql} IS NOT NULL AND {by} IS NOT NULL"
        return f"arg_{end}({column.sql}, {{'by': {by}, 'n': n}}) FILTER (WHERE {there})"
    return _SQL[one.how].format(column.sql)


def _value(one: JoinFeature, column: _TableColumn, source: str) -> Any:
    """Return the value of a share as a value of DuckDB."""
    assert one.value is not None
    if column.seen.kind == "empty":
        return None
    if column.is_text:
        return column.of(texts_column([one.value]))[0].as_py()
    reading = column.seen.reading or ColumnReading("number")
    value = float(reading.values(texts_column([one.value]))[0])
    if np.isnan(value):
        raise DataError(
            f"{source}: column {one.column!r} holds {column.what}, and {one.value!r} is not one: "
            "give a value of the column (--join)"
        )
    return value


def _batches(rows: Reader, columns: Sequence[_TableColumn]) -> Iterator[pa.RecordBatch]:
    """Yield the key, the number, and the values of rows."""
    start = 0
    for batch in rows.read():
        *values, key = arrow_columns(batch)
        arrays = [
            ids_of(key, str((rows.names or ("",))[-1]), start)[1],
            as_column(np.arange(start, start + len(key), dtype=np.int64)),
            *(column.of(one) for column, one in zip(columns, values, strict=True)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, ["k", "n", *(one.sql for one in columns)])
        start += len(key)


def _run(
    sql: Sequence[str],
    values: list[Any],
    batches: Callable[[], Iterator[pa.RecordBatch]],
    columns: Sequence[_TableColumn],
) -> pa.Table:
    """Return a row for each key: the key, the number of its rows, and the features."""
    kinds = {one.sql: pa.string() if one.is_text else pa.float64() for one in columns}
    schema = pa.schema({"k": pa.string(), "n": pa.int64(), **kinds})
    faults: list[BaseException] = []

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches()
        except BaseException as error:  # which DuckDB would put in its own words
            faults.append(error)
            raise

    query = f"SELECT k, count(*), {', '.join(sql)} FROM joined_rows GROUP BY k ORDER BY min(n)"
    duckdb = _duckdb()
    with (
        tempfile.TemporaryDirectory(prefix="hushtable-") as folder,
        # With one thread, sums of the same rows are bit-identical.
        duckdb.connect(config={"temp_directory": folder, "threads": 1}) as connection,
    ):
        connection.register("joined_rows", pa.RecordBatchReader.from_batches(schema, guarded()))
        try:
            found = connection.sql(query, params=values)
            # Before DuckDB 1.4, the method has an older name.
            return (getattr(found, "to_arrow_table", None) or found.fetch_arrow_table)()
        except duckdb.Error as error:
            fault = faults[0] if faults else DataError(f"--join: DuckDB: {error}")
    raise fault from None


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("--join", "DuckDB", "databases") from None
    return duckdb


def _features(
    found: pa.Table,
    request: JoinRequest,
    kept: Mapping[str, _TableColumn],
    source: str,
    said: Reading,
) -> KeyedFeatures:
    """Return DuckDB's results, with messages for the user."""
    is_key = found.column(0).is_valid()
    nameless = pc.sum(found.filter(pc.invert(is_key)).column(1)).as_py() or 0
    columns, kinds, words = {}, {}, []
    if nameless:
        n_rows = pc.sum(found.column(1)).as_py()
        words.append(
            f"left out {nameless:,} of {n_rows:,} rows, which have no {request.key_there!r}"
        )
    found = found.filter(is_key)
    for j, one in enumerate(request.features, 2):
        name, column = request.named(one.name), _whole(found.column(j))
        if one.how not in (*COUNTS, "share") and kept[one.column].is_date:
            column = _as_times(column)
        if one.value is not None and not pc.max(column).as_py():
            words.append(f"no row has {one.column} = {one.value!r}")
        if one.how in ("first", "last") and said.kinds.get(request.named(one.column)) == "category":
            kinds[name] = "category"
        columns[name] = column
    words += [words_of for one in kept.values() if (words_of := _doubt(one.seen))]
    counts = frozenset(request.named(f.name) for f in request.features if f.how in COUNTS)
    keys, n_rows = (_whole(found.column(j)) for j in (0, 1))
    return KeyedFeatures(
        source, keys.cast(pa.string()), np.asarray(n_rows), columns, counts,
        replace(said, kinds=kinds), tuple(words),
    )  # fmt: skip


def _doubt(seen: ColumnUnderstanding) -> str:
    """Return the doubt about a column that the user should look at, or an empty text."""
    if not seen.doubt or seen.refused or seen.kind in ("id", "text"):
        return ""
    return f"{seen.name}: {seen.doubt}{f' ({seen.option})' if seen.option else ''}"


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as a single array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _as_times(column: pa.Array) -> pa.Array:
    """Return seconds since 1970 as points in time."""
    seconds = as_numbers(column, "")
    there = ~np.isnan(seconds)
    whole = np.rint(np.where(there, seconds, 0.0) * 1e6).astype(np.int64)
    return as_column(whole, there).cast(pa.timestamp("us"))
