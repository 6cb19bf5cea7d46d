"""Other systems: databases, OMOP, Dask, Spark, DuckDB, ONNX, SQL, JSON, MLflow and serving."""
