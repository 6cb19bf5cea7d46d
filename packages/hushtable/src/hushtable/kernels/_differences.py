"""Differences of numbers from a regression on their context."""

import numpy as np

from hushtable.kernels._cache import kernel


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
