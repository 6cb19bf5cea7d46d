"""The scikit-learn estimators: each names a recipe; the machinery is shared."""

from hushtable.detectors._hushtable import HushTable
from hushtable.detectors._lsh_itables import LSHiTables
from hushtable.detectors._pyod import PyODAdapter

__all__ = ["HushTable", "LSHiTables", "PyODAdapter"]
