"""Accounting: from noise to epsilon and back, also over releases in periods.

Gaussian noise only: releases with continuous noise, each chosen with knowledge of those before,
together are mu^2 = 2 (rho_1 + rho_2 + ...) Gaussian, and delta(epsilon) has a closed form (Balle
and Wang, 2018; Dong, Roth and Su, 2022). The noise here is discrete, for which a release also
costs a ``spread``, because it hides the lattice of whole numbers. docs/explanation/maths.md
proves that `epsilon_bound` holds.

Periods: in each of T, new rows are counted: x_1, ..., x_T. The results are running sums, and sums
of the last periods. Releasing each x_t makes their sums noisy; releasing each running sum is
expensive, because a row is in all sums that follow. The middle way is to release C x plus noise of
one scale, and to decode running sums as B (C x + noise), where B C is the lower triangular matrix
of ones (Dwork et al., 2010; Denisov et al., 2022). With the square root of that matrix, C = B, the
noise on the last of 60 sums is that of 2.4 releases (Fichtenberger, Henzinger and Upadhyay, 2023).
Here C has whole numbers, so that counts stay whole and can be masked.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import Stored, whole
from hushtable.errors import UsageError

#: Largest error of a cost from adding up in floating point; caps allow for this much.
_FLOATING = 1e-9


def rounded_up(number: float, digits: int = 3) -> float:
    """Round a cost up to significant digits: a signed number must not be below the true one.

    A number up to a billionth above a rounded number, such as 1 added up from parts, becomes that
    number. Every epsilon, delta, rho and share of a cap that is printed is rounded here.
    """
    exact = Context(digits, ROUND_CEILING)
    return float(exact.create_decimal(repr(number * (1.0 - _FLOATING))))


#: As exact as Gaussian noise allows, if all noise is Gaussian; and by zCDP, the default in files.
GAUSSIAN, ZCDP = "gaussian", "zcdp"


def check_accounting(accounting: object) -> None:
    """Raise `UsageError` if there is no such way of accounting."""
    if accounting not in (GAUSSIAN, ZCDP):
        raise UsageError(f"accounting={accounting!r}: needs {GAUSSIAN!r} or {ZCDP!r}")


Floats = NDArray[np.float64]


def epsilon_from_rho(rho: float, delta: float) -> float:
    """Return the epsilon at which rho-zCDP is (epsilon, delta)-differentially private.

    The tight conversion: the minimum over alpha > 1 of rho alpha + ln(1 - 1/alpha)
    - ln(alpha delta) / (alpha - 1) (Canonne, Kamath and Steinke, 2020, corollary 13).
    ``rho`` is 0 or more, or infinity; ``delta`` in (0, 1).
    """
    if math.isinf(rho) or rho == 0.0:
        return rho

    def bound(order: Floats) -> Floats:
        return rho * order + np.log1p(-1.0 / order) - np.log(order * delta) / (order - 1.0)

    return max(0.0, float(_least(bound)))


def rho_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP is (epsilon, delta)-differentially private.

    This is the inverse of `epsilon_from_rho`, from the same formula solved for rho: the maximum
    over alpha > 1 of (epsilon - ln(1 - 1/alpha) + ln(alpha delta) / (alpha - 1)) / alpha.
    ``epsilon`` is above 0, ``delta`` in (0, 1); returns 0 if rounding leaves nothing.
    """

    def minus_rho(order: Floats) -> Floats:
        left = epsilon - np.log1p(-1.0 / order) + np.log(order * delta) / (order - 1.0)
        return -left / order

    return max(0.0, -float(_least(minus_rho)))


def _least(bound: Callable[[Floats], Floats]) -> float:
    """Minimum over alpha > 1 of a function with one valley, by refining a grid of ln(alpha - 1).

    Any alpha gives a valid bound: an error in the search costs a little noise, never privacy.
    """
    low, high = -15.0, 35.0
    least = math.inf
    for _ in range(7):
        exponents = np.linspace(low, high, 101)
        with np.errstate(over="ignore"):  # an overflow is not the minimum
            values = bound(1.0 + np.exp(exponents))
        best = int(values.argmin())
        least = min(least, float(values[best]))
        low, high = exponents[max(best - 1, 0)], exponents[min(best + 1, 100)]
    return least


