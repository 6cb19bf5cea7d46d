"""Measure time and memory of fit and score beside other packages, and with a second thread.

The contestants take turns in rounds, and medians of the rounds are compared, so that the machine's
other work affects all of them alike. The case `scaling` measures how the cost grows, and how near
it is to the machine's limit.
"""

import ctypes
import dataclasses
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.loda import LODA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import hushtable
from hushtable import HushTable, LSHiTables
from hushtable.errors import DataError
from hushtable_bench.cases import threads
from hushtable_bench.data import VARIABLE
from hushtable_bench.results import Promise, ResultTable
from hushtable_bench.runner import (
    CaseRun,
    RowSource,
    data_folder,
    in_turns,
    process_memory,
    progress,
    timed,
)

#: The contestant with whose times the others' are compared.
PEER = "IsolationForest"
#: Two passes, and one pass for comparison; then novelty detection.
DEFAULT, ONE_PASS, NOVELTY = "HushTable", "HushTable, one pass", "HushTable, novelty"
DECISION = "decision_function"


@dataclass(frozen=True)
class Racer:
    """A detector that can be fitted and timed.

    ``m`` is its number of tables, trees or projections, 0 without any. ``score`` is the method
    that scores rows. Rows come as ``dtype``, which it reads without a conversion.
    ``bytes_a_value`` is the memory for each value, in addition to the value as float32.
    """

    name: str
    make: Callable[[], Any]
    m: int = 100
    score: str = "score_samples"
    is_peer: bool = True
    dtype: type[np.floating[Any]] = np.float32
    bytes_a_value: int = 0


def _ours(
    detector: type[LSHiTables] | type[HushTable], m: int, how: str = "", **settings: Any
) -> Racer:
    make = partial(detector, n_tables=m, random_state=0, n_jobs=1, **settings)
    return Racer(detector.__name__ + how, make, m, is_peer=False)


def _coniferest() -> Any:
    from coniferest.isoforest import IsolationForest

    return IsolationForest(n_trees=100, random_seed=0, n_jobs=1)


def _isotree() -> Any:
    import isotree

    # As many rows per tree as in the other forests: with its own default, up to 10,000, it takes
    # seven times as long.
    return isotree.IsolationForest(ntrees=100, sample_size=256, random_seed=1, nthreads=1)


RACERS = [
    _ours(LSHiTables, 100),
    _ours(LSHiTables, 400),
    _ours(HushTable, 100),
    # Right after the default, so that the machine's other work affects both alike.
    _ours(HushTable, 100, ", one pass", passes=1),
    _ours(HushTable, 100, ", novelty", novelty=True),
    _ours(HushTable, 400),
    Racer(PEER, partial(IsolationForest, random_state=0, n_jobs=1)),
    Racer("coniferest", _coniferest, dtype=np.float64, bytes_a_value=8),
    # isotree works on columns: every call copies the rows.
    Racer("isotree", _isotree, score=DECISION, dtype=np.float64, bytes_a_value=16),
    # HBOS computes a float64 for every value before it adds them up.
    Racer("HBOS", HBOS, 0, DECISION, bytes_a_value=8),
    Racer("LODA", partial(LODA, random_state=0), 100, DECISION, True, np.float64, 8),
    # ECOD scores the rows of its fit again, and keeps about ten float64 for each value of both.
    Racer("ECOD", partial(ECOD, n_jobs=1), 0, DECISION, bytes_a_value=150),
]


def installed(
    contestants: Iterable[Racer] = RACERS,
) -> tuple[list[Racer], list[str]]:
    """Return the contestants that can run here, and for each other one a line with the reason."""
    present, absent = [], []
    for contestant in contestants:
        try:
            contestant.make()
        except ImportError as error:
            absent.append(f"{contestant.name}: skipped, {error}.")
        else:
            present.append(contestant)
    return present, absent


