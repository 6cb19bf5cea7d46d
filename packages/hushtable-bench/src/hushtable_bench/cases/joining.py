"""Measure when joining helps a site: models of its own rows, of others' counts, and of both.

Each labelled set (at most 6,000 of its rows) is divided into a site and all others, without noise,
in the ways in which sites differ:

alike       50, 100, 200 or 500 random rows
referral    three rows in ten are outliers
case mix    one of three clusters of the inliers, and a third of the outliers
visitors    400 rows of that cluster, 12 of another cluster, which is common elsewhere, and 12
            outliers

The site's own rows are scored by its own model, by the others' counts alone, by the counts of all
(one plan for these two, drawn from marginals), and by the single ranking of a home model. The
figures are means of ROC-AUC and average precision over sets and seeds, minus those of the site's
own model; +- is the standard error.

``joining_released`` does the same under noise, for one of 5 or 20 similar sites that have n rows
together and share the noise of a total epsilon (histograms first, if these pay). T is n divided by
the noise of a count; below 28, noise hides all thresholds.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable import HomeModel, HushTable, Plan, Sketch
from hushtable.privacy import Design
from hushtable_bench.data import LabelledSet, auc_and_ap, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

ROWS, QUICK_SETS = 6_000, 3
#: Rows of a site that is like the others, outliers of the others; and outliers that a set has.
ALIKE, LEAST = (50, 100, 200, 500), 20
ELSEWHERE, POOLED, HOME = "elsewhere", "all sites", "home model"
WAYS = (ELSEWHERE, POOLED, HOME)
#: At least, for any kind of site; and for a referral centre: ROC-AUC and average precision.
NEVER, REFERRAL = (-0.01, -0.03), (0.12, 0.10)

#: Rows of all sites, sites, and totals of epsilon; the T from which on the others' counts are to
#: add something.
TOGETHER, SITES, EPSILONS, ENOUGH = (
    (500, 2_000, 6_000, 20_000, 50_000),
    (5, 20),
    (1.0, 0.3, 0.1),
    28,
)

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]


class SiteSplit(NamedTuple):
    """A kind of site, and its rows."""

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
    """Return ROC-AUC and average precision of each way, minus those of the site's own model."""
    rest = np.setdiff1d(np.arange(len(data.X)), own)
    schema = data.schema()
    marginals = Sketch.from_data(Plan.marginals(schema), data.X)
    plan = Plan.draw(schema, marginals=marginals, random_state=0)
    others = Sketch.from_data(plan, data.X[rest])
    rows, y = data.X[own], data.y[own]
    home = HomeModel.fit(rows, others, random_state=0).scores(rows)
    pooled = HushTable.from_counts(others + Sketch.from_data(plan, rows)).score_samples(rows)
    return _less(y, home.here, home.elsewhere, pooled, home.score)


def _less(y: NDArray[np.bool_], own: Scores, *others: Scores) -> list[float]:
    """Return ROC-AUC and average precision of each other model, minus those of its own."""
    before = auc_and_ap(y, own)
    found = (auc_and_ap(y, scores) for scores in others)
    return [one[key] - before[key] for one in found for key in ("auc", "ap")]


def joining(run: CaseRun, *, data: Path | None = None, seeds: int = 2, quick: bool = False) -> None:
    """Use all sets below the FOLDER of --data: three minutes; --quick, three sets and one seed."""
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
    run.say("Minus the site's own model: ROC-AUC / average precision.")
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
    run.say(ResultTable(("site", "sites", *WAYS), lines))
    run.figures |= {"gains": found}


