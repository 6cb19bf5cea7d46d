"""Time a row of models as SQL, in DuckDB and in PostgreSQL, beside ours.

Everything with one thread, fitted on 5,000 rows. PostgreSQL's server is the tests' own; without
just-in-time compilation, which takes longer than it saves here.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from common import ROOT, Target, finish, markdown_table, progress, run
from hushtable import HushTable, LSHiTables
from hushtable_connect.exports import Model
from hushtable_connect.exports.sql import written

FITTED, ROWS, QUICK_ROWS, REPEATS = 5_000, 20_000, 2_000, 3
DETECTORS: dict[str, Callable[[], Any]] = {
    "HushTable": lambda: HushTable(random_state=0),
    "LSHiTables": lambda: LSHiTables(random_state=0),
}
#: From a statement to the scores that it selects, read by the client.
Ask = Callable[[str], Any]


@dataclass(frozen=True)
class Timing:
    """Seconds before the first row; microseconds a row, for scores alone and for all columns."""

    detector: str
    columns: int
    engine: str
    megabytes: float
    ready: float
    score: float
    everything: float
    apart: float


@contextlib.contextmanager
def duckdb(rows: pa.Table) -> Iterator[Ask]:
    """Store rows as the table data, and yield how to ask."""
    import duckdb as engine

    connection = engine.connect()
    connection.execute("SET threads = 1")
    connection.register("given", rows)
    connection.execute("CREATE TABLE data AS SELECT * FROM given")
    yield lambda statement: connection.sql(statement).to_arrow_table()
    connection.close()


@contextlib.contextmanager
def postgresql(rows: pa.Table) -> Iterator[Ask | None]:
    """Likewise; None where no server is installed."""
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from postgres_server import programs, running

    if (where := programs()) is None:
        yield None
        return
    with running(where) as server, server.cursor() as cursor:
        cursor.execute("SET jit = off")
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.adbc_ingest("data", rows)

        def ask(statement: str) -> Any:
            cursor.execute(statement)
            return cursor.fetch_arrow_table()

        yield ask


ENGINES = {"duckdb": duckdb, "postgresql": postgresql}


def opened(engine: str, rows: pa.Table) -> contextlib.AbstractContextManager[Ask | None]:
    """Return an engine that holds rows as the table data."""
    return ENGINES[engine](rows)


def seconds(ask: Callable[..., Any], *given: Any) -> float:
    """Return the least time of a few calls."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        ask(*given)
        times.append(time.perf_counter() - began)
    return min(times)


def time_one(name: str, columns: int, n_rows: int) -> Iterator[Timing]:
    """Yield the times of one detector, ours first."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(columns)]
    fitted, rows = (pa.table(dict(zip(names, rng.normal(size=(columns, n)), strict=True)))
                    for n in (FITTED, n_rows))  # fmt: skip
    detector = DETECTORS[name]().fit(fitted)
    expected = detector.score_samples(rows)
    ours = 1e6 * seconds(detector.score_samples, rows) / n_rows
    explained = 1e6 * seconds(detector.explain, rows) / n_rows
    yield Timing(name, columns, "hushtable", 0.0, 0.0, ours, ours + explained, 0.0)
    for engine in ENGINES:
        progress(f"{name}, {columns} columns: {engine}")
        statement = written(Model.of(detector), dialect=engine).decode()
        scores = f"SELECT hush_score FROM (\n{statement}) AS s"
        with opened(engine, rows) as ask:
            if ask is None:
                progress(f"{engine} is not here")
                continue
            apart = np.abs(ask(scores)["hush_score"].to_numpy() - expected).max()
            ready = seconds(ask, f"{statement}LIMIT 0")
            ready_scores = seconds(ask, f"{scores} LIMIT 0")
            alone = (seconds(ask, scores) - ready_scores) / n_rows
            everything = (seconds(ask, statement) - ready) / n_rows
        size = len(statement) / 1e6
        yield Timing(
            name, columns, engine, size, ready, 1e6 * alone, 1e6 * everything, float(apart)
        )


def main(arguments: argparse.Namespace) -> int:
    n_rows = QUICK_ROWS if arguments.quick else ROWS
    found = [t for name in DETECTORS for d in (10, 30) for t in time_one(name, d, n_rows)]
    header = ("detector", "columns", "engine", "MB", "s before", "score, us", "all, us", "apart")
    lines = [
        (t.detector, str(t.columns), t.engine, f"{t.megabytes:.2f}", f"{t.ready:.2f}",
         f"{t.score:,.1f}", f"{t.everything:,.1f}", f"{t.apart:.0e}")
        for t in found
    ]  # fmt: skip
    print(f"{n_rows:,} rows, the least of {REPEATS} times; 'all' with flags and reasons.\n")
    print(markdown_table(header, lines, text=3))
    apart = Target("scores apart at most", max(t.apart for t in found), "<=", 0.0, ".0e")
    return finish([apart], "exports_sql", timings=[asdict(t) for t in found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    run(parser, main)
