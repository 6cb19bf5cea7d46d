"""Measure large loads (many sites, features, categories, tables, rows, files) in bounded memory.

Each load runs in a fresh process. Its time is that of the work alone, its memory is that of the
whole process at its peak (Linux), and its result is compared bit by bit with the right one. If
memory must not grow, the load also runs at a tenth of the size. The sites' files are made
beforehand, with noise from a fast substitute.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushtable import Feature, HushTable, Plan, Schema, Sketch, SlidingWindow
from hushtable import load as load_counts
from hushtable.cli import main as command
from hushtable.privacy import mechanisms as mechanism
from hushtable_bench.results import Promise
from hushtable_bench.runner import CaseRun, process_memory, progress

COLUMNS, BLOCK, WIDE = 10, 1_000_000, 100_000
#: Tables of 256 cells: a million counters.
SITE_TABLES = 3907
#: Bytes by which the peaks of two sizes may differ if memory is bounded.
SLACK = 40e6


@dataclass(frozen=True)
class HeldLoad:
    """A load with its time and memory; ``right`` states whether its result is correct."""

    load: str
    size: int
    seconds: float
    peak: int
    right: bool

    @property
    def what(self) -> str:
        """A description of the load."""
        return LOADS[self.load].what

    @property
    def peak_mb(self) -> float:
        """The peak in MB (1e6 bytes)."""
        return self.peak / 1e6

    @property
    def verdict(self) -> str:
        """Whether the result is correct."""
        return "equal" if self.right else "WRONG"


@dataclass(frozen=True)
class LoadKind:
    """A load: its sizes, and whether memory is ``bounded`` from one to the next."""

    what: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    run: Callable[[int, Path], HeldLoad]
    bounded: bool = False


class LoadWatch:
    """Seconds of the work, and the peak of the process when it ends."""

    def __enter__(self) -> "LoadWatch":
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.peak = process_memory()

    def held(self, size: int, right: bool) -> HeldLoad:
        return HeldLoad("", size, self.seconds, self.peak, bool(right))


# --- sites ----------------------------------------------------------------------------------------


def _site_plan(tables: int) -> Plan:
    schema = _schema(4)
    return Plan.draw(schema, n_tables=tables, n_cells=256, min_depth=8, max_depth=8, random_state=0)


def write_sites(folder: Path, sites: int, tables: int = SITE_TABLES) -> None:
    """Write a release of each site, and the correct sum."""
    rng = np.random.default_rng(0)
    plan = _site_plan(tables)
    released = np.zeros(plan.family.n_cells, np.int64)

    def add_noise(counts, kind, scale, *, progress=None):
        return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)

    with mock.patch.object(mechanism, "add_noise", add_noise):
        for i in range(sites):
            sketch = Sketch.from_data(plan, rng.normal(size=(100, 4)))
            release = sketch.release(1.0)
            release.save(folder / f"s{i:03d}.release.hush")
            released += release.counts
            progress(f"site {i:03d}")
    np.save(folder / "released.npy", released)


def _quietly(*arguments: object) -> int:
    with contextlib.redirect_stdout(sys.stderr):
        return command([str(argument) for argument in arguments])


def merge(size: int, folder: Path) -> HeldLoad:
    files, output = sorted(folder.glob("*.release.hush")), folder / "merged.hush"
    with LoadWatch() as watch:
        code = _quietly("merge", *files, "-o", output)
    merged = load_counts(output)
    expected = np.load(folder / "released.npy")
    right = code == 0 and len(files) == size and np.array_equal(merged.counts, expected)
    return watch.held(size, right and len(merged.ledger.shares) == size)


# --- wide data ------------------------------------------------------------------------------------


def _schema(columns: int) -> Schema:
    return Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(columns)])


def _block(rows: int, columns: int, seed: int = 0) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    values = [rng.standard_normal(rows, np.float32) for _ in range(columns)]
    return pa.RecordBatch.from_arrays(values, [f"x{j}" for j in range(columns)])


def features(size: int, folder: Path) -> HeldLoad:
    """Fit and score 100,000 rows with many features, in two halves and in one piece."""
    rows, half = _block(WIDE, size), WIDE // 2
    plan = Plan.draw(_schema(size), random_state=0)
    with LoadWatch() as watch:
        sketch = Sketch.from_data(plan, rows, n_jobs=-1)
        scores = HushTable.from_counts(sketch).score_samples(rows)
    first, second = (Sketch.from_data(plan, rows.slice(at, half)) for at in (0, half))
    again = HushTable.from_counts(first + second).score_samples(rows.slice(0, 1000))
    return watch.held(size, first + second == sketch and (again == scores[:1000]).all())


def categories(size: int, folder: Path) -> HeldLoad:
    """Count and score a million rows of a feature with many categories."""
    names = [f"category {i}" for i in range(size)]
    codes = np.random.default_rng(0).zipf(1.3, BLOCK) % size
    text = pa.DictionaryArray.from_arrays(codes.astype(np.int32), names).cast(pa.string())
    rows = pa.table({"c": text, "x0": _block(BLOCK, 1).column(0)})
    schema = Schema([Feature.categorical("c", names), *_schema(1).features])
    plan, marginals = Plan.draw(schema, random_state=0), Plan.marginals(schema)
    with LoadWatch() as watch:
        counted = Sketch.from_data(marginals, rows, n_jobs=-1)
        scores = HushTable.from_counts(Sketch.from_data(plan, rows, n_jobs=-1)).score_samples(rows)
    expected = np.bincount(codes, minlength=size)
    return watch.held(
        size, np.array_equal(counted.counts[:size], expected) and len(scores) == BLOCK
    )


def tables(size: int, folder: Path) -> HeldLoad:
    """Fit and score a million rows under many tables."""
    rows = _block(BLOCK, COLUMNS)
    plan = Plan.draw(_schema(COLUMNS), random_state=0, n_tables=size)
    with LoadWatch() as watch:
        sketch = Sketch.from_data(plan, rows, n_jobs=-1)
        scores = HushTable.from_counts(sketch).score_samples(rows)
    each = np.add.reduceat(sketch.counts, plan.family.offsets[:-1])
    first, second = (Sketch.from_data(plan, rows.slice(at, BLOCK // 2)) for at in (0, BLOCK // 2))
    again = HushTable.from_counts(first + second).score_samples(rows.slice(0, 1000))
    right = first + second == sketch and (again == scores[:1000]).all()
    return watch.held(size, right and (each == BLOCK).all())


# --- long data ------------------------------------------------------------------------------------


def stream(size: int, folder: Path) -> HeldLoad:
    """Count a stream that repeats a million rows, whose counts are multiples of theirs."""
    block, times = _block(min(size, BLOCK), COLUMNS), -(-size // BLOCK)
    plan = Plan.draw(_schema(COLUMNS), random_state=0)
    rows = pa.RecordBatchReader.from_batches(block.schema, (block for _ in range(times)))
    with LoadWatch() as watch:
        sketch = Sketch.from_data(plan, rows, n_jobs=-1)
    right = np.array_equal(sketch.counts, times * Sketch.from_data(plan, block).counts)
    return watch.held(size, right and sketch.n_rows == size)


def window(size: int, folder: Path) -> HeldLoad:
    """Pass a stream through a window of ten panes of a million rows, three kinds in turn."""
    blocks = [_block(min(size, BLOCK), COLUMNS, seed) for seed in range(3)]
    plan, times = Plan.draw(_schema(COLUMNS), random_state=0), -(-size // BLOCK)
    sliding = SlidingWindow(plan, 10, n_jobs=-1)
    with LoadWatch() as watch:
        for i in range(times):
            sliding.roll().add(blocks[i % 3])
    last = [blocks[i % 3] for i in range(max(0, times - 10), times)]
    expected = sum((Sketch.from_data(plan, b) for b in last), start=Sketch.zero(plan))
    return watch.held(size, sliding.sketch == expected)


def write_files(folder: Path, files: int) -> None:
    rows = _block(100 * files, COLUMNS)
    (folder / "rows").mkdir()
    for i in range(files):
        pq.write_table(
            pa.Table.from_batches([rows.slice(100 * i, 100)]), folder / f"rows/{i:05d}.parquet"
        )


def files(size: int, folder: Path) -> HeldLoad:
    """Count a folder of many small files."""
    plan = Plan.draw(_schema(COLUMNS), random_state=0)
    with LoadWatch() as watch:
        sketch = Sketch.from_data(plan, folder / "rows", n_jobs=-1)
    return watch.held(size, sketch == Sketch.from_data(plan, _block(100 * size, COLUMNS)))


# --- all of them ----------------------------------------------------------------------------------

LOADS = {
    "merge": LoadKind(
        "sites of a million counters: releases merged", (10, 100), (2, 4), merge, True
    ),
    "features": LoadKind("features, 100,000 rows", (1000,), (1000,), features),
    "categories": LoadKind("categories, 1,000,000 rows", (10_000,), (10_000,), categories),
    "tables": LoadKind("tables, 1,000,000 rows", (2000,), (200,), tables),
    "stream": LoadKind(
        "rows streamed", (20_000_000, 200_000_000), (2_000_000, 4_000_000), stream, True
    ),
    "window": LoadKind(
        "rows through a window", (20_000_000, 200_000_000), (2_000_000, 4_000_000), window, True
    ),
    "files": LoadKind("files of 100 rows", (1000, 10_000), (10, 20), files, True),
}


def prepared(name: str, size: int, quick: bool, folder: Path) -> Path:
    """Return a folder with the files that a load reads."""
    kind = "sites" if name == "merge" else name
    place = folder / f"{kind}-{size}"
    if not place.exists():
        place.mkdir()
        if kind == "sites":
            write_sites(place, size, 40 if quick else SITE_TABLES)
        if kind == "files":
            write_files(place, size)
    return place


def hold_all(quick: bool, names: Sequence[str] = tuple(LOADS)) -> Iterator[HeldLoad]:
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for size in LOADS[name].quick if quick else LOADS[name].sizes:
                place = prepared(name, size, quick, Path(folder))
                held = in_fresh_process(name, size, place)
                progress(f"{name}, {size:,}: {held.seconds:.1f} s")
                yield HeldLoad(name, *list(vars(held).values())[1:])


def in_fresh_process(name: str, size: int, folder: Path) -> HeldLoad:
    code = "from hushtable_bench.cases.load import here; here()"
    command_line = [sys.executable, "-c", code, name, str(size), str(folder)]
    done = subprocess.run(command_line, check=True, stdout=subprocess.PIPE, text=True)
    return HeldLoad(**json.loads(done.stdout))


def here() -> None:
    """Run a load in this process, and print its time and memory."""
    name, size, folder = sys.argv[1:]
    print(json.dumps(vars(LOADS[name].run(int(size), Path(folder)))))


def load(run: CaseRun, *, quick: bool = False, only: Sequence[str] = tuple(LOADS)) -> None:
    """Run loads in bounded memory: six minutes; --quick, half a minute; --only, some of them."""
    found = list(hold_all(quick, only))
    run.table(
        {
            "load": "{t.what}", "size": "{t.size:,}", "seconds": "{t.seconds:.1f}",
            "peak memory, MB": "{t.peak_mb:.0f}", "result": "{t.verdict}",
        }, found,
    )  # fmt: skip
    run.targets += targets(found)
    run.figures["loads"] = found


def targets(found: Sequence[HeldLoad]) -> list[Promise]:
    made = [Promise("loads with a wrong result", sum(not h.right for h in found), "<=", 0, ".0f")]
    for name in dict.fromkeys(held.load for held in found):
        peaks = [held.peak for held in found if held.load == name]
        if LOADS[name].bounded:
            claim = f"{LOADS[name].what}: peak memory at ten times the size, MB more"
            made.append(Promise(claim, (peaks[-1] - peaks[0]) / 1e6, "<=", SLACK / 1e6, ".0f"))
    return made
