"""Time from a call to its scores, for few rows, in a process that has scored before.

Everything with one thread, fitted on 5,000 rows of 10 columns. Calls come in bursts, which take
turns. And the time until a new process has a `Scorer`, and its first score from a model's file.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from threadpoolctl import threadpool_limits

import common
from common import Target, timed
from hushtable import HushTable, LSHiTables
from hushtable.scores import Scorer

FITTED, COLUMNS = 5_000, 10
SIZES = (1, 10, 100, 1_000)
PEER = "IsolationForest"
#: Calls in a burst; of the peer, which takes a hundred times as long, two.
CALLS, PEERS_CALLS = 100, 2
BURSTS, QUICK_BURSTS = 51, 7
#: New processes.
STARTS, QUICK_STARTS = 5, 1
#: Microseconds at most, by the rows of a call.
MOST = {1: 50.0, 10: 70.0, 100: 85.0}
MOST_PANDAS, MOST_IMPORT = 150.0, 0.7

START = """
from time import perf_counter
began = perf_counter()
from hushtable.scores import Scorer
imported = perf_counter()
import sys
import numpy as np
Scorer.load(sys.argv[1]).score(np.zeros((1, int(sys.argv[2]))))
print(imported - began, perf_counter() - began, "sklearn" in sys.modules)
"""


@dataclass(frozen=True)
class Latency:
    """Median microseconds of a call on some rows."""

    name: str
    rows_as: str
    rows: int
    microseconds: float


@dataclass(frozen=True)
class Start:
    """Median seconds of a new process until the import is done, and until the first score."""

    imported: float
    scored: float
    sklearn: bool


def as_frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


#: What rows come as, and how they are made of float64.
KINDS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "pandas": as_frame,
}


def median_of_calls(
    scoring: dict[str, Callable[[Any], Any]], X: Any, bursts: int
) -> dict[str, float]:
    """Return the median microseconds of a call of each, over bursts that take turns.

    A call of its own, not a burst's share: few calls meet what else the machine does.
    """
    times: dict[str, list[float]] = {name: [] for name in scoring}
    # The first burst does not count: processor and caches have to warm up.
    for burst in range(1 + bursts):
        for name, score in scoring.items():
            calls = PEERS_CALLS if name == PEER else CALLS
            some = [timed(partial(score, X))[0] for _ in range(calls)]
            times[name] += some if burst else []
    return {name: 1e6 * statistics.median(some) for name, some in times.items()}


def time_all(sizes: Sequence[int] = SIZES, bursts: int = BURSTS) -> list[Latency]:
    rng = np.random.default_rng(0)
    X, found = rng.normal(size=(FITTED, COLUMNS)), []
    for rows_as, made in KINDS.items():
        fitted = {m.__name__: m(random_state=0).fit(made(X)) for m in (HushTable, LSHiTables)}
        scoring = {name: detector.score_samples for name, detector in fitted.items()}
        scoring["Scorer"] = Scorer(fitted["HushTable"].sketch_).score
        scoring[PEER] = IsolationForest(random_state=0).fit(made(X)).score_samples
        for rows in sizes:
            some = made(rng.normal(size=(rows, COLUMNS)))
            medians = median_of_calls(scoring, some, bursts)
            found += [Latency(name, rows_as, rows, one) for name, one in medians.items()]
            common.progress(f"{rows_as}: {rows} rows")
    return found


def time_starts(starts: int = STARTS) -> Start:
    """Start processes that read a model's file and score a row; the first does not count."""
    X = np.random.default_rng(0).normal(size=(FITTED, COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.hush"
        HushTable(random_state=0).fit(X).save(model)
        command = [sys.executable, "-c", START, str(model), str(COLUMNS)]
        said = [subprocess.check_output(command, text=True).split() for _ in range(1 + starts)][1:]
    imported, scored = (statistics.median(float(one[i]) for one in said) for i in (0, 1))
    return Start(imported, scored, any(one[2] == "True" for one in said))


def table(found: Sequence[Latency]) -> str:
    sizes = list(dict.fromkeys(one.rows for one in found))
    times = {(one.name, one.rows_as, one.rows): one.microseconds for one in found}
    cases = dict.fromkeys((one.name, one.rows_as) for one in found)
    lines = [(*case, *(f"{times[*case, rows]:,.0f}" for rows in sizes)) for case in cases]
    header = ("detector", "rows as", *(f"{n:,} row{'s' * (n > 1)}, us" for n in sizes))
    return common.markdown_table(header, lines, text=2)


def targets(found: Sequence[Latency], start: Start) -> list[Target]:
    ours = [one for one in found if one.name == "HushTable"]
    slowest = {
        rows: max(one.microseconds for one in ours if one.rows == rows and one.rows_as != "pandas")
        for rows in MOST
    }
    (frame,) = [one.microseconds for one in ours if (one.rows, one.rows_as) == (1, "pandas")]
    return [
        *(
            Target(f"HushTable, {rows} NumPy rows, us at most", slowest[rows], "<=", most, ".0f")
            for rows, most in MOST.items()
        ),
        Target("HushTable, 1 pandas row, us at most", frame, "<=", MOST_PANDAS, ".0f"),
        Target("import of the Scorer, s at most", start.imported, "<=", MOST_IMPORT, ".2f"),
        Target("the Scorer imports scikit-learn", float(start.sklearn), "<=", 0.0, ".0f"),
    ]


def main(arguments: argparse.Namespace) -> int:
    bursts = QUICK_BURSTS if arguments.quick else BURSTS
    with threadpool_limits(limits=1):
        found = time_all(bursts=bursts)
    start = time_starts(QUICK_STARTS if arguments.quick else STARTS)
    print(f"Medians of {bursts * CALLS} calls ({bursts * PEERS_CALLS} of {PEER}), one thread.\n")
    print(table(found))
    print(
        f"\nA new process has a Scorer after {start.imported:.2f} s, and the first score of a row "
        f"after {start.scored:.2f} s.\n"
    )
    kept = {"latencies": [asdict(one) for one in found], "start": asdict(start)}
    return common.finish(targets(found, start), "latency", **kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls: half a minute")
    common.run(parser, main)
