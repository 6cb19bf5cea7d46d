"""Rows of databases: the result of a query to PostgreSQL, SQLite, DuckDB, or SQLAlchemy."""

from hushtable.data.readers import FileLayout, Reader, register_url


def register() -> None:
    """Register the reader of databases, an entry point of `hushtable.readers`."""
    from hushtable_connect.databases import reader

    def open_(url: str, layout: FileLayout) -> Reader:
        layout.check_used(("query", "independent"), reader.without_secrets(url))
        return reader.database(url, layout)

    register_url(reader.is_database, open_)
