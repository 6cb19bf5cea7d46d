"""Measure the cost of a row by rows, columns, and tables, and compare it with the machine's limit.

The case times our detectors with one thread: fit, counting of all rows, and scoring. The largest
numbers of rows are streamed: the same million rows repeatedly, more than caches hold, so that
memory stays flat. HushTable makes one pass here: the table of `speed` has the time that a second
pass adds to `fit`, and this case also measures the memory of two passes on streamed rows.

The machine's floor is a manual count of operations, for tables of random features whose look-ups
stay in the first cache and whose comparisons run in vectors, as in the kernels. It is a bound on
this method only: another layout of the tables could need less. It leaves out transposing rows into
columns, loads and stores of intermediate results, loop control, and Python, which explain a ratio
above 1.
"""

import collections
import dataclasses
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding
import numba
import numpy as np

from hushtable import HushTable, LSHiTables, Sketch
from hushtable.data.readers import Batch, Reader, as_reader
from hushtable.plans.families import RandomFeature
from hushtable.plans.families.layouts import REPAID, JoinedTables
from hushtable.scores.scorer import Scorer
from hushtable_bench.cases.speed import can_measure, watch
from hushtable_bench.results import Promise, ResultTable
from hushtable_bench.runner import CaseRun, RowSource, progress, seconds

#: Bytes of the copied array: far more than caches hold.
COPIED = 1 << 28
CHAIN = 100_000_000

#: Vector operations, and loads, that a core starts in one cycle. Every core with AVX2 or AVX-512
#: starts two; on a core that starts more (Zen 5: up to four), the bound is up to twice too high.
EACH_CYCLE = 2
#: A hash function on a number: load and compare, shift the bits so far, insert the answer.
COMPARE = 3
#: Ranks are bytes: a vector holds twice as many as codes.
RANKS = 2
#: A table's code mixed into fewer cells: join two halves, fmix32 (three times shift and xor, two
#: multiplications), mask; on twice the width of a code.
FOLD = 10
#: A cell looked up: its number, and its score. Counting a row loads the cell's number and its
#: counter and stores the counter, which takes as long: cores store once a cycle.
LOOK_UP = 2
#: A value encoded: to float64, two comparisons with the range and their count, subtract,
#: multiply, clip at both ends, to a whole number, plus one; on four times the width of a code.
ENCODE = 10


@dataclass(frozen=True)
class Machine:
    """``copying`` in bytes read and written a second, ``clock`` in cycles a second.

    ``lanes`` is the number of 16-bit codes in one vector.
    """

    copying: float
    clock: float
    lanes: int

    @classmethod
    def measured(cls) -> "Machine":
        return cls(_copying(), _clock(), _lanes())

    def reading(self, columns: int) -> float:
        """Return the seconds in which a row of float32 is read from memory, at copying's rate."""
        return 4 * columns / self.copying

    def bound(self, family: RandomFeature) -> float:
        """Return the least seconds for counting or scoring a row, by operations.

        Encoding, hashing, and looking up follow each other, for a block of rows at a time; in each
        step, the busiest resource decides.
        """
        functions, folded = int(family.depth.sum(dtype=np.int64)), folds(family)
        columns = len(family.schema)
        ranked = functions >= REPAID * columns
        # Joined tables are looked up as one.
        tables = family.n_tables if folded else _joined(family)
        in_vectors = (
            COMPARE * functions / (RANKS if ranked else 1)
            + FOLD * folded * 2  # in lanes of 32 bits
            + ENCODE * columns * 4  # in lanes of 64 bits
        ) / self.lanes
        looked_up = tables + (columns if ranked else 0)  # ranks are looked up by their codes
        return (in_vectors + LOOK_UP * looked_up) / EACH_CYCLE / self.clock

    def describe(self) -> str:
        return (
            f"It copies {self.copying / 1e9:.1f} GB/s (read and written) at {self.clock / 1e9:.2f} "
            f"GHz, and compares {self.lanes} codes at once."
        )


