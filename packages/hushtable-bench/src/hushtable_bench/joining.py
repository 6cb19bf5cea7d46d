"""Measure what a site gains by joining others.

Each labelled set is divided into a site and all others, without noise: a site like the others
(*alike*), a *referral* centre with three outliers in ten rows, a site with one of three clusters of
the inliers (*case mix*), and such a site with 12 *visitors* of another cluster. Figures of a model
are means of ROC-AUC and average precision minus those of the site's own model.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable import HushTable, Plan, Sketch
from hushtable.cli.result import CommandResult
from hushtable_bench.data import LabelledSet, auc_and_ap, data_folder, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import FOLDER, CaseRun, progress
from hushtable_federation import HomeModel

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def complete(data: LabelledSet) -> LabelledSet:
    """Return the set without missing values, for splits by distances."""
    return LabelledSet(data.name, np.nan_to_num(data.X), data.y.astype(bool))


def clusters_of(X: Floats, number: int, among: Rows, seed: int = 0) -> Rows:
    """Return the cluster of some rows by their standardized columns."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    clusters: Rows = KMeans(number, n_init=2, random_state=seed).fit_predict(Z[among])
    return clusters


#: Rows of a set at most.
ROWS, QUICK_SETS = 6_000, 3
#: Rows of a site that is like the others, outliers of the others; and outliers that a set has.
ALIKE, LEAST = (50, 100, 200, 500), 20
HOME = "home model"
#: At least, for any kind of site; and for a referral centre: ROC-AUC and average precision.
NEVER, REFERRAL = (-0.01, -0.03), (0.12, 0.10)


def splits(data: LabelledSet, seed: int) -> Iterator[tuple[str, Rows]]:
    """Yield the sites that a set allows: kinds, and their rows."""
    rng, n = np.random.default_rng(seed), len(data.X)
    order, odd, usual = rng.permutation(n), np.flatnonzero(data.y), np.flatnonzero(~data.y)
    for rows in ALIKE:
        if n >= 4 * rows:
            yield f"alike, {rows} rows", order[:rows]
    cases = min(60, len(odd) // 2)
    others = min(len(usual) // 4, cases * 7 // 3)
    chosen = rng.choice(odd, cases, replace=False), rng.choice(usual, others, replace=False)
    yield "referral", np.concatenate(chosen)
    cluster = clusters_of(data.X, 3, usual, seed)
    largest = np.argsort(-np.bincount(cluster, minlength=3))
    mine, other = (usual[cluster == kind] for kind in largest[:2])
    if len(mine) > 200 and len(other) > 100:
        sizes = (mine, min(400, len(mine) // 2)), (other, 12), (odd, min(12, len(odd) // 2))
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield "visitors", np.concatenate(parts)
        sizes = (mine, len(mine) // 2), (odd, len(odd) // 3), (odd, 0)
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield "case mix", np.concatenate(parts)


def gains(data: LabelledSet, mine: Rows) -> list[float]:
    """Return ROC-AUC and average precision of each way, minus those of the site's own model."""
    rest = np.setdiff1d(np.arange(len(data.X)), mine)
    schema = data.schema()
    marginals = Sketch.from_data(Plan.marginals(schema), data.X)
    plan = Plan.draw(schema, marginals=marginals, random_state=0)
    others = Sketch.from_data(plan, data.X[rest])
    rows, y = data.X[mine], data.y[mine]
    home = HomeModel.fit(rows, others, random_state=0).scores(rows)
    pooled = HushTable.from_counts(others + Sketch.from_data(plan, rows)).score_samples(rows)
    before = auc_and_ap(y, home.here)
    figures = (auc_and_ap(y, scores) for scores in (home.elsewhere, pooled, home.score))
    return [figure[key] - before[key] for figure in figures for key in ("auc", "ap")]


def joining(
    data: Path | None = None, seeds: int = 4, quick: bool = False, output: Path = FOLDER
) -> CommandResult:
    """Measure what a site gains by the counts of others.

    All sets below the folder count, without noise. The whole takes five minutes.
    """
    run = CaseRun("joining", output)
    files = sorted(data_folder(data).rglob("*.npz"))
    gained: dict[str, list[list[float]]] = {}
    for path in files[:QUICK_SETS] if quick else files:
        rows = complete(load(path).at_most(ROWS))
        if rows.y.sum() < LEAST:
            continue
        progress(path.stem)
        for seed in range(1 if quick else seeds):
            for kind, mine in splits(rows, seed):
                y = rows.y[mine]
                if 3 <= y.sum() < len(y):
                    gained.setdefault(kind, []).append(gains(rows, mine))
    run.say("Minus the site's own model: ROC-AUC / average precision.")
    lines = []
    for kind in sorted(gained):
        mean = np.mean(gained[kind], axis=0).reshape(-1, 2)
        error = np.std(gained[kind], axis=0).reshape(-1, 2) / np.sqrt(len(gained[kind]))
        cells = [
            f"{a:+.3f} +- {b:.3f} / {c:+.3f} +- {d:.3f}"
            for (a, c), (b, d) in zip(mean, error, strict=True)
        ]
        lines.append((kind, str(len(gained[kind])), *cells))
        if not quick:
            least = REFERRAL if kind == "referral" else NEVER
            for which, gain, bound in zip(("ROC-AUC", "AP"), mean[-1], least, strict=True):
                run.hold(f"{kind}, {HOME} less own: {which}", float(gain), ">=", bound)
    run.say(ResultTable(("site", "sites", "elsewhere", "all sites", HOME), lines))
    return run.finish()
