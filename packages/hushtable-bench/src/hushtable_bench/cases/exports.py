"""Time exported models in other runtimes beside ours, and compare their scores with ours.

Everything runs with one thread, and models are fitted to 5,000 rows. `exports`: rows of 10 columns,
in each of `RUNTIMES`; a runtime that is not installed is left out with a message. `exports_sql`:
statements in DuckDB and PostgreSQL, with scores alone and with flags and reasons; the tests start
the server, without just-in-time compilation, which takes longer than it saves here.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from hushtable import HushTable, LSHiTables
from hushtable_bench.runner import ROOT, CaseRun, in_turns, progress
from hushtable_connect.exports import Model, export
from hushtable_connect.exports.sql import written

FITTED, COLUMNS, SQL_ROWS, QUICK_SQL_ROWS, SQL_REPEATS = 5_000, 10, 20_000, 2_000, 3
SQL_DETECTORS: dict[str, Callable[[], Any]] = {
    "HushTable": lambda: HushTable(random_state=0),
    "LSHiTables": lambda: LSHiTables(random_state=0),
}
#: From a statement to the scores that it selects, read by the client.
Ask = Callable[[str], Any]


@dataclass(frozen=True)
class StatementTiming:
    """Seconds before the first row; microseconds a row, for scores alone and for all columns."""

    detector: str
    columns: int
    engine: str
    megabytes: float
    ready: float
    score: float
    everything: float
    apart: float


@contextlib.contextmanager
def duckdb(rows: pa.Table) -> Iterator[Ask]:
    """Store rows in the table data, and yield a function that runs a query."""
    import duckdb as engine

    connection = engine.connect()
    connection.execute("SET threads = 1")
    connection.register("given", rows)
    connection.execute("CREATE TABLE data AS SELECT * FROM given")
    yield lambda statement: connection.sql(statement).to_arrow_table()
    connection.close()


@contextlib.contextmanager
def postgresql(rows: pa.Table) -> Iterator[Ask | None]:
    """Store rows in the same way; yield None if no server is installed."""
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    from postgres_server import programs, running

    if (where := programs()) is None:
        yield None
        return
    with running(where) as server, server.cursor() as cursor:
        cursor.execute("SET jit = off")
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.adbc_ingest("data", rows)

        def ask(statement: str) -> Any:
            cursor.execute(statement)
            return cursor.fetch_arrow_table()

        yield ask


ENGINES = {"duckdb": duckdb, "postgresql": postgresql}


def opened(engine: str, rows: pa.Table) -> contextlib.AbstractContextManager[Ask | None]:
    """Return an engine that holds rows as the table data."""
    return ENGINES[engine](rows)


def least_seconds(ask: Callable[..., Any], *given: Any) -> float:
    """Return the least time of a few calls."""
    times = []
    for _ in range(SQL_REPEATS):
        began = time.perf_counter()
        ask(*given)
        times.append(time.perf_counter() - began)
    return min(times)


def time_one(name: str, columns: int, n_rows: int) -> Iterator[StatementTiming]:
    """Yield the times of one detector, ours first."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(columns)]
    fitted, rows = (pa.table(dict(zip(names, rng.normal(size=(columns, n)), strict=True)))
                    for n in (FITTED, n_rows))  # fmt: skip
    detector = SQL_DETECTORS[name]().fit(fitted)
    expected = detector.score_samples(rows)
    ours = 1e6 * least_seconds(detector.score_samples, rows) / n_rows
    explained = 1e6 * least_seconds(detector.explain, rows) / n_rows
    yield StatementTiming(name, columns, "hushtable", 0.0, 0.0, ours, ours + explained, 0.0)
    for engine in ENGINES:
        progress(f"{name}, {columns} columns: {engine}")
        statement = written(Model.of(detector), dialect=engine).decode()
        scores = f"SELECT hush_score FROM (\n{statement}) AS s"
        with opened(engine, rows) as ask:
            if ask is None:
                progress(f"{engine} is not installed")
                continue
            apart = np.abs(ask(scores)["hush_score"].to_numpy() - expected).max()
            ready = least_seconds(ask, f"{statement}LIMIT 0")
            ready_scores = least_seconds(ask, f"{scores} LIMIT 0")
            alone = (least_seconds(ask, scores) - ready_scores) / n_rows
            everything = (least_seconds(ask, statement) - ready) / n_rows
        size = len(statement) / 1e6
        yield StatementTiming(
            name, columns, engine, size, ready, 1e6 * alone, 1e6 * everything, float(apart)
        )