#: Factor of delta, per mu^2, left by spreads and smaller terms: its logarithm, at most.
_EXCESS = 0.001
#: The same for spreads alone: the rest covers the cells of a release beyond its first.
_SPREADS = 0.0008
#: Above the rounding error of an error function, and the difference of sums of parts to a Gaussian.
_ROUNDING, _PARTS = 1e-12, 1e-10
#: Below this, error functions vanish, and zCDP is used.
_LEAST_DELTA = 1e-280


def spread_of(rho: float, rows: int, l2_squared: int) -> float:
    """Return how much the discreteness of a release's noise adds to the privacy loss's variance.

    ``rho`` is its cost, ``rows`` the largest change of a cell by one person, ``l2_squared`` the
    square of the L2 sensitivity: the variance of the noise is ``l2_squared / (2 rho)``. Infinity
    for noise of a scale below 1, for which nothing is proven.
    """
    step = 2.0 * rho * rows / l2_squared  # growth of the loss with the noise on a cell
    if step == 0.0:
        return 0.0
    variance = rows / step
    if variance < 1.0 or step > 1.0:
        return math.inf
    smooth = -math.log(0.5 * _SPREADS * step) / (2.0 * math.pi**2)
    return step**2 / (1.0 / smooth - 1.0 / variance)


@lru_cache(maxsize=1024)  # a visit to a round asks for the same noise again and again
def epsilon_bound(rho: float, spread: float, delta: float) -> float:
    """Return an epsilon at which Gaussian noise of these costs is private; never too small.

    ``rho`` and ``spread`` are sums over releases; ``delta`` in (0, 1). At most `epsilon_from_rho`.
    """
    high = epsilon_from_rho(rho, delta)
    if not _fits(high, rho, spread, delta):
        return high
    low = 0.0
    if _fits(low, rho, spread, delta):
        return low
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if _fits(middle, rho, spread, delta) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def rho_bound(epsilon: float, spread: float, delta: float) -> float:
    """Return the largest total rho that Gaussian noise may cost; inverts `epsilon_bound`."""
    low = rho_from_epsilon(epsilon, delta)
    if not (low > 0.0 and _fits(epsilon, low, spread, delta)):
        return low
    high = 2.0 * low
    while _fits(epsilon, high, spread, delta):
        high *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _fits(epsilon, middle, spread, delta) else (low, middle)
    return low


def _fits(epsilon: float, rho: float, spread: float, delta: float) -> bool:
    variance = 2.0 * rho + spread
    if delta < _LEAST_DELTA or not 0.0 < variance < 1e3 or not epsilon < 600.0:
        return False
    mu, left = math.sqrt(variance), epsilon - 0.5 * spread - _PARTS
    inside = _upper_tail(left / mu - 0.5 * mu)
    outside = math.exp(left) * _upper_tail(left / mu + 0.5 * mu)
    most = inside * (1.0 + _ROUNDING) - outside * (1.0 - _ROUNDING)
    return most * math.exp(2.0 * _EXCESS * rho + 0.5 * spread) <= delta


def _upper_tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


#: Largest number of periods: ten years of weeks.
MAX_PERIODS = 520
#: Largest entry of C: with 32, rounding costs less than half a percent at 60 periods.
_UNIT = 32


