"""The gate of the second pass: which rows are dense enough to be counted again."""

import numpy as np
from numpy.typing import NDArray

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


def gate_histogram(
    family: HashFamily, rule: ScoreRule, first: Ints, noise_sd: float
) -> ScoreHistogram:
    """Return the histogram of rows' densities, by which the gate after counts of all rows is found.

    The density is the mean of log2(C1 + 1), where C1 are exact counts, over half of the tables,
    which chooses as well in half of the time; under noise, it is the score by the plan's rule.
    """
    if noise_sd > 0.0:
        return score_histogram(family, rule.noisy_values(first, noise_sd), PRIVATE_GATE_BINS)
    half = family.part((family.n_tables + 1) // 2)
    return score_histogram(half, logs(first[: half.n_cells], 1.0), GATE_BINS)


def score_histogram(family: HashFamily, values: Floats, bins: int) -> ScoreHistogram:
    """Return the histogram of rows' mean ``values`` (n_cells,), in 2**-20 bits."""
    return ScoreHistogram(family.schema, family, np.rint(values * _UNIT).astype(np.int64), bins)
