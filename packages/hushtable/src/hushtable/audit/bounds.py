"""From the successes of an attack to a bound on epsilon, and from epsilon to what it allows.

A lower bound above the claimed epsilon proves the claim wrong, with the stated confidence. One
below proves nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from hushtable.privacy.mechanisms import named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: No audit of a few thousand trials can show more.
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

    def finding(self, audit: str, bound: float, trials: int, **more: float | None) -> "Finding":
        """Return what an audit found about this claim."""
        return Finding(audit, self.epsilon, self.delta, bound, self.confidence, trials, **more)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of an audit.

    Epsilon is at least ``lower_bound``, with probability ``confidence`` over the audit's own
    chance. Where Gaussian noise is claimed, ``gaussian_bound`` is the least epsilon of Gaussian
    noise under which the attack does so well: above the claim it proves that the noise is not the
    one claimed. ``confidence`` is that of both bounds together.
    """

    audit: str  # which attack
    epsilon: float  # what the release claims, as delta
    delta: float
    lower_bound: float
    confidence: float
    trials: int  # releases, or canaries, that the bound rests on
    gaussian_bound: float | None = None
    auc: float | None = None  # area under the attack's ROC curve, where it ranks
    #: The `bound` that the same audit shows of an ideal mechanism, exactly as private as is
    #: claimed. The nearer to the claim, the smaller the mistakes that the audit finds.
    ideal: float | None = None
    #: How likely the stated noise is to look as odd as what was found, where noise can be seen:
    #: see `hushtable.audit.residuals`.
    p_noise: float | None = None

    @property
    def bound(self) -> float:
        """The higher of the two bounds."""
        return max(self.lower_bound, self.gaussian_bound or 0.0)

    @property
    def rejects(self) -> bool:
        """True if the claim is wrong, with the stated confidence, or the noise not the stated one.

        The latter has a tenth of the bounds' probability of an error, beside theirs.
        """
        return self.bound > self.epsilon or self.is_other_noise

    @property
    def is_other_noise(self) -> bool:
        """True if the noise is smaller than stated, or shared between cells or releases."""
        return self.p_noise is not None and self.p_noise < 0.1 * (1.0 - self.confidence)

    def words(self) -> str:
        """Say it in a sentence."""
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
) -> Finding:
    """Bound epsilon by statistics that are higher where a row is in.

    ``statistics`` holds, for each of the attacker's, its values (trials,) without the row and with
    it; ``middle`` is half way between the two means of the first, if Gaussian noise is claimed;
    ``claim`` is as `Claim` takes it.
    """
    (absent, present), claimed = statistics[0], Claim(**claim)
    trials, delta = len(absent), claimed.delta
    error = claimed.error / (1 if middle is None else 2)
    gaussian = None
    if middle is not None:
        # A threshold that need not be chosen: all trials judge.
        false, true = (int((values > middle).sum()) for values in (absent, present))
        gaussian = gaussian_bound(false, true, trials, delta, error / 2.0)
    error /= len(statistics)
    bound = max(epsilon_bound(no, yes, delta, error) for no, yes in statistics)
    best = max(area(no, yes) for no, yes in statistics)
    return claimed.finding(audit, bound, trials, gaussian_bound=gaussian, auc=best)


# --- log likelihood ratios ----------------------------------------------------------------------


def exact_cells(x: Ints, added: Ints | np.int64) -> Floats:
    """Mark the cells that hold exactly their count with the row, by 1, and without it, by -1."""
    return np.asarray((x == added).astype(np.float64) - (x == 0), np.float64)


def judge_ratios(
    audit: str,
    statistics: Sequence[tuple[Floats, Floats]],
    mechanism: str,
    added: Ints,
    **claim: float,
) -> Finding:
    """Judge log likelihood ratios, and beside them those that an ideal mechanism would show.

    ``added`` is what one person adds to each of the cells that change.
    """
    noise, claimed = named(mechanism), Claim(**claim)
    # Half way between the means of the log likelihood ratio is nought.
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
    # The curve is made of straight lines between (0, delta), the corner, (1 - delta, 1), (1, 1).
    x = np.array([0.0, corner, 1.0 - delta, 1.0])
    return float(np.trapezoid(np.array([delta, 1.0 - corner, 1.0, 1.0]), x))


def area(absent: Floats, present: Floats) -> float:
    """Return the area under the ROC curve: how often a value with the row is the higher one."""
    ranks = stats.rankdata(np.concatenate([absent, present]))[len(absent) :]
    n = len(present)
    return float((ranks.sum() - n * (n + 1) / 2.0) / (n * len(absent)))


def epsilon_bound(absent: Floats, present: Floats, delta: float, error: float) -> float:
    """Return a lower bound on epsilon, wrong with probability ``error`` at most."""
    half = len(absent) // 2
    thresholds = np.unique(np.quantile(np.concatenate([absent, present]), np.linspace(0, 1, 400)))
    bound = 0.0
    for sign in (1.0, -1.0):  # by its presence, and by its absence
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
    """Return the least epsilon of Gaussian noise that leaves an attack such rates.

    Of all noise that is mu-GDP, as Gaussian noise is, an attack's rates prove mu to be at least
    the sum of their normal quantiles, whatever shape the noise really has (Nasr et al., *Tight
    Auditing of Differentially Private Machine Learning*, 2023). No rare event has to be
    waited for, as it has to for the ratio of two rates: far fewer trials are needed.

    Of ``n`` trials without the row, and of ``n`` with it, ``false`` and ``true`` are those in
    which the attack took the row to be in. ``error`` is that of each of the two rates.
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
    """Return how likely so many right guesses are, at most, if the release is as claimed.

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
    """Return the largest epsilon that so many right guesses rule out."""

    def excess(epsilon: float) -> float:
        return canary_p_value(canaries, guesses, right, epsilon, delta) - error

    if excess(0.0) > 0.0:
        return 0.0
    return _MOST if excess(_MOST) < 0.0 else float(brentq(excess, 0.0, _MOST))
