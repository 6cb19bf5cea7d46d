"""Time a row of exported models in other runtimes, beside ours, and how far scores are apart.

Everything with one thread, fitted on 5,000 rows of 10 columns. A runtime is one function in
`RUNTIMES`; one that is not installed is left out, and said to be.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

import common
import exports_sql
from common import Target
from hushtable import HushTable, LSHiTables
from hushtable_connect.exports import Model, export
from hushtable_connect.exports.sql import written

FITTED, COLUMNS = 5_000, 10
ROWS, QUICK_ROWS = 10_000, 1_000
REPEATS, QUICK_REPEATS = 7, 2
#: Rows that ONNX Runtime gets at a time: its tensors between the steps then stay in the cache.
BATCH = 250
#: Calls with a single row.
SINGLE = 200
JAVASCRIPT = common.ROOT / "packages" / "hushtable-connect" / "javascript" / "hushtable.mjs"
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
    """The work: a fitted detector, its rows, and how often they are scored."""

    detector: Any
    X: Any
    repeats: int
    folder: Path


@dataclass(frozen=True)
class Outcome:
    """Median seconds of a call with all rows, and with one; the scores of all."""

    rows: float
    one: float
    scores: Any


@dataclass(frozen=True)
class Timing:
    """Microseconds a row, in one call with many and with one row; how far scores are apart."""

    detector: str
    runtime: str
    many: float
    one: float
    apart: float


def library(calls: Calls) -> Outcome:
    score = calls.detector.score_samples
    times = common.in_turns({"rows": lambda: score(calls.X)}, calls.repeats)["rows"]
    single = common.in_turns({"one": lambda: score(calls.X[:1])}, SINGLE)["one"]
    return Outcome(float(np.median(times)), float(np.median(single)), score(calls.X))


def javascript(calls: Calls) -> Outcome | None:
    node = shutil.which("node")
    if node is None:
        return None
    model, rows, scores = (calls.folder / name for name in ("model.json", "rows", "scores"))
    export(calls.detector, model)
    calls.X.astype("<f8").tofile(rows)
    sizes = map(str, (COLUMNS, calls.repeats, SINGLE))
    command = [node, "--input-type=module", "-e", SCRIPT, JAVASCRIPT, model, rows, scores, *sizes]
    many, one = json.loads(subprocess.check_output(list(map(str, command))))
    return Outcome(many, one, np.fromfile(scores, "<f8"))


def onnx(calls: Calls) -> Outcome | None:
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

    times = common.in_turns({"rows": lambda: score(calls.X)}, calls.repeats)["rows"]
    single = common.in_turns({"one": lambda: score(calls.X[:1])}, SINGLE)["one"]
    return Outcome(float(np.median(times)), float(np.median(single)), score(calls.X))


def sql(engine: str, calls: Calls) -> Outcome | None:
    """Most of a call's time goes by before its first row: the statement is read and planned."""
    rows = pa.table({f"x{j}": column for j, column in enumerate(calls.X.T)})
    statement = written(Model.of(calls.detector), dialect=engine).decode()
    scores = f"SELECT hush_score FROM (\n{statement}) AS s"
    with exports_sql.opened(engine, rows) as ask:
        if ask is None:
            return None
        many = exports_sql.seconds(ask, scores)
        single = exports_sql.seconds(ask, f"{scores} LIMIT 1")
        return Outcome(many, single, ask(scores)["hush_score"].to_numpy())


#: By name; the first is what the others are held against.
RUNTIMES: dict[str, Callable[[Calls], Outcome | None]] = {
    "hushtable": library,
    "JavaScript": javascript,
    "ONNX Runtime": onnx,
    "DuckDB": partial(sql, "duckdb"),
    "PostgreSQL": partial(sql, "postgresql"),
}


def time_all(rows: int = ROWS, repeats: int = REPEATS, n_fitted: int = FITTED) -> list[Timing]:
    rng = np.random.default_rng(0)
    fitted, X = rng.normal(size=(n_fitted, COLUMNS)), rng.normal(size=(rows, COLUMNS))
    found = []
    for name, make in DETECTORS.items():
        detector = make().fit(fitted)
        expected = detector.score_samples(X)
        for runtime, run in RUNTIMES.items():
            with tempfile.TemporaryDirectory() as folder:
                outcome = run(Calls(detector, X, repeats, Path(folder)))
            common.progress(f"{name}: {runtime}{'' if outcome else ' is not here'}")
            if outcome is not None:
                apart = float(np.abs(outcome.scores - expected).max())
                many, one = 1e6 * outcome.rows / rows, 1e6 * outcome.one
                found.append(Timing(name, runtime, many, one, apart))
    return found


def table(found: list[Timing]) -> str:
    header = ("detector", "runtime", "many rows, us a row", "one row, us", "scores apart")
    lines = [
        (t.detector, t.runtime, f"{t.many:,.2f}", f"{t.one:,.0f}", f"{t.apart:.0e}") for t in found
    ]
    return common.markdown_table(header, lines, text=2)


def targets(found: list[Timing]) -> list[Target]:
    most = {"JavaScript": 0.0}
    worst = {name: max(t.apart for t in found if t.runtime == name) for name in _names(found)}
    return [
        Target(f"{name}: scores apart at most", apart, "<=", most.get(name, 1e-6), ".0e")
        for name, apart in worst.items()
    ]


def _names(found: list[Timing]) -> list[str]:
    return list(dict.fromkeys(t.runtime for t in found))


def main(arguments: argparse.Namespace) -> int:
    quick = (QUICK_ROWS, QUICK_REPEATS) if arguments.quick else (ROWS, REPEATS)
    with threadpool_limits(limits=1):
        found = time_all(*quick)
    print(f"Medians of {quick[1]} calls with {quick[0]:,} rows, and of {SINGLE} with one.\n")
    print(table(found))
    return common.finish(targets(found), "exports", timings=[asdict(t) for t in found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and calls")
    common.run(parser, main)
