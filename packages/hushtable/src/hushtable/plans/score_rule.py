"""From counts to scores (Algorithm 2 of the paper): a value per cell, and its mean over the tables.

`ScoreRule` gives the value of a cell, `Scoring` the scores of rows, which `hushtable.scores.Scorer`
reads and encodes.

Values are rounded to multiples of 2**-20, so that their sums are exact in float64 in any order:
scores are bit-identical on every code path, thread count and platform.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import Stored, always
from hushtable.data.encoding import Codes
from hushtable.errors import PlanError
from hushtable.language import _

_UNIT = 2.0**20
#: Every rule by its name, and whether it takes smoothing.
_SMOOTHED = {
    **{"count": False, "log2": False, "smoothed_log2": True, "pseudocount_log2": True},
    "context_log2": True,
}

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def exact(values: Floats) -> Floats:
    """Return the values rounded to multiples of 2**-20."""
    units = values * _UNIT
    np.rint(units, out=units)
    units /= _UNIT
    return units


def logs(counts: Counts, added: float) -> Floats:
    """Return ``exact(np.log2(counts + added))`` of few different counts by table lookup."""
    most = int(counts.max(initial=0))
    if most < len(counts) // 2 and counts.min(initial=0) >= 0:
        return exact(np.log2(np.arange(most + 1) + added))[counts]
    return exact(np.log2(counts + added))


@dataclass(frozen=True, slots=True)
class ScoreRule(Stored):
    """How the count c of a cell becomes a score (low = abnormal), in bits.

    ``count``: c itself, in rows instead of bits (ACE). ``log2``: log2(max(c, 1)) (paper,
    Algorithm 2). ``smoothed_log2``: log2(c + smoothing * N), where N is the number of counted rows.
    ``pseudocount_log2``: log2(c + smoothing), smoothing in rows. The first two take no smoothing.
    ``context_log2`` takes shares instead of counts: see `values_in_context`.
    """

    stored_as: ClassVar[str] = "a plan's score"

    name: Literal["count", "log2", "smoothed_log2", "pseudocount_log2", "context_log2"]
    smoothing: float = always(0.0)

    def __post_init__(self) -> None:
        if self.name not in [*_SMOOTHED]:  # in a damaged file, it may be a list
            raise PlanError(f"score rule {self.name!r} is unknown: needs one of {(*_SMOOTHED,)}")
        smoothed = _SMOOTHED[self.name]
        if not 0.0 <= self.smoothing <= 1.0 or (self.smoothing > 0) != smoothed:
            needed = "a number above 0 and at most 1" if smoothed else "none"
            raise PlanError(
                f"score rule {self.name!r} with smoothing {self.smoothing}: needs {needed}"
            )

    @property
    def unit(self) -> str:
        """Unit of the scores: bits, or rows."""
        return "rows" if self.name == "count" else "bits"

    def words(self, two_passes: bool) -> str:
        """Describe in a sentence what a difference between two scores means."""
        if self.name == "context_log2":
            return _(
                "A low score is unusual for its context. If half as many rows of the context were "
                "like a row, its score would be lower by at most one bit."
            )
        if self.unit == "rows":
            return _(
                "A low score is unusual: it is the mean number of rows in the cells of the row."
            )
        if two_passes:
            return _(
                "A low score is unusual. If half as many rows were like a row, its score would be "
                "lower by at most two bits: the model counts rows in two passes."
            )
        return _(
            "A low score is unusual. If half as many rows were like a row, its score would be "
            "lower by at most one bit."
        )

    def values(self, counts: Counts, n_rows: int) -> Floats:
        """Return the score of every cell; ``n_rows`` is the number of rows counted."""
        if self.name == "count":
            return counts.astype(np.float64)
        if self.name == "log2":
            return exact(np.log2(np.maximum(counts, 1)))
        rows = n_rows if self.name == "smoothed_log2" else 1
        return logs(counts, self.smoothing * rows)

    def values_in_context(self, p: Floats, q: Floats) -> Floats:
        """Return the score of every cell, given its share p in its context and q in all rows.

        log2(p / s + 1) + log2((1 / s + 1) / (q / s + 1)) / 2, where s is the smoothing: log2(p + s)
        minus half of log2(q + s), shifted so that it is never below 0. The half keeps rows that
        are rare everywhere below usual ones: with the whole term, the score would be the mutual
        information of context and behaviour, which does not depend on that.
        """
        s = self.smoothing
        return exact(np.log2(p / s + 1.0) + np.log2((1.0 / s + 1.0) / (q / s + 1.0)) / 2.0)

    def noisy_values(self, counts: Counts, noise_sd: float) -> Floats:
        """Return the score of every cell from noisy counts, by a replacement of this rule.

        ``count`` and ``log2``, the paper's, stay as they are: c and log2(max(c, 1)).
        The smoothed rules become asinh(c / (2 sigma)) / ln 2, which is log2(c / sigma) for counts
        far above the noise, and linear, c / (2 sigma), for counts within it, so that the noise on
        empty cells averages out over the tables.
        """
        if not self.smoothing:
            return self.values(counts, 0)
        return exact(np.arcsinh(counts / (2.0 * noise_sd)) / np.log(2.0))

    def noisy_slopes(self, counts: Counts, noise_sd: float) -> Floats:
        """Return the derivative of `noisy_values` by the count."""
        if self.name == "count":
            return np.ones(len(counts))
        if self.name == "log2":
            slopes = np.where(counts > 1, 1.0, 0.0) / np.maximum(counts, 1)
        else:
            slopes = 1.0 / np.hypot(counts, 2.0 * noise_sd)
        return np.asarray(slopes / np.log(2.0), np.float64)

    def two_pass_values(self, first: Counts, second: Counts, n_rows: int) -> Floats:
        """Return log2(C2 + 1) plus this rule's score of C1, for a plan of the second pass."""
        values = logs(second, 1.0)
        values += self.values(first, n_rows)
        return values


