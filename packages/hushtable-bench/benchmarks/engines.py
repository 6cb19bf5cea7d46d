"""Sketching files: against merely reading them, on threads and on Dask, with its peak memory.

Writes float32 rows of 20 columns to ten Parquet files, and sketches them under the paper's
tables: with one thread and two, and with two single-threaded Dask workers on the same files.
Reading means: every batch with the same reader, and nothing done with it. Contestants take
turns; medians. Memory is the whole process at its peak, in a fresh one (Linux).
"""

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import common
from common import Target
from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.readers import as_reader
from hushtable_connect.engines import dask as engine

COLUMNS, FILES, ROUNDS = 20, 10, 5

#: What runs in the fresh process: our package and what it needs, nothing of the benchmark's.
PEAK = """
import sys
from hushtable import Sketch, load
Sketch.from_data(load(sys.argv[1]), sys.argv[2], n_jobs=int(sys.argv[3]))
print(open("/proc/self/status").read())
"""


@dataclass(frozen=True)
class Timing:
    """Median seconds, and the peak of the process in bytes where it was measured."""

    name: str
    seconds: float
    peak: int = 0


def plan() -> Plan:
    schema = Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(COLUMNS)])
    return Plan.draw(schema, detector="lsh_itables", random_state=0)


def write_files(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    for i in range(FILES):
        X = rng.normal(size=(rows // FILES, COLUMNS)).astype(np.float32)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        pq.write_table(pa.table(columns), folder / f"part-{i}.parquet")


def read(folder: Path) -> None:
    for _ in as_reader(folder).read():
        pass


def peak_of(folder: Path, threads: int) -> int:
    """Sketch in a fresh process; return its high-water mark."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "plan.hush"
        plan().save(path)
        command = [sys.executable, "-c", PEAK, str(path), str(folder), str(threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return common.process_memory(status=done.stdout)


def peak_of_many(folder: Path, times: int) -> int:
    """Sketch the files so many times over, with two threads; return the high-water mark."""
    with tempfile.TemporaryDirectory() as links:
        for i, file in itertools.product(range(times), sorted(folder.glob("*.parquet"))):
            Path(links, f"{i}-{file.name}").symlink_to(file)
        return peak_of(Path(links), 2)


def time_all(folder: Path, rounds: int = ROUNDS) -> list[Timing]:
    from dask.distributed import Client, LocalCluster

    drawn = plan()
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(folder / "workers"),
        ) as cluster,
        Client(cluster),
    ):  # fmt: skip
        rows = sorted(folder.glob("*.parquet"))
        contestants: dict[str, Callable[[], object]] = {
            "reading": lambda: read(folder),
            "1 thread": lambda: Sketch.from_data(drawn, folder, n_jobs=1),
            "2 threads": lambda: Sketch.from_data(drawn, folder, n_jobs=2),
            "Dask, 2 workers": lambda: engine.sketch_data(drawn, folder / "*.parquet"),
        }
        assert len(rows) == FILES
        common.progress(f"{rounds} rounds")
        # The first compiles, and fills the page cache.
        times = common.in_turns(contestants, rounds)
        sketches = [do() for name, do in contestants.items() if name != "reading"]
    assert all(sketch == sketches[0] for sketch in sketches)
    peaks = {"1 thread": 1, "2 threads": 2}
    return [
        Timing(
            name,
            statistics.median(seconds),
            peak_of(folder, peaks[name]) if name in peaks else 0,
        )
        for name, seconds in times.items()
    ]


def table(timings: list[Timing], rows: int) -> str:
    reading = timings[0].seconds
    lines = [
        (
            t.name, f"{t.seconds:.2f}", f"{rows / t.seconds / 1e6:.1f}",
            f"{t.seconds / reading:.1f}", f"{t.peak / 1e6:.0f}" if t.peak else "",
        )
        for t in timings
    ]  # fmt: skip
    header = ("", "seconds", "million rows/s", "times reading", "peak memory, MB")
    return common.markdown_table(header, lines)


def targets(timings: list[Timing]) -> list[Target]:
    by_name = {t.name: t for t in timings}
    reading, two = by_name["reading"].seconds, by_name["2 threads"].seconds
    dask = by_name["Dask, 2 workers"].seconds
    return [
        Target("2 threads: times merely reading", two / reading, "<=", 2.0, ".2f"),
        Target("peak memory, MB", max(t.peak for t in timings) / 1e6, "<=", 400.0, ".0f"),
        Target("Dask with 2 workers: times 2 threads", dask / two, "<=", 1.3, ".2f"),
    ]


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), arguments.rows)
        timings = time_all(Path(folder))
        many = peak_of_many(Path(folder), arguments.times)
    print(f"{arguments.rows:,} rows of {COLUMNS} float32 in {FILES} Parquet files.\n")
    print(table(timings, arguments.rows))
    rows = arguments.times * arguments.rows
    print(f"\nThe same files over and over, {rows:,} rows: peak memory {many / 1e6:.0f} MB.\n")
    found = Target("peak memory of the rows over and over, MB", many / 1e6, "<=", 400.0, ".0f")
    return common.finish([*targets(timings), found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=10, help="how often, for flat memory")
    common.run(parser, main)
