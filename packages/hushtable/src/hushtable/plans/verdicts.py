"""Scores of cells by verdicts on rows.

An analyst's verdicts are counted like rows: confirmed outliers into P (nP of them), fine rows into
Q (nQ). A cell is evidence only if it holds more of them than expected from its share of all rows:
this is the information component of pharmacovigilance, observed against expected. Without
verdicts, nothing is added.

References
----------
A. Bate et al. A Bayesian neural network method for adverse drug reaction signal generation.
European Journal of Clinical Pharmacology 54, 1998.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import UsageError
from hushtable.plans.draws import purpose_of
from hushtable.plans.families import HashFamily
from hushtable.plans.score_rule import ScoreRule, exact

#: The column of verdicts, and its two values.
VERDICT = "verdict"
FINE, OUTLIER = "fine", "outlier"
#: Rows added to the observed and the expected number, so that few verdicts give few bits.
PRIOR = 0.5
#: Spreads of the model's scores for each bit of evidence: with one kind of verdicts only, and once
#: this many of the other kind are known. Measured: see the docs.
ALONE, BESIDE, KNOWN = 1.0, 2.0, 3
#: Verdicts of the rarer kind at which tables' weights count half; the largest weight of a table.
_EVEN, _MOST = 5.0, 3.0
#: Spreads and weights are rounded to multiples of 1 / _UNIT: sums may differ in their last bits.
_UNIT = 2.0**10

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def check_takes_verdicts(detector: str, score: ScoreRule, family: HashFamily) -> None:
    """Raise `UsageError` if verdicts cannot change the scores under a plan."""
    if not purpose_of(detector).scores_rows or score.unit != "bits":
        raise UsageError(
            f"the scores under a {detector!r} plan are not in bits, to which verdicts add: "
            "use HushTable or LSHiTables"
        )
    if family.n_histograms != family.n_tables:
        raise UsageError(
            f"{detector!r} takes the least of several counts, to which verdicts do not add: "
            "use HushTable or LSHiTables"
        )


class VerdictCounts(NamedTuple):
    """Exact verdicts: the rows in each cell (n_cells,) with each verdict, and their totals."""

    outliers: Ints
    n_outliers: int
    fine: Ints
    n_fine: int


def verdict_values(judged: VerdictCounts, share: Floats, offsets: Ints, spread: float) -> Floats:
    """Return what exact verdicts add to the score of every cell, in bits.

    ``share`` (n_cells,) is the share of all counted rows in each cell; ``offsets`` (n_tables + 1,)
    the first cell of each table, and the end; ``spread`` is that of the model's scores: see
    `spread_of`.
    """
    for_outliers = _evidence(judged.outliers, judged.n_outliers, share)
    for_fine = _evidence(judged.fine, judged.n_fine, share)
    # Many fine rows in succession say little about all others while no outlier is known.
    of_outliers = ALONE + (BESIDE - ALONE) * min(1.0, judged.n_fine / KNOWN)
    of_fine = ALONE + (BESIDE - ALONE) * min(1.0, judged.n_outliers / KNOWN)
    weight = np.repeat(_weights(judged, share, offsets), np.diff(offsets))
    return exact(spread * weight * (of_fine * for_fine - of_outliers * for_outliers))


def spread_of(values: Floats, share: Floats, offsets: Ints) -> float:
    """Return the standard deviation of cells' ``values`` (n_cells,) over the counted rows.

    It is computed within each table, and its square is averaged over the tables. The scores of two
    passes spread three times as far as those of one, and evidence has to have the same scale.
    """
    means = np.add.reduceat(values * share, offsets[:-1])
    centred = values - np.repeat(means, np.diff(offsets))
    variances = np.add.reduceat(centred**2 * share, offsets[:-1])
    return float(_rounded(np.sqrt(variances.mean())))


def _weights(judged: VerdictCounts, share: Floats, offsets: Ints) -> Floats:
    """Return the weights (n_tables,), 1 on average: more for tables that separate verdicts.

    Each row is judged by the evidence of all others: its own is subtracted from its cells.
    """
    outliers, n_outliers, fine, n_fine = judged
    even = np.ones(len(offsets) - 1)
    rarer = min(n_outliers, n_fine)
    if rarer == 0:
        return even
    for_outliers, for_fine = (
        _evidence(outliers, n_outliers, share),
        _evidence(fine, n_fine, share),
    )
    of_others = _evidence(np.maximum(outliers - 1, 0), n_outliers - 1, share)
    of_others_fine = _evidence(np.maximum(fine - 1, 0), n_fine - 1, share)
    apart = outliers * (of_others - for_fine) / n_outliers
    apart -= fine * (for_outliers - of_others_fine) / n_fine
    apart = np.maximum(np.add.reduceat(apart, offsets[:-1]), 0.0)
    if not apart.any():
        return even
    trust = rarer / (rarer + _EVEN)
    weights = 1.0 + trust * (np.minimum(apart / apart.mean(), _MOST) - 1.0)
    return _rounded(weights / weights.mean())


def _rounded(x: Any) -> Floats:
    return np.asarray(np.rint(x * _UNIT) / _UNIT, np.float64)


def _evidence(counts: Ints, n_rows: int, share: Floats) -> Floats:
    """Return log2((observed + a) / (expected + a)) of every cell, or 0 if that is negative."""
    found = np.log2((counts + PRIOR) / (n_rows * share + PRIOR))
    return np.asarray(np.maximum(found, 0.0), np.float64)
