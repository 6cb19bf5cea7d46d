"""Whether noise is what a ledger states: as large, and drawn separately for each cell.

An attack on the cells of one row sees nothing of the other cells. But noise that two cells share is
removed by taking their difference. Therefore all cells with known true counts are examined here, in
all releases of an audit: their differences from these counts are the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from hushtable.counts.base import Noised
from hushtable.privacy.mechanisms import named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Largest number of values to examine: more would take longer and show little more.
MOST = 1 << 21
#: Largest number of values of one release: small, so that several releases are compared.
_OF_ONE = 1 << 20
#: Tolerated missing share of the variance, so that rounded noise of real numbers passes too.
_SLACK = 0.01
#: Standard deviation, in counts, from which on noise is treated as continuous. Below it,
#: correlations are not examined: most noise is 0 then, and sums of products are not normal.
_SMOOTH = 1.0
#: Number of pairs of values from which on a sum of products is approximately normal.
_FEWEST = 1_000
#: Scale, in counts, up to which moments of noise are summed instead of taken as continuous.
_EXACT = 4.0
#: Variance below which there is no noise.
_NONE = 1e-6
#: Standard deviations at which values are truncated for correlations, so that tails are known.
_CUT = 4.0


@dataclass
class Residuals:
    """Noise on cells with known counts, in standard deviations, in the order of cells and releases.

    Its test, `p_value`, has two parts, and the smaller p-value counts twice. It is not aimed at any
    particular fault.

    - The sum of squares, one-sided: is there less noise than stated?
    - The correlation of the noise with itself, at every distance up to nine tenths of all values
      (for a standard deviation of one count or more). Noise that is used again, or with its sign
      reversed, for a chunk of cells, a table, a release or a period, is correlated at some
      distance.

    Under the ledger's noise, each correlation is approximately normal, so that the largest of k has
    a p-value of at most k times its own (Bonferroni).
    """

    _found: list[Floats] = field(default_factory=list)
    _size: int = 0
    _kurtosis: float = 0.0
    _smooth: bool = True

    def add(self, noise: Ints, mechanism: str, scale: float) -> None:
        """Add the noise on the cells of a release."""
        sd, kurtosis = _moments(mechanism, scale)
        if sd == 0.0:  # the stated noise is almost zero: nothing can be smaller
            return
        sample = noise.ravel()[: min(_OF_ONE, MOST - self._size)] / sd
        self._found.append(sample)
        self._size += len(sample)
        self._kurtosis = max(self._kurtosis, kurtosis)
        self._smooth &= sd >= _SMOOTH

    def p_value(self) -> float:
        """Return an upper bound on the probability that the ledger's noise is this unusual."""
        values = np.concatenate([np.empty(0), *self._found])
        if len(values) < 2:
            return 1.0
        parts = [self._of_size(values), _of_correlations(values) if self._smooth else 1.0]
        return min(1.0, 2.0 * min(parts))

    def _of_size(self, values: Floats) -> float:
        """Return the p-value of such a small sum of squares.

        The sum is skewed to the right: below its mean, the normal law is on the safe side.
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
        return 1.0  # no noise at all, which the other part detects
    transformed = np.fft.rfft(cut, 2 * n)
    # At the largest distance, a tenth of the values, which is not few, can still be compared.
    lags = np.arange(1, max(n // 2, min(n - n // 10, n - _FEWEST)) + 1)
    sums = np.fft.irfft(np.abs(transformed) ** 2, 2 * n)[lags]
    largest = float(np.max(np.abs(sums) / np.sqrt(n - lags))) / scale
    return float(min(1.0, 2.0 * len(lags) * stats.norm.sf(largest)))


def stated_scale(release: Noised) -> float:
    """Return the scale of a release's noise by its ledger, from the parts that count."""
    noise = named(release.ledger.mechanism)
    return noise.scale(release.ledger.sensitivity, noise.spent(release.ledger.own))


def p_of_release(release: Noised, counts: Ints) -> float | None:
    """Return the `Residuals.p_value` of a release of known counts; None for exact counts."""
    if getattr(release, "ledger", None) is None:
        return None
    residuals = Residuals()
    residuals.add(release.counts - counts, release.ledger.mechanism, stated_scale(release))
    return residuals.p_value()


#: An audit of a few thousand trials cannot show more.
_MOST = 50.0


