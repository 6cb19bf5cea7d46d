"""The same sketch and the same scores in Dask, Spark, and DuckDB, each with its own extra.

May import `scores` and the layers below it; tested in ``tests/engines``, on one machine. Names load
on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_connect.engines.work import sketch_of

__all__ = ["sketch_of"]

__getattr__, __dir__ = exports(__name__, {"sketch_of": "work"})
