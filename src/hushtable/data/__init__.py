"""Rows as people have them, and the codes that hash functions take.

Schema, readers, columns, codes, weights; inferring a schema and checking rows against one. May
import `privacy`, `kernels` and what lies below; tested in ``tests/test_inputs.py``,
``test_schema.py``, ``test_check.py`` and ``test_known_columns.py``.
"""
