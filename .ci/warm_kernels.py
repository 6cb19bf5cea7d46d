"""Compile the kernels that no wheel has into the cache: those of the paper's other systems.

This runs once for a target's tests; otherwise, each of their processes would compile them.
"""

import numpy as np

from hushtable import Plan, Sketch
from hushtable_bench import ACE, RotatedRSHash, RSHash
from hushtable_bench.baselines import LODA, EnsembleKNN, LSHiForest


def main() -> None:
    """Fit each detector to a few rows."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    for make in (ACE, RSHash, RotatedRSHash, LODA, EnsembleKNN, LSHiForest):
        make(random_state=0).fit(X).score_samples(X)
    for make in (ACE, RSHash, RotatedRSHash):
        plan: Plan = make(random_state=0).fit(X).plan_
        Sketch.from_data(plan, X)
        Sketch.from_data(plan, X, max_samples=50, random_state=0)


if __name__ == "__main__":
    main()
