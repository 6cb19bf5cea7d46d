"""Measure the time from a call to its scores: in a warm process, in a new one, and of a service.

`frames`: few rows from NumPy, pandas, polars, and Arrow, of one type and of several. `latency`: few
rows in a process that has scored before, beside IsolationForest, with one thread and models fitted
to 5,000 rows of 10 columns; calls come in bursts, which take turns. It also measures the time until
a new process has a `Scorer`, and until its first score from a model's file. `first_use`: seconds
from import to scores of 2,000 rows of 10 columns, in processes that take turns: with built kernels,
as in a wheel for this platform (`make kernels` builds them here); with kernels compiled from
sources, without a cache; and with kernels that an earlier process compiled. `starts`: CPU seconds
of new processes that score, fit, or only import, with cached bytecode. `serving`: one row, and the
service of examples/, run by uvicorn in its own process, with many requests at once.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from threadpoolctl import threadpool_limits

from hushtable import HushTable, LSHiTables
from hushtable.errors import DataError
from hushtable.kernels import _built
from hushtable.scores import Scorer
from hushtable_bench.results import Promise, ResultTable
from hushtable_bench.runner import ROOT, CaseRun, progress, timed

FITTED, COLUMNS = 5_000, 10
CALL_ROWS = (1, 10, 100, 1_000)
#: Calls in a burst; the peer, which takes a hundred times as long, has two.
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


#: Forms of rows, and the functions that make them from float64.
KINDS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "pandas": as_frame,
}


def median_of_calls(
    scoring: dict[str, Callable[[Any], Any]], X: Any, bursts: int
) -> dict[str, float]:
    """Return the median microseconds of a call of each, over bursts that take turns.

    Each call is timed by itself, because few calls coincide with the machine's other work.
    """
    times: dict[str, list[float]] = {name: [] for name in scoring}
    # The first burst does not count: processor and caches have to warm up.
    for burst in range(1 + bursts):
        for name, score in scoring.items():
            calls = PEERS_CALLS if name == PEER else CALLS
            some = [timed(partial(score, X))[0] for _ in range(calls)]
            times[name] += some if burst else []
    return {name: 1e6 * statistics.median(some) for name, some in times.items()}


def time_all(sizes: Sequence[int] = CALL_ROWS, bursts: int = BURSTS) -> list[Latency]:
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
            progress(f"{rows_as}: {rows} rows")
    return found


def time_starts(starts: int = STARTS) -> Start:
    """Start processes that read a model's file and score a row; the first does not count."""
    X = np.random.default_rng(0).normal(size=(FITTED, COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.hush"
        HushTable(random_state=0).fit(X).save(model)
        command = [sys.executable, "-c", START, str(model), str(COLUMNS)]
        record = [subprocess.check_output(command, text=True).split() for _ in range(1 + starts)][
            1:
        ]
    imported, scored = (statistics.median(float(one[i]) for one in record) for i in (0, 1))
    return Start(imported, scored, any(one[2] == "True" for one in record))


def latency_targets(found: Sequence[Latency], start: Start) -> list[Promise]:
    ours = [one for one in found if one.name == "HushTable"]
    slowest = {
        rows: max(one.microseconds for one in ours if one.rows == rows and one.rows_as != "pandas")
        for rows in MOST
    }
    (frame,) = [one.microseconds for one in ours if (one.rows, one.rows_as) == (1, "pandas")]
    return [
        *(
            Promise(f"HushTable, {rows} NumPy rows, us at most", slowest[rows], "<=", most, ".0f")
            for rows, most in MOST.items()
        ),
        Promise("HushTable, 1 pandas row, us at most", frame, "<=", MOST_PANDAS, ".0f"),
        Promise("import of the Scorer, s at most", start.imported, "<=", MOST_IMPORT, ".2f"),
        Promise("the Scorer imports scikit-learn", float(start.sklearn), "<=", 0.0, ".0f"),
    ]


#: Rounds, each with a process of every kind.
ROUNDS, QUICK_ROUNDS = 5, 1
#: Seconds at most.
MOST_BUILT, MOST_COMPILED = 3.0, 7.0
BUILT, COMPILED, KEPT, PEER = "built", "compiled", "compiled before", "IsolationForest"

SCRIPT = """
from time import perf_counter
began = perf_counter()
import sys
import numpy as np
X = np.random.default_rng(0).normal(size=(2000, 10))
if sys.argv[1] == "IsolationForest":
    from sklearn.ensemble import IsolationForest as Detector
else:
    from hushtable import HushTable as Detector
imported = perf_counter()
detector = Detector(random_state=0).fit(X)
fitted = perf_counter()
detector.score_samples(X)
print(imported - began, fitted - imported, perf_counter() - fitted)
"""


@dataclass(frozen=True)
class FirstUse:
    """Median seconds of each step, and of all."""

    kind: str
    imported: float
    fitted: float
    scored: float
    whole: float


def first_use_of(kind: str, cache: Path) -> tuple[float, float, float]:
    """Return the seconds of import, fit and score in a process of its own."""
    compiles = {"HUSHTABLE_JIT": "0" if kind == BUILT else "1", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SCRIPT, kind]
    record = subprocess.check_output(command, env=os.environ | compiles, text=True)
    imported, fitted, scored = map(float, record.split())
    return imported, fitted, scored


def time_first_uses(rounds: int) -> list[FirstUse]:
    there = any(_built.path_of(level).is_file() for level in _built.levels_at_hand())
    kinds = ([BUILT] if there else []) + [COMPILED, KEPT, PEER]
    seconds: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for kind in (KEPT, PEER):  # afterwards, files on disk are in memory for all
            first_use_of(kind, Path(folder))
        for number in range(rounds):
            for kind in kinds:
                progress(f"round {number + 1} of {rounds}: {kind}")
                with tempfile.TemporaryDirectory() as empty:
                    cache = folder if kind == KEPT else empty
                    seconds[kind].append(first_use_of(kind, Path(cache)))
    found = []
    for kind, times in seconds.items():
        imported, fitted, scored = map(statistics.median, zip(*times, strict=True))
        whole = statistics.median(map(sum, times))
        found.append(FirstUse(kind, imported, fitted, scored, whole))
    return found


# --- frames ---------------------------------------------------------------------------------------

FRAME_ROWS, FRAME_ROUNDS, QUICK_FRAME_ROUNDS = (1, 10, 50, 1_000), 9, 3
#: Categories of a column with many, and rows with each category.
CATEGORIES, TIMES_EACH = 10_000, 4
#: Most microseconds of processor time for a call on one row.
MOST_OF_FRAME = {
    ("mixed", "pandas"): 300.0, ("mixed", "polars"): 250.0, ("mixed", "Arrow"): 100.0,
    ("numbers", "Arrow"): 100.0, ("10,000 categories", "Arrow"): 120.0,
}  # fmt: skip


def mixed_frame(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return five floats, two whole numbers, three texts, a date and a truth value."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=rows) for j in range(5)}
    columns |= {f"k{j}": rng.integers(0, 50, rows) for j in range(2)}
    texts = np.array([f"cat{i}" for i in range(20)])
    columns |= {f"c{j}": texts[rng.integers(0, 20, rows)] for j in range(3)}
    seconds = pd.to_timedelta(rng.integers(0, 365 * 86_400, rows), unit="s")
    columns |= {"when": pd.Timestamp("2024-01-01") + seconds, "ok": rng.random(rows) < 0.5}
    return pd.DataFrame(columns)


def three_types(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return columns of float64, of float32 and of whole numbers."""
    X = np.random.default_rng(seed).normal(size=(rows, COLUMNS))
    kinds = (np.float64,) * 4 + (np.float32,) * 3 + (np.int64,) * 3
    return pd.DataFrame({f"x{j}": (9 * X[:, j]).astype(kind) for j, kind in enumerate(kinds)})


def many_categories(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return a column of equally frequent texts, and two columns of numbers."""
    X, places = np.random.default_rng(seed).normal(size=(rows, 2)), np.arange(rows) % CATEGORIES
    texts = np.array([f"category {i}" for i in range(CATEGORIES)])
    return pd.DataFrame({"category": texts[places], "x": X[:, 0], "y": X[:, 1]})


#: The fitted and scored frames, and their numbers of rows.
SHAPES: dict[str, tuple[Callable[..., pd.DataFrame], int]] = {
    "numbers": (
        lambda n, s=0: as_frame(np.random.default_rng(s).normal(size=(n, COLUMNS))),
        FITTED,
    ),
    "three types": (three_types, FITTED),
    "mixed": (mixed_frame, FITTED),
    "10,000 categories": (many_categories, TIMES_EACH * CATEGORIES),
}


def as_libraries(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame in the form of each library, and of NumPy if it holds only numbers."""
    import polars as pl
    import pyarrow as pa

    found = {"pandas": frame, "polars": pl.from_pandas(frame)}
    found["Arrow"] = pa.Table.from_pandas(frame, preserve_index=False)
    numbers = all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in frame.dtypes)
    return ({"NumPy": frame.to_numpy()} if numbers else {}) | found


def time_frames(rounds: int, sizes: Sequence[int] = FRAME_ROWS) -> list[Latency]:
    """Return the processor's microseconds of a call, the median of rounds that take turns."""
    found = []
    for shape, (made, fitted_to) in SHAPES.items():
        detector = HushTable(random_state=0).fit(made(fitted_to))
        for rows in sizes:
            times: dict[str, list[float]] = {}
            calls = max(2, CALLS // (1 + rows // 100))
            for _ in range(1 + rounds):
                for library, some in as_libraries(made(rows, 1)).items():
                    detector.score_samples(some)
                    start = time.process_time()
                    for _ in range(calls):
                        detector.score_samples(some)
                    spent = (time.process_time() - start) / calls
                    times.setdefault(library, []).append(1e6 * spent)
            found += [
                Latency(shape, library, rows, statistics.median(some[1:]))
                for library, some in times.items()
            ]
            progress(f"{shape}: {rows} rows")
    return found


def frames(run: CaseRun, *, quick: bool = False) -> None:
    """Measure microseconds of a call on few rows of frames: a minute; --quick, 20 s."""
    with threadpool_limits(limits=1):
        found = time_frames(QUICK_FRAME_ROUNDS if quick else FRAME_ROUNDS)
    times = {(one.name, one.rows_as, one.rows): one.microseconds for one in found}
    lines = [
        (*kind, *(f"{times[*kind, rows]:,.0f}" for rows in FRAME_ROWS))
        for kind in dict.fromkeys((one.name, one.rows_as) for one in found)
    ]
    header = ("columns", "rows as", *(f"{n:,} row{'s' * (n > 1)}, us" for n in FRAME_ROWS))
    run.say(ResultTable(header, lines, text=2))
    run.figures["frames"] = found
    for (shape, library), most in MOST_OF_FRAME.items():
        claim = f"{shape}, one row as {library} has it, us at most"
        run.hold(claim, times[shape, library, 1], "<=", most, ".0f")


# --- a service ------------------------------------------------------------------------------------

WIDTHS = (10, 30)
SERVING_BURSTS, QUICK_SERVING_BURSTS = 51, 5
#: Requests at once, each with one row; and the number of times, after some that do not count.
AT_ONCE, TIMES, QUICK_TIMES = 100, 20, 3
#: Seconds until the service has to answer.
PATIENCE = 60.0
MOST_MICROSECONDS = 1_000.0


@dataclass(frozen=True)
class Call:
    """Median microseconds of a call of ``score_samples`` on one row."""

    name: str
    columns: int
    microseconds: float


@dataclass(frozen=True)
class Requests:
    """Answers to simultaneous requests: milliseconds, and the number of errors."""

    at_once: int
    median: float
    p99: float
    slowest: float
    alone: float
    errors: int


def time_calls(bursts: int = SERVING_BURSTS) -> list[Call]:
    rng, found = np.random.default_rng(0), []
    for columns in WIDTHS:
        X = rng.normal(size=(FITTED, columns))
        fitted = [make(random_state=0).fit(X) for make in (HushTable, LSHiTables, IsolationForest)]
        scoring = {type(one).__name__: one.score_samples for one in fitted}
        medians = median_of_calls(scoring, rng.normal(size=(1, columns)), bursts)
        found += [Call(name, columns, one) for name, one in medians.items()]
        progress(f"{columns} columns")
    return found


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Run the example service on a model of ten columns; yield its address."""
    X = np.random.default_rng(0).normal(size=(FITTED, WIDTHS[0]))
    HushTable(random_state=0).fit(X).save(folder / "model.hush")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
    quiet = [
        "--log-level",
        "warning",
        "--app-dir",
        str(ROOT / "packages" / "hushtable-connect" / "examples"),
    ]
    named = os.environ | {"HUSHTABLE_MODEL": str(folder / "model.hush")}
    running = subprocess.Popen([*command, *quiet], env=named)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


async def ask(address: str, at_once: int, times: int) -> Requests:
    """Send requests with one row each, several times all at once, and one after the other."""
    import httpx

    rows = np.random.default_rng(1).normal(size=(at_once, WIDTHS[0])).tolist()
    requests = [[{f"x{j}": value for j, value in enumerate(row)}] for row in rows]
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:

        async def one(request: Any) -> tuple[float, bool]:
            start = time.perf_counter()
            try:
                answer = await client.post("/score", json=request)
            except httpx.HTTPError:
                return time.perf_counter() - start, False
            good = answer.status_code == 200 and len(answer.json()) == 1
            return time.perf_counter() - start, good

        end = time.monotonic() + PATIENCE
        while not (await one(requests[0]))[1]:
            if time.monotonic() > end:
                raise DataError(f"the service does not answer within {PATIENCE:g} s")
            await asyncio.sleep(0.1)
        await asyncio.gather(*map(one, requests))  # does not count
        found = [x for _ in range(times) for x in await asyncio.gather(*map(one, requests))]
        alone = [(await one(request))[0] for request in requests]
    median, p99, slowest = np.quantile([1e3 * x for x, _ in found], [0.5, 0.99, 1.0]).tolist()
    errors = sum(not good for _, good in found)
    return Requests(at_once, median, p99, slowest, 1e3 * float(np.median(alone)), errors)


def time_requests(at_once: int = AT_ONCE, times: int = TIMES) -> Requests:
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as address:
        return asyncio.run(ask(address, at_once, times))


def serving_targets(found: Sequence[Call], requests: Requests) -> list[Promise]:
    ours = [one for one in found if one.name != PEER]
    return [
        *(
            Promise(
                f"{one.name}, one row of {one.columns} columns, us at most", one.microseconds,
                "<=", MOST_MICROSECONDS, ".0f",
            )
            for one in ours
        ),
        Promise(f"{requests.at_once} requests at once, errors", requests.errors, "<=", 0, ".0f"),
    ]  # fmt: skip


# --- the runs -------------------------------------------------------------------------------------


def latency(run: CaseRun, *, quick: bool = False) -> None:
    """Measure microseconds of a call on few rows: two minutes; --quick, half a minute."""
    bursts = QUICK_BURSTS if quick else BURSTS
    with threadpool_limits(limits=1):
        found = time_all(bursts=bursts)
    start = time_starts(QUICK_STARTS if quick else STARTS)
    run.say(f"Medians of {bursts * CALLS} calls ({bursts * PEERS_CALLS} of {PEER}), one thread.")
    times = {(one.name, one.rows_as, one.rows): one.microseconds for one in found}
    lines = [
        (*kind, *(f"{times[*kind, rows]:,.0f}" for rows in CALL_ROWS))
        for kind in dict.fromkeys((one.name, one.rows_as) for one in found)
    ]
    header = ("detector", "rows as", *(f"{n:,} row{'s' * (n > 1)}, us" for n in CALL_ROWS))
    run.say(ResultTable(header, lines, text=2))
    run.say(
        f"A new process has a Scorer after {start.imported:.2f} s, and the first score of a row "
        f"after {start.scored:.2f} s."
    )
    run.figures |= {"latencies": found, "start": start}
    run.targets += latency_targets(found, start)


def first_use(run: CaseRun, *, quick: bool = False) -> None:
    """Measure seconds from import to scores in new processes: 90 seconds; --quick, 20."""
    found = time_first_uses(QUICK_ROUNDS if quick else ROUNDS)
    run.table(
        {
            "kernels": "{t.kind}", "import, s": "{t.imported:.2f}", "fit, s": "{t.fitted:.2f}",
            "score, s": "{t.scored:.2f}", "from import to scores, s": "{t.whole:.2f}",
        }, found,
    )  # fmt: skip
    if found[0].kind != BUILT:
        run.say("Built kernels are left out, because there are none (make kernels builds them).")
    most = {BUILT: MOST_BUILT, COMPILED: MOST_COMPILED}
    for one in found:
        if one.kind in most:
            claim = f"first use, {one.kind}, s at most"
            run.hold(claim, one.whole, "<=", most[one.kind], ".2f")
    run.figures["uses"] = found


def serving(run: CaseRun, *, quick: bool = False) -> None:
    """Measure a row's and a service's latency: two minutes; --quick, half a minute."""
    bursts, times = (QUICK_SERVING_BURSTS, QUICK_TIMES) if quick else (SERVING_BURSTS, TIMES)
    with threadpool_limits(limits=1):
        found = time_calls(bursts)
    requests = time_requests(times=times)
    by = {(one.name, one.columns): one.microseconds for one in found}
    names = dict.fromkeys(one.name for one in found)
    lines = [(name, *(f"{by[name, columns]:,.0f}" for columns in WIDTHS)) for name in names]
    header = ("detector", *(f"a row of {columns} columns, us" for columns in WIDTHS))
    run.say(ResultTable(header, lines))
    run.say(
        f"{requests.at_once} requests at once, {times} times: median {requests.median:.0f} ms, "
        f"p99 {requests.p99:.0f} ms, slowest {requests.slowest:.0f} ms, {requests.errors} errors. "
        f"One after the other, {requests.alone:.1f} ms each."
    )
    run.figures |= {"calls": found, "requests": requests}
    run.targets += serving_targets(found, requests)
