"""Zero-concentrated differential privacy (zCDP) to (epsilon, delta), and back."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
