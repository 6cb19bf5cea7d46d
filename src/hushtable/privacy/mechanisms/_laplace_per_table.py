"""The paper's noise: discrete Laplace, of a scale that it calibrates for one table."""

from hushtable.privacy.mechanisms._discrete_laplace import DiscreteLaplace
from hushtable.privacy.mechanisms._mechanism import Cost, Sensitivity


class LaplacePerTable(DiscreteLaplace):
    """Takes epsilon for that of one table by itself; its cost is the true total, over all."""

    name = "laplace-per-table"
    words = "the paper's: there, E is that of one table alone"
    takes_samples = True

    def calibrated_scale(
        self,
        sensitivity: Sensitivity,
        epsilon: float,
        delta: float,
        before: Cost,
        share: float | None,
    ) -> float:
        """Return 1 / epsilon, whatever else was asked for and released."""
        return 1.0 / epsilon