#: Seconds; a peer's call that would take longer is extrapolated.
PATIENCE = 20.0
#: Seconds; a contestant that has taken longer on a case leaves the later rounds.
BUDGET, QUICK_BUDGET = 15.0, 1.0
#: Seconds in which one thread and two take turns, for one detector, method, and size.
TURNS, QUICK_TURNS = 2.0, 0.2
#: New rows whose nearest neighbours are found, how often, and among how many rows.
NEIGHBOURS, QUICK_NEIGHBOURS = (4_000, 3, 10**5), (500, 1, 10**5)
#: Values at most: 400 MB as float32.
LARGEST = 10**8

SIZES = [(10**n, d) for d in (10, 100, 1000) for n in range(3, 8) if 10**n * d <= LARGEST]
QUICK_SIZES = [(10**5, 10)]
#: Rows for the comparison of threads, of 10 columns and, up to a million, of 100.
THREAD_ROWS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 10**5, 10**6, 10**7)
THREAD_SIZES = [(n, d) for d in (10, 100) for n in THREAD_ROWS if n * d <= 10**8]
QUICK_THREAD_SIZES = [(n, 10) for n in THREAD_ROWS if n <= 10**5]

#: Speed with 100 tables and one thread, as a multiple of a peer's, on cover and on many columns.
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
class RaceTiming:
    """Medians over the rounds, in seconds; ``rounds`` is 0 if they were extrapolated.

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


def rounds_for(data: RowSource) -> int:
    """Return how often to time a call: short calls more often, because they vary more."""
    return 25 if data.rows < 50_000 else 9 if data.rows < 500_000 else 5


@dataclass(frozen=True)
class Peak:
    """Peak bytes of fit and score, beyond those that the process held before."""

    data: str
    detector: str
    threads: int
    beyond_input: int
    scores: int

    @property
    def beyond_mb(self) -> tuple[float, float, float]:
        """The same in MB: over all, the scores, and the rest."""
        return self.beyond_input / 1e6, self.scores / 1e6, self.beyond_scores / 1e6

    @property
    def beyond_scores(self) -> int:
        """Without the array of scores that the caller gets."""
        return self.beyond_input - self.scores


# --- timing ---------------------------------------------------------------------------------


def time_all(
    cases: Iterable[RowSource],
    racing: Sequence[Racer] = RACERS,
    rounds: Callable[[RowSource], int] = rounds_for,
    budget: float = BUDGET,
) -> list[RaceTiming]:
    """Time every contestant on every case; in each kind, cases with fewer rows come first."""
    _warm_up(racing)
    timings: list[RaceTiming] = []
    fewer_rows: dict[tuple[Path | None, int], dict[Racer, RaceTiming]] = {}
    for data in cases:
        kind = data.path, data.columns
        guessed = _extrapolate(data, fewer_rows.get(kind, {}))
        able = [c for c in racing if c not in guessed]
        found = _race(data, able, rounds(data), budget) | guessed
        fewer_rows[kind] = found
        timings += [found[c] for c in racing]
    return timings


def _race(
    data: RowSource, racing: Sequence[Racer], rounds: int, budget: float
) -> dict[Racer, RaceTiming]:
    """Run the contestants in turn; each round starts with another one."""
    X, new = data.split()
    seconds: dict[Racer, list[tuple[float, float]]] = {c: [] for c in racing}
    for at in range(rounds):
        progress(f"{data.name}: round {at + 1} of {rounds}")
        first = at % len(racing)
        for contestant in (*racing[first:], *racing[:first]):
            if sum(map(sum, seconds[contestant])) <= budget:
                seconds[contestant].append(_time(contestant, X, new))
    found = {}
    for c, pairs in seconds.items():
        fit, score = map(statistics.median, zip(*pairs, strict=True))
        found[c] = RaceTiming(data.name, len(new), c.name, c.m, fit, score, len(pairs), pairs)
    return found


def _warm_up(racing: Sequence[Racer]) -> None:
    """Compile kernels and import what loads late, outside the timings."""
    tiny = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    for contestant in racing:
        _time(contestant, tiny, 2.0 * tiny)  # some values outside, as in new rows


def _time(contestant: Racer, X: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Time `fit` of rows, and the score of as many new ones."""
    detector = contestant.make()
    X, new = (rows.astype(contestant.dtype, copy=False) for rows in (X, new))
    fit, _ = timed(lambda: detector.fit(X))
    score, scores = timed(lambda: getattr(detector, contestant.score)(new))
    assert scores.shape == new.shape[:1]
    return fit, score


