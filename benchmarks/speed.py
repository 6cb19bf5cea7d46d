"""Time and memory of fit and score, beside IsolationForest and HBOS in the same run.

The contestants take turns in rounds, and medians of the rounds are compared, so that what else
the machine does falls on all of them alike.
"""

import argparse
import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import memory
import numpy as np
from common import Rows, Target
from pyod.models.hbos import HBOS
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables
from hushtable.errors import DataError

PEER = "IsolationForest"
#: A peer's call that would take longer, in seconds, is extrapolated.
PATIENCE = 60.0
#: From so many rows on, the speed of two threads is judged as a whole.
MANY_ROWS = 1_000_000

SIZES = [(10**n, d) for d in (10, 100) for n in (5, 6, 7)]
QUICK_SIZES = [(10**5, 10)]


@dataclass(frozen=True)
class Contestant:
    """A detector with its defaults; ``score`` is the method that scores rows."""

    name: str
    threads: int
    make: Callable[[], Any]
    score: str = "score_samples"
    is_peer: bool = False
    #: What scoring holds for each value of the input, in bytes.
    bytes_a_value: int = 0


CONTESTANTS = [
    Contestant("LSHiTables", 1, lambda: LSHiTables(random_state=0, n_jobs=1)),
    Contestant("LSHiTables", 2, lambda: LSHiTables(random_state=0, n_jobs=2)),
    Contestant("HushTable", 1, lambda: HushTable(random_state=0, n_jobs=1)),
    Contestant("HushTable", 2, lambda: HushTable(random_state=0, n_jobs=2)),
    Contestant(PEER, 1, lambda: IsolationForest(random_state=0, n_jobs=1), is_peer=True),
    # HBOS works out a float64 for every value before it adds them up.
    Contestant("HBOS", 1, HBOS, "decision_function", is_peer=True, bytes_a_value=8),
]
OURS = ("LSHiTables", "HushTable")


@dataclass(frozen=True)
class Timing:
    """Medians over the rounds, in seconds; ``rounds`` is 0 where they were extrapolated.

    ``elsewhere`` is how many cores other processes kept busy during the rounds.
    """

    data: str
    rows: int
    detector: str
    threads: int
    fit: float
    score: float
    rounds: int
    elsewhere: float


def rounds_for(data: Rows) -> int:
    """Return how often to time: short calls more often, since they vary more."""
    return 9 if data.rows < 500_000 else 5 if data.rows < 5_000_000 else 3


# --- timing ---------------------------------------------------------------------------------


def time_all(
    cases: Iterable[Rows],
    contestants: Sequence[Contestant] = CONTESTANTS,
    rounds: Callable[[Rows], int] = rounds_for,
) -> list[Timing]:
    """Time every contestant on every case; of one kind, the cases with fewer rows come first."""
    _warm_up(contestants)
    timings: list[Timing] = []
    fewer_rows: dict[tuple[Path | None, int], dict[Contestant, Timing]] = {}
    for data in cases:
        kind = data.path, data.columns
        guessed = _extrapolate(data, fewer_rows.get(kind, {}))
        racing = [c for c in contestants if c not in guessed]
        found = _race(data, racing, rounds(data)) | guessed
        fewer_rows[kind] = found
        timings += [found[c] for c in contestants]
    return timings


def _race(data: Rows, racing: Sequence[Contestant], rounds: int) -> dict[Contestant, Timing]:
    """Let the contestants take turns; each round starts with another one."""
    X = data.load()
    seconds: dict[Contestant, list[tuple[float, float]]] = {c: [] for c in racing}
    start, busy = time.perf_counter(), _busy_elsewhere()
    for at in range(rounds):
        common.progress(f"{data.name}: round {at + 1} of {rounds}")
        first = at % len(racing)
        for contestant in (*racing[first:], *racing[:first]):
            seconds[contestant].append(_time(contestant, X))
    elsewhere = (_busy_elsewhere() - busy) / (time.perf_counter() - start)
    found = {}
    for c, pairs in seconds.items():
        fit, score = map(statistics.median, zip(*pairs, strict=True))
        found[c] = Timing(data.name, data.rows, c.name, c.threads, fit, score, rounds, elsewhere)
    return found


def _busy_elsewhere() -> float:
    """Return the seconds that the cores have worked for other processes; NaN off Linux."""
    try:
        ticks = Path("/proc/stat").read_text().split()[1:9]
    except OSError:
        return float("nan")
    user, nice, system, _, _, interrupts, soft, stolen = map(int, ticks)
    busy = (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return busy - own.user - own.system


def _warm_up(contestants: Sequence[Contestant]) -> None:
    """Compile kernels and import what loads late, outside the timings."""
    tiny = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    for contestant in contestants:
        _time(contestant, tiny)


def _time(contestant: Contestant, X: np.ndarray) -> tuple[float, float]:
    detector = contestant.make()
    start = time.perf_counter()
    detector.fit(X)
    fitted = time.perf_counter()
    scores = getattr(detector, contestant.score)(X)
    scored = time.perf_counter()
    assert scores.shape == X.shape[:1]
    return fitted - start, scored - fitted


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
                last, data=data.name, rows=data.rows, fit=fit, score=score, rounds=0
            )
    return found


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# --- tables ---------------------------------------------------------------------------------


