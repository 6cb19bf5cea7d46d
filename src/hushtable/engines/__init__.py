"""The same sketch and the same scores on clusters: Dask and Spark, each with its extra."""
