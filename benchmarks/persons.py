"""Time and memory of counting at most so many rows of each person.

Rows of ten numbers are made as they are read, of a tenth as many persons, in no order.

    python benchmarks/persons.py                 10^6 rows
    python benchmarks/persons.py --rows 1e8      10 GB of disk for the temporary file, at most
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from common import process_memory

from hushtable import Feature, Plan, Schema, Sketch

COLUMNS, BATCH = 10, 65_536


@dataclass(frozen=True)
class Outcome:
    """What a run took, and what it counted."""

    rows: int
    persons: int
    left_out: int
    seconds: float
    #: Without persons.
    plain: float
    #: Bytes at the peak, of the process.
    peak: int


def made(rows: int, persons: int) -> pa.RecordBatchReader:
    """Return rows that can be read once, and are nowhere as a whole."""
    names = ["patient", *(f"x{j}" for j in range(COLUMNS))]
    kinds = [pa.int64(), *[pa.float32()] * COLUMNS]

    def batches() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(0)
        for start in range(0, rows, BATCH):
            n = min(BATCH, rows - start)
            numbers = rng.random((COLUMNS, n), np.float32)
            ids = rng.integers(persons, size=n)
            yield pa.RecordBatch.from_arrays([pa.array(ids), *map(pa.array, numbers)], names)

    schema = pa.schema(list(zip(names, kinds, strict=True)))
    return pa.RecordBatchReader.from_batches(schema, batches())


def measure(rows: int, most: int = 2, threads: int = 2) -> Outcome:
    """Count rows of a tenth as many persons, and the same rows without persons."""
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(COLUMNS)])
    plan, persons = Plan.draw(schema, n_tables=100, random_state=0), max(1, rows // 10)
    Sketch.from_data(plan, made(1_000, 100), person="patient")  # loads the compiled kernels
    start = time.perf_counter()
    Sketch.from_data(plan, made(rows, persons), n_jobs=threads)
    between = time.perf_counter()
    found = Sketch.from_data(
        plan, made(rows, persons), n_jobs=threads, person="patient", rows_per_person=most
    )
    end = time.perf_counter()
    seen = found.persons
    assert seen is not None
    assert found.n_rows + seen.left_out == rows
    peak = process_memory("VmHWM")
    return Outcome(rows, seen.n_persons, seen.left_out, end - between, between - start, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--rows-per-person", type=int, default=2)
    given = parser.parse_args()
    one = measure(int(given.rows), given.rows_per_person)
    print(
        f"{one.rows:,} rows of {one.persons:,} persons, {one.left_out:,} left out: "
        f"{one.seconds:.1f} s (without persons {one.plain:.1f} s), "
        f"{one.peak / 1e6:,.0f} MB at the peak"
    )


if __name__ == "__main__":
    main()
