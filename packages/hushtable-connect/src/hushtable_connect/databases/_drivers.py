"""Drivers of databases: one statement, run as often as asked, and never a write.

Each pass has a connection of its own, so that passes may run beside each other, and one that is
given up leaves nothing behind. Libraries load where they are used.
"""

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa

from hushtable.data.readers.reader import BATCH_ROWS, FILE_ROWS
from hushtable.errors import DataError, MissingExtraError
from hushtable_connect.databases._types import Columns

#: Seconds; without, a server that is away is waited for as long as the system likes.
_PATIENCE = 30
#: Bytes in a batch of PostgreSQL's: with its driver's own 16 MiB, four times the memory.
_BATCH_BYTES = 1 << 22
#: What keeps a session of SQLAlchemy's from writing; all are rolled back where they close.
_READ_ONLY = {
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
    "postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "sqlite": "PRAGMA query_only = ON",
}


class Driver(Protocol):
    """A statement that a database runs."""

    def schema(self) -> pa.Schema:
        """Return the columns; of type null are those whose types show in the rows only."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""


class Postgres:
    """PostgreSQL by ADBC; all passes see the tables as they were when the first began."""

    def __init__(self, url: str, sql: str) -> None:
        self._dbapi = _library("adbc_driver_postgresql.dbapi", "adbc-driver-postgresql")
        waits = "connect_timeout=" in url or "PGCONNECT_TIMEOUT" in os.environ
        more = "" if waits else f"{'&' if '?' in url else '?'}connect_timeout={_PATIENCE}"
        self._url, self._sql = url + more, sql
        # It holds the state of the tables, but no lock, which would make other people wait.
        keeper = contextlib.ExitStack()
        cursor = keeper.enter_context(_session(self._dbapi, self._url))
        weakref.finalize(self, keeper.close)
        cursor.execute("SELECT pg_export_snapshot()")
        self._state = cursor.fetchone()[0]

    def schema(self) -> pa.Schema:
        """Ask for the columns; no rows are read."""
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
    """Open a transaction that only reads, in a state of the tables that another one holds."""
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if state:
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{state}'")
        yield cursor


class DuckDB:
    """DuckDB's own Arrow reader, over a file."""

    def __init__(self, url: str, sql: str) -> None:
        self._duckdb = _library("duckdb", "DuckDB")
        self._path, self._sql = _file(url), sql
        self._unchanged = _same_state()

    def _run(self) -> Any:
        return self._duckdb.connect(str(self._path), read_only=True)

    def schema(self) -> pa.Schema:
        """Ask for the columns; no rows are read."""
        with self._run() as connection:
            found = connection.sql(self._sql)
            columns = zip(found.columns, map(str, found.types), strict=True)
            # Named twice, columns get other names on the way to Arrow.
            return pa.schema([
                pa.field(name, field.type, metadata={"server": kind})
                for (name, kind), field in zip(
                    columns, found.limit(0).to_arrow_table().schema, strict=True
                )
            ])  # fmt: skip

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with self._run() as connection:
            self._unchanged(_stamp(self._path))
            found = connection.sql(self._sql)
            # Before DuckDB 1.4 by its older name.
            read = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
            yield from read(FILE_ROWS)


class SQLite:
    """SQLite by Python's own driver.

    Not by ADBC, which returns a column's numbers with seven digits once it holds one text.
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
            return _untyped(connection.execute(self._sql).description)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with contextlib.closing(self._connected()) as connection:
            cursor = connection.execute(self._sql)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchmany(BATCH_ROWS)
            # Now that the statement runs, it sees no more changes: were there any before?
            self._unchanged(self._keeper.execute("PRAGMA data_version").fetchone())
            first = 0
            while rows:
                yield self._columns.batch(names, rows, first)
                first += len(rows)
                rows = cursor.fetchmany(BATCH_ROWS)


class SQLAlchemy:
    """Whatever SQLAlchemy has a dialect and a driver for."""

    def __init__(self, url: str, sql: str) -> None:
        try:
            self._library = import_module("sqlalchemy")
            self._engine = self._library.create_engine(url, poolclass=self._library.NullPool)
        except ModuleNotFoundError as error:
            raise DataError(
                f"{url.partition('://')[0]}:// needs the library {error.name}, which is not "
                "installed: install SQLAlchemy and this database's driver"
            ) from None
        except Exception as error:
            if type(error).__name__ != "NoSuchModuleError":
                raise
            raise DataError(
                f"{url.partition('://')[0]}:// is no database that is known: needs postgresql://, "
                "sqlite:///, duckdb:///, or what SQLAlchemy has a dialect for"
            ) from None
        self._sql, self._columns = sql, Columns()

    @contextlib.contextmanager
    def _result(self) -> Iterator[Any]:
        connection = self._engine.connect()
        try:
            if (statement := _READ_ONLY.get(self._engine.dialect.name)) is not None:
                connection.exec_driver_sql(statement)
            # Percent signs and colons of the query are its own.
            connection = connection.execution_options(
                stream_results=True, max_row_buffer=BATCH_ROWS, no_parameters=True
            )
            yield connection.exec_driver_sql(self._sql)
        finally:
            # Which rolls back. A connection that is lost cannot, and need not.
            with contextlib.suppress(self._library.exc.SQLAlchemyError):
                connection.close()

    def schema(self) -> pa.Schema:
        """Begin the statement, for the names of its columns."""
        with self._result() as result:
            return _untyped(result.cursor.description)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the statement."""
        with self._result() as result:
            names, first = [column[0] for column in result.cursor.description], 0
            for rows in result.partitions(BATCH_ROWS):
                yield self._columns.batch(names, rows, first)
                first += len(rows)


def _library(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise MissingExtraError("this database", name, "databases") from None


def _untyped(description: Sequence[Any]) -> pa.Schema:
    return pa.schema([pa.field(column[0], pa.null()) for column in description])


def _file(url: str) -> Path:
    """Return the path in a URL: relative after three slashes, absolute after four."""
    path = Path(url.partition("://")[2].partition("?")[0].removeprefix("/"))
    if str(path) in (".", ":memory:"):
        raise DataError("needs the path of a file, such as sqlite:///rows.db")
    if not path.is_file():
        raise DataError("no such file: check the path; an absolute one has four slashes")
    return path


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what differs once something has been written."""
    log = path.with_name(f"{path.name}.wal")
    seen = [one.stat() for one in (path, log) if one.exists()]
    return tuple(figure for one in seen for figure in (one.st_size, one.st_mtime_ns))


def _same_state() -> Callable[[Any], None]:
    """Return a check that each pass finds the state that the first one found."""
    states: list[Any] = []

    def check(state: Any) -> None:
        states.append(state)
        if state != states[0]:
            raise DataError(
                "the table changed while it was read: something was written to its file between "
                "two passes; read it while nobody writes, or from a copy"
            )

    return check
