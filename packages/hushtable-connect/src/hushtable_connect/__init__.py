"""hushtable in other systems: databases, files of other programs, engines, and other runtimes."""

from hushtable.lazy import removed

COMMANDS = """
export          cli:export         Write a model for another runtime: ONNX, SQL or JSON.
"""

_OF_FILES = (
    "score files with hushtable score FOLDER -o FOLDER, or a data frame of them with score_data"
)
_BY_ARROW = "score a data frame with score_data, and count it with sketch_data"
removed(
    {
        "hushtable_connect.engines.dask.score_files": _OF_FILES,
        "hushtable_connect.engines.duckdb": "score with the statement of hushtable export "
        "-o m.sql, and count the result of a query with Sketch.from_data",
        "hushtable_connect.engines.sketch_of": _BY_ARROW,
        "hushtable_connect.engines.spark.register_score": _BY_ARROW,
        "hushtable_connect.engines.spark.register_sketch": _BY_ARROW,
        "hushtable_connect.engines.spark.score_files": _OF_FILES,
        "hushtable_connect.exports.skl2onnx": "export the detector alone, with to_onnx of "
        "hushtable_connect.exports.onnx, and its pipeline's other steps with skl2onnx",
        "hushtable_connect.joins": "join the tables in a query of DuckDB or PostgreSQL, as "
        "the page on databases shows",
        "hushtable_connect.serving": "use the recipe for MLflow of the page on exports",
    }
)
