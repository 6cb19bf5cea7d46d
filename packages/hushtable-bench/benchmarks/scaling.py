"""What a row costs against the number of rows, columns and tables, and what the machine allows.

Our detectors with one thread: fit, counting of all rows, and scoring. The most rows are
streamed: the same million over and over, more than caches hold, so that memory stays flat.
HushTable makes one pass here: what a second adds to `fit` is in speed.py's table, and what it
holds of streamed rows is watched below.
"""

import argparse
import collections
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import common
import memory
from common import Rows, Target, seconds
from floor import CannotCountError, Machine, events
from hushtable import HushTable, LSHiTables, Sketch
from hushtable.data.readers import Batch, Reader, as_reader
from hushtable.scores.scorer import Scorer

#: Each with its settings: all rows are counted, once.
DETECTORS: dict[type[LSHiTables] | type[HushTable], dict[str, int]] = {
    LSHiTables: {},
    HushTable: {"passes": 1},
}
#: Values at most: 400 MB as float32.
LARGEST = 10**8
#: From so many rows on, the cost per row should be the same.
FLAT_ROWS = 100_000


@dataclass(frozen=True)
class Extent:
    """What one run covers.

    ``floor_rows`` are those that costs are held to the machine's floor at, and that are streamed
    over and over, with the first of ``columns``, until they are ``streamed`` rows.
    """

    rows: Sequence[int]
    columns: Sequence[int]
    m: Sequence[int]
    floor_rows: int
    streamed: int


FULL = Extent([10**n for n in range(3, 8)], (10, 100, 1000), (100, 400), 10**6, 10**8)
QUICK = Extent((10**3, 10**4, 10**5), (10, 100), (100,), 10**5, 10**6)


