"""Accuracy as sites join, with noise shared under masks, noise of every site, or the paper's noise.

The total epsilon of a row is always 1, at delta 1e-6 (for the paper's noise, delta is 0). Rows are
assigned to the sites at random. Ranges are the data's own, as if they were public, for all alike.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.release import LocalModel, Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.privacy.accounting import GAUSSIAN
from hushtable.privacy.budget import calibrated_scale, part_scale
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity, add_noise
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import LabelledSet, auc
from hushtable_bench.paper.experiments import local_counts, noised_values, papers_plan
from hushtable_bench.privacy import released
from hushtable_bench.results import Page, Promise, Results, ResultTable, Row, Step, spread

SITES = (2, 4, 6, 8, 10, 20, 50, 100)
SETS = ("BreastW", "Cardio", "Pendigits", "Mnist")
MASKED, WHOLE, PAPERS = "masks, shared noise", "noise of every site", "the paper's mechanism"
CURVES = (MASKED, WHOLE, PAPERS)
#: Numbers of sites at which local models are compared, and the measure of the comparison.
LOCAL_AT = (2, 10)
LOCAL, SHARED = "local model", "shared model"
EPSILON, DELTA = 1.0, 1e-6
#: Range, in points of ROC-AUC, in which the masked curve has to stay.
FLAT = 1.0


def steps(data: LabelledSet, seeds: int) -> Iterator[Step]:
    """Yield the steps of the benchmark on one set."""
    for seed in range(seeds):
        yield Step("sites", data.name, "ours", seed, partial(_ours, data, seed))
        yield Step("sites", data.name, "papers", seed, partial(_papers, data, seed))
        yield Step("local", data.name, "local", seed, partial(_local, data, seed))


# --- ours ---------------------------------------------------------------------------------------


def _ours(data: LabelledSet, seed: int) -> list[Row]:
    rows = []
    for k in SITES:
        for system in (MASKED, WHOLE):
            merged, _ = _merged(data, k, seed, masked=system == MASKED)
            value = auc(data.y, Scorer(merged).score(data.X))
            rows.append(_row(system, k, value) | {"total_epsilon": merged.ledger.epsilon})
    return rows


def _merged(
    data: LabelledSet, k: int, seed: int, *, masked: bool, apart: bool = False
) -> tuple[Release, list[NDArray[np.int64]]]:
    """Return the result of a round of k sites: marginals first if they pay, then tables.

    With ``apart``, also each site's noise on the tables.
    """
    noises: list[NDArray[np.int64]] = []

    def release(sketch: Sketch) -> Release:
        noised, noises[:] = _noised(sketch, k, masked, apart)
        return noised

    terms = {"epsilon": EPSILON, "delta": DELTA, "expected_rows": len(data.X)}
    sites = 1 if masked else k
    return released(data.X, data.schema(), seed, release, sites=sites, **terms), noises


def _noised(
    sketch: Sketch, k: int, masked: bool, apart: bool
) -> tuple[Release, list[NDArray[np.int64]]]:
    """Add the noise of k sites to their sum.

    All noise is drawn at once unless ``apart``, because a sum of discrete Gaussians is a discrete
    Gaussian to within 1e-15.
    """
    plan = sketch.plan
    sensitivity = Sensitivity(plan.family.n_histograms)
    before = Cost.total(spent.cost for spent in plan.behind)
    scale = calibrated_scale(
        "discrete-gaussian", sensitivity, epsilon=EPSILON, delta=DELTA, before=before,
        share=plan.share_of_budget,
    )  # fmt: skip
    pool = Pool("benchmark", k, k - 1) if masked else None
    if masked:
        scale = part_scale(scale, k - 1)
    shares = tuple(Share(f"site {i}", scale, "") for i in range(k))
    ledger = Ledger("discrete-gaussian", sensitivity, DELTA, shares, plan.behind, pool, GAUSSIAN)
    nothing = np.zeros_like(sketch.counts)
    parts = [
        add_noise(nothing, "discrete-gaussian", scale * np.sqrt(1 if apart else k))
        for _ in range(k if apart else 1)
    ]
    return Release(plan, sketch.counts + np.sum(parts, axis=0), ledger), parts


# --- the paper's --------------------------------------------------------------------------------


def _papers(data: LabelledSet, seed: int) -> list[Row]:
    """Score by LSH iTables with Laplace noise of scale 1 / .01 from each site, as in its Table 4.

    If a site has more than 1,000 rows, a table samples 1,000 of them, drawn again each time; the
    ledger would then count twice the epsilon, but this comparison favours the paper.
    """
    order = np.random.default_rng(seed).permutation(len(data.X))
    rows = []
    for k in SITES:
        parts = np.array_split(order, k)
        plan = papers_plan(data, "LSH iTables", max(map(len, parts)), seed)
        values = noised_values(plan, data, local_counts(plan, data, parts, None), EPSILON / 100)
        scores = plan.family.sum(Encoder(plan.schema).encode(data.X), values)
        rows.append(_row(PAPERS, k, auc(data.y, scores)) | {"total_epsilon": EPSILON})
    return rows


# --- local models -------------------------------------------------------------------------------


def _local(data: LabelledSet, seed: int) -> list[Row]:
    """Score each site's own rows with the shared result and with its own local model."""
    rows = []
    for k in LOCAL_AT:
        merged, noises = _merged(data, k, seed, masked=True, apart=True)
        order = np.random.default_rng(seed).permutation(len(data.X))
        shared = Scorer(merged).score(data.X)
        found: dict[str, list[float]] = {SHARED: [], LOCAL: []}
        for i, part in enumerate(np.array_split(order, k)):
            if not 0 < data.y[part].sum() < len(part):
                continue
            exact = Sketch.from_data(merged.plan, data.X[part]).counts
            local = LocalModel.of(merged, f"site {i}", exact + noises[i], exact)
            found[SHARED].append(auc(data.y[part], shared[part]))
            found[LOCAL].append(auc(data.y[part], Scorer(local).score(data.X[part])))
        rows += [_row(system, k, float(np.mean(aucs))) for system, aucs in found.items()]
    return rows


