"""Models for other runtimes: ONNX, one SQL statement, or JSON. They score as the library does.

A format is one module that provides a `Format`, and an entry point of `hushtable.exports`. May
import `scores` of the core and the layers below it; ``tests/exports`` tests each format with its
runtime.
"""

from hushtable_connect.exports.formats import Format, Model, export, format_of, formats

__all__ = ["Format", "Model", "export", "format_of", "formats"]
