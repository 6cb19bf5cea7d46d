"""Models for other runtimes: ONNX, one SQL statement, JSON. They score as the library does.

May import `scores` and what lies below; tested in ``tests/exports``, each against its runtime.
A format is one module with ``written(model, **options) -> bytes``, and a line in `_registry`.
"""

from hushtable_connect.exports._model import Model
from hushtable_connect.exports._registry import FORMATS, Format, export, format_of

__all__ = ["FORMATS", "Format", "Model", "export", "format_of"]
