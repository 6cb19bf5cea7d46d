"""The detectors that the paper compares with: scikit-learn's contract, and plain oracles."""

import math

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_checks import some_checks
from hushtable.errors import UsageError
from hushtable_bench.baselines import LODA, LSHiForest, NeighbourEnsemble, candidates

BASELINES = [NeighbourEnsemble, LODA, LSHiForest]


@some_checks(
    NeighbourEnsemble(n_estimators=4), NeighbourEnsemble(n_estimators=4, measure="lof"),
    LODA(n_projections=10), LSHiForest(n_estimators=10),
)  # fmt: skip
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([
    NeighbourEnsemble(n_estimators=10, measure="reachability"),
    LODA(max_features="all", n_projections=5),
    LSHiForest(n_estimators=20, metric="l1", max_samples=16),
])  # fmt: skip
def test_scikit_learns_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", BASELINES)
def test_the_outlier_is_lowest_and_flagged(make, X):
    size = {} if make is LODA else {"n_estimators": 20}
    detector = make(random_state=0, contamination=0.02, **size).fit(X)
    scores = detector.score_samples(X)
    assert scores.argmin() == 0
    assert detector.predict(X)[0] == -1
    assert (detector.predict(X) == -1).mean() == pytest.approx(0.02, abs=0.005)
    np.testing.assert_array_equal(detector.decision_function(X), scores - detector.offset_)


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (LODA(n_projections=0), "n_projections=0"),
        (LODA(max_features=3), "'sqrt' or 'all'"),
        (LODA(contamination="auto"), "contamination='auto'"),
        (LODA(n_jobs=0), "n_jobs=0"),
        (LSHiForest(metric="l3"), "metric='l3'"),
        (LSHiForest(width=0.0), "width=0.0"),
        (LSHiForest(width=float("nan")), "width=nan"),
        (LSHiForest(max_depth=0), "max_depth=0"),
        (LSHiForest(max_samples=1), "max_samples=1"),
        (LSHiForest(n_estimators=True), "n_estimators=True"),
        (NeighbourEnsemble(n_neighbors=0), "n_neighbors=0"),
        (NeighbourEnsemble(max_samples="all"), "max_samples='all'"),
        (NeighbourEnsemble(n_estimators=2.5), "n_estimators=2.5"),
        (NeighbourEnsemble(measure="k"), "measure='k'"),
    ],
)
def test_wrong_parameters_are_named(detector, message, X):
    with pytest.raises(UsageError, match=message):
        detector.fit(X)


# --- LSHiForest -------------------------------------------------------------------------------


def naive_tree(hashes, rows, level, depth):
    """A prefix tree as nested dicts: {"at": level, value: subtree}; a leaf is its rows."""
    while level < depth and len(rows) > 1 and len({hashes[r][level] for r in rows}) == 1:
        level += 1
    if len(rows) == 1 or level == depth:
        return list(rows)
    parts = {}
    for r in rows:
        parts.setdefault(hashes[r][level], []).append(r)
    children = {v: naive_tree(hashes, part, level + 1, depth) for v, part in parts.items()}
    return {"at": level, "children": children}


def naive_factor(tree):
    """Number of inner nodes, and of their children."""
    if isinstance(tree, list):
        return 0, 0
    below = [naive_factor(child) for child in tree["children"].values()]
    return 1 + sum(i for i, _ in below), len(below) + sum(c for _, c in below)


def naive_random_depth(n, factor):
    if n <= 1:
        return 0.0
    if n <= round(factor):
        return 1.0
    return (math.log(n) + math.log(factor - 1) + 0.5772156649) / math.log(factor) - 0.5


def naive_length(tree, hashes, depth, factor):
    reached = 0
    while isinstance(tree, dict):
        reached = tree["at"] + 1
        if hashes[tree["at"]] not in tree["children"]:
            return reached
        tree = tree["children"][hashes[tree["at"]]]
    return (reached if len(tree) == 1 else depth) + naive_random_depth(len(tree), factor)


@pytest.mark.parametrize("metric", ["l1", "l2"])
@pytest.mark.parametrize("width", [0.5, 4.0])
def test_path_lengths_equal_a_naive_tree(metric, width, rng):
    X = np.concatenate([rng.normal(size=(40, 3)), np.zeros((5, 3))])
    forest = LSHiForest(n_estimators=4, metric=metric, width=width, max_depth=5, random_state=1)
    forest.fit(X)
    expected = np.zeros(len(X))
    for directions, shifts in zip(forest._directions, forest._shifts, strict=True):
        hashes = np.floor(X @ directions + shifts).astype(int).tolist()
        tree = naive_tree(hashes, range(len(X)), 0, 5)  # 45 rows: the sample is all of them
        inner, children = naive_factor(tree)
        factor = children / inner if inner else 2.0
        typical = max(1.0, naive_random_depth(len(X), factor))
        expected -= [2 ** (-naive_length(tree, h, 5, factor) / typical) for h in hashes]
    np.testing.assert_allclose(forest.score_samples(X), expected / 4, rtol=1e-9)


