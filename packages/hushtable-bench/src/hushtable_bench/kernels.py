"""The compiled loops of the baselines, which treat each row independently of the others."""

import numpy as np

from hushtable.kernels import kernel


@kernel
def project(X, directions):
    """Return X @ directions, added up in the same order for any number of rows."""
    n, d = X.shape
    depth = directions.shape[1]
    out = np.zeros((n, depth))
    for i in range(n):
        for j in range(d):
            x = X[i, j]
            for h in range(depth):
                out[i, h] += x * directions[j, h]
    return out


@kernel
def path_lengths(hashes, level, first, key, child, end):
    """Return the path length of each row's hash values (n, depth) in a tree."""
    n = len(hashes)
    depths = np.empty(n)
    for i in range(n):
        node = 0
        while level[node] >= 0:
            value = hashes[i, level[node]]
            low, high = first[node], first[node + 1]
            while low < high:
                middle = (low + high) // 2
                if key[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            if low == first[node + 1] or key[low] != value:
                break
            node = child[low]
        depths[i] = end[node]
    return depths


@kernel
def project_sparse(X, features, weights):
    """Return the products of rows with one sparse vector, added up in one order."""
    z = np.zeros(len(X))
    for i in range(len(X)):
        for k in range(len(features)):
            z[i] += X[i, features[k]] * weights[k]
    return z


@kernel
def bins_of(unit, bins):
    """Return the bin of each place, ``bins`` for one outside."""
    found = np.empty(len(unit), np.int64)
    for i in range(len(unit)):
        inside = (unit[i] >= 0.0) & (unit[i] < 1.0)
        found[i] = min(np.int64(unit[i] * bins), bins - 1) if inside else bins
    return found


@kernel
def log_likelihood(unit, bins):
    """Return sum_i n_i log(bins n_i / n) of the histogram of places in [0, 1)."""
    n = len(unit)
    counts = np.zeros(bins, np.int32)
    for i in range(n):
        counts[min(np.int32(unit[i] * bins), bins - 1)] += 1
    total = 0.0
    for c in counts:
        if c > 0:
            total += c * np.log(bins * c / n)
    return total


@kernel
def exact_neighbours(X, sample, numbers):
    """Return distances and numbers (n, k) of the k + 1 rows found, without one at distance 0.

    Distances are computed again, one row at a time: the search adds up blocks, so its last bits
    vary with the neighbouring rows, and a row's distance to itself does not have to be 0.
    """
    n, d = X.shape
    k = numbers.shape[1] - 1
    distances, kept = np.empty((n, k)), np.empty((n, k), np.int64)
    for i in range(n):
        squares = np.zeros(k + 1)
        for a in range(k + 1):
            row = numbers[i, a]
            for j in range(d):
                squares[a] += (X[i, j] - sample[row, j]) ** 2
        order = np.argsort(squares, kind="mergesort")
        skip = 1 if squares[order[0]] == 0.0 else 0
        for a in range(k):
            kept[i, a] = numbers[i, order[a + skip]]
            distances[i, a] = np.sqrt(squares[order[a + skip]])
    return distances, kept