def find(timings: Sequence[Timing], data: str, detector: str, threads: int = 1) -> Timing:
    """Return one of the timings."""
    wanted = (data, detector, threads)
    return next(t for t in timings if (t.data, t.detector, t.threads) == wanted)


def table_of_times(timings: Sequence[Timing]) -> str:
    """Lay out all timings; the ratios say how many times as fast as IsolationForest."""
    rows = []
    for t in timings:
        peer = find(timings, t.data, PEER)
        about = "" if t.rounds else "~"
        ratio = about or ("" if peer.rounds else "~")
        rows.append((
            t.data, t.detector, t.threads, f"{about}{t.fit:.3f}", f"{about}{t.score:.3f}",
            f"{about}{t.rows / t.score:.2e}".replace("e+0", "e"),
            f"{ratio}{peer.fit / t.fit:.1f}", f"{ratio}{peer.score / t.score:.1f}",
        ))  # fmt: skip
    header = ("data", "detector", "threads", "fit s", "score s", "rows/s scored")
    return common.markdown_table(
        (*header, f"fit: times {PEER}", f"score: times {PEER}"), rows, text=2
    )


def notes(timings: Sequence[Timing]) -> str:
    """Return what a reader has to know of the times."""
    found = ["Medians of the rounds; float32 in C order. HBOS scores the rows in its fit as well."]
    found += [
        f"~ {t.detector} on {t.data} was not run: in proportion to its time at fewer rows, since "
        f"a call would take over {PATIENCE:.0f} s or half of the memory."
        for t in timings
        if not t.rounds
    ]
    return "\n".join(f"- {note}" for note in found)


def gains(timings: Sequence[Timing]) -> list[tuple[Timing, Timing]]:
    """Return our timings with one thread and with two, in pairs."""
    return [
        (t, find(timings, t.data, t.detector, 2))
        for t in timings
        if t.detector in OURS and t.threads == 1
    ]


def table_of_threads(timings: Sequence[Timing]) -> str:
    """Lay out what the second thread gains."""
    rows = [
        (
            one.data, one.detector, f"{one.fit / two.fit:.2f}", f"{one.score / two.score:.2f}",
            f"{one.elsewhere:.2f}",
        )
        for one, two in gains(timings)
    ]  # fmt: skip
    header = ("data", "detector", "fit: two threads, times one", "score: two threads, times one")
    return common.markdown_table((*header, "cores busy elsewhere"), rows, text=2)


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
    """Hold LSHiTables to IsolationForest on cover, two threads to one, memory to its bound."""
    found = []
    if any(t.data == "cover" for t in timings):
        ours, peer = (find(timings, "cover", name) for name in ("LSHiTables", PEER))
        claim = f"LSHiTables scores cover with one thread, times {PEER}"
        found.append(Target(claim, peer.score / ours.score, ">=", 25.0, ".1f"))
    for detector in OURS:
        found += _thread_targets(detector, [p for p in gains(timings) if p[0].detector == detector])
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


def _thread_targets(detector: str, pairs: Sequence[tuple[Timing, Timing]]) -> list[Target]:
    found = []
    for one, two in pairs:
        claim = f"{detector} scores {one.data}: two threads, times one"
        found.append(Target(claim, one.score / two.score, ">=", 1.7, ".2f"))
    large = [pair for pair in pairs if pair[0].rows >= MANY_ROWS]
    if large:
        one, two = (sum(t.score for t in times) for times in zip(*large, strict=True))
        claim = f"{detector} scores all from {MANY_ROWS:,} rows on: two threads, times one"
        found.append(Target(claim, one / two, ">=", 1.7, ".2f"))
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
    cases = [Rows.normal(*size) for size in (QUICK_SIZES if arguments.quick else SIZES)]
    cover = find_cover(arguments.cover)
    if cover is None:
        print(f"cover: skipped, no 10_cover.npz in ${common.VARIABLE} and no --cover PATH.\n")
    else:
        cases.insert(0, dataclasses.replace(Rows.of_file(cover), name="cover"))
    timings = time_all(cases)
    print(table_of_times(timings) + "\n\n" + notes(timings))
    print("\n" + table_of_threads(timings) + "\n")
    peaks = measure_memory(cases)
    results = {"timings": timings, "peaks": peaks}
    common.write_results(
        "speed", {key: [dataclasses.asdict(one) for one in many] for key, many in results.items()}
    )
    common.print_environment()
    return common.print_targets(targets(timings, peaks))


def measure_memory(cases: Sequence[Rows]) -> list[memory.Peak]:
    """Measure and print the peaks of our detectors with two threads, which hold more than one."""
    if not memory.can_measure():
        print("Memory: skipped, this system has no /proc/self/clear_refs.")
        return []
    peaks = []
    for data in cases:
        for detector in OURS:
            common.progress(f"{data.name}: memory of {detector}")
            peaks.append(memory.in_fresh_process(data, detector, threads=2))
    print(table_of_memory(peaks))
    return peaks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only cover and 1e5 rows")
    parser.add_argument("--cover", type=Path, help="cover's .npz file, if elsewhere")
    common.run(parser, main)
