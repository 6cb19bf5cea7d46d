"""LODA: histograms of sparse random projections."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.errors import UsageError
from hushtable.threads import for_each, n_threads
from hushtable_bench.baselines import _kernels as kernels
from hushtable_bench.baselines._base import Baseline, Floats

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
