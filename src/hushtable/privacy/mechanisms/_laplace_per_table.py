"""The paper's noise: discrete Laplace, of a scale that it calibrates for one table."""

from hushtable.privacy.mechanisms._discrete_laplace import DiscreteLaplace


class LaplacePerTable(DiscreteLaplace):
    """Takes epsilon for that of one table by itself; its cost is the true total, over all."""

    name = "laplace-per-table"
    words = "the paper's, E being that of one table alone"
    takes_samples = True

    def fixed_scale(self, epsilon: float) -> float:
        return 1.0 / epsilon
