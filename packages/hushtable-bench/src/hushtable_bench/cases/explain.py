"""Measure whether explanations find the guilty features, and what they cost.

The rows are simulated, so the guilty features are known: 10,000 rows of 20 features from three
Gaussian clusters (half, three tenths, and a fifth of the rows; centres from N(0, 1), variance 1
within a cluster, 70% of it by four common factors). One row in a hundred is an outlier: 1, 2, or 3
of its features are guilty and move to the place that the variant names; the others do not change.

far         5 to 8 standard deviations of all rows from their mean
near        4 to 5
impossible  4 to 5 standard deviations of its own cluster from that cluster's centre, often a
            common value in another cluster

Every method gets the same rows, and its detector was fitted to all of them. "All on top": the k
guilty features are the k features that the method blames most. "Precision": the share of guilty
features among these k. Ranges are the data's own, as if they were public.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables
from hushtable.scores.explain import Explainer
from hushtable_bench.data import LabelledSet
from hushtable_bench.privacy import private_scorer
from hushtable_bench.results import Promise, ResultTable
from hushtable_bench.runner import CaseRun, RowSource, in_turns, progress

ROWS, COLUMNS, OUTLIERS = 10_000, 20, 100
#: Least and greatest distance of a guilty value.
VARIANTS = {"far": (5.0, 8.0), "near": (4.0, 5.0), "impossible": (4.0, 5.0)}
OURS, PRIVATE = "HushTable", "HushTable, total epsilon 1"
#: Rows explained against rows scored.
TIMED = RowSource.normal(100_000, COLUMNS)
ROUNDS = 9

Floats = NDArray[np.float64]
#: From all rows, the numbers of those to explain and a seed, to blame (n, d).
Method = Callable[[Floats, NDArray[np.int64], int], Floats]


# --- rows with known culprits -------------------------------------------------------------------


@dataclass(frozen=True)
class PlantedRows:
    """Rows; the numbers of the outliers among them; which features of each are guilty."""

    X: Floats
    outliers: NDArray[np.int64]
    guilty: NDArray[np.bool_]


def plant(variant: str, seed: int, rows: int = ROWS) -> PlantedRows:
    rng = np.random.default_rng(seed)
    cluster = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    centres = rng.normal(size=(3, COLUMNS))
    factors = rng.normal(size=(3, COLUMNS, 4))
    factors *= np.sqrt(0.7) / np.linalg.norm(factors, axis=2, keepdims=True)
    common_part = np.einsum("njf,nf->nj", factors[cluster], rng.normal(size=(rows, 4)))
    X = centres[cluster] + common_part + np.sqrt(0.3) * rng.normal(size=(rows, COLUMNS))
    mean, sd = X.mean(axis=0), X.std(axis=0)
    outliers = rng.choice(rows, OUTLIERS * rows // ROWS, replace=False)
    guilty = np.zeros((len(outliers), COLUMNS), bool)
    for row, mask in zip(outliers, guilty, strict=True):
        mask[rng.choice(COLUMNS, rng.integers(1, 4), replace=False)] = True
        k = mask.sum()
        distance = rng.choice([-1, 1], k) * rng.uniform(*VARIANTS[variant], k)
        if variant == "impossible":
            X[row, mask] = centres[cluster[row], mask] + distance
        else:
            X[row, mask] = mean[mask] + distance * sd[mask]
    return PlantedRows(X, outliers, guilty)


# --- methods --------------------------------------------------------------------------------


def hushtable(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    return HushTable(random_state=seed).fit(X).explain(X[rows])


def lsh_itables(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    return LSHiTables(random_state=seed).fit(X).explain(X[rows])


def private(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Explain from a release: the noise differs from run to run."""
    schema = LabelledSet("", X, np.zeros(len(X), bool)).schema()
    return Explainer(private_scorer(X, schema, 1.0, seed)).explain(X[rows])


