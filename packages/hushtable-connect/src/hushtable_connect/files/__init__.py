"""Files of other programs: SPSS, Stata, SAS and R, and files of databases."""

from functools import partial
from pathlib import Path

from hushtable.data.readers import FileLayout, Reader
from hushtable.data.readers.registry import built_in

#: For each function of pyreadstat: the name of the files that it reads, and their endings.
_OF_STATISTICS = {
    "read_sav": ("SPSS", (".sav", ".zsav")),
    "read_por": ("SPSS portable", (".por",)),
    "read_dta": ("Stata", (".dta",)),
    "read_sas7bdat": ("SAS", (".sas7bdat",)),
    "read_xport": ("SAS transport", (".xpt",)),
}
_OF_DATABASES = {
    "sqlite": ("SQLite", (".sqlite", ".sqlite3", ".db")),
    "duckdb": ("DuckDB", (".duckdb",)),
}


def register() -> None:
    """Register the formats, an entry point of `hushtable.readers`."""
    for function, (name, endings) in _OF_STATISTICS.items():
        uses = () if function == "read_por" else ("encoding",)
        built_in(name, endings, partial(_statistics, function), uses)
    for scheme, (name, endings) in _OF_DATABASES.items():
        built_in(name, endings, partial(_database, scheme), ("member", "query", "independent"))
    built_in("R", (".rds", ".rda", ".rdata"), _r, ("encoding", "member"), streams=True)


# Each module loads with the first file that needs it.


def _statistics(function: str, path: Path, layout: FileLayout) -> Reader:
    from hushtable_connect.files.statistics import statistics_file

    return statistics_file(function, path, layout)


def _r(path: Path, layout: FileLayout) -> Reader:
    from hushtable_connect.files.frames import r_file

    return r_file(path, layout)


def _database(scheme: str, path: Path, layout: FileLayout) -> Reader:
    from hushtable_connect.databases.reader import database_file

    return database_file(scheme, path, layout)