def _extrapolate(data: RowSource, smaller: dict[Racer, RaceTiming]) -> dict[Racer, RaceTiming]:
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


def find(timings: Sequence[RaceTiming], data: str, detector: str) -> RaceTiming:
    """Return one of the timings: of several numbers of tables, the first."""
    return next(t for t in timings if (t.data, t.detector) == (data, detector))


def notes(timings: Sequence[RaceTiming]) -> str:
    """Return the notes on the times for readers."""
    found = [
        "One thread; medians of the rounds; as many new rows are scored as were fitted (of cover, "
        "half each); rows in C order, float32, or float64 for coniferest, isotree and LODA. "
        "m: tables, trees or projections. HBOS, LODA and ECOD score the rows in their fit as well."
    ]
    found += [
        f"~ {t.detector} on {t.data} did not run, because a call would take over "
        f"{PATIENCE:.0f} s or half of the memory: in proportion to its time with fewer rows."
        for t in timings
        if not t.rounds
    ]
    return "\n".join(f"- {note}" for note in found)


def targets(timings: Sequence[RaceTiming], peaks: Sequence[Peak]) -> list[Promise]:
    """Compare our detectors with their peers, and their memory with its bound."""
    found = []
    timed = {(t.data, t.detector) for t in timings}
    for data, detector, method, peer, bound in EXPECTED:
        if {(data, detector), (data, peer)} <= timed:
            ours, theirs = (find(timings, data, name) for name in (detector, peer))
            claim = f"{detector}, {data}, one thread: {method}, times {peer}"
            measured = getattr(theirs, method) / getattr(ours, method)
            found.append(Promise(claim, measured, ">=", bound, ".1f"))
    if peaks:
        most = max(peaks, key=lambda p: p.beyond_input)
        rest = max(peaks, key=lambda p: p.beyond_scores)
        for claim, peak, size in (
            ("memory beyond the input", most, most.beyond_input),
            ("the same without the returned scores", rest, rest.beyond_scores),
        ):
            claim = f"{claim}, at most (MB; {peak.detector} on {peak.data})"
            found.append(Promise(claim, size / 1e6, "<=", 100.0, ".1f"))
    return found


def find_cover(given: Path | None) -> Path | None:
    """Return the file of cover, or None if it is missing and was not requested."""
    if given is not None:
        return given
    try:
        path = data_folder() / "10_cover.npz"
    except DataError:
        return None
    return path if path.exists() else None


NEIGHBOUR_COLUMNS, K = 10, 5


@dataclass(frozen=True)
class Neighbours:
    """Median seconds to score a new row, after a fit of ``rows`` rows."""

    rows: int
    columns: int
    new: int
    neighbours: float
    novelty: float

    @property
    def ratio(self) -> float:
        return self.neighbours / self.novelty


def time_neighbours(new: int, repeats: int, rows: int) -> Neighbours:
    """Score the same new rows with k nearest neighbours and novelty detection, in turns."""
    progress(f"{rows:,} rows: {K} nearest neighbours of {new:,} new rows")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, NEIGHBOUR_COLUMNS), dtype=np.float32)
    unseen = rng.standard_normal((new, NEIGHBOUR_COLUMNS), dtype=np.float32)
    detector = HushTable(novelty=True, random_state=0, n_jobs=1).fit(X)
    nearest = NearestNeighbors(n_neighbors=K, n_jobs=1).fit(X)
    times = in_turns(
        {
            "neighbours": lambda: nearest.kneighbors(unseen)[0].mean(axis=1),
            "novelty": lambda: detector.score_samples(unseen),
        },
        repeats,
    )
    medians = {name: statistics.median(seconds) / new for name, seconds in times.items()}
    return Neighbours(rows, NEIGHBOUR_COLUMNS, new, **medians)


