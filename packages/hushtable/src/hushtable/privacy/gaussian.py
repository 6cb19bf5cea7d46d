"""Costs of Gaussian noise alone, from rho = mu^2 / 2 to (epsilon, delta) and back, nearly exact.

Releases with continuous Gaussian noise, each chosen in the light of those before, are together
mu^2 = 2 (rho_1 + rho_2 + ...) Gaussian: delta(epsilon) is known in closed form (Balle and Wang,
2018; Dong, Roth and Su, 2022). Noise here is discrete, for which a release costs a ``spread``
besides: it hides the lattice of whole numbers. docs/maths.md proves that `epsilon_bound` holds.
"""

import math

from hushtable.privacy.zcdp import epsilon_from_rho, rho_from_epsilon

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

    Parameters
    ----------
    rho : float
        Its cost; the variance of its noise is ``l2_squared / (2 rho)``.
    rows : int
        By how much a person changes one cell at most.
    l2_squared : int
        Square of the L2 sensitivity.

    Returns
    -------
    float
        0 or more; infinity for noise of a scale below 1, where nothing is proven.
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
