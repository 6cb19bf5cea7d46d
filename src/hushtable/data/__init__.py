"""Rows as people have them, and the codes that hash functions take.

Schema, readers, columns, codes, weights; inferring a schema and checking rows against one. May
import `privacy`, `kernels` and what lies below; tested in ``tests/test_inputs.py``,
``test_schema.py``, ``test_check.py``, ``test_known_columns.py`` and ``toys/test_toy_format.py``.
Names load on first use.
"""

from hushtable.lazy import exports

__all__ = ["Feature", "FeatureCheck", "Schema", "check_rows", "register_format", "register_source"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Feature": "schema",
        "FeatureCheck": "check",
        "Schema": "schema",
        "check_rows": "check",
        "register_format": "readers",
        "register_source": "readers",
    },
)
