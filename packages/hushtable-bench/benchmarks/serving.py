"""A row scored in a process that has scored before, and requests to the example service.

Rows of 10 and 30 columns, one thread, beside IsolationForest; calls come in bursts, which take
turns. Then the service of examples/, by uvicorn in a process of its own, gets requests all at once.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from threadpoolctl import threadpool_limits

import common
from common import Target
from hushtable import HushTable, LSHiTables
from hushtable.errors import DataError
from latency import FITTED, PEER, median_of_calls

COLUMNS = (10, 30)
BURSTS, QUICK_BURSTS = 51, 5
#: Requests at once, each of one row; and how often, after some that do not count.
AT_ONCE, TIMES, QUICK_TIMES = 100, 20, 3
#: Seconds that the service may take until it answers.
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
    """How requests at once were answered: milliseconds, and how many were not."""

    at_once: int
    median: float
    p99: float
    slowest: float
    alone: float
    errors: int


def time_calls(bursts: int = BURSTS) -> list[Call]:
    rng, found = np.random.default_rng(0), []
    for columns in COLUMNS:
        X = rng.normal(size=(FITTED, columns))
        fitted = [make(random_state=0).fit(X) for make in (HushTable, LSHiTables, IsolationForest)]
        scoring = {type(one).__name__: one.score_samples for one in fitted}
        medians = median_of_calls(scoring, rng.normal(size=(1, columns)), bursts)
        found += [Call(name, columns, one) for name, one in medians.items()]
        common.progress(f"{columns} columns")
    return found


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Run the example service on a model of ten columns; give its address."""
    X = np.random.default_rng(0).normal(size=(FITTED, COLUMNS[0]))
    HushTable(random_state=0).fit(X).save(folder / "model.hush")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
    quiet = [
        "--log-level",
        "warning",
        "--app-dir",
        str(common.ROOT / "packages" / "hushtable-connect" / "examples"),
    ]
    named = os.environ | {"HUSHTABLE_MODEL": str(folder / "model.hush")}
    running = subprocess.Popen([*command, *quiet], env=named)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


async def ask(address: str, at_once: int, times: int) -> Requests:
    """Send requests of one row each, all at once, several times; and one after the other."""
    import httpx

    rows = np.random.default_rng(1).normal(size=(at_once, COLUMNS[0])).tolist()
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


def table(found: Sequence[Call]) -> str:
    times = {(one.name, one.columns): one.microseconds for one in found}
    lines = [
        (name, *(f"{times[name, columns]:,.0f}" for columns in COLUMNS))
        for name in dict.fromkeys(one.name for one in found)
    ]
    header = ("detector", *(f"a row of {columns} columns, us" for columns in COLUMNS))
    return common.markdown_table(header, lines, text=1)


def targets(found: Sequence[Call], requests: Requests) -> list[Target]:
    ours = [one for one in found if one.name != PEER]
    return [
        *(
            Target(
                f"{one.name}, one row of {one.columns} columns, us at most", one.microseconds,
                "<=", MOST_MICROSECONDS, ".0f",
            )
            for one in ours
        ),
        Target(f"{requests.at_once} requests at once, errors", requests.errors, "<=", 0, ".0f"),
    ]  # fmt: skip


def main(arguments: argparse.Namespace) -> int:
    bursts, times = (QUICK_BURSTS, QUICK_TIMES) if arguments.quick else (BURSTS, TIMES)
    with threadpool_limits(limits=1):
        found = time_calls(bursts)
    requests = time_requests(times=times)
    print(f"{table(found)}\n")
    print(
        f"{requests.at_once} requests at once, {times} times: median {requests.median:.0f} ms, "
        f"p99 {requests.p99:.0f} ms, slowest {requests.slowest:.0f} ms, {requests.errors} errors. "
        f"One after the other, {requests.alone:.1f} ms each.\n"
    )
    kept = {"calls": [asdict(one) for one in found], "requests": asdict(requests)}
    return common.finish(targets(found, requests), "serving", **kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls and requests")
    common.run(parser, main)
