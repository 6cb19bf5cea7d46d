"""What the benchmarks share: labelled data, rows to time, tables, and targets with a verdict."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
VARIABLE = "HUSHTABLE_DATA"


class BadData(Exception):
    """Data that a benchmark cannot use; the message says what to do."""


# --- labelled data --------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledSet:
    """Rows with labels that the detectors do not see."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]

    def distinct(self) -> "LabelledSet":
        """Leave duplicate rows out, as the paper does."""
        _, first = np.unique(np.column_stack([self.X, self.y]), axis=0, return_index=True)
        return self._take(np.sort(first))

    def at_most(self, rows: int, seed: int = 0) -> "LabelledSet":
        """Keep a random subset where there are more rows."""
        if len(self.X) <= rows:
            return self
        chosen = np.random.default_rng(seed).choice(len(self.X), rows, replace=False)
        return self._take(np.sort(chosen))

    def _take(self, rows: NDArray[np.intp]) -> "LabelledSet":
        return LabelledSet(self.name, self.X[rows], self.y[rows])


def data_folder(given: Path | None = None) -> Path:
    """Return the folder given, or the variable's, or the one that lies beside the clone."""
    folder = given or Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        raise BadData(
            f"{folder} is not a folder: name a folder of .npz files (X and y in each) with --data "
            f"or in {VARIABLE}"
        )
    return folder


def find_sets(folder: Path) -> list[Path]:
    """Return the .npz files of a folder, by name."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise BadData(f"{folder} holds no .npz file: needs X (n, d) and y (n,) in each")
    return files


def load(path: Path) -> LabelledSet:
    """Read X (n, d) and y (n,), 1 for an outlier, from a .npz file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            X, y = np.ascontiguousarray(arrays["X"], np.float64), arrays["y"] != 0
    except FileNotFoundError:
        raise BadData(f"{path} is missing") from None
    except (KeyError, OSError, ValueError) as error:
        raise BadData(f"{path}: needs arrays X and y of numbers ({error})") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or y.all() or not y.any():
        raise BadData(f"{path}: needs X (n, d) and y (n,) with both labels in it")
    return LabelledSet(path.stem, X, y)


# --- accuracy -------------------------------------------------------------------------------

#: A detector's name in tables, and how to make one from a seed.
Detectors = dict[str, Callable[[int], Any]]


@dataclass
class Outcome:
    """How several detectors do on one set: figures for each detector and seed.

    ``flagged`` is the share of the rows below each detector's own threshold.
    """

    name: str
    rows: int
    columns: int
    outliers: int
    auc: dict[str, list[float]] = field(default_factory=dict)
    ap: dict[str, list[float]] = field(default_factory=dict)
    flagged: dict[str, list[float]] = field(default_factory=dict)


def evaluate(
    detectors: Detectors, sets: Iterable[LabelledSet], seeds: Sequence[int]
) -> list[Outcome]:
    """Fit and score every set with every detector and seed; the labels only judge."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    outcomes = []
    for data in sets:
        outcome = Outcome(data.name, *data.X.shape, int(data.y.sum()))
        for name, make in detectors.items():
            fitted = [make(seed).fit(data.X) for seed in seeds]
            scores = [detector.score_samples(data.X) for detector in fitted]
            outcome.auc[name] = [float(roc_auc_score(data.y, -s)) for s in scores]
            outcome.ap[name] = [float(average_precision_score(data.y, -s)) for s in scores]
            outcome.flagged[name] = [
                float((s < detector.offset_).mean())
                for s, detector in zip(scores, fitted, strict=True)
            ]
        outcomes.append(outcome)
        progress(f"{data.name}: {outcome.rows} x {outcome.columns}")
    return outcomes


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


# --- output ---------------------------------------------------------------------------------


def progress(message: str) -> None:
    """Say on stderr how far the run is; stdout is for Markdown that can be pasted."""
    print(message, file=sys.stderr, flush=True)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> str:
    """Lay out a Markdown table; the first ``text`` columns are left-aligned, the rest right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligned = [
        [cell.ljust(w) if j < text else cell.rjust(w) for j, (cell, w) in enumerate(row)]
        for row in (zip(row, widths, strict=True) for row in cells)
    ]
    rule = ["-" * w if j < text else "-" * (w - 1) + ":" for j, w in enumerate(widths)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (aligned[0], rule, *aligned[1:]))


@dataclass(frozen=True)
class Target:
    """A figure that the project promises, and what this run measured.

    ``needs`` is ``>=``, ``>`` or ``<=``; ``form`` is the format of both figures.
    """

    claim: str
    measured: float
    needs: str
    bound: float
    form: str = ".4f"

    @property
    def met(self) -> bool:
        compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal}[self.needs]
        return bool(compare(self.measured, self.bound))


def print_targets(targets: Sequence[Target]) -> int:
    """Print each target with its verdict; return the exit code: 1 if one was missed."""
    rows = [
        (t.claim, f"{t.measured:{t.form}}", f"{t.needs} {t.bound:{t.form}}", _verdict(t.met))
        for t in targets
    ]
    print("\n" + markdown_table(("Must show", "measured", "target", "verdict"), rows))
    return 0 if all(target.met for target in targets) else 1


def _verdict(met: bool) -> str:
    return "pass" if met else "FAIL"


def environment() -> dict[str, str]:
    """Return what the figures depend on besides the code."""
    packages = ("hushtable", "numba", "numpy", "scikit-learn", "pyod")
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def print_environment() -> None:
    """Print what the figures depend on besides the code, in one line."""
    print("\nMeasured with " + ", ".join(f"{k} {v}" for k, v in environment().items()) + ".")


def write_results(name: str, content: dict[str, Any]) -> None:
    """Keep the figures as JSON in benchmarks/results/, which git ignores."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"environment": environment(), **content}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def add_accuracy_options(parser: argparse.ArgumentParser, seeds: int) -> None:
    """Add what the two accuracy benchmarks are asked alike."""
    parser.add_argument("--data", type=Path, help=f"folder of .npz files (default: ${VARIABLE})")
    parser.add_argument("--seeds", type=int, default=seeds, help=f"seeds (default: {seeds})")


def run(parser: argparse.ArgumentParser, main: Callable[[argparse.Namespace], int]) -> None:
    """Parse the arguments and run; exit with 1 if a target was missed, 2 if there is no data."""
    arguments = parser.parse_args()
    try:
        sys.exit(main(arguments))
    except BadData as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
