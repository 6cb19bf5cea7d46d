"""Models for other runtimes: ONNX, one SQL statement, JSON. They score as the library does.

A format is one module that gives a `Format`, and an entry point of `hushtable.exports`. May import
`scores` of the core and what lies below; tested in ``tests/exports``, each against its runtime.
"""

from hushtable_connect.exports.formats import Format, Model, export, format_of, formats

__all__ = ["Format", "Model", "export", "format_of", "formats"]
