"""Detectors as scikit-learn estimators: each names the draw of its tables; the rest is shared.

Names load on first use: to `load` a sketch takes no scikit-learn. May import `scores` and what lies
below; tested in ``tests/test_detectors.py``.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.detectors._ace import ACE
    from hushtable.detectors._base import TableDetector
    from hushtable.detectors._hushtable import HushTable
    from hushtable.detectors._pyod import PyODAdapter
    from hushtable.detectors._sampled import LSHiTables, RotatedRSHash, RSHash

__all__ = [
    "ACE", "HushTable", "LSHiTables", "PyODAdapter", "RSHash", "RotatedRSHash", "TableDetector",
]  # fmt: skip

_HOMES = {
    "ACE": "_ace", "HushTable": "_hushtable", "LSHiTables": "_sampled", "PyODAdapter": "_pyod",
    "RSHash": "_sampled", "RotatedRSHash": "_sampled", "TableDetector": "_base",
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, _HOMES)
