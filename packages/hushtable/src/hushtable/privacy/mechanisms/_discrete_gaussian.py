"""Discrete Gaussian noise: P(x) proportional to exp(-x^2 / (2 scale^2))."""

import math
from typing import Any

import numpy as np

from hushtable.privacy.gaussian import rho_bound
from hushtable.privacy.mechanisms._mechanism import Cost, Floats, Ints, Mechanism, Sensitivity


class DiscreteGaussian(Mechanism):
    """Costs rho = L2^2 / 2 scale^2 (Canonne, Kamath and Steinke, 2020), and is Gaussian besides."""

    name = "discrete-gaussian"
    words = "the least noise from about ten tables on"
    pure = False
    shareable = True  # from a scale of 2 on: `hushtable.privacy.budget.part_scale`
    gaussian = True
    excess_kurtosis = 0.0

    def cost(self, sensitivity: Sensitivity, scale: float) -> Cost:
        return sensitivity.gaussian_cost(sensitivity.l2_squared / (2.0 * scale**2))

    def scale(self, sensitivity: Sensitivity, budget: float) -> float:
        return math.sqrt(sensitivity.l2_squared / (2.0 * budget))

    def sampler(self, opendp: Any, domain: Any, scale: float) -> Any:
        return opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)

    def noise_sd(self, scale: float) -> float:
        """Return the scale: equal to within 1e-14 from 1.6 on, an upper bound below."""
        return scale

    def log_ratio(self, scale: float, x: Ints, added: Ints | np.int64) -> Floats:
        return np.asarray((2.0 * x - added) * added / (2.0 * scale**2), np.float64)

    def ideal_ratios(
        self, added: Ints, epsilon: float, delta: float, trials: int
    ) -> tuple[Floats, Floats]:
        rng, mu = np.random.default_rng(0), np.sqrt(2.0 * rho_bound(epsilon, 0.0, delta))
        absent, present = (mu * rng.normal(m, 1.0, trials) for m in (-mu / 2.0, mu / 2.0))
        return absent, present
