"""Detectors that do not merge: what the paper compares with, as scikit-learn estimators.

They keep rows, or need all rows at once, and are here to be measured against. Tested in
``tests/test_baselines.py``.
Isolation forest is scikit-learn's own.
"""

from hushtable.baselines._loda import LODA
from hushtable.baselines._lsh_iforest import LSHiForest
from hushtable.baselines._neighbours import EnsembleKNN, EnsembleLOF

__all__ = ["LODA", "EnsembleKNN", "EnsembleLOF", "LSHiForest"]
