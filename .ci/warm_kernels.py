"""Compiles into the cache what no wheel has built: kernels that need BLAS, and the baselines'.

Once for a target's tests; else each of their processes would compile them beside the others.
"""

import numpy as np

from hushtable import ACE, Plan, RotatedRSHash, Sketch
from hushtable_bench.baselines import LODA, EnsembleKNN, LSHiForest


def main() -> None:
    """Fit each to a few rows."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    for make in (ACE, RotatedRSHash, LODA, EnsembleKNN, LSHiForest):
        make(random_state=0).fit(X).score_samples(X)
    for make in (ACE, RotatedRSHash):
        plan: Plan = make(random_state=0).fit(X).plan_
        Sketch.from_data(plan, X)
        Sketch.from_data(plan, X, max_samples=50, random_state=0)


if __name__ == "__main__":
    main()
