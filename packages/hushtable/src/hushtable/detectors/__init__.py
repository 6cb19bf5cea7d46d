"""Detectors as scikit-learn estimators: each names the draw of its tables and shares the rest.

Names load on first use, so loading a sketch does not import scikit-learn. May import `scores` and
the packages below it; tested in ``tests/test_detectors.py``.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.detectors.base import TableDetector
    from hushtable.detectors.hushtable import HushTable, LSHiTables

__all__ = ["HushTable", "LSHiTables", "TableDetector"]

_HOMES = {
    "HushTable": "hushtable", "LSHiTables": "hushtable",
    "TableDetector": "base",
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, _HOMES)
