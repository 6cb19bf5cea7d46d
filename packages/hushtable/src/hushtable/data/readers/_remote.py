"""Rows in files far away, by fsspec: ``s3://``, ``sftp://``, ``https://`` and the like."""

from collections.abc import Callable
from pathlib import PurePosixPath

from hushtable import far
from hushtable.data.readers._copy import Copy
from hushtable.errors import DataError


def copies(url: str, is_rows: Callable[[PurePosixPath], bool]) -> list[Copy]:
    """Copy every file of rows that a URL, of a file, a folder or a pattern, names.

    ``is_rows`` says whether a file of a name holds rows.
    """
    shown = far.public(url)
    made = []
    with far.reaching(url, DataError):
        system, root = far.connect(url)
        if set("*[") & set(root):
            found = sorted(name for name in system.glob(root) if is_rows(_name(name)))
        elif is_rows(_name(root)):
            found = [root]
        else:
            found = sorted(name for name in system.find(root) if is_rows(_name(name)))
        for name in found:
            source = shown if name == root else far.public(system.unstrip_protocol(name))
            made.append(Copy.of(source, "".join(_name(name).suffixes[-2:])))
            system.get_file(name, str(made[-1].path))
    if not made:
        raise DataError(f"{shown}: no such file, and no file of rows in it: check the URL")
    return made


def _name(path: str) -> PurePosixPath:
    """Return the last part of a path, which with some backends is a URL with a query."""
    return PurePosixPath(PurePosixPath(path.partition("?")[0]).name)
