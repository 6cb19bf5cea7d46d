"""Cost of a sliding window against its length: a new pane, a thousand rows into it, their scores.

One thread; medians over panes, once the window is full.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import common
from common import Target
from hushtable import Feature, Plan, Schema, SlidingWindow

PANES = (10, 100, 1000)
ROWS, COLUMNS, STEPS = 1000, 20, 200


@dataclass(frozen=True)
class Timing:
    """Seconds of one pane in a full window."""

    panes: int
    roll: float
    add: float
    score: float


def time_window(panes: int, rows: int = ROWS, steps: int = STEPS) -> Timing:
    schema = Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(COLUMNS)])
    window = SlidingWindow(Plan.draw(schema, random_state=0), panes)
    X = np.random.default_rng(0).normal(size=(rows, COLUMNS))
    while len(window.panes) < panes:
        window.add(X[:50]).roll()
    step = {
        "roll": window.roll,
        "add": lambda: window.add(X),
        "score": lambda: window.score_samples(X),
    }
    times = common.in_turns(step, steps, uncounted=0)
    return Timing(panes, *(statistics.median(values) for values in times.values()))


def table(timings: Sequence[Timing]) -> str:
    rows = [
        (f"{t.panes:,}", *(f"{1000 * s:.2f}" for s in (t.roll, t.add, t.score))) for t in timings
    ]
    header = ("panes", "new pane, ms", f"{ROWS:,} rows in, ms", f"{ROWS:,} rows scored, ms")
    return common.markdown_table(header, rows, text=0)


def targets(timings: Sequence[Timing]) -> list[Target]:
    first, last = timings[0], timings[-1]
    claim = f"a step of {last.panes:,} panes, times one of {first.panes:,}"
    ratio = sum((last.roll, last.add, last.score)) / sum((first.roll, first.add, first.score))
    return [Target(claim, ratio, "<=", 1.5, ".2f")]


def main(arguments: argparse.Namespace) -> int:
    timings = [time_window(panes) for panes in PANES]
    print(table(timings))
    return common.finish(targets(timings))


if __name__ == "__main__":
    common.run(argparse.ArgumentParser(description=__doc__), main)