@dataclass(frozen=True)
class Cost:
    """Median seconds a row; ``bound`` and ``reading`` are the machine's floor, likewise.

    ``instructions`` is how many scoring takes a row, NaN where they cannot be counted.
    ``beyond`` is the peak of memory in bytes over the rows', where it was watched, else 0.
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


# --- measuring ------------------------------------------------------------------------------


def repeated(X: np.ndarray, rows: int) -> Reader:
    """Return a reader of ``rows`` rows: those of ``X``, in the same batches, over and over."""
    times, rest = divmod(rows, len(X))
    assert rest == 0

    def read() -> Iterator[Batch]:
        return (batch for _ in range(times) for batch in as_reader(X).read())

    return Reader(None, X.shape[1], rows, read)


def measure_streamed(extent: Extent, machine: Machine) -> list[Cost]:
    """Measure the streamed rows, once each, and watch the memory where the system lets us."""
    base = Rows.normal(extent.floor_rows, extent.columns[0])
    reader = repeated(base.load(), extent.streamed)
    name = Rows.normal(extent.streamed, base.columns).name + ", streamed"
    costs = []
    for make, m in itertools.product(DETECTORS, extent.m):
        common.progress(f"{name}: {make.__name__}, m={m}")

        def do(make: type = make, m: int = m) -> Cost:
            return measure(name, reader, make, m, machine, repeats=1)

        cost, beyond = memory.watch(do) if memory.can_measure() else (do(), 0)
        costs.append(dataclasses.replace(cost, beyond=beyond))
    return costs


def two_passes(extent: Extent) -> int:
    """Return the bytes at their peak that a fit with two passes takes on the streamed rows.

    Without the byte that it holds of each row.
    """
    reader = repeated(Rows.normal(extent.floor_rows, extent.columns[0]).load(), extent.streamed)
    common.progress(f"{extent.streamed:.0e} rows, streamed: two passes")
    detector = HushTable(random_state=0, n_jobs=1)
    return max(1, memory.watch(lambda: detector.fit(reader))[1] - extent.streamed)


def measure_all(extent: Extent, machine: Machine, *, counting: bool) -> list[Cost]:
    """Measure every case in memory; ``counting``: instructions as well, at ``floor_rows``."""
    costs = []
    for columns, rows in itertools.product(extent.columns, extent.rows):
        data = Rows.normal(rows, columns)
        if data.values > LARGEST:
            continue
        reader = as_reader(data.load())
        repeats = max(3, min(101, 10**6 // rows))
        for make, m in itertools.product(DETECTORS, extent.m):
            common.progress(f"{data.name}: {make.__name__}, m={m}")
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
) -> Cost:
    """Measure one detector on one case; batches of scores are dropped as they come."""
    detector = make(n_tables=m, random_state=0, **DETECTORS[make])
    # A single run is of a size that what a first one costs besides does not show in.
    uncounted = int(repeats > 1)
    fit = seconds(lambda: detector.fit(reader), repeats, uncounted)
    plan, scorer = detector.plan_, Scorer(detector.sketch_)
    count = seconds(lambda: Sketch.from_data(plan, reader), repeats, uncounted)

    def score() -> None:
        collections.deque(scorer.batches(reader, lambda *_: None), maxlen=0)

    scored = seconds(score, repeats, uncounted)
    rows, columns = int(reader.n_rows or 0), reader.n_columns
    return Cost(
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
    """Compile the kernels, outside the timings and the memory that is watched."""
    X = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    for make in DETECTORS:
        detector = make(random_state=0).fit(X)
        Sketch.from_data(detector.plan_, X)
        detector.score_samples(X)


# --- tables ---------------------------------------------------------------------------------


def table_of_costs(costs: Sequence[Cost]) -> str:
    """Lay out what a row costs in each table, and the score of a row in all."""
    rows = [
        (
            c.data, c.detector, c.m, c.functions,
            *(f"{1e9 * s / c.m:.3f}" for s in (c.fit, c.count, c.score)), f"{1e9 * c.score:.1f}",
        )
        for c in costs
    ]  # fmt: skip
    header = (
        "data", "detector", "m", "hash functions", "fit, ns a row and table",
        "count, ns a row and table", "score, ns a row and table", "score, ns a row",
    )  # fmt: skip
    return common.markdown_table(header, rows, text=2)


def table_of_flatness(costs: Sequence[Cost]) -> str:
    """Lay out the largest cost of a row over the smallest, from `FLAT_ROWS` rows on."""
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
    return common.markdown_table((*header, "score: the same"), rows)


def _span(costs: Sequence[Cost], cost: Callable[[Cost], float]) -> str:
    found = [cost(c) for c in costs]
    return f"{max(found) / min(found):.2f}"


def table_of_the_floor(costs: Sequence[Cost], rows: int) -> str:
    """Lay out cost against what the machine allows, for cases of ``rows`` rows."""
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
    return common.markdown_table(header, lines, text=2)


# --- the run --------------------------------------------------------------------------------


def targets(streamed: Sequence[Cost], both: int = 0) -> list[Target]:
    """Hold the memory of the streamed rows to its bound, where it was watched.

    ``both`` is that of a fit with two passes, in bytes.
    """
    if not all(c.beyond for c in streamed):
        return []
    most = max(streamed, key=lambda c: c.beyond)
    claims = {f"{most.detector}, m={most.m}, {most.data}": most.beyond}
    if both:
        claims[f"and a byte of each: HushTable's fit with two passes, {most.data}"] = both
    return [
        Target(f"memory beyond the rows (MB; {which})", beyond / 1e6, "<=", 100.0, ".1f")
        for which, beyond in claims.items()
    ]


def main(arguments: argparse.Namespace) -> int:
    extent = QUICK if arguments.quick else FULL
    warm_up()
    machine = Machine.measured()
    try:
        events(lambda: None)
        why_not = ""
    except CannotCountError as error:
        why_not = f" No instructions counted: {error}."
    # First, since memory that was used before would not show.
    streamed = measure_streamed(extent, machine)
    both = two_passes(extent) if memory.can_measure() else 0
    costs = measure_all(extent, machine, counting=not why_not)
    every = sorted([*costs, *streamed], key=lambda c: c.columns)
    print(table_of_costs(every) + "\n\n" + table_of_flatness(every))
    print("\nThe machine's floor. " + machine.describe() + why_not + "\n")
    print(table_of_the_floor(costs, extent.floor_rows))
    results = {"machine": vars(machine), "costs": [dataclasses.asdict(c) for c in every]}
    results["two_passes"] = both
    return common.finish(targets(streamed, both), "scaling", **results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="at most 1e5 rows, 1e6 streamed")
    common.run(parser, main)
