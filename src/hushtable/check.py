"""Another name of `hushtable.data.check`, from before 0.2."""

from hushtable.data.check import FeatureCheck, check_rows

__all__ = ["FeatureCheck", "check_rows"]
