"""The formats, by the ending of the file's name."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from hushtable import files
from hushtable.errors import UsageError
from hushtable_connect.exports._model import Model


class Format(NamedTuple):
    """A format: the module that writes it, what it is called, how it is used, its options."""

    module: str
    words: str
    use: str
    options: tuple[str, ...] = ()

    def written(self, model: Model, **options: Any) -> bytes:
        """Return a model in this format; raises `UsageError` for options that it has not."""
        self.check(options)
        content: bytes = import_module(f"hushtable_connect.exports.{self.module}").written(
            model, **options
        )
        return content

    def check(self, options: dict[str, Any]) -> None:
        """Raise `UsageError` if there are options that this format has not."""
        for name in options:
            if name not in self.options:
                taking = [suffix for suffix, one in FORMATS.items() if name in one.options]
                of = f"is for {', '.join(taking)} files" if taking else "is no option"
                raise UsageError(f"{name} {of}: leave it out for {self.words}")


#: Formats by suffix.
FORMATS = {
    ".onnx": Format("onnx", "ONNX", "ONNX Runtime scores rows by it", ("missing",)),
    ".sql": Format(
        "sql",
        "a SQL statement",
        "run in the database, it scores the rows of a table",
        ("dialect", "table"),
    ),
    ".json": Format(
        "portable", "JSON", "hushtable.mjs scores rows by it in a browser or Node, as others may"
    ),
}


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file by its name; raises `UsageError` if there is none."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"{path}: needs a name that ends in {', '.join(FORMATS)}")
    return FORMATS[suffix]


def export(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a model for another runtime, by the ending of the file's name.

    Only its owner may read the file: scores of cells tell their counts.

    Parameters
    ----------
    model : fitted detector, Sketch, Release, LocalModel, or path of a .hush file
        What scores.
    path : path
        The file to write: ``.onnx``, ``.sql`` or ``.json``.
    **options
        Of the format: see `hushtable_connect.exports.onnx`, `hushtable_connect.exports.sql` and
        `hushtable_connect.exports.portable`.

    Raises
    ------
    UsageError
        If the ending is none of these, the format has no such option, or the model's export would
        not be exact.
    FileError, OSError
        If the model cannot be read, or holds counts that do not score; or nothing can be written.

    Examples
    --------
    >>> from hushtable import HushTable
    >>> from hushtable_connect.exports import export
    >>> detector = HushTable(random_state=0).fit([[70, 1], [71, 2], [72, 3], [180, 4]])
    >>> export(detector, "model.json")
    """
    kind = format_of(path)
    kind.check(options)
    files.write_bytes(path, kind.written(Model.of(model), **options))