def _ratios(timings: Sequence[RaceTiming], one: str, other: str, which: int) -> dict[str, float]:
    """Return, for each case that both were timed on, the time of one over the other's.

    It is the median over the rounds. In a round, they run one after the other, so a temporary
    slowdown of the machine affects both alike. ``which`` is 0 for fit, 1 for score.
    """
    found = {
        # Takes the first of several numbers of tables.
        name: {t.data: t.each for t in reversed(timings) if t.detector == name and t.each}
        for name in (one, other)
    }
    return {
        # A contestant that has used up its time leaves, so both have the first rounds in common.
        data: statistics.median(
            a[which] / b[which] for a, b in zip(each, found[other][data], strict=False)
        )
        for data, each in found[one].items()
        if data in found[other]
    }


def _comparisons(timings: Sequence[RaceTiming]) -> Iterator[tuple[str, dict[str, float]]]:
    for which, method in enumerate(("fit", "score")):
        yield f"{method}, two passes, times one", _ratios(timings, DEFAULT, ONE_PASS, which)
    for which, method in enumerate(("fit", "score")):
        yield f"{method}, novelty, times two passes", _ratios(timings, NOVELTY, DEFAULT, which)


def targets_of_passes(
    timings: Sequence[RaceTiming], nearest: Neighbours | None = None
) -> list[Promise]:
    """Compare two passes with one, and novelty detection with two passes and neighbours."""
    found = []
    ratios = dict(_comparisons(timings))
    for what, bound in (
        ("fit, two passes, times one", 1.7),
        ("score, novelty, times two passes", 1.6),
    ):
        if cases := ratios[what]:
            worst = max(cases, key=cases.__getitem__)
            claim = f"HushTable: {what}, at most ({worst})"
            found.append(Promise(claim, cases[worst], "<=", bound, ".2f"))
    if cases := ratios["score, two passes, times one"]:
        worst = max(cases, key=cases.__getitem__)
        claim = "HushTable: score, two passes, times one, median of the cases"
        claim += f" (at most {cases[worst]:.2f}, {worst})"
        found.append(Promise(claim, statistics.median(cases.values()), "<=", 1.03, ".3f"))
    if nearest is not None:
        claim = f"HushTable, novelty: score after {nearest.rows:,} rows, times nearest neighbours"
        found.append(Promise(claim, nearest.ratio, ">=", 20.0, ".0f"))
    return found


T = TypeVar("T")


def can_measure() -> bool:
    """Whether this system can reset the peak memory of a process."""
    return Path("/proc/self/clear_refs").exists()


def watch(do: Callable[[], T]) -> tuple[T, int]:
    """Return the result of ``do``, and its peak bytes beyond those held before."""
    _give_back()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here on
    before = process_memory("VmRSS")
    result = do()
    return result, process_memory("VmHWM") - before


