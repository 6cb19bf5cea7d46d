"""Accounting: from noise to epsilon and back, over releases that go on in periods.

Gaussian noise alone: releases with continuous noise, each chosen in the light of those before, are
together mu^2 = 2 (rho_1 + rho_2 + ...) Gaussian: delta(epsilon) is known in closed form (Balle and
Wang, 2018; Dong, Roth and Su, 2022). Noise here is discrete, for which a release costs a ``spread``
besides: it hides the lattice of whole numbers. docs/explanation/maths.md
proves that `epsilon_bound` holds.

Periods: in each of T, new rows are counted: x_1, ..., x_T. Wanted are running sums, and sums of the
last periods. To release each x_t makes their sums noisy; to release each running sum is expensive,
for a row is in all that follow. In between: release C x plus noise of one scale, and decode running
sums as B (C x + noise), where B C is the lower triangular matrix of ones (Dwork et al., 2010;
Denisov et al., 2022). With the square root of that matrix, C = B, the noise on the last of 60 sums
is that of 2.4 releases (Fichtenberger, Henzinger and Upadhyay, 2023). Here C has whole numbers, so
that counts stay whole and can be masked.
"""

import itertools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import entries, translate_errors, whole
from hushtable.errors import PlanError, UsageError

#: What adding up in floating point can make of a cost; caps allow for as much.
_FLOATING = 1e-9


def rounded_up(number: float, digits: int = 3) -> float:
    """Round a cost up to significant digits: what is signed must not be less than what is true.

    A billionth above a rounded number counts as that number: 1 that was added up from parts.
    Every epsilon, delta, rho and share of a cap that is printed goes through here.
    """
    exact = Context(digits, ROUND_CEILING)
    return float(exact.create_decimal(repr(number * (1.0 - _FLOATING))))


#: As exact as Gaussian noise allows, where all noise is; and by zCDP, which files leave out.
GAUSSIAN, ZCDP = "gaussian", "zcdp"


def check_accounting(accounting: Any) -> None:
    """Raise `UsageError` if there is no such way."""
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

    The inverse of `epsilon_from_rho`, from the same formula solved for rho: the maximum over
    alpha > 1 of (epsilon - ln(1 - 1/alpha) + ln(alpha delta) / (alpha - 1)) / alpha.
    ``epsilon`` is above 0, ``delta`` in (0, 1); 0 is returned where rounding leaves nothing.
    """

    def minus_rho(order: Floats) -> Floats:
        left = epsilon - np.log1p(-1.0 / order) + np.log(order * delta) / (order - 1.0)
        return -left / order

    return max(0.0, -float(_least(minus_rho)))


def _least(bound: Any) -> float:
    """Minimum over alpha > 1 of a function with one valley, by refining a grid of ln(alpha - 1).

    Any alpha gives a valid bound: an error of the search costs a little noise, never privacy.
    """
    low, high = -15.0, 35.0
    least = math.inf
    for _ in range(7):
        exponents = np.linspace(low, high, 101)
        with np.errstate(over="ignore"):  # what is beyond all numbers is not the least
            values = bound(1.0 + np.exp(exponents))
        best = int(values.argmin())
        least = min(least, float(values[best]))
        low, high = exponents[max(best - 1, 0)], exponents[min(best + 1, 100)]
    return least


#: Factor of delta, per mu^2, that spreads and smaller terms leave: ln of it, at most.
_EXCESS = 0.001
#: That of spreads alone: what is left of it covers the cells of a release beyond its first.
_SPREADS = 0.0008
#: Above what rounding makes of an error function, and what sums of parts are off one Gaussian.
_ROUNDING, _PARTS = 1e-12, 1e-10
#: Below it, error functions vanish: there, zCDP has the word.
_LEAST_DELTA = 1e-280


def spread_of(rho: float, rows: int, l2_squared: int) -> float:
    """Return what a release adds to the variance of the privacy loss for its noise being discrete.

    ``rho`` is its cost, ``rows`` by how much a person changes one cell at most, ``l2_squared`` the
    square of the L2 sensitivity: the variance of the noise is ``l2_squared / (2 rho)``. Infinity
    for noise of a scale below 1, where nothing is proven.
    """
    step = 2.0 * rho * rows / l2_squared  # by how much the loss grows with the noise on a cell
    if step == 0.0:
        return 0.0
    variance = rows / step
    if variance < 1.0 or step > 1.0:
        return math.inf
    smooth = -math.log(0.5 * _SPREADS * step) / (2.0 * math.pi**2)
    return step**2 / (1.0 / smooth - 1.0 / variance)


def epsilon_bound(rho: float, spread: float, delta: float) -> float:
    """Return an epsilon at which Gaussian noise of these costs is private, never one too small.

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


def rho_bound(epsilon: float, spread: float, delta: float) -> float:
    """Return the largest rho that Gaussian noise may cost in all; inverts `epsilon_bound`."""
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
    """Return whether the bound on delta at epsilon is at most delta."""
    variance = 2.0 * rho + spread
    if delta < _LEAST_DELTA or not 0.0 < variance < 1e3 or not epsilon < 600.0:
        return False
    mu, left = math.sqrt(variance), epsilon - 0.5 * spread - _PARTS
    inside = _upper_tail(left / mu - 0.5 * mu)
    outside = math.exp(left) * _upper_tail(left / mu + 0.5 * mu)
    most = inside * (1.0 + _ROUNDING) - outside * (1.0 - _ROUNDING)
    return most * math.exp(2.0 * _EXCESS * rho + 0.5 * spread) <= delta


