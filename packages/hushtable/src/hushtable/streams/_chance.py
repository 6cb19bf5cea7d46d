"""Distance between two samples of the same rows, by chance and by noise.

Where nothing changed, the squared distance is a degenerate U-statistic of mean 0. With samples of
n and m rows its variance is (2 / n(n-1) + 2 / m(m-1) + 4 / nm) times the mean squared centred
kernel of two rows (Gretton et al., *A Kernel Two-Sample Test*, 2012, appendix B), which for one
histogram with probabilities p is sum p^2 - 2 sum p^3 + (sum p^2)^2: known from counts. How the
histograms of many tables depend on each other is not. Their standard deviations are added up,
then, as if each said the same as all others: an upper bound, unless a sample of rows gives
the kernel itself.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushtable.data.encoding import Encoder
from hushtable.data.typed import open_rows
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.streams._sides import Floats, Pair

#: Standard deviations that 5% of a chi-square of one degree of freedom lie beyond. The distance
#: is distributed as a sum of such: the more that matter in it, the fewer lie beyond.
_FAR = 2.01


def exceeded_by_chance(pairs: Sequence[Pair], squared: float | None = None) -> float:
    """Return the distance that chance alone exceeds in at most about one of twenty cases.

    The distance adds up the histograms of ``pairs``; ``squared`` is the mean squared centred
    kernel in them, where it is known: see `squared_kernel`.
    """
    n, m = pairs[0].before.rows, pairs[0].after.rows
    if squared is None:
        # The standard deviation of a sum is at most the sum of standard deviations.
        squared = float(np.concatenate([np.sqrt(_squared_kernels(p)) for p in pairs]).sum()) ** 2
    sampling = (2.0 / (n * (n - 1.0)) + 2.0 / (m * (m - 1.0)) + 4.0 / (n * m)) * squared
    tables = np.concatenate([pair.tables for pair in pairs])
    noise = np.bincount(tables, np.concatenate([np.sqrt(_noise(pair)) for pair in pairs]))
    return _FAR * float(np.sqrt(sampling + (noise**2).sum()))


def squared_kernel(plan: Plan, sample: Any) -> float:
    """Return the mean squared centred kernel of two rows: histograms that they share.

    Estimated without bias from some hundred rows, drawn at random, by U-centring (Székely and
    Rizzo, *Partial distance correlation*, 2014). Raises `UsageError` for fewer than four.
    """
    from scipy import sparse  # takes a while to import, and reports mostly do without

    encoder, family = Encoder(plan.schema), plan.family
    cells = []
    for batch in open_rows(sample, plan.schema).read():
        for i in range(len(batch)):
            counts = np.zeros(family.n_cells, np.int64)
            family.count(encoder.encode(batch[i : i + 1]), counts)
            cells.append(sparse.csr_array(counts[np.newaxis].astype(np.float64)))
    n = len(cells)
    if n < 4:
        raise UsageError(f"{n} rows as a sample: needs four or more, better some hundred")
    rows = sparse.vstack(cells)
    kernel = (rows @ rows.T).toarray()
    np.fill_diagonal(kernel, 0.0)
    sums = kernel.sum(axis=1)
    kernel -= np.add.outer(sums, sums) / (n - 2) - sums.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(kernel, 0.0)
    return float((kernel**2).sum() / (n * (n - 3)))


def _squared_kernels(pair: Pair) -> Floats:
    """Return the mean squared centred kernel in each histogram, from the counts of both."""
    a, b = pair.before, pair.after
    n, c = a.rows + b.rows, a.counts + b.counts
    variance = a.variance + b.variance + 2.0 * pair.covariance
    first = pair.offsets[:-1]
    squares, cubes = c**2 - variance, c**3 - 3.0 * variance * c  # free of noise on average
    q = np.add.reduceat(squares - c, first) / (n * (n - 1.0))
    q = np.clip(q, 0.0, 1.0)
    r = np.add.reduceat(cubes - 3.0 * squares + 2.0 * c, first) / (n * (n - 1.0) * (n - 2.0))
    # By Cauchy and Schwarz, sum p^3 is at least (sum p^2)^2.
    return np.clip(q - 2.0 * r + q**2, 0.0, q - q**2)


def _noise(pair: Pair) -> Floats:
    """Return the variance that noise adds to the distance in each histogram."""
    a, b = pair.before, pair.after
    cells = np.diff(pair.offsets)
    shared = pair.covariance / (a.rows * b.rows)
    variance = a.variance / a.rows**2 + b.variance / b.rows**2 - 2.0 * shared
    fourth = a.fourth / a.rows**4 + b.fourth / b.rows**4
    # Of what is taken off for sampling.
    linear = a.variance / a.rows**4 + b.variance / b.rows**4 + 2.0 * shared / (a.rows * b.rows)
    apart = 1.0 / a.rows + 1.0 / b.rows  # squared distance of samples, at most
    return 4.0 * variance * apart + cells * (2.0 * variance**2 + fourth + linear)