@dataclass(frozen=True, slots=True)
class Claim:
    """The epsilon and delta that a release claims, and the confidence of an audit's bounds."""

    epsilon: float
    delta: float
    confidence: float = 0.95

    @property
    def error(self) -> float:
        """Probability with which a bound may be wrong."""
        return 1.0 - self.confidence

    def finding(self, audit: str, bound: float, trials: int, **more: float | None) -> "Outcome":
        """Return the finding of an audit about this claim."""
        return Outcome(audit, self.epsilon, self.delta, bound, self.confidence, trials, **more)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an audit.

    Epsilon is at least ``lower_bound``, with probability ``confidence`` over the audit's own
    randomness. If Gaussian noise is claimed, ``gaussian_bound`` is the smallest epsilon of Gaussian
    noise at which the attack can succeed this often: if it is above the claim, the noise is not the
    claimed one. ``confidence`` is that of both bounds together.
    """

    audit: str  # which attack
    epsilon: float  # claimed by the release, like delta
    delta: float
    lower_bound: float
    confidence: float
    trials: int  # releases or canaries on which the bound is based
    gaussian_bound: float | None = None
    auc: float | None = None  # area under the attack's ROC curve, if it ranks
    #: The `bound` that the same audit finds for an ideal mechanism, exactly as private as claimed.
    #: The closer it is to the claim, the smaller the errors that the audit can find.
    ideal: float | None = None
    #: Probability that the stated noise is as unusual as the observed noise, if it is visible:
    #: see `hushtable_bench.systems.bounds`.
    p_noise: float | None = None

    @property
    def bound(self) -> float:
        """The higher of the two bounds."""
        return max(self.lower_bound, self.gaussian_bound or 0.0)

    @property
    def rejects(self) -> bool:
        """True if, with the stated confidence, the claim is wrong or the noise is not as stated.

        The test of the noise adds a tenth of the bounds' error probability.
        """
        return self.bound > self.epsilon or self.is_other_noise

    @property
    def is_other_noise(self) -> bool:
        """True if the noise is smaller than stated, or shared between cells or releases."""
        return self.p_noise is not None and self.p_noise < 0.1 * (1.0 - self.confidence)

    def words(self) -> str:
        """Describe the finding in a sentence."""
        verdict = "rejected" if self.rejects else "not rejected"
        if self.is_other_noise:
            verdict += f": the noise is not the stated one (p = {self.p_noise:.2g})"
        sure = f"{100 * self.confidence:.4g}% confidence"
        given = "" if self.gaussian_bound is None else " of Gaussian noise"
        ideal = "" if self.ideal is None else f", an ideal mechanism shows {self.ideal:.2f}"
        return (
            f"{self.audit}: epsilon{given} is at least {self.bound:.2f} ({sure}, {self.trials:,} "
            f"trials{ideal}); the claim of {self.epsilon:g} is {verdict}"
        )


def judge(
    audit: str,
    statistics: Sequence[tuple[Floats, Floats]],
    *,
    middle: float | None = None,
    **claim: float,
) -> Outcome:
    """Bound epsilon by statistics that are higher if a row is in the data.

    ``statistics`` holds, for each statistic of the attacker, its values (trials,) without the row
    and with it; ``middle`` is half way between the two means of the first, if Gaussian noise is
    claimed; ``claim`` are the arguments of `Claim`.
    """
    (absent, present), claimed = statistics[0], Claim(**claim)
    trials, delta = len(absent), claimed.delta
    error = claimed.error / (1 if middle is None else 2)
    gaussian = None
    if middle is not None:
        # This threshold is not chosen from the data, so all trials can be used.
        false, true = (int((values > middle).sum()) for values in (absent, present))
        gaussian = gaussian_bound(false, true, trials, delta, error / 2.0)
    error /= len(statistics)
    bound = max(epsilon_bound(no, yes, delta, error) for no, yes in statistics)
    best = max(area(no, yes) for no, yes in statistics)
    return claimed.finding(audit, bound, trials, gaussian_bound=gaussian, auc=best)


# --- log likelihood ratios ----------------------------------------------------------------------


def exact_cells(x: Ints, added: Ints | np.int64) -> Floats:
    """Mark the cells that hold exactly their count with the row by 1, and without it by -1."""
    return np.asarray((x == added).astype(np.float64) - (x == 0), np.float64)


def judge_ratios(
    audit: str,
    statistics: Sequence[tuple[Floats, Floats]],
    mechanism: str,
    added: Ints,
    **claim: float,
) -> Outcome:
    """Evaluate log likelihood ratios, together with those that an ideal mechanism would give.

    ``added`` is the contribution of one person to each of the cells that change.
    """
    noise, claimed = named(mechanism), Claim(**claim)
    # The midpoint of the means of the log likelihood ratio is zero.
    middle = 0.0 if noise.gaussian else None
    finding = judge(audit, statistics, middle=middle, **claim)
    if not claimed.epsilon > 0.0:
        return finding
    ideal = noise.ideal_ratios(added, claimed.epsilon, claimed.delta, finding.trials)
    if ideal is None:
        return finding
    return replace(finding, ideal=judge(audit, [ideal], middle=middle, **claim).bound)


# --- what epsilon allows --------------------------------------------------------------------------


def most_true(epsilon: float, delta: float, false: Any) -> Floats:
    """Return the largest rate of true positives at a rate of false ones (Kairouz et al., 2015)."""
    false = np.asarray(false, np.float64)
    least_missed = np.maximum(1.0 - delta - np.exp(epsilon) * false, 0.0)
    return np.asarray(1.0 - np.maximum(least_missed, np.exp(-epsilon) * (1.0 - delta - false)))


def most_area(epsilon: float, delta: float) -> float:
    """Return the largest area under the ROC curve of any attack."""
    corner = (1.0 - delta) / (1.0 + np.exp(epsilon))
    # The curve consists of straight lines between (0, delta), the corner, (1 - delta, 1), (1, 1).
    x = np.array([0.0, corner, 1.0 - delta, 1.0])
    return float(np.trapezoid(np.array([delta, 1.0 - corner, 1.0, 1.0]), x))


def area(absent: Floats, present: Floats) -> float:
    """Return the area under the ROC curve: how often a value with the row is the higher one."""
    ranks = stats.rankdata(np.concatenate([absent, present]))[len(absent) :]
    n = len(present)
    return float((ranks.sum() - n * (n + 1) / 2.0) / (n * len(absent)))


def epsilon_bound(absent: Floats, present: Floats, delta: float, error: float) -> float:
    """Return a lower bound on epsilon that is wrong with probability at most ``error``."""
    half = len(absent) // 2
    thresholds = np.unique(np.quantile(np.concatenate([absent, present]), np.linspace(0, 1, 400)))
    bound = 0.0
    for sign in (1.0, -1.0):  # testing its presence, and its absence
        no, yes = (absent, present) if sign > 0 else (present, absent)
        cuts = sign * thresholds
        false, true = (_hits(sign * values[:half], cuts) for values in (no, yes))
        best = [int(np.argmax(least_epsilon(false, true, half, delta, error / 4)))]
        false, true = (_hits(sign * values[half:], cuts[best]) for values in (no, yes))
        rest = len(absent) - half
        bound = max(bound, float(least_epsilon(false, true, rest, delta, error / 4)[0]))
    return bound


def _hits(values: Floats, cuts: Floats) -> Ints:
    """Count, for each cut, the values at or above it."""
    return len(values) - np.searchsorted(np.sort(values), cuts, side="left").astype(np.int64)


def least_epsilon(false: Any, true: Any, n: int, delta: float, error: float) -> Floats:
    """Return ln((TPR - delta) / FPR) at the ends of the intervals of both rates."""
    gain = np.maximum(_at_least(true, n, error) - delta, 1e-300)
    return np.asarray(np.log(gain / _at_most(false, n, error)), np.float64)


def gaussian_bound(false: int, true: int, n: int, delta: float, error: float) -> float:
    """Return the smallest epsilon of Gaussian noise that gives an attack such rates.

    For any noise that is mu-GDP, as Gaussian noise is, an attack's rates prove that mu is at least
    the sum of their normal quantiles, whatever the real form of the noise (Nasr et al., *Tight
    Auditing of Differentially Private Machine Learning*, 2023). Unlike the ratio of two rates, this
    does not need rare events, so that far fewer trials are enough.

    ``false`` and ``true`` are the numbers of trials, out of ``n`` without the row and ``n`` with
    it, in which the attack guessed that the row is in. ``error`` applies to each of the two rates.
    """
    rates = (1.0 - _at_most(false, n, error), _at_least(true, n, error))
    return gaussian_epsilon(float(np.sum(stats.norm.ppf(rates))), delta)


def _at_most(hits: Any, n: int, error: float) -> Floats:
    """Return the upper end of Clopper and Pearson's interval."""
    bound = stats.beta.ppf(1.0 - error, np.asarray(hits) + 1.0, n - np.asarray(hits))
    return np.where(np.asarray(hits) == n, 1.0, bound)


