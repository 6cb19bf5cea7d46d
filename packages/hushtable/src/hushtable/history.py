"""Readings of entities over time, each with the earlier readings of its entity.

See `hushtable.data.history`, and ``HushTable(entity=...)``, which derives these columns itself.
"""

from hushtable.data.history import History, history_columns

__all__ = ["History", "history_columns"]
