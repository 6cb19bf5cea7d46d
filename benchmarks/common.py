"""What the benchmark scripts share: rows to time, a clock, results.

Labelled sets, tables and targets are those of `hushtable.bench`.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.bench import tables
from hushtable.bench.data import VARIABLE, LabelledSet, load
from hushtable.bench.data import data_folder as named_folder
from hushtable.bench.tables import Target, environment, markdown_table, print_targets
from hushtable.errors import DataError

__all__ = [
    "VARIABLE",
    "LabelledSet",
    "Rows",
    "Target",
    "data_folder",
    "load",
    "markdown_table",
    "print_environment",
    "print_targets",
    "progress",
    "run",
    "seconds",
    "write_results",
]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
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


def seconds(do: Callable[[], object], repeats: int, uncounted: int = 1) -> float:
    """Return the median of several runs, after some that do not count."""
    times = []
    for run in range(uncounted + repeats):
        start = time.perf_counter()
        do()
        if run >= uncounted:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


# --- output ---------------------------------------------------------------------------------


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)


def write_results(name: str, content: dict[str, Any]) -> None:
    """Keep the figures as JSON in benchmarks/results/, which git ignores."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"environment": environment(PACKAGES), **content}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def run(parser: argparse.ArgumentParser, main: Callable[[argparse.Namespace], int]) -> None:
    """Parse the arguments and run; exit with 1 if a target was missed, 2 if there is no data."""
    arguments = parser.parse_args()
    try:
        sys.exit(main(arguments))
    except DataError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
