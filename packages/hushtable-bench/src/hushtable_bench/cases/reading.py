"""Measure reading and sketching: from files, on Dask, from PostgreSQL, and with a bad value.

`engines` writes float32 rows of 20 columns to ten Parquet files, and sketches them under the
paper's tables, with one thread and two, and with two single-threaded Dask workers on the same
files. Reading means that the same reader reads every batch and does nothing with it. `databases`
reads rows from PostgreSQL, compared with only fetching the Arrow batches, from the server that the
tests start or from --url, where it creates its own table. `reading` finds one bad value among a
million numbers of a CSV file, and names its line; its cost is compared with a pass without the bad
value and with Arrow's reader, which guesses the types of columns. Contestants take turns, and
figures are medians. Memory is that of a whole fresh process at its peak (Linux).
"""

import contextlib
import itertools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data import understand
from hushtable.data.readers import FileLayout, as_reader
from hushtable.errors import DataError
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import ROOT, CaseRun, in_turns, process_memory, progress
from hushtable_connect.engines import dask as engine

COLUMNS, FILES, ROUNDS = 20, 10, 5

#: Code for the fresh process, which loads our package and its needs, but not the benchmark.
PEAK = """
import sys
from hushtable import Sketch, load
Sketch.from_data(load(sys.argv[1]), sys.argv[2], n_jobs=int(sys.argv[3]))
print(open("/proc/self/status").read())
"""


@dataclass(frozen=True)
class EngineTiming:
    """Median seconds, and the peak of the process in bytes where it was measured."""

    name: str
    seconds: float
    peak: int = 0


def engine_plan() -> Plan:
    schema = Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(COLUMNS)])
    return Plan.draw(schema, detector="lsh_itables", random_state=0)


