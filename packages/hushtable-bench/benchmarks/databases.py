"""Rows out of PostgreSQL: the time beside that of merely fetching the Arrow batches, and memory.

python benchmarks/databases.py                          starts a server, if one is installed
python benchmarks/databases.py --url postgresql://...   makes a table of its own there
python benchmarks/databases.py --rows 100000
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from common import ROOT, Target, finish, in_turns, markdown_table, process_memory, progress, run
from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.readers import FileLayout, as_reader
from hushtable.errors import DataError

TABLE = "hushtable_benchmark"
QUERY = f"SELECT * FROM {TABLE}"
NUMBERS, WARDS, CODES = 8, 7, 100
HIGHEST_RATIO, HIGHEST_GROWTH_MB = 1.5, 32


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    """Yield the URL given, or that of the server that the tests start."""
    if url is not None:
        yield url
        return
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from postgres_server import programs, running

    where = programs()
    if where is None:
        raise DataError("PostgreSQL's server is not installed: install it, or give --url")
    with running(where) as one:
        yield one.url()


def fill(url: str, rows: int) -> None:
    """Make the table: eight columns of numbers, two of texts."""
    from adbc_driver_postgresql import dbapi

    numbers = ", ".join(f"random() AS x{i}" for i in range(NUMBERS))
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        cursor.execute(
            f"CREATE TABLE {TABLE} AS SELECT {numbers}, 'ward ' || i % {WARDS} AS ward, "
            f"'code ' || i % {CODES} AS code FROM generate_series(1, {rows}) i"
        )
        cursor.execute(f"VACUUM ANALYZE {TABLE}")


def contestants(url: str, rows: int) -> dict[str, Callable[[], None]]:
    """Return what is timed; each reads all rows, over a connection of its own."""
    from adbc_driver_postgresql import dbapi

    schema = Schema([
        *(Feature.numeric(f"x{i}", low=0, high=1) for i in range(NUMBERS)),
        Feature.categorical("ward", [f"ward {i}" for i in range(WARDS)]),
        Feature.categorical("code", [f"code {i}" for i in range(CODES)]),
    ])  # fmt: skip
    plan = Plan.draw(schema, random_state=0)

    def fetch() -> None:
        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(QUERY)
            assert sum(map(len, cursor.fetch_record_batch())) == rows

    def read() -> None:
        reader = as_reader(url, layout=FileLayout(query=QUERY))
        assert sum(map(len, reader.read())) == rows

    def sketch() -> None:
        reader = as_reader(url, layout=FileLayout(query=QUERY))
        assert Sketch.from_data(plan, reader).n_rows == rows

    return {"ADBC, batches merely fetched": fetch, "as_reader": read, "Sketch.from_data": sketch}


def peak(url: str, rows: int) -> int:
    """Return the bytes of a process of its own at its peak that reads so many rows."""
    code = "import databases, sys; databases.peak_here(sys.argv[1], int(sys.argv[2]))"
    made = subprocess.run(
        [sys.executable, "-c", code, url, str(rows)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    return int(made.stdout)


def peak_here(url: str, rows: int) -> None:
    """Print this process's peak after one pass."""
    reader = as_reader(url, layout=FileLayout(query=f"{QUERY} LIMIT {rows}"))
    assert sum(map(len, reader.read())) == rows
    print(process_memory())


def main(arguments: argparse.Namespace) -> int:
    with server(arguments.url) as url:
        progress(f"making a table of {arguments.rows:,} rows")
        fill(url, arguments.rows)
        progress("reading it")
        times = in_turns(contestants(url, arguments.rows), arguments.repeats)
        memory = [peak(url, rows) / 1e6 for rows in (arguments.rows // 10, arguments.rows)]
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    fetch, *_ = medians.values()
    lines = [[name, f"{taken:.2f}", f"{taken / fetch:.2f}"] for name, taken in medians.items()]
    print(f"{arguments.rows:,} rows of {NUMBERS} numbers and 2 texts, out of PostgreSQL:\n")
    print(markdown_table(["way", "s", "times the fetch"], lines))
    few, many = memory
    print(f"\nPeak of as_reader: {few:.0f} MB for a tenth of the rows, {many:.0f} MB for all.\n")
    ratio = medians["as_reader"] / fetch
    targets = [
        Target("as_reader, times a mere fetch", ratio, "<=", HIGHEST_RATIO, ".2f"),
        Target("MB more for ten times the rows", many - few, "<=", HIGHEST_GROWTH_MB, ".0f"),
    ]
    return finish(targets, "databases", seconds=times, peak_mb=memory)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="of a PostgreSQL server; a table is made there")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    run(parser, main)