def _row(system: str, k: int, value: float) -> Row:
    return {"system": system, "setting": float(k), "auc": value}


# --- what comes out -----------------------------------------------------------------------------


def sites_table(results: Results, sets: Sequence[str]) -> ResultTable:
    """Lay out ROC-AUC against the number of sites."""
    rows = []
    for data in sets:
        for system in CURVES:
            curve = results.curve("sites", data, system)
            rows.append([data, system, *map(spread, curve.values())])
    return ResultTable(("set", "noise", *(f"{k} sites" for k in SITES)), rows, text=2)


def local_table(results: Results, sets: Sequence[str]) -> ResultTable:
    """Lay out the sites' own ROC-AUC by the shared and by their local models."""
    rows = []
    for data in sets:
        both = [results.curve("local", data, system) for system in (SHARED, LOCAL)]
        rows.append([data, *(spread(one[k]) for k in LOCAL_AT for one in both)])
    header = [f"{name}, {k} sites" for k in LOCAL_AT for name in ("shared", "local")]
    return ResultTable(("set", *header), rows)


def page(results: Results, names: Sequence[str]) -> Page:
    """Lay out both tables."""
    return [
        "## Accuracy as sites join\n",
        "ROC-AUC x 100 of all rows, mean ± standard deviation over the seeds; total epsilon 1.\n",
        sites_table(results, names),
        "\n## Local models\n",
        "ROC-AUC x 100 of each site's own rows, mean over the sites; masked rounds.\n",
        local_table(results, names),
    ]


def targets(results: Results, sets: Sequence[str]) -> list[Promise]:
    """Return the project's promises, with this run's figures."""
    found = []
    for data in sets:
        masked = [float(v.mean()) for v in results.curve("sites", data, MASKED).values()]
        claim = f"{data}: {MASKED}: highest minus lowest mean over 2 to 100 sites"
        found.append(Promise(claim, max(masked) - min(masked), "<=", FLAT, ".2f"))
        papers = float(results.curve("sites", data, PAPERS)[SITES[-1]].mean())
        claim = f"{data}: points ahead of the paper's mechanism at {SITES[-1]} sites"
        found.append(Promise(claim, masked[-1] - papers, ">", 0.0, ".1f"))
    totals = [r["total_epsilon"] for r in results.select("sites", system=MASKED)]
    found.append(Promise("largest total epsilon of a masked round", max(totals), "<=", EPSILON))
    return found
