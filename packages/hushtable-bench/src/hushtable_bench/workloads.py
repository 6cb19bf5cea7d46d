"""The entries of the case `speed`: what is set up, what is called, and whom it is compared with.

A set-up takes the divisor of its sizes and a stack of what is to be closed, and returns calls by
the names of the contestants. A contestant whose library is missing is left out of the calls; a
set-up that needs more than a library raises `Absent`. Every call that scores has rows that were not
fitted, unless its name states it.
"""

import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.loda import LODA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch
from hushtable.data import read
from hushtable.data.quality import understood_with_quality
from hushtable.errors import DataError
from hushtable.scores import Scorer
from hushtable_bench.data import data_folder
from hushtable_bench.data import load as load_set

Call: TypeAlias = Callable[[], object]
Calls: TypeAlias = Mapping[str, Call]
Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"

OURS, PEER = "HushTable", "IsolationForest"


class Absent(Exception):
    """An entry that cannot be measured here, and the reason."""


class RatioBound(NamedTuple):
    """A ratio of two contestants, and its limit, if it has one.

    The ratio is ours over the other's; if ``faster``, it is the other's over ours, and the limit is
    the least. Without another contestant, the limit is for the figure of ours, in the unit.
    """

    ours: str
    other: str | None
    limit: float | None = None
    faster: bool = False

    @property
    def needs(self) -> str:
        """The relation between the ratio and its limit."""
        return ">=" if self.faster else "<="


def within(ours: str, other: str | None, limit: float | None = None) -> RatioBound:
    """Return the bound for how many times as long as another contestant ours may take."""
    return RatioBound(ours, other, limit)


def faster(ours: str, other: str, limit: float | None = None) -> RatioBound:
    """Return the bound for how many times as fast as another contestant ours is."""
    return RatioBound(ours, other, limit, faster=True)


class Task(NamedTuple):
    """One comparison of the case."""

    name: str
    set_up: Callable[[int, ExitStack], Calls]
    bounds: Sequence[RatioBound]
    #: Calls in a turn: more of short calls.
    times: int = 1
    unit: str = "s"


# --- rows -----------------------------------------------------------------------------------------


