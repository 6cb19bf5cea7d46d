"""Time and memory of fit and score: beside other packages, and with a second thread.

The contestants take turns in rounds, and medians of the rounds are compared, so that what else
the machine does falls on all of them alike. How the cost grows, and how near it is to what the
machine allows, is the matter of scaling.py.
"""

import argparse
import dataclasses
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import common
import contestants
import memory
import passes
import threads
from common import Rows, Target
from contestants import CONTESTANTS, DEFAULT, ONE_PASS, PEER, Contestant
from hushtable.errors import DataError

#: A peer's call that would take longer, in seconds, is extrapolated.
PATIENCE = 20.0
#: A contestant that has taken so long on a case, in seconds, leaves the rounds that are to come.
BUDGET, QUICK_BUDGET = 15.0, 1.0
#: For one detector, method and size, in seconds: how long one thread and two take turns.
TURNS, QUICK_TURNS = 2.0, 0.2
#: New rows that nearest neighbours are found of, how often, and among how many.
NEIGHBOURS, QUICK_NEIGHBOURS = (4_000, 3, 10**5), (500, 1, 10**5)
#: Values at most: 400 MB as float32.
LARGEST = 10**8

SIZES = [(10**n, d) for d in (10, 100, 1000) for n in range(3, 8) if 10**n * d <= LARGEST]
QUICK_SIZES = [(10**5, 10)]
#: Rows for the comparison of threads, of 10 columns and, up to a million, of 100.
THREAD_ROWS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 10**5, 10**6, 10**7)
THREAD_SIZES = [(n, d) for d in (10, 100) for n in THREAD_ROWS if n * d <= 10**8]
QUICK_THREAD_SIZES = [(n, 10) for n in THREAD_ROWS if n <= 10**5]

#: With 100 tables and one thread: how many times as fast as a peer, on cover and on many columns.
COVER, MANY = "cover", "normal 1e6 x 100"
EXPECTED = (
    (COVER, "LSHiTables", "score", PEER, 40.0),
    (COVER, "LSHiTables", "score", "HBOS", 3.0),
    (COVER, "LSHiTables", "score", "coniferest", 40.0),
    (COVER, "LSHiTables", "fit", PEER, 5.0),
    (COVER, DEFAULT, "score", PEER, 24.0),
    (MANY, "LSHiTables", "fit", PEER, 4.0),
    (MANY, ONE_PASS, "fit", PEER, 1.3),
    (MANY, DEFAULT, "score", PEER, 20.0),
)


@dataclass(frozen=True)
class Timing:
    """Medians over the rounds, in seconds; ``rounds`` is 0 where they were extrapolated.

    ``each`` has fit and score of every round, in their order.
    """

    data: str
    rows: int
    detector: str
    m: int
    fit: float
    score: float
    rounds: int
    each: Sequence[tuple[float, float]] = ()


def rounds_for(data: Rows) -> int:
    """Return how often to time: short calls more often, since they vary more."""
    return 25 if data.rows < 50_000 else 9 if data.rows < 500_000 else 5


# --- timing ---------------------------------------------------------------------------------


def time_all(
    cases: Iterable[Rows],
    racing: Sequence[Contestant] = CONTESTANTS,
    rounds: Callable[[Rows], int] = rounds_for,
    budget: float = BUDGET,
) -> list[Timing]:
    """Time every contestant on every case; of one kind, the cases with fewer rows come first."""
    _warm_up(racing)
    timings: list[Timing] = []
    fewer_rows: dict[tuple[Path | None, int], dict[Contestant, Timing]] = {}
    for data in cases:
        kind = data.path, data.columns
        guessed = _extrapolate(data, fewer_rows.get(kind, {}))
        able = [c for c in racing if c not in guessed]
        found = _race(data, able, rounds(data), budget) | guessed
        fewer_rows[kind] = found
        timings += [found[c] for c in racing]
    return timings