def released_gains(
    data: LabelledSet, own: Rows, epsilon: float, seed: int
) -> tuple[float, list[float]]:
    """Return T, and the gains of the result and of a home model by the others' release."""
    X, n, schema = data.X, len(data.X), data.schema()
    terms = {"epsilon": epsilon, "expected_rows": n}
    design, marginals = Design(epsilon, 1e-6, n), None
    if design.pays_marginals(len(schema)):
        marginals = Sketch.from_data(Plan.marginals(schema, **terms), X).release(epsilon)
    plan = Plan.draw(schema, marginals=marginals, random_state=seed, **terms)
    others = Sketch.from_data(plan, np.delete(X, own, axis=0)).release(epsilon)
    result = HushTable.from_counts(Sketch.from_data(plan, X).release(epsilon))
    rows = X[own]
    home = HomeModel.fit(rows, others, random_state=seed).scores(rows)
    return design.signal, _less(data.y[own], home.here, result.score_samples(rows), home.score)


def joining_released(
    run: CaseRun, *, data: Path | None = None, seeds: int = 2, quick: bool = False
) -> None:
    """Use all sets below the FOLDER of --data: ten minutes; --quick, two sets and one epsilon."""
    files = sorted(data_folder(data).rglob("*.npz"))
    found: dict[tuple[float, int, int], list[list[float]]] = {}
    signal: dict[tuple[float, int, int], float] = {}
    for path in files[:2] if quick else files:
        whole = load(path)
        complete = LabelledSet(whole.name, np.nan_to_num(whole.X), whole.y.astype(bool))
        progress(path.stem)
        for n, seed in itertools.product(TOGETHER, range(seeds)):
            if len(whole.X) < n or complete.y.sum() < LEAST:
                continue
            rows = np.random.default_rng((n, seed)).permutation(len(whole.X))[:n]
            some = complete.take(rows)
            for sites, epsilon in itertools.product(SITES, EPSILONS[: 1 if quick else None]):
                own, line = np.arange(n // sites), (epsilon, n, sites)
                if 2 <= some.y[own].sum() < len(own):
                    signal[line], gain = released_gains(some, own, epsilon, seed)
                    found.setdefault(line, []).append(gain)
    _report_released(run, found, signal)


def _report_released(
    run: CaseRun,
    found: dict[tuple[float, int, int], list[list[float]]],
    signal: dict[tuple[float, int, int], float],
) -> None:
    """Print a line for each size, and judge them."""
    run.say("Minus the site's own model: ROC-AUC / average precision.")
    lines, worst, means, sites_of_enough = [], 0.0, [], []
    for line, gain in sorted(found.items(), key=lambda one: (-one[0][0], *one[0][1:])):
        mean, error = np.mean(gain, axis=0), np.std(gain, axis=0) / np.sqrt(len(gain))
        epsilon, n, sites = line
        cells = [
            f"{a:+.4f} +- {b:.4f} / {c:+.4f} +- {d:.4f}"
            for (a, c), (b, d) in zip(mean.reshape(-1, 2), error.reshape(-1, 2), strict=True)
        ]
        lines.append((f"{epsilon:g}", f"{n:,}", str(sites), f"{signal[line]:.0f}",
                      str(len(gain)), *cells))  # fmt: skip
        worst = min(worst, float((mean + error)[2:].min()))
        if signal[line] >= ENOUGH:
            means.append(mean)
            sites_of_enough += gain
    run.say(ResultTable(("epsilon", "rows", "sites", "T", "sets", "result", HOME), lines, text=3))
    run.hold("any line, home model less own, plus a standard error", worst, ">=", -1e-4)
    for mean_over, gain in (("sites", sites_of_enough), ("lines", means)):
        if gain:
            result, home = np.mean(gain, axis=0).reshape(-1, 2)
            over = f"T of {ENOUGH} or more, mean over {mean_over}"
            for which, a, b in zip(("ROC-AUC", "AP"), home, result, strict=True):
                run.hold(f"{over}, home model less own: {which}", float(a), ">=", 0.0)
                run.hold(f"{over}, less the result: {which}", float(a - b), ">=", 0.0)
    run.figures |= {"gains": {str(line): gain for line, gain in found.items()}}
