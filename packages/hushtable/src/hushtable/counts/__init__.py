"""Counts under a plan: sketches, releases, models of one site.

Counts add exactly, and noise is added here. May import `plans` and the packages below it; tested in
``tests/test_sketch.py``, ``tests/privacy/test_release.py`` and ``tests/test_same_bits.py``.
"""