def _race(
    data: Rows, racing: Sequence[Contestant], rounds: int, budget: float
) -> dict[Contestant, Timing]:
    """Let the contestants take turns; each round starts with another one."""
    X = data.load()
    seconds: dict[Contestant, list[tuple[float, float]]] = {c: [] for c in racing}
    for at in range(rounds):
        common.progress(f"{data.name}: round {at + 1} of {rounds}")
        first = at % len(racing)
        for contestant in (*racing[first:], *racing[:first]):
            if sum(map(sum, seconds[contestant])) <= budget:
                seconds[contestant].append(_time(contestant, X))
    found = {}
    for c, pairs in seconds.items():
        fit, score = map(statistics.median, zip(*pairs, strict=True))
        found[c] = Timing(data.name, data.rows, c.name, c.m, fit, score, len(pairs), pairs)
    return found


def _warm_up(racing: Sequence[Contestant]) -> None:
    """Compile kernels and import what loads late, outside the timings."""
    tiny = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    for contestant in racing:
        _time(contestant, tiny)


def _time(contestant: Contestant, X: np.ndarray) -> tuple[float, float]:
    detector = contestant.make()
    X = X.astype(contestant.dtype, copy=False)
    fit, _ = common.timed(lambda: detector.fit(X))
    score, scores = common.timed(lambda: getattr(detector, contestant.score)(X))
    assert scores.shape == X.shape[:1]
    return fit, score


def _extrapolate(data: Rows, smaller: dict[Contestant, Timing]) -> dict[Contestant, Timing]:
    """Return timings in proportion to the rows for the peers that this size is too large for."""
    found = {}
    for contestant, last in smaller.items():
        times = data.rows / last.rows
        fit, score = last.fit * times, last.score * times
        held = data.values * (4 + contestant.bytes_a_value)
        too_large = max(fit, score) > PATIENCE or held > _physical_memory() / 2
        if contestant.is_peer and too_large:
            found[contestant] = dataclasses.replace(
                last, data=data.name, rows=data.rows, fit=fit, score=score, rounds=0, each=()
            )
    return found


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# --- tables ---------------------------------------------------------------------------------


def find(timings: Sequence[Timing], data: str, detector: str) -> Timing:
    """Return one of the timings: of several numbers of tables, the first."""
    return next(t for t in timings if (t.data, t.detector) == (data, detector))


def table_of_times(timings: Sequence[Timing]) -> str:
    """Lay out all timings; the ratios say how many times as fast as IsolationForest."""
    rows = []
    for t in timings:
        peer = find(timings, t.data, PEER)
        about = "" if t.rounds else "~"
        ratio = about or ("" if peer.rounds else "~")
        rows.append((
            t.data, t.detector, t.m or "", f"{about}{t.fit:.4f}", f"{about}{t.score:.4f}",
            f"{about}{t.rows / t.score:.2e}".replace("e+0", "e"),
            f"{ratio}{peer.fit / t.fit:.1f}", f"{ratio}{peer.score / t.score:.1f}",
        ))  # fmt: skip
    header = ("data", "detector", "m", "fit s", "score s", "rows/s scored")
    return common.markdown_table(
        (*header, f"fit: times {PEER}", f"score: times {PEER}"), rows, text=2
    )


def notes(timings: Sequence[Timing]) -> str:
    """Return what a reader has to know of the times."""
    found = [
        "One thread; medians of the rounds; rows in C order, float32, or float64 for coniferest, "
        "isotree and LODA. m: tables, trees or projections. HBOS, LODA and ECOD score the rows in "
        "their fit as well."
    ]
    found += [
        f"~ {t.detector} on {t.data} was not run: in proportion to its time at fewer rows, since "
        f"a call would take over {PATIENCE:.0f} s or half of the memory."
        for t in timings
        if not t.rounds
    ]
    return "\n".join(f"- {note}" for note in found)


def table_of_memory(peaks: Sequence[memory.Peak]) -> str:
    """Lay out peaks in MB (1e6 bytes)."""
    rows = [
        (p.data, p.detector, p.threads, f"{p.beyond_input / 1e6:.1f}", f"{p.scores / 1e6:.1f}",
         f"{p.beyond_scores / 1e6:.1f}")
        for p in peaks
    ]  # fmt: skip
    header = ("data", "detector", "threads", "peak beyond input MB", "of it the scores MB")
    return common.markdown_table((*header, "without the scores MB"), rows, text=2)


