"""Measure the gain of a second thread: one thread and two, in turns, from few rows to many.

A ratio is the median over pairs of successive timings, so that a temporary slowdown of a core
affects both alike. If a call is short, a timing consists of many calls. This is a part of the case
`speed`.
"""

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np

from hushtable import HushTable, LSHiTables
from hushtable.threads import for_each
from hushtable_bench.results import Promise
from hushtable_bench.runner import CaseRun, RowSource, progress

DETECTORS = (LSHiTables, HushTable)
#: Seconds of a timing with one thread, which determine its number of calls.
SHORTEST = 0.005
FEWEST_PAIRS = 5
#: From this number of rows on, a second thread has to pay.
MANY_ROWS = 50_000
#: Difference, in a median of pairs, of two threads that do the work of one.
NOISE = 0.03


@dataclass(frozen=True)
class Gain:
    """How many times as fast two threads are; ``fit_s`` and ``score_s`` are one's median seconds.

    ``machine`` is what two threads gain that share a bare loop of ``score_s``, which needs no
    memory: what waking a thread and the cores themselves allow. ``elsewhere`` is how many cores
    other processes kept busy meanwhile.
    """

    data: str
    rows: int
    detector: str
    fit_s: float
    score_s: float
    fit: float
    score: float
    machine: float
    elsewhere: float


def measure(cases: Sequence[RowSource], turns: float) -> list[Gain]:
    """Compare fit and score on every case, each for ``turns`` seconds at least."""
    gains = []
    for data in cases:
        X = data.load()
        for make in DETECTORS:
            progress(f"{data.name}: threads of {make.__name__}")
            one, two = (make(random_state=0, n_jobs=n).fit(X) for n in (1, 2))
            start, busy = time.perf_counter(), _busy_elsewhere()
            fit_s, fit = alternate(lambda d=one, x=X: d.fit(x), lambda d=two, x=X: d.fit(x), turns)
            score_s, score = alternate(
                lambda d=one, x=X: d.score_samples(x), lambda d=two, x=X: d.score_samples(x), turns
            )
            machine = bare_loop(score_s, turns)
            elsewhere = (_busy_elsewhere() - busy) / (time.perf_counter() - start)
            name = make.__name__
            gains.append(
                Gain(data.name, data.rows, name, fit_s, score_s, fit, score, machine, elsewhere)
            )
    return gains


def bare_loop(seconds: float, turns: float) -> float:
    """Return what two threads gain in a loop that takes one thread so many seconds."""
    rounds = int(seconds / _seconds(lambda: _loop(1_000_000), 5) * 1_000_000)
    half = rounds // 2
    _, gain = alternate(lambda: _loop(2 * half), lambda: for_each(_loop, [[half, half]], 2), turns)
    return gain


@numba.njit(nogil=True)
def _loop(rounds):
    x = np.int64(1)
    for i in range(rounds):  # no compiler shortens it: see floor.py
        x = (x + i) ^ 12_345
    return x


def alternate(
    one: Callable[[], object], two: Callable[[], object], turns: float
) -> tuple[float, float]:
    """Return the median seconds of ``one``, and how many times as fast ``two`` is."""
    two()
    calls = math.ceil(SHORTEST / _seconds(one, 1))
    ones: list[float] = []
    ratios: list[float] = []
    end = time.perf_counter() + turns
    while len(ratios) < FEWEST_PAIRS or time.perf_counter() < end:
        if len(ratios) % 2:  # who comes second may find warmer caches
            after = _seconds(two, calls)
            before = _seconds(one, calls)
        else:
            before = _seconds(one, calls)
            after = _seconds(two, calls)
        ones.append(before)
        ratios.append(before / after)
    return statistics.median(ones), statistics.median(ratios)


def _seconds(do: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        do()
    return (time.perf_counter() - start) / calls


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


def targets(gains: Sequence[Gain]) -> list[Promise]:
    """Compare two threads with one: never slower, and far faster in scoring many rows."""
    found = []
    for make in DETECTORS:
        ours = [g for g in gains if g.detector == make.__name__]
        many = [g for g in ours if g.rows >= MANY_ROWS]
        for method, some, where, bound in (
            ("score", many, f"{MANY_ROWS:,} rows or more", 1.8),
            ("score", ours, "any number of rows", 1.0 - NOISE),
            ("fit", ours, "any number of rows", 1.0 - NOISE),
        ):
            if some:
                times = {g.data: getattr(g, method) for g in some}
                least = min(times, key=times.__getitem__)
                claim = f"{make.__name__}, {method}, {where}: two threads, times one, at least"
                found.append(Promise(f"{claim} ({least})", times[least], ">=", bound, ".2f"))
    return found


def print_gains(run: CaseRun, gains: Sequence[Gain]) -> None:
    """Lay out one thread's times, and the gain of the second."""
    run.table(
        {
            "data": "{t.data}", "detector": "{t.detector}",
            "fit s, one thread": "{t.fit_s:.5f}", "score s, one thread": "{t.score_s:.5f}",
            "fit: two threads, times one": "{t.fit:.2f}",
            "score: two threads, times one": "{t.score:.2f}",
            "a bare loop as long": "{t.machine:.2f}", "cores busy elsewhere": "{t.elsewhere:.2f}",
        }, gains, text=2,
    )  # fmt: skip
