"""Another name of `hushtable.privacy.layout`, from before 0.2."""

from hushtable.privacy.layout import Design

__all__ = ["Design"]
