"""Rows with one value beyond its range: their ranks, here and with other detectors.

The case takes an ordinary row of a labelled set, moves one of its columns beyond the range of the
data, and ranks it among all rows, for each column in turn and on both sides. A rank is the share of
the rows with lower scores: 0 for the most unusual row.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyod.models.ecod import ECOD
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.scores import Scorer
from hushtable_bench.data import LabelledSet, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

Floats = NDArray[np.float64]
Scores = Callable[[Floats], Floats]

SETS = (
    "4_breastw", "6_cardio", "7_Cardiotocography", "10_cover", "11_donors", "15_Hepatitis",
    "21_Lymphography", "23_mammography", "27_PageBlocks", "28_pendigits", "29_Pima", "32_shuttle",
    "33_skin", "37_Stamps", "38_thyroid", "39_vertebral", "41_Waveform", "43_WDBC", "45_wine",
    "47_yeast",
)  # fmt: skip
#: Distances beyond the end of the range, in ranges: 1.1, 2, and 100 ranges from the other end, and
#: from this end. The first is the end itself.
BEYOND = (0.0, 0.1, 1.0, 1.1, 2.0, 99.0, 100.0)
#: Copies of ordinary rows for each place, and the number of columns of a set that are moved.
COPIES, COLUMNS = 5, 30
WIDE = 4.0
SEEDS = 5


def moved(X: Floats, y: NDArray[np.bool_]) -> Floats:
    """Return rows (columns, 2 sides, copies, places, d) with one value at each place."""
    rng = np.random.default_rng(0)
    low, high = X.min(axis=0), X.max(axis=0)
    varying = np.flatnonzero(high > low)
    columns = np.sort(rng.permutation(varying)[:COLUMNS])
    # Ordinary by label, so that no detector decides which rows are ordinary.
    found = X[rng.choice(np.flatnonzero(~y), COPIES * len(columns))]
    copies = found.reshape(len(columns), 1, COPIES, 1, -1)
    rows = np.tile(copies, (1, 2, 1, len(BEYOND), 1))
    steps = np.array(BEYOND)
    for k, j in enumerate(columns):
        width = high[j] - low[j]
        rows[k, 0, :, :, j] = low[j] - steps * width
        rows[k, 1, :, :, j] = high[j] + steps * width
    return rows


def schema(X: Floats, wide: float) -> Schema:
    """Return public ranges around the data's ranges, ``wide`` times as wide."""
    middle, half = (X.min(axis=0) + X.max(axis=0)) / 2, np.ptp(X, axis=0) / 2 * wide
    return Schema(
        tuple(
            Feature.numeric(f"x{j}", low=float(m - h), high=float(m + h))
            for j, (m, h) in enumerate(zip(middle, half, strict=True))
        ),
        named=False,
    )


def fitted(passes: int) -> Callable[[Floats, int], Scores]:
    """Return the function that fits exact counts."""
    return lambda X, seed: HushTable(passes=passes, random_state=seed).fit(X).score_samples


def released(wide: float) -> Callable[[Floats, int], Scores]:
    """Return the function that fits counts with noise."""

    def fit(X: Floats, seed: int) -> Scores:
        terms = {"epsilon": 1.0, "expected_rows": len(X), "random_state": seed}
        plan = Plan.draw(schema(X, wide), **terms)
        return Scorer(Sketch.from_data(plan, X).release(1.0)).score

    return fit


def peer(make: Callable[[int], Any]) -> Callable[[Floats, int], Scores]:
    """Return the function that fits another library's detector, with low scores for outliers."""

    def fit(X: Floats, seed: int) -> Scores:
        model = make(seed).fit(X)
        if hasattr(model, "score_samples"):
            return model.score_samples
        return lambda rows: -model.decision_function(rows)

    return fit


OURS = {
    "HushTable, one pass": fitted(1),
    "HushTable, two passes": fitted(2),
    "released at epsilon 1": released(1.0),
    f"released, ranges {WIDE:g} times as wide": released(WIDE),
}
PEERS = {
    "IsolationForest": peer(lambda seed: IsolationForest(random_state=seed)),
    "ECOD": peer(lambda seed: ECOD()),
    "KNN": peer(lambda seed: KNN()),
}


def measure(
    data: LabelledSet, fit: Callable[[Floats, int], Scores], seeds: int
) -> tuple[Floats, float]:
    """Return ranks (columns, 2, places), and the share of rows beyond that score above the end."""
    rows = moved(data.X, data.y)
    ranks, scores = [], []
    for seed in range(seeds):
        score = fit(data.X, seed)
        among = np.sort(score(data.X))
        found = score(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:-1])
        ranks.append(np.searchsorted(among, found) / len(among))
        scores.append(found)
    mean = np.mean(scores, axis=0)
    above = (mean[..., 1:] > mean[..., :1]).mean()
    return np.median(np.mean(ranks, axis=0), axis=2), float(above)


def beyond(
    run: CaseRun, *, data: Path | None = None, rows: int = 20_000, quick: bool = False
) -> None:
    """Use 20 sets and 5 seeds; --quick, 4 sets and 2 seeds."""
    folder, seeds = data_folder(data), 2 if quick else SEEDS
    names = SETS[:: len(SETS) // 4][:4] if quick else SETS
    sets = [load(folder / f"{name}.npz").at_most(rows) for name in names]
    lines = []
    for method, fit in {**OURS, **PEERS}.items():
        progress(method)
        repeats = seeds if method in OURS else (2 if method == "IsolationForest" else 1)
        found = [measure(one, fit, repeats) for one in sets]
        by_set = np.array([np.median(ranks, axis=(0, 1)) for ranks, _ in found])
        every = np.concatenate([ranks.reshape(-1, len(BEYOND)) for ranks, _ in found])
        above = float(np.mean([share for _, share in found]))
        median = np.median(by_set, axis=0)
        figures = {"median": median, "worst set": by_set.max(axis=0)}
        figures["within 1%"] = (every <= 0.01).mean(axis=0)
        for which, values in figures.items():
            lines.append((method, which, *(f"{v:.2%}" for v in values), f"{above:.2%}"))
        if (
            method in OURS and "wide" not in method
        ):  # at the end of the range, little noise is beyond it
            run.hold(f"{method}: above the end of the range", above, "<=", 0.0)
            run.hold(f"{method}: median rank beyond", float(median[1:].max()), "<=", 0.01)
    header = ("detector", "rank", *(f"{b:g}" for b in BEYOND), "above the end")
    run.say(f"Ranges beyond the end, {len(names)} sets, up to {rows:,} rows")
    run.say(ResultTable(header, lines, text=2))
    run.figures |= {"header": header, "lines": lines}
