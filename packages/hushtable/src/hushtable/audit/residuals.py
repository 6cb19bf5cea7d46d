"""Whether noise is what a ledger says: as large, and drawn for each cell by itself.

An attack on the cells of one row sees nothing of the other cells. But noise that two cells share
is taken off by their difference. So here all cells whose true counts are known are looked at, in
all releases of an audit: what they hold beyond these counts is the noise.
"""

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy import stats

from hushtable.audit.bounds import Floats, Ints
from hushtable.counts.base import Noised
from hushtable.privacy.mechanisms import named

#: Values that are looked at: more would take longer, and show little more.
MOST = 1 << 21
#: Values of one release: so few that the noise of several releases is compared.
_OF_ONE = 1 << 20
#: Share of the variance that may be missing: noise drawn as real numbers and rounded stands, too.
_SLACK = 0.01
#: Standard deviation, in counts, from which on noise is taken as continuous. Below, correlations
#: are not looked at: most noise is 0 then, and sums of products are not about normal.
_SMOOTH = 1.0
#: Pairs of values of which a sum of products is about normal.
_FEWEST = 1_000
#: Scale, in counts, up to which moments of noise are added up instead of taken as continuous.
_EXACT = 4.0
#: Variance below which noise is none.
_NONE = 1e-6
#: Standard deviations at which a value is cut off for correlations, whose tails are then known.
_CUT = 4.0


@dataclass
class Residuals:
    """Noise on cells of known counts, in standard deviations: in the order of cells and releases.

    The test of it, `p_value`, has two parts, of which the smaller p-value counts twice. No fault in
    particular is looked for.

    - The sum of squares, one-sided: is there less noise than stated?
    - The correlation of the noise with itself, at every distance up to nine tenths of all values
      (for a standard deviation of one count or more). Noise that is used again, or with its sign
      turned, for a chunk of cells, a table, a release or a period, is correlated at some distance.

    Under the ledger's noise, each correlation is about normal, so that the largest of k has a
    p-value of at most k times its own (Bonferroni).
    """

    _found: list[Floats] = field(default_factory=list)
    _size: int = 0
    _kurtosis: float = 0.0
    _smooth: bool = True

    def add(self, noise: Ints, mechanism: str, scale: float) -> None:
        """Add the noise on the cells of a release."""
        sd, kurtosis = _moments(mechanism, scale)
        if sd == 0.0:  # what is stated is next to no noise: nothing can be smaller
            return
        some = noise.ravel()[: min(_OF_ONE, MOST - self._size)] / sd
        self._found.append(some)
        self._size += len(some)
        self._kurtosis = max(self._kurtosis, kurtosis)
        self._smooth &= sd >= _SMOOTH

    def p_value(self) -> float:
        """Return how likely the noise of the ledger is to look as odd as this, at most."""
        values = np.concatenate([np.empty(0), *self._found])
        if len(values) < 2:
            return 1.0
        parts = [self._of_size(values), _of_correlations(values) if self._smooth else 1.0]
        return min(1.0, 2.0 * min(parts))

    def _of_size(self, values: Floats) -> float:
        """Return the p-value of so small a sum of squares.

        The sum is skewed to the right: below, the normal law is on the safe side.
        """
        spread = np.sqrt((2.0 + self._kurtosis) / len(values))
        least = 1.0 - _SLACK
        return float(stats.norm.cdf((np.mean(values**2) - least) / (least * spread)))


@cache
def _moments(mechanism: str, scale: float) -> tuple[float, float]:
    """Return the standard deviation and the excess kurtosis of noise of whole numbers."""
    kind = named(mechanism)
    if scale >= _EXACT:
        return kind.noise_sd(scale), kind.excess_kurtosis
    x = np.arange(1, math.ceil(60.0 * scale) + 60)
    # How much less likely x is than 0.
    law = np.exp([-kind.log_ratio(scale, np.array(at), np.int64(at)) for at in x.tolist()])
    variance, fourth = (2.0 * float(law @ x.astype(np.float64) ** k) for k in (2, 4))
    total = 1.0 + 2.0 * float(law.sum())
    if variance < _NONE:
        return 0.0, 0.0
    return math.sqrt(variance / total), fourth * total / variance**2 - 3.0


def _of_correlations(values: Floats) -> float:
    n = len(values)
    cut = np.clip(values, -_CUT, _CUT)
    scale = float(np.mean(cut**2))
    if scale == 0.0:
        return 1.0  # no noise at all, which the other part finds
    transformed = np.fft.rfft(cut, 2 * n)
    # At the largest distance, a tenth of the values and no few remain to be compared.
    lags = np.arange(1, max(n // 2, min(n - n // 10, n - _FEWEST)) + 1)
    sums = np.fft.irfft(np.abs(transformed) ** 2, 2 * n)[lags]
    largest = float(np.max(np.abs(sums) / np.sqrt(n - lags))) / scale
    return float(min(1.0, 2.0 * len(lags) * stats.norm.sf(largest)))


def stated_scale(release: Noised) -> float:
    """Return the scale of a release's noise by its ledger, with the parts that count."""
    noise = named(release.ledger.mechanism)
    return noise.scale(release.ledger.sensitivity, noise.spent(release.ledger.own))


def p_of_release(release: Noised, counts: Ints) -> float | None:
    """Return the `Residuals.p_value` of one release of known counts; None of exact counts."""
    if getattr(release, "ledger", None) is None:
        return None
    residuals = Residuals()
    residuals.add(release.counts - counts, release.ledger.mechanism, stated_scale(release))
    return residuals.p_value()