@dataclass(frozen=True)
class Horizon(Stored):
    """How the counts of periods are mixed, and for how many periods.

    Attributes
    ----------
    factor : tuple of int
        Weights of a period's rows in its own release and in the following ones: the first column
        of C, a lower triangular Toeplitz matrix. One for each period, falling, the first above 0.
    participations : int
        Largest number of periods in which a person has rows.
    apart : int
        Smallest number of periods from one of these to the next.

    Examples
    --------
    >>> from hushtable.privacy import Horizon
    >>> year = Horizon.of(12)
    >>> year.factor
    (32, 16, 12, 10, 9, 8, 7, 7, 6, 6, 6, 5)
    >>> round(year.variance(12), 2)  # of the sum of twelve months, relative to one release
    3.43
    """

    stored_as: ClassVar[str] = "a horizon"

    factor: tuple[int, ...]
    participations: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        periods = whole("periods", len(self.factor), 1, MAX_PERIODS)
        whole("participations", self.participations, 1, periods)
        whole("apart", self.apart, 1, MAX_PERIODS)
        if self.apart * (self.participations - 1) >= periods:
            raise UsageError(
                f"participations={self.participations} with apart={self.apart} do not fit into "
                f"{periods} periods: needs fewer, or closer ones"
            )
        known = all(type(c) is int and 0 <= c <= _UNIT for c in self.factor)
        falling = known and all(a >= b for a, b in itertools.pairwise(self.factor))
        if not (falling and self.factor[0] > 0):
            raise UsageError(
                f"factor={self.factor}: needs falling whole numbers, from at most {_UNIT} to 0"
            )

    @classmethod
    def of(cls, periods: int, participations: int = 1, apart: int = 1) -> "Horizon":
        """Return the horizon with the least noise on the sum of all periods.

        Parameters
        ----------
        periods : int
            Number of periods, 1 to 520.
        participations : int, default=1
            Largest number of periods in which a person has rows.
        apart : int, default=1
            Smallest number of periods from one of these to the next.
        """
        periods = whole("periods", periods, 1, MAX_PERIODS)
        root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, periods))])
        weights = np.rint(_UNIT * root).astype(int)

        def banded(band: int) -> "Horizon":
            kept = [*weights[:band].tolist(), *[0] * (periods - band)]
            return cls(tuple(kept), participations, apart)

        if participations == 1:
            return banded(periods)
        # In a band, the effect of a person in one period ends before the next: columns do not add.
        bands = {periods, *range(apart, periods, apart)}
        return min((banded(band) for band in sorted(bands)), key=lambda h: h.variance(periods))

    @property
    def periods(self) -> int:
        """Number of periods, T."""
        return len(self.factor)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The most that a row in each of a person's periods adds to each release, (T,).

        For a Toeplitz matrix with falling entries, the columns that begin first and are closest
        have the largest sum of squares of their sum (Kalinin and Lampert, 2024, theorem 2).
        """
        weights, total = np.array(self.factor, np.int64), np.zeros(self.periods, np.int64)
        for start in range(0, self.participations * self.apart, self.apart):
            total[start:] += weights[: self.periods - start]
        return total

    @property
    def sensitivity_squared(self) -> int:
        """Largest change by a person over all releases of a cell: the square of the L2 norm."""
        return int((self.columns**2).sum())

    @property
    def most(self) -> int:
        """Largest change by a person in a cell of one release."""
        return int(self.columns.max())

    def mixed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the latest of these periods releases, before the noise.

        Parameters
        ----------
        counts : ndarray of shape (t, cells), int64
            Counts of the periods 1 to t.
        """
        weights = np.array(self.factor[: len(counts)][::-1], np.int64)
        mixed: NDArray[np.int64] = weights @ counts
        return mixed

    def weights(self, period: int, window: int | None = None) -> Floats:
        """Return the weights of the releases of the periods so far in a sum of counts.

        Parameters
        ----------
        period : int
            The last period of the sum, t.
        window : int, optional
            Number of periods in the sum; all by default.

        Returns
        -------
        ndarray of shape (t,), float64
        """
        period = whole("period", period, 1, self.periods)
        window = period if window is None else whole("window", window, 1, period)
        decoded = self._decoding
        weights = decoded[:period][::-1].copy()
        weights[: period - window] -= decoded[: period - window][::-1]
        return weights

    def variance(self, period: int, window: int | None = None) -> float:
        """Return the variance of a decoded sum's noise, relative to one release at full budget."""
        return self.sensitivity_squared * float((self.weights(period, window) ** 2).sum())

    @property
    def _decoding(self) -> Floats:
        """First column of B, (T,): running sums of the inverse series of the factor."""
        inverse = np.zeros(self.periods)
        inverse[0] = 1.0 / self.factor[0]
        for k in range(1, self.periods):
            inverse[k] = (
                -math.fsum(self.factor[i] * inverse[k - i] for i in range(1, k + 1))
                / self.factor[0]
            )
        return np.cumsum(inverse)

    def to_dict(self) -> dict[str, object]:
        """Return the horizon in the form stored in JSON."""
        if self.participations == 1:
            return {"factor": list(self.factor)}
        return {
            "factor": list(self.factor),
            "participations": self.participations,
            "apart": self.apart,
        }
