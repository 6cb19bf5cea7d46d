"""Scores from counts: scorer, explanations, reasons, ranks, and the lowest rows.

Explanations are numbers, reasons are words; detectors, command line and report only display them.
May import `counts` and the packages below it; tested in ``tests/test_explain.py``,
``test_reasons.py`` and ``test_ranks.py``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.scores.explain import Explained, Explainer
    from hushtable.scores.scorer import Ranks, Scorer

__all__ = ["Explained", "Explainer", "Ranks", "Scorer"]

__getattr__, __dir__ = exports(
    __name__,
    {"Explained": "explain", "Explainer": "explain", "Ranks": "scorer", "Scorer": "scorer"},
)
