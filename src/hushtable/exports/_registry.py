"""The formats, by the ending of the file's name."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from hushtable import files
from hushtable.errors import UsageError
from hushtable.exports._model import Model


class Format(NamedTuple):
    """A format: the module that writes it, and what it is called."""

    module: str
    words: str


#: Formats by suffix.
FORMATS = {
    ".onnx": Format("onnx", "ONNX"),
    ".sql": Format("sql", "a SQL statement"),
    ".json": Format("portable", "JSON"),
}


def export(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a model for another runtime, by the ending of the file's name.

    Parameters
    ----------
    model : fitted detector, Sketch, Release, LocalModel, or path of a .hush file
        What scores.
    path : path
        The file to write: ``.onnx``, ``.sql`` or ``.json``.
    **options
        Of the format: see `hushtable.exports.onnx`, `hushtable.exports.sql` and
        `hushtable.exports.portable`.

    Raises
    ------
    UsageError
        If the ending is none of these, or the model's export would not be exact.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"{path}: needs a name that ends in {', '.join(FORMATS)}")
    written = import_module(f"hushtable.exports.{FORMATS[suffix].module}").written
    files.write_bytes(path, written(Model.of(model), **options))
