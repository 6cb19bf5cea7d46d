"""The same sketch and the same scores elsewhere: Dask, Spark and DuckDB, each with its extra.

May import `scores` and what lies below; tested in ``tests/engines``, on one machine. Names load on
first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_connect.engines.work import sketch_of

__all__ = ["sketch_of"]

__getattr__, __dir__ = exports(__name__, {"sketch_of": "work"})
