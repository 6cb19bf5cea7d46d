"""Audits: attack a release as an adversary would, and bound its epsilon from below.

A bound above the claimed epsilon proves the claim wrong, with the stated confidence. A bound
below proves nothing: the promise rests on the proof (``docs/privacy.md``), an audit finds the
mistakes in carrying it out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from hushtable.encoding import Encoder
from hushtable.plan import Plan
from hushtable.privacy.budget import Mechanism
from hushtable.privacy.mechanism import add_noise
from hushtable.privacy.release import Release
from hushtable.readers import as_reader
from hushtable.schema import Feature
from hushtable.sketch import Sketch

__all__ = ["Finding", "audit_canaries", "audit_noise", "audit_replay", "canary_p_value"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: No audit of a few thousand trials can show more.
_MOST = 50.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit found.

    Attributes
    ----------
    audit : str
        Which attack.
    epsilon, delta : float
        What the release claims.
    lower_bound : float
        Epsilon is at least this, with probability ``confidence`` over the audit's own chance.
    confidence : float
        In (0, 1).
    trials : int
        Releases, or canaries, that the bound rests on.
    gaussian_bound : float or None
        The same under the assumption that the noise is Gaussian; tighter, but an assumption.
    """

    audit: str
    epsilon: float
    delta: float
    lower_bound: float
    confidence: float
    trials: int
    gaussian_bound: float | None = None

    @property
    def rejects(self) -> bool:
        """Whether the claim is wrong, with the stated confidence."""
        return self.lower_bound > self.epsilon

    def words(self) -> str:
        """Say it in a sentence."""
        verdict = "rejected" if self.rejects else "not rejected"
        return (
            f"{self.audit}: epsilon is at least {self.lower_bound:.2f} ({self.confidence:.0%} "
            f"confidence, {self.trials:,} trials); the claim of {self.epsilon:g} is {verdict}"
        )


# --- the likelihood ratio of one row's cells ----------------------------------------------------


def audit_noise(
    noise: Callable[[Ints], Ints] | None = None,
    *,
    mechanism: Mechanism,
    scale: float,
    tables: int,
    epsilon: float,
    delta: float,
    draws: int = 30_000,
    confidence: float = 0.95,
) -> Finding:
    """Tell a row's presence from its m cells, by the likelihood ratio, through the real sampler.

    The adversary knows all other rows, so that the m cells of the row in question are all that
    tells of it. The best test looks at the likelihood ratio (Neyman and Pearson); a second one
    counts cells that hold the exact count, in case noise is missing. The threshold is chosen on
    one half of the draws and judged on the other by Clopper-Pearson intervals: epsilon is at
    least ln((true positives - delta) / false positives) (Jagielski, Ullman and Oprea, 2020).

    Parameters
    ----------
    noise : callable, optional
        What is audited: takes counts (draws, m), int64, and returns them with noise. By
        default the sampler of every release.
    mechanism, scale
        The noise that the release claims to have.
    tables : int
        Number of tables, m.
    epsilon, delta : float
        The claim.
    draws : int
        Releases of the m cells, with the row and without it, each.
    confidence : float
        Of the bounds.
    """
    if noise is None:

        def noise(counts: Ints) -> Ints:
            return add_noise(counts.ravel(), mechanism, scale).reshape(counts.shape)

    absent = noise(np.zeros((draws, tables), np.int64))
    present = noise(np.ones((draws, tables), np.int64))

    def ratio(x: Ints) -> Floats:
        terms = x if mechanism == "discrete-gaussian" else np.abs(x) - np.abs(x - 1)
        return np.asarray(terms.sum(axis=1), np.float64)

    def exact(x: Ints) -> Floats:
        return np.asarray((x == 1).sum(axis=1) - (x == 0).sum(axis=1), np.float64)

    error = (1.0 - confidence) / 2.0
    bounds = [_epsilon_bound(s(absent), s(present), delta, error) for s in (ratio, exact)]
    gaussian = None
    if mechanism == "discrete-gaussian":
        # Half way between the two means no threshold has to be chosen: all draws judge.
        false, true = (int((ratio(x) > tables / 2.0).sum()) for x in (absent, present))
        gaussian = _gaussian_epsilon(_least_mu(false, true, draws, error), delta)
    return Finding(
        "likelihood ratio of one row's cells",
        epsilon,
        delta,
        max(bounds),
        confidence,
        draws,
        gaussian,
    )


