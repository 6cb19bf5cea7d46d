"""Rows that a query returns from a database, which a URL names."""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from hushtable.data.readers import Coupling
from hushtable.data.readers.reader import (
    Batch,
    FileLayout,
    Reader,
    Source,
    Unasked,
    column_names,
    split,
)
from hushtable.errors import DataError, HushTableError, UsageError
from hushtable.far import is_url
from hushtable.words.refusals import refused
from hushtable_connect.databases import drivers
from hushtable_connect.databases.drivers import check_types, plain

T = TypeVar("T")

#: Drivers by the scheme of a URL.
DRIVERS: dict[str, Callable[[str, str], drivers.Driver]] = {
    "postgresql": drivers.Postgres,
    "postgres": drivers.Postgres,
    "sqlite": drivers.SQLite,
    "duckdb": drivers.DuckDB,
}
#: Schemes of other databases, which are recognised even without a query.
_OTHERS = frozenset({"mysql", "mariadb", "oracle", "mssql"})
_IN_FILES = frozenset({"sqlite", "duckdb"})
#: Parameters of a URL whose values a message may repeat.
_HARMLESS = frozenset({
    "application_name", "charset", "connect_timeout", "dbname", "driver", "host", "port",
    "service", "sslmode", "user",
})  # fmt: skip
#: Of rows that SQL makes: each may depend on anything in the database.
OF_SQL = Coupling(
    "the rows are the result of a query or a view",
    "if each row depends on the records of one person only, state it (--read independent=true, "
    "or independent = true in a site's file)",
)
QUERY = "--read 'query=SELECT ... FROM ...' or --read query=FILE.sql; in Python, query='SELECT ...'"
_READS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
#: Parts in which a semicolon does not end a statement: texts, names, and comments.
_QUOTED = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|(\$\w*\$).*?\1", re.DOTALL
)
_REMARK = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)

#: What to do, by words in the message of a server or driver.
_ADVICE = (
    ("password|authentication|access denied", "give the user's password in the environment, such "
     "as PGPASSWORD, or in the URL"),
    ("read.?only|query_only", "hushtable only reads: give a query that changes nothing"),
    ("snapshot|idle-in-transaction", "the connection that held the state of the tables has ended: "
     "run it again"),
    ("closed the connection|terminating|connection to server was lost|no connection to the server"
     "|lost connection", "the connection was lost, and nothing was kept: run it again"),
    ("refused|could not translate|timeout|timed out|unreachable|can't connect", "check the host "
     "and the port, and that the server is running"),
    ("not a database|not a valid duckdb", "check the path"),
    ("different configuration|conflicting lock|locked", "close what else has the file open"),
)  # fmt: skip


def is_database(data: object, layout: FileLayout) -> bool:
    """Whether this is the URL of a database."""
    if not isinstance(data, str) or not is_url(data):
        return False
    scheme = data.partition("://")[0]
    known = scheme.partition("+")[0].lower() in {*DRIVERS, *_OTHERS}
    return known or "+" in scheme or layout.query is not None


def without_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret."""
    try:
        return Address(url).source
    except DataError:
        return f"{url.partition('://')[0]}://..."


def database(url: str, layout: FileLayout) -> Reader:
    """Read the result of the layout's query, as often as needed."""
    address = Address(url)
    if (opened := DRIVERS.get(address.scheme)) is None:
        raise DataError(
            f"{address.source}: needs postgresql://, sqlite:///, or duckdb:///; from another "
            "database, export the result of the query as CSV or Parquet, or read it in Python as a "
            "data frame (pandas.read_sql)"
        )
    sql = _statement(layout.query, address.source)
    rows = _rows(address, address.guard(lambda: opened(url, sql)), layout.unasked)
    return replace(rows, coupled=() if layout.independent else (OF_SQL,))


#: Queries for the tables and views of a database in a file: their names, also as quoted for SQL,
#: and whether they are tables.
_TABLES = {
    "sqlite": """
        SELECT name, '"' || replace(name, '"', '""') || '"', type = 'table' FROM sqlite_master
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name""",
    "duckdb": """
        SELECT CASE table_schema WHEN 'main' THEN '' ELSE table_schema || '.' END || table_name,
        '"' || replace(table_schema, '"', '""') || '"."' || replace(table_name, '"', '""') || '"',
        table_type = 'BASE TABLE'
        FROM information_schema.tables WHERE table_catalog = current_database() ORDER BY 1""",
}


def database_file(scheme: str, path: Path, layout: FileLayout) -> Reader:
    """Read a table or a view of a database in a file, or the result of the layout's query."""
    if "?" in str(path):
        raise DataError(f"{path}: the name of a database cannot hold a question mark: rename it")
    address = Address(f"{scheme}:///{path}")
    opened: Any = {"sqlite": drivers.SQLite, "duckdb": partial(drivers.DuckDB, alone=True)}[scheme]

    def driver(sql: str) -> drivers.Driver:
        return cast(drivers.Driver, address.guard(lambda: opened(address.url, sql)))

    if layout.query is not None:
        layout.check_used(("query", "independent"), f"{path} with a query")
        sql, is_table = _statement(layout.query, str(path)), False
    else:
        listed = driver(_TABLES[scheme])
        tables = {
            name: about
            for batch in address.guard(lambda: list(listed.batches()))
            for name, *about in (row.values() for row in batch.to_pylist())
        }
        name, is_table = tables[_table(path, list(tables), layout.member)]
        sql = f"SELECT * FROM {name}"
    coupled = () if is_table or layout.independent else (OF_SQL,)
    rows = replace(_rows(address, driver(sql), layout.unasked), coupled=coupled)
    source = replace(rows.sources[0], name=str(path), n_bytes=path.stat().st_size)
    return replace(rows, sources=(source,), source=source.name)


