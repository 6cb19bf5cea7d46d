"""The detectors by the names of their draws in plans."""

from hushtable.detectors._ace import ACE
from hushtable.detectors._base import TableDetector
from hushtable.detectors._hushtable import HushTable
from hushtable.detectors._sampled import LSHiTables, RotatedRSHash, RSHash

__all__ = ["BY_RECIPE"]

BY_RECIPE: dict[str, type[TableDetector]] = {
    detector._recipe: detector for detector in (ACE, HushTable, LSHiTables, RotatedRSHash, RSHash)
}
