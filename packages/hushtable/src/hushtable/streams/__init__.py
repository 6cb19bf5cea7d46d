"""Streams: a window that slides, and drift between two sets of rows, from counts alone.

Sketches come into a window by addition, and leave it by subtraction, exactly.

Drift: rows collide in a table if they fall into the same cell. The share of tables in which two
rows collide is a kernel, and the squared distance between the relative counts of two sketches,
in the mean over the tables, is the squared maximum mean discrepancy under it (Gretton et al.,
*A Kernel Two-Sample Test*, 2012). Sampling and the noise of releases add to squares of counts on
average; what they add is taken off, so that no drift is 0 on average.

May import `scores` and what lies below; tested in ``tests/test_streams.py``.
"""

from hushtable.streams._drift import Drift, drift
from hushtable.streams._window import SlidingWindow

__all__ = ["Drift", "SlidingWindow", "drift"]