def normal_rows(n: int, d: int, seed: int = 0) -> Rows:
    """Return normal numbers (n, d); those of another seed are new rows.

    Rows are float32 in C order: the one format that scikit-learn's trees read without converting
    it.
    """
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def scaled(n: int, scale: int) -> int:
    """Return a number of rows by the divisor, as many as a fit needs at least."""
    return max(20, n // scale)


def numeric_schema(columns: int, end: float, named: bool = True) -> Schema:
    """Return a schema of numeric columns with the ranges -end to end."""
    features = (Feature.numeric(f"x{j}", low=-end, high=end) for j in range(columns))
    return Schema(tuple(features), named=named)


def folder_of(stack: ExitStack) -> Path:
    """Return a folder that is removed with the stack."""
    return Path(stack.enter_context(TemporaryDirectory()))


def csv_of(rows: int, folder: Path) -> Path:
    """Write normal numbers, 20 columns, to a CSV file."""
    X = normal_rows(rows, 20)
    csv.write_csv(pa.table({f"x{j}": X[:, j] for j in range(20)}), folder / "rows.csv")
    return folder / "rows.csv"


#: What limits a command to one of the cores that this process may use.
_ONE_CORE = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if shutil.which("taskset") else []


def python(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """Run a new process of Python with cached bytecode; return what it prints.

    It has one thread; without taskset, our commands may use more.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [*_ONE_CORE, sys.executable, *map(str, command)],
        check=True, capture_output=True, text=True, cwd=cwd,
        env=environment | variables | {"OMP_NUM_THREADS": "1"},
    ).stdout  # fmt: skip


# --- files, and new processes ---------------------------------------------------------------------

#: The same work with pandas and IsolationForest: read, fit, score, and write a file.
BESIDE = """
import sys
import pandas
from sklearn.ensemble import IsolationForest

rows = pandas.read_csv(sys.argv[1])
forest = IsolationForest(random_state=0, n_jobs=1).fit(rows)
scores = -forest.score_samples(rows)
found = {"row": range(len(rows)), "score": scores, "outlier": scores > -forest.offset_}
pandas.DataFrame(found).to_csv(sys.argv[2], index=False)
"""

#: A first fit with the built kernels hidden, and nothing compiled before.
FIRST_FIT_UNBUILT = """
import pathlib, sys
import numpy as np
from hushtable import HushTable
from hushtable.kernels import _built

_built.FOLDER = pathlib.Path(sys.argv[1])
X = np.random.default_rng(0).standard_normal((1000, 10))
detector = HushTable(random_state=0).fit(X)
detector.score_samples(X)
detector.explain(X[:1])
"""

FIRST_FIT = """
import numpy as np
from hushtable import HushTable
X = np.random.default_rng(0).normal(size=(2000, 10))
HushTable(random_state=0).fit(X).score_samples(X)
"""


def csv_file(scale: int, stack: ExitStack) -> Calls:
    """Fit and score a CSV file by commands and in Python, and check it."""
    folder = folder_of(stack)
    path, model = csv_of(10**6 // scale, folder), folder / "m.hush"

    def commands() -> None:
        python("-m", "hushtable.cli", "fit", path, "-o", model)
        scores = folder / "s.csv"
        python("-m", "hushtable.cli", "score", path, "--model", model, "-o", scores)

    return {
        "fit and score by commands": commands,
        "pandas and IsolationForest": partial(python, "-c", BESIDE, path, folder / "o.csv"),
        "fit in Python": lambda: HushTable(random_state=0).fit(path),
        "check": lambda: understood_with_quality(read(path), 1),
        "one reading by Arrow": arrow_reading(path),
    }


def arrow_reading(path: Path) -> Call:
    """Return a call that reads a CSV file with one thread."""
    return lambda: csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False))


def starts(scale: int, stack: ExitStack) -> Calls:
    """Start processes that score, fit, or only import."""
    folder, command = folder_of(stack), ("-m", "hushtable.cli")
    rows = pd.DataFrame(normal_rows(1_000, 10).astype(float), columns=[f"x{j}" for j in range(10)])
    rows.to_csv(folder / "rows.csv", index=False)
    HushTable(random_state=0).fit(rows).save(folder / "model.hush")
    run = partial(python, cwd=folder)
    score = "score", "rows.csv", "--model", "model.hush", "-o", "s.csv"

    def unbuilt() -> None:
        with TemporaryDirectory() as empty:
            hidden = {"NUMBA_CACHE_DIR": empty, "HUSHTABLE_JIT": "0"}
            run("-c", FIRST_FIT_UNBUILT, empty, **hidden)

    return {
        "hushtable score": partial(run, *command, *score),
        "hushtable fit": partial(run, *command, "fit", "rows.csv", "-o", "fitted.hush"),
        "hushtable score --help": partial(run, *command, "score", "--help"),
        "first fit and scores in Python": partial(run, "-c", FIRST_FIT),
        "the same without built kernels": unbuilt,
        "import hushtable": partial(run, "-c", "import hushtable"),
        "import numpy, pyarrow.compute": partial(run, "-c", "import numpy, pyarrow.compute"),
    }


# --- detectors beside one another -----------------------------------------------------------------


def peers() -> dict[str, Callable[[], Any]]:
    """Return how to make the other detectors that are installed."""
    calls: dict[str, Callable[[], Any]] = {
        PEER: lambda: IsolationForest(random_state=0, n_jobs=1),
        "HBOS": HBOS,
        "ECOD": lambda: ECOD(n_jobs=1),
        "LODA": lambda: LODA(random_state=0),
    }
    # As many rows per tree as in the other forests: with isotree's own default, up to 10,000, it
    # takes seven times as long.
    more = {
        "coniferest": ("coniferest.isoforest", {"n_trees": 100, "random_seed": 0, "n_jobs": 1}),
        "isotree": (
            "isotree",
            {"ntrees": 100, "sample_size": 256, "random_seed": 1, "nthreads": 1},
        ),
    }
    for name, (module, settings) in more.items():
        try:
            make = import_module(module).IsolationForest
        except ImportError:  # the runner names who is missing
            continue
        calls[name] = partial(make, **settings)
    return calls


#: Our detectors: two passes, one for comparison, and novelty detection.
OWN: dict[str, Callable[[], Any]] = {
    OURS: lambda: HushTable(random_state=0, n_jobs=1),
    "one pass": lambda: HushTable(passes=1, random_state=0, n_jobs=1),
    "novelty": lambda: HushTable(novelty=True, random_state=0, n_jobs=1),
    "LSHiTables": lambda: LSHiTables(random_state=0, n_jobs=1),
}


def detectors(X: Rows, new: Rows, names: Iterable[str]) -> Calls:
    """Return the fit of each detector, and its scores of as many new rows."""
    calls: dict[str, Call] = {}
    for name, make in (OWN | peers()).items():
        if name in names:
            # These read float64, and would convert other rows in each call.
            kind = np.float64 if name in ("LODA", "coniferest", "isotree") else np.float32
            fitted, scored = (rows.astype(kind, copy=False) for rows in (X, new))
            detector = make().fit(fitted)
            low = getattr(detector, "score_samples", None) or detector.decision_function
            calls[f"{name}, fit"] = lambda make=make, rows=fitted: make().fit(rows)
            calls[f"{name}, score"] = partial(low, scored)
            if name in OWN:
                calls[f"{name}, score fitted rows"] = partial(low, fitted)
    return calls


def cover(names: Sequence[str], scale: int, stack: ExitStack) -> Calls:
    """Fit one half of cover, and score the other."""
    try:
        path = data_folder() / "10_cover.npz"
        X = load_set(path).X.astype(np.float32)[::scale]
    except DataError as error:
        raise Absent(str(error)) from None
    return detectors(X[::2].copy(), X[1::2].copy(), names)


def normal(n: int, d: int, names: Sequence[str], scale: int, stack: ExitStack) -> Calls:
    """Fit normal rows, and score as many new ones."""
    return detectors(normal_rows(scaled(n, scale), d), normal_rows(scaled(n, scale), d, 1), names)


def beside(peers: Iterable[str], limits: Mapping[str, float]) -> list[RatioBound]:
    """Return the bounds of HushTable's fit and score beside peers, and those of named pairs."""
    pairs = [(OURS, what, peer) for what in ("fit", "score") for peer in peers]
    pairs += [("LSHiTables", what, PEER) for what in ("fit", "score")]
    ratios = {f"{name}, {what} / {peer}": (name, what, peer) for name, what, peer in pairs}
    assert {*limits} <= {*ratios}
    return [
        faster(f"{name}, {what}", f"{peer}, {what}", limits.get(key))
        for key, (name, what, peer) in ratios.items()
    ]


#: How two passes compare with one, and novelty detection with two passes.
PASSES = (
    within("HushTable, fit", "one pass, fit", 1.7),
    within("HushTable, score", "one pass, score", 1.03),
    within("novelty, fit", "HushTable, fit"),
    within("novelty, score", "HushTable, score", 1.6),
    within("HushTable, score", "HushTable, score fitted rows"),
)
ALL = (PEER, "HBOS", "ECOD", "LODA", "coniferest", "isotree")
FIELD = (*OWN, *ALL)


def fit_beside_forest(n: int, d: int, scale: int, stack: ExitStack, **settings: Any) -> Calls:
    """Fit the same rows as IsolationForest."""
    rows = normal_rows(scaled(n, scale), d)
    return {
        "fit": lambda: HushTable(random_state=0, **settings).fit(rows),
        PEER: lambda: IsolationForest(random_state=0, n_jobs=1).fit(rows),
    }


def new_rows(n: int, d: int, scale: int, stack: ExitStack) -> Calls:
    """Score new rows and fitted ones, and new ones by IsolationForest."""
    X, new = (normal_rows(scaled(n, scale), d, seed) for seed in (0, 1))
    score = HushTable(random_state=0).fit(X).score_samples
    forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
    return {
        "score": partial(score, new),
        "score of fitted rows": partial(score, X),
        PEER: partial(forest.score_samples, new),
    }


def nearest(scale: int, stack: ExitStack) -> Calls:
    """Score new rows by novelty detection and by five nearest neighbours."""
    X, new = normal_rows(10**5 // scale, 10), normal_rows(4_000 // scale, 10, 1)
    neighbours = NearestNeighbors(n_neighbors=5, n_jobs=1).fit(X)
    return {
        "novelty": partial(OWN["novelty"]().fit(X).score_samples, new),
        "5 nearest neighbours": lambda: neighbours.kneighbors(new)[0].mean(axis=1),
    }


def threads(scale: int, stack: ExitStack) -> Calls:
    """Score with one thread and with two."""
    X, new = (normal_rows(10**6 // scale, 10, seed) for seed in (0, 1))
    one, two = (HushTable(random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    return {
        "score, two threads": partial(two.score_samples, new),
        "one thread": partial(one.score_samples, new),
    }


# --- tasks beside tasks like them -----------------------------------------------------------------


def contexts(scale: int, stack: ExitStack) -> Calls:
    """Fit in contexts."""
    n = 10**5 // scale
    X = normal_rows(n, 10)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    frame["g"] = [f"kind {k}" for k in np.random.default_rng(2).integers(0, 10, n)]

    def of_frame(**settings: Any) -> Call:
        return partial(HushTable(random_state=0, **settings).fit, frame)

    return {
        "one pass of ten categories": of_frame(passes=1),
        "context of categories, fit": of_frame(context="g"),
        "context of a number, fit": of_frame(context="x0"),
        "context of both and a number, fit": of_frame(context=["g", "x0", "x2"]),
    }


# --- few rows -------------------------------------------------------------------------------------


def few_rows(n: int, scale: int, stack: ExitStack) -> Calls:
    """Score few rows in a process that has scored before, after a fit of 5,000 rows."""
    X, new = (normal_rows(k, 10, seed).astype(np.float64) for k, seed in ((5_000, 0), (n, 1)))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    rows = pd.DataFrame(new, columns=frame.columns)
    detector = HushTable(random_state=0).fit(X)
    return {
        "score": partial(detector.score_samples, new),
        "score, float32": partial(
            HushTable(random_state=0).fit(X.astype(np.float32)).score_samples,
            new.astype(np.float32),
        ),
        "score, pandas": partial(HushTable(random_state=0).fit(frame).score_samples, rows),
        "Scorer": partial(Scorer(detector.sketch_).score, new),
        "LSHiTables": partial(LSHiTables(random_state=0).fit(X).score_samples, new),
        "explain": partial(detector.explain, new),
        PEER: partial(IsolationForest(random_state=0, n_jobs=1).fit(X).score_samples, new),
    }


# --- memory ---------------------------------------------------------------------------------------

#: Rows of a block, and its columns.
BLOCK, COLUMNS = 1_000_000, 10


def process_memory(key: str = "VmHWM", status: str | None = None) -> int:
    """Return bytes of this process: at its peak, or ``VmRSS`` now (Linux)."""
    text = Path("/proc/self/status").read_text() if status is None else status
    match = re.search(rf"{key}:\s+(\d+) kB", text)
    assert match is not None
    return int(match[1]) * 1024


def peak_of(load: str, size: int) -> float:
    """Return the peak in MB of a process that runs a load; its result is checked there."""
    code = f"from hushtable_bench import workloads; workloads.{load}({size})"
    return float(python("-c", code).split()[-1])


def loads(load: str, sizes: tuple[int, int], scale: int, stack: ExitStack) -> Calls:
    """Run a load of two sizes, each in a process of its own."""
    if not Path("/proc/self/clear_refs").exists():
        raise Absent("the peak of memory is read from /proc (Linux)")
    small, large = (partial(peak_of, load, max(2, size // scale)) for size in sizes)
    return {"small": small, "large": large}


def stream(size: int) -> None:
    """Count a stream that repeats a block, whose counts are multiples of the block's."""
    block, plan = normal_rows(min(size, BLOCK), COLUMNS), Plan.draw(numeric_schema(COLUMNS, 5))
    times = -(-size // BLOCK)
    batch = pa.RecordBatch.from_arrays([*block.T.copy()], [f"x{j}" for j in range(COLUMNS)])
    rows = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(times)))
    sketch = Sketch.from_data(plan, rows, n_jobs=-1)
    report(np.array_equal(sketch.counts, times * Sketch.from_data(plan, batch).counts))


def fit_and_score(size: int) -> None:
    """Fit and score rows with two threads: the peak beyond the rows themselves."""
    tiny = normal_rows(100, COLUMNS)
    HushTable(random_state=0, n_jobs=2).fit(tiny).score_samples(tiny)  # loads the kernels
    X = normal_rows(size, COLUMNS)
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)  # otherwise fit could reuse freed memory without a trace
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here on
    before = process_memory("VmRSS")
    scores = HushTable(random_state=0, n_jobs=2).fit(X).score_samples(X)
    assert len(scores) == size
    print((process_memory() - before) / 1e6)


def report(exact: bool) -> None:
    """Print the peak of this process in MB, if its result is right."""
    assert exact, "the result is wrong"
    print(process_memory() / 1e6)


# --- the table ------------------------------------------------------------------------------------

ENTRIES: tuple[Task, ...] = (
    Task("cover, 143,024 x 10", partial(cover, FIELD), [
        *beside(ALL, {"HushTable, score / IsolationForest": 24.0,
                      "LSHiTables, score / IsolationForest": 40.0,
                      "LSHiTables, fit / IsolationForest": 5.0}),
        faster("LSHiTables, score", "HBOS, score", 3.0),
        faster("LSHiTables, score", "coniferest, score", 40.0),
        *PASSES,
    ]),
    Task("1,000 x 10", partial(normal, 1_000, 10, FIELD), beside(ALL, {}), times=10),
    Task("10,000 x 10", partial(normal, 10_000, 10, FIELD), beside(ALL, {}), times=3),
    Task("1,000,000 x 100", partial(normal, 10**6, 100, (OURS, "one pass", "LSHiTables", PEER)), [
        *beside((PEER,), {"LSHiTables, fit / IsolationForest": 4.0,
                          "HushTable, score / IsolationForest": 20.0,
                          "HushTable, fit / IsolationForest": 1.0}),
        faster("one pass, fit", f"{PEER}, fit", 1.3),
    ]),
    Task("1,000,000 x 100, max_rows=131,072",
          partial(fit_beside_forest, 10**6, 100, max_rows=1 << 17), [faster("fit", PEER, 3.0)]),
    *(Task(f"{n:,} x {d:,}", partial(fit_beside_forest, n, d), [faster("fit", PEER, least)])
      for n, d, least in ((10_000, 1_000, 1.5), (100_000, 1_000, 0.5), (1_000, 5_000, 0.8),
                          (20_000, 500, 1.5))),
    *(Task(f"{n:,} x {d:,}, new rows", partial(new_rows, n, d), [
        within("score", "score of fitted rows", most), faster("score", PEER, least),
    ], times=3) for n, d, most, least in ((10**5, 10, 1.3, 33), (20_000, 100, 1.4, 15),
                                           (5_000, 1_000, 1.5, 9))),
    Task("4,000 new rows after 100,000 x 10", nearest,
          [faster("novelty", "5 nearest neighbours", 20.0)]),
    Task("1,000,000 x 10", threads, [within("score, two threads", "one thread", 1.15)], times=3),
    Task("CSV, 1,000,000 rows x 20", csv_file, [
        within("fit and score by commands", "pandas and IsolationForest", 0.6),
        within("fit in Python", "one reading by Arrow", 2.0),
        within("check", "one reading by Arrow", 1.5),
    ]),
    Task("100,000 x 10", contexts, [
        *(within(f"context of {what}, fit", "one pass of ten categories", 1.3)
          for what in ("categories", "a number", "both and a number")),
    ], times=2),
    Task("one new row", partial(few_rows, 1), [
        within("score", None, 50.0), within("score, float32", None, 50.0),
        within("score, pandas", None, 150.0), within("Scorer", None), within("LSHiTables", None),
        faster("score", PEER), within("explain", "score", 3.0),
    ], times=100, unit="µs"),
    *(Task(f"{n} new rows", partial(few_rows, n), [
        within("score", None, most), faster("score", PEER),
    ], times=50, unit="µs") for n, most in ((10, 70.0), (100, 85.0), (1_000, None))),
    Task("new process", starts, [
        within("hushtable score", None, 0.45), within("hushtable fit", None, 0.9),
        within("hushtable score --help", None), within("first fit and scores in Python", None, 0.8),
        within("the same without built kernels", None, 1.5), within("import hushtable", None, 0.2),
        within("hushtable score", "import numpy, pyarrow.compute"),
    ]),
    Task("peak memory, 20,000,000 / 2,000,000 rows streamed",
         partial(loads, "stream", (2_000_000, 20_000_000)), [within("large", "small", 1.1)],
         unit="MB"),
    Task("peak memory beyond the rows",
          partial(loads, "fit_and_score", (1_000_000, 10_000_000)),
          [within("large", None, 100.0)], unit="MB"),
)  # fmt: skip


# --- growth ---------------------------------------------------------------------------------------


def grown(n: int = 20_000, d: int = 10, **settings: Any) -> Calls:
    """Fit and score normal rows."""
    X, new = normal_rows(n, d), normal_rows(n, d, 1)
    detector = HushTable(random_state=0, n_jobs=1, **settings).fit(X)
    return {
        "fit": lambda: HushTable(random_state=0, n_jobs=1, **settings).fit(X),
        "score": partial(detector.score_samples, new),
    }


def months(number: int) -> Calls:
    """Fit months of daily readings of 50 entities, and score as many others."""
    days = 30 * number
    at = np.datetime64("2020-01-01") + np.tile(np.arange(days), 50).astype("timedelta64[D]")
    who = np.repeat(np.arange(50), days)

    def readings(seed: int) -> pa.Table:
        X = normal_rows(len(at), 4, seed) + who[:, np.newaxis] % 7
        columns = {f"x{j}": x for j, x in enumerate(X.T.astype(np.float32))}
        return pa.table({"who": who, "at": at.astype("datetime64[s]"), **columns})

    rows, new = readings(0), readings(1)
    settings: dict[str, Any] = {"entity": "who", "time": "at", "random_state": 0, "n_jobs": 1}
    detector = HushTable(**settings).fit(rows)
    return {
        "fit": lambda: HushTable(**settings).fit(rows),
        "score": lambda: detector.score_samples(new),
    }


#: Doubled sizes, and what is fitted and scored at each.
GROWTH: dict[str, tuple[Sequence[int], Callable[[int], Calls]]] = {
    "rows": ((25_000, 50_000, 100_000, 200_000, 400_000), lambda n: grown(n=n)),
    "columns": ((20, 40, 80, 160, 320), lambda d: grown(d=d)),
    "tables": ((50, 100, 200, 400, 800), lambda m: grown(n_tables=m)),
    "months of history": ((3, 6, 12, 24, 48), months),
}