def _epsilon_bound(absent: Floats, present: Floats, delta: float, error: float) -> float:
    """Return a lower bound on epsilon, wrong with probability ``error`` at most."""
    half = len(absent) // 2
    n = len(absent) - half
    thresholds = np.unique(np.quantile(np.concatenate([absent, present]), np.linspace(0, 1, 400)))
    bound = 0.0
    for sign in (1.0, -1.0):  # by its presence, and by its absence
        no, yes = (absent, present) if sign > 0 else (present, absent)
        cuts = sign * thresholds
        false, true = (_hits(sign * values[:half], cuts) for values in (no, yes))
        best = [int(np.argmax(_least_epsilon(false, true, half, delta, error / 4)))]
        false, true = (_hits(sign * values[half:], cuts[best]) for values in (no, yes))
        bound = max(bound, float(_least_epsilon(false, true, n, delta, error / 4)[0]))
    return bound


def _hits(values: Floats, cuts: Floats) -> Ints:
    """Count, for each cut, the values at or above it."""
    return len(values) - np.searchsorted(np.sort(values), cuts, side="left").astype(np.int64)


def _least_epsilon(false: Any, true: Any, n: int, delta: float, error: float) -> Floats:
    """Return ln((TPR - delta) / FPR) at the ends of the intervals of both rates."""
    gain = np.maximum(_at_least(true, n, error) - delta, 1e-300)
    return np.asarray(np.log(gain / _at_most(false, n, error)), np.float64)


def _least_mu(false: int, true: int, n: int, error: float) -> float:
    """Return the distance of two normal distributions, at the ends of the intervals."""
    rates = (1.0 - _at_most(false, n, error), _at_least(true, n, error))
    return float(np.sum(stats.norm.ppf(rates)))


def _at_most(hits: Any, n: int, error: float) -> Floats:
    """Return the upper end of Clopper and Pearson's interval."""
    bound = stats.beta.ppf(1.0 - error, np.asarray(hits) + 1.0, n - np.asarray(hits))
    return np.where(np.asarray(hits) == n, 1.0, bound)


