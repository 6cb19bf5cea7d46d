"""Measure the time to wait for rows and answers: a sliding window, and a review.

`streams`: the time for a new pane, for counting a thousand rows in it, and for their scores, by the
window's length, with one thread; medians over panes after the window is full. `review`: the time
from an answer to the next row, and until all rows are scored, for HushTable on 1e6 normal rows. A
thousand of them are moved by 4 in the first column, and get the answer outlier. The model learns an
answer, scores the kept rows again, and returns the next row with values and reasons.
"""

import statistics
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushtable import Feature, HushTable, Plan, Schema, SlidingWindow
from hushtable.data.readers import as_reader
from hushtable.scores.review import FINE, MOST, OUTLIER, Review
from hushtable_bench.runner import CaseRun, RowSource, in_turns, progress, timed

PANES = (10, 100, 1000)
PANE_ROWS, PANE_COLUMNS, STEPS = 1000, 20, 200


@dataclass(frozen=True)
class WindowTiming:
    """Seconds of one pane in a full window."""

    panes: int
    roll: float
    add: float
    score: float

    @property
    def ms(self) -> tuple[float, float, float]:
        """Milliseconds of the three."""
        return 1e3 * self.roll, 1e3 * self.add, 1e3 * self.score


def time_window(panes: int, rows: int = PANE_ROWS, steps: int = STEPS) -> WindowTiming:
    schema = Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(PANE_COLUMNS)])
    window = SlidingWindow(Plan.draw(schema, random_state=0), panes)
    X = np.random.default_rng(0).normal(size=(rows, PANE_COLUMNS))
    while len(window.panes) < panes:
        window.add(X[:50]).roll()
    step = {
        "roll": window.roll,
        "add": lambda: window.add(X),
        "score": lambda: window.score_samples(X),
    }
    times = in_turns(step, steps, uncounted=0)
    return WindowTiming(panes, *(statistics.median(values) for values in times.values()))


COLUMNS = (10, 30)
ROWS, QUICK_ROWS, MOVED = 1_000_000, 50_000, 1_000
VERDICTS = 60
#: Milliseconds at most.
LIMIT = 50.0


@dataclass(frozen=True)
class Waiting:
    """Milliseconds from an answer to the next row, and for a list of ten; seconds of the scan."""

    name: str
    scan: float
    median: float
    worst: float
    list_of_ten: float


def measured(rows: int, columns: int) -> Waiting:
    data = RowSource.normal(rows, columns)
    X = data.load()
    X[:MOVED, 0] += 4.0
    detector = HushTable(random_state=0, n_jobs=-1).fit(X)
    usual = detector._usual_values()
    scan, review = timed(partial(Review, detector._scorer, as_reader(X), usual=usual, n_jobs=-1))
    times = []

    def step() -> None:
        review.answer(row, OUTLIER if row.row < MOVED else FINE)
        review.next()

    for _ in range(VERDICTS):
        row = review.next()
        assert row is not None
        times.append(1e3 * timed(step)[0])
    listed = 1e3 * timed(review.list_of)[0]
    return Waiting(data.name, scan, statistics.median(times), max(times), listed)


def streams(run: CaseRun, *, quick: bool = False) -> None:
    """Measure the cost of a sliding window by its length."""
    panes = (2, 5) if quick else PANES
    found = [time_window(n, 50, 3) if quick else time_window(n) for n in panes]
    run.table(
        {
            "panes": "{t.panes:,}", "new pane, ms": "{t.ms[0]:.2f}",
            f"{PANE_ROWS:,} rows in, ms": "{t.ms[1]:.2f}",
            f"{PANE_ROWS:,} rows scored, ms": "{t.ms[2]:.2f}",
        }, found, text=0,
    )  # fmt: skip
    first, last = found[0], found[-1]
    claim = f"a step of {last.panes:,} panes, times one of {first.panes:,}"
    run.hold(claim, sum(last.ms) / sum(first.ms), "<=", 1.5, ".2f")


def review(run: CaseRun, *, quick: bool = False) -> None:
    """Measure the time from an answer to the next row in a review."""
    found = []
    for columns in COLUMNS:
        progress(f"{columns} columns")
        found.append(measured(QUICK_ROWS if quick else ROWS, columns))
    run.say(f"{VERDICTS} verdicts; the {MOST:,} lowest rows are kept")
    run.table(
        {
            "rows": "{t.name}", "all scored, s": "{t.scan:.1f}",
            "next row, median ms": "{t.median:.1f}", "worst": "{t.worst:.1f}",
            "list of ten, ms": "{t.list_of_ten:.1f}",
        }, found,
    )  # fmt: skip
    for w in found:
        run.hold(f"{w.name}: worst time to the next row, ms", w.worst, "<=", LIMIT, ".1f")
    run.figures["waiting"] = found