def _at_least(hits: Any, n: int, error: float) -> Floats:
    """Return the lower end of Clopper and Pearson's interval."""
    bound = stats.beta.ppf(error, np.asarray(hits), n - np.asarray(hits) + 1.0)
    return np.where(np.asarray(hits) == 0, 0.0, bound)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of the Gaussian mechanism (Balle and Wang, 2018, theorem 8)."""

    def excess(epsilon: float) -> float:
        first = stats.norm.cdf(mu / 2.0 - epsilon / mu)
        second = np.exp(epsilon + stats.norm.logcdf(-mu / 2.0 - epsilon / mu))
        return float(first - second - delta)

    if mu <= 0.0 or excess(0.0) <= 0.0:
        return 0.0
    return _MOST if excess(_MOST) > 0.0 else float(brentq(excess, 0.0, _MOST))


def canary_p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return an upper bound on the probability of this many right guesses if the claim holds.

    Steinke, Nasr and Jagielski (2023), theorem 5.2: with B binomial(guesses, e^eps / (1 + e^eps)),
    P[B >= right] + 2 canaries delta max_i P[right > B >= right - i] / i.
    """
    probability = 1.0 / (1.0 + np.exp(-epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, probability))
    if right == 0:
        return 1.0
    i = np.arange(1, right + 1)
    below = stats.binom.cdf(right - 1, guesses, probability)
    window = below - stats.binom.cdf(right - 1 - i, guesses, probability)
    return min(1.0, tail + 2.0 * canaries * delta * float((window / i).max()))


def canary_bound(canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Return the largest epsilon that is ruled out by this many right guesses."""

    def excess(epsilon: float) -> float:
        return canary_p_value(canaries, guesses, right, epsilon, delta) - error

    if excess(0.0) > 0.0:
        return 0.0
    return _MOST if excess(_MOST) < 0.0 else float(brentq(excess, 0.0, _MOST))
