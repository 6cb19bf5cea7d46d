"""Another name of `hushtable.scores.explain`, from before 0.2."""

from hushtable.scores.explain import Explained, Explainer

__all__ = ["Explained", "Explainer"]
