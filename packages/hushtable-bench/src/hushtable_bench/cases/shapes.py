"""Measure CPU seconds for many shapes of rows, beside common alternatives.

The shapes are files from the command line and in Python, columns of texts, wide rows, few rows,
many rows, sparse rows, and a first fit. The contestants of a shape take turns in one process, or in
separate processes if the start is part of the measure. Figures are ratios of medians of CPU
seconds, which the machine's other work changes little.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse
from pyarrow import csv
from pyod.models.ecod import ECOD
from sklearn.ensemble import IsolationForest
from threadpoolctl import threadpool_limits

from hushtable import HushTable
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, progress

Do = Callable[[], object]
#: The divisor of rows with --quick.
QUICK_SCALE = 20

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


@dataclass(frozen=True)
class Ratio:
    """CPU seconds of two contestants, and the target for their ratio.

    ``ratio`` is ours over the other's, or the inverse if ``needs`` is ``>=``.
    """

    shape: str
    ours: float
    others: float
    needs: str
    bound: float

    @property
    def ratio(self) -> float:
        """The ratio that the target is for."""
        return self.others / self.ours if self.needs == ">=" else self.ours / self.others


def cpu_in_turns(contestants: dict[str, Do], rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each, in turns, after one round that does not count."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, do in contestants.items():
            begin = time.process_time()
            do()
            found[name].append(time.process_time() - begin)
    return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}


def of_process(*command: object, cwd: Path | None = None, **variables: str) -> float:
    """Return the CPU seconds of a new process of Python, with cached bytecode."""
    there = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | variables
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        list(map(str, (sys.executable, *command))), check=True, capture_output=True,
        env=there | {"OMP_NUM_THREADS": "1"}, cwd=cwd,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def csv_of(rows: int) -> Iterator[Path]:
    """Write normal numbers, 20 columns, to a CSV file."""
    X = np.random.default_rng(0).standard_normal((rows, 20), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        csv.write_csv(pa.table({f"x{j}": X[:, j] for j in range(20)}), path)
        yield path


def files(rows: int, rounds: int) -> Iterator[Ratio]:
    """Compare a CSV file by commands with pandas and IsolationForest, and in Python with Arrow."""
    with csv_of(rows) as path:
        model, scores = path.with_name("m.hush"), path.with_name("s.csv")
        one = "--threads", 1
        command = "-m", "hushtable.cli"

        def commands() -> float:
            fit = of_process(*command, "fit", path, "-o", model, *one)
            return fit + of_process(*command, "score", path, "--model", model, "-o", scores, *one)

        both = [
            (commands(), of_process("-c", BESIDE, path, path.with_name("o.csv")))
            for _ in range(rounds + 1)
        ][1:]
        ours, others = (statistics.median(each) for each in zip(*both, strict=True))
        yield Ratio("CSV by commands / pandas and IsolationForest", ours, others, "<=", 0.6)
        reading = csv.ReadOptions(use_threads=False)
        found = cpu_in_turns(
            {
                "ours": lambda: HushTable(random_state=0).fit(path),
                "Arrow": lambda: csv.read_csv(path, read_options=reading),
            },
            rounds,
        )
        yield Ratio("fit of CSV / one reading by Arrow", found["ours"], found["Arrow"], "<=", 2.0)


def texts(rows: int, rounds: int) -> Iterator[Ratio]:
    """Compare ten columns of 30 texts with the same as whole numbers."""
    codes = np.random.default_rng(0).integers(0, 30, (rows, 10))
    words = np.array([f"kind {k}" for k in range(30)], object)
    numbers = pd.DataFrame({f"c{j}": codes[:, j] for j in range(10)})
    frame = pd.DataFrame({f"c{j}": words[codes[:, j]] for j in range(10)}, dtype=object)
    both = {
        "objects of pandas": (frame, numbers),
        "str of pandas": (frame.astype("str"), numbers),
        "Arrow": (pa.Table.from_pandas(frame), pa.Table.from_pandas(numbers)),
    }
    for kind, tables in both.items():
        fits = [partial(HushTable(random_state=0).fit, table) for table in tables]
        found = cpu_in_turns(dict(zip(("texts", "numbers"), fits, strict=True)), 3 * rounds)
        words_of = f"fit of ten columns of texts ({kind}) / of whole numbers"
        yield Ratio(words_of, found["texts"], found["numbers"], "<=", 2.0)


def beside_forest(rows: Any, shape: str, bound: float, rounds: int, **settings: Any) -> Ratio:
    """Compare `fit` with IsolationForest's."""
    found = cpu_in_turns(
        {
            "ours": lambda: HushTable(random_state=0, **settings).fit(rows),
            "forest": lambda: IsolationForest(random_state=0, n_jobs=1).fit(rows),
        },
        rounds,
    )
    return Ratio(f"{shape}: IsolationForest / fit", found["ours"], found["forest"], ">=", bound)


