"""What privacy costs by the number of rows: ROC-AUC against the total epsilon.

Takes random rows of labelled sets (HUSHTABLE_DATA) of 20,000 rows or more, with the set's share
of outliers, counts and scores them: by the default fit, by one pass without noise, and by a
release (marginals first where that pays, as a site does), beside the same tables without noise.
Seeds draw rows, plans and no noise.

    python benchmarks/rows.py            up to 100,000 rows, 3 seeds: a few minutes
    python benchmarks/rows.py --quick    up to 3,000 rows, 1 seed
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import common
from common import LabelledSet
from hushtable import HushTable, Release, Schema, Sketch
from hushtable.errors import DataError
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import auc, find_sets
from hushtable_bench.privacy import DELTA, released

ROWS, QUICK_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000), (1_000, 3_000)
EPSILONS = (10.0, 3.0, 1.0, 0.1)
#: Rows that a set must have.
LARGE = 20_000
DEFAULT, EXACT = "default fit", "one pass, no noise"
PRIVATE = tuple(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
#: The tables that an epsilon is given, counted without noise.
QUIET = tuple(f"{way}'s tables, no noise" for way in PRIVATE)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """ROC-AUC of one way on some rows of a set, in points."""

    data: str
    rows: int
    way: str
    seed: int
    auc: float


def large_sets(folder: Path) -> list[LabelledSet]:
    """Return the sets with enough rows."""
    found = [data for path in find_sets(folder) if len((data := common.load(path)).X) >= LARGE]
    if not found:
        raise DataError(f"{folder} holds no labelled set of {LARGE:,} rows: needs one or more")
    return found


def some_rows(data: LabelledSet, rows: int, seed: int) -> LabelledSet:
    """Return random rows with the set's share of outliers, one at least."""
    rng = np.random.default_rng(seed)
    outliers = max(1, round(rows * data.y.mean()))
    chosen = [
        rng.choice(np.flatnonzero(data.y == label), n, replace=False)
        for label, n in ((True, outliers), (False, rows - outliers))
    ]
    return data.take(np.sort(np.concatenate(chosen)))


def measure(sets: Sequence[LabelledSet], sizes: Sequence[int], seeds: int) -> Iterator[Run]:
    """Yield a run of each way on each size of each set that has so many rows."""
    for data in sets:
        for rows in (n for n in sizes if n <= len(data.X)):
            common.progress(f"{data.name}: {rows:,} rows")
            for seed in range(seeds):
                some = some_rows(data, rows, seed)
                for way, scores in _scores(some, seed):
                    yield Run(data.name, rows, way, seed, 100 * auc(some.y, scores))


def _scores(data: LabelledSet, seed: int) -> Iterator[tuple[str, Floats]]:
    X, schema = data.X, data.schema()
    yield DEFAULT, HushTable(random_state=seed).fit(X).score_samples(X)
    yield EXACT, HushTable(passes=1, random_state=seed).fit(X).score_samples(X)
    for epsilon, way, quiet in zip(EPSILONS, PRIVATE, QUIET, strict=True):
        private, exact = _both(X, schema, epsilon, seed)
        yield way, private.score(X)
        yield quiet, exact.score(X)


def _both(X: Floats, schema: Schema, epsilon: float, seed: int) -> tuple[Scorer, Scorer]:
    """Return the scorers of a release, and of the counts that the noise was added to."""
    counted: list[Sketch] = []

    def release(sketch: Sketch) -> Release:
        counted.append(sketch)
        return sketch.release(epsilon, DELTA)

    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(X)}
    found = released(X, schema, seed, release, **terms)
    return Scorer(found), Scorer(counted[-1])  # the marginals come before the tables


def by_set(runs: Sequence[Run], rows: int, ways: Sequence[str]) -> Floats:
    """Return means over the seeds (sets, ways) at one number of rows."""
    alike = [run for run in runs if run.rows == rows]
    names = dict.fromkeys(run.data for run in alike)
    return np.array([
        [np.mean([r.auc for r in alike if (r.data, r.way) == (name, way)]) for way in ways]
        for name in names
    ])  # fmt: skip


def _with_error(values: Floats) -> str:
    """Write a mean ± its standard error; of one set, nothing says how far others differ."""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{error}"


def tables(runs: Sequence[Run]) -> str:
    """Lay out mean AUC, and what is lost against the default fit, and to the noise alone."""
    means, lost, noise = [], [], []
    sets: dict[str, str] = {}
    for rows in sorted({run.rows for run in runs}):
        ways = DEFAULT, EXACT, *PRIVATE
        found, quiet = by_set(runs, rows, ways), by_set(runs, rows, QUIET)
        first = f"{rows:,}", len(found)
        means.append((*first, *(f"{value:.1f}" for value in found.mean(axis=0))))
        lost.append((*first, *map(_with_error, (found[:, :1] - found[:, 1:]).T)))
        noise.append((*first, *map(_with_error, (quiet - found[:, 2:]).T)))
        names = ", ".join(dict.fromkeys(run.data for run in runs if run.rows == rows))
        sets.setdefault(names, first[0])
    head = "rows", "sets"
    parts = (
        "Mean ROC-AUC, in points",
        common.markdown_table((*head, DEFAULT, EXACT, *PRIVATE), means),
        "Points lost against the default fit of the same rows ± standard error over sets",
        common.markdown_table((*head, EXACT, *PRIVATE), lost),
        "Points lost to the noise, against the same tables without ± standard error over sets",
        common.markdown_table((*head, *PRIVATE), noise),
        # Lines of other sets are not to be compared.
        "\n".join(f"- Sets from {rows} rows on: {names}" for names, rows in sets.items()),
    )
    return "\n\n".join(parts)


def main(arguments: argparse.Namespace) -> int:
    """Measure, print and keep."""
    sets = large_sets(common.data_folder(arguments.data))
    quick = arguments.quick
    runs = list(measure(sets, QUICK_ROWS if quick else ROWS, 1 if quick else arguments.seeds))
    print(tables(runs))
    return common.finish([], "rows", runs=[asdict(run) for run in runs])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of labelled sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="up to 3,000 rows, 1 seed")
    common.run(parser, main)
