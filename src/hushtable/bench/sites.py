"""Accuracy as sites join: noise shared under masks, noise of every site, the paper's noise.

The total epsilon of a row is 1 throughout, at delta 1e-6 (the paper's: pure). Rows are dealt to
the sites at random. Ranges are the data's own, taken as if they were public, for all alike.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from hushtable.bench.data import LabelledSet
from hushtable.bench.paper.experiments import Step
from hushtable.bench.results import Results, Row
from hushtable.bench.tables import Target, markdown_table
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.releasing import share_of_budget
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Cost, Sensitivity, calibrated_scale, part_scale
from hushtable.privacy.layout import Design
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.noise import add_noise
from hushtable.scores.scorer import Scorer

__all__ = [
    "CURVES", "SETS", "SITES", "curve", "local_table", "sites_table", "steps", "targets",
]  # fmt: skip

SITES = (2, 4, 6, 8, 10, 20, 50, 100)
SETS = ("BreastW", "Cardio", "Pendigits", "Mnist")
MASKED, WHOLE, PAPERS = "masks, shared noise", "noise of every site", "the paper's mechanism"
CURVES = (MASKED, WHOLE, PAPERS)
#: Numbers of sites at which local models are compared, and what they are compared by.
LOCAL_AT = (2, 10)
LOCAL, SHARED = "local model", "shared model"
EPSILON, DELTA = 1.0, 1e-6
#: Points of ROC-AUC within which the masked curve has to stay.
FLAT = 1.0


def steps(data: LabelledSet, seeds: int) -> Iterator[Step]:
    """Yield the steps of the benchmark on one set."""
    for seed in range(seeds):
        yield Step("sites", data.name, "ours", seed, _ours(data, seed))
        yield Step("sites", data.name, "papers", seed, _papers(data, seed))
        yield Step("local", data.name, "local", seed, _local(data, seed))


# --- ours ---------------------------------------------------------------------------------------


def _ours(data: LabelledSet, seed: int) -> Callable[[], list[Row]]:
    def do() -> list[Row]:
        rows = []
        for k in SITES:
            for system in (MASKED, WHOLE):
                merged, _ = _merged(data, k, seed, masked=system == MASKED)
                auc = _auc(data.y, Scorer(merged).score(data.X))
                total = merged.ledger.epsilon
                rows.append(_row(system, k, auc) | {"total_epsilon": total})
        return rows

    return do


def _merged(
    data: LabelledSet, k: int, seed: int, *, masked: bool, apart: bool = False
) -> tuple[Release, list[NDArray[np.int64]]]:
    """Return the result of a round of k sites: marginals first where they pay, then tables.

    With ``apart``, also each site's noise on the tables.
    """
    releases = 1 if masked else k
    terms: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "expected_rows": len(data.X),
        "sites": releases,
    }
    schema = data.schema()
    marginals = None
    if Design(EPSILON, DELTA, len(data.X), releases).pays_marginals(len(schema)):
        first = Plan.marginals(schema, **terms)
        marginals, _ = _noised(Sketch.from_data(first, data.X), k, masked, apart=False)
    plan = Plan.draw(schema, marginals=marginals, random_state=seed, **terms)
    return _noised(Sketch.from_data(plan, data.X), k, masked, apart)


def _noised(
    sketch: Sketch, k: int, masked: bool, apart: bool
) -> tuple[Release, list[NDArray[np.int64]]]:
    """Add the noise of k sites to their sum.

    All at once unless ``apart``: a sum of discrete Gaussians is one, to within 1e-15.
    """
    plan = sketch.plan
    sensitivity = Sensitivity(plan.family.n_histograms)
    before = Cost.total(spent.cost for spent in plan.behind)
    scale = calibrated_scale(
        "discrete-gaussian",
        sensitivity,
        epsilon=EPSILON,
        delta=DELTA,
        before=before,
        share=share_of_budget(None, plan),
    )
    pool = Pool("benchmark", k, k - 1) if masked else None
    if masked:
        scale = part_scale(scale, k - 1)
    shares = tuple(Share(f"site {i}", scale, "") for i in range(k))
    ledger = Ledger("discrete-gaussian", sensitivity, DELTA, shares, plan.behind, pool)
    nothing = np.zeros_like(sketch.counts)
    parts = [
        add_noise(nothing, "discrete-gaussian", scale * np.sqrt(1 if apart else k))
        for _ in range(k if apart else 1)
    ]
    return Release(plan, sketch.counts + np.sum(parts, axis=0), ledger), parts


# --- the paper's --------------------------------------------------------------------------------


def _papers(data: LabelledSet, seed: int) -> Callable[[], list[Row]]:
    """LSH iTables with Laplace noise of scale 1 / .01 from each site, as in its Table 4.

    Where a site has more than 1,000 rows, a table samples 1,000 of them, drawn anew each time;
    the ledger would then count twice the epsilon, and the paper is given the benefit.
    """

    def do() -> list[Row]:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(data.X))
        each = EPSILON / 100
        rows = []
        for k in SITES:
            parts = np.array_split(order, k)
            size = min(1000, max(map(len, parts)))
            plan = Plan.draw(
                data.schema(), detector="lsh_itables", max_samples=size, random_state=seed
            )
            # Noise on a cell that no row falls into is never read: it is not drawn.
            read = np.flatnonzero(Sketch.from_data(plan, data.X).counts)
            total = np.zeros(plan.family.n_cells, np.int64)
            for part in parts:
                sample = 1000 if len(part) > 1000 else None
                sketch = Sketch.from_data(plan, data.X[part], max_samples=sample)
                total[read] += add_noise(sketch.counts[read], "laplace-per-table", 1 / each)
            values = plan.score.noisy_values(total, 1.0)
            scores = plan.family.sum(Encoder(plan.schema).encode(data.X), values)
            rows.append(_row(PAPERS, k, _auc(data.y, scores)) | {"total_epsilon": EPSILON})
        return rows

    return do


# --- local models -------------------------------------------------------------------------------


def _local(data: LabelledSet, seed: int) -> Callable[[], list[Row]]:
    """Each site scores its own rows, by the shared result and by its own local model."""

    def do() -> list[Row]:
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
                found[SHARED].append(_auc(data.y[part], shared[part]))
                found[LOCAL].append(_auc(data.y[part], Scorer(local).score(data.X[part])))
            rows += [_row(system, k, float(np.mean(aucs))) for system, aucs in found.items()]
        return rows

    return do


def _row(system: str, k: int, auc: float) -> Row:
    return {"system": system, "setting": float(k), "auc": auc}


def _auc(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    return float(roc_auc_score(y, -scores))


# --- what comes out -----------------------------------------------------------------------------


def curve(results: Results, experiment: str, data: str, system: str) -> dict[int, list[float]]:
    """Return ROC-AUC x 100 of all seeds, by the number of sites."""
    found: dict[int, list[float]] = {}
    for row in results.select(experiment, data=data, system=system):
        found.setdefault(int(row["setting"]), []).append(100 * row["auc"])
    return dict(sorted(found.items()))


def _cell(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}"


def sites_table(results: Results, sets: Sequence[str]) -> str:
    """Lay out ROC-AUC against the number of sites."""
    rows = []
    for data in sets:
        for system in CURVES:
            values = curve(results, "sites", data, system)
            rows.append([data, system, *(_cell(v) for v in values.values())])
    return markdown_table(("set", "noise", *(f"{k} sites" for k in SITES)), rows, text=2)


def local_table(results: Results, sets: Sequence[str]) -> str:
    """Lay out the sites' own ROC-AUC by the shared and by their local models."""
    rows = []
    for data in sets:
        both = [curve(results, "local", data, system) for system in (SHARED, LOCAL)]
        rows.append([data, *(_cell(one[k]) for k in LOCAL_AT for one in both)])
    header = [f"{name}, {k} sites" for k in LOCAL_AT for name in ("shared", "local")]
    return markdown_table(("set", *header), rows)


def targets(results: Results, sets: Sequence[str]) -> list[Target]:
    """Return what the project promises, with this run's figures."""
    found = []
    for data in sets:
        masked = [float(np.mean(v)) for v in curve(results, "sites", data, MASKED).values()]
        claim = f"{data}: {MASKED}: highest minus lowest mean over 2 to 100 sites"
        found.append(Target(claim, max(masked) - min(masked), "<=", FLAT, ".2f"))
        papers = curve(results, "sites", data, PAPERS)
        claim = f"{data}: points ahead of the paper's mechanism at {SITES[-1]} sites"
        found.append(Target(claim, masked[-1] - float(np.mean(papers[SITES[-1]])), ">", 0.0, ".1f"))
    totals = [r["total_epsilon"] for r in results.select("sites", system=MASKED)]
    found.append(Target("largest total epsilon of a masked round", max(totals), "<=", EPSILON))
    return found