def _table(path: Path, tables: list[str], wanted: str | None) -> str:
    if wanted in tables:
        return str(wanted)
    held = f"{tables[:10]}{f' and {len(tables) - 10:,} more' if len(tables) > 10 else ''}"
    if wanted is not None:
        raise refused("no_table", source=path, wanted=wanted, tables=held)
    if not tables:
        raise refused("no_tables", source=path)
    if len(tables) > 1:
        add = f"--read {shlex.quote(f'member={tables[0]}')}"
        raise refused("several_tables", add, source=path, tables=held)
    return tables[0]


def _rows(address: "Address", driver: drivers.Driver, unasked: Unasked | None) -> Reader:
    schema = address.guard(driver.schema)
    names = column_names(schema)
    n_rows: list[int] = []

    def project(columns: list[str]) -> Iterator[Batch]:
        address.guard(lambda: check_types(schema, columns))
        rows, batches = 0, address.guard(driver.batches)
        while (batch := address.guard(lambda: next(batches, None))) is not None:
            if tuple(batch.schema.names) != names:
                raise _changed(address.source, f"its columns are now {batch.schema.names}")
            read = address.guard(partial(plain, batch, columns, rows, unasked))
            yield from split(iter([read]))
            rows += len(batch)
        n_rows.append(rows)
        if rows != n_rows[0]:
            raise _changed(address.source, f"{n_rows[0]:,} rows at first, now {rows:,}")

    source = Source(partial(project, list(names)), None, project, address.source)
    return Reader.of(names, len(names), source)


def _changed(source: str, how: str) -> DataError:
    return DataError(
        f"{source}: the table changed while it was being read ({how}); read it while no one "
        "writes to it, or read a copy"
    )


@dataclass(frozen=True)
class Address:
    """URL of a database, and the parts of it that messages may repeat."""

    url: str

    def __post_init__(self) -> None:
        """Refuse a URL that a driver would read differently from people, and quote in part."""
        if re.search(r"[/?#@\s]|%(?![0-9A-Fa-f]{2})", self._user):
            raise DataError(
                f"{self.scheme}://...: in the URL of a database, write the characters @ : / ? # % "
                "of users, passwords, and parameters as %40 %3A %2F %3F %23 %25"
            )

    @property
    def scheme(self) -> str:
        """The scheme of the URL, in lower case."""
        return self.url.partition("://")[0].lower()

    @cached_property
    def _rest(self) -> str:
        return self.url.partition("://")[2]

    @property
    def _user(self) -> str:
        # User and password: everything before the last @, because a password may hold an @.
        of_file = self.scheme.partition("+")[0] in _IN_FILES and self._rest.startswith("/")
        return "" if of_file else self._rest.rpartition("@")[0]

    @property
    def source(self) -> str:
        """The URL without user, password and parameters."""
        address = self._rest[len(self._user) :].removeprefix("@" if self._user else "")
        return f"{self.scheme}://{re.split('[?#]', address)[0]}"

    @property
    def secrets(self) -> list[str]:
        """Texts that must not appear in messages, the longest first."""
        secrets = [self._user.partition(":")[2], os.environ.get("PGPASSWORD", "")]
        for parameter in re.split("[&#]", self._rest.partition("?")[2]):
            name, _, value = parameter.partition("=")
            if name.lower() not in _HARMLESS:
                secrets.append(value)
        return sorted({*secrets, *map(unquote, secrets)} - {""}, key=len, reverse=True)

    def guard(self, do: Callable[[], T]) -> T:
        """Return the result of ``do``; raise any failure as an error without secrets."""
        try:
            return do()
        except DataError as error:
            fault: Exception = type(error)(f"{self.source}: {error}")
        except HushTableError as error:
            fault = error
        except Exception as error:
            # Any exception: drivers raise all kinds, and their messages may quote the URL.
            fault = DataError(self._words(error))
        try:
            raise fault  # raised outside, so that the driver's error is not its context
        finally:
            del fault  # it would keep this frame alive, and with it the connection

    def _words(self, error: Exception) -> str:
        text = str(error)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        text = re.split(r"\n\s*(?:LINE \d|Query was:|query:|\[SQL:|\(Background)", text)[0]
        text = re.sub(r"^[A-Z_]+: (\[\w+\] )?|\. SQLSTATE: \w+$", "", " ".join(text.split()))
        advice = (do for words, do in _ADVICE if re.search(words, text, re.IGNORECASE))
        kind = type(error).__name__
        return f"{self.source}: {text or kind}: {next(advice, 'check the query and the URL')}"


def _statement(query: str | None, source: str) -> str:
    if query is None:
        raise UsageError(f"{source}: a database needs a query: {QUERY}")
    if re.fullmatch(r"[^\n]*\S\.sql", query.strip()):
        query = _text_of(Path(query.strip()))
    # The mask is as long as the query, so positions agree. A query may end with a text.
    masked = _QUOTED.sub(lambda q: (" " if q[0][0] in "-/" else "x") * len(q[0]), query).rstrip()
    end = len(masked.rstrip("; \t\r\n"))
    if ";" in masked[:end]:
        raise DataError(f"{source}: the query holds several statements: give a single one")
    # A comment at the end would hide text that a driver appends to the query.
    sql = query[:end] if masked[:end].strip() else query
    bare = _REMARK.sub(" ", sql).lstrip("( \t\r\n").split(None, 1)
    first = re.split(r"\W", bare[0])[0].upper() if bare else ""
    if first not in _READS:
        began = f"begins with {first}" if first else "is empty"
        raise DataError(f"{source}: the query {began}: needs a query that reads, like SELECT ...")
    return sql


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}: check the path of the query") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: the query is not UTF-8: save the file as UTF-8") from None
