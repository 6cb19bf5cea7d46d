"""Shared by the benchmark scripts: rows to time, a clock, memory, results.

Labelled sets, tables and targets are those of `hushtable_bench`.
"""

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import DataError
from hushtable_bench import tables
from hushtable_bench.data import VARIABLE, LabelledSet, load
from hushtable_bench.data import data_folder as named_folder
from hushtable_bench.tables import Target, environment, markdown_table, print_targets

__all__ = [
    "VARIABLE",
    "LabelledSet",
    "Rows",
    "Target",
    "data_folder",
    "finish",
    "in_turns",
    "load",
    "markdown_table",
    "print_environment",
    "process_memory",
    "progress",
    "run",
    "seconds",
    "timed",
]

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
RESULTS = Path(__file__).with_name("results")
#: Versions that the figures depend on, besides the package's own.
PACKAGES = ("numba", "numpy", "scikit-learn", "pyod", "coniferest", "isotree")


def data_folder(given: Path | None = None) -> Path:
    """Return the folder given, or the variable's, or the one that lies beside the clone."""
    return named_folder(given, ROOT.parent / "shared" / "data")


def print_environment() -> None:
    """Print what the figures depend on besides the code, in one line."""
    tables.print_environment(PACKAGES)


# --- rows to time ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Unlabelled rows, of a file or drawn from the standard normal distribution.

    They come as float32 in C order: the one format that scikit-learn's trees read without
    converting it first.
    """

    name: str
    rows: int
    columns: int
    path: Path | None = None

    @classmethod
    def of_file(cls, path: Path) -> "Rows":
        return cls(path.stem, *load(path).X.shape, path)

    @classmethod
    def normal(cls, rows: int, columns: int) -> "Rows":
        return cls(f"normal {rows:.0e} x {columns}".replace("e+0", "e"), rows, columns)

    @property
    def values(self) -> int:
        return self.rows * self.columns

    def load(self) -> NDArray[np.float32]:
        if self.path is not None:
            return load(self.path).X.astype(np.float32)
        rng = np.random.default_rng(0)
        X = np.empty((self.rows, self.columns), np.float32)
        for block in np.array_split(X, max(1, self.values // 10**7)):
            # Into the array itself: what is drawn elsewhere first would show as memory.
            rng.standard_normal(dtype=np.float32, out=block)
        return X


# --- clock and memory -----------------------------------------------------------------------


def timed(do: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that a run takes, and its result."""
    start = time.perf_counter()
    result = do()
    return time.perf_counter() - start, result


def in_turns(
    contestants: Mapping[str, Callable[[], object]], repeats: int, uncounted: int = 1
) -> dict[str, list[float]]:
    """Return the seconds of several runs of each, in turns, after some that do not count.

    What else the machine does then meets all of them alike.
    """
    rounds = [
        {name: timed(do)[0] for name, do in contestants.items()} for _ in range(uncounted + repeats)
    ]
    return {name: [times[name] for times in rounds[uncounted:]] for name in contestants}


def seconds(do: Callable[[], object], repeats: int, uncounted: int = 1) -> float:
    """Return the median of several runs, after some that do not count."""
    return statistics.median(in_turns({"": do}, repeats, uncounted)[""])


def process_memory(key: str = "VmHWM", status: str | None = None) -> int:
    """Return bytes of this process: at its peak, or ``VmRSS`` now (Linux)."""
    text = Path("/proc/self/status").read_text() if status is None else status
    return int(re.search(rf"{key}:\s+(\d+) kB", text)[1]) * 1024


# --- output ---------------------------------------------------------------------------------


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)


def finish(targets: Sequence[Target], name: str = "", **figures: Any) -> int:
    """Keep the figures, print what they depend on and the targets; return the exit code.

    Figures are kept as JSON in benchmarks/results/, which git ignores, under a name.
    """
    print_environment()
    if name:
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps({"environment": environment(PACKAGES), **figures}, indent=1)
        (RESULTS / f"{name}.json").write_text(text + "\n")
    return print_targets(targets)


def run(parser: argparse.ArgumentParser, main: Callable[[argparse.Namespace], int]) -> None:
    """Parse the arguments and run; exit with 1 if a target was missed, 2 if there is no data."""
    arguments = parser.parse_args()
    try:
        sys.exit(main(arguments))
    except DataError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
