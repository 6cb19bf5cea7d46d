"""Detectors that the paper compares with: LODA, LSHiForest, and ensembles of nearest neighbours."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hushtable.arguments import whole
from hushtable.errors import UsageError
from hushtable.threads import for_each, n_threads
from hushtable_bench import kernels

__all__ = ["LODA", "LSHiForest", "NeighbourEnsemble"]

Floats = NDArray[np.float64]


class Baseline(OutlierMixin, BaseEstimator, ABC):
    """A detector over numeric arrays. A subclass fits to rows, and scores rows."""

    # Parameters that every subclass stores in __init__.
    contamination: float
    n_jobs: int | None
    random_state: Any
    offset_: float

    #: Rows that are scored at a time.
    _rows = 16_384

    @abstractmethod
    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
        """Learn from the rows; whatever is drawn comes from ``rng``."""

    @abstractmethod
    def _score(self, rows: Floats) -> Floats:
        """Return a score for each of some rows; low is abnormal."""

    def _scores(self, X: Floats) -> Floats:
        scores = np.empty(len(X))

        def fill(start: int) -> None:
            here = slice(start, start + self._rows)
            scores[here] = self._score(X[here])

        for_each(fill, [range(0, len(X), self._rows)], n_threads(self.n_jobs))
        return scores

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows of finite numbers.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If a parameter is out of range.
        ValueError
            If the rows are not finite numbers, or fewer than 2.
        """
        share = self.contamination
        if isinstance(share, bool) or not isinstance(share, Real) or not 0.0 < share <= 0.5:
            raise UsageError(f"contamination={share!r}: needs a share above 0 and at most 0.5")
        n_threads(self.n_jobs)
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        state = check_random_state(self.random_state)
        self._fit(X, np.random.default_rng(state.randint(2**31, size=4)))
        self.scores_ = self._scores(X)
        self.offset_ = float(np.percentile(self.scores_, 100.0 * float(share)))
        return self

    def score_samples(self, X: Any) -> Floats:
        """Return the score of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
            Low is abnormal.
        """
        check_is_fitted(self)
        return self._scores(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def decision_function(self, X: Any) -> Floats:
        """Return `score_samples` minus `offset_`: negative is an outlier.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        scores: Floats = self.score_samples(X) - self.offset_
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, with the columns seen in `fit`.

        Returns
        -------
        ndarray of shape (n,), int64
        """
        return np.where(self.decision_function(X) < 0, -1, 1)


#: Every number of bins up to here is tried; beyond, steps of 2%.
_EACH = 200


@dataclass(kw_only=True, eq=False, repr=False)
class LODA(Baseline):
    """LODA (Pevny, 2016): one histogram for each of many sparse random projections.

    A projection has normal weights, on round(sqrt(d)) random features. Its histogram has equal bins
    between the least and the largest projected row; their number b is the one that maximises
    the penalised likelihood of Birgé and Rozenholc (2006),
    sum_i n_i log(b n_i / n) - (b - 1 + (log b)^2.5), of at most n / log n bins: every number up
    to 200, then steps of 2%. A row's score is the mean over the projections of its log density.
    An empty bin, and a place outside the range, count as half a row in a bin.

    Parameters
    ----------
    n_projections : int, default=100
        Number of projections, the paper's m.
    max_features : {"sqrt", "all"}, default="sqrt"
        Features of a projection. "sqrt" is LODA's own definition; "all" is what reproduces the
        figures of Li and Pham.
    contamination : float in (0, 0.5], default=0.1
        Share of the rows of `fit` that lie below `offset_`.
    n_jobs : int, optional
        Threads; None is one, -1 every core. Scores are the same for any number.
    random_state : int, RandomState or None
        Seed of the projections.

    Attributes
    ----------
    n_bins_ : ndarray of shape (n_projections,), int64
        Bins of each histogram.
    scores_ : ndarray of shape (n,), float64
        Scores of the rows of `fit`, as `score_samples` gives them.
    offset_ : float
        Score below which a row is an outlier.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features seen in `fit`, and their names, where the data had some.

    References
    ----------
    T. Pevny. Loda: lightweight on-line detector of anomalies. Machine Learning 102, 2016.
    L. Birgé and Y. Rozenholc. How many bins should be put in a regular histogram. ESAIM:
    Probability and Statistics 10, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench.baselines import LODA
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 9.0
    >>> int(LODA(random_state=0).fit(X).scores_.argmin())
    7
    """

    n_projections: int = 100
    max_features: Literal["sqrt", "all"] = "sqrt"
    contamination: float = 0.1
    n_jobs: int | None = None
    random_state: Any = None

    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
        m = whole("n_projections", self.n_projections, 1)
        if self.max_features not in ("sqrt", "all"):
            raise UsageError(f"max_features={self.max_features!r}: needs 'sqrt' or 'all'")
        n, d = X.shape
        used = d if self.max_features == "all" else max(1, round(math.sqrt(d)))
        self._features = np.array([rng.choice(d, used, replace=False) for _ in range(m)])
        self._weights = rng.normal(size=(m, used))
        self.n_bins_ = np.zeros(m, np.int64)
        self._low, self._high = np.zeros(m), np.zeros(m)
        self._densities: list[Floats] = [np.empty(0)] * m
        tried = candidates(n)

        def learn(t: int) -> None:
            z = kernels.project_sparse(X, self._features[t], self._weights[t])
            self._low[t], self._high[t] = z.min(), z.max()
            unit = _unit(z, self._low[t], self._high[t])
            likelihoods = np.array([kernels.log_likelihood(unit, b) for b in tried])
            penalty = tried - 1 + np.log(tried) ** 2.5
            bins = int(tried[np.argmax(likelihoods - penalty)])
            counts = np.bincount(kernels.bins_of(unit, bins), minlength=bins + 1)
            counts[bins] = 0  # outside the range
            # A constant projection has no range: its one bin is one unit wide.
            width = (self._high[t] - self._low[t]) / bins or 1.0
            self.n_bins_[t] = bins
            self._densities[t] = np.log(np.maximum(counts, 0.5) / n / width)

        for_each(learn, [range(m)], n_threads(self.n_jobs))

    def _score(self, rows: Floats) -> Floats:
        total = np.zeros(len(rows))
        for t, densities in enumerate(self._densities):
            z = kernels.project_sparse(rows, self._features[t], self._weights[t])
            unit = _unit(z, self._low[t], self._high[t])
            total += densities[kernels.bins_of(unit, len(densities) - 1)]
        return total / len(self._densities)


def candidates(n: int) -> NDArray[np.int64]:
    """Return the numbers of bins that are tried for ``n`` rows, ascending."""
    most = max(1, int(n / math.log(n)))
    steps = [min(most, _EACH)]
    while steps[-1] < most:
        steps.append(min(most, max(steps[-1] + 1, round(steps[-1] * 1.02))))
    return np.array([*range(1, min(most, _EACH)), *steps], np.int64)


def _unit(z: Floats, low: float, high: float) -> Floats:
    """Place [low, high] on [0, 1); outside below 0 or above 1."""
    if high == low:
        return np.where(z == low, 0.0, 2.0)
    unit = (z - low) / (high - low)
    # The largest row belongs to the last bin.
    unit[z == high] = np.nextafter(1.0, 0.0)
    return unit


class _Tree(NamedTuple):
    """A prefix tree, level by level: node v asks function ``level[v]``, -1 for a leaf.

    Its children are ``child[first[v]:first[v + 1]]``, by ascending ``key``. ``end[v]`` is the
    path length of a row that ends at the leaf, or that no child of the node takes.
    """

    level: NDArray[np.int64]
    first: NDArray[np.int64]
    key: NDArray[np.int64]
    child: NDArray[np.int64]
    end: Floats
    typical: float


@dataclass(kw_only=True, eq=False, repr=False)
class LSHiForest(Baseline):
    """LSHiForest (Zhang et al., 2017) with p-stable hash functions, as the paper runs it.

    Each tree is a prefix tree over a sample of the rows. Rows part by
    h(x) = floor((a.x + b) / w), a normal (l2) or Cauchy (l1), b ~ U(0, w), one function a
    level; a level at which a node's rows do not part is passed over. A row's path ends at a
    leaf, or where no sampled row shares its value. As in isolation forest, a leaf of several
    rows adds what a random tree of as many would be deep, here for the tree's mean number of
    children; a row's score is minus the mean over the trees of 2^(-depth / typical depth).

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees, the paper's m.
    max_samples : int, default=256
        Rows sampled for each tree, without replacement.
    metric : {"l2", "l1"}, default="l2"
        Distance that the hash functions are sensitive to.
    width : float, default=4.0
        Width w of a hash function's intervals, in the rows' own units.
    max_depth : int, default=8
        Hash functions of a tree, its height limit.
    contamination : float in (0, 0.5], default=0.1
        Share of the rows of `fit` that lie below `offset_`.
    n_jobs : int, optional
        Threads; None is one, -1 every core. Scores are the same for any number.
    random_state : int, RandomState or None
        Seed of samples and hash functions.

    Attributes
    ----------
    scores_ : ndarray of shape (n,), float64
        Scores of the rows of `fit`, as `score_samples` gives them.
    offset_ : float
        Score below which a row is an outlier.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features seen in `fit`, and their names, where the data had some.

    References
    ----------
    X. Zhang et al. LSHiForest: a generic framework for fast tree isolation based ensemble
    anomaly analysis. ICDE 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench.baselines import LSHiForest
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 9.0
    >>> int(LSHiForest(random_state=0).fit(X).scores_.argmin())
    7
    """

    _rows = 4096

    n_estimators: int = 100
    max_samples: int = 256
    metric: Literal["l2", "l1"] = "l2"
    width: float = 4.0
    max_depth: int = 8
    contamination: float = 0.1
    n_jobs: int | None = None
    random_state: Any = None

    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
        trees = whole("n_estimators", self.n_estimators, 1)
        size = min(whole("max_samples", self.max_samples, 2), len(X))
        depth = whole("max_depth", self.max_depth, 1)
        if self.metric not in ("l1", "l2"):
            raise UsageError(f"metric={self.metric!r}: needs 'l1' or 'l2'")
        if not 0.0 < self.width < np.inf:
            raise UsageError(f"width={self.width!r}: needs a number above 0")
        shape = (trees, X.shape[1], depth)
        directions = rng.normal(size=shape) if self.metric == "l2" else rng.standard_cauchy(shape)
        # In units of w: h(x) = floor(a.x / w + U(0, 1)).
        self._directions = directions / self.width
        self._shifts = rng.random((trees, depth))
        self._trees = [
            _grow(_hashes(X[rng.choice(len(X), size, replace=False)], *functions))
            for functions in zip(self._directions, self._shifts, strict=True)
        ]

    def _score(self, rows: Floats) -> Floats:
        total = np.zeros(len(rows))
        for tree, *functions in zip(self._trees, self._directions, self._shifts, strict=True):
            depths = kernels.path_lengths(_hashes(rows, *functions), *tree[:5])
            total -= 2.0 ** (-depths / tree.typical)
        return total / len(self._trees)


def _hashes(X: Floats, directions: Floats, shifts: Floats) -> NDArray[np.int64]:
    """Return the hash values (n, depth) of rows: one row at a time, the same bits in any split."""
    values = np.floor(kernels.project(X, directions) + shifts)
    # Beyond 2^62 neighbouring whole numbers are no longer distinct: they may share a value.
    hashes: NDArray[np.int64] = values.clip(-(2.0**62), 2.0**62).astype(np.int64)
    return hashes


def _grow(hashes: NDArray[np.int64]) -> _Tree:
    """Build the prefix tree of a sample's hash values (s, depth)."""
    depth = hashes.shape[1]
    levels, firsts, keys, children, ends, sizes = [], [0], [], [], [], []
    nodes = [(np.arange(len(hashes)), 0)]
    for rows, reached in nodes:  # grows while it is walked: breadth first
        at = reached
        while at < depth and len(rows) > 1 and (hashes[rows, at] == hashes[rows[0], at]).all():
            at += 1
        if len(rows) == 1 or at == depth:
            levels.append(-1)
            ends.append(reached if len(rows) == 1 else depth)
        else:
            levels.append(at)
            ends.append(at + 1)
            values, which = np.unique(hashes[rows, at], return_inverse=True)
            for number, value in enumerate(values):
                keys.append(value)
                children.append(len(nodes))
                nodes.append((rows[which == number], at + 1))
        firsts.append(len(keys))
        sizes.append(len(rows))
    leaf = np.array(levels) < 0
    inner = len(levels) - leaf.sum()
    factor = len(keys) / inner if inner else 2.0
    more = np.where(leaf, [_random_depth(size, factor) for size in sizes], 0.0)
    typical = max(1.0, _random_depth(len(hashes), factor))
    level, first, key, child = (np.array(v, np.int64) for v in (levels, firsts, keys, children))
    return _Tree(level, first, key, child, np.array(ends) + more, typical)


def _random_depth(rows: int, factor: float) -> float:
    """Return how deep a random prefix tree with ``factor`` children a node is over ``rows``."""
    if rows <= 1:
        return 0.0
    if rows <= round(factor):
        return 1.0
    return float((np.log(rows) + np.log(factor - 1.0) + np.euler_gamma) / np.log(factor) - 0.5)


#: A sample, the search for neighbours in it, and what else a member keeps.
_Member: TypeAlias = tuple[Any, ...]


@dataclass(kw_only=True, eq=False, repr=False)
class NeighbourEnsemble(Baseline):
    """Mean score by the k nearest rows of a sample, over many samples.

    Parameters
    ----------
    measure : {"distance", "reachability", "lof"}, default="distance"
        Mean distance to the neighbours; mean reachability distance, 1 / density, which reproduces
        what Li and Pham call local outlier factor; or the local outlier factor (Breunig et al.,
        2000), which compares a row's density with its neighbours'.
    n_estimators : int, default=100
        Number of samples, the paper's m.
    n_neighbors : int, default=5
        Neighbours k.
    max_samples : int or "auto", default="auto"
        Rows sampled for each member, without replacement; "auto" is min(0.1 n, 1000).
    contamination : float in (0, 0.5], default=0.1
        Share of the rows of `fit` that lie below `offset_`.
    n_jobs : int, optional
        Threads; None is one, -1 every core. Scores are the same for any number.
    random_state : int, RandomState or None
        Seed of the samples.

    Attributes
    ----------
    scores_ : ndarray of shape (n,), float64
        Scores of the rows of `fit`, as `score_samples` gives them.
    offset_ : float
        Score below which a row is an outlier: minus a distance in the rows' own units, or minus a
        local outlier factor.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features seen in `fit`, and their names, where the data had some.

    Notes
    -----
    A sampled row at distance 0 from a scored one is taken for the row itself and left out. Mean
    reachability distances are at least 1e-10, so that densities stay finite.

    References
    ----------
    A. Zimek, M. Gaudet, R. J. G. B. Campello and J. Sander. Subsampling for efficient and
    effective unsupervised outlier detection ensembles. KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench.baselines import NeighbourEnsemble
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 9.0
    >>> int(NeighbourEnsemble(random_state=0).fit(X).scores_.argmin())
    7
    """

    measure: Literal["distance", "reachability", "lof"] = "distance"
    n_estimators: int = 100
    n_neighbors: int = 5
    max_samples: int | str = "auto"
    contamination: float = 0.1
    n_jobs: int | None = None
    random_state: Any = None

    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
        if self.measure not in ("distance", "reachability", "lof"):
            raise UsageError(f"measure={self.measure!r}: needs 'distance', 'reachability' or 'lof'")
        members = whole("n_estimators", self.n_estimators, 1)
        k = whole("n_neighbors", self.n_neighbors, 1)
        if self.max_samples == "auto":
            size = min(len(X) // 10, 1000)
        elif isinstance(self.max_samples, str):
            raise UsageError(f"max_samples={self.max_samples!r}: needs 'auto' or a whole number")
        else:
            size = whole("max_samples", self.max_samples, 2)
        # A row of the sample needs a neighbour besides itself.
        size = min(len(X), max(2, size, k + 1))
        self._k = min(k, size - 1)
        samples = [rng.choice(len(X), size, replace=False) for _ in range(members)]
        self._members = [self._member(X[rows]) for rows in samples]

    def _score(self, rows: Floats) -> Floats:
        total = np.zeros(len(rows))
        for member in self._members:
            total += self._score_by(member, *self._neighbours(rows, *member[:2]))
        return total / len(self._members)

    def _member(self, sample: Floats) -> _Member:
        """Return what a member keeps of its sample."""
        search = NearestNeighbors(n_neighbors=self._k + 1, algorithm="brute").fit(sample)
        if self.measure == "distance":
            return sample, search
        distances, numbers = self._neighbours(sample, sample, search)
        reach = distances[:, -1]
        return sample, search, reach, _density(distances, reach[numbers])

    def _neighbours(
        self, rows: Floats, sample: Floats, search: NearestNeighbors
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return distances and numbers (n, k) of each row's nearest sampled rows but itself.

        A sampled row at distance 0 is taken for the row itself, and one of them left out.
        """
        nearest = search.kneighbors(rows, return_distance=False)
        distances, numbers = kernels.exact_neighbours(rows, sample, nearest)
        return distances, numbers

    def _score_by(self, member: _Member, distances: Floats, numbers: NDArray[np.int64]) -> Floats:
        """Score rows by their neighbours."""
        if self.measure == "distance":
            return np.asarray(-distances.mean(axis=1))
        _, _, reach, densities = member
        scores: Floats = -1.0 / _density(distances, reach[numbers])
        if self.measure == "lof":
            scores *= densities[numbers].mean(axis=1)
        return scores


def _density(distances: Floats, reach: Floats) -> Floats:
    """Return the local reachability density: 1 / mean of max(distance, neighbour's reach)."""
    density: Floats = 1.0 / (np.maximum(distances, reach).mean(axis=1) + 1e-10)
    return density
