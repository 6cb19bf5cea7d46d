"""Measure how reliable ranks and scores are: standard errors, stable rankings, ranks of all sites.

There are three questions, for labelled sets of real rows (at most 5,000 rows of each):

- Standard errors: the spread of a row's score over seeds (and noise), divided by the standard
  error that one model states. 1 is right; below 1, the stated error is too large.
- Stable ranking: how many of the 1% of rows with the lowest scores under one seed are among the
  lowest 1% under another seed.
- Ranks: the difference between the rank from a sum of score histograms and the true rank, for rows
  at the true ranks of .1%, 1%, 5%, and 20%; exact, and released for a tenth of a total epsilon of
  1.
"""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushtable import Feature, HushTable, LSHiTables, Plan, Release, Schema, Sketch
from hushtable.scores.scorer import Ranks, Scorer
from hushtable_bench.data import load
from hushtable_bench.results import Page, ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

SETS = ("23_mammography", "38_thyroid", "6_cardio", "5_campaign")
TRUE_RANKS = (0.001, 0.01, 0.05, 0.2)

Floats = NDArray[np.float64]


def rows_of(path: Path, most: int) -> Floats:
    """Read a set; from a larger set, draw rows with a fixed seed."""
    X = load(path).X.astype(np.float64)
    return X[np.random.default_rng(0).permutation(len(X))[:most]]


def public(X: Floats) -> Schema:
    """Return a schema whose ranges count as public: the benchmark is not about ranges."""
    ends = zip(X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)
    return Schema(
        tuple(Feature.numeric(f"x{j}", low=low, high=high) for j, (low, high) in enumerate(ends))
    )


def fitted(make: type[HushTable] | type[LSHiTables], n_tables: int) -> Callable[..., Scorer]:
    """Return the function that fits a detector under a seed and returns its scorer."""
    # One pass: behind a gate, the stated error is that of a given gate (docs/explanation/score.md).
    settings = {"passes": 1} if make is HushTable else {}

    def scorer(X: Floats, seed: int) -> Scorer:
        return Scorer(make(n_tables=n_tables, random_state=seed, **settings).fit(X).sketch_)

    return scorer


def released(X: Floats, seed: int) -> Scorer:
    """Return the scorer of a release at a total epsilon of 1."""
    plan = Plan.draw(public(X), epsilon=1.0, expected_rows=len(X), random_state=seed)
    return Scorer(Sketch.from_data(plan, X).release(1.0))


METHODS = {
    "LSHiTables, 100": fitted(LSHiTables, 100),
    "HushTable, 100": fitted(HushTable, 100),
    "HushTable, 400": fitted(HushTable, 400),
    "released, epsilon 1": released,
}


def spread(method: str, X: Floats, seeds: int) -> tuple[float, float, float]:
    """Return spread over stated error, of all rows and of the lowest; and the stable share."""
    scores, errors = [], []
    for seed in range(seeds):
        scorer = METHODS[method](X, seed)
        found, error = scorer.score_with_errors(X)
        # A shift of all scores changes no rank.
        scores.append(found - found.mean())
        errors.append(error)
    ratio = np.std(scores, axis=0, ddof=1) / np.sqrt(np.mean(np.square(errors), axis=0))
    few = len(X) // 100
    lowest = np.argsort(np.mean(scores, axis=0))[:few]
    tops = [set(np.argsort(s, kind="stable")[:few].tolist()) for s in scores]
    same = np.mean([len(a & b) / few for a, b in itertools.pairwise(tops)])
    return float(np.median(ratio)), float(np.median(ratio[lowest])), float(same)


def rank_errors(name: str, X: Floats, seeds: int) -> list[tuple[str, ...]]:
    """Return the errors of exact ranks, and of released ones."""
    lines: list[tuple[str, ...]] = []
    for private in (False, True):
        squares = []
        for seed in range(seeds):
            plan = Plan.draw(public(X), epsilon=1.0, expected_rows=len(X), random_state=seed)
            sketch = Sketch.from_data(plan, X)
            counts = sketch.release(0.9) if private else sketch
            scorer = Scorer(counts)
            histogram: Sketch | Release = Sketch.from_data(Plan.ranks(counts), X)
            histogram = histogram.release(1.0) if private else histogram
            scores = np.sort(scorer.score(X))
            at = scores[[max(0, round(share * len(X)) - 1) for share in TRUE_RANKS]]
            true = np.searchsorted(scores, at, side="right") / len(X)
            squares.append((Ranks(histogram, scorer).of(at) - true) ** 2)
        errors = np.sqrt(np.mean(squares, axis=0))
        lines.append((name, "epsilon 1 in all" if private else "no", *(f"{e:.2%}" for e in errors)))
    return lines


def tables(data: dict[str, Floats], seeds: int) -> Page:
    """Measure, and return the tables."""
    found = {}
    for name, X in data.items():
        for method in METHODS:
            progress(f"{name}: {method}")
            found[name, method] = spread(method, X, seeds)
    parts: Page = []
    for which, (title, form) in enumerate(
        (
            ("Spread over seeds, in stated standard errors, of the median row", ".2f"),
            ("The same of the 1% of rows with the lowest scores", ".2f"),
            ("Share of the lowest 1% under one seed that is so under another", ".0%"),
        )
    ):
        lines = [
            (name, *(format(found[name, method][which], form) for method in METHODS))
            for name in data
        ]
        parts += [title, ResultTable(("set", *METHODS), lines)]
    header = ("set", "released", *(f"at {share:.1%}" for share in TRUE_RANKS))
    lines = [line for name, X in data.items() for line in rank_errors(name, X, seeds)]
    return [*parts, "Error of ranks, root mean square", ResultTable(header, lines, text=2)]


def ranks(
    run: CaseRun,
    *,
    sets: Sequence[str] = SETS,
    data: Path | None = None,
    seeds: int = 20,
    rows: int = 5_000,
) -> None:
    """Measure standard errors, stable ranking and the errors of ranks, on --sets by name."""
    folder = data_folder(data)
    run.say(*tables({name: rows_of(folder / f"{name}.npz", rows) for name in sets}, seeds))
