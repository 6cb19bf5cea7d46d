"""Measure CPU seconds for many shapes of rows, beside common alternatives.

The shapes are files from the command line and in Python, columns of texts, wide rows, few rows,
many rows, sparse rows, rows with missing values and values outside, columns with relations,
histories, explanations, many releases, and a first fit. Rows that are scored were not fitted,
unless the shape names fitted ones. The contestants of a shape take turns in one process, or in
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

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.cli.merge import merge
from hushtable.data import read
from hushtable.data.quality import understood_with_quality
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


def normal_rows(n: int, d: int, seed: int) -> np.ndarray:
    """Return normal numbers (n, d); those of another seed are new rows."""
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def new_rows(scale: int, rounds: int) -> Iterator[Ratio]:
    """Compare the score of new rows with that of fitted ones, and with IsolationForest's."""
    for n, d, most, least in ((10**5, 10, 1.3, 33), (20_000, 100, 1.4, 15), (5_000, 1_000, 1.5, 9)):
        X, new = (normal_rows(n // scale, d, seed) for seed in (0, 1))
        ours = HushTable(random_state=0).fit(X)
        forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
        found = cpu_in_turns(
            {
                "new": partial(ours.score_samples, new),
                "fitted": partial(ours.score_samples, X),
                "forest": partial(forest.score_samples, new),
            },
            3 * rounds,
        )
        shape = f"{n // scale:,} x {d:,}"
        yield Ratio(
            f"{shape}: score of new rows / of fitted", found["new"], found["fitted"], "<=", most
        )
        yield Ratio(f"{shape}: IsolationForest / score", found["new"], found["forest"], ">=", least)


def compared(shape: str, bound: float, rounds: int, ours: Do, other: Do) -> Ratio:
    """Compare two kinds of work of ours."""
    found = cpu_in_turns({"ours": ours, "other": other}, rounds)
    return Ratio(shape, found["ours"], found["other"], "<=", bound)


def odd_values(scale: int, rounds: int) -> Iterator[Ratio]:
    """Compare rows with missing values, with values outside, and with rising columns."""
    X, new = (normal_rows(20_000 // scale, 100, seed) for seed in (0, 1))
    gaps = [np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, of) for of in (X, new)]
    gaps = [rows.astype(np.float32) for rows in gaps]
    fit = [partial(HushTable(random_state=0).fit, rows) for rows in (gaps[0], X)]
    yield compared("fit with 10% missing / none", 1.5, 3 * rounds, *fit)
    score = [partial(f().score_samples, rows) for f, rows in zip(fit, (gaps[1], new), strict=True)]
    yield compared("score with 10% missing / none", 2.3, 3 * rounds, *score)
    rising = partial(HushTable(random_state=0).fit, np.sort(X, axis=0))
    yield compared("fit of rising columns / of the same shuffled", 2.0, 3 * rounds, rising, fit[1])
    X = normal_rows(10_000 // scale, 1_024, 0)
    count = []
    for end in (3.0, 9.0):
        schema = Schema(Feature.numeric(f"x{j}", low=-end, high=end) for j in range(1_024))
        count.append(partial(Sketch.from_data, Plan.draw(schema, random_state=0), X))
    yield compared("count under ranges with values outside / none", 1.8, 3 * rounds, *count)
    yield beside_forest(
        normal_rows(20_000 // scale, 500, 0), f"{20_000 // scale:,} x 500", 1.5, rounds
    )


def kinds_of_fit(rows: int, rounds: int) -> Iterator[Ratio]:
    """Compare relations, small groups and released counts with plain fits and scores."""
    X = normal_rows(rows, 10, 0)
    X[:, 1] += X[:, 0]
    plain = HushTable(random_state=0).fit(X)
    related = HushTable(random_state=0, relations=True)
    shape = "relations=True: {} / of plain"
    fits = partial(related.fit, X), partial(HushTable(random_state=0).fit, X)
    yield compared(shape.format("fit"), 2.0, 3 * rounds, *fits)
    new = normal_rows(rows, 10, 1)
    score = partial(plain.score_samples, new)
    yield compared(
        shape.format("score"), 1.7, 3 * rounds, partial(related.score_samples, new), score
    )
    schema = Schema(Feature.numeric(f"x{j}", low=-9, high=9) for j in range(10))
    plan = Plan.draw(schema, random_state=0, n_tables=200, n_cells=64)
    released = HushTable.from_counts(Sketch.from_data(plan, X).release(epsilon=1.0))
    of_release = partial(released.score_samples, new)
    # A release of many rows has twice as many tables, and each table costs the same.
    yield compared(
        "score by a release of 200 tables / 100 tables", 1.4, 3 * rounds, of_release, score
    )
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    frame["g"] = np.random.default_rng(2).integers(0, max(2, rows // 20), rows).astype(str)
    frame["g"] = "group " + frame["g"]
    groups = [partial(HushTable(random_state=0, context=of).fit, frame) for of in ("g", None)]
    yield compared("fit in small groups / of the same columns", 2.5, rounds, *groups)


def one_row(rounds: int) -> Iterator[Ratio]:
    """Compare the score of one row of six numbers and four texts with that of ten numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((5_000, 6)), columns=[*"abcdef"])
    for name in "wxyz":
        frame[name] = np.array([f"kind {k}" for k in range(10)])[rng.integers(0, 10, len(frame))]
    mixed = HushTable(random_state=0).fit(frame)
    numbers = HushTable(random_state=0).fit(X := normal_rows(5_000, 10, 0))
    row = frame[:1]
    for kind, one, most in (("pandas", row, 4.0), ("Arrow", pa.Table.from_pandas(row), 2.0)):
        yield compared(
            f"one mixed row of {kind} / of numbers in NumPy", most, 200 * rounds,
            partial(mixed.score_samples, one), partial(numbers.score_samples, X[:1]),
        )  # fmt: skip


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
    scoring = {}
    for d in (1_024, 1_000):
        X, new = (normal_rows(20_000 // scale, d, seed) for seed in (0, 1))
        scoring[f"{d:,}"] = partial(HushTable(random_state=0).fit(X).score_samples, new)
    found = cpu_in_turns(scoring, 3 * rounds)
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
    X, new = (
        scipy.sparse.random(n, d, density=0.002, random_state=seed, format="csr", dtype=np.float32)
        for seed in (0, 1)
    )
    yield beside_forest(X, f"sparse {n:,} x {d:,}", 1.0, rounds)
    ours = HushTable(random_state=0).fit(X)
    forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
    found = cpu_in_turns(
        {"ours": lambda: ours.score_samples(new), "forest": lambda: forest.score_samples(new)},
        rounds,
    )
    shape = f"sparse {n:,} x {d:,}: IsolationForest / score"
    yield Ratio(shape, found["ours"], found["forest"], ">=", 2.0)


def histories(rows: int, rounds: int) -> Iterator[Ratio]:
    """Compare long histories of two entities with the same rows without their history."""
    rng = np.random.default_rng(0)
    X, seconds = rng.standard_normal((rows, 10)), np.sort(rng.integers(0, 10**8, rows))
    plain = pa.table({f"x{j}": X[:, j] for j in range(10)})
    table = plain.append_column("who", pa.array(rng.integers(0, 2, rows)))
    table = table.append_column("at", pa.array(seconds.astype("datetime64[s]")))
    ours, others = HushTable(random_state=0, entity="who", time="at"), HushTable(random_state=0)
    fits = {"ours": lambda: ours.fit(table), "plain": lambda: others.fit(plain)}
    scores = {
        "ours": lambda: ours.score_samples(table), "plain": lambda: others.score_samples(plain)
    }  # fmt: skip
    for what, do, bound in (("fit", fits, 10.0), ("score", scores, 15.0)):
        found = cpu_in_turns(do, 3 * rounds)
        shape = f"{what} of {rows:,} x 10, histories of two entities / without"
        yield Ratio(shape, found["ours"], found["plain"], "<=", bound)


def explanations(rounds: int) -> Iterator[Ratio]:
    """Compare explaining one row with scoring it."""
    X = np.random.default_rng(0).standard_normal((10_000, 10))
    detector = HushTable(random_state=0).fit(X)
    found = cpu_in_turns(
        {
            "explain": lambda: detector.explain(X[:1]),
            "score": lambda: detector.score_samples(X[:1]),
        },
        50 * rounds,
    )
    yield Ratio("explain of one row / score", found["explain"], found["score"], "<=", 3.0)


def merging(releases: int, rounds: int) -> Iterator[Ratio]:
    """Compare merging many releases by the command with loading them."""
    schema = Schema([Feature.numeric(f"x{j}", low=-6, high=6) for j in range(10)])
    plan = Plan.draw(schema, random_state=0, n_tables=10, n_cells=16)
    X = np.random.default_rng(0).standard_normal((200, 10))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.hush" for number in range(releases)]
        for path in paths:
            Sketch.from_data(plan, X).release(1.0).save(path)
        found = cpu_in_turns(
            {
                "merge": lambda: merge(paths, Path(folder) / "all.hush"),
                "load": lambda: [load(path) for path in paths],
            },
            rounds,
        )
    shape = f"merge of {releases:,} releases / loading them"
    yield Ratio(shape, found["merge"], found["load"], "<=", 1.75)


def checking(rows: int, rounds: int) -> Iterator[Ratio]:
    """Compare what `check` finds in a CSV file with one reading by Arrow."""
    reading = csv.ReadOptions(use_threads=False)
    with csv_of(rows) as path:
        with_ids = path.with_name("ids.csv")
        ids = pa.array([f"patient-{k:08d}" for k in np.random.default_rng(1).permutation(rows)])
        csv.write_csv(csv.read_csv(path).append_column("id", ids), with_ids)
        for file, shape, bound in (
            (path, "check of CSV / one reading by Arrow", 1.5),
            (with_ids, "check of CSV with identifiers / one reading by Arrow", 2.2),
        ):
            found = cpu_in_turns(
                {
                    "ours": lambda file=file: understood_with_quality(read(file), 1),
                    "Arrow": lambda file=file: csv.read_csv(file, read_options=reading),
                },
                rounds,
            )
            yield Ratio(shape, found["ours"], found["Arrow"], "<=", bound)


def shapes(run: CaseRun, *, quick: bool = False) -> None:
    """Compare CPU seconds of all shapes: two minutes; --quick, 20 s."""
    scale, rounds = (QUICK_SCALE, 1) if quick else (1, 3)
    found: list[Ratio] = []
    with threadpool_limits(limits=1):
        for ratios in (
            files(10**6 // scale, rounds), texts(10**5 // scale, rounds), wide(scale, rounds),
            new_rows(scale, rounds), odd_values(scale, rounds), one_row(rounds),
            kinds_of_fit(10**5 // scale, rounds), small(rounds), first(rounds), many(scale, rounds),
            sparse(scale, rounds), histories(20_000 // scale, rounds), explanations(rounds),
            merging(1_000 // scale, rounds), checking(10**6 // scale, rounds),
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