# --- targets --------------------------------------------------------------------------------


def targets(timings: Sequence[Timing], peaks: Sequence[memory.Peak]) -> list[Target]:
    """Hold our detectors to their peers, and their memory to its bound."""
    found = []
    timed = {(t.data, t.detector) for t in timings}
    for data, detector, method, peer, bound in EXPECTED:
        if {(data, detector), (data, peer)} <= timed:
            ours, theirs = (find(timings, data, name) for name in (detector, peer))
            claim = f"{detector}, {data}, one thread: {method}, times {peer}"
            measured = getattr(theirs, method) / getattr(ours, method)
            found.append(Target(claim, measured, ">=", bound, ".1f"))
    if peaks:
        most = max(peaks, key=lambda p: p.beyond_input)
        rest = max(peaks, key=lambda p: p.beyond_scores)
        for claim, peak, size in (
            ("memory beyond the input", most, most.beyond_input),
            ("the same without the returned scores", rest, rest.beyond_scores),
        ):
            claim = f"{claim}, at most (MB; {peak.detector} on {peak.data})"
            found.append(Target(claim, size / 1e6, "<=", 100.0, ".1f"))
    return found


# --- the run --------------------------------------------------------------------------------


def find_cover(given: Path | None) -> Path | None:
    """Return the file of cover, or None where there is none and none was asked for."""
    if given is not None:
        return given
    try:
        path = common.data_folder() / "10_cover.npz"
    except DataError:
        return None
    return path if path.exists() else None


def main(arguments: argparse.Namespace) -> int:
    quick = arguments.quick
    sizes = QUICK_SIZES if quick else SIZES
    cases = [Rows.normal(*size) for size in sizes]
    turns = [Rows.normal(*size) for size in (QUICK_THREAD_SIZES if quick else THREAD_SIZES)]
    racing, absent = contestants.installed()
    cover = find_cover(arguments.cover)
    if cover is None:
        absent.append(f"cover: skipped, no 10_cover.npz in ${common.VARIABLE} and no --cover PATH.")
    else:
        for some in (cases, turns):
            some.insert(0, dataclasses.replace(Rows.of_file(cover), name="cover"))
    if absent:
        print("\n\n".join(absent) + "\n")
    with threadpool_limits(limits=1):  # NumPy's matrix products in LODA, for one
        timings = time_all(cases, racing, budget=QUICK_BUDGET if quick else BUDGET)
        nearest = passes.time_neighbours(*(QUICK_NEIGHBOURS if quick else NEIGHBOURS))
    print(table_of_times(timings) + "\n\n" + notes(timings) + "\n")
    print(passes.table(timings, nearest) + "\n")
    gains = threads.measure(turns, QUICK_TURNS if quick else TURNS)
    print(threads.table(gains) + "\n")
    peaks = measure_memory([case for case in cases if case.rows >= 10**5])
    results = {"timings": timings, "threads": gains, "peaks": peaks}
    figures = {key: [dataclasses.asdict(one) for one in many] for key, many in results.items()}
    figures["neighbours"] = dataclasses.asdict(nearest)
    held = [
        *targets(timings, peaks), *passes.targets(timings, nearest), *threads.targets(gains)
    ]  # fmt: skip
    return common.finish(held, "speed", **figures)


def measure_memory(cases: Sequence[Rows]) -> list[memory.Peak]:
    """Measure and print the peaks of our detectors with two threads, which hold more than one."""
    if not memory.can_measure():
        print("Memory: skipped, this system has no /proc/self/clear_refs.")
        return []
    peaks = []
    for data in cases:
        for detector in threads.DETECTORS:
            common.progress(f"{data.name}: memory of {detector.__name__}")
            peaks.append(memory.in_fresh_process(data, detector.__name__, threads=2))
    print(table_of_memory(peaks))
    return peaks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only cover and 1e5 rows")
    parser.add_argument("--cover", type=Path, help="cover's .npz file, if elsewhere")
    common.run(parser, main)