def test_rows_that_no_tree_knows_end_at_once(rng):
    X = rng.normal(size=(300, 2))
    forest = LSHiForest(random_state=0).fit(X)
    far = forest.score_samples([[1e6, 1e6]])
    assert far < forest.score_samples(X).min()
    assert far == forest.score_samples([[-1e6, 2e6]])
    assert np.isfinite(forest.score_samples([[1e300, -1e300]])).all()


# --- LODA -------------------------------------------------------------------------------------


def naive_bins(z):
    """The number of bins, of all up to n / log n, with the greatest penalised likelihood."""
    n, best = len(z), (-math.inf, 0)
    for b in range(1, int(n / math.log(n)) + 1):
        counts, _ = np.histogram(z, bins=b)
        likelihood = sum(c * math.log(b * c / n) for c in counts if c)
        best = max(best, (likelihood - (b - 1 + math.log(b) ** 2.5), -b))
    return -best[1]


def test_bins_maximise_the_penalised_likelihood(rng):
    X = np.column_stack([rng.normal(size=900), rng.exponential(size=900), rng.random(900) ** 4])
    detector = LODA(n_projections=12, random_state=0).fit(X)
    assert candidates(900).tolist() == list(range(1, 133))  # every number
    for t in range(12):
        z = X[:, detector._features[t]] @ detector._weights[t]
        assert detector.n_bins_[t] == naive_bins(z)


def test_scores_are_mean_log_densities(rng):
    X = rng.normal(size=(500, 5))
    detector = LODA(n_projections=8, random_state=0).fit(X)
    expected = np.zeros(500)
    for t, bins in enumerate(detector.n_bins_):
        z = X[:, detector._features[t]] @ detector._weights[t]
        density, edges = np.histogram(z, bins=bins, density=True)
        at = np.clip(np.searchsorted(edges, z, side="right") - 1, 0, bins - 1)
        expected += np.log(density[at]) / 8
    np.testing.assert_allclose(detector.score_samples(X), expected, rtol=1e-9)
    # Outside every range: half a row in a bin of each histogram.
    floor = [
        math.log(0.5 / 500 / ((high - low) / bins))
        for low, high, bins in zip(detector._low, detector._high, detector.n_bins_, strict=True)
    ]
    assert detector.score_samples(np.full((1, 5), 1e9)) == pytest.approx(np.mean(floor))


def test_a_constant_projection_says_inside_or_outside():
    X = np.full((30, 2), 3.0)
    detector = LODA(random_state=0).fit(X)
    assert (detector.score_samples(X) == 0.0).all()
    assert detector.score_samples([[4.0, 4.0]])[0] < 0.0


# --- nearest neighbours -----------------------------------------------------------------------


def test_members_are_scikit_learns_neighbours(rng):
    X, new = rng.normal(size=(120, 4)), rng.normal(size=(30, 4)) * 2
    detector = NeighbourEnsemble(n_estimators=3, n_neighbors=4, max_samples=60, random_state=0).fit(
        X
    )
    expected = np.zeros(30)
    for sample, _ in detector._members:
        distances, _ = NearestNeighbors(n_neighbors=4).fit(sample).kneighbors(new)
        expected -= distances.mean(axis=1) / 3
    np.testing.assert_allclose(detector.score_samples(new), expected, rtol=1e-12)


def test_members_are_scikit_learns_local_outlier_factors(rng):
    X, new = rng.normal(size=(120, 4)), rng.normal(size=(30, 4)) * 2
    settings = {"n_estimators": 3, "n_neighbors": 4, "max_samples": 60, "random_state": 0}
    detector = NeighbourEnsemble(measure="lof", **settings).fit(X)
    plain = NeighbourEnsemble(measure="reachability", **settings).fit(X)
    relative, density = np.zeros(30), np.zeros(30)
    for sample, *_ in detector._members:
        lof = LocalOutlierFactor(n_neighbors=4, novelty=True).fit(sample)
        relative += lof.score_samples(new) / 3
        density -= 1 / (3 * lof._local_reachability_density(*lof.kneighbors(new)))
    np.testing.assert_allclose(detector.score_samples(new), relative, rtol=1e-9)
    np.testing.assert_allclose(plain.score_samples(new), density, rtol=1e-6)


def test_a_sampled_row_is_not_its_own_neighbour(rng):
    X = rng.normal(size=(20, 3))
    detector = NeighbourEnsemble(n_estimators=1, max_samples=20, random_state=0).fit(X)
    distances, _ = NearestNeighbors(n_neighbors=5).fit(X).kneighbors()
    np.testing.assert_allclose(detector.score_samples(X), -distances.mean(axis=1), rtol=1e-12)


def test_samples_are_a_tenth_and_at_most_a_thousand(rng):
    for n, size in ((12_000, 1000), (3000, 300), (40, 6), (3, 3)):
        detector = NeighbourEnsemble(n_estimators=1, random_state=0).fit(rng.normal(size=(n, 2)))
        assert len(detector._members[0][0]) == size
