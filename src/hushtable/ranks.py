"""Another name of `hushtable.scores.ranks`, from before 0.2."""

from hushtable.scores.ranks import Ranks

__all__ = ["Ranks"]
