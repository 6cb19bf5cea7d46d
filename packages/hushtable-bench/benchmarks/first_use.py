"""Seconds from `import` to scores in a process that nothing was kept for, beside IsolationForest.

2,000 rows of 10 columns. Processes take turns. With kernels that are built, as in a wheel for
this platform (`make kernels` builds them here); compiled, as from sources, with no kernel kept
from before; and compiled in a process before.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import common
from common import Target
from hushtable.kernels import _built

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


def run(kind: str, cache: Path) -> tuple[float, float, float]:
    """Return the seconds of import, fit and score in a process of its own."""
    compiles = {"HUSHTABLE_JIT": "0" if kind == BUILT else "1", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SCRIPT, kind]
    said = subprocess.check_output(command, env=os.environ | compiles, text=True)
    imported, fitted, scored = map(float, said.split())
    return imported, fitted, scored


def time_all(rounds: int) -> list[FirstUse]:
    there = any(_built.path_of(level).is_file() for level in _built.levels_at_hand())
    kinds = ([BUILT] if there else []) + [COMPILED, KEPT, PEER]
    seconds: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for kind in (KEPT, PEER):  # what is read from the disk is then in memory for all
            run(kind, Path(folder))
        for number in range(rounds):
            for kind in kinds:
                common.progress(f"round {number + 1} of {rounds}: {kind}")
                with tempfile.TemporaryDirectory() as empty:
                    cache = folder if kind == KEPT else empty
                    seconds[kind].append(run(kind, Path(cache)))
    return [
        FirstUse(
            kind,
            *map(statistics.median, zip(*times, strict=True)),
            statistics.median(map(sum, times)),
        )
        for kind, times in seconds.items()
    ]


def table(found: Sequence[FirstUse]) -> str:
    header = ("kernels", "import, s", "fit, s", "score, s", "from import to scores, s")
    lines = [
        (one.kind, *(f"{x:.2f}" for x in (one.imported, one.fitted, one.scored, one.whole)))
        for one in found
    ]
    return common.markdown_table(header, lines)


def targets(found: Sequence[FirstUse]) -> list[Target]:
    whole = {one.kind: one.whole for one in found}
    most = {BUILT: MOST_BUILT, COMPILED: MOST_COMPILED}
    return [
        Target(f"first use, {kind}, s at most", whole[kind], "<=", limit, ".2f")
        for kind, limit in most.items()
        if kind in whole
    ]


def main(arguments: argparse.Namespace) -> int:
    found = time_all(QUICK_ROUNDS if arguments.quick else ROUNDS)
    print(table(found), "\n")
    if found[0].kind != BUILT:
        print("No kernels are built here (make kernels): left out.\n")
    return common.finish(targets(found), "first_use", uses=[asdict(one) for one in found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round: twenty seconds")
    common.run(parser, main)
