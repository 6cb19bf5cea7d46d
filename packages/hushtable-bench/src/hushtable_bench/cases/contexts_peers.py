"""Methods that the case `contexts` compares: ours, and others for contexts.

CAD, ROCOD, and QCAD are short versions of the published methods, not their authors' programs:

CAD-like      Gaussian mixtures of context and of behaviour, and how often their components go
              together (Song et al., *Conditional anomaly detection*, 2007)
ROCOD-like    difference from the mean of two predictions of the behaviour: from the 50 rows with
              the nearest context, and from a ridge regression (Liang and Parthasarathy, *Robust
              contextual outlier detection*, 2016)
QCAD-like     difference from the median of a quantile forest on the context, divided by its spread
              and summed over the columns (Zhong et al., *Explainable contextual anomaly detection
              using quantile regression forests*, 2023); needs the package quantile-forest
residual      difference of each column from a regression on the context, divided by the usual size
              of such differences in the context; HushTable judges these

All of these, IsolationForest, and nearest neighbours get contexts as numbers, with one column for
each category. Groups are rows with one context (see `contexts_tables`); groups with fewer than 20
rows are pooled. All scores are low for outliers.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from hushtable import HushTable
from hushtable_bench.cases.contexts_tables import ContextTable, is_number
from hushtable_bench.runner import progress

OURS, RESIDUAL = "HushTable(context=)", "residual, then HushTable"
DEFAULT, PER_GROUP = "HushTable, all columns", "HushTable per group"
QCAD = "QCAD-like"
#: Least rows of a group that is judged alone, and of a group that is judged at all.
ALONE, JUDGED = 20, 8
NEIGHBOURS = 6  # the row itself is one of them
#: Components of a mixture at most, and rows of each at least.
COMPONENTS, ROWS_OF_COMPONENT = 10, 30

Floats = NDArray[np.float64]
#: From a table and a seed to scores that are low for outliers (n,).
ContextMethod = Callable[[ContextTable, int], Floats]


def coded(table: ContextTable) -> Floats:
    """Return the context as numbers: standardized, and 0 or 1 for each category."""
    blocks = []
    for column in table.context:
        values = table.frame[column]
        if is_number(values):
            numbers = values.to_numpy(float)[:, np.newaxis]
            blocks.append((numbers - numbers.mean()) / (numbers.std() + 1e-12))
        else:
            blocks.append(pd.get_dummies(values).to_numpy(float))
    return np.hstack(blocks)


def all_numbers(table: ContextTable) -> Floats:
    return np.hstack([table.standardized, coded(table)])


# --- ours -----------------------------------------------------------------------------------------


def hushtable_scores(rows: Any, seed: int, **options: Any) -> Floats:
    return HushTable(random_state=seed, **options).fit(rows).score_samples(rows)


def with_context(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(table.frame, seed, context=table.context)


def all_columns(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(table.frame, seed)


def by_group(table: ContextTable, judge: Callable[[NDArray[np.intp]], Floats]) -> Floats:
    """Judge the rows of each group alone, and the rows of all small groups together."""
    groups, scores = table.groups(), np.zeros(len(table.frame))
    pooled = np.where(np.bincount(groups)[groups] < ALONE, -1, groups)
    for group in np.unique(pooled):
        rows = np.flatnonzero(pooled == group)
        if len(rows) >= JUDGED:
            scores[rows] = judge(rows)
    return scores


def per_group(table: ContextTable, seed: int) -> Floats:
    behaviour = table.frame[table.behaviour]

    def judge(rows: NDArray[np.intp]) -> Floats:
        scores = hushtable_scores(behaviour.iloc[rows], seed)
        return scores - 2.0 * np.log2(
            len(rows)
        )  # logarithms of two counts become logarithms of shares

    return by_group(table, judge)


# --- regressions on the context -------------------------------------------------------------------


def hats(values: Floats, knots: int = 8) -> Floats:
    """Return functions that are linear between quantiles: 1 at one of them, 0 at the others."""
    places = np.unique(np.quantile(values, np.linspace(0.0, 1.0, knots)))
    return np.column_stack([np.interp(values, places, one) for one in np.eye(len(places))])


def basis(table: ContextTable, most: int = 60) -> Floats:
    """Return a constant, functions of each context column, and products of two if these are few."""
    blocks = [
        hats(table.frame[column].to_numpy(float))
        if is_number(table.frame[column]) and table.frame[column].nunique() > 2
        else pd.get_dummies(table.frame[column].astype(str)).to_numpy(float)
        for column in table.context
    ]
    constant, n = np.ones((len(table.frame), 1)), len(table.frame)
    products = []
    if 1 + sum(block.shape[1] for block in blocks) < most:
        products = [
            (one[:, :, np.newaxis] * other[:, np.newaxis]).reshape(n, -1)
            for one, other in itertools.combinations(blocks, 2)
        ]
    return np.hstack([constant, *blocks, *products])


def ridge(M: Floats, Y: Floats, penalty: float, weights: Floats | None = None) -> Floats:
    """Predict Y by M; the first column of M, a constant, is not penalized."""
    weighted = M.T if weights is None else M.T * weights
    penalties = np.full(M.shape[1], penalty)
    penalties[0] = 1e-9
    predicted: Floats = M @ np.linalg.solve(weighted @ M + np.diag(penalties), weighted @ Y)
    return predicted


def differences(table: ContextTable) -> Floats:
    """Return behaviour minus its prediction, divided by the usual size of this difference (n, d).

    The usual size depends on the context. The second prediction leaves out the tenth of the rows
    that are farthest from the first one.
    """
    M, Y = basis(table), table.standardized
    first = np.abs(Y - ridge(M, Y, 5.0))
    worst = (first / (np.median(first, axis=0) + 1e-9)).max(axis=1)
    weights = (worst < np.quantile(worst, 0.9)).astype(float)
    found = Y - ridge(M, Y, 5.0, weights)
    sizes = np.minimum(np.abs(found), np.quantile(np.abs(found), 0.95, axis=0))
    usual = np.maximum(ridge(M, sizes, 20.0, weights), 0.1 * sizes.mean(axis=0))
    return found / usual


def residual(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(differences(table), seed)


# --- peers ----------------------------------------------------------------------------------------


def farthest_neighbour(X: Floats) -> Floats:
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(X))).fit(X)
    return -nearest.kneighbors(X)[0][:, -1]


def neighbours(table: ContextTable, seed: int) -> Floats:
    return farthest_neighbour(all_numbers(table))


def neighbours_per_group(table: ContextTable, seed: int) -> Floats:
    behaviour = table.standardized
    return by_group(table, lambda rows: farthest_neighbour(behaviour[rows]))


def forest(table: ContextTable, seed: int) -> Floats:
    X = all_numbers(table)
    return IsolationForest(random_state=seed).fit(X).score_samples(X)


def cad(table: ContextTable, seed: int) -> Floats:
    context, behaviour = coded(table), table.standardized
    size = min(COMPONENTS, len(context) // ROWS_OF_COMPONENT)
    contexts = GaussianMixture(
        min(size, len(np.unique(context, axis=0))), covariance_type="diag", random_state=seed,
        reg_covar=1e-2,
    )  # fmt: skip
    behaviours = GaussianMixture(size, random_state=seed, reg_covar=1e-3).fit(behaviour)
    where = contexts.fit(context).predict_proba(context)
    together = where.T @ behaviours.predict_proba(behaviour) + 1e-9
    together /= together.sum(axis=1, keepdims=True)
    densities = np.column_stack([
        multivariate_normal(mean, covariance, allow_singular=True).logpdf(behaviour)
        for mean, covariance in zip(behaviours.means_, behaviours.covariances_, strict=True)
    ])  # fmt: skip
    return logsumexp(densities + np.log(where @ together + 1e-300), axis=1)


def rocod(table: ContextTable, seed: int) -> Floats:
    context, behaviour = coded(table), table.standardized
    nearest = NearestNeighbors(n_neighbors=min(50, len(context) // 5) + 1).fit(context)
    near = nearest.kneighbors(context, return_distance=False)[:, 1:]
    predicted = Ridge(1.0).fit(context, behaviour).predict(context)
    return -((behaviour - (behaviour[near].mean(axis=1) + predicted) / 2.0) ** 2).sum(axis=1)


def qcad(table: ContextTable, seed: int) -> Floats:
    from quantile_forest import RandomForestQuantileRegressor

    context, far = coded(table), np.zeros(len(table.frame))
    for values in table.standardized.T:
        trees = RandomForestQuantileRegressor(
            n_estimators=50, min_samples_leaf=8, random_state=seed
        ).fit(context, values)
        low, median, high = trees.predict(
            context, quantiles=[0.05, 0.5, 0.95], oob_score=True
        ).T  # fmt: skip
        spread = np.maximum(
            (high - low) / 3.3, 0.05
        )  # those of a normal distribution are 3.3 apart
        far += np.minimum(np.abs(values - median) / spread, 20.0)
    return -far


METHODS: dict[str, ContextMethod] = {
    OURS: with_context,
    DEFAULT: all_columns,
    PER_GROUP: per_group,
    RESIDUAL: residual,
    "CAD-like": cad,
    "ROCOD-like": rocod,
    QCAD: qcad,
    "IsolationForest, all columns": forest,
    "nearest neighbours, all columns": neighbours,
    "nearest neighbours per group": neighbours_per_group,
}


def available_methods() -> dict[str, ContextMethod]:
    """Return the methods whose library is installed; print which are not."""
    try:
        import quantile_forest  # noqa: F401 # whether it is there
    except ImportError as error:
        progress(f"without {QCAD}: {error} (pip install quantile-forest)")
        return {name: method for name, method in METHODS.items() if name != QCAD}
    return dict(METHODS)
