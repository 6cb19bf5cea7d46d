"""Rows of databases: the result of a query to PostgreSQL, SQLite, or DuckDB."""

from functools import partial

from hushtable.data.readers import FileLayout, Reader, register_url
from hushtable.data.readers.registry import built_in

_FILES = {
    "sqlite": ("SQLite", (".sqlite", ".sqlite3", ".db")),
    "duckdb": ("DuckDB", (".duckdb",)),
}


def register() -> None:
    """Register the reader of databases, an entry point of `hushtable.readers`."""
    from hushtable_connect.databases import reader

    def open_(url: str, layout: FileLayout) -> Reader:
        layout.check_used(("query", "independent"), reader.without_secrets(url))
        return reader.database(url, layout)

    register_url(reader.is_database, open_)
    for scheme, (name, endings) in _FILES.items():
        read = partial(reader.database_file, scheme)
        built_in(name, endings, read, ("member", "query", "independent"))