def wide(scale: int, rounds: int) -> Iterator[Ratio]:
    """Compare wide rows: with IsolationForest, and a length that is a power of two with another."""
    rng = np.random.default_rng(0)
    for n, d, bound in ((10_000, 1_000, 1.5), (100_000, 1_000, 0.5), (1_000, 5_000, 0.8)):
        X = rng.standard_normal((n // scale, d), dtype=np.float32)
        yield beside_forest(X, f"{n // scale:,} x {d:,}", bound, rounds)
    a, b = (rng.standard_normal((20_000 // scale, d), dtype=np.float32) for d in (1_024, 1_000))
    detectors = [HushTable(random_state=0).fit(X) for X in (a, b)]
    found = cpu_in_turns(
        {
            "1,024": partial(detectors[0].score_samples, a),
            "1,000": partial(detectors[1].score_samples, b),
        },
        3 * rounds,
    )
    # When each column was read by itself, 1,024 columns took 3.4 times as long per value.
    shape = "score of rows of 1,024 columns / of 1,000"
    yield Ratio(shape, found["1,024"], found["1,000"], "<=", 1.15)


def small(rounds: int) -> Iterator[Ratio]:
    """Compare small sets with ECOD, which needs no time to fit."""
    for n, bound in ((100, 0.5), (1_000, 0.5)):
        X = np.random.default_rng(0).standard_normal((n, 10), dtype=np.float32)
        found = cpu_in_turns(
            {
                "ours": lambda X=X: HushTable(random_state=0).fit(X),
                "ECOD": lambda X=X: ECOD().fit(X),
            },
            20 * rounds,
        )
        yield Ratio(f"{n:,} x 10: ECOD / fit", found["ours"], found["ECOD"], ">=", bound)


def first(rounds: int) -> Iterator[Ratio]:
    """Compare a first fit, scores, and reasons of one row, without built kernels, to a second."""
    found = []
    for _ in range(2 * rounds + 1):
        with tempfile.TemporaryDirectory() as empty:
            hidden = {"NUMBA_CACHE_DIR": empty, "HUSHTABLE_JIT": "0"}
            found.append(of_process("-c", FIRST_FIT_UNBUILT, empty, **hidden))
    shape = "1,000 x 10: first fit without built kernels / one second"
    yield Ratio(shape, statistics.median(found[1:]), 1.0, "<=", 1.5)


def many(scale: int, rounds: int) -> Iterator[Ratio]:
    """Compare many rows with IsolationForest, counting all rows and a sample."""
    X = np.random.default_rng(0).standard_normal((10**6 // scale, 100), dtype=np.float32)
    yield beside_forest(X, f"{len(X):,} x 100", 1.0, rounds)
    shape = f"{len(X):,} x 100, max_rows=131,072"
    yield beside_forest(X, shape, 3.0, rounds, max_rows=1 << 17)


def sparse(scale: int, rounds: int) -> Iterator[Ratio]:
    """Compare sparse rows with IsolationForest."""
    n, d = 5_000 // scale, 10_000
    X = scipy.sparse.random(n, d, density=0.002, random_state=0, format="csr", dtype=np.float32)
    yield beside_forest(X, f"sparse {n:,} x {d:,}", 1.0, rounds)
    ours = HushTable(random_state=0).fit(X)
    forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
    found = cpu_in_turns(
        {"ours": lambda: ours.score_samples(X), "forest": lambda: forest.score_samples(X)}, rounds
    )
    shape = f"sparse {n:,} x {d:,}: IsolationForest / score"
    yield Ratio(shape, found["ours"], found["forest"], ">=", 2.0)


def shapes(run: CaseRun, *, quick: bool = False) -> None:
    """Compare CPU seconds of all shapes: two minutes; --quick, 20 s."""
    scale, rounds = (QUICK_SCALE, 1) if quick else (1, 3)
    found: list[Ratio] = []
    with threadpool_limits(limits=1):
        for ratios in (
            files(10**6 // scale, rounds), texts(10**5 // scale, rounds), wide(scale, rounds),
            small(rounds), first(rounds), many(scale, rounds), sparse(scale, rounds),
        ):  # fmt: skip
            for ratio in ratios:
                progress(f"{ratio.shape}: {ratio.ratio:.2f}")
                found.append(ratio)
    run.table(
        {
            "shape": "{t.shape}", "ours, CPU s": "{t.ours:.4f}", "other, CPU s": "{t.others:.4f}",
            "ratio": "{t.ratio:.2f}", "target": "{t.needs} {t.bound:.2f}",
        }, found,
    )  # fmt: skip
    for ratio in found if not quick else ():
        run.hold(ratio.shape, ratio.ratio, ratio.needs, ratio.bound, ".2f")
    run.figures["ratios"] = found


# --- starts ---------------------------------------------------------------------------------------

START_ROWS, START_ROUNDS = 1_000, 9
FIRST_FIT = """
import numpy as np
from hushtable import HushTable
X = np.random.default_rng(0).normal(size=(2000, 10))
HushTable(random_state=0).fit(X).score_samples(X)
"""
#: Python code or a command of ours, and the most CPU seconds.
STARTS: dict[str, tuple[str, float | None]] = {
    "hushtable score": ("score rows.csv --model model.hush -o scores.csv", 0.45),
    "hushtable fit": ("fit rows.csv -o fitted.hush", 0.9),
    "hushtable score --help": ("score --help", None),
    "hushtable fit --help": ("fit --help", None),
    "hushtable --help": ("--help", None),
    "first fit and scores in Python": (FIRST_FIT, 0.8),
    "from hushtable import Plan, Sketch": ("from hushtable import Plan, Sketch", None),
    "import hushtable": ("import hushtable", 0.2),
    "import numpy, pyarrow.compute": ("import numpy, pyarrow.compute", None),
}


def time_starts(rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each start, which take turns; the first does not count."""
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        X = np.random.default_rng(0).normal(size=(START_ROWS, 10))
        rows = pd.DataFrame({f"x{j}": column for j, column in enumerate(X.T)})
        rows.to_csv(folder / "rows.csv", index=False)
        HushTable(random_state=0).fit(rows).save(folder / "model.hush")
        for number in range(1 + rounds):
            progress(f"round {number} of {rounds}")
            for name, (words, _) in STARTS.items():
                command = (
                    ("-c", words) if "import" in words else ("-m", "hushtable.cli", *words.split())
                )
                seconds = of_process(*command, cwd=folder)
                times[name] += [seconds] if number else []
    return {name: statistics.median(some) for name, some in times.items()}


def starts(run: CaseRun, *, quick: bool = False) -> None:
    """Measure CPU seconds of new processes: a minute; --quick, ten seconds."""
    found = time_starts(1 if quick else START_ROUNDS)
    run.say(ResultTable(("start", "CPU, s"), [(k, f"{v:.2f}") for k, v in found.items()]))
    for name, (_, most) in STARTS.items():
        if most is not None:
            run.hold(f"{name}, CPU s at most", found[name], "<=", most, ".2f")
    run.figures["starts"] = found
