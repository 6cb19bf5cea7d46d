"""The gate of the second pass: which rows are dense enough to be counted again."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.plans.families import HashFamily, ScoreHistogram
from hushtable.plans.score_rule import ScoreRule, logs
from hushtable.privacy.layout import onto_simplex

#: Cells of the histogram by which the gate is found: of exact counts, and under noise, where fewer
#: cells are more accurate.
GATE_BINS, PRIVATE_GATE_BINS = 128, 32
#: Cells of a histogram of scores, which ranks rows.
RANK_BINS, PRIVATE_RANK_BINS = 4096, 128
#: How the counts of all rows score behind a gate, instead of HushTable's rule: smoother, because
#: the counts of the dense rows distinguish the others. Measured: see the docs.
SECOND_PASS = ScoreRule("smoothed_log2", 0.2)

_UNIT = 2**20

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: A function from the codes of n rows to whether the second pass counts each (n,).
Gate = Callable[[Codes], NDArray[np.bool_]]


def gate_values(first: Ints) -> Floats:
    """Return log2(C1 + 1) of every cell, where C1 are the counts of all rows."""
    return logs(first, 1.0)


def mean_threshold(first: Ints, n_rows: int) -> int:
    """Return the mean over all rows of the sum of their cells' `gate_values`, in 2**-20 bits.

    It follows from the counts of the first pass alone, in whole numbers, and is rounded up.
    """
    # Python's integers: c * v needs more than 64 bits for large counts.
    units = (gate_values(first) * _UNIT).astype(np.int64)
    used = np.flatnonzero(first)
    total = sum(int(c) * int(v) for c, v in zip(first[used], units[used], strict=True))
    return -(-total // n_rows)


def otsu_cell(counts: Ints | Floats) -> int:
    """Return the cell of a histogram at which its upper class begins, by Otsu's method.

    The split maximises N0 N1 (M0 / N0 - M1 / N1)^2, where N are the numbers of rows and M the sums
    of their places in both classes. 0 if all rows are in one cell.

    References
    ----------
    N. Otsu. A threshold selection method from gray-level histograms. IEEE Transactions on
    Systems, Man, and Cybernetics 9(1), 1979.
    """
    rows, places = np.cumsum(counts), np.cumsum(counts * np.arange(len(counts)))
    below, above = rows[:-1].astype(np.float64), (rows[-1] - rows[:-1]).astype(np.float64)
    split = np.flatnonzero((below > 0) & (above > 0))
    if len(split) == 0:
        return 0
    gap = places[split] / below[split] - (places[-1] - places[split]) / above[split]
    return int(split[np.argmax(below[split] * above[split] * gap * gap)]) + 1


def noised_otsu_cell(counts: Ints, n_rows: int) -> int:
    """Return `otsu_cell` of noisy counts, which are first fitted to about ``n_rows`` rows."""
    return otsu_cell(onto_simplex(counts.astype(np.float64), float(max(1, n_rows))))


def gate_histogram(family: HashFamily, first: Ints) -> ScoreHistogram:
    """Return the histogram of rows' mean `gate_values`, by which the gate is found.

    The mean is over half of the tables, which chooses as well in half of the time.
    """
    half = family.part((family.n_tables + 1) // 2)
    return score_histogram(half, gate_values(first[: half.n_cells]), GATE_BINS)


def score_histogram(family: HashFamily, values: Floats, bins: int) -> ScoreHistogram:
    """Return the histogram of rows' mean ``values`` (n_cells,), in 2**-20 bits."""
    return ScoreHistogram(family.schema, family, np.rint(values * _UNIT).astype(np.int64), bins)


def gate_by_mean(family: HashFamily, first: Ints, n_rows: int) -> Gate:
    """Return the gate of version 0.1: the mean over all rows."""
    sums, threshold = family.summing(gate_values(first)), mean_threshold(first, n_rows) / _UNIT
    return lambda codes: sums(codes) >= threshold


def gate_by_cell(histogram: ScoreHistogram, cell: int) -> Gate:
    """Return the gate that lets rows pass from a cell of the histogram on."""
    return lambda codes: histogram.cells_of(codes) >= cell