ROWS, QUICK_ROWS = 10_000, 1_000
REPEATS, QUICK_REPEATS = 7, 2
#: Rows that ONNX Runtime gets at a time, so that its intermediate tensors stay in the cache.
BATCH = 250
#: Calls with a single row.
SINGLE = 200
JAVASCRIPT = ROOT / "packages" / "hushtable-connect" / "javascript" / "hushtable.mjs"
DETECTORS: dict[str, Callable[[], Any]] = {
    "HushTable, one pass": lambda: HushTable(passes=1, random_state=0),
    "HushTable, two passes": lambda: HushTable(passes=2, random_state=0),
    "LSHiTables": lambda: LSHiTables(random_state=0),
}

#: Median seconds of a call with all rows, and with one; scores go by Float64, little-endian.
SCRIPT = """
import { readFile, writeFile } from "node:fs/promises";
const [module, path, rows, scores, columns, repeats, single] = process.argv.slice(1);
const { load } = await import(module);
const content = await readFile(path), model = await load(content), d = Number(columns);
const flat = await readFile(rows), X = [];
const values = new Float64Array(flat.buffer.slice(flat.byteOffset, flat.byteOffset + flat.length));
for (let i = 0; i < values.length; i += d) X.push(Array.from(values.subarray(i, i + d)));
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
const timed = (calls, call) => median(Array.from({ length: Number(calls) }, (_, i) => {
  const began = process.hrtime.bigint();
  call(i);
  return Number(process.hrtime.bigint() - began) / 1e9;
}));
const found = model.score(X);
await writeFile(scores, new Uint8Array(found.buffer));
const one = timed(single, (i) => model.score(X[i % X.length]));
process.stdout.write(JSON.stringify([timed(repeats, () => model.score(X)), one]));
"""


@dataclass(frozen=True)
class Calls:
    """The work: a fitted detector, its rows, and how often to score them."""

    detector: Any
    X: Any
    repeats: int
    folder: Path


@dataclass(frozen=True)
class RuntimeScores:
    """Median seconds of a call with all rows, and with one; the scores of all."""

    rows: float
    one: float
    scores: Any


@dataclass(frozen=True)
class RuntimeTiming:
    """Microseconds a row, in one call with many rows and with one; how far scores are apart."""

    detector: str
    runtime: str
    many: float
    one: float
    apart: float


def of_hushtable(calls: Calls) -> RuntimeScores:
    score = calls.detector.score_samples
    times = in_turns({"rows": lambda: score(calls.X)}, calls.repeats)["rows"]
    single = in_turns({"one": lambda: score(calls.X[:1])}, SINGLE)["one"]
    return RuntimeScores(float(np.median(times)), float(np.median(single)), score(calls.X))


def of_javascript(calls: Calls) -> RuntimeScores | None:
    node = shutil.which("node")
    if node is None:
        return None
    model, rows, scores = (calls.folder / name for name in ("model.json", "rows", "scores"))
    export(calls.detector, model)
    calls.X.astype("<f8").tofile(rows)
    sizes = map(str, (COLUMNS, calls.repeats, SINGLE))
    command = [node, "--input-type=module", "-e", SCRIPT, JAVASCRIPT, model, rows, scores, *sizes]
    many, one = json.loads(subprocess.check_output(list(map(str, command))))
    return RuntimeScores(many, one, np.fromfile(scores, "<f8"))


