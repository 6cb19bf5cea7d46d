"""Rows as people have them, and the codes that hash functions take.

Schema, readers, columns, codes, weights; inferring a schema and checking rows against one. May
import `privacy`, `kernels` and what lies below; tested in ``tests/test_inputs.py``,
``test_schema.py``, ``test_check.py``, ``test_known_columns.py`` and ``toys/test_toy_format.py``.
Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.data.check import FeatureCheck, check_rows
    from hushtable.data.readers import register_format, register_source
    from hushtable.data.schema import Feature, Schema

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
