"""When joining helps a site: its own rows, the others' counts, and both, by labelled sets.

Each labelled set, at most 6,000 rows of it, is divided into a site and all others, without noise,
in ways that sites differ:

alike       50, 100, 200 or 500 random rows
referral    three rows in ten are outliers
case mix    one of three clusters of the inliers, and a third of the outliers
visitors    400 rows of that cluster, 12 of another one, which is common elsewhere, and 12 outliers

The site's own rows are scored by a model of its own, by the others' counts alone, by the counts of
all (one plan for these two, drawn from marginals), and by the one ranking of a home model. Means of
ROC-AUC and average precision, less those of the site's own model, over sets and seeds; +- is the
standard error.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable import HomeModel, HushTable, Plan, Sketch
from hushtable_bench.data import LabelledSet, auc_and_ap, load
from hushtable_bench.results import markdown_table
from hushtable_bench.runner import CaseRun, data_folder, progress

ROWS, QUICK_SETS = 6_000, 3
#: Rows of a site that is like the others, outliers of the others; and outliers that a set has.
ALIKE, LEAST = (50, 100, 200, 500), 20
ELSEWHERE, POOLED, HOME = "elsewhere", "all sites", "home model"
WAYS = (ELSEWHERE, POOLED, HOME)
#: At least, for any kind of site; and for a referral centre: ROC-AUC and average precision.
NEVER, REFERRAL = (-0.01, -0.03), (0.12, 0.10)

Rows = NDArray[np.intp]


class SiteSplit(NamedTuple):
    """A kind of site, and the rows that it has."""

    kind: str
    own: Rows


def splits(data: LabelledSet, seed: int) -> Iterator[SiteSplit]:
    """Yield the sites that a set allows."""
    rng, n = np.random.default_rng(seed), len(data.X)
    order, odd, usual = rng.permutation(n), np.flatnonzero(data.y), np.flatnonzero(~data.y)
    for rows in ALIKE:
        if n >= 4 * rows:
            yield SiteSplit(f"alike, {rows} rows", order[:rows])
    cases = min(60, len(odd) // 2)
    others = min(len(usual) // 4, cases * 7 // 3)
    chosen = rng.choice(odd, cases, replace=False), rng.choice(usual, others, replace=False)
    yield SiteSplit("referral", np.concatenate(chosen))
    Z = (data.X - data.X.mean(axis=0)) / (data.X.std(axis=0) + 1e-9)
    cluster = KMeans(3, n_init=2, random_state=seed).fit_predict(Z[usual])
    largest = np.argsort(-np.bincount(cluster, minlength=3))
    own, other = (usual[cluster == kind] for kind in largest[:2])
    if len(own) > 200 and len(other) > 100:
        sizes = (own, min(400, len(own) // 2)), (other, 12), (odd, min(12, len(odd) // 2))
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield SiteSplit("visitors", np.concatenate(parts))
        sizes = (own, len(own) // 2), (odd, len(odd) // 3), (odd, 0)
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield SiteSplit("case mix", np.concatenate(parts))


def gains(data: LabelledSet, own: Rows) -> list[float]:
    """Return ROC-AUC and average precision of each way, less those of the site's own model."""
    rest = np.setdiff1d(np.arange(len(data.X)), own)
    schema = data.schema()
    marginals = Sketch.from_data(Plan.marginals(schema), data.X)
    plan = Plan.draw(schema, marginals=marginals, random_state=0)
    others = Sketch.from_data(plan, data.X[rest])
    rows, y = data.X[own], data.y[own]
    home = HomeModel.fit(rows, others, random_state=0).scores(rows)
    pooled = HushTable.from_counts(others + Sketch.from_data(plan, rows)).score_samples(rows)
    before = auc_and_ap(y, home.here)
    found = (auc_and_ap(y, scores) for scores in (home.elsewhere, pooled, home.score))
    return [one[key] - before[key] for one in found for key in ("auc", "ap")]


def joining(run: CaseRun, *, data: Path | None = None, seeds: int = 2, quick: bool = False) -> None:
    """All sets in FOLDER and below of --data: three minutes; --quick, three sets and one seed."""
    files = sorted(data_folder(data).rglob("*.npz"))
    found: dict[str, list[list[float]]] = {}
    for path in files[:QUICK_SETS] if quick else files:
        rows = load(path).at_most(ROWS)
        complete = LabelledSet(rows.name, np.nan_to_num(rows.X), rows.y.astype(bool))
        if complete.y.sum() < LEAST:
            continue
        progress(path.stem)
        for seed in range(1 if quick else seeds):
            for kind, own in splits(complete, seed):
                y = complete.y[own]
                if 3 <= y.sum() < len(y):
                    found.setdefault(kind, []).append(gains(complete, own))
    run.say("Less the site's own model: ROC-AUC / average precision.")
    lines = []
    for kind in sorted(found):
        mean = np.mean(found[kind], axis=0).reshape(-1, 2)
        error = np.std(found[kind], axis=0).reshape(-1, 2) / np.sqrt(len(found[kind]))
        cells = [
            f"{a:+.3f} +- {b:.3f} / {c:+.3f} +- {d:.3f}"
            for (a, c), (b, d) in zip(mean, error, strict=True)
        ]
        lines.append((kind, str(len(found[kind])), *cells))
        if not quick:
            least = REFERRAL if kind == "referral" else NEVER
            for which, gain, bound in zip(("ROC-AUC", "AP"), mean[-1], least, strict=True):
                run.hold(f"{kind}, {HOME} less own: {which}", float(gain), ">=", bound)
    run.say(markdown_table(("site", "sites", *WAYS), lines))
    run.figures |= {"gains": found}