def _upper_tail(x: float) -> float:
    """Return the probability that a normal number is above x."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


#: Periods at most: ten years of weeks.
MAX_PERIODS = 520
#: The largest entry of C: with 32, rounding costs less than half a percent at 60 periods.
_UNIT = 32


@dataclass(frozen=True)
class Horizon:
    """How the counts of periods are mixed, and for how many periods.

    Attributes
    ----------
    factor : tuple of int
        Weights of a period's rows in its own release and in those that follow: the first column of
        C, a lower triangular Toeplitz matrix. One for each period, falling, the first above 0.
    participations : int
        Periods at most in which a person has rows.
    apart : int
        Periods at least from one of these to the next.

    Examples
    --------
    >>> from hushtable.privacy import Horizon
    >>> year = Horizon.of(12)
    >>> year.factor
    (32, 16, 12, 10, 9, 8, 7, 7, 6, 6, 6, 5)
    >>> round(year.variance(12), 2)  # of the sum of twelve months, in that of one release
    3.43
    """

    factor: tuple[int, ...]
    participations: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        periods = whole("periods", len(self.factor), 1, MAX_PERIODS)
        whole("participations", self.participations, 1, periods)
        whole("apart", self.apart, 1, MAX_PERIODS)
        if self.apart * (self.participations - 1) >= periods:
            raise UsageError(
                f"participations={self.participations} that are apart={self.apart} do not fit into "
                f"{periods} periods"
            )
        known = all(type(c) is int and 0 <= c <= _UNIT for c in self.factor)
        falling = known and all(a >= b for a, b in itertools.pairwise(self.factor))
        if not (falling and self.factor[0] > 0):
            raise UsageError(
                f"factor={self.factor}: needs whole numbers that fall, from {_UNIT} at most to 0"
            )

    @classmethod
    def of(cls, periods: int, participations: int = 1, apart: int = 1) -> "Horizon":
        """Return the horizon with the least noise on the sum of all periods.

        Parameters
        ----------
        periods : int
            How many there will be, 1 to 520.
        participations : int, default=1
            Periods at most in which a person has rows.
        apart : int, default=1
            Periods at least from one of these to the next.
        """
        periods = whole("periods", periods, 1, MAX_PERIODS)
        root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, periods))])
        weights = np.rint(_UNIT * root).astype(int)

        def banded(band: int) -> "Horizon":
            kept = [*weights[:band].tolist(), *[0] * (periods - band)]
            return cls(tuple(kept), participations, apart)

        if participations == 1:
            return banded(periods)
        # In a band, what a person does in one period is over before the next: no sum of columns.
        bands = {periods, *range(apart, periods, apart)}
        return min((banded(band) for band in sorted(bands)), key=lambda one: one.variance(periods))

    @property
    def periods(self) -> int:
        """How many periods there are, T."""
        return len(self.factor)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The most that a row in each of a person's periods adds to each release, (T,).

        Of a Toeplitz matrix whose entries fall, the columns that begin first and lie closest have
        the largest sum, in the sum of squares (Kalinin and Lampert, 2024, theorem 2).
        """
        weights, total = np.array(self.factor, np.int64), np.zeros(self.periods, np.int64)
        for start in range(0, self.participations * self.apart, self.apart):
            total[start:] += weights[: self.periods - start]
        return total

    @property
    def sensitivity_squared(self) -> int:
        """By how much a person changes a cell over all releases: the square of the L2 norm."""
        return int((self.columns**2).sum())

    @property
    def most(self) -> int:
        """By how much a person changes a cell of one release at most."""
        return int(self.columns.max())

    def mixed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the latest of these periods releases, before noise.

        Parameters
        ----------
        counts : ndarray of shape (t, cells), int64
            Of the periods 1 to t.
        """
        weights = np.array(self.factor[: len(counts)][::-1], np.int64)
        mixed: NDArray[np.int64] = weights @ counts
        return mixed

    def weights(self, period: int, window: int | None = None) -> Floats:
        """Return by what to multiply the releases of the periods so far, to get a sum of counts.

        Parameters
        ----------
        period : int
            The last period of the sum, t.
        window : int, optional
            How many periods it has; by default all.

        Returns
        -------
        ndarray of shape (t,), float64
        """
        period = whole("period", period, 1, self.periods)
        window = period if window is None else whole("window", window, 1, period)
        decoded = self._decoding
        found = decoded[:period][::-1].copy()
        found[: period - window] -= decoded[: period - window][::-1]
        return found

    def variance(self, period: int, window: int | None = None) -> float:
        """Return that of the noise on a decoded sum, in that of one release at the whole budget."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the horizon as JSON carries it."""
        more = (
            {}
            if self.participations == 1
            else {"participations": self.participations, "apart": self.apart}
        )
        return {"factor": list(self.factor), **more}

    @classmethod
    def from_dict(cls, content: Any) -> "Horizon":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        optional = {"participations": int, "apart": int}
        said = dict(entries(content, "a horizon", {"factor": list[int]}, optional))
        with translate_errors(PlanError, "horizon"):
            return cls(tuple(said.pop("factor")), **said)
