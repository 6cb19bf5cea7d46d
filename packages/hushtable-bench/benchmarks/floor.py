"""What the machine allows: how fast it copies memory, and how many operations a row needs.

The count of operations is by hand, for tables of random features whose look-ups stay in the
first cache and whose comparisons run in vectors, as the kernels are written. It is a bound on
this way to work, not on every one: another layout of the tables may get by with less. What it
leaves out (bringing rows into columns, loads and stores of intermediate results, loop control,
Python) is what a ratio above 1 is made of.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding
import numba
import numpy as np

from common import seconds
from hushtable.plans.families import RandomFeature
from hushtable.plans.families.random_feature import REPAID, JoinedTables

#: Bytes of the array that is copied: far more than caches hold.
COPIED = 1 << 28
CHAIN = 100_000_000

#: Vector operations, and loads, that a core begins in one cycle. Every core with AVX2 or AVX-512
#: does two; on one that does more (Zen 5: up to four), the bound is up to twice too high.
EACH_CYCLE = 2
#: A hash function on a number: load and compare, shift the bits so far, put the answer in.
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

    ``lanes`` is how many 16-bit codes one vector holds.
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
        """Return the seconds that counting or scoring a row takes at least, by operations.

        Encoding, hashing and looking up come one after the other, a block of rows at a time;
        within each, the busiest resource decides.
        """
        functions, folded = int(family.depth.sum(dtype=np.int64)), folds(family)
        columns = len(family.schema)
        ranked = functions >= REPAID * columns
        # Tables that are joined are looked up as one.
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
    """Return how many tables have fewer cells than codes."""
    return int((1 << family.depth.astype(np.int64) > family.max_cells).sum())


def _copying() -> float:
    source = np.ones(COPIED // 8)
    target = np.empty_like(source)
    return 2 * COPIED / seconds(lambda: np.copyto(target, source), repeats=9)


def _clock() -> float:
    """Count cycles by a chain of additions and exclusive ors, each of which waits for the last."""
    _chain(10, 12_345)
    return 2 * CHAIN / seconds(lambda: _chain(CHAIN, 12_345), repeats=5)


@numba.njit
def _chain(n, key):
    # No compiler shortens it, as it would a chain of additions alone.
    x = np.int64(1)
    for i in range(n):
        x = (x + i) ^ key
    return x


def _lanes() -> int:
    features = llvmlite.binding.get_host_cpu_features()
    return 32 if features.get("avx512bw") else 16 if features.get("avx2") else 8


# --- instruction counts -----------------------------------------------------------------------


class CannotCountError(Exception):
    """The machine does not count this event; the message says what perf said."""


def events(do: Callable[[], object], event: str = "instructions:u") -> float:
    """Count, with perf, what this process does in ``do``; raises `CannotCountError`."""
    if shutil.which("perf") is None:
        raise CannotCountError("perf is not installed")
    command = ["perf", "stat", "-x,", "-e", event, "-p", str(os.getpid())]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
        time.sleep(0.2)  # perf does not say when it begins; a process that sleeps does nothing
        do()
        perf.send_signal(signal.SIGINT)
        said = perf.communicate()[1].strip()
    count = said.split(",")[0]
    try:
        return float(count)
    except ValueError:
        raise CannotCountError(f"perf stat says of {event}: {count or said}") from None
