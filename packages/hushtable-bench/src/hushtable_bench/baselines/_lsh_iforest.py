"""LSHiForest: isolation in prefix trees of p-stable hash functions."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.errors import UsageError
from hushtable_bench.baselines import _kernels as kernels
from hushtable_bench.baselines._base import Baseline, Floats


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