def write_files(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    for i in range(FILES):
        X = rng.normal(size=(rows // FILES, COLUMNS)).astype(np.float32)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        pq.write_table(pa.table(columns), folder / f"part-{i}.parquet")


def read_batches(folder: Path) -> None:
    for _ in as_reader(folder).read():
        pass


def peak_of(folder: Path, threads: int) -> int:
    """Sketch in a fresh process; return its peak memory."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "plan.hush"
        engine_plan().save(path)
        command = [sys.executable, "-c", PEAK, str(path), str(folder), str(threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return process_memory(status=done.stdout)


def peak_of_many(folder: Path, times: int) -> int:
    """Sketch the files several times with two threads; return the peak memory."""
    with tempfile.TemporaryDirectory() as links:
        for i, file in itertools.product(range(times), sorted(folder.glob("*.parquet"))):
            Path(links, f"{i}-{file.name}").symlink_to(file)
        return peak_of(Path(links), 2)


def time_all(folder: Path, rounds: int = ROUNDS) -> list[EngineTiming]:
    from dask.distributed import Client, LocalCluster

    drawn = engine_plan()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(folder / "workers"),
        ) as cluster,
        Client(cluster),
    ):  # fmt: skip
        rows = sorted(folder.glob("*.parquet"))
        contestants: dict[str, Callable[[], object]] = {
            "reading": lambda: read_batches(folder),
            "1 thread": lambda: Sketch.from_data(drawn, folder, n_jobs=1),
            "2 threads": lambda: Sketch.from_data(drawn, folder, n_jobs=2),
            "Dask, 2 workers": lambda: engine.sketch_data(drawn, folder / "*.parquet"),
        }
        assert len(rows) == FILES
        progress(f"{rounds} rounds")
        # The first compiles, and fills the page cache.
        times = in_turns(contestants, rounds)
        sketches = [do() for name, do in contestants.items() if name != "reading"]
    assert all(sketch == sketches[0] for sketch in sketches)
    peaks = {"1 thread": 1, "2 threads": 2}
    return [
        EngineTiming(
            name,
            statistics.median(seconds),
            peak_of(folder, peaks[name]) if name in peaks else 0,
        )
        for name, seconds in times.items()
    ]


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
        raise DataError("the server of PostgreSQL is not installed: install it, or give --url")
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
    """Return the timed functions; each reads all rows over its own connection."""
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
        reader = as_reader(url, layout=FileLayout(query=QUERY, independent=True))
        assert sum(map(len, reader.read())) == rows

    def sketch() -> None:
        reader = as_reader(url, layout=FileLayout(query=QUERY, independent=True))
        assert Sketch.from_data(plan, reader).n_rows == rows

    return {"ADBC, batches merely fetched": fetch, "as_reader": read, "Sketch.from_data": sketch}


def peak_here(url: str, rows: int) -> None:
    """Print this process's peak after one pass."""
    reader = as_reader(url, layout=FileLayout(query=f"{QUERY} LIMIT {rows}"))
    assert sum(map(len, reader.read())) == rows
    print(process_memory())


HIGHEST_COST = 1.1


def write_csvs(folder: Path, rows: int, columns: int) -> tuple[Path, Path, int]:
    """Write the table without and with the bad value; return both files, and its line."""
    values = np.random.default_rng(0).normal(size=(rows, columns)).round(4)
    clean, bad = folder / "clean.csv", folder / "bad.csv"
    csv.write_csv(pa.table({f"x{j}": values[:, j] for j in range(columns)}), clean)
    lines, at = clean.read_text().splitlines(), 9 * rows // 10
    fields = lines[at].split(",")
    fields[columns // 2] = "ERR"
    lines[at] = ",".join(fields)
    bad.write_text("\n".join(lines) + "\n")
    return clean, bad, at + 1


def guess(path: Path) -> None:
    """Read a file as Arrow guesses it, a batch at a time."""
    options = csv.ReadOptions(block_size=1 << 22, use_threads=False)
    with csv.open_csv(path, options) as file:
        for _ in file:
            pass


# --- the runs -------------------------------------------------------------------------------------


def engines(run: CaseRun, *, rows: int = 10_000_000, times: int = 10, rounds: int = ROUNDS) -> None:
    """Sketch Parquet files with threads and Dask; and --times as many rows, for flat memory."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), rows)
        found = time_all(Path(folder), rounds)
        many = peak_of_many(Path(folder), times) / 1e6
    reading = found[0].seconds
    lines = [
        (
            t.name, f"{t.seconds:.2f}", f"{rows / t.seconds / 1e6:.1f}",
            f"{t.seconds / reading:.1f}", f"{t.peak / 1e6:.0f}" if t.peak else "",
        )
        for t in found
    ]  # fmt: skip
    run.say(f"{rows:,} rows of {COLUMNS} float32 in {FILES} Parquet files.")
    header = ("", "seconds", "million rows/s", "times reading", "peak memory, MB")
    run.say(ResultTable(header, lines))
    run.say(f"The same files repeatedly, {times * rows:,} rows: peak memory {many:.0f} MB.")
    by_name = {t.name: t.seconds for t in found}
    two = by_name["2 threads"]
    run.hold("2 threads: times merely reading", two / reading, "<=", 2.0, ".2f")
    run.hold("peak memory, MB", max(t.peak for t in found) / 1e6, "<=", 400.0, ".0f")
    dask = by_name["Dask, 2 workers"] / two
    run.hold("Dask with 2 workers: times 2 threads", dask, "<=", 1.3, ".2f")
    run.hold("peak memory of the rows over and over, MB", many, "<=", 400.0, ".0f")


def databases(
    run: CaseRun, *, url: str | None = None, rows: int = 1_000_000, repeats: int = 5
) -> None:
    """Read PostgreSQL's rows beside only fetching them; without --url, from the tests' server."""
    with server(url) as address:
        progress(f"making a table of {rows:,} rows")
        fill(address, rows)
        progress("reading it")
        times = in_turns(contestants(address, rows), repeats)
        few, many = (peak_of_reading(address, n) / 1e6 for n in (rows // 10, rows))
    run.say(f"{rows:,} rows of {NUMBERS} numbers and 2 texts, from PostgreSQL:")
    medians = print_medians(run, times, "times the fetch", 0)
    run.say(f"Peak of as_reader: {few:.0f} MB for a tenth of the rows, {many:.0f} MB for all.")
    ratio = medians["as_reader"] / medians["ADBC, batches merely fetched"]
    run.hold("as_reader, times a mere fetch", ratio, "<=", HIGHEST_RATIO, ".2f")
    run.hold("MB more for ten times the rows", many - few, "<=", HIGHEST_GROWTH_MB, ".0f")
    run.figures |= {"seconds": times, "peak_mb": [few, many]}


def peak_of_reading(url: str, rows: int) -> int:
    """Return the bytes at its peak of a separate process that reads this number of rows."""
    code = "from hushtable_bench.cases.reading import *; peak_here(sys.argv[1], int(sys.argv[2]))"
    command = [sys.executable, "-c", code, url, str(rows)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def reading(run: CaseRun, *, rows: int = 1_000_000, columns: int = 1, repeats: int = 9) -> None:
    """Find one bad value of a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        progress(f"writing {rows:,} rows")
        clean, bad, line = write_csvs(Path(folder), rows, columns)
        doubts = understand(bad).doubts
        assert len(doubts) == 1, doubts
        assert f"'ERR' in line {line} of {bad}" in doubts[0].doubt, doubts
        ways: dict[str, Callable[[], object]] = {
            "Arrow, types guessed": lambda: guess(clean),
            "understood, clean": lambda: understand(clean),
            "understood, one bad value": lambda: understand(bad),
        }
        times = in_turns(ways, repeats)
    run.say(f"{rows:,} rows of {columns} columns, the bad value in line {line:,}:")
    _, clean_pass, bad_pass = print_medians(run, times, "times the clean pass", 1).values()
    run.hold("a pass with the bad value", bad_pass / clean_pass, "<=", HIGHEST_COST, ".2f")
    run.figures["seconds"] = times


def print_medians(
    run: CaseRun, times: dict[str, list[float]], ratio: str, reference: int
) -> dict[str, float]:
    """Lay out medians, and their ratios to one of them; return the medians."""
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    unit = list(medians.values())[reference]
    lines = [(name, f"{taken:.3f}", f"{taken / unit:.2f}") for name, taken in medians.items()]
    run.say(ResultTable(("way", "s", ratio), lines))
    return medians
