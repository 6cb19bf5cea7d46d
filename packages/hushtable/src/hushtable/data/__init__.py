"""Rows as people have them, and the codes that hash functions take.

Schema, readers, columns, codes, weights; inferring a schema, checking rows against one, and the
quality of a table. May import `privacy`, `kernels` and the packages below them; tested in
``tests/test_inputs.py``, ``test_schema.py``, ``test_check.py``, ``test_known_columns.py``,
``test_quality.py`` and ``toys/test_toy_format.py``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.data.check import FeatureCheck, check_rows
    from hushtable.data.options import read, understand
    from hushtable.data.quality import TableQuality, table_quality
    from hushtable.data.readers import register_format, register_source
    from hushtable.data.schema import Feature, Schema
    from hushtable.data.texts.doubt import ColumnUnderstanding, Doubt
    from hushtable.data.understanding import Understanding

__all__ = [
    "ColumnUnderstanding", "Doubt", "Feature", "FeatureCheck", "Schema", "TableQuality",
    "Understanding", "check_rows", "read", "register_format", "register_source", "table_quality",
    "understand",
]  # fmt: skip

__getattr__, __dir__ = exports(
    __name__,
    {
        "ColumnUnderstanding": "texts.doubt",
        "Doubt": "texts.doubt",
        "Feature": "schema",
        "FeatureCheck": "check",
        "Schema": "schema",
        "TableQuality": "quality",
        "Understanding": "understanding",
        "check_rows": "check",
        "read": "options",
        "register_format": "readers",
        "register_source": "readers",
        "table_quality": "quality",
        "understand": "options",
    },
)