def _joined(family: RandomFeature) -> int:
    return len(JoinedTables.packed(family.depth, family.offsets).bounds) - 1


def folds(family: RandomFeature) -> int:
    """Return the number of tables with fewer cells than codes."""
    return int((1 << family.depth.astype(np.int64) > family.max_cells).sum())


def _copying() -> float:
    source = np.ones(COPIED // 8)
    target = np.empty_like(source)
    return 2 * COPIED / seconds(lambda: np.copyto(target, source), repeats=9)


def _clock() -> float:
    """Count cycles with a chain of additions and exclusive ors, each waiting for the last one."""
    _chain(10, 12_345)
    return 2 * CHAIN / seconds(lambda: _chain(CHAIN, 12_345), repeats=5)


@numba.njit
def _chain(n, key):
    # No compiler shortens this chain, unlike a chain of additions alone.
    x = np.int64(1)
    for i in range(n):
        x = (x + i) ^ key
    return x


def _lanes() -> int:
    features = llvmlite.binding.get_host_cpu_features()
    return 32 if features.get("avx512bw") else 16 if features.get("avx2") else 8


# --- instruction counts -----------------------------------------------------------------------


class CannotCountError(Exception):
    """The machine does not count this event; the message quotes perf."""


def events(do: Callable[[], object], event: str = "instructions:u") -> float:
    """Count an event of this process in ``do`` with perf; raise `CannotCountError` if it fails."""
    if shutil.which("perf") is None:
        raise CannotCountError("perf is not installed")
    command = ["perf", "stat", "-x,", "-e", event, "-p", str(os.getpid())]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
        time.sleep(0.2)  # perf does not report when it begins; a sleeping process causes no events
        do()
        perf.send_signal(signal.SIGINT)
        record = perf.communicate()[1].strip()
    count = record.split(",")[0]
    try:
        return float(count)
    except ValueError:
        raise CannotCountError(f"perf stat reports for {event}: {count or record}") from None


#: Detectors with settings that count all rows, once.
DETECTORS: dict[type[LSHiTables] | type[HushTable], dict[str, int]] = {
    LSHiTables: {},
    HushTable: {"passes": 1},
}
#: Values at most: 400 MB as float32.
LARGEST = 10**8
#: From this number of rows on, the cost per row should be constant.
FLAT_ROWS = 100_000


@dataclass(frozen=True)
class Extent:
    """The sizes that one run covers.

    ``floor_rows`` are the rows for the comparison with the machine's floor; with the first of
    ``columns``, they are also streamed repeatedly, until there are ``streamed`` rows.
    """

    rows: Sequence[int]
    columns: Sequence[int]
    m: Sequence[int]
    floor_rows: int
    streamed: int


FULL = Extent([10**n for n in range(3, 8)], (10, 100, 1000), (100, 400), 10**6, 10**8)
QUICK = Extent((10**3, 10**4, 10**5), (10, 100), (100,), 10**5, 10**6)


@dataclass(frozen=True)
class RowCost:
    """Median seconds a row; ``bound`` and ``reading`` are the machine's floor in the same unit.

    ``instructions`` is the number for scoring a row, NaN if they cannot be counted. ``beyond`` is
    the peak of memory in bytes beyond the rows if it was measured, else 0.
    """

    data: str
    rows: int
    columns: int
    detector: str
    m: int
    functions: int
    fit: float
    count: float
    score: float
    bound: float
    reading: float
    instructions: float = float("nan")
    beyond: int = 0

    @property
    def each(self) -> tuple[float, float, float, float]:
        """Nanoseconds a row and table of fit, count and score; and a row's score."""
        fit, count, score = (1e9 * s / self.m for s in (self.fit, self.count, self.score))
        return fit, count, score, 1e9 * self.score


# --- measuring ------------------------------------------------------------------------------


def repeated(X: np.ndarray, rows: int) -> Reader:
    """Return a reader of ``rows`` rows: the batches of ``X``, repeatedly."""
    times, rest = divmod(rows, len(X))
    assert rest == 0

    def read() -> Iterator[Batch]:
        return (batch for _ in range(times) for batch in as_reader(X).read())

    return Reader(None, X.shape[1], rows, read)


def measure_streamed(extent: Extent, machine: Machine) -> list[RowCost]:
    """Measure the streamed rows once each, and their memory if the system supports it."""
    base = RowSource.normal(extent.floor_rows, extent.columns[0])
    reader = repeated(base.load(), extent.streamed)
    name = RowSource.normal(extent.streamed, base.columns).name + ", streamed"
    costs = []
    for make, m in itertools.product(DETECTORS, extent.m):
        progress(f"{name}: {make.__name__}, m={m}")

        def do(make: type = make, m: int = m) -> RowCost:
            return measure(name, reader, make, m, machine, repeats=1)

        cost, beyond = watch(do) if can_measure() else (do(), 0)
        costs.append(dataclasses.replace(cost, beyond=beyond))
    return costs


def two_passes(extent: Extent) -> int:
    """Return the peak bytes of a fit with two passes on the streamed rows.

    The one byte that it keeps for each row is subtracted.
    """
    reader = repeated(
        RowSource.normal(extent.floor_rows, extent.columns[0]).load(), extent.streamed
    )
    progress(f"{extent.streamed:.0e} rows, streamed: two passes")
    detector = HushTable(random_state=0, n_jobs=1)
    return max(1, watch(lambda: detector.fit(reader))[1] - extent.streamed)


def measure_all(extent: Extent, machine: Machine, *, counting: bool) -> list[RowCost]:
    """Measure every case in memory; if ``counting``, count instructions, too, at ``floor_rows``."""
    costs = []
    for columns, rows in itertools.product(extent.columns, extent.rows):
        data = RowSource.normal(rows, columns)
        if data.values > LARGEST:
            continue
        reader = as_reader(data.load())
        repeats = max(3, min(101, 10**6 // rows))
        for make, m in itertools.product(DETECTORS, extent.m):
            progress(f"{data.name}: {make.__name__}, m={m}")
            counted = counting and rows == extent.floor_rows
            costs.append(measure(data.name, reader, make, m, machine, repeats, counted))
    return costs


def measure(
    name: str,
    reader: Reader,
    make: type[LSHiTables] | type[HushTable],
    m: int,
    machine: Machine,
    repeats: int,
    counting: bool = False,
) -> RowCost:
    """Measure one detector on one case; batches of scores are dropped at once."""
    detector = make(n_tables=m, random_state=0, **DETECTORS[make])
    # A single run is so large that the extra cost of a first run does not matter.
    uncounted = int(repeats > 1)
    fit = seconds(lambda: detector.fit(reader), repeats, uncounted)
    plan: Any = detector.plan_
    scorer = Scorer(detector.sketch_)
    count = seconds(lambda: Sketch.from_data(plan, reader), repeats, uncounted)

    def score() -> None:
        collections.deque(scorer.batches(reader, lambda *_: None), maxlen=0)

    scored = seconds(score, repeats, uncounted)
    rows, columns = int(reader.n_rows or 0), reader.n_columns
    return RowCost(
        name,
        rows,
        columns,
        make.__name__,
        m,
        int(plan.family.depth.sum(dtype=np.int64)),
        fit / rows,
        count / rows,
        scored / rows,
        machine.bound(plan.family),
        machine.reading(columns),
        events(score) / rows if counting else float("nan"),
    )


def warm_up() -> None:
    """Compile the kernels, outside the measured times and memory."""
    X = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    for make in DETECTORS:
        detector = make(random_state=0).fit(X)
        Sketch.from_data(detector.plan_, X)
        detector.score_samples(X)


def table_of_flatness(costs: Sequence[RowCost]) -> ResultTable:
    """Lay out the ratio of the largest to the smallest cost of a row, from `FLAT_ROWS` rows on."""
    rows = []
    many = [c for c in costs if c.rows >= FLAT_ROWS]
    for kind in dict.fromkeys((c.columns, c.detector, c.m) for c in many):
        alike = [c for c in many if (c.columns, c.detector, c.m) == kind]
        if len(alike) == 1:
            continue
        spans = [_span(alike, lambda c: c.count), _span(alike, lambda c: c.score)]
        sizes = f"{min(c.rows for c in alike):.0e} to {max(c.rows for c in alike):.0e}"
        rows.append((kind[1], *kind[::2], sizes.replace("e+0", "e"), *spans))
    header = ("detector", "columns", "m", "rows", "count: largest / smallest cost of a row")
    return ResultTable((*header, "score: the same"), rows)


def _span(costs: Sequence[RowCost], cost: Callable[[RowCost], float]) -> str:
    found = [cost(c) for c in costs]
    return f"{max(found) / min(found):.2f}"


def table_of_the_floor(costs: Sequence[RowCost], rows: int) -> ResultTable:
    """Lay out the cost beside the machine's floor, for cases of ``rows`` rows."""
    chosen = [c for c in costs if c.rows == rows]
    header = [
        "data", "detector", "m", "read the row, ns", "operations, ns", "count, ns",
        "count / operations", "score, ns", "score / operations",
    ]  # fmt: skip
    lines = [
        [
            c.data, c.detector, c.m, f"{1e9 * c.reading:.1f}", f"{1e9 * c.bound:.1f}",
            f"{1e9 * c.count:.1f}", f"{c.count / c.bound:.2f}",
            f"{1e9 * c.score:.1f}", f"{c.score / c.bound:.2f}",
        ]
        for c in chosen
    ]  # fmt: skip
    if not any(np.isnan(c.instructions) for c in chosen):
        header.append("instructions to score a row")
        for line, c in zip(lines, chosen, strict=True):
            line.append(f"{c.instructions:.0f}")
    return ResultTable(header, lines, text=2)


def targets(streamed: Sequence[RowCost], both: int = 0) -> list[Promise]:
    """Compare the memory of the streamed rows with its bound, if it was measured.

    ``both`` is the memory of a fit with two passes, in bytes.
    """
    if not all(c.beyond for c in streamed):
        return []
    most = max(streamed, key=lambda c: c.beyond)
    claims = {f"{most.detector}, m={most.m}, {most.data}": most.beyond}
    if both:
        claims[f"and a byte of each: HushTable's fit with two passes, {most.data}"] = both
    return [
        Promise(f"memory beyond the rows (MB; {which})", beyond / 1e6, "<=", 100.0, ".1f")
        for which, beyond in claims.items()
    ]


def scaling(run: CaseRun, *, quick: bool = False) -> None:
    """Measure a row by rows, columns and tables: five minutes; --quick, half a minute."""
    extent = QUICK if quick else FULL
    warm_up()
    machine = Machine.measured()
    try:
        events(lambda: None)
        why_not = ""
    except CannotCountError as error:
        why_not = f" No instructions counted: {error}."
    # This comes first, because memory that was used before would not show.
    streamed = measure_streamed(extent, machine)
    both = two_passes(extent) if can_measure() else 0
    costs = measure_all(extent, machine, counting=not why_not)
    every = sorted([*costs, *streamed], key=lambda c: c.columns)
    run.table(
        {
            "data": "{t.data}", "detector": "{t.detector}", "m": "{t.m}",
            "hash functions": "{t.functions}", "fit, ns a row and table": "{t.each[0]:.3f}",
            "count, ns a row and table": "{t.each[1]:.3f}",
            "score, ns a row and table": "{t.each[2]:.3f}", "score, ns a row": "{t.each[3]:.1f}",
        }, every, text=2,
    )  # fmt: skip
    run.say(table_of_flatness(every))
    run.say("The machine's floor. " + machine.describe() + why_not)
    run.say(table_of_the_floor(costs, extent.floor_rows))
    run.figures |= {"machine": machine, "costs": every, "two_passes": both}
    run.targets += targets(streamed, both)
