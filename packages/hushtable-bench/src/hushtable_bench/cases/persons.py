"""Measure time and memory of counting a limited number of rows of each person.

`persons`: rows of ten numbers are made as they are read, for a tenth as many persons, in random
order; 1e8 rows need at most 10 GB of disk for the temporary file. `register`: a book that has
counted many persons, and a round about the same number of persons, half of them new.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushtable import Feature, Plan, Schema, Sketch
from hushtable_bench.runner import CaseRun, process_memory
from hushtable_federation import Book, Keys, Policy, Reply, Round
from hushtable_federation.book.digests import PersonsSeen
from hushtable_federation.clock import now

COLUMNS, BATCH = 10, 65_536


@dataclass(frozen=True)
class CapTiming:
    """Time and memory of a run, and its counts."""

    rows: int
    persons: int
    left_out: int
    seconds: float
    #: Without persons.
    plain: float
    #: Bytes of the process at its peak.
    peak: int


def made(rows: int, persons: int) -> pa.RecordBatchReader:
    """Return rows that can be read once, and are never stored as a whole."""
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


def measure(rows: int, most: int = 2, threads: int = 2) -> CapTiming:
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
    return CapTiming(rows, seen.n_persons, seen.left_out, end - between, between - start, peak)


@dataclass(frozen=True)
class RegisterTiming:
    """Time and memory to open a book, count, and answer; and the number of persons left out."""

    persons: int
    known: int
    opened: float
    counted: float
    answered: float
    #: Bytes of the process at its peak, and of the book's file.
    peak: int
    book: int


def people(first: int, n: int) -> pa.RecordBatchReader:
    """Return one row for each of some persons, numbered from the first."""
    names, kinds = ["patient", "x0"], [pa.int64(), pa.float32()]

    def batches() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(0)
        for start in range(first, first + n, BATCH):
            ids = np.arange(start, min(start + BATCH, first + n))
            columns = [pa.array(ids), pa.array(rng.random(len(ids), np.float32))]
            yield pa.RecordBatch.from_arrays(columns, names)

    kept = pa.schema(list(zip(names, kinds, strict=True)))
    return pa.RecordBatchReader.from_batches(kept, batches())


def answer_twice(persons: int, threads: int = 2) -> RegisterTiming:
    """Answer a round about some persons, then one about as many, half of them new."""
    plan = Plan.draw(
        Schema([Feature.numeric("x0", low=0, high=1)]), n_tables=100, random_state=0,
        epsilon=1.0, delta=1e-9, expected_rows=persons,
    )  # fmt: skip
    lead, north, south = (Keys.generate(name) for name in ("lead", "north", "south"))
    deadline = now() + timedelta(days=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "north.book"
        with Book.create(path, north.card, epsilon=9.0, delta=1e-9) as book:
            book.trust([lead.card], "coordinator")
            book.trust([south.card])
        for year in (0, 1):
            terms = {"epsilon": 1.0, "delta": 1e-9, "title": f"{year}"}
            cards = [north.card, south.card]
            asked = Round.open(plan, cards, lead, deadline=deadline, masked=False, **terms)
            times = [time.perf_counter()]
            with Book.open(path, north.card) as book:
                policy = Policy(persons="column", masks=False)
                reply = Reply(asked, north, book, policy=policy, data_set=f"year {year}")
                times.append(time.perf_counter())
                found = Sketch.from_data(
                    plan, people(year * (persons // 2), persons), n_jobs=threads,
                    person="patient", key=book.persons_key, known=reply.barred(),
                )  # fmt: skip
                times.append(time.perf_counter())
                seen = PersonsSeen.of(found.persons)
                reply.answer(reply.counted(found), None, persons=seen, new_people=True)
                times.append(time.perf_counter())
        assert found.persons is not None
        opened, counted, answered = np.diff(times)
        peak, size = process_memory("VmHWM"), path.stat().st_size
        return RegisterTiming(persons, found.persons.known, opened, counted, answered, peak, size)


def persons(run: CaseRun, *, rows: int = 1_000_000, rows_per_person: int = 2) -> None:
    """Count a limited number of rows of each person."""
    one = measure(rows, rows_per_person)
    run.say(
        f"{one.rows:,} rows of {one.persons:,} persons, {one.left_out:,} left out: "
        f"{one.seconds:.1f} s (without persons {one.plain:.1f} s), "
        f"{one.peak / 1e6:,.0f} MB at the peak"
    )
    run.figures["persons"] = one


def register(run: CaseRun, *, persons: int = 10_000_000) -> None:
    """Answer a round with a book that knows many persons."""
    took = answer_twice(persons)
    run.say(
        f"{took.persons:,} persons in the book, as many in the round, {took.known:,} left out: "
        f"opened in {took.opened:.1f} s, counted in {took.counted:.1f} s, answered in "
        f"{took.answered:.1f} s; {took.peak / 1e6:,.0f} MB at the peak, a book of "
        f"{took.book / 1e6:,.0f} MB"
    )
    run.figures["register"] = took
