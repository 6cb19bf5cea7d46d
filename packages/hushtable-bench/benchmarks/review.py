"""Time from an answer to the next row in a review, and until all rows are scored.

HushTable on 1e6 normal rows, a thousand of which are moved by 4 in the first column, and are said
to be outliers. An answer is learned, the rows that are kept are scored again, and the next row
comes with values and reasons.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import common
from common import Rows, Target, timed
from hushtable import HushTable
from hushtable.data.readers import as_reader
from hushtable.scores.review import FINE, MOST, OUTLIER, Review

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
    data = Rows.normal(rows, columns)
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


def table(found: Sequence[Waiting]) -> str:
    headers = ["rows", "all scored, s", "next row, median ms", "worst", "list of ten, ms"]
    lines = [
        [w.name, f"{w.scan:.1f}", f"{w.median:.1f}", f"{w.worst:.1f}", f"{w.list_of_ten:.1f}"]
        for w in found
    ]
    return common.markdown_table(headers, lines)


def main(arguments: argparse.Namespace) -> int:
    found = []
    for columns in COLUMNS:
        common.progress(f"{columns} columns")
        found.append(measured(QUICK_ROWS if arguments.quick else ROWS, columns))
    print(f"{VERDICTS} verdicts; the {MOST:,} lowest rows are kept\n")
    print(table(found), end="\n\n")
    targets = [
        Target(f"{w.name}: worst time to the next row, ms", w.worst, "<=", LIMIT, ".1f")
        for w in found
    ]
    return common.finish(targets, "review", waiting=[asdict(w) for w in found])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="50,000 rows, to see that it runs")
    common.run(parser, main)