def of_onnx(calls: Calls) -> RuntimeScores | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    model = calls.folder / "model.onnx"
    export(calls.detector, model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def score(X: Any) -> Any:
        batches = [X[i : i + BATCH] for i in range(0, len(X), BATCH)]
        return np.concatenate([session.run(["score"], {"X": batch})[0] for batch in batches])

    times = in_turns({"rows": lambda: score(calls.X)}, calls.repeats)["rows"]
    single = in_turns({"one": lambda: score(calls.X[:1])}, SINGLE)["one"]
    return RuntimeScores(float(np.median(times)), float(np.median(single)), score(calls.X))


def of_sql(engine: str, calls: Calls) -> RuntimeScores | None:
    """Most of a call's time passes before the first row, in parsing and planning the statement."""
    rows = pa.table({f"x{j}": column for j, column in enumerate(calls.X.T)})
    statement = written(Model.of(calls.detector), dialect=engine).decode()
    scores = f"SELECT hush_score FROM (\n{statement}) AS s"
    with opened(engine, rows) as ask:
        if ask is None:
            return None
        many = least_seconds(ask, scores)
        single = least_seconds(ask, f"{scores} LIMIT 1")
        return RuntimeScores(many, single, ask(scores)["hush_score"].to_numpy())


#: Runtimes by name; the others are compared with the first.
RUNTIMES: dict[str, Callable[[Calls], RuntimeScores | None]] = {
    "hushtable": of_hushtable,
    "JavaScript": of_javascript,
    "ONNX Runtime": of_onnx,
    "DuckDB": partial(of_sql, "duckdb"),
    "PostgreSQL": partial(of_sql, "postgresql"),
}


def time_all(
    rows: int = ROWS, repeats: int = REPEATS, n_fitted: int = FITTED
) -> list[RuntimeTiming]:
    rng = np.random.default_rng(0)
    fitted, X = rng.normal(size=(n_fitted, COLUMNS)), rng.normal(size=(rows, COLUMNS))
    found = []
    for name, make in DETECTORS.items():
        detector = make().fit(fitted)
        expected = detector.score_samples(X)
        for runtime, run in RUNTIMES.items():
            with tempfile.TemporaryDirectory() as folder:
                outcome = run(Calls(detector, X, repeats, Path(folder)))
            progress(f"{name}: {runtime}{'' if outcome else ' is not installed'}")
            if outcome is not None:
                apart = float(np.abs(outcome.scores - expected).max())
                many, one = 1e6 * outcome.rows / rows, 1e6 * outcome.one
                found.append(RuntimeTiming(name, runtime, many, one, apart))
    return found


def exports(run: CaseRun, *, quick: bool = False) -> None:
    """Time a row in JavaScript, ONNX Runtime, DuckDB, and PostgreSQL beside ours."""
    rows, repeats = (QUICK_ROWS, QUICK_REPEATS) if quick else (ROWS, REPEATS)
    with threadpool_limits(limits=1):
        found = time_all(rows, repeats)
    run.say(f"Medians of {repeats} calls with {rows:,} rows, and of {SINGLE} with one.")
    run.table(
        {
            "detector": "{t.detector}", "runtime": "{t.runtime}",
            "many rows, us a row": "{t.many:,.2f}", "one row, us": "{t.one:,.0f}",
            "scores apart": "{t.apart:.0e}",
        }, found, text=2,
    )  # fmt: skip
    for name in dict.fromkeys(t.runtime for t in found):
        apart = max(t.apart for t in found if t.runtime == name)
        most = 0.0 if name == "JavaScript" else 1e-6
        run.hold(f"{name}: scores apart at most", apart, "<=", most, ".0e")
    run.figures["timings"] = found


def exports_sql(run: CaseRun, *, quick: bool = False) -> None:
    """Time statements in DuckDB and PostgreSQL, with scores alone and with flags and reasons."""
    rows = QUICK_SQL_ROWS if quick else SQL_ROWS
    found = [t for name in SQL_DETECTORS for d in (10, 30) for t in time_one(name, d, rows)]
    run.say(f"{rows:,} rows, the shortest of {SQL_REPEATS} times; 'all' is with flags and reasons.")
    run.table(
        {
            "detector": "{t.detector}", "columns": "{t.columns}", "engine": "{t.engine}",
            "MB": "{t.megabytes:.2f}", "s before": "{t.ready:.2f}", "score, us": "{t.score:,.1f}",
            "all, us": "{t.everything:,.1f}", "apart": "{t.apart:.0e}",
        }, found, text=3,
    )  # fmt: skip
    run.hold("scores apart at most", max(t.apart for t in found), "<=", 0.0, ".0e")
    run.figures["timings"] = found
