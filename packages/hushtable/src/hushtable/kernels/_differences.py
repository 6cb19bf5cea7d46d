"""Differences of numbers: from regressions on their context, or on the other columns, and readings.

A reading is compared with the earlier ones of its entity, one after the other.
"""

import math

import numpy as np

from hushtable.kernels._common import inlined, kernel

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
    sums = np.empty(2 * k, np.float64)
    for i in range(n):
        for j in range(2 * k):
            sums[j] = weights[0, j]
        for c in range(len(left)):
            at, part = left[c, i], share[c, i]
            if part == 0.0:
                for j in range(2 * k):
                    sums[j] += weights[at, j]
            else:
                for j in range(2 * k):
                    sums[j] += weights[at, j] * (1.0 - part) + weights[at + 1, j] * part
        for j in range(k):
            differences[j, i] = (values[j, i] - sums[j]) / max(sums[k + j], least[j])


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
            sums = residuals[j, start:stop]
            for i in range(len(sums)):
                sums[i] = 0.0
            for other in range(0, k - 1, 2):  # two at a time: half of the loads and stores
                a, b = known[other], known[other + 1]
                of_a, of_b = weights[other, j], weights[other + 1, j]
                for i in range(len(sums)):
                    sums[i] = (sums[i] + a[i] * of_a) + b[i] * of_b
            if k % 2:
                a, of_a = known[k - 1], weights[k - 1, j]
                for i in range(len(sums)):
                    sums[i] += a[i] * of_a
            for i in range(len(sums)):
                x = X[start + i, j]
                sums[i] = sums[i] if x == x else np.nan


# --- earlier readings of an entity ----------------------------------------------------------------

#: Earlier readings in an hour of the day from which on their mean is used.
_FEW = 2.0
#: Standard deviations that count at most, and the deviations that have to be known for that.
_LIMIT, _KNOWN = 3.0, 5.0
#: Readings that there have to be for a spread.
_SOME = 3.0
#: Multiples of the usual size that a deviation has at most; also where the usual size is 0.
_FARTHEST = 1e6
#: Standard deviation of a normal distribution by its mean absolute deviation.
_NORMAL = math.sqrt(math.pi / 2.0)


@inlined
def _ratio(deviation, usual, behind):
    """Return a deviation by its usual size, at most `_FARTHEST`; 0 / 0 is 0.

    If the usual size is 0 and based on few values, such as whole numbers that were equal once or
    twice by chance, nothing is known about a different value: NaN.
    """
    if usual > 0.0:
        ratio = deviation / usual
        return math.copysign(_FARTHEST, ratio) if abs(ratio) > _FARTHEST else ratio
    if deviation == 0.0:
        return 0.0
    known = behind >= _KNOWN and deviation == deviation
    return math.copysign(_FARTHEST, deviation) if known else np.nan


@inlined
def _spread(recent, e, j, n):
    """Return the standard deviation of the last n readings of an entity and value."""
    total = 0.0
    for k in range(n):
        total += recent[e, k, j]
    mean, squares = total / n, 0.0
    for k in range(n):
        squares += (recent[e, k, j] - mean) * (recent[e, k, j] - mean)
    return math.sqrt(squares / (n - 1.0))


@kernel
def compare_readings(order, who, seconds, hours, x, state, found, gaps):
    """Write how readings ``x`` (n, d) differ from earlier ones of their entity, and take them in.

    ``state`` holds the arrays of `hushtable.data.history._State`, in their order. ``found``
    (6, n, d) receives, for each reading: the place as a ratio and the number of deviations behind
    its usual size, the same two of the change, the spread, and the usual spread; ``gaps`` (n,) the
    seconds since the last reading. Missing readings are compared with nothing: NaN.
    """
    times, ns, means, squares, hour_n, hour_mean = state[:6]
    n_deviations, deviations, lasts, changes, recent = state[6:]
    for i in order:
        e, hour = who[i], hours[i]
        gaps[i], times[e] = seconds[i] - times[e], seconds[i]
        for j in range(x.shape[1]):
            value, n, mean = x[i, j], ns[e, j], means[e, j]
            if value != value:
                for k in range(len(found)):
                    found[k, i, j] = np.nan
                continue

            total, known = changes[e, j], max(n - 1.0, 0.0)
            change, usual = value - lasts[e, j], _NORMAL * total / known
            found[2, i, j], found[3, i, j] = _ratio(change, usual, known), known
            if n >= 1.0:
                size = abs(change)
                if known >= _KNOWN and usual > 0.0:
                    size = min(size, _LIMIT * usual)
                changes[e, j] = total + size
            lasts[e, j] = value

            n_here, mean_here = hour_n[e, hour, j], hour_mean[e, hour, j]
            known, total = n_deviations[e, j], deviations[e, j]
            wider = math.sqrt(1.0 + 1.0 / n_here)  # the mean is an estimate
            deviation, usual = (value - mean_here) / wider, _NORMAL * total / known
            if n_here >= _FEW and known >= 1.0 and (total > 0.0 or known >= _KNOWN):
                found[0, i, j], found[1, i, j] = _ratio(deviation, usual, known), known
            else:
                overall = (value - mean) / math.sqrt(1.0 + 1.0 / n)
                sd = math.sqrt(squares[e, j] / (n - 1.0))
                found[0, i, j], found[1, i, j] = _ratio(overall, sd, n - 1.0), n - 1.0
            taken = value
            if n_here >= _FEW:
                if known >= _KNOWN and usual > 0.0 and abs(deviation) > _LIMIT * usual:
                    deviation = math.copysign(_LIMIT * usual, deviation)
                    taken = mean_here + deviation * wider
                n_deviations[e, j], deviations[e, j] = known + 1.0, total + abs(deviation)
            hour_n[e, hour, j] = n_here + 1.0
            hour_mean[e, hour, j] = mean_here + (taken - mean_here) / (n_here + 1.0)

            step = taken - mean
            ns[e, j], means[e, j] = n + 1.0, mean + step / (n + 1.0)
            squares[e, j] += step * (taken - means[e, j])
            for k in range(recent.shape[1] - 1, 0, -1):
                recent[e, k, j] = recent[e, k - 1, j]
            recent[e, 0, j] = value
            filled = min(n + 1.0, float(recent.shape[1]))
            found[4, i, j] = _spread(recent, e, j, int(filled)) if filled >= _SOME else np.nan
            found[5, i, j] = math.sqrt(squares[e, j] / n)