def _give_back() -> None:
    """Return freed memory to the system; otherwise fit could reuse it without a trace."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def speed(run: CaseRun, *, quick: bool = False, cover: Path | None = None) -> None:
    """Time fit and score beside other packages: 16 minutes; --quick, cover and 1e5 rows, once."""
    cases = [RowSource.normal(*size) for size in (QUICK_SIZES if quick else SIZES)]
    turns = [RowSource.normal(*size) for size in (QUICK_THREAD_SIZES if quick else THREAD_SIZES)]
    racing, absent = installed()
    file = find_cover(cover)
    if file is None:
        absent.append(f"cover: skipped, no 10_cover.npz in ${VARIABLE} and no --cover PATH.")
    else:
        for some in (cases, turns):
            some.insert(0, dataclasses.replace(RowSource.of_file(file), name="cover"))
    for line in absent:
        run.say(line)
    with threadpool_limits(limits=1):  # NumPy's matrix products in LODA, for one
        timings = time_all(cases, racing, budget=QUICK_BUDGET if quick else BUDGET)
        nearest = time_neighbours(*(QUICK_NEIGHBOURS if quick else NEIGHBOURS))
    print_times(run, timings)
    print_passes(run, timings, nearest)
    gains = threads.measure(turns, QUICK_TURNS if quick else TURNS)
    threads.print_gains(run, gains)
    peaks = [one for data in cases if data.rows >= 10**5 for one in measure_memory(data)]
    print_memory(run, peaks)
    run.figures |= {"timings": timings, "threads": gains, "peaks": peaks, "neighbours": nearest}
    run.targets += targets(timings, peaks)
    run.targets += [*targets_of_passes(timings, nearest), *threads.targets(gains)]


def print_times(run: CaseRun, timings: Sequence[RaceTiming]) -> None:
    """Lay out all timings, with ratios of IsolationForest's times to them."""
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
    header = (
        "data", "detector", "m", "fit s", "score s", "rows/s scored", f"fit: times {PEER}",
        f"score: times {PEER}",
    )  # fmt: skip
    run.say(ResultTable(header, rows, text=2))
    run.say(notes(timings))


def print_passes(run: CaseRun, timings: Sequence[RaceTiming], nearest: Neighbours) -> None:
    """Lay out the ratios, one row per case, and a line on nearest neighbours."""
    columns = dict(_comparisons(timings))
    cases = [
        data
        for data in dict.fromkeys(t.data for t in timings)
        if any(data in c for c in columns.values())
    ]
    rows = [
        (data, *(f"{ratios[data]:.2f}" if data in ratios else "" for ratios in columns.values()))
        for data in cases
    ]
    run.say(ResultTable(("data", *columns), rows))
    run.say(
        f"After {nearest.rows:,} rows of {nearest.columns} columns, {K} nearest neighbours "
        f"(scikit-learn, one thread) take {1e6 * nearest.neighbours:,.0f} µs for a new row, and "
        f"novelty detection takes {1e6 * nearest.novelty:.2f} µs, for {nearest.new:,} rows each."
    )


def measure_memory(data: RowSource) -> Iterator[Peak]:
    """Measure the peaks of our detectors with two threads, each in its own process."""
    if not can_measure():
        return
    source = [str(data.path.resolve())] if data.path else [str(data.rows), str(data.columns)]
    for detector in ("LSHiTables", "HushTable"):
        progress(f"{data.name}: memory of {detector}")
        code = "from hushtable_bench.cases.speed import peak_here; peak_here()"
        command = [sys.executable, "-c", code, detector, "2", *source]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        yield dataclasses.replace(Peak(**json.loads(done.stdout)), data=data.name)


def peak_here() -> None:
    """Fit and score here and print the peak; earlier work in this process would reduce it."""
    detector, threads, *source = sys.argv[1:]
    data = (
        RowSource.normal(*map(int, source))
        if len(source) == 2
        else RowSource.of_file(Path(source[0]))
    )
    make = partial(getattr(hushtable, detector), random_state=0, n_jobs=int(threads))
    tiny = np.random.default_rng(0).random((100, 2), dtype=np.float32)
    make().fit(tiny).score_samples(tiny)  # loads the compiled kernels
    X = data.load()
    scores, beyond = watch(lambda: make().fit(X).score_samples(X))
    print(json.dumps(vars(Peak(data.name, detector, int(threads), beyond, scores.nbytes))))


def print_memory(run: CaseRun, peaks: Sequence[Peak]) -> None:
    """Lay out peaks in MB (1e6 bytes)."""
    run.table(
        {
            "data": "{t.data}", "detector": "{t.detector}", "threads": "{t.threads}",
            "peak beyond input MB": "{t.beyond_mb[0]:.1f}",
            "of this, the scores MB": "{t.beyond_mb[1]:.1f}",
            "without the scores MB": "{t.beyond_mb[2]:.1f}",
        }, peaks, text=2,
    )  # fmt: skip
