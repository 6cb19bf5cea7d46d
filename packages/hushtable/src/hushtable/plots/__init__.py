"""Plots of scores, reasons, counts, accuracy, budgets; scikit-learn's convention for displays.

A display holds the numbers of a picture. ``plot`` draws them with matplotlib (extra ``report``),
which loads only then. May import `scores` and what lies below; tested in ``tests/test_plots.py``.
"""

from hushtable.plots._budget import BudgetDisplay
from hushtable.plots._epsilon import EpsilonDisplay
from hushtable.plots._explanation import ExplanationDisplay
from hushtable.plots._noise import NoiseDisplay
from hushtable.plots._ranked import RankedOutliersDisplay
from hushtable.plots._scores import ScoreDisplay
from hushtable.plots._verdicts import VerdictsDisplay

__all__ = [
    "BudgetDisplay",
    "EpsilonDisplay",
    "ExplanationDisplay",
    "NoiseDisplay",
    "RankedOutliersDisplay",
    "ScoreDisplay",
    "VerdictsDisplay",
]