def shap_values(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    import shap

    forest = IsolationForest(random_state=seed, n_jobs=1).fit(X)
    return -shap.TreeExplainer(forest).shap_values(X[rows])


def signatures(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    from coniferest.isoforest import IsolationForest as Coniferest

    return -Coniferest(random_seed=seed, n_jobs=1).fit(X).feature_signature(X[rows])


METHODS: dict[str, Method] = {
    OURS: hushtable,
    "LSHiTables": lsh_itables,
    PRIVATE: private,
    "SHAP of IsolationForest": shap_values,
    "coniferest's signatures": signatures,
}
#: Libraries that only a comparison needs.
PEERS = {"SHAP of IsolationForest": "shap", "coniferest's signatures": "coniferest"}


def available() -> dict[str, Method]:
    """Return the methods whose library is installed; print which are not."""
    found = dict(METHODS)
    for name, library in PEERS.items():
        try:
            __import__(library)
        except ImportError as error:
            progress(f"without {name}: {error} (pip install {library})")
            del found[name]
    return found


# --- precision ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blamed:
    """Shares of the outliers: all guilty features on top; and precision at k."""

    variant: str
    method: str
    on_top: float
    by_k: tuple[float, ...]
    precision: float


def judge(variant: str, method: str, guilty: NDArray[np.bool_], blame: Floats) -> Blamed:
    """Compare the k features that are blamed most with the k guilty ones."""
    k = guilty.sum(axis=1)
    order = np.argsort(-blame, axis=1, kind="stable")
    hit = np.take_along_axis(guilty, order, axis=1) & (np.arange(COLUMNS) < k[:, np.newaxis])
    precision = hit.sum(axis=1) / k
    by_k = tuple(float((precision[k == number] == 1.0).mean()) for number in (1, 2, 3))
    return Blamed(variant, method, float((precision == 1.0).mean()), by_k, float(precision.mean()))


def find_guilty(methods: dict[str, Method], seeds: int, rows: int = ROWS) -> list[Blamed]:
    found = []
    for variant in VARIANTS:
        sets = [plant(variant, seed, rows) for seed in range(seeds)]
        guilty = np.concatenate([planted.guilty for planted in sets])
        for name, blame in methods.items():
            progress(f"{variant}: {name}")
            blamed = [blame(p.X, p.outliers, seed) for seed, p in enumerate(sets)]
            found.append(judge(variant, name, guilty, np.concatenate(blamed)))
    return found


# --- time -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExplainTiming:
    """Microseconds a row with one thread, medians of rounds, and the median of the ratios."""

    method: str
    score: float
    explain: float
    ratio: float


def _race(
    method: str, rows: int, rounds: int, score: Callable[[], Any], explain: Callable[[], Any]
) -> ExplainTiming:
    """Take turns, after one run of each that does not count."""
    times = in_turns({"score": score, "explain": explain}, rounds).values()
    score_us, explain_us = (1e6 * statistics.median(t) / rows for t in times)
    ratio = statistics.median(e / s for s, e in zip(*times, strict=True))
    return ExplainTiming(method, score_us, explain_us, ratio)


def time_all(
    data: RowSource = TIMED, rounds: int = ROUNDS, peer_rows: int = 1000
) -> list[ExplainTiming]:
    """Time our detectors on all rows, and the others on as many as take a few seconds."""
    X = data.load()
    timings = []
    for make in (HushTable, LSHiTables):
        detector = make(random_state=0, n_jobs=1).fit(X)
        timings.append(
            _race(
                make.__name__, len(X), rounds,
                lambda d=detector: d.score_samples(X), lambda d=detector: d.explain(X),
            )
        )  # fmt: skip
    few = X[:peer_rows].astype(np.float64)
    methods = available()
    if "SHAP of IsolationForest" in methods:
        import shap

        forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
        explainer = shap.TreeExplainer(forest)
        timings.append(
            _race(
                "SHAP of IsolationForest", len(few), 3,
                lambda: forest.score_samples(few), lambda: explainer.shap_values(few),
            )
        )  # fmt: skip
    if "coniferest's signatures" in methods:
        from coniferest.isoforest import IsolationForest as Coniferest

        trees = Coniferest(random_seed=0, n_jobs=1).fit(X.astype(np.float64))
        timings.append(
            _race(
                "coniferest's signatures", len(few), 3,
                lambda: trees.score_samples(few), lambda: trees.feature_signature(few),
            )
        )  # fmt: skip
    return timings


def targets(found: Sequence[Blamed], timings: Sequence[ExplainTiming]) -> list[Promise]:
    on_top = {f.method: 100 * f.on_top for f in found if f.variant == "far"}
    claims = [
        Promise(
            f"{method}: rows with all guilty features on top, %", on_top[method], ">=", b, ".1f"
        )
        for method, b in ((OURS, 95.0), (PRIVATE, 85.0))
    ]
    ratio = next(t.ratio for t in timings if t.method == OURS)
    claims.append(Promise("HushTable explains, times it scores", ratio, "<=", 5.0, ".1f"))
    return claims


def explain(run: CaseRun, *, quick: bool = False) -> None:
    """Find guilty features: one minute; --quick, 2 sets of each kind in place of 10."""
    found = find_guilty(available(), seeds=2 if quick else 10)
    timings = time_all()
    lines = [
        (f.variant, f.method, *(f"{100 * x:.1f}" for x in (f.on_top, *f.by_k, f.precision)))
        for f in found
    ]
    header = ("guilty values", "method", "all on top, %", "of 1", "of 2", "of 3", "precision, %")
    run.say(ResultTable(header, lines, text=2))
    run.say(f"One thread; ours on {TIMED.name}, the others on its first 1,000 rows.")
    run.table(
        {
            "method": "{t.method}", "score, µs a row": "{t.score:.3g}",
            "explain, µs a row": "{t.explain:.3g}", "explain, times score": "{t.ratio:.1f}",
        }, timings,
    )  # fmt: skip
    run.figures |= {"found": found, "times": timings}
    run.targets += targets(found, timings)
