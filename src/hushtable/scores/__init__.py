"""Scores from counts: scorer, explanations, reasons, ranks.

May import `counts` and what lies below; tested in ``tests/test_explain.py``, ``test_reasons.py``
and ``test_ranks.py``.
"""
