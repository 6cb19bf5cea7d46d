"""Discrete Laplace noise: P(x) proportional to exp(-|x| / scale)."""

import math
from typing import Any

import numpy as np

from hushtable.privacy.mechanisms._mechanism import Cost, Floats, Ints, Mechanism, Sensitivity


class DiscreteLaplace(Mechanism):
    """Costs a pure epsilon of L1 / scale, and rho as `hushtable.privacy.composition` says."""

    name = "discrete-laplace"
    words = "a pure epsilon, no delta"
    pure = True
    excess_kurtosis = 3.0

    def cost(self, sensitivity: Sensitivity, scale: float) -> Cost:
        epsilon = sensitivity.l1 / scale
        return Cost(rho=epsilon**2 / (2.0 * sensitivity.tables), pure=epsilon)

    def scale(self, sensitivity: Sensitivity, budget: float) -> float:
        return sensitivity.l1 / budget

    def sampler(self, opendp: Any, domain: Any, scale: float) -> Any:
        return opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale)

    def noise_sd(self, scale: float) -> float:
        """Return the root of 2 q / (1 - q)^2, with q = exp(-1 / scale)."""
        return math.sqrt(2.0 * math.exp(-1.0 / scale)) / -math.expm1(-1.0 / scale)

    def log_ratio(self, scale: float, x: Ints, added: Ints | np.int64) -> Floats:
        return np.asarray((np.abs(x) - np.abs(x - added)) / scale, np.float64)

    def ideal_ratios(
        self, added: Ints, epsilon: float, delta: float, trials: int
    ) -> tuple[Floats, Floats]:
        scale = float(np.abs(added).sum()) / epsilon
        # The difference of two geometric numbers is discrete Laplace noise.
        success, size = -np.expm1(-1.0 / scale), (2, 2, trials, len(added))
        more, less = np.random.default_rng(0).geometric(success, size)
        noise = more - less
        absent, present = (
            self.log_ratio(scale, noise[i] + i * added, added).sum(axis=1) for i in (0, 1)
        )
        return absent, present


class LaplacePerTable(DiscreteLaplace):
    """The paper's: takes epsilon for that of one table; its cost is the true total, over all."""

    name = "laplace-per-table"
    words = "the paper's, E being that of one table alone"
    takes_samples = True

    def fixed_scale(self, epsilon: float) -> float:
        return 1.0 / epsilon
