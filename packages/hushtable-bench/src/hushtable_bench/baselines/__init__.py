"""Detectors that do not merge: what the paper compares with, as scikit-learn estimators.

They keep rows, or need all rows at once, and are here to be measured against. Tested in
``tests/test_baselines.py``.
Isolation forest is scikit-learn's own.
"""

from hushtable_bench.baselines._loda import LODA
from hushtable_bench.baselines._lsh_iforest import LSHiForest
from hushtable_bench.baselines._neighbours import EnsembleKNN, EnsembleLOF

__all__ = ["LODA", "EnsembleKNN", "EnsembleLOF", "LSHiForest"]
