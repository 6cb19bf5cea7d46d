"""The same sketch and the same scores on clusters: Dask and Spark, each with its extra.

May import `scores` and what lies below; tested in ``tests/engines``, on one machine.
"""