def _at_least(hits: Any, n: int, error: float) -> Floats:
    """Return the lower end of Clopper and Pearson's interval."""
    bound = stats.beta.ppf(error, np.asarray(hits), n - np.asarray(hits) + 1.0)
    return np.where(np.asarray(hits) == 0, 0.0, bound)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of the Gaussian mechanism (Balle and Wang, 2018, theorem 8)."""

    def excess(epsilon: float) -> float:
        first = stats.norm.cdf(mu / 2.0 - epsilon / mu)
        second = np.exp(epsilon + stats.norm.logcdf(-mu / 2.0 - epsilon / mu))
        return float(first - second - delta)

    if mu <= 0.0 or excess(0.0) <= 0.0:
        return 0.0
    return _MOST if excess(_MOST) > 0.0 else float(brentq(excess, 0.0, _MOST))


# --- canaries in one release --------------------------------------------------------------------


def audit_canaries(
    release: Callable[[Sketch], Release],
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    canaries: int = 1000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = None,
) -> Finding:
    """Tell, from one release, which of many canary rows are in it.

    Canary rows are drawn on the plan's ranges and categories; a coin decides for each whether
    it is counted. A canary's score is the mean over its cells of the released count, less what
    the other canaries there are expected to add. The highest third are guessed in, the lowest
    out; how many guesses are right bounds epsilon (Steinke, Nasr and Jagielski, *Privacy
    Auditing with One (1) Training Run*, 2023, theorem 5.2).

    Parameters
    ----------
    release : callable
        What is audited: takes a sketch and returns its release.
    plan : Plan
        To count under; deep tables tell canaries apart best.
    epsilon, delta : float
        The claim.
    canaries : int
        Their number.
    confidence : float
        Of the bound.
    random_state : int or numpy Generator, optional
        Seed of the canaries and coins (not of the noise).
    """
    rng = np.random.default_rng(random_state)
    rows = pa.table({f.name: _random_values(f, canaries, rng) for f in plan.schema.features})
    included = rng.random(canaries) < 0.5
    released = release(Sketch.from_data(plan, rows.filter(pa.array(included))))
    crowd = Sketch.from_data(plan, rows).counts
    values = (released.counts - 0.5 * crowd) / np.maximum(crowd, 1)
    encoder = Encoder(plan.schema)
    reader = as_reader(rows, text_columns=plan.schema.categorical_names)
    scores = np.concatenate([plan.family.sum(encoder.encode(b), values) for b in reader.read()])
    order = np.argsort(scores, kind="stable")
    third = canaries // 3
    right = int(included[order[-third:]].sum() + (~included[order[:third]]).sum())
    bound = _canary_bound(canaries, 2 * third, right, delta, 1.0 - confidence)
    return Finding("canaries in one release", epsilon, delta, bound, confidence, canaries)


def _random_values(feature: Feature, n: int, rng: np.random.Generator) -> Any:
    if feature.kind == "numeric":
        return feature.low + rng.random(n) * (feature.high - feature.low)
    if not feature.categories:
        return pa.nulls(n, pa.string())
    return [feature.categories[i] for i in rng.integers(len(feature.categories), size=n)]


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


def _canary_bound(canaries: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Return the largest epsilon that so many right guesses rule out."""

    def excess(epsilon: float) -> float:
        return canary_p_value(canaries, guesses, right, epsilon, delta) - error

    if excess(0.0) > 0.0:
        return 0.0
    return _MOST if excess(_MOST) < 0.0 else float(brentq(excess, 0.0, _MOST))


# --- replaying the whole way to a release -------------------------------------------------------


def audit_replay(
    publish: Callable[[Floats], Release],
    X: Floats,
    row: Sequence[float] | Floats,
    *,
    epsilon: float,
    delta: float,
    trials: int = 200,
    confidence: float = 0.95,
) -> Finding:
    """Tell a row's presence by doing what the site did, with it and without it, and comparing.

    It finds what no statistic of the noise does: a plan that depends on the data (the plan that
    came is the one that the row would have led to), and noise that can be drawn again.

    Parameters
    ----------
    publish : callable
        What is audited: takes rows (n, d) and returns the release that the site would send,
        its plan included.
    X : ndarray of shape (n, d)
        The rows that the adversary knows.
    row : array-like of shape (d,)
        The row in question.
    epsilon, delta : float
        The claim.
    trials : int
        Releases with the row and without it, each.
    confidence : float
        Of the bound.
    """
    both = np.vstack([X, np.asarray(row, np.float64)])
    replays = {False: publish(X), True: publish(both)}

    def looks_present(release: Release) -> bool:
        plans = {name: replay.plan.plan_id for name, replay in replays.items()}
        if plans[True] != plans[False]:
            return release.plan.plan_id == plans[True]
        return np.array_equal(release.counts, replays[True].counts)

    false = sum(looks_present(publish(X)) for _ in range(trials))
    true = sum(looks_present(publish(both)) for _ in range(trials))
    error = (1.0 - confidence) / 4.0
    bounds = (
        _least_epsilon(false, true, trials, delta, error),
        _least_epsilon(trials - true, trials - false, trials, delta, error),
    )
    bound = max(0.0, *(float(b) for b in bounds))
    return Finding("replay of the whole release", epsilon, delta, bound, confidence, 2 * trials)
