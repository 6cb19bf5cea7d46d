"""Ensembles of nearest neighbours: mean distance, and local outlier factor, in samples."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from hushtable.arguments import whole
from hushtable.errors import UsageError
from hushtable_bench.baselines import _kernels as kernels
from hushtable_bench.baselines._base import Baseline, Floats

#: A sample, the search for neighbours in it, and what else a member keeps.
_Member: TypeAlias = tuple[Any, ...]


@dataclass(kw_only=True, eq=False, repr=False)
class _Ensemble(Baseline):
    """Members that each score rows by their neighbours in a sample."""

    n_estimators: int = 100
    n_neighbors: int = 5
    max_samples: int | str = "auto"
    contamination: float = 0.1
    n_jobs: int | None = None
    random_state: Any = None

    def _fit(self, X: Floats, rng: np.random.Generator) -> None:
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
        return sample, search

    def _neighbours(
        self, rows: Floats, sample: Floats, search: NearestNeighbors
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Return distances and numbers (n, k) of each row's nearest sampled rows but itself.

        A sampled row at distance 0 is taken for the row itself, and one of them left out.
        """
        found = search.kneighbors(rows, return_distance=False)
        distances, numbers = kernels.exact_neighbours(rows, sample, found)
        return distances, numbers

    @abstractmethod
    def _score_by(self, member: _Member, distances: Floats, numbers: NDArray[np.int64]) -> Floats:
        """Score rows by their neighbours."""


class EnsembleKNN(_Ensemble):
    """Mean distance to the k nearest rows of a sample, mean over many samples.

    Parameters
    ----------
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
        Score below which a row is an outlier: minus a distance, in the rows' own units.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features seen in `fit`, and their names, where the data had some.

    Notes
    -----
    A sampled row at distance 0 from a scored one is taken for the row itself and left out.

    References
    ----------
    A. Zimek, M. Gaudet, R. J. G. B. Campello and J. Sander. Subsampling for efficient and
    effective unsupervised outlier detection ensembles. KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench.baselines import EnsembleKNN
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 9.0
    >>> int(EnsembleKNN(random_state=0).fit(X).scores_.argmin())
    7
    """

    def _score_by(self, member: _Member, distances: Floats, numbers: NDArray[np.int64]) -> Floats:
        scores: Floats = -distances.mean(axis=1)
        return scores


@dataclass(kw_only=True, eq=False, repr=False)
class EnsembleLOF(_Ensemble):
    """Local outlier factor (Breunig et al., 2000) in a sample, mean over many samples.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of samples, the paper's m.
    n_neighbors : int, default=5
        Neighbours k.
    max_samples : int or "auto", default="auto"
        Rows sampled for each member, without replacement; "auto" is min(0.1 n, 1000).
    relative : bool, default=True
        Whether a row's density is set against its neighbours', as the local outlier factor
        does. False scores by the reachability distance alone (1 / density), which is what
        reproduces the figures of Li and Pham.
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
        Score below which a row is an outlier: minus a local outlier factor.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of features seen in `fit`, and their names, where the data had some.

    Notes
    -----
    A sampled row at distance 0 from a scored one is taken for the row itself and left out.
    Distances are taken to be at least 1e-10 in the mean, so that densities stay finite.

    References
    ----------
    A. Zimek, M. Gaudet, R. J. G. B. Campello and J. Sander. Subsampling for efficient and
    effective unsupervised outlier detection ensembles. KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable_bench.baselines import EnsembleLOF
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 9.0
    >>> int(EnsembleLOF(random_state=0).fit(X).scores_.argmin())
    7
    """

    relative: bool = True

    def _member(self, sample: Floats) -> _Member:
        member = super()._member(sample)
        distances, numbers = self._neighbours(sample, *member)
        reach = distances[:, -1]
        return *member, reach, _density(distances, reach[numbers])

    def _score_by(self, member: _Member, distances: Floats, numbers: NDArray[np.int64]) -> Floats:
        _, _, reach, densities = member
        score: Floats = -1.0 / _density(distances, reach[numbers])
        return score * densities[numbers].mean(axis=1) if self.relative else score


def _density(distances: Floats, reach: Floats) -> Floats:
    """Return the local reachability density: 1 / mean of max(distance, neighbour's reach)."""
    density: Floats = 1.0 / (np.maximum(distances, reach).mean(axis=1) + 1e-10)
    return density
