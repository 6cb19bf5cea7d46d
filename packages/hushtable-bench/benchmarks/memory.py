"""Peak memory of fit and score beyond the input, of one detector on one data set.

The measure is the high-water mark of the process, so that each case needs a process of its own;
speed.py starts one for each. Needs Linux's /proc.
"""

import argparse
import ctypes
import dataclasses
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

import hushtable
from common import Rows, process_memory

T = TypeVar("T")


@dataclass(frozen=True)
class Peak:
    """Bytes that fit and score took at their peak, over what the process held before."""

    data: str
    detector: str
    threads: int
    beyond_input: int
    scores: int

    @property
    def beyond_scores(self) -> int:
        """Without the array of scores that the caller gets."""
        return self.beyond_input - self.scores


def can_measure() -> bool:
    """Whether this system can reset the high-water mark of a process."""
    return Path("/proc/self/clear_refs").exists()


def in_fresh_process(data: Rows, detector: str, threads: int) -> Peak:
    """Run this file for one case."""
    source = [str(data.path.resolve())] if data.path else [str(data.rows), str(data.columns)]
    command = [sys.executable, __file__, detector, str(threads), *source]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dataclasses.replace(Peak(**json.loads(done.stdout)), data=data.name)


def measure(data: Rows, detector: str, threads: int) -> Peak:
    """Fit and score here; what ran before in this process makes the result too small."""
    make = getattr(hushtable, detector)
    tiny = np.random.default_rng(0).random((100, 2), dtype=np.float32)
    make(n_jobs=threads).fit(tiny).score_samples(tiny)  # loads the compiled kernels
    X = data.load()

    def fit_and_score() -> np.ndarray:
        return make(random_state=0, n_jobs=threads).fit(X).score_samples(X)

    scores, beyond = watch(fit_and_score)
    return Peak(data.name, detector, threads, beyond, scores.nbytes)


def watch(do: Callable[[], T]) -> tuple[T, int]:
    """Return what ``do`` returns, and the bytes that it took at its peak over those held before."""
    _give_back()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts from here
    before = process_memory("VmRSS")
    result = do()
    return result, process_memory("VmHWM") - before


def _give_back() -> None:
    """Return freed memory to the system: fit could take it again, and it would not show."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("detector", choices=("HushTable", "LSHiTables"))
    parser.add_argument("threads", type=int)
    parser.add_argument("source", nargs="+", help="an .npz file, or rows and columns to draw")
    given = parser.parse_args()
    if len(given.source) == 2:
        data = Rows.normal(*map(int, given.source))
    else:
        data = Rows.of_file(Path(given.source[0]))
    print(json.dumps(vars(measure(data, given.detector, given.threads))))


if __name__ == "__main__":
    main()
