"""Differences of numbers from regressions: on their context, or on the other columns."""

import numpy as np

from hushtable.kernels._cache import kernel
from hushtable.kernels._common import inlined

#: Rows that `take_residuals` processes at once.
_ROWS = 256


@kernel
def take_differences(values, left, share, weights, least, differences):
    """Write the distance of values (k, n) from a prediction, in the sizes predicted for them.

    The prediction and its size in row i are the sum of ``weights[0]`` (2 k,) and of a function of
    each column c of the context: of the weights ``left[c, i]`` and the next ones, with
    ``share[c, i]`` of the way between both. Sizes are at least ``least`` (k,). The order of
    additions is fixed, so the same row gives the same bits.
    """
    k, n = values.shape
    found = np.empty(2 * k, np.float64)
    for i in range(n):
        for j in range(2 * k):
            found[j] = weights[0, j]
        for c in range(len(left)):
            at, part = left[c, i], share[c, i]
            if part == 0.0:
                for j in range(2 * k):
                    found[j] += weights[at, j]
            else:
                for j in range(2 * k):
                    found[j] += weights[at, j] * (1.0 - part) + weights[at + 1, j] * part
        for j in range(k):
            differences[j, i] = (values[j, i] - found[j]) / max(found[k + j], least[j])


@inlined
def _fill(row, weights, sweeps, known):
    """Replace the missing values of a row by those that have no residual (Gauss-Seidel)."""
    for _ in range(sweeps):
        done = True
        for j in range(len(row)):
            if row[j] != row[j]:
                residual = 0.0
                for i in range(len(row)):
                    residual += known[i] * weights[i, j]
                known[j] -= residual
                done = False
        if done:
            return


@kernel
def take_residuals(X, centre, weights, sweeps, residuals):
    """Write the residuals (k, n) of rows ``X`` (n, k): see `hushtable.data.residuals.Relations`.

    In ``sweeps`` over a row, each missing value becomes the one that the others predict.

    Rows fill the vectors, so that a row's additions are in the order of its columns: the same row
    gives the same bits.
    """
    n, k = X.shape
    known = np.empty((k, _ROWS), np.float64)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        gaps = np.int64(0)
        for j in range(k):
            for i in range(stop - start):
                x = X[start + i, j] - centre[j]
                known[j, i] = x if x == x else 0.0
                gaps += np.int64(x != x)
        if sweeps > 0 and gaps > 0:
            for i in range(stop - start):
                _fill(X[start + i], weights, sweeps, known[:, i])
        for j in range(k):
            found = residuals[j, start:stop]
            for i in range(len(found)):
                found[i] = 0.0
            for other in range(0, k - 1, 2):  # two at a time: half of the loads and stores
                a, b = known[other], known[other + 1]
                of_a, of_b = weights[other, j], weights[other + 1, j]
                for i in range(len(found)):
                    found[i] = (found[i] + a[i] * of_a) + b[i] * of_b
            if k % 2:
                a, of_a = known[k - 1], weights[k - 1, j]
                for i in range(len(found)):
                    found[i] += a[i] * of_a
            for i in range(len(found)):
                x = X[start + i, j]
                found[i] = found[i] if x == x else np.nan
