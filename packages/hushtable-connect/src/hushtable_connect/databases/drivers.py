"""Database drivers: each runs one statement as often as needed, and never writes.

Each pass has its own connection, so that passes can run at the same time, and an abandoned pass
leaves nothing behind. Libraries load where they are used.
"""

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.readers.reader import BATCH_ROWS, FILE_ROWS, Unasked
from hushtable.errors import DataError, DataTypeError, MissingExtraError

_ADVICE = "leave it out (--drop {0}), or make it a number or a text in the query: CAST({0} AS ...)"
_REFUSED = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_nested,
    pa.types.is_interval,
)  # fmt: skip
#: Python's years end at 9999; PostgreSQL's infinity is later.
_DAYS = (-719_162, 2_932_896)
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def server_type(field: pa.Field) -> str:
    """Return the server's name of a column's type if it is known, else Arrow's name."""
    notes = field.metadata or {}
    name = notes.get(b"POSTGRESQL:type") or notes.get(b"server") or str(field.type).encode()
    return str(name.decode())


def check_types(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise `DataTypeError` for columns that cannot become numbers, texts, or times."""
    refused = [
        f"{name!r} ({server_type(schema.field(name))})"
        for name in columns
        if not _is_plain(schema.field(name))
    ]
    if refused:
        name = columns[[not _is_plain(schema.field(name)) for name in columns].index(True)]
        raise DataTypeError(
            f"columns of types that cannot be read: {', '.join(refused)}: {_ADVICE.format(name)}"
        )


def _is_plain(field: pa.Field) -> bool:
    name, kind = server_type(field).lower(), field.type
    if name in ("numeric", "uuid"):
        return True
    # The client cannot know how many decimals the server's type "money" has, and intervals of
    # months have no fixed length.
    if name in ("json", "jsonb", "money", "xml") or isinstance(kind, pa.BaseExtensionType):
        return False
    return not any(refuses(kind) for refuses in _REFUSED)


def plain(
    batch: pa.RecordBatch, columns: Sequence[str], first: int, unasked: Unasked | None = None
) -> pa.RecordBatch:
    """Return the columns as numbers, texts and times; ``first`` is the number of the first row."""
    arrays = [
        _plain(batch.column(name), batch.schema.field(name), f"column {name!r}", first, unasked)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def _plain(
    column: pa.Array, field: pa.Field, what: str, first: int, unasked: Unasked | None
) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if server_type(field) == "uuid" and not pa.types.is_string(kind):
        texts = [None if value is None else str(UUID(bytes=value)) for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    if server_type(field) == "numeric" or pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return _times(column, what, first, unasked)
    return column


def _times(column: pa.Array, what: str, first: int, unasked: Unasked | None) -> pa.Array:
    kind = column.type
    whole = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    per_day = 1 if pa.types.is_date32(kind) else _PER_DAY[kind.unit]
    low, high = (  # nanoseconds do not reach them
        pa.scalar(min(max(day * per_day, -(2**63)), 2**63 - 1), whole.type)
        for day in (_DAYS[0], _DAYS[1] + 1)
    )
    odd = pc.fill_null(pc.or_(pc.less(whole, low), pc.greater_equal(whole, high)), False)
    places = pc.indices_nonzero(odd)
    if not len(places):
        return column
    what = f"{what} holds a time that is infinite or outside the years 1 to 9999"
    row = f"row {first + places[0].as_py()}"
    if unasked is None:
        raise DataError(f"{what} in {row}: make it NULL in the query")
    unasked.note(what, len(places), row.__str__)
    return pc.if_else(odd, pa.scalar(None, kind), column)


class Columns:
    """Values of SQLite, as Arrow: a column keeps the type of its first values."""

    def __init__(self) -> None:
        self._kinds: dict[str, pa.DataType] = {}

    def batch(
        self, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int
    ) -> pa.RecordBatch:
        """Return rows as a batch; ``first`` is the number of the first row."""
        values = zip(*rows, strict=True)
        columns = [self._column(n, v, first) for n, v in zip(names, values, strict=True)]
        return pa.RecordBatch.from_arrays(columns, list(names))

    def _column(self, name: str, values: Sequence[Any], first: int) -> pa.Array:
        kinds, known = {type(value) for value in values} - {type(None)}, self._kinds.get(name)
        if bytes in kinds:
            row = first + next(i for i, v in enumerate(values) if isinstance(v, bytes))
            raise DataTypeError(
                f"column {name!r} holds a value of type bytes in row {row}: {_ADVICE.format(name)}"
            )
        here = next((arrow for kind, (arrow, _) in _OF_SQLITE.items() if kind in kinds), None)
        kind = known or here
        if here is None:
            return pa.nulls(len(values), kind or pa.null())
        if here not in (kind, pa.int64()) and kind != pa.string():
            other = next(v for v in values if v is not None and pa.scalar(v).type == here)
            raise DataError(
                f"column {name!r} held values of type {kind} before row {first}, and of type "
                f"{here} from there on, such as {other!r}: convert them to one "
                f"type in the query, with CAST({name} AS ...) or NULLIF"
            )
        self._kinds[name] = kind
        make = next(make for arrow, make in _OF_SQLITE.values() if arrow == kind)
        return pa.array([None if v is None else make(v) for v in values], kind)


def _text(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


#: Of the types of SQLite's values, Arrow's types, and the functions that make their values. A
#: column of several types has the first of them.
_OF_SQLITE: dict[type, tuple[pa.DataType, Callable[[Any], Any]]] = {
    str: (pa.string(), _text), float: (pa.float64(), float), int: (pa.int64(), int)
}  # fmt: skip


#: Seconds to wait for a server that does not answer; without it, the system's timeout applies.
_PATIENCE = 30
#: Bytes in a batch of PostgreSQL's: its driver's default, 16 MiB, needs four times the memory.
_BATCH_BYTES = 1 << 22


class Driver(Protocol):
    """A statement that a database runs."""

    def schema(self) -> pa.Schema:
        """Return the columns; a column has type null if only its rows show its type."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""


class Postgres:
    """PostgreSQL by ADBC; all passes see the tables as they were when the first pass began."""

    def __init__(self, url: str, sql: str) -> None:
        self._dbapi = _library("adbc_driver_postgresql.dbapi", "adbc-driver-postgresql")
        waits = "connect_timeout=" in url or "PGCONNECT_TIMEOUT" in os.environ
        more = "" if waits else f"{'&' if '?' in url else '?'}connect_timeout={_PATIENCE}"
        self._url, self._sql = url + more, sql
        # It holds the state of the tables, but no lock that would make other users wait.
        keeper = contextlib.ExitStack()
        cursor = keeper.enter_context(_session(self._dbapi, self._url))
        weakref.finalize(self, keeper.close)
        cursor.execute("SELECT pg_export_snapshot()")
        self._state = cursor.fetchone()[0]

    def schema(self) -> pa.Schema:
        """Request the columns; no rows are read."""
        with _session(self._dbapi, self._url, self._state) as cursor:
            return cursor.adbc_execute_schema(self._sql)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with _session(self._dbapi, self._url, self._state) as cursor:
            size = {"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
            cursor.adbc_statement.set_options(**size)
            cursor.execute(self._sql)
            with cursor.fetch_record_batch() as reader:
                yield from reader


@contextlib.contextmanager
def _session(dbapi: Any, url: str, state: str = "") -> Iterator[Any]:
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if state:
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{state}'")
        yield cursor


class DuckDB:
    """DuckDB's own Arrow reader, for a database in a file."""

    def __init__(self, url: str, sql: str, *, alone: bool = False) -> None:
        self._duckdb = _library("duckdb", "DuckDB")
        self._path, self._sql = _file(url), sql
        self._unchanged = _same_state()
        # Otherwise, a view in someone's database could read other files or fetch an extension.
        self._settings = {"enable_external_access": "false"} if alone else {}

    def _run(self) -> Any:
        return self._duckdb.connect(str(self._path), read_only=True, config=self._settings)

    def schema(self) -> pa.Schema:
        """Request the columns; no rows are read."""
        with self._run() as connection:
            relation = connection.sql(self._sql)
            columns = zip(relation.columns, map(str, relation.types), strict=True)
            # If two columns have one name, DuckDB renames them on the way to Arrow.
            return pa.schema([
                pa.field(name, field.type, metadata={"server": kind})
                for (name, kind), field in zip(
                    columns, relation.limit(0).to_arrow_table().schema, strict=True
                )
            ])  # fmt: skip

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with self._run() as connection:
            self._unchanged(_stamp(self._path))
            relation = connection.sql(self._sql)
            # Before DuckDB 1.4, the method has an older name.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            yield from read(FILE_ROWS)


class SQLite:
    """SQLite by Python's own driver.

    ADBC is not used, because it returns numbers with seven digits as soon as a column holds a text.
    """

    def __init__(self, url: str, sql: str) -> None:
        self._path, self._sql, self._columns = _file(url), sql, Columns()
        self._sqlite3 = _library("sqlite3", "Python's module sqlite3")
        self._keeper = self._connected()
        weakref.finalize(self, self._keeper.close)
        self._unchanged = _same_state()

    def _connected(self) -> Any:
        name = f"file:{quote(str(self._path))}?mode=ro"
        connection = self._sqlite3.connect(
            name, uri=True, isolation_level=None, check_same_thread=False, timeout=_PATIENCE
        )
        connection.execute("PRAGMA query_only = ON")
        return connection

    def schema(self) -> pa.Schema:
        """Begin the statement, for the names of its columns."""
        with contextlib.closing(self._connected()) as connection:
            columns = connection.execute(self._sql).description
            return pa.schema([pa.field(column[0], pa.null()) for column in columns])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with contextlib.closing(self._connected()) as connection:
            cursor = connection.execute(self._sql)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchmany(BATCH_ROWS)
            # Once the statement runs, it sees no more changes. Check whether there were any before.
            self._unchanged(self._keeper.execute("PRAGMA data_version").fetchone())
            first = 0
            while rows:
                yield self._columns.batch(names, rows, first)
                first += len(rows)
                rows = cursor.fetchmany(BATCH_ROWS)


def _library(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError("this database", name, "databases") from None


def _file(url: str) -> Path:
    path = Path(url.partition("://")[2].partition("?")[0].removeprefix("/"))
    if str(path) in (".", ":memory:"):
        raise DataError("needs the path of a file, such as sqlite:///rows.db")
    if not path.is_file():
        raise DataError("no such file: check the path; an absolute path has four slashes")
    return path


def _stamp(path: Path) -> tuple[int, ...]:
    log = path.with_name(f"{path.name}.wal")
    status = [item.stat() for item in (path, log) if item.exists()]
    return tuple(figure for item in status for figure in (item.st_size, item.st_mtime_ns))


def _same_state() -> Callable[[Any], None]:
    states: list[Any] = []

    def check(state: Any) -> None:
        states.append(state)
        if state != states[0]:
            raise DataError(
                "the table changed while it was being read (its file was written to between two "
                "passes); read it while no one writes to it, or read a copy"
            )

    return check
