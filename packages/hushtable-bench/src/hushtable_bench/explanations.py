"""Measure whether explanations name the features that make a row unusual.

The 10,000 rows of 20 features are simulated from three Gaussian clusters, so that the guilty
features are known. In one row in a hundred, 1, 2, or 3 features move: *far*, 5 to 8 standard
deviations of all rows from their mean; *near*, 4 to 5; *impossible*, 4 to 5 standard deviations of
its own cluster from that cluster's centre, often a common value in another cluster. "All on top":
the guilty features are those that the method blames most. "Precision": the share of guilty features
among as many.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables
from hushtable.cli.result import CommandResult
from hushtable.scores.explain import Explainer
from hushtable_bench.data import LabelledSet
from hushtable_bench.privacy import private_scorer
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import FOLDER, CaseRun, progress

Floats = NDArray[np.float64]

ROWS, COLUMNS, OUTLIERS = 10_000, 20, 100
#: Least and greatest distance of a guilty value.
VARIANTS = {"far": (5.0, 8.0), "near": (4.0, 5.0), "impossible": (4.0, 5.0)}
OURS, PRIVATE = "HushTable", "HushTable, total epsilon 1"
#: From all rows, the numbers of those to explain and a seed, to blame (n, d).
Method = Callable[[Floats, NDArray[np.int64], int], Floats]


@dataclass(frozen=True)
class GuiltyRows:
    """Rows; the numbers of the outliers among them; which features of each are guilty."""

    X: Floats
    outliers: NDArray[np.int64]
    guilty: NDArray[np.bool_]


def plant_guilty(variant: str, seed: int, rows: int = ROWS) -> GuiltyRows:
    """Draw rows, and move the guilty features of the outliers."""
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
    return GuiltyRows(X, outliers, guilty)


def of_detector(make: Callable[..., Any], X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return the shares that one of our detectors gives the features."""
    return np.asarray(make(random_state=seed).fit(X).explain(X[rows]))


def private(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Explain from a release: the noise differs from run to run."""
    schema = LabelledSet("", X, np.zeros(len(X), bool)).schema()
    return Explainer(private_scorer(X, schema, 1.0, seed)).explain(X[rows])


def shap_values(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return SHAP's shares in the scores of an isolation forest."""
    import shap

    forest = IsolationForest(random_state=seed, n_jobs=1).fit(X)
    return np.asarray(-shap.TreeExplainer(forest).shap_values(X[rows]))


def signatures(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return coniferest's signatures."""
    from coniferest.isoforest import IsolationForest as Coniferest

    return np.asarray(-Coniferest(random_seed=seed, n_jobs=1).fit(X).feature_signature(X[rows]))


METHODS: dict[str, Method] = {
    OURS: partial(of_detector, HushTable),
    "LSHiTables": partial(of_detector, LSHiTables),
    PRIVATE: private,
    "SHAP of IsolationForest": shap_values,
    "coniferest's signatures": signatures,
}


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


def find_guilty(seeds: int, rows: int = ROWS) -> list[Blamed]:
    """Judge each method whose library is installed on each variant."""
    found = []
    for variant in VARIANTS:
        sets = [plant_guilty(variant, seed, rows) for seed in range(seeds)]
        guilty = np.concatenate([planted.guilty for planted in sets])
        for name, blame in METHODS.items():
            progress(f"{variant}: {name}")
            try:
                blamed = [blame(p.X, p.outliers, seed) for seed, p in enumerate(sets)]
            except ImportError as error:
                progress(f"without {name}: {error}")
                continue
            found.append(judge(variant, name, guilty, np.concatenate(blamed)))
    return found


def explain(quick: bool = False, output: Path = FOLDER) -> CommandResult:
    """Measure whether explanations name what is unusual.

    SHAP and coniferest are measured where they are installed. The whole takes a minute.
    """
    run = CaseRun("explain", output)
    guilty = find_guilty(2 if quick else 10)
    lines = [
        (f.variant, f.method, *(f"{100 * x:.1f}" for x in (f.on_top, *f.by_k, f.precision)))
        for f in guilty
    ]
    header = ("guilty values", "method", "all on top, %", "of 1", "of 2", "of 3", "precision, %")
    run.say(ResultTable(header, lines, text=2))
    on_top = {f.method: 100 * f.on_top for f in guilty if f.variant == "far"}
    for method, least in ((OURS, 95.0), (PRIVATE, 85.0)):
        claim = f"{method}: rows with all guilty features on top, %"
        run.hold(claim, on_top[method], ">=", least, ".1f")
    return run.finish()