#: A function from the codes of n rows to n sums.
Summing = Callable[[Codes], Floats]


class Scoring:
    """From the codes of n rows to their scores (n,): means of their cells' values over the tables.

    A row beyond the ranges loses a share p of its distance to one unit below the lowest score that
    cells can give: p = e**2 / (margin**2 + e**2), where e is the sum over its features of
    `Codes.outside`'s ``beyond``. If the ranges were widened by a random amount, which is less than
    e ranges with probability p, this is the probability that the row stays outside. Without a
    margin it loses nothing.

    ``summed`` returns the sums of cells' values, ``least`` is the lowest sum, and ``margin`` is in
    ranges.
    """

    def __init__(self, summed: Summing, n_tables: int, least: float, margin: float) -> None:
        self._sum, self._n_tables, self._margin = summed, n_tables, margin
        self._depth = least / n_tables - 1.0

    def __call__(self, codes: Codes) -> Floats:
        """Return the scores (n,)."""
        scores = self.clipped(codes)
        return scores - self.lost(codes, scores) if self._loses(codes) else scores

    def clipped(self, codes: Codes) -> Floats:
        """Return the scores (n,) as if numbers beyond their range were at its end."""
        return self._sum(codes) / self._n_tables

    def share_kept(self, codes: Codes) -> Floats:
        """Return the share (n,) that each row keeps of its distance from below; 1 inside."""
        return self._kept_and_lost(codes)[0]

    def lost(self, codes: Codes, clipped: Floats) -> Floats:
        """Return what each row (n,) loses for being beyond, given the scores from `clipped`."""
        return self._kept_and_lost(codes)[1] * (clipped - self._depth)

    def _kept_and_lost(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return 1 - p and p of each row (n,), each computed without the other's rounding."""
        if not self._loses(codes):
            return np.ones(len(codes)), np.zeros(len(codes))
        beyond = codes.outside.totals(len(codes))
        # Do not square a distance: it may be 1e300.
        near, far = self._margin / (self._margin + beyond), beyond / (self._margin + beyond)
        whole = near * near + far * far
        return near * near / whole, far * far / whole

    def _loses(self, codes: Codes) -> bool:
        return self._margin > 0.0 and len(codes.outside) > 0
